-- Builds something from a script in a child process, because a script that loads for ever can only
-- be killed. What the script prints goes to standard error.
--
--   local apart = require 'streamlua.cli.apart'
--   local request = apart.build(context, 'topo.lua', function(topology)
--     return scheduling.request_from_topology(topology, cluster)
--   end)

local errors = require 'streamlua.cli.error'
local isolated = require 'streamlua.cli.isolated'
local script = require 'streamlua.cli.script'

local M = {}

local function fields(failure)
  local copy = {}
  for key, item in pairs(failure) do copy[key] = item end
  return copy
end

--- Loads and validates the topology of a script and returns `build(topology)`: data, or nil and an
--- error of the library. Fails the command when there is none.
---@param context table
---@param path string
---@param build fun(topology: table): any, any
---@param options? { takes_streams?: boolean } stream programs come as their topology too
---@return any value
function M.build(context, path, build, options)
  local timeout = context.timeout or script.TIMEOUT
  local defaults = context.defaults
  local result = isolated.run(function()
    local ok, value = pcall(function()
      local t = script.load_valid(context, path, { defaults = defaults,
        takes_streams = options and options.takes_streams })
      return context:check(build(t))
    end)
    if ok then return { value = value } end
    return { failure = fields(errors.from_lua('invalid', value)) }
  end, { timeout = timeout })
  local what = ("script '%s'"):format(path)
  if result.timed_out then
    error(script.timeout_error(path, timeout), 0)
  elseif result.raised then
    context:fail('invalid', what, result.raised)
  elseif result.ended then
    context:fail('invalid', what, ('its process ended while loading (%s %d)'):format(
      result.ended == 'exited' and 'exit code' or 'signal', result.code))
  end
  local failure = result.value.failure
  if failure then context:fail(failure.exit, failure.message, nil, failure.hint, failure) end
  return result.value.value
end

return M
