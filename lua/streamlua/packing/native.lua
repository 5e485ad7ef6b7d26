-- Requests and plans between Lua tables and the arrays of the C core (packing/packing.abi.h).
--
--   local native = require 'streamlua.packing.native'
--   local plan, warnings = native.pack(request, 'round_robin')     -- normal forms (document.lua)
--   local delta = native.delta(old, new)

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'

local C, ffi = abi.C, abi.ffi

local M = {}

--- Numbers of the built-in packers by name.
M.packers = {}
--- Their names in order.
M.names = {}

for number = C.SL_PACKING_ROUND_ROBIN, C.SL_PACKING_RESOURCE_COMPLIANT_RR do
  local name = ffi.string(C.sl_abi_packing_packer_name(number))
  M.packers[name] = number
  M.names[#M.names + 1] = name
end

local KINDS = { spout = C.SL_PACKING_SPOUT, bolt = C.SL_PACKING_BOLT, system = C.SL_PACKING_SYSTEM }
local UNSET = C.SL_PACKING_UNSET
local STATES = { [0] = 'UNAFFECTED', 'MODIFIED', 'NEW', 'REMOVED' }
local MOVES = { [0] = 'kept', 'moved', 'started', 'stopped' }
local DIMENSIONS = { [0] = 'cpu', 'ram', 'disk', 'instances' }

-- Arrays of a plan; `numbers` is the position of each component by name. The struct borrows the
-- arrays, so all three are returned and must stay alive.
local function plan_arrays(plan, numbers)
  local count = 0
  for _, container in ipairs(plan.containers) do count = count + #container.instances end
  local containers = ffi.new('struct sl_packing_container[?]', #plan.containers)
  local instances = ffi.new('struct sl_packing_instance[?]', count)
  local at = 0
  for k, container in ipairs(plan.containers) do
    local to = containers[k - 1]
    to.id, to.first, to.count = container.id, at, #container.instances
    to.cpu, to.ram_bytes, to.disk_bytes = container.cpu, container.ram, container.disk
    for _, instance in ipairs(container.instances) do
      local slot = instances[at]
      slot.component = numbers[instance.component]
      slot.task, slot.index = instance.task, instance.index
      slot.cpu, slot.ram_bytes, slot.disk_bytes = instance.cpu, instance.ram, instance.disk
      at = at + 1
    end
  end
  local struct = ffi.new('struct sl_packing_plan')
  struct.containers, struct.container_count = containers, #plan.containers
  struct.instances, struct.instance_count = instances, count
  return struct, containers, instances
end

local function instance_table(from, names)
  return {
    component = names[from.component], task = from.task, index = from.index, cpu = from.cpu,
    ram = tonumber(from.ram_bytes), disk = tonumber(from.disk_bytes),
  }
end

local function is_same(instance, from, names)
  return instance.task == from.task and instance.index == from.index
    and instance.component == names[from.component] and instance.cpu == from.cpu
    and instance.ram == tonumber(from.ram_bytes) and instance.disk == tonumber(from.disk_bytes)
end

-- A container as a table. Instances that `old`, a container in normal form, has at the same place are
-- shared with it: normal forms do not change, and most of a plan stays when a little of it changes.
local function container_table(plan, from, names, old)
  local instances = {}
  local there = old and old.instances
  for i = 0, from.count - 1 do
    local instance = there and there[i + 1]
    local source = plan.instances[from.first + i]
    instances[i + 1] = instance and is_same(instance, source, names) and instance
      or instance_table(source, names)
  end
  return {
    id = from.id, cpu = from.cpu, ram = tonumber(from.ram_bytes), disk = tonumber(from.disk_bytes),
    supervisor = old and old.supervisor, host = old and old.host, port = old and old.port,
    instances = instances,
  }
end

-- The containers of a plan. Slots that the current plan's containers run on stay with them.
local function plan_table(plan, names, current)
  local by_id = {}
  for _, container in ipairs(current and current.containers or {}) do by_id[container.id] = container end
  local containers = {}
  for k = 0, plan.container_count - 1 do
    local from = plan.containers[k]
    containers[k + 1] = container_table(plan, from, names, by_id[from.id])
  end
  return containers
end

local function component_arrays(request)
  local list = request.components
  local components = ffi.new('struct sl_packing_component[?]', #list)
  local numbers, names = {}, {}
  for i, component in ipairs(list) do
    local to = components[i - 1]
    to.name, to.kind, to.parallelism = component.name, KINDS[component.kind], component.parallelism
    to.cpu = component.cpu or UNSET
    to.ram_bytes, to.disk_bytes = component.ram or UNSET, component.disk or UNSET
    numbers[component.name], names[i - 1] = i - 1, component.name
  end
  return components, numbers, names
end

local function fill_config(to, config)
  to.container_cpu = config.container_cpu or UNSET
  to.container_ram_bytes = config.container_ram or UNSET
  to.container_disk_bytes = config.container_disk or UNSET
  to.cpu_padding = config.container_cpu_padding or UNSET
  to.ram_padding_bytes = config.container_ram_padding or UNSET
  to.padding_percentage = config.container_padding_percentage or UNSET
  to.containers = config.containers or UNSET
  to.max_instances = config.container_max_instances or UNSET
  to.sorting = config.packing_sorting == 'cpu_first' and C.SL_PACKING_CPU_FIRST
    or C.SL_PACKING_RAM_FIRST
end

--- A request as the core takes it. The struct only points to its arrays: keep the whole table as
--- long as it is used.
---@param request table normal form
---@return table prepared {struct=, names= by number, ...}
function M.prepare(request)
  local components, numbers, names = component_arrays(request)
  local struct = ffi.new('struct sl_packing_request')
  struct.components, struct.component_count = components, #request.components
  struct.containers = request.containers or UNSET
  struct.shrink = request.shrink == 'tasks' and C.SL_PACKING_SHRINK_TASKS
    or C.SL_PACKING_SHRINK_CONTAINERS
  fill_config(struct.config, request.config)
  local prepared = { struct = struct, names = names, components = components }
  if request.current then
    local changes = ffi.new('int32_t[?]', #request.components)
    for component, change in pairs(request.changes or {}) do
      changes[numbers[component]] = change
    end
    prepared.changes, prepared.current = changes, { plan_arrays(request.current, numbers) }
    struct.current, struct.changes = prepared.current[1], changes
  end
  return prepared
end

--- Calls a packer of the core. The request's `current` decides between pack and repack.
---@param request table normal form
---@param name string a built-in packer
---@return table? plan
---@return table|streamlua.Error warnings list of {container=, resource=}, or the error
function M.pack(request, name)
  local prepared = M.prepare(request)
  local out = ffi.new('struct sl_packing_plan *[1]')
  local rc = C.sl_abi_packing_pack(M.packers[name], prepared.struct, out)
  if rc ~= 0 then return err.last() end
  local packed = ffi.gc(out[0], C.sl_abi_packing_plan_free)
  local plan = {
    topology = request.topology,
    version = request.current and request.current.version + 1 or 1,
    packing = name,
    containers = plan_table(packed, prepared.names, request.current),
  }
  local warnings = {}
  for i = 0, packed.warning_count - 1 do
    warnings[i + 1] = { container = packed.warnings[i].container,
      resource = DIMENSIONS[packed.warnings[i].dimension] }
  end
  C.sl_abi_packing_plan_free(ffi.gc(packed, nil))
  return plan, warnings
end

local function number_components(numbers, names, plan)
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do
      if not numbers[instance.component] then
        numbers[instance.component] = #names
        names[#names + 1] = instance.component
      end
    end
  end
end

-- What a container gains and loses: entries of one side that the other does not have just so.
local function missing(from, to)
  local there, list = {}, {}
  for _, instance in ipairs(to and to.instances or {}) do there[instance.task] = instance end
  for _, instance in ipairs(from and from.instances or {}) do
    local other = there[instance.task]
    local same = other
    for _, key in ipairs({ 'component', 'index', 'cpu', 'ram', 'disk' }) do
      same = same and other[key] == instance[key]
    end
    if not same then list[#list + 1] = instance end
  end
  return list
end

--- How one plan becomes another.
---@param old table plan in normal form
---@param new table
---@return table? delta {containers = list of {id, state, old, new, added, removed}, instances = list
---  of {component, task, state, from, to}, kept, moved, started, stopped}
---@return streamlua.Error?
function M.delta(old, new)
  local numbers, names = {}, {}
  -- names[1] has number 0: the length is the next number.
  number_components(numbers, names, old)
  number_components(numbers, names, new)
  local before = { plan_arrays(old, numbers) }
  local after = { plan_arrays(new, numbers) }
  local out = ffi.new('struct sl_packing_delta *[1]')
  if C.sl_abi_packing_delta_new(before[1], after[1], #names, out) ~= 0 then return err.last() end
  local from = ffi.gc(out[0], C.sl_abi_packing_delta_free)
  local delta = { containers = {}, instances = {}, kept = from.kept, moved = from.moved,
    started = from.started, stopped = from.stopped }
  for k = 0, from.container_count - 1 do
    local entry = from.containers[k]
    local a, b = old.containers[entry.old_position + 1], new.containers[entry.new_position + 1]
    delta.containers[k + 1] = { id = entry.id, state = STATES[entry.state], old = a, new = b,
      added = missing(b, a), removed = missing(a, b) }
  end
  for i = 0, from.instance_count - 1 do
    local entry = from.instances[i]
    delta.instances[i + 1] = {
      component = names[entry.component + 1], task = entry.task, state = MOVES[entry.state],
      from = entry.old_container >= 0 and entry.old_container or nil,
      to = entry.new_container >= 0 and entry.new_container or nil,
    }
  end
  C.sl_abi_packing_delta_free(ffi.gc(from, nil))
  return delta
end

return M
