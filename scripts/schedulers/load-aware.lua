-- Puts workers where machines are idle, and gives idle machines more tasks.
--
--   streamlua schedule topo.lua --cluster-file cluster.lua --scheduler load-aware
--
-- The field `load` of a supervisor is its measured load, as a part of its cores: 0 is idle, 1 is
-- busy (the load average divided by the number of cores). A node without one counts as idle. Cores
-- are the field `cpu`, else its number of slots.

local toolkit = require 'streamlua.scheduling.toolkit'

-- Nothing is ever quite busy: a worker there must get tasks, too.
local LEAST_IDLE = 0.05

local function idle_cores(node)
  return math.max(1 - node.load, LEAST_IDLE) * (node.cores or 1)
end

local function open_workers(state)
  while state.workers_to_open > 0 do
    -- Most idle cores for each worker that is or would be there.
    state:open(state:node_with_room(function(a, b)
      return idle_cores(a) / (a.workers + 1) > idle_cores(b) / (b.workers + 1)
    end))
  end
end

-- The worker whose machine has most idle cores for each task once it has this one.
local function choose(state, task, tasks_on)
  local best, best_share, best_same
  for _, worker in ipairs(state.workers) do
    local node = worker.node
    if state:may_put(node, task.component) then
      local share = idle_cores(node) / ((tasks_on[node] or 0) + 1)
      local same = worker.count[task.component] or 0
      -- On one machine: the worker with fewer of the component, then with fewer tasks.
      local is_better = not best or share > best_share or (share == best_share and (same < best_same
        or same == best_same and #worker.tasks < #best.tasks))
      if is_better then best, best_share, best_same = worker, share, same end
    end
  end
  return best
end

return {
  name = 'load-aware',
  assign = function(request)
    local state = toolkit.start(request)
    for _, node in ipairs(state.nodes) do node.cores = node.cpu or node.ports end
    open_workers(state)
    local tasks_on = {}
    for _, worker in ipairs(state.workers) do
      tasks_on[worker.node] = (tasks_on[worker.node] or 0) + #worker.tasks
    end
    -- Every worker is used: an idle machine may not take the only task of another.
    local empty = {}
    for _, worker in ipairs(state.workers) do
      if #worker.tasks == 0 then empty[#empty + 1] = worker end
    end
    for i, task in ipairs(state.tasks) do
      local left = #state.tasks - i + 1
      local worker = choose(state, task, tasks_on)
      if #empty >= left and #worker.tasks > 0 then worker = empty[#empty] end
      if not worker then
        error(("no node is left for another task of '%s'"):format(task.component), 0)
      end
      for k = #empty, 1, -1 do
        if empty[k] == worker then table.remove(empty, k) end
      end
      state:put(worker, task)
      tasks_on[worker.node] = (tasks_on[worker.node] or 0) + 1
    end
    return state:finish()
  end,
}
