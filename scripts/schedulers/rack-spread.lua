-- Spreads workers over racks, then over the nodes of a rack, and the tasks of every component over
-- racks: losing one rack takes the smallest possible part of each component.
--
--   streamlua schedule topo.lua --cluster-file cluster.lua --scheduler rack-spread
--
-- Racks are the field `rack` of the cluster's supervisors; a node without one is a rack of its own.

local toolkit = require 'streamlua.scheduling.toolkit'

-- How many workers each rack has.
local function workers_by_rack(state)
  local count = {}
  for _, node in ipairs(state.nodes) do
    count[node.rack] = (count[node.rack] or 0) + node.workers
  end
  return count
end

local function open_workers(state)
  while state.workers_to_open > 0 do
    local racks = workers_by_rack(state)
    state:open(state:node_with_room(function(a, b)
      if racks[a.rack] ~= racks[b.rack] then return racks[a.rack] < racks[b.rack] end
      if a.workers ~= b.workers then return a.workers < b.workers end
      return #a.free > #b.free
    end))
  end
end

-- Tasks of a component, and of all, by rack and by worker.
local function measures(state, component)
  local same, all = {}, {}
  for _, worker in ipairs(state.workers) do
    local rack = worker.node.rack
    same[rack] = (same[rack] or 0) + (worker.count[component] or 0)
    all[rack] = (all[rack] or 0) + #worker.tasks
  end
  return same, all
end

-- Fewest of the component in the rack, then in the worker, then fewest tasks.
local function choose(state, task, limit)
  local same, all = measures(state, task.component)
  local best, best_key
  for _, worker in ipairs(state.workers) do
    if #worker.tasks < limit and state:may_put(worker.node, task.component) then
      local rack = worker.node.rack
      local key = { same[rack], worker.count[task.component] or 0, #worker.tasks, all[rack] }
      local is_better = not best
      for i = 1, best and #key or 0 do
        if key[i] ~= best_key[i] then
          is_better = key[i] < best_key[i]
          break
        end
      end
      if is_better then best, best_key = worker, key end
    end
  end
  return best
end

return {
  name = 'rack-spread',
  assign = function(request)
    local state = toolkit.start(request)
    open_workers(state)
    local placed = 0
    for _, worker in ipairs(state.workers) do placed = placed + #worker.tasks end
    local limit = math.ceil((placed + #state.tasks) / math.max(#state.workers, 1))
    for _, task in ipairs(state.tasks) do
      local worker = choose(state, task, limit) or choose(state, task, math.huge)
      if not worker then
        error(("no node is left for another task of '%s'"):format(task.component), 0)
      end
      state:put(worker, task)
    end
    return state:finish()
  end,
}
