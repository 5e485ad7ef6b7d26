-- The built-in schedulers of the core: a request in normal form in, an assignment out.
--
--   local native = require 'streamlua.scheduling.native'
--   local assignment, err = native.assign(request, 'balanced')
--
-- Requests are those that streamlua.scheduling.document checked; the core checks again what its
-- memory depends on.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'

local C, ffi = abi.C, abi.ffi
local max = math.max

local M = {}

--- Built-in schedulers in the order in which they are told to users.
M.names = { 'balanced', 'even', 'round_robin', 'packed' }

--- Their numbers in the core.
M.schedulers = {
  balanced = C.SL_SCHED_BALANCED, even = C.SL_SCHED_EVEN,
  round_robin = C.SL_SCHED_ROUND_ROBIN, packed = C.SL_SCHED_PACKED,
}

local modes = {
  new = C.SL_SCHED_NEW, keep = C.SL_SCHED_KEEP, reassign = C.SL_SCHED_REASSIGN,
  minimal = C.SL_SCHED_MINIMAL, monitor = C.SL_SCHED_MONITOR,
}

--- Name of the component that is the topology master.
M.MASTER = '__topology_master'

local kinds = { spout = C.SL_SCHED_SPOUT, bolt = C.SL_SCHED_BOLT, system = C.SL_SCHED_SYSTEM }

local function kind_of(component)
  if component.name == M.MASTER then return C.SL_SCHED_MASTER end
  return kinds[component.kind]
end

