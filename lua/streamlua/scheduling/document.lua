-- Requests, assignments and clusters as documents: what they must look like, and their normal form.
--
--   local document = require 'streamlua.scheduling.document'
--   local request, err = document.request(decoded)        -- null as nil, lists filled in
--   local assignment, err = document.assignment(decoded, { request = request })
--   local cluster, err = document.cluster({ supervisors = 3, slots = 4 })
--
-- Every fault of a document is found and told, not just the first. A normal form is a new table;
-- what was given is left as it is.

local check = require 'streamlua.packing.check'
local plans = require 'streamlua.packing.document'
local suggest = require 'streamlua.cli.suggest'
local target = require 'streamlua.cli.target'

local huge = math.huge
local is_list, is_whole, shown, value_of = check.is_list, check.is_whole, check.shown, check.value

local M = {}

--- The highest task id, the most slots of a cluster in its uniform form.
M.MAX_ID = 2000000000
M.MAX_SLOTS = 1000000

--- Modes of assigning.
M.MODES = { 'new', 'keep', 'reassign', 'minimal', 'monitor' }

--- Name of the component that is the topology master.
M.MASTER = '__topology_master'

local function set(names)
  local map = {}
  for name in names:gmatch('%S+') do map[name] = true end
  return map
end

local REQUEST_KEYS = set [[topology mode workers master_alone reserve_workers components isolation
  user_workers on_different_nodes use_old_assignment cluster previous dead_tasks unstopped_tasks plan
  container_cpu container_ram rates]]
local COMPONENT_KEYS = set 'name kind inputs tasks cpu ram'
local USER_WORKER_KEYS = set 'host port cpu ram components'
local CLUSTER_KEYS = set 'supervisors slots'
local SUPERVISOR_KEYS = set 'id host ports used cpu ram rack load'
local ASSIGNMENT_KEYS = set 'topology scheduler workers components'
local WORKER_KEYS = set 'supervisor host port tasks cpu ram'
local RATE_KEYS = set 'from to rate'
local IS_MODE = set(table.concat(M.MODES, ' '))

---------------------------------------------------------------------------------------------------
-- parts

local function text(faults, value, place, arguments, what)
  if type(value) ~= 'string' or value == '' or #value > 255 or value:find('[%z%c]') then
    faults:add(place, arguments, ('must be %s, got %s'):format(what, shown(value)))
    return tostring(value)
  end
  return value
end

-- A number of at least 0 or nil. NaN and infinities are no amounts.
local function amount(faults, value, place, arguments, what)
  value = value_of(value)
  if value == nil then return nil end
  if type(value) ~= 'number' or not (value >= 0 and value < huge) then
    faults:add(place, arguments, ('must be %s of at least 0, got %s'):format(what, shown(value)))
    return nil
  end
  return value
end

-- A list, or an empty one when it is absent; what is no list is a fault.
local function list_of(faults, value, place, arguments, what)
  value = value_of(value)
  if value == nil then return {} end
  if not is_list(value) then
    faults:add(place, arguments, ('must be a list of %s, got %s'):format(what, shown(value)))
    return {}
  end
  return value
end

