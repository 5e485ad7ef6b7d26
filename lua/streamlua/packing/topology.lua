-- The packing request of a topology.
--
--   local from_topology = require 'streamlua.packing.topology'
--   local request = from_topology.request(t, { parallelism = { count = 8 } })
--
-- Components stand in their order of declaration. With `ackers` = N there are N instances of
-- `__acker` behind them: they are real tasks and need room. The topology master is not packed; it
-- has its own place beside the containers. Task ids are given by the packer, from 1.

local document = require 'streamlua.packing.document'

local M = {}

local function is_plain(value)
  local kind = type(value)
  return kind == 'string' or kind == 'number' or kind == 'boolean'
end

--- Builds the request of a topology (of streamlua.topology, or any table with name, config and
--- components). Overrides: `parallelism` by component, `config`, `containers`.
---@param topology table
---@param overrides table? {parallelism=, config=, containers=, current=, changes=, shrink=}
---@return table request document
function M.request(topology, overrides)
  overrides = overrides or {}
  local config = {}
  local function take(from)
    for key, value in pairs(from or {}) do
      -- `check` warns of keys that look misspelt; only a request that is written by hand is refused
      -- for them.
      if type(key) == 'string' and is_plain(value) and not document.misspelt(key) then
        config[key] = value
      end
    end
  end
  take(topology.config)
  take(overrides.config)
  local request = { topology = topology.name, config = config, components = {},
    containers = overrides.containers, current = overrides.current, changes = overrides.changes,
    shrink = overrides.shrink }
  local parallelism = overrides.parallelism or {}
  for i, component in ipairs(topology.components) do
    request.components[i] = {
      name = component.name, kind = component.kind == 'spout' and 'spout' or 'bolt',
      parallelism = parallelism[component.name] or component.parallelism or 1,
      cpu = component.cpu, ram = component.ram, disk = component.disk,
    }
  end
  local ackers = config.ackers
  if config.acking ~= false and type(ackers) == 'number' and ackers >= 1 then
    request.components[#request.components + 1] = { name = '__acker', kind = 'system',
      parallelism = ackers }
  end
  return request
end

return M
