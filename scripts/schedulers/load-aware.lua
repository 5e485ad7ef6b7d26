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

-- The worker whose machine has most idle cores for each task once it has one more; on one machine
-- the worker with fewer of the component, then with fewer tasks.
local function workers_for(state, component, tasks_on)
  return toolkit.queue(state.workers, function(worker)
    local node = worker.node
    return { -idle_cores(node) / ((tasks_on[node] or 0) + 1), worker.count[component] or 0,
      #worker.tasks }
  end, function(worker) return state:may_put(worker.node, component) end)
end

return {
  name = 'load-aware',
  assign = function(request)
    local state = toolkit.start(request)
    for _, node in ipairs(state.nodes) do node.cores = node.cpu or node.ports end
    -- Most idle cores for each worker that is or would be there.
    state:open_all(function(node) return { -idle_cores(node) / (node.workers + 1) } end)
    local tasks_on, queues = {}, {}
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
      queues[task.component] = queues[task.component]
        or workers_for(state, task.component, tasks_on)
      local worker = queues[task.component]:best()
      if worker and #empty >= left and #worker.tasks > 0 then worker = empty[#empty] end
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
