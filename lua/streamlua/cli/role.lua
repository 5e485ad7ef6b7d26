-- Commands that are the bodies of processes and are not meant to be typed. They take everything from
-- their command line, because their working folder and environment are not those of a user.
--
--   return role.command('guardian', 'Restart ...', function(C, state, args, settings) return 0 end)

local abi = require 'streamlua.abi'
local control = require 'streamlua.conf.control'
local err = require 'streamlua.err'
local libc = require 'streamlua.connectors.libc'
local parser = require 'streamlua.cli.parser'

local M = {}

--- Path of this program.
---@return string
function M.program() return libc.realpath('/proc/self/exe') end

--- Makes the command of a role.
---@param name string
---@param summary string
---@param run fun(C: any, state: string, args: table, settings: ffi.cdata*): integer returns the exit
--- code; settings is a `struct sl_settings *`
---@return table command
function M.command(name, summary, run)
  return {
    name = name,
    summary = summary,
    declare = function(command)
      command:option('--topology', 'Name of the topology.'):argname('NAME'):count(1)
      command:option('--logs', "Folder of the topology's logs."):argname('DIR'):count(1)
      command:option('--partner', 'Process that watches this one.'):argname('PID'):default('0')
        :convert(parser.integer(0))
    end,
    run = function(context, args)
      if not args.global_state then context:fail('usage', name, '--state is needed') end
      local settings, wrong = control.settings(context.settings)
      if not settings then context:fail('invalid', 'settings', tostring(wrong)) end
      local code = run(abi.C, args.global_state, args, settings)
      if code < 0 then
        local _, failure = err.last()
        context:fail_with(failure, name)
      end
      return code
    end,
  }
end

return M
