-- The next plan of a running topology: what `streamlua update` proposes. Pure: documents in, a
-- document out.
--
--   local change = require 'streamlua.cluster.change'
--   local plan = assert(change.propose(described, current, { changes = { count = 2 } }))
--
-- In every mode and with every packer a component that shrinks loses the tasks with its highest ids,
-- and one that grows gets new ones, max + 1; everybody else stays the task that it is. The modes say
-- where tasks run:
--
--   keep      nothing moves that need not move (the default): the packer's repack
--   minimal   as many tasks in each container, give or take one, and as few moves as that takes
--   reassign  packed anew, wherever things are now

local err = require 'streamlua.err'
local packing = require 'streamlua.packing'
local scheduling = require 'streamlua.scheduling'

local M = {}

-- Containers as workers of one supervisor: the container's id is the port less this.
local NODE, PORT_BASE, MAX_PORT = 'here', 1, 65535

-- Instances of a plan by component, in the order of their indexes.
local function instances_of(plan)
  local by_component = {}
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do
      local list = by_component[instance.component] or {}
      by_component[instance.component] = list
      list[#list + 1] = instance
    end
  end
  for _, list in pairs(by_component) do
    table.sort(list, function(a, b) return a.index < b.index end)
  end
  return by_component
end

local function copy_of(plan)
  local copy = {}
  for key, value in pairs(plan) do
    copy[key] = key ~= 'containers' and type(value) == 'table' and copy_of(value) or value
  end
  if plan.containers then
    copy.containers = {}
    for k, container in ipairs(plan.containers) do copy.containers[k] = copy_of(container) end
  end
  return copy
end

-- Gives the instances of a plan the tasks and indexes that the old one has; new ones get max + 1 of
-- both.
local function keep_ids(plan, old)
  local known, highest, names = instances_of(old), 0, {}
  for _, list in pairs(known) do
    for _, instance in ipairs(list) do highest = math.max(highest, instance.task) end
  end
  plan = copy_of(plan)
  local fresh = instances_of(plan)
  for name in pairs(fresh) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local own = known[name] or {}
    local index = #own > 0 and own[#own].index or -1
    for i, instance in ipairs(fresh[name]) do
      if own[i] then
        instance.task, instance.index = own[i].task, own[i].index
      else
        highest, index = highest + 1, index + 1
        instance.task, instance.index = highest, index
      end
    end
  end
  plan.version = old.version + 1
  return packing.validate_plan(plan)
end

local function repack(described, current, wanted)
  local request, fault = packing.validate_request(packing.request_from_topology(described, {
    current = current, changes = wanted.changes, containers = wanted.containers, shrink = 'tasks' }))
  if not request then return nil, fault end
  local plan
  plan, fault = packing.plan(request, wanted.packing or packing.default_packer(request),
    { limits = {} })
  if not plan then return nil, fault end
  return keep_ids(plan, current)
end

-- Everything packed as if for the first time, with the tasks that there are to be.
local function pack_anew(described, current, wanted)
  local parallelism = {}
  for name, list in pairs(instances_of(current)) do
    parallelism[name] = #list + (wanted.changes[name] or 0)
  end
  local request, fault = packing.validate_request(packing.request_from_topology(described, {
    parallelism = parallelism, config = { containers = wanted.containers or #current.containers } }))
  if not request then return nil, fault end
  local plan
  plan, fault = packing.plan(request, wanted.packing or packing.default_packer(request),
    { limits = {} })
  if not plan then return nil, fault end
  return keep_ids(plan, current)
end

-- The plan as an assignment: each container is a worker.
local function assignment_of(plan)
  local workers = {}
  for k, container in ipairs(plan.containers) do
    local tasks = {}
    for i, instance in ipairs(container.instances) do tasks[i] = instance.task end
    workers[k] = { supervisor = NODE, host = NODE, port = container.id + PORT_BASE, tasks = tasks }
  end
  return { topology = plan.topology, scheduler = 'balanced', workers = workers }
end

local function inputs_of(component)
  local inputs, seen = {}, {}
  for _, input in ipairs(component.inputs or {}) do
    if not seen[input.source] then inputs[#inputs + 1] = input.source end
    seen[input.source] = true
  end
  return inputs
end

local function scheduling_request(described, plan, current, count)
  local components, ports, instances = {}, {}, instances_of(plan)
  local function take(name, kind, inputs)
    local tasks = {}
    for i, instance in ipairs(instances[name] or {}) do tasks[i] = instance.task end
    if #tasks > 0 then
      components[#components + 1] = { name = name, kind = kind, inputs = inputs, tasks = tasks }
    end
    instances[name] = nil
  end
  for _, component in ipairs(described.components) do
    take(component.name, component.kind == 'spout' and 'spout' or 'bolt', inputs_of(component))
  end
  take('__acker', 'system', {})
  local highest = current.containers[#current.containers].id
  if highest + PORT_BASE + count > MAX_PORT then
    return nil, err.new('EUNSATISFIABLE', ('container ids up to %d are too many for mode minimal')
      :format(highest))
  end
  -- Containers that there are may go on, new ones come behind them.
  for _, container in ipairs(current.containers) do ports[#ports + 1] = container.id + PORT_BASE end
  for i = 1, count do ports[#ports + 1] = highest + PORT_BASE + i end
  return { topology = plan.topology, mode = 'minimal', workers = count, master_alone = false,
    components = components, previous = assignment_of(current),
    cluster = { supervisors = { { id = NODE, host = NODE, ports = ports, used = {} } } } }
end

local DIMENSIONS = { 'cpu', 'ram', 'disk' }

-- What a container has beyond its instances.
local function padding_of(container)
  local padding = {}
  for _, dimension in ipairs(DIMENSIONS) do
    padding[dimension] = container[dimension]
    for _, instance in ipairs(container.instances) do
      padding[dimension] = padding[dimension] - instance[dimension]
    end
  end
  return padding
end

-- Containers as the assignment has them. Those that go on keep their padding, new ones get the
-- largest.
local function regroup(plan, current, assignment)
  local instances, paddings, largest = {}, {}, { cpu = 0, ram = 0, disk = 0 }
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do instances[instance.task] = instance end
  end
  for _, container in ipairs(current.containers) do
    local padding = padding_of(container)
    paddings[container.id] = padding
    for _, dimension in ipairs(DIMENSIONS) do
      largest[dimension] = math.max(largest[dimension], padding[dimension])
    end
  end
  local evened = copy_of(plan)
  evened.containers = {}
  for k, worker in ipairs(assignment.workers) do
    local id = worker.port - PORT_BASE
    local container = { id = id, instances = {} }
    for _, dimension in ipairs(DIMENSIONS) do
      container[dimension] = math.max(0, (paddings[id] or largest)[dimension])
    end
    for i, task in ipairs(worker.tasks) do
      container.instances[i] = instances[task]
      for _, dimension in ipairs(DIMENSIONS) do
        container[dimension] = container[dimension] + instances[task][dimension]
      end
    end
    evened.containers[k] = container
  end
  return evened
end

-- A container may be as large as the config says, or as it is.
local function check_capacity(described, plan, current)
  local before = {}
  for _, container in ipairs(current.containers) do before[container.id] = container end
  local request, fault = packing.validate_request(packing.request_from_topology(described))
  if not request then return nil, fault end
  for _, container in ipairs(plan.containers) do
    for _, dimension in ipairs(DIMENSIONS) do
      local most, old = request.config['container_' .. dimension], before[container.id]
      local own = container[dimension]
      if most and own > most and not (old and old[dimension] >= own) then
        return nil, err.new('EUNSATISFIABLE', ('container %d: %s: need %.14g, room %.14g'):format(
          container.id, dimension, own, most))
      end
    end
  end
  return plan
end

-- As even as can be, with as few moves as that takes: the scheduling room's mode minimal, with the
-- containers as workers.
local function even_out(described, current, wanted)
  local plan, fault = repack(described, current, { changes = wanted.changes,
    packing = wanted.packing })
  if not plan then return nil, fault end
  local count, total = wanted.containers or #plan.containers, 0
  for _, container in ipairs(plan.containers) do total = total + #container.instances end
  if count > total then
    return nil, err.new('EUNSATISFIABLE', ('containers: %d are asked for, there are %d instances')
      :format(count, total))
  end
  local request, assignment
  request, fault = scheduling_request(described, plan, current, count)
  if not request then return nil, fault end
  assignment, fault = scheduling.assign(request, 'balanced')
  if not assignment then return nil, fault end
  plan, fault = packing.validate_plan(regroup(plan, current, assignment))
  if not plan then return nil, fault end
  return check_capacity(described, plan, current)
end

local MODES = { keep = repack, minimal = even_out, reassign = pack_anew }

--- The plan that a change asks for. Options: `changes` (signed, by component), `containers`,
--- `packing` (a packer's name or path), `mode`.
---@param described table the definition (streamlua.topology.native.describe)
---@param current table plan in normal form, without key groups
---@param options table
---@return table? plan without key groups
---@return streamlua.Error?
function M.propose(described, current, options)
  options = options or {}
  return MODES[options.mode or 'keep'](described, current, { changes = options.changes or {},
    containers = options.containers, packing = options.packing })
end

--- Moves of tasks between two plans: {component=, task=, from=, to=}, by task.
---@param delta table of streamlua.packing.delta
---@return table[]
function M.moves(delta)
  local moves = {}
  for _, instance in ipairs(delta.instances) do
    if instance.state == 'moved' then
      moves[#moves + 1] = { component = instance.component, task = instance.task,
        from = instance.from, to = instance.to }
    end
  end
  return moves
end

return M