-- Arrays that grow while the request is read; `anchors` keeps them, and the texts that structs
-- point to, alive.
local function builder()
  local self = { anchors = {} }

  function self.array(ctype, count)
    local items = ffi.new(ctype .. '[?]', max(count, 1))
    self.anchors[#self.anchors + 1] = items
    return items
  end

  -- All lists one after the other in one array, and for each its first index.
  function self.numbers(lists)
    local count = 0
    for _, list in ipairs(lists) do count = count + #list end
    local items = self.array('uint32_t', count)
    local firsts, at = {}, 0
    for i, list in ipairs(lists) do
      firsts[i] = at
      for k = 1, #list do
        items[at] = list[k]
        at = at + 1
      end
    end
    return items, count, firsts
  end

  function self.text(value)
    self.anchors[#self.anchors + 1] = value
    return value
  end

  return self
end

local function map(list, field)
  local result = {}
  for i, item in ipairs(list) do result[i] = field(item) end
  return result
end

local function set_components(native, b, request)
  local index = {}
  for i, component in ipairs(request.components) do index[component.name] = i - 1 end
  local function indexes(names)
    return map(names, function(name) return index[name] end)
  end
  local items = b.array('struct sl_sched_component', #request.components)
  local inputs, input_count, first_input = b.numbers(map(request.components, function(component)
    return indexes(component.inputs)
  end))
  local tasks, task_count, first_task = b.numbers(map(request.components, function(component)
    return component.tasks
  end))
  for i, component in ipairs(request.components) do
    local item = items[i - 1]
    item.name, item.kind = b.text(component.name), kind_of(component)
    item.first_input, item.input_count = first_input[i], #component.inputs
    item.first_task, item.task_count = first_task[i], #component.tasks
  end
  native.components, native.component_count = items, #request.components
  native.inputs, native.input_count = inputs, input_count
  native.tasks, native.task_count = tasks, task_count
  native.on_different_nodes, native.on_different_nodes_count =
    b.numbers({ indexes(request.on_different_nodes) })
  return index
end

local function set_cluster(native, b, supervisors)
  local items = b.array('struct sl_sched_supervisor', #supervisors)
  local ports, port_count, first_port = b.numbers(map(supervisors, function(s) return s.ports end))
  local used, used_count, first_used = b.numbers(map(supervisors, function(s) return s.used end))
  for i, supervisor in ipairs(supervisors) do
    local item = items[i - 1]
    item.id, item.host = b.text(supervisor.id), b.text(supervisor.host)
    item.first_port, item.port_count = first_port[i], #supervisor.ports
    item.first_used, item.used_count = first_used[i], #supervisor.used
    item.cpu, item.ram = supervisor.cpu or -1, supervisor.ram or -1
  end
  native.supervisors, native.supervisor_count = items, #supervisors
  native.ports, native.port_count = ports, port_count
  native.used, native.used_count = used, used_count
end

local function set_user_workers(native, b, request, index)
  local items = b.array('struct sl_sched_user_worker', #request.user_workers)
  local count = 0
  for _, worker in ipairs(request.user_workers) do
    for _ in pairs(worker.components) do count = count + 1 end
  end
  local shares = b.array('struct sl_sched_share', count)
  local at = 0
  for i, worker in ipairs(request.user_workers) do
    local item = items[i - 1]
    item.host, item.port = worker.host and b.text(worker.host), worker.port or -1
    item.cpu, item.ram = worker.cpu or -1, worker.ram or -1
    item.first_share = at
    for _, component in ipairs(request.components) do
      local tasks = worker.components[component.name]
      if tasks then
        shares[at].component, shares[at].count = index[component.name], tasks
        at = at + 1
      end
    end
    item.share_count = at - item.first_share
  end
  native.user_workers, native.user_worker_count = items, #request.user_workers
  native.shares, native.share_count = shares, count
end

local function set_previous(native, b, workers)
  local items = b.array('struct sl_sched_previous', #workers)
  local tasks, count, first = b.numbers(map(workers, function(worker) return worker.tasks end))
  for i, worker in ipairs(workers) do
    local item = items[i - 1]
    item.supervisor, item.host = b.text(worker.supervisor), b.text(worker.host)
    item.port = worker.port
    item.first_task, item.task_count = first[i], #worker.tasks
    item.cpu, item.ram = worker.cpu or -1, worker.ram or -1
  end
  native.previous, native.previous_count = items, #workers
  native.previous_tasks, native.previous_task_count = tasks, count
end

local function set_plan(native, b, containers)
  local items = b.array('struct sl_sched_container', #containers)
  local tasks, count, first = b.numbers(map(containers, function(container)
    return map(container.instances, function(instance) return instance.task end)
  end))
  for i, container in ipairs(containers) do
    local item = items[i - 1]
    item.id = container.id
    item.supervisor = container.supervisor and b.text(container.supervisor)
    item.port = container.port or -1
    item.first_task, item.task_count = first[i], #container.instances
    item.cpu, item.ram = container.cpu or -1, container.ram or -1
  end
  native.containers, native.container_count = items, #containers
  native.container_tasks, native.container_task_count = tasks, count
end

local function set_isolation(native, b, hosts)
  local items = b.array('const char *', #hosts)
  for i, host in ipairs(hosts) do items[i - 1] = b.text(host) end
  native.isolation, native.isolation_count = items, #hosts
end

-- The request as the core reads it, and what must live as long as it does.
local function to_native(request)
  local b = builder()
  local native = ffi.new('struct sl_sched_request')
  native.mode = modes[request.mode]
  native.workers = request.workers or 0
  native.master_alone = request.master_alone == nil and C.SL_SCHED_AUTO
    or request.master_alone and C.SL_SCHED_YES or C.SL_SCHED_NO
  native.reserve_workers = request.reserve_workers
  native.use_old_assignment = request.use_old_assignment and 1 or 0
  native.worker_cpu = request.container_cpu or -1
  native.worker_ram = request.container_ram or -1
  native.has_plan = request.plan and 1 or 0
  local index = set_components(native, b, request)
  set_cluster(native, b, request.cluster.supervisors)
  set_user_workers(native, b, request, index)
  set_isolation(native, b, request.isolation)
  set_previous(native, b, request.previous and request.previous.workers or {})
  set_plan(native, b, request.plan and request.plan.containers or {})
  native.dead_tasks, native.dead_task_count = b.numbers({ request.dead_tasks })
  native.unstopped_tasks, native.unstopped_task_count = b.numbers({ request.unstopped_tasks })
  return native, b.anchors
end

--- A request as the core's arrays: {struct=, anchors=}; both must live while it is used.
---@param request table normal form
---@return table
function M.prepare(request)
  local struct, anchors = to_native(request)
  return { struct = struct, anchors = anchors }
end

local function stated(value)
  if value >= 0 then return value end
end

--- Assigns with a built-in scheduler.
---@param request table normal form of streamlua.scheduling.document
---@param name string of M.names
---@return table? assignment document
---@return streamlua.Error? EINVAL, EUNSATISFIABLE (exit 7) or ECONFLICT (nothing to do, exit 4)
function M.assign(request, name)
  local prepared = M.prepare(request)
  local result = ffi.new('struct sl_sched_result')
  if C.sl_scheduling_assign(prepared.struct, M.schedulers[name], result) ~= 0 then
    return err.last()
  end
  local workers = {}
  for i = 1, result.worker_count do
    local worker = result.workers[i - 1]
    local tasks = {}
    for k = 1, worker.task_count do tasks[k] = result.tasks[worker.first_task + k - 1] end
    workers[i] = {
      supervisor = ffi.string(worker.supervisor), host = ffi.string(worker.host),
      port = worker.port, tasks = tasks, cpu = stated(worker.cpu), ram = stated(worker.ram),
    }
  end
  C.sl_scheduling_result_free(result)
  -- The texts of the result lived in the request until here.
  assert(prepared.anchors)
  return { topology = request.topology, scheduler = name, workers = workers }
end

return M
