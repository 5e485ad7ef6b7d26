-- Commands that are the bodies of processes and are not meant to be typed. They take everything from
-- their command line, because their working folder and environment are not those of a user.
--
--   return role.command('guardian', 'Restart ...', function(C, options, settings) return 0 end)

local abi = require 'streamlua.abi'
local control = require 'streamlua.conf.control'
local err = require 'streamlua.err'
local libc = require 'streamlua.connectors.libc'
local parser = require 'streamlua.cli.parser'
local running = require 'streamlua.cli.running'

local C, ffi = abi.C, abi.ffi

local M = {}

--- Path of this program.
---@return string
function M.program() return libc.realpath('/proc/self/exe') end

--- Runs the body of a role with the settings of the control plane; an error of it ends the command.
---@param context table
---@param name string of the command
---@param given table fields of `type`; it keeps the texts that C borrows
---@param type string the struct that the body gets
---@param run fun(C: any, options: ffi.cdata*, settings: ffi.cdata*, context: table, given: table): integer
--- returns the exit code or a negative SL_E code
---@return integer
function M.run(context, name, given, type, run)
  local settings, wrong = control.settings(context.settings)
  if not settings then context:fail('invalid', 'settings', tostring(wrong)) end
  local secret = context.settings.secret
  given.program, given.secret, given.secret_len = M.program(), secret, secret and #secret or 0
  local code = run(C, ffi.new(type, given), settings, context, given)
  if code < 0 then
    local _, failure = err.last()
    if failure.code == 'EFENCED' then
      context:fail('invalid', name, failure.message, 'all processes of a cluster share its secret')
    end
    context:fail_with(failure, name)
  end
  return code
end

--- Settings of --set as words for processes that this one starts. A secret goes into the environment
--- instead, which they inherit: other users see their command lines.
---@param items table[] list of {key=, value=}
---@return string[]
function M.set_arguments(items)
  local words = {}
  for _, item in ipairs(items) do
    if item.key == 'secret' then
      libc.C.setenv('STREAMLUA_SECRET', item.value, 1)
    else
      words[#words + 1], words[#words + 2] = '--set', item.key .. '=' .. item.value
    end
  end
  return words
end

--- The options of a command line that name this cluster, for processes that this one starts. Their
--- working folder is another one, so what stands in files beside it is given as values.
---@param context table
---@return string[]
function M.cluster_arguments(context)
  local globals = context.conf_options.globals
  local words = { '--cluster', context.settings.cluster, '--state', running.state_url(context) }
  if globals.config and globals.config.value then
    words[#words + 1], words[#words + 2] = '--config', libc.realpath(globals.config.value)
  end
  for _, word in ipairs(M.set_arguments(globals.set.value)) do words[#words + 1] = word end
  return words
end

--- Serves the HTTP API of this cluster, on threads of its own, until `stop_api`.
---@param context table
---@param listen string HOST:PORT
---@return ffi.cdata*? api
---@return streamlua.Error?
function M.start_api(context, listen)
  local words = M.cluster_arguments(context)
  local arguments = ffi.new('const char *[?]', #words + 1)
  for i, word in ipairs(words) do arguments[i - 1] = word end
  local api = C.sl_abi_http_api_start(listen, context.settings.secret, M.program(), arguments)
  if api == nil then return err.last() end
  -- `words` holds the texts until they are copied.
  return ffi.gc(api, C.sl_abi_http_api_stop), words and nil
end

--- Fails with what kept an API from being served.
---@param context table
---@param failure streamlua.Error
function M.fail_api(context, failure)
  if failure.code == 'EFENCED' then
    context:fail('invalid', 'api', failure.message,
      "set 'secret' for the whole cluster, or listen on 127.0.0.1")
  end
  context:fail_with(failure, 'api')
end

--- Where an API listens.
---@param api ffi.cdata*
---@return string
function M.api_address(api) return ffi.string(C.sl_abi_http_api_address(api)) end

--- Ends an API; nil is fine.
---@param api ffi.cdata*?
function M.stop_api(api)
  if api then C.sl_abi_http_api_stop(ffi.gc(api, nil)) end
end

--- Makes the command of a role.
---@param name string
---@param summary string
---@param run fun(C: any, options: ffi.cdata*, settings: ffi.cdata*): integer returns the exit code
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
      command:option('--supervisor', 'Supervisor that started it.'):argname('ID')
      command:option('--host', 'Where it listens and is reached.'):argname('HOST')
      command:option('--port', 'Port of its slot.'):argname('PORT'):convert(parser.integer(1, 65535))
    end,
    run = function(context, args)
      if not args.global_state then context:fail('usage', name, '--state is needed') end
      if args.supervisor and not (args.host and args.port) then
        context:fail('usage', name, '--supervisor needs --host and --port')
      end
      return M.run(context, name, {
        state_url = args.global_state, topology = args.topology, logs = args.logs,
        partner_pid = args.partner, supervisor = args.supervisor, host = args.host,
        port = args.port,
      }, 'struct sl_role_options', run)
    end,
  }
end

return M