local function whole_list(faults, value, place, arguments, what, least, most)
  local result = {}
  for i, item in ipairs(list_of(faults, value, place, arguments, what)) do
    if is_whole(item, least, most) then
      result[#result + 1] = item
    else
      faults:add(place .. '[' .. i .. ']', arguments, ('must be a whole number within %d..%d, got %s')
        :format(least, most, shown(item)))
    end
  end
  return result
end

local function text_list(faults, value, place, arguments, what)
  local result = {}
  for i, item in ipairs(list_of(faults, value, place, arguments, what .. 's')) do
    result[i] = text(faults, item, place .. '[' .. i .. ']', arguments, what)
  end
  return result
end

local function flag(faults, value, place)
  value = value_of(value)
  if value ~= nil and type(value) ~= 'boolean' then
    faults:add(place, nil, 'must be true or false, got ' .. shown(value))
    return nil
  end
  return value
end

---------------------------------------------------------------------------------------------------
-- clusters

local function supervisor(faults, given, at, prefix, seen)
  local place, arguments = prefix .. 'supervisors[%d]', { at }
  if type(given) ~= 'table' then
    faults:add(place, arguments, 'must be a table, got ' .. shown(given))
    return nil
  end
  faults:unknown_keys(given, SUPERVISOR_KEYS, place, arguments)
  local result = {
    id = text(faults, given.id, place .. '.id', arguments, 'a text'),
    host = text(faults, value_of(given.host) or given.id, place .. '.host', arguments,
      'a host name'),
    ports = whole_list(faults, given.ports, place .. '.ports', arguments, 'ports', 1, 65535),
    used = whole_list(faults, given.used, place .. '.used', arguments, 'ports', 1, 65535),
    cpu = amount(faults, given.cpu, place .. '.cpu', arguments, 'a number of cores'),
    ram = faults:size(given.ram, place .. '.ram', arguments),
    load = amount(faults, given.load, place .. '.load', arguments, 'a load'),
  }
  if value_of(given.rack) ~= nil then
    result.rack = text(faults, given.rack, place .. '.rack', arguments, 'the name of a rack')
  end
  if seen[result.id] then
    faults:add(place .. '.id', arguments, ("is '%s', as supervisors[%d] is"):format(result.id,
      seen[result.id]))
  end
  seen[result.id] = seen[result.id] or at
  local ports = {}
  for _, port in ipairs(result.ports) do
    if ports[port] then
      faults:add(place .. '.ports', arguments, ("of '%s' has %d twice"):format(result.id, port))
    end
    ports[port] = true
  end
  return result
end

local function uniform(faults, given, prefix)
  local n, slots = given.supervisors, value_of(given.slots)
  if not is_whole(n, 0, M.MAX_SLOTS) then
    faults:add(prefix .. 'supervisors', nil, 'must be a list or a whole number, got ' .. shown(n))
    return {}
  elseif not is_whole(slots, 0, 50000) or n * slots > M.MAX_SLOTS then
    faults:add(prefix .. 'slots', nil, ('must be a whole number, at most %d slots in all, got %s')
      :format(M.MAX_SLOTS, shown(slots)))
    return {}
  end
  local supervisors = {}
  for i = 1, n do
    local ports = {}
    for k = 1, slots do ports[k] = 6799 + k end
    supervisors[i] = { id = 's' .. i, host = 'h' .. i, ports = ports, used = {} }
  end
  return supervisors
end

local function cluster(faults, given, prefix)
  given = value_of(given)
  if type(given) ~= 'table' then
    faults:add(prefix == '' and 'the cluster' or prefix:sub(1, -2), nil,
      'must be a table with supervisors, got ' .. shown(given))
    return { supervisors = {} }
  end
  faults:unknown_keys(given, CLUSTER_KEYS, prefix == '' and 'the cluster' or prefix:sub(1, -2))
  if type(given.supervisors) == 'number' then
    return { supervisors = uniform(faults, given, prefix) }
  elseif not is_list(given.supervisors) then
    faults:add(prefix .. 'supervisors', nil, 'must be a list or a whole number, got '
      .. shown(given.supervisors))
    return { supervisors = {} }
  elseif value_of(given.slots) ~= nil then
    faults:add(prefix .. 'slots', nil, 'goes with a number of supervisors, not with a list')
  end
  local supervisors, seen = {}, {}
  for at, item in ipairs(given.supervisors) do
    supervisors[#supervisors + 1] = supervisor(faults, item, at, prefix, seen)
  end
  return { supervisors = supervisors }
end

--- Checks a cluster, in full or as { supervisors = 3, slots = 4 }, and returns its normal form.
---@param given any
---@return table? cluster
---@return streamlua.Error?
function M.cluster(given)
  local faults = check.new()
  return faults:result('cluster', cluster(faults, given, ''))
end

---------------------------------------------------------------------------------------------------
-- requests

local function component(faults, given, at, seen)
  local arguments = { at }
  local is_table, kind = faults:component(given, COMPONENT_KEYS, at, seen)
  if not is_table then return nil end
  local name = type(given.name) == 'string' and given.name or '?'
  local tasks = whole_list(faults, given.tasks, 'components[%d].tasks', arguments, 'task ids', 1,
    M.MAX_ID)
  if value_of(given.tasks) == nil then
    faults:add('components[%d].tasks', arguments, 'must be a list of task ids, got null')
  elseif #tasks == 0 and kind ~= 'system' then
    faults:add('components[%d].tasks', arguments, ("of '%s' must have at least one task"):format(
      name))
  end
  if name == M.MASTER and #tasks ~= 1 then
    faults:add('components[%d].tasks', arguments, ("of '%s' must be one task, got %d"):format(name,
      #tasks))
  end
  return {
    name = name, kind = kind, tasks = tasks,
    inputs = text_list(faults, given.inputs, 'components[%d].inputs', arguments, 'component name'),
    cpu = amount(faults, given.cpu, 'components[%d].cpu', arguments, 'a number of cores'),
    ram = faults:size(given.ram, 'components[%d].ram', arguments),
  }
end

local function names_of(components)
  local names = {}
  for i, item in ipairs(components) do names[i] = item.name end
  return names
end

local function expect_component(faults, name, known, names, place, arguments)
  if not known[name] then
    local hint = suggest.hint(name, names)
    faults:add(place, arguments, ('names the unknown component %s%s'):format(shown(name),
      hint and ' (' .. hint .. ')' or ''))
  end
end

local function components(faults, given)
  if not faults:has_components(given) then return {}, {} end
  local list, seen, owner = {}, {}, {}
  for at, item in ipairs(given) do list[#list + 1] = component(faults, item, at, seen) end
  local names = names_of(list)
  for at, item in ipairs(list) do
    local inputs, has = {}, {}
    for _, input in ipairs(item.inputs) do
      expect_component(faults, input, seen, names, 'components[%d].inputs', { at })
      -- A component that reads two streams of another is named once.
      if not has[input] then inputs[#inputs + 1] = input end
      has[input] = true
    end
    item.inputs = inputs
    for _, task in ipairs(item.tasks) do
      if owner[task] then
        faults:add('components[%d].tasks', { at }, ("has task %d, which '%s' has already"):format(
          task, owner[task]))
      end
      owner[task] = owner[task] or item.name
    end
  end
  return list, seen, owner
end

local function user_worker(faults, given, at, known, names)
  local place, arguments = 'user_workers[%d]', { at }
  if type(given) ~= 'table' then
    faults:add(place, arguments, 'must be a table, got ' .. shown(given))
    return nil
  end
  faults:unknown_keys(given, USER_WORKER_KEYS, place, arguments)
  local result = {
    cpu = amount(faults, given.cpu, 'user_workers[%d].cpu', arguments, 'a number of cores'),
    ram = faults:size(given.ram, 'user_workers[%d].ram', arguments),
    components = {},
  }
  if value_of(given.host) ~= nil then
    result.host = text(faults, given.host, 'user_workers[%d].host', arguments, 'a host name')
  end
  if value_of(given.port) ~= nil then
    if is_whole(given.port, 1, 65535) then
      result.port = given.port
    else
      faults:add('user_workers[%d].port', arguments, 'must be a port within 1..65535, got '
        .. shown(given.port))
    end
  end
  local shares = value_of(given.components)
  if type(shares) ~= 'table' then
    faults:add('user_workers[%d].components', arguments, 'must be a map of tasks by component, got '
      .. shown(shares))
    shares = {}
  end
  local keys = {}
  for name in next, shares do keys[#keys + 1] = name end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(keys) do
    expect_component(faults, name, known, names, 'user_workers[%d].components', arguments)
    if not is_whole(shares[name], 1, M.MAX_ID) then
      faults:add('user_workers[%d].components', arguments, ('has %s tasks of %s, it must be a whole '
        .. 'number of at least 1'):format(shown(shares[name]), shown(name)))
    else
      result.components[name] = shares[name]
    end
  end
  return result
end

local function rates(faults, given, known, names)
  if value_of(given) == nil then return nil end
  local list = {}
  for at, item in ipairs(list_of(faults, given, 'rates', nil, 'rates')) do
    local arguments = { at }
    if type(item) ~= 'table' then
      faults:add('rates[%d]', arguments, 'must be a table, got ' .. shown(item))
    else
      faults:unknown_keys(item, RATE_KEYS, 'rates[%d]', arguments)
      for _, key in ipairs({ 'from', 'to' }) do
        expect_component(faults, item[key], known, names, 'rates[%d].' .. key, arguments)
      end
      list[#list + 1] = { from = item.from, to = item.to,
        rate = amount(faults, item.rate, 'rates[%d].rate', arguments, 'a rate') or 0 }
    end
  end
  return list
end

-- Ids that somebody has: a component now, or a worker of the previous assignment.
local function known_tasks(faults, given, place, owner, previous)
  local tasks = whole_list(faults, given, place, nil, 'task ids', 1, M.MAX_ID)
  if #tasks == 0 then return tasks end
  local before = {}
  for _, worker in ipairs(previous and previous.workers or {}) do
    for _, task in ipairs(worker.tasks) do before[task] = true end
  end
  for _, task in ipairs(tasks) do
    if not owner[task] and not before[task] then
      faults:add(place, nil, ('has task %d, which no component has'):format(task))
    end
  end
  return tasks
end

local function append(faults, failure, place)
  for _, fault in ipairs(failure and failure.faults or {}) do faults:add('', nil, place .. fault) end
end

local function request_previous(faults, given)
  given = value_of(given)
  if given == nil then return nil end
  local previous, failure = M.assignment(given, { what = false })
  append(faults, failure, 'previous: ')
  return previous or { workers = {} }
end

local function request_plan(faults, given)
  given = value_of(given)
  if given == nil then return nil end
  local plan, failure = plans.plan(given, { what = false })
  append(faults, failure, 'plan: ')
  return plan
end

local function count_of(faults, value, place, least)
  value = value_of(value)
  if value == nil then return nil end
  if not is_whole(value, least, M.MAX_ID) then
    faults:add(place, nil, ('must be a whole number of at least %d, got %s'):format(least,
      shown(value)))
    return nil
  end
  return value
end

local function mode_of(faults, given, previous)
  local mode = value_of(given)
  if mode == nil then return 'new' end
  if type(mode) ~= 'string' or not IS_MODE[mode] then
    faults:add('mode', nil, ('must be one of %s, got %s'):format(table.concat(M.MODES, ', '),
      shown(mode)))
    return 'new'
  elseif mode ~= 'new' and not previous then
    faults:add('previous', nil, ("must be given in mode '%s'"):format(mode))
  end
  return mode
end

--- Checks a request and returns its normal form: no nulls, all lists there, sizes in bytes.
---@param given any
---@return table? request
---@return streamlua.Error? EINVAL with `faults`, all of them
function M.request(given)
  local faults = check.new()
  if type(given) ~= 'table' then
    faults:add('it', nil, 'must be a table, got ' .. shown(given))
    return faults:result('request')
  end
  faults:unknown_keys(given, REQUEST_KEYS, 'it')
  local topology = given.topology
  local fault = type(topology) ~= 'string' and 'it must be a name'
    or target.name_fault(topology)
  if fault then faults:add('topology', nil, ('is %s: %s'):format(shown(topology), fault)) end
  local list, known, owner = components(faults, value_of(given.components))
  local names = names_of(list)
  local previous = request_previous(faults, given.previous)
  local request = {
    topology = topology,
    mode = mode_of(faults, given.mode, previous),
    workers = count_of(faults, given.workers, 'workers', 1),
    master_alone = flag(faults, given.master_alone, 'master_alone'),
    reserve_workers = count_of(faults, given.reserve_workers, 'reserve_workers', 0) or 0,
    components = list,
    isolation = text_list(faults, given.isolation, 'isolation', nil, 'host name'),
    user_workers = {},
    on_different_nodes = text_list(faults, given.on_different_nodes, 'on_different_nodes', nil,
      'component name'),
    use_old_assignment = flag(faults, given.use_old_assignment, 'use_old_assignment') or false,
    cluster = cluster(faults, given.cluster, 'cluster.'),
    previous = previous,
    dead_tasks = known_tasks(faults, given.dead_tasks, 'dead_tasks', owner or {}, previous),
    unstopped_tasks = known_tasks(faults, given.unstopped_tasks, 'unstopped_tasks', owner or {},
      previous),
    plan = request_plan(faults, given.plan),
    container_cpu = amount(faults, given.container_cpu, 'container_cpu', nil, 'a number of cores'),
    container_ram = faults:size(given.container_ram, 'container_ram'),
    rates = rates(faults, given.rates, known, names),
  }
  for at, item in ipairs(list_of(faults, given.user_workers, 'user_workers', nil, 'workers')) do
    request.user_workers[#request.user_workers + 1] = user_worker(faults, item, at, known, names)
  end
  for _, name in ipairs(request.on_different_nodes) do
    expect_component(faults, name, known, names, 'on_different_nodes')
  end
  return faults:result('request', request)
end

---------------------------------------------------------------------------------------------------
-- assignments

local function slot_text(worker) return ('%s:%s'):format(worker.supervisor, worker.port) end
M.slot_text = slot_text

local function worker(faults, given, at)
  local place, arguments = 'workers[%d]', { at }
  if type(given) ~= 'table' then
    faults:add(place, arguments, 'must be a table, got ' .. shown(given))
    return nil
  end
  faults:unknown_keys(given, WORKER_KEYS, place, arguments)
  local port = value_of(given.port)
  if not is_whole(port, 1, 65535) then
    faults:add('workers[%d].port', arguments, 'must be a port within 1..65535, got ' .. shown(port))
    port = 0
  end
  if value_of(given.tasks) == nil then
    faults:add('workers[%d].tasks', arguments, 'must be a list of task ids, got null')
  end
  local tasks = whole_list(faults, given.tasks, 'workers[%d].tasks', arguments, 'task ids', 1,
    M.MAX_ID)
  table.sort(tasks)
  local result = {
    supervisor = text(faults, given.supervisor, 'workers[%d].supervisor', arguments,
      'the id of a supervisor'),
    port = port, tasks = tasks,
    cpu = amount(faults, given.cpu, 'workers[%d].cpu', arguments, 'a number of cores'),
    ram = faults:size(given.ram, 'workers[%d].ram', arguments),
  }
  if value_of(given.host) ~= nil then
    result.host = text(faults, given.host, 'workers[%d].host', arguments, 'a host name')
  end
  return result
end

local function by_slot(a, b)
  if a.supervisor ~= b.supervisor then return a.supervisor < b.supervisor end
  return a.port < b.port
end

-- Slots and tasks that occur twice. `slots` and `owner` are filled.
local function check_doubles(faults, workers, slots, owner)
  for at, item in ipairs(workers) do
    local slot = slot_text(item)
    if slots[slot] then
      faults:add('workers[%d]', { at }, ('is on slot %s, as workers[%d] is'):format(slot,
        slots[slot]))
    end
    slots[slot] = slots[slot] or at
    if #item.tasks == 0 then faults:add('workers[%d]', { at }, 'has no tasks') end
    for _, task in ipairs(item.tasks) do
      if owner[task] then
        faults:add('workers[%d]', { at }, ('has task %d, which %s has already'):format(task,
          slot_text(owner[task])))
      end
      owner[task] = owner[task] or item
    end
  end
end

local function assignment_components(faults, given)
  given = value_of(given)
  if given == nil then return nil end
  local list = {}
  for at, item in ipairs(list_of(faults, given, 'components', nil, 'components')) do
    if type(item) ~= 'table' or type(item.name) ~= 'string' then
      faults:add('components[%d]', { at }, 'must have a name and tasks')
    else
      list[#list + 1] = { name = item.name, tasks = whole_list(faults, item.tasks,
        'components[%d].tasks', { at }, 'task ids', 1, M.MAX_ID) }
    end
  end
  return list
end

--- Checks an assignment and returns its normal form: workers by (supervisor, port), tasks ascending.
--- options: `request` (normal form) to check it against, `scheduler` whose name it gets when it has
--- none, `what` the document is called in the error (false: nothing).
---@param given any
---@param options table?
---@return table? assignment
---@return streamlua.Error? EINVAL with `faults`, all of them
function M.assignment(given, options)
  options = options or {}
  local faults = check.new()
  local what = options.what
  if what == nil then what = 'assignment' end
  what = what or nil
  if type(given) ~= 'table' then
    faults:add('it', nil, 'must be a table, got ' .. shown(given))
    return faults:result(what)
  end
  faults:unknown_keys(given, ASSIGNMENT_KEYS, 'it')
  local request = options.request
  local topology = value_of(given.topology) or (request and request.topology)
  if type(topology) ~= 'string' then
    faults:add('topology', nil, 'must be a name, got ' .. shown(topology))
  elseif request and topology ~= request.topology then
    faults:add('topology', nil, ("is %s, the request is for '%s'"):format(shown(topology),
      request.topology))
  end
  local scheduler = value_of(given.scheduler)
  if scheduler == nil then scheduler = options.scheduler or '?' end
  local workers, before = {}, faults.count
  if not is_list(given.workers) then
    faults:add('workers', nil, 'must be a list of workers, got ' .. shown(given.workers))
  else
    for at, item in ipairs(given.workers) do
      workers[#workers + 1] = worker(faults, item, at)
    end
  end
  -- What breaks the request is told beside slots and tasks that appear twice, so that one look at the
  -- message is enough; only workers that can not be read leave nothing to compare.
  local is_readable = faults.count == before
  local slots, owner = {}, {}
  check_doubles(faults, workers, slots, owner)
  if request and is_readable then
    require('streamlua.scheduling.promises').check(faults, request, workers, owner)
  end
  for _, item in ipairs(workers) do item.host = item.host or item.supervisor end
  table.sort(workers, by_slot)
  return faults:result(what, {
    topology = topology, scheduler = tostring(scheduler), workers = workers,
    components = assignment_components(faults, given.components),
  })
end

return M
