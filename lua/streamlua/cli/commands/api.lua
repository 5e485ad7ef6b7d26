-- `streamlua api`: serves the HTTP API of a cluster.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local role = require 'streamlua.cli.role'

local C, ffi = abi.C, abi.ffi

local LISTEN = '127.0.0.1:9000'

-- Ends by a signal as a program that does not handle it would.
local SIGNAL_EXIT = 128

local function start(context, listen)
  local words = role.cluster_arguments(context)
  local arguments = ffi.new('const char *[?]', #words + 1)
  for i, word in ipairs(words) do arguments[i - 1] = word end
  local secret = context.settings.secret
  local api = C.sl_abi_http_api_start(listen, secret, role.program(), arguments)
  if api == nil then
    local _, failure = err.last()
    if failure.code == 'EFENCED' then
      context:fail('invalid', 'api', failure.message,
        "set 'secret' for the whole cluster, or listen on 127.0.0.1")
    end
    context:fail_with(failure, 'api')
  end
  return ffi.gc(api, C.sl_abi_http_api_stop), words
end

return {
  name = 'api',
  summary = 'Serve the HTTP API of a cluster.',
  description = 'Serves what the commands do over HTTP (docs/cli.md, "The HTTP API"). Runs until it '
    .. 'is told to end.',
  declare = function(command)
    command:option('--listen', 'Where to listen; port 0 picks one.'):argname('HOST:PORT')
      :default(LISTEN)
  end,
  run = function(context, args)
    local api, words = start(context, args.listen)
    context:note('api: http://', ffi.string(C.sl_abi_http_api_address(api)))
    local number = C.sl_abi_http_wait_for_end()
    C.sl_abi_http_api_stop(ffi.gc(api, nil))
    if number < 0 then
      local _, failure = err.last()
      context:fail_with(failure, 'api')
    end
    return words and SIGNAL_EXIT + number
  end,
}
