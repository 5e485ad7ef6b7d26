-- What an assignment owes its request, whoever made it: every task once, slots that exist and are
-- free, isolation, pins, different nodes, a lone master, cpu and ram, and in mode monitor that what
-- lives stays.
--
--   promises.check(faults, request, workers, owner)   -- owner: worker by task

local M = {}

local MASTER = '__topology_master'

local function slot_text(worker) return ('%s:%d'):format(worker.supervisor, worker.port) end

local function index(list, key)
  local map = {}
  for _, item in ipairs(list) do map[item[key]] = item end
  return map
end

local function as_set(list)
  local map = {}
  for _, item in ipairs(list) do map[item] = true end
  return map
end

-- Slots of previous workers that stay whatever the cluster says: they hold tasks that run on.
local function survivors(request)
  local slots, fixed = {}, {}
  local is_monitor = request.mode == 'monitor'
  if request.mode == 'new' or not request.previous then return slots, fixed end
  local exists, dead, unstopped = {}, as_set(request.dead_tasks), as_set(request.unstopped_tasks)
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do exists[task] = true end
  end
  for _, worker in ipairs(request.previous.workers) do
    local is_dead = false
    for _, task in ipairs(worker.tasks) do is_dead = is_dead or (exists[task] and dead[task]) end
    for _, task in ipairs(worker.tasks) do
      if exists[task] and not is_dead and (is_monitor or unstopped[task]) then
        slots[slot_text(worker)] = worker
        fixed[task] = worker
      end
    end
  end
  return slots, fixed
end

