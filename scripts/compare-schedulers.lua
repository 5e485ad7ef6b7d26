-- Compares schedulers on three clusters and prints Markdown tables; docs/schedulers-compared.md holds
-- what it prints.
--
--   build/streamlua exec scripts/compare-schedulers.lua

local scheduling = require 'streamlua.scheduling'

local SCHEDULERS = { 'balanced', 'even', 'round_robin', 'traffic-aware', 'load-aware', 'rack-spread',
  'bin-packing' }

local function component(name, kind, first, count, inputs, cpu)
  local tasks = {}
  for i = 1, count do tasks[i] = first + i - 1 end
  return { name = name, kind = kind, tasks = tasks, inputs = inputs, cpu = cpu }
end

-- Sources -> parse -> (enrich -> count, alert): most of the traffic is between parse and enrich.
local function components()
  return {
    component('parse', 'bolt', 1, 8, { 'source' }, 1),
    component('enrich', 'bolt', 9, 8, { 'parse' }, 1.5),
    component('count', 'bolt', 17, 6, { 'enrich' }, 0.5),
    component('alert', 'bolt', 23, 2, { 'parse' }, 0.25),
    component('__acker', 'system', 25, 2, {}),
    component('__topology_master', 'system', 27, 1, {}),
    component('source', 'spout', 28, 4, {}, 0.5),
  }
end

local RATES = {
  { from = 'source', to = 'parse', rate = 20000 }, { from = 'parse', to = 'enrich', rate = 60000 },
  { from = 'enrich', to = 'count', rate = 8000 }, { from = 'parse', to = 'alert', rate = 100 },
}

local function node(i, slots, more)
  local supervisor = { id = ('s%02d'):format(i), host = ('h%02d'):format(i), ports = {}, used = {} }
  for k = 1, slots do supervisor.ports[k] = 6799 + k end
  for key, value in pairs(more) do supervisor[key] = value end
  return supervisor
end

local clusters = {
  {
    name = 'Six equal nodes in two racks',
    text = 'Four slots, eight cores each, idle.',
    supervisors = function()
      local list = {}
      for i = 1, 6 do list[i] = node(i, 4, { rack = i <= 3 and 'a' or 'b', cpu = 8, load = 0 }) end
      return list
    end,
  },
  {
    name = 'One large node and small ones, some busy',
    text = 'A node with 16 slots and 32 cores, six with two slots and four cores; two of the small ones '
      .. 'and half of the large one are busy with something else.',
    supervisors = function()
      local list = { node(1, 16, { rack = 'a', cpu = 32, load = 0.5 }) }
      for i = 2, 7 do
        list[i] = node(i, 2, { rack = i <= 4 and 'a' or 'b', cpu = 4, load = i <= 3 and 0.9 or 0.1 })
      end
      return list
    end,
  },
  {
    name = 'Three racks of different size, slots in use',
    text = 'Twelve nodes with four slots and eight cores in racks of six, four and two; two slots of '
      .. 'every second node are taken by another topology.',
    supervisors = function()
      local list = {}
      for i = 1, 12 do
        list[i] = node(i, 4, { rack = i <= 6 and 'a' or i <= 10 and 'b' or 'c', cpu = 8,
          used = i % 2 == 0 and { 6800, 6801 } or {}, load = i % 2 == 0 and 0.4 or 0 })
      end
      return list
    end,
  },
}

-- Tasks by component on each value that `key_of` gives for a supervisor.
local function counts(request, assignment, key_of)
  local supervisor_of, component_of, result = {}, {}, {}
  for _, supervisor in ipairs(request.cluster.supervisors) do
    supervisor_of[supervisor.id] = supervisor
  end
  for _, item in ipairs(request.components) do
    for _, task in ipairs(item.tasks) do component_of[task] = item.name end
  end
  for _, worker in ipairs(assignment.workers) do
    local key = key_of(supervisor_of[worker.supervisor])
    result[key] = result[key] or {}
    for _, task in ipairs(worker.tasks) do
      local name = component_of[task]
      result[key][name] = (result[key][name] or 0) + 1
    end
  end
  return result
end

local function size_of(request)
  local size = {}
  for _, item in ipairs(request.components) do size[item.name] = #item.tasks end
  return size
end

-- Part of all tuples that cross nodes when every sender spreads its tuples evenly.
local function traffic_between_nodes(request, assignment)
  local on_node = counts(request, assignment, function(supervisor) return supervisor.id end)
  local size, all, crossing = size_of(request), 0, 0
  for _, rate in ipairs(request.rates) do
    local together = 0
    for _, count in pairs(on_node) do
      together = together + (count[rate.from] or 0) * (count[rate.to] or 0)
    end
    all = all + rate.rate
    crossing = crossing + rate.rate * (1 - together / (size[rate.from] * size[rate.to]))
  end
  return crossing / all
end

-- The largest part of a component that one rack has; of one or two tasks a rack always has much.
local function worst_rack(request, assignment)
  local on_rack = counts(request, assignment, function(supervisor) return supervisor.rack end)
  local size, worst = size_of(request), 0
  for _, count in pairs(on_rack) do
    for name, n in pairs(count) do
      if size[name] >= 4 then worst = math.max(worst, n / size[name]) end
    end
  end
  return worst
end

-- Load of the busiest node that is used: what it had, and the cores its tasks need.
local function busiest(request, assignment)
  local need, cpu = {}, {}
  for _, item in ipairs(request.components) do
    for _, task in ipairs(item.tasks) do cpu[task] = item.cpu or 0.1 end
  end
  for _, worker in ipairs(assignment.workers) do
    for _, task in ipairs(worker.tasks) do
      need[worker.supervisor] = (need[worker.supervisor] or 0) + cpu[task]
    end
  end
  local most = 0
  for _, supervisor in ipairs(request.cluster.supervisors) do
    if need[supervisor.id] then
      most = math.max(most, supervisor.load + need[supervisor.id] / supervisor.cpu)
    end
  end
  return most
end

local function nodes_used(assignment)
  local seen, n = {}, 0
  for _, worker in ipairs(assignment.workers) do
    n = n + (seen[worker.supervisor] and 0 or 1)
    seen[worker.supervisor] = true
  end
  return n
end

local function percent(part) return ('%d %%'):format(part * 100 + 0.5) end

for _, cluster in ipairs(clusters) do
  print(('## %s\n\n%s\n'):format(cluster.name, cluster.text))
  print('| scheduler | workers | nodes | tasks a worker | edges between workers | edges between nodes '
    .. '| traffic between nodes | worst rack | busiest node |')
  print('|---|---|---|---|---|---|---|---|---|')
  for _, name in ipairs(SCHEDULERS) do
    local request = { topology = 't', workers = 8, components = components(), rates = RATES,
      master_alone = false, cluster = { supervisors = cluster.supervisors() } }
    local assignment = assert(scheduling.assign(request, name))
    local figures = assert(scheduling.evaluate(assignment, request))
    print(('| %s | %d | %d | %d-%d | %d | %d | %s | %s | %s |'):format(name, figures.workers,
      nodes_used(assignment), figures.min_tasks, figures.max_tasks, figures.cross_worker_edges,
      figures.cross_node_edges, percent(traffic_between_nodes(request, assignment)),
      percent(worst_rack(request, assignment)), percent(busiest(request, assignment))))
  end
  print()
end
