-- The scheduling request of a topology.
--
--   local from_topology = require 'streamlua.scheduling.topology'
--   local request = assert(from_topology.request(t, { supervisors = 3, slots = 4 }, {
--     parallelism = { count = 5 }, previous = assignment, mode = 'keep' }))
--
-- Task ids: bolts in order of declaration, __acker (with `ackers` = N there are N of them),
-- __topology_master, then spouts. With a previous assignment the ids of unchanged components stay,
-- growth takes max + 1 and shrinking drops the highest.

local document = require 'streamlua.scheduling.document'
local err = require 'streamlua.err'
local packing = require 'streamlua.packing'
local packing_topology = require 'streamlua.packing.topology'
local units = require 'streamlua.units'

local M = {}

local ACKER, MASTER = '__acker', document.MASTER

-- Components in the order of their ids: {name=, kind=, inputs=, parallelism= of the script}.
local function ordered(t)
  local list = {}
  local function take(kind)
    for _, entry in ipairs(t.components) do
      if (entry.kind == 'spout') == (kind == 'spout') then
        local inputs, seen = {}, {}
        for _, input in ipairs(entry.inputs or {}) do
          if not seen[input.source] then inputs[#inputs + 1] = input.source end
          seen[input.source] = true
        end
        list[#list + 1] = { name = entry.name, kind = kind, inputs = inputs,
          parallelism = entry.parallelism or 1, cpu = entry.cpu, ram = entry.ram }
      end
    end
  end
  take('bolt')
  local ackers = t.config.ackers
  if t.config.acking ~= false and type(ackers) == 'number' and ackers >= 1 then
    list[#list + 1] = { name = ACKER, kind = 'system', inputs = {}, parallelism = ackers }
  end
  list[#list + 1] = { name = MASTER, kind = 'system', inputs = {}, parallelism = 1 }
  take('spout')
  return list
end

local function range(first, count)
  local ids = {}
  for i = 1, count do ids[i] = first + i - 1 end
  return ids
end

-- Ids from 1 in order.
local function fresh_ids(list, count_of)
  local ids, next_id = {}, 1
  for _, entry in ipairs(list) do
    ids[entry.name] = range(next_id, count_of(entry))
    next_id = next_id + count_of(entry)
  end
  return ids
end

-- Ids that a previous assignment implies: those it names, else those of the script as it is.
local function ids_before(list, previous)
  if not previous.components then
    return fresh_ids(list, function(entry) return entry.parallelism end)
  end
  local ids = {}
  for _, component in ipairs(previous.components) do
    local copy = {}
    for i, task in ipairs(component.tasks) do copy[i] = task end
    table.sort(copy)
    ids[component.name] = copy
  end
  return ids
end

-- Growth takes max + 1, shrinking drops the highest.
local function scaled_ids(list, previous, count_of)
  local ids = ids_before(list, previous)
  local highest = 0
  for _, tasks in pairs(ids) do
    for _, task in ipairs(tasks) do highest = math.max(highest, task) end
  end
  for _, worker in ipairs(previous.workers) do
    for _, task in ipairs(worker.tasks) do highest = math.max(highest, task) end
  end
  for _, entry in ipairs(list) do
    local tasks = ids[entry.name] or {}
    ids[entry.name] = tasks
    while #tasks > count_of(entry) do tasks[#tasks] = nil end
    while #tasks < count_of(entry) do
      highest = highest + 1
      tasks[#tasks + 1] = highest
    end
  end
  return ids
end

-- Calls `visit` with each instance of a plan, by task.
local function each_instance(plan, visit)
  local instances = {}
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do instances[#instances + 1] = instance end
  end
  table.sort(instances, function(a, b) return a.task < b.task end)
  for _, instance in ipairs(instances) do visit(instance) end
end

-- The packing plan behind `packed`, and the ids it gives. The topology master comes behind the tasks
-- of the script; its id stays, what is added comes behind it.
local function packed_ids(t, list, overrides)
  local request = packing_topology.request(t)
  local plan, fault = packing.pack(request, t.config.packing)
  if not plan then return nil, fault end
  local changes = {}
  for _, entry in ipairs(list) do
    local wanted = overrides[entry.name]
    if wanted and wanted ~= entry.parallelism then
      changes[entry.name] = wanted - entry.parallelism
    end
  end
  local owner, master = {}, 1
  each_instance(plan, function(instance)
    owner[instance.task], master = instance.component, instance.task + 1
  end)
  if next(changes) then
    request.shrink = 'tasks'
    plan, fault = packing.repack(plan, changes, { request = request, repacker = t.config.repacking })
    if not plan then return nil, fault end
  end
  local ids, highest = { [MASTER] = { master } }, master
  each_instance(plan, function(instance)
    if owner[instance.task] ~= instance.component then
      highest = highest + 1
      instance.task = highest
    end
    ids[instance.component] = ids[instance.component] or {}
    table.insert(ids[instance.component], instance.task)
  end)
  for _, tasks in pairs(ids) do table.sort(tasks) end
  return ids, plan
end

local function bytes(value)
  return value ~= nil and units.parse_size(value) or nil
end

local function user_workers(config)
  local list = {}
  for i, worker in ipairs(config.user_workers or {}) do
    list[i] = { host = worker.host, port = worker.port, cpu = worker.cpu, ram = bytes(worker.ram),
      components = worker.components or {} }
  end
  return list
end

-- Mode monitor: the ports of this topology's own workers are taken too.
local function take_own_ports(cluster, previous)
  local supervisors = {}
  for _, supervisor in ipairs(cluster.supervisors) do supervisors[supervisor.id] = supervisor end
  for _, worker in ipairs(previous.workers) do
    local supervisor = supervisors[worker.supervisor]
    if supervisor then
      local is_used = false
      for _, port in ipairs(supervisor.used) do is_used = is_used or port == worker.port end
      if not is_used then table.insert(supervisor.used, worker.port) end
    end
  end
  for _, supervisor in ipairs(cluster.supervisors) do table.sort(supervisor.used) end
end

-- Tasks of the previous workers on slots {supervisor=, port=} that still exist.
local function tasks_on(slots, previous, ids)
  local exists, tasks = {}, {}
  for _, list in pairs(ids) do
    for _, task in ipairs(list) do exists[task] = true end
  end
  for _, slot in ipairs(slots) do
    local found
    for _, worker in ipairs(previous and previous.workers or {}) do
      if worker.supervisor == slot.supervisor and worker.port == slot.port then found = worker end
    end
    if not found then
      return nil, err.new('EINVAL', ('dead worker %s:%d: the previous assignment has no worker there')
        :format(slot.supervisor, slot.port))
    end
    for _, task in ipairs(found.tasks) do
      if exists[task] then tasks[#tasks + 1] = task end
    end
  end
  table.sort(tasks)
  return tasks
end

--- Builds the request of a topology for a cluster. Options: `scheduler` (`packed` needs a plan, which
--- is made), `parallelism` by component, `previous` assignment, `mode` (default: 'keep' with a
--- previous assignment, else 'new'), `dead` = list of {supervisor=, port=}.
---@param t table topology
---@param cluster table document, in full or uniform
---@param options table?
---@return table? request in normal form
---@return streamlua.Error?
function M.request(t, cluster, options)
  options = options or {}
  local config, overrides = t.config, options.parallelism or {}
  local fault
  cluster, fault = document.cluster(cluster)
  if not cluster then return nil, fault end
  local previous
  if options.previous then
    previous, fault = document.assignment(options.previous, { what = 'previous assignment' })
    if not previous then return nil, fault end
  end
  local list = ordered(t)
  local function count_of(entry) return overrides[entry.name] or entry.parallelism end
  local ids, plan
  if options.scheduler == 'packed' then
    ids, plan = packed_ids(t, list, overrides)
    if not ids then return nil, plan end
  elseif previous then
    ids = scaled_ids(list, previous, count_of)
  else
    ids = fresh_ids(list, count_of)
  end
  local dead
  dead, fault = tasks_on(options.dead or {}, previous, ids)
  if not dead then return nil, fault end
  local mode = options.mode or (previous and 'keep' or 'new')
  if mode == 'monitor' and previous then take_own_ports(cluster, previous) end
  local components = {}
  for i, entry in ipairs(list) do
    components[i] = { name = entry.name, kind = entry.kind, inputs = entry.inputs,
      tasks = ids[entry.name], cpu = entry.cpu, ram = entry.ram }
  end
  return document.request {
    topology = t.name, mode = mode, workers = config.containers or config.workers,
    master_alone = config.master_alone, reserve_workers = config.reserve_workers,
    components = components, isolation = config.isolation, user_workers = user_workers(config),
    on_different_nodes = config.on_different_nodes, use_old_assignment = config.use_old_assignment,
    container_cpu = config.container_cpu, container_ram = bytes(config.container_ram),
    cluster = cluster, previous = previous, dead_tasks = dead, plan = plan,
  }
end

--- The components of a request as an assignment keeps them when its ids can not be told from the
--- script any more; nil while they can.
---@param t table topology
---@param request table
---@return table[]?
function M.components_to_keep(t, request)
  if request.plan then return nil end
  local usual = fresh_ids(ordered(t), function(entry) return entry.parallelism end)
  local list, is_usual = {}, true
  for i, component in ipairs(request.components) do
    list[i] = { name = component.name, tasks = component.tasks }
    local ids = usual[component.name] or {}
    is_usual = is_usual and #ids == #component.tasks
    for k, task in ipairs(component.tasks) do is_usual = is_usual and ids[k] == task end
  end
  if not is_usual then return list end
end

return M
