-- Spreads workers over racks, then over the nodes of a rack, and the tasks of every component over
-- racks: losing one rack takes the smallest possible part of each component.
--
--   streamlua schedule topo.lua --cluster-file cluster.lua --scheduler rack-spread
--
-- Racks are the field `rack` of the cluster's supervisors; a node without one is a rack of its own.

local toolkit = require 'streamlua.scheduling.toolkit'

local function add(map, key, n) map[key] = (map[key] or 0) + n end

-- The best item of the best rack. What is in a rack is compared by `inner(item)`; racks by `outer(rack,
-- best item)`, and where that is equal by the order of the items.
local function by_rack(items, rack_of, inner, outer, accept)
  local racks, list, position = {}, {}, {}
  for i, item in ipairs(items) do
    local name = rack_of(item)
    if not racks[name] then
      racks[name] = { name = name }
      list[#list + 1] = racks[name]
    end
    position[item] = i
    table.insert(racks[name], item)
  end
  for _, rack in ipairs(list) do rack.queue = toolkit.queue(rack, inner, accept) end
  local function has_one(rack) return rack.queue:best() ~= nil end
  local filled = {}
  for _, rack in ipairs(list) do
    if has_one(rack) then filled[#filled + 1] = rack end
  end
  local queue = toolkit.queue(filled, function(rack)
    local best = rack.queue:best()
    local key = outer(rack.name, best)
    key[#key + 1] = position[best]
    return key
  end, has_one)
  return function()
    local rack = queue:best()
    return rack and rack.queue:best()
  end
end

-- A worker on the rack with the fewest, there on the node with the fewest, then the most free ports.
local function open_workers(state)
  local workers_on = {}
  for _, node in ipairs(state.nodes) do add(workers_on, node.rack, node.workers) end
  local best = by_rack(state.nodes, function(node) return node.rack end,
    function(node) return { node.workers, -#node.free } end,
    function(rack, node) return { workers_on[rack], node.workers, -#node.free } end,
    function(node) return state:has_room(node) end)
  while state.workers_to_open > 0 do
    local worker = state:open(best())
    add(workers_on, worker.node.rack, 1)
  end
end

-- Workers for a component: first those with fewer tasks than the limit; fewest of the component in
-- the rack, then in the worker, then fewest tasks in the worker, then in the rack.
local function workers_for(state, component, limit, all_on)
  local same_on = {}
  for _, worker in ipairs(state.workers) do
    add(same_on, worker.node.rack, worker.count[component] or 0)
  end
  local function is_full(worker) return #worker.tasks < limit and 0 or 1 end
  local function count(worker) return worker.count[component] or 0 end
  local best = by_rack(state.workers, function(worker) return worker.node.rack end,
    function(worker) return { is_full(worker), count(worker), #worker.tasks } end,
    function(rack, worker)
      return { is_full(worker), same_on[rack], count(worker), #worker.tasks, all_on[rack] }
    end,
    function(worker) return state:may_put(worker.node, component) end)
  return { best = best, same_on = same_on }
end

return {
  name = 'rack-spread',
  assign = function(request)
    local state = toolkit.start(request)
    open_workers(state)
    local placed = 0
    for _, worker in ipairs(state.workers) do placed = placed + #worker.tasks end
    local limit = math.ceil((placed + #state.tasks) / math.max(#state.workers, 1))
    local choices, all_on = {}, {}
    for _, worker in ipairs(state.workers) do add(all_on, worker.node.rack, #worker.tasks) end
    for _, task in ipairs(state.tasks) do
      local choice = choices[task.component] or workers_for(state, task.component, limit, all_on)
      choices[task.component] = choice
      local worker = choice.best()
      if not worker then
        error(("no node is left for another task of '%s'"):format(task.component), 0)
      end
      state:put(worker, task)
      add(choice.same_on, worker.node.rack, 1)
      add(all_on, worker.node.rack, 1)
    end
    return state:finish()
  end,
}
