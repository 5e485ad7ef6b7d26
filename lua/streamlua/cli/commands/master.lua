-- `streamlua master`: a daemon that decides where the topologies of a standalone cluster run.

local abi = require 'streamlua.abi'
local control = require 'streamlua.conf.control'
local err = require 'streamlua.err'
local parser = require 'streamlua.cli.parser'
local role = require 'streamlua.cli.role'
local running = require 'streamlua.cli.running'

local API_PORT = 9000

-- The HTTP API of this master. Where nothing was asked for, several masters of one machine may want the
-- same port: one of them serves it.
local function start_api(context, args)
  if args.api == 'off' then return nil end
  local listen = args.api or ('%s:%d'):format(args.host, API_PORT)
  local api, failure = role.start_api(context, listen)
  if api then
    context:note('api: http://', role.api_address(api))
  elseif args.api or failure.code ~= 'EEXIST' then
    role.fail_api(context, failure)
  else
    context:warn('api: ' .. failure.message .. '; this master serves none')
  end
  return api
end

return {
  name = 'master',
  summary = 'Decide where the topologies of a cluster run; in the foreground.',
  description = 'Stands for election among the masters of the state manager. The one that leads '
    .. 'takes submissions and changes, assigns slots of supervisors, and moves what died.',
  declare = function(command)
    command:option('--host', 'Where it listens and is reached.')
      :argname('NAME'):default('127.0.0.1')
    command:option('--port', 'Port that it listens on; 0 picks one.'):argname('N'):default('0')
      :convert(parser.integer(0, 65535))
    command:option('--api', 'Where it serves the HTTP API, or off (default: port 9000 of the host, '
      .. 'if it is free).'):argname('HOST:PORT')
  end,
  run = function(context, args)
    local settings, wrong, name = control.settings(context.settings)
    if not settings then
      context:fail('invalid', ("setting '%s'"):format(name or 'settings'), tostring(wrong))
    end
    local url = running.state_url(context)
    local api = start_api(context, args)
    local code = abi.C.sl_abi_role_master(url, ('%s:%d'):format(args.host, args.port),
      running.logs_folder(url) .. '/masters', context.settings.secret, settings)
    local _, failure = err.last()
    role.stop_api(api)
    if code < 0 then
      local what = ("master on '%s:%d'"):format(args.host, args.port)
      if failure.code == 'EFENCED' then
        context:fail('invalid', what, failure.message, 'all processes of a cluster share its secret')
      end
      context:fail_with(failure, what)
    end
    return code
  end,
}
