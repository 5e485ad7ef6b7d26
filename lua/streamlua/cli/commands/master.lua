-- `streamlua master`: a daemon that decides where the topologies of a standalone cluster run.

local abi = require 'streamlua.abi'
local control = require 'streamlua.conf.control'
local err = require 'streamlua.err'
local parser = require 'streamlua.cli.parser'
local running = require 'streamlua.cli.running'

return {
  name = 'master',
  summary = 'Decide where the topologies of a cluster run; in the foreground.',
  description = 'Stands for election among the masters of the state manager. The one that leads '
    .. 'takes submissions and changes, assigns slots of supervisors, and moves what died.',
  declare = function(command)
    command:option('--host', 'Where it listens and is reached (default: 127.0.0.1).')
      :argname('NAME'):default('127.0.0.1')
    command:option('--port', 'Port that it listens on (default: any).'):argname('N'):default('0')
      :convert(parser.integer(0, 65535))
  end,
  run = function(context, args)
    local settings, wrong, name = control.settings(context.settings)
    if not settings then
      context:fail('invalid', ("setting '%s'"):format(name or 'settings'), tostring(wrong))
    end
    local url = running.state_url(context)
    local code = abi.C.sl_abi_role_master(url, ('%s:%d'):format(args.host, args.port),
      running.logs_folder(url) .. '/masters', context.settings.secret, settings)
    if code < 0 then
      local _, failure = err.last()
      local what = ("master on '%s:%d'"):format(args.host, args.port)
      if failure.code == 'EFENCED' then
        context:fail('invalid', what, failure.message, 'all processes of a cluster share its secret')
      end
      context:fail_with(failure, what)
    end
    return code
  end,
}