local function check_tasks(faults, request, owner)
  local exists = {}
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do
      exists[task] = true
      if not owner[task] then
        faults:add('workers', nil, ("leave out task %d of '%s'"):format(task, component.name))
      end
    end
  end
  local strangers = {}
  for task in pairs(owner) do
    if not exists[task] then strangers[#strangers + 1] = task end
  end
  table.sort(strangers)
  for _, task in ipairs(strangers) do
    faults:add('workers', nil, ('have task %d, which no component has'):format(task))
  end
end

local function check_slot(faults, request, worker, at, supervisor)
  local arguments = { at }
  if worker.host and worker.host ~= supervisor.host then
    faults:add('workers[%d].host', arguments, ("is '%s', but supervisor '%s' is on '%s'"):format(
      worker.host, supervisor.id, supervisor.host))
  end
  worker.host = supervisor.host
  if not as_set(supervisor.ports)[worker.port] then
    faults:add('workers[%d].port', arguments, ("is %d, which supervisor '%s' does not have"):format(
      worker.port, supervisor.id))
  elseif as_set(supervisor.used)[worker.port] then
    faults:add('workers[%d].port', arguments, ("is %d, which is taken on supervisor '%s'"):format(
      worker.port, supervisor.id))
  end
  if #request.isolation > 0 and not as_set(request.isolation)[supervisor.host] then
    faults:add('workers[%d]', arguments, ("is on host '%s', which isolation leaves out"):format(
      supervisor.host))
  end
end

local function check_slots(faults, request, workers, kept)
  local supervisors = index(request.cluster.supervisors, 'id')
  for at, worker in ipairs(workers) do
    local supervisor = supervisors[worker.supervisor]
    local survivor = kept[slot_text(worker)]
    if survivor then
      worker.host = worker.host or survivor.host
    elseif not supervisor then
      faults:add('workers[%d].supervisor', { at }, ("is '%s', which the cluster does not have")
        :format(worker.supervisor))
    else
      check_slot(faults, request, worker, at, supervisor)
    end
  end
end

local function check_fixed(faults, fixed, owner)
  local tasks = {}
  for task in pairs(fixed) do tasks[#tasks + 1] = task end
  table.sort(tasks)
  for _, task in ipairs(tasks) do
    local now, before = owner[task], fixed[task]
    if now and slot_text(now) ~= slot_text(before) then
      faults:add('workers', nil, ('move task %d from %s to %s, but it runs and must stay'):format(
        task, slot_text(before), slot_text(now)))
    end
  end
end

local function check_spread(faults, request, owner)
  local components = index(request.components, 'name')
  for _, name in ipairs(request.on_different_nodes) do
    local seen = {}
    for _, task in ipairs(components[name].tasks) do
      local worker = owner[task]
      if worker and seen[worker.supervisor] then
        faults:add('workers', nil, ("put tasks %d and %d of '%s' on supervisor '%s', they must run "
          .. 'on different nodes'):format(seen[worker.supervisor], task, name, worker.supervisor))
      elseif worker then
        seen[worker.supervisor] = task
      end
    end
  end
end

-- Cpu and ram of a worker: what it says, else the topology's default.
local function check_capacity(faults, request, workers)
  for _, resource in ipairs({ 'cpu', 'ram' }) do
    local sum = {}
    for _, worker in ipairs(workers) do
      worker[resource] = worker[resource] or request['container_' .. resource]
      sum[worker.supervisor] = (sum[worker.supervisor] or 0) + (worker[resource] or 0)
    end
    for _, supervisor in ipairs(request.cluster.supervisors) do
      local have, need = supervisor[resource], sum[supervisor.id]
      if have and need and need > have * (1 + 1e-9) + 1e-9 then
        faults:add('workers', nil, ("need %g %s on supervisor '%s', it has %g"):format(need, resource,
          supervisor.id, have))
      end
    end
  end
end

local function tasks_without_master(request)
  local count, has_master = 0, false
  for _, component in ipairs(request.components) do
    if component.name == MASTER then
      has_master = true
    else
      count = count + #component.tasks
    end
  end
  return count, has_master
end

local function check_count(faults, request, workers, kept)
  local tasks, has_master = tasks_without_master(request)
  local limit = math.min(request.workers or tasks, tasks)
  if has_master and request.master_alone ~= false then limit = limit + 1 end
  for _ in pairs(kept) do limit = limit + 1 end
  if request.workers and #workers > math.max(limit, 1) then
    faults:add('workers', nil, ('are %d, asked for are %d'):format(#workers, request.workers))
  end
  if request.reserve_workers > 0 then
    local free = 0
    for _, supervisor in ipairs(request.cluster.supervisors) do
      local used = as_set(supervisor.used)
      for _, worker in ipairs(workers) do
        if worker.supervisor == supervisor.id then used[worker.port] = true end
      end
      for _, port in ipairs(supervisor.ports) do free = free + (used[port] and 0 or 1) end
    end
    if free < request.reserve_workers then
      faults:add('workers', nil, ('leave %d slots free, reserved are %d'):format(free,
        request.reserve_workers))
    end
  end
end

local function check_master(faults, request, owner, fixed)
  local master = index(request.components, 'name')[MASTER]
  if request.master_alone ~= true or (master and fixed[master.tasks[1]]) then return end
  local worker = master and owner[master.tasks[1]]
  if worker and #worker.tasks > 1 and tasks_without_master(request) > 0 then
    faults:add('workers', nil, ('put the topology master (task %d) together with other tasks, it is '
      .. 'to be alone'):format(master.tasks[1]))
  end
end

-- How many tasks of each component the definitions get, in their order.
local function wanted_of(request)
  local left, wanted = {}, {}
  for _, component in ipairs(request.components) do left[component.name] = #component.tasks end
  for i, user in ipairs(request.user_workers) do
    wanted[i] = {}
    for name, count in pairs(user.components) do
      local n = math.min(count, left[name])
      left[name] = left[name] - n
      if n > 0 then wanted[i][name] = n end
    end
  end
  return wanted
end

local function fits(user, wanted, worker, counts)
  if user.host and user.host ~= worker.host or user.port and user.port ~= worker.port then
    return false
  end
  for name, n in pairs(wanted) do
    if (counts[worker][name] or 0) < n then return false end
  end
  return true
end

-- Each definition needs a worker of its own: a matching by augmenting paths.
local function check_pins(faults, request, workers)
  if #request.user_workers == 0 or request.mode == 'monitor' then return end
  local component_of, counts = {}, {}
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do component_of[task] = component.name end
  end
  for _, worker in ipairs(workers) do
    local count = {}
    for _, task in ipairs(worker.tasks) do
      local name = component_of[task]
      if name then count[name] = (count[name] or 0) + 1 end
    end
    counts[worker] = count
  end
  local wanted, user_of = wanted_of(request), {}
  local function place(i, tried)
    for _, worker in ipairs(workers) do
      if not tried[worker] and fits(request.user_workers[i], wanted[i], worker, counts) then
        tried[worker] = true
        if not user_of[worker] or place(user_of[worker], tried) then
          user_of[worker] = i
          return true
        end
      end
    end
    return false
  end
  for i, user in ipairs(request.user_workers) do
    if next(wanted[i]) and not place(i, {}) then
      faults:add('workers', nil, ('do not honour user_workers[%d] (%s%s)'):format(i,
        user.host and 'host ' .. user.host or 'any host', user.port and ', port ' .. user.port or ''))
    end
  end
end

--- Adds a fault for everything the workers break.
---@param faults table of streamlua.packing.check
---@param request table normal form
---@param workers table[]
---@param owner table<integer, table> worker by task
function M.check(faults, request, workers, owner)
  local kept, fixed = survivors(request)
  check_tasks(faults, request, owner)
  check_slots(faults, request, workers, kept)
  check_fixed(faults, fixed, owner)
  check_spread(faults, request, owner)
  check_capacity(faults, request, workers)
  check_count(faults, request, workers, kept)
  check_master(faults, request, owner, fixed)
  check_pins(faults, request, workers)
end

return M
