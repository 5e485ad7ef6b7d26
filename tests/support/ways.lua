--- Runs a spec in every way in which tuples can be tracked and tasks be spread: roots tracked at the
--- spout's executor and by two acker tasks, each on one executor and on three.
--
--     local ways = require 'support.ways'
--     ways.describe('acks', function(way)
--       it('...', function()
--         local cluster = way.run(topology, { mock = ... })     -- killed after the test
--       end)
--     end)

local testing = require 'streamlua.testing'

local M = {}

M.list = {
  { name = 'tracked, 1 executor', config = {}, executors = 1 },
  { name = 'tracked, 3 executors', config = {}, executors = 3 },
  { name = 'two ackers, 1 executor', config = { ackers = 2 }, executors = 1 },
  { name = 'two ackers, 3 executors', config = { ackers = 2 }, executors = 3 },
}

local function merged(first, second)
  local out = {}
  for key, value in pairs(first) do out[key] = value end
  for key, value in pairs(second or {}) do out[key] = value end
  return out
end

-- A way with functions that start clusters; what they started is killed by `clean`.
local function usable(way)
  local started = {}
  local self = merged(way)
  function self.cluster(options)
    local cluster = testing.cluster(merged({ executors = way.executors }, options))
    started[#started + 1] = cluster
    return cluster
  end
  function self.options(options)
    return merged(options or {}, { config = merged(way.config, options and options.config) })
  end
  function self.run(topology, options)
    local cluster = self.cluster()
    return cluster:run(topology, self.options(options))
  end
  function self.clean()
    for i, cluster in ipairs(started) do
      cluster:kill()
      started[i] = nil
    end
  end
  return self
end

--- A describe block for each way.
---@param name string
---@param body fun(way: table)
function M.describe(name, body)
  local busted = require 'busted'
  for _, way in ipairs(M.list) do
    busted.describe(('%s (%s)'):format(name, way.name), function()
      local usable_way = usable(way)
      busted.after_each(usable_way.clean)
      body(usable_way)
    end)
  end
end

--- One way without a describe block: the first of the list.
function M.simple() return usable(M.list[1]) end

--- Values of the first field of what a component emitted.
function M.firsts(outputs)
  local out = {}
  for i, values in ipairs(outputs) do out[i] = values[1] end
  return out
end

--- A sorted copy.
function M.sorted(list)
  local out = {}
  for i, item in ipairs(list) do out[i] = item end
  table.sort(out, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) < type(b)
  end)
  return out
end

return M
