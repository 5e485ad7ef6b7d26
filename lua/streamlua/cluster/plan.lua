-- Stored plans between documents (docs/packing.md) and the structs of the core
-- (core/cluster/control.abi.h).
--
--   local plans = require 'streamlua.cluster.plan'
--   local plan = plans.with_key_groups(packed, topology)       -- a first plan
--   local struct, keep = plans.to_struct(plan, names)          -- keep both while it is used
--   local document = plans.from_struct(struct)
--
-- A document's `key_groups` gives, by component, the task that owns each key group from group 0 on;
-- `master` = {supervisor=, host=, port=, task=} is where the topology master runs, where there are
-- slots.

local abi = require 'streamlua.abi'
local native = require 'streamlua.topology.native'

local ffi = abi.ffi
local text_of = ffi.string

local M = {}

local stored_t = ffi.typeof('struct sl_stored_plan')
local components_t = ffi.typeof('struct sl_plan_component[?]')
local slots_t = ffi.typeof('struct sl_plan_slot[?]')
local containers_t = ffi.typeof('struct sl_packing_container[?]')
local instances_t = ffi.typeof('struct sl_packing_instance[?]')
local ints_t = ffi.typeof('int32_t[?]')

--- The tasks of each component in the order of their indexes.
---@param plan table
---@return table<string, integer[]>
function M.tasks(plan)
  local instances, tasks = {}, {}
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do instances[#instances + 1] = instance end
  end
  table.sort(instances, function(a, b) return a.index < b.index end)
  for _, instance in ipairs(instances) do
    local list = tasks[instance.component] or {}
    tasks[instance.component] = list
    list[#list + 1] = instance.task
  end
  return tasks
end

-- Names of the components that something reads by key.
local function keyed(described)
  local names = {}
  for _, component in ipairs(described.components) do
    for _, input in ipairs(component.inputs) do
      if input.grouping == 'fields' then names[component.name] = true end
    end
  end
  return names
end

--- A first plan with the owners of its key groups.
---@param plan table
---@param described table of streamlua.topology.native.describe
---@param groups integer number of key groups
---@return table plan
function M.with_key_groups(plan, described, groups)
  local tasks, names = M.tasks(plan), keyed(described)
  plan.key_groups = {}
  for name, list in pairs(tasks) do
    if names[name] then plan.key_groups[name] = assert(native.assign_key_groups(list, groups)) end
  end
  return plan
end

--- A changed plan with the owners of its key groups: as few as possible change.
---@param plan table
---@param old table the plan it was made from
---@return table plan
---@return integer moved groups that change their task, over all components
function M.rebalance(plan, old)
  local tasks, moved = M.tasks(plan), 0
  plan.key_groups = {}
  for name, owners in pairs(old.key_groups or {}) do
    local after, count = native.rebalance_key_groups(owners, tasks[name])
    plan.key_groups[name] = assert(after, count)
    moved = moved + count
  end
  return plan, moved
end

local function fill_components(struct, keep, plan, names)
  local components = components_t(#names)
  for i, name in ipairs(names) do
    local owners = plan.key_groups and plan.key_groups[name]
    components[i - 1].name = name
    if owners then
      local array = ints_t(#owners)
      for g, task in ipairs(owners) do array[g - 1] = task end
      components[i - 1].key_groups, components[i - 1].key_group_count = array, #owners
      keep[#keep + 1] = array
    end
  end
  struct.components, struct.component_count = components, #names
  keep[#keep + 1] = components
end

local function fill_containers(struct, keep, plan, numbers, count)
  local containers, slots = containers_t(#plan.containers), slots_t(#plan.containers)
  local instances, at = instances_t(count), 0
  for k, container in ipairs(plan.containers) do
    local to, slot = containers[k - 1], slots[k - 1]
    to.id, to.first, to.count = container.id, at, #container.instances
    to.cpu, to.ram_bytes, to.disk_bytes = container.cpu, container.ram, container.disk
    slot.supervisor, slot.host = container.supervisor or '', container.host or ''
    slot.port = container.port or 0
    for _, instance in ipairs(container.instances) do
      local item = instances[at]
      item.component = numbers[instance.component]
      item.task, item.index, item.cpu = instance.task, instance.index, instance.cpu
      item.ram_bytes, item.disk_bytes = instance.ram, instance.disk
      at = at + 1
    end
  end
  struct.plan.containers, struct.plan.container_count = containers, #plan.containers
  struct.plan.instances, struct.plan.instance_count = instances, count
  struct.slots = slots
  keep[#keep + 1], keep[#keep + 2], keep[#keep + 3] = containers, slots, instances
end

--- A plan as the core takes it. `keep` holds what the struct points to, the plan its texts.
---@param plan table document in normal form
---@param names string[] components in order; those of a change as they were before
---@return ffi.cdata* struct
---@return table keep
function M.to_struct(plan, names)
  local struct, keep, numbers, count = stored_t(), { plan, names }, {}, 0
  for i, name in ipairs(names) do numbers[name] = i - 1 end
  for _, container in ipairs(plan.containers) do count = count + #container.instances end
  struct.topology, struct.version, struct.packing = plan.topology, plan.version, plan.packing
  fill_components(struct, keep, plan, names)
  fill_containers(struct, keep, plan, numbers, count)
  local master = plan.master
  if master then
    struct.master.supervisor, struct.master.host = master.supervisor or '', master.host or ''
    struct.master.port, struct.master_task = master.port or 0, master.task
  end
  return struct, keep
end

local function container_table(struct, k, names)
  local from, slot, instances = struct.plan.containers[k], struct.slots[k], {}
  for i = 0, from.count - 1 do
    local item = struct.plan.instances[from.first + i]
    instances[i + 1] = { component = names[item.component + 1], task = item.task,
      index = item.index, cpu = item.cpu, ram = tonumber(item.ram_bytes),
      disk = tonumber(item.disk_bytes) }
  end
  local container = { id = from.id, cpu = from.cpu, ram = tonumber(from.ram_bytes),
    disk = tonumber(from.disk_bytes), instances = instances }
  local supervisor = text_of(slot.supervisor)
  if supervisor ~= '' then
    container.supervisor, container.host, container.port = supervisor, text_of(slot.host), slot.port
  end
  return container
end

--- A stored plan as a document.
---@param struct ffi.cdata*
---@return table plan
---@return string[] names of its components in order
function M.from_struct(struct)
  local names, key_groups, containers = {}, {}, {}
  for i = 0, struct.component_count - 1 do
    local component = struct.components[i]
    names[i + 1] = text_of(component.name)
    if component.key_group_count > 0 then
      local owners = {}
      for g = 0, component.key_group_count - 1 do owners[g + 1] = component.key_groups[g] end
      key_groups[names[i + 1]] = owners
    end
  end
  for k = 0, struct.plan.container_count - 1 do
    containers[k + 1] = container_table(struct, k, names)
  end
  local plan = { topology = text_of(struct.topology), version = tonumber(struct.version),
    packing = text_of(struct.packing), containers = containers, key_groups = key_groups }
  if struct.master_task > 0 then
    local slot = struct.master
    plan.master = { supervisor = text_of(slot.supervisor), host = text_of(slot.host),
      port = slot.port, task = struct.master_task }
  end
  return plan, names
end

--- A plan without its key groups and its topology master, as it is shown and packed.
---@param plan table
---@return table
function M.shown(plan)
  local copy = {}
  for key, value in pairs(plan) do copy[key] = value end
  copy.key_groups, copy.master = nil, nil
  return copy
end

return M
