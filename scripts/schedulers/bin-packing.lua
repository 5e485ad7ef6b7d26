-- Packs tasks by their cpu and ram into as few nodes as possible, one worker a node, so that whole
-- machines stay free.
--
--   streamlua schedule topo.lua --cluster-file cluster.lua --scheduler bin-packing
--
-- A task needs the `cpu` and `ram` of its component, else one core and 512 MiB; a node has the `cpu`
-- and `ram` that it states, else as many cores as slots and no limit on ram. First fit decreasing by
-- the larger share of a node's resources. The result has fewer workers than were asked for when
-- fewer nodes do.

local toolkit = require 'streamlua.scheduling.toolkit'

local TASK_CPU, TASK_RAM = 1, 512 * 1024 * 1024

local function need(task)
  -- Tasks of the engine are light.
  local cpu = task.cpu or (task.kind == 'system' and 0.1 or TASK_CPU)
  return cpu, task.ram or TASK_RAM
end

local function add_need(worker, task)
  local cpu, ram = need(task)
  worker.cpu, worker.ram = (worker.cpu or 0) + cpu, (worker.ram or 0) + ram
end

-- Nodes that have room, the largest first: few of them hold everything.
local function by_size(state)
  local list = {}
  for _, node in ipairs(state.nodes) do
    node.cpu_left, node.ram_left = node.cpu or node.ports, node.ram or math.huge
    list[#list + 1] = node
  end
  table.sort(list, function(a, b)
    if a.cpu_left ~= b.cpu_left then return a.cpu_left > b.cpu_left end
    if a.ram_left ~= b.ram_left then return a.ram_left > b.ram_left end
    return a.id < b.id
  end)
  return list
end

-- The larger of the parts of the largest node that the task takes.
local function sort_by_share(tasks, nodes)
  local cpu, ram = 1, 1
  for _, node in ipairs(nodes) do
    cpu = math.max(cpu, node.cpu_left)
    if node.ram_left < math.huge then ram = math.max(ram, node.ram_left) end
  end
  local share = {}
  for _, task in ipairs(tasks) do
    local task_cpu, task_ram = need(task)
    share[task] = math.max(task_cpu / cpu, ram > 1 and task_ram / ram or 0)
  end
  table.sort(tasks, function(a, b)
    if share[a] ~= share[b] then return share[a] > share[b] end
    return a.id < b.id
  end)
end

local function fits(node, task)
  local cpu, ram = need(task)
  return cpu <= node.cpu_left + 1e-9 and ram <= node.ram_left
end

local function take(node, task)
  local cpu, ram = need(task)
  node.cpu_left, node.ram_left = node.cpu_left - cpu, node.ram_left - ram
end

return {
  name = 'bin-packing',
  assign = function(request)
    local state = toolkit.start(request)
    local nodes = by_size(state)
    local worker_on, task_of = {}, {}
    for _, task in ipairs(toolkit.tasks(request)) do task_of[task.id] = task end
    for _, worker in ipairs(state.workers) do
      worker.cpu, worker.ram = 0, 0
      for _, id in ipairs(worker.tasks) do
        add_need(worker, task_of[id])
        take(worker.node, task_of[id])
      end
      worker_on[worker.node] = worker_on[worker.node] or worker
    end
    sort_by_share(state.tasks, nodes)
    -- What was too full for a task of a component stays so: nothing leaves a node here.
    local first = {}
    for _, task in ipairs(state.tasks) do
      local home
      for i = first[task.component] or 1, #nodes do
        local node = nodes[i]
        local may_open = worker_on[node] or (#node.free > 0 and state.workers_to_open > 0)
        if may_open and fits(node, task) and state:may_put(node, task.component) then
          home, first[task.component] = node, i
          break
        end
      end
      if not home then
        local cpu, ram = need(task)
        error(("task %d of '%s' needs %g cores and %d bytes; no node has that left (workers asked "
          .. 'for: %s)'):format(task.id, task.component, cpu, ram,
          tostring(request.workers or 'any number')), 0)
      end
      worker_on[home] = worker_on[home] or state:open(home)
      state:put(worker_on[home], task)
      add_need(worker_on[home], task)
      take(home, task)
    end
    return state:finish()
  end,
}
