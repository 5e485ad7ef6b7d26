-- `streamlua api`: serves the HTTP API of a cluster.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local role = require 'streamlua.cli.role'

local LISTEN = '127.0.0.1:9000'

-- Ends by a signal as a program that does not handle it would.
local SIGNAL_EXIT = 128

return {
  name = 'api',
  summary = 'Serve the HTTP API of a cluster.',
  description = 'Serves what the commands do over HTTP (docs/http-api.md). Runs until it is told to '
    .. 'end.',
  declare = function(command)
    command:option('--listen', 'Where to listen; port 0 picks one.'):argname('HOST:PORT')
      :default(LISTEN)
  end,
  run = function(context, args)
    local api, failure = role.start_api(context, args.listen)
    if not api then role.fail_api(context, failure) end
    context:note('api: http://', role.api_address(api))
    local number = abi.C.sl_abi_http_wait_for_end()
    if number < 0 then failure = select(2, err.last()) end
    role.stop_api(api)
    if number < 0 then context:fail_with(failure, 'api') end
    return SIGNAL_EXIT + number
  end,
}
