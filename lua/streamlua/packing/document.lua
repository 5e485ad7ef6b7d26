-- Requests and plans as documents: what they must look like, and their normal form.
--
--   local document = require 'streamlua.packing.document'
--   local request, err = document.request(decoded)     -- sizes as bytes, null as nil
--   local plan, err = document.plan(decoded, { request = request })
--
-- Every fault of a document is found and told, not just the first. A normal form is a new table;
-- what was given is left as it is.

local check = require 'streamlua.packing.check'
local schema = require 'streamlua.conf.schema'
local suggest = require 'streamlua.cli.suggest'
local target = require 'streamlua.cli.target'

local floor, huge = math.floor, math.huge
local is_list, is_whole, shown, value_of = check.is_list, check.is_whole, check.shown, check.value

local M = {}

--- Most instances of a plan, the highest id, and the most cores (packing.abi.h).
M.MAX_INSTANCES = 16777216
M.MAX_ID = 2000000000
M.MAX_CPU = 1000000
local MAX_BYTES = check.MAX_BYTES

local function set(names)
  local map = {}
  for name in names:gmatch('%S+') do map[name] = true end
  return map
end

local REQUEST_KEYS = set 'topology config components current changes containers shrink'
local COMPONENT_KEYS = set 'name kind parallelism cpu ram disk'
local PLAN_KEYS = set 'topology version packing containers key_groups'
local CONTAINER_KEYS = set 'id cpu ram disk instances supervisor host port'
local INSTANCE_KEYS = set 'component task index cpu ram disk'

--- Config keys that the packers read, and how to turn them into numbers.
M.CONFIG = {
  containers = 'count', workers = 'count', container_max_instances = 'count',
  container_cpu = 'cpu', container_ram = 'size', container_disk = 'size',
  container_cpu_padding = 'cpu', container_ram_padding = 'size',
  container_padding_percentage = 'number', packing_sorting = 'text',
}

local config_names = { 'packing_sorting' }
for name in pairs(M.CONFIG) do config_names[#config_names + 1] = name end
for _, entry in ipairs(schema) do
  if entry.scope == 'topology' then config_names[#config_names + 1] = entry.name end
end
local is_config_name = {}
for _, name in ipairs(config_names) do is_config_name[name] = true end

--- The known name that a config key most likely meant, or nil for a key of the user's own.
---@param key string
---@return string?
function M.misspelt(key)
  if is_config_name[key] or #key < 5 then return nil end
  for _, name in ipairs(config_names) do
    if suggest.distance(key, name) <= (#name > 9 and 2 or 1) then return name end
  end
  if key:find('^container_') then return 'container_ram' end
end

---------------------------------------------------------------------------------------------------
-- parts

local function cores(faults, value, place, arguments)
  value = value_of(value)
  if value == nil then return nil end
  if type(value) ~= 'number' or not (value >= 0 and value <= M.MAX_CPU) then
    faults:add(place, arguments, ('must be a number of cores within 0..%d, got %s'):format(
      M.MAX_CPU, shown(value)))
    return nil
  end
  return value
end

local function check_name(faults, value, place)
  local fault = type(value) == 'string' and target.name_fault(value)
  if type(value) ~= 'string' then
    faults:add(place, nil, 'must be a name, got ' .. shown(value))
  elseif fault then
    faults:add(place, nil, ('is %s: %s'):format(shown(value), fault))
  end
end

local function component(faults, given, at, seen)
  local arguments = { at }
  local is_table, kind = faults:component(given, COMPONENT_KEYS, at, seen)
  if not is_table then return nil end
  if not is_whole(given.parallelism, 1, M.MAX_INSTANCES) then
    faults:add('components[%d].parallelism', arguments, ('must be a whole number within 1..%d, '
      .. 'got %s'):format(M.MAX_INSTANCES, shown(given.parallelism)))
  end
  return {
    name = given.name, kind = kind, parallelism = given.parallelism,
    cpu = cores(faults, given.cpu, 'components[%d].cpu', arguments),
    ram = faults:size(given.ram, 'components[%d].ram', arguments),
    disk = faults:size(given.disk, 'components[%d].disk', arguments),
  }
end

local function components(faults, given)
  local list, seen = {}, {}
  if not faults:has_components(given) then return list end
  for at, item in ipairs(given) do list[#list + 1] = component(faults, item, at, seen) end
  return list
end

local converters = {}

function converters.count(faults, value, place)
  if not is_whole(value, 0, M.MAX_ID) then
    faults:add(place, nil, 'must be a whole number of at least 0, got ' .. shown(value))
    return nil
  end
  return value
end

function converters.cpu(faults, value, place) return cores(faults, value, place) end

function converters.size(faults, value, place) return faults:size(value, place) end

function converters.number(faults, value, place)
  if type(value) ~= 'number' or not (value >= 0 and value < huge) then
    faults:add(place, nil, 'must be a number of at least 0, got ' .. shown(value))
    return nil
  end
  return value
end

function converters.text(faults, value, place)
  if value ~= 'ram_first' and value ~= 'cpu_first' then
    faults:add(place, nil, "must be 'ram_first' or 'cpu_first', got " .. shown(value))
    return nil
  end
  return value
end

local function config(faults, given)
  given = value_of(given)
  if given == nil then return {} end
  if type(given) ~= 'table' or #given > 0 then
    faults:add('config', nil, 'must be a table of settings by name, got '
      .. (type(given) == 'table' and 'a list' or shown(given)))
    return {}
  end
  local result, keys = {}, {}
  for key in next, given do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local value = value_of(given[key])
    local convert = converters[M.CONFIG[key]]
    if convert and value ~= nil then
      result[key] = convert(faults, value, 'config.' .. key)
    elseif value ~= nil then
      local meant = M.misspelt(key)
      if meant then
        faults:add('config', nil, ("has the unknown key '%s' (did you mean '%s'?)"):format(key,
          meant))
      end
      result[key] = value
    end
  end
  if result.workers and result.containers and result.workers ~= result.containers then
    faults:add('config', nil, 'says both containers and workers, which mean the same, and they '
      .. 'differ')
  end
  result.containers, result.workers = result.containers or result.workers, nil
  return result
end

---------------------------------------------------------------------------------------------------
-- plans

-- Faults of one amount that a plan states: it is there, finite, not negative, bytes are whole.
local function amount(faults, value, place, a, b, most)
  if type(value) == 'number' and value >= 0 and value <= most
    and (most ~= MAX_BYTES or value == floor(value)) then
    return value
  end
  faults:add(place, { a, b }, ('must be %s of at least 0, got %s'):format(
    most == MAX_BYTES and 'a whole number of bytes' or 'a number of cores', shown(value)))
end

local function id(faults, value, place, a, b, least)
  if is_whole(value, least, M.MAX_ID) then return value end
  faults:add(place, { a, b }, ('must be a whole number within %d..%d, got %s'):format(least,
    M.MAX_ID, shown(value)))
end

-- What is checked across all instances of a plan.
local function new_scope(request)
  local known
  if request then
    known = {}
    for _, entry in ipairs(request.components) do known[entry.name] = true end
  end
  return { known = known, tasks = {}, indexes = {}, counts = {} }
end

local function instance(faults, scope, given, k, i)
  if type(given) ~= 'table' then
    faults:add('containers[%d].instances[%d]', { k, i }, 'must be a table, got ' .. shown(given))
    return nil
  end
  for key in next, given do
    if not INSTANCE_KEYS[key] then
      faults:unknown_keys(given, INSTANCE_KEYS, 'containers[%d].instances[%d]', { k, i })
      break
    end
  end
  local name = given.component
  if type(name) ~= 'string' then
    faults:add('containers[%d].instances[%d].component', { k, i }, 'must be a name, got '
      .. shown(name))
    name = nil
  elseif scope.known and not scope.known[name] then
    faults:add('containers[%d].instances[%d].component', { k, i }, ('is %s, which the request does '
      .. 'not have'):format(shown(name)))
  end
  local task = id(faults, given.task, 'containers[%d].instances[%d].task', k, i, 1)
  local index = id(faults, given.index, 'containers[%d].instances[%d].index', k, i, 0)
  if task then
    if scope.tasks[task] then
      faults:add('containers[%d].instances[%d].task', { k, i }, ('is %d, which is taken by '
        .. 'another instance'):format(task))
    end
    scope.tasks[task] = true
  end
  if name then
    scope.counts[name] = (scope.counts[name] or 0) + 1
    if index then
      local indexes = scope.indexes[name]
      if not indexes then
        indexes = {}
        scope.indexes[name] = indexes
      end
      if indexes[index] then
        faults:add('containers[%d].instances[%d].index', { k, i }, ("is %d, which another instance "
          .. "of '%s' has"):format(index, name))
      end
      indexes[index] = true
    end
  end
  return {
    component = name, task = task, index = index,
    cpu = amount(faults, given.cpu, 'containers[%d].instances[%d].cpu', k, i, M.MAX_CPU),
    ram = amount(faults, given.ram, 'containers[%d].instances[%d].ram', k, i, MAX_BYTES),
    disk = amount(faults, given.disk, 'containers[%d].instances[%d].disk', k, i, MAX_BYTES),
  }
end

-- CPU of a container may be rounded to whole cores, so half a core may be missing.
local SLACK = { cpu = 0.5 + 1e-6, ram = 0, disk = 0 }

local function check_sums(faults, container, k)
  for _, dimension in ipairs({ 'cpu', 'ram', 'disk' }) do
    local sum = 0
    for _, item in ipairs(container.instances) do sum = sum + (item[dimension] or 0) end
    local own = container[dimension]
    if own and sum > own + SLACK[dimension] then
      faults:add('containers[%d].%s', { k, dimension }, ('is %.14g, but its instances need %.14g')
        :format(own, sum))
    end
  end
end

-- The slot of a container that runs somewhere: texts, and a port.
local function slot_into(faults, result, given, k)
  for _, key in ipairs({ 'supervisor', 'host' }) do
    local text = value_of(given[key])
    if text ~= nil and type(text) ~= 'string' then
      faults:add('containers[%d].%s', { k, key }, 'must be a text, got ' .. shown(text))
    else
      result[key] = text
    end
  end
  local port = value_of(given.port)
  if port ~= nil and not is_whole(port, 0, 65535) then
    faults:add('containers[%d].port', { k }, 'must be a port within 0..65535, got ' .. shown(port))
  else
    result.port = port
  end
end

local function container(faults, scope, given, k)
  if type(given) ~= 'table' then
    faults:add('containers[%d]', { k }, 'must be a table, got ' .. shown(given))
    return nil
  end
  faults:unknown_keys(given, CONTAINER_KEYS, 'containers[%d]', { k })
  local result = {
    id = id(faults, given.id, 'containers[%d].id', k, nil, 1),
    cpu = amount(faults, given.cpu, 'containers[%d].cpu', k, nil, M.MAX_CPU),
    ram = amount(faults, given.ram, 'containers[%d].ram', k, nil, MAX_BYTES),
    disk = amount(faults, given.disk, 'containers[%d].disk', k, nil, MAX_BYTES),
    instances = {},
  }
  slot_into(faults, result, given, k)
  if not is_list(given.instances) or #given.instances == 0 then
    faults:add('containers[%d].instances', { k }, 'must be a list of at least one instance, got '
      .. (type(given.instances) == 'table' and 'none' or shown(given.instances)))
    return result
  end
  for i = 1, #given.instances do
    result.instances[#result.instances + 1] = instance(faults, scope, given.instances[i], k, i)
  end
  check_sums(faults, result, k)
  return result
end

local function by_id(a, b) return a.id < b.id end
local function by_task(a, b) return a.task < b.task end

local function sort_plan(plan)
  table.sort(plan.containers, by_id)
  for _, item in ipairs(plan.containers) do table.sort(item.instances, by_task) end
end

local function containers(faults, scope, given)
  if not is_list(given) or #given == 0 then
    faults:add('containers', nil, 'must be a list of at least one container, got '
      .. (type(given) == 'table' and 'none' or shown(given)))
    return {}
  end
  local list, seen = {}, {}
  for k = 1, #given do
    local item = container(faults, scope, given[k], k)
    list[#list + 1] = item
    if item and item.id then
      if seen[item.id] then
        faults:add('containers[%d].id', { k }, ('is %d, which containers[%d] has'):format(item.id,
          seen[item.id]))
      end
      seen[item.id] = seen[item.id] or k
    end
  end
  return list
end

-- Counts, topology and version of a result must be what the request asks for.
local function check_wanted(faults, plan, scope, options)
  local request, wanted = options.request, options.wanted
  if request and plan.topology ~= nil and plan.topology ~= request.topology then
    faults:add('topology', nil, ('is %s, the request is for %s'):format(shown(plan.topology),
      shown(request.topology)))
  end
  if not wanted then return end
  for _, entry in ipairs(request.components) do
    local there, asked = scope.counts[entry.name] or 0, wanted[entry.name]
    if there ~= asked then
      faults:add('containers', nil, ("have %d instances of '%s', %d are asked for"):format(there,
        entry.name, asked))
    end
  end
  if request.containers and #plan.containers ~= request.containers then
    faults:add('containers', nil, ('are %d, %d are asked for'):format(#plan.containers,
      request.containers))
  end
end

-- A container of a result may not exceed the capacity that the config states, unless it stands in
-- the current plan just so.
local function check_capacity(faults, plan, request)
  local current = {}
  for _, item in ipairs(request.current and request.current.containers or {}) do
    current[item.id] = item
  end
  for k, item in ipairs(plan.containers) do
    for _, dimension in ipairs({ 'cpu', 'ram', 'disk' }) do
      local most = request.config['container_' .. dimension]
      local own, before = item[dimension], current[item.id]
      if most and own and own > most + SLACK[dimension]
        and not (before and before[dimension] >= own) then
        faults:add('containers[%d].%s', { k, dimension }, ('is %.14g, more than container_%s, '
          .. '%.14g'):format(own, dimension, most))
      end
    end
  end
end

local function plan_into(faults, given, options)
  if type(given) ~= 'table' then
    faults:add('', nil, 'must be a table, got ' .. shown(given))
    return nil
  end
  faults:unknown_keys(given, PLAN_KEYS, options.place or 'it')
  local scope = new_scope(options.request)
  local plan = { topology = value_of(given.topology), version = value_of(given.version),
    packing = value_of(given.packing), key_groups = value_of(given.key_groups) }
  local defaults = options.defaults or {}
  for _, key in ipairs({ 'topology', 'version', 'packing' }) do
    if plan[key] == nil then plan[key] = defaults[key] end
  end
  check_name(faults, plan.topology, 'topology')
  if not is_whole(plan.version, 1, 2 ^ 53) then
    faults:add('version', nil, 'must be a whole number of at least 1, got ' .. shown(plan.version))
  elseif defaults.version and plan.version ~= defaults.version then
    faults:add('version', nil, ('is %d, it must be %d'):format(plan.version, defaults.version))
  end
  if type(plan.packing) ~= 'string' then
    faults:add('packing', nil, "must be a packer's name, got " .. shown(plan.packing))
  end
  plan.containers = containers(faults, scope, given.containers)
  check_wanted(faults, plan, scope, options)
  if options.wanted then check_capacity(faults, plan, options.request) end
  return plan
end

--- Checks a plan. Options: `request` (normal form): topology and components must be its own;
--- `wanted`: instances by component that there must be, and the request's container count and
--- capacity; `defaults`: topology, version, packing to fill in; `what` names it in the message.
---@param given any
---@param options? table
---@return table? plan normal form, sorted
---@return streamlua.Error? failure with `faults`
function M.plan(given, options)
  options = options or {}
  local faults = check.new()
  local plan = plan_into(faults, given, options)
  if faults.count == 0 then sort_plan(plan) end
  return faults:result(options.what, plan)
end

local function current(faults, given, request)
  given = value_of(given)
  if given == nil then return nil end
  local plan, fault = M.plan(given, { request = request, what = false })
  if not plan then
    for _, text in ipairs(fault.faults) do faults:add('current', nil, text) end
    return nil
  end
  local placed = {}
  for _, item in ipairs(plan.containers) do
    for _, one in ipairs(item.instances) do placed[one.component] = true end
  end
  for _, entry in ipairs(request.components) do
    if entry.name and not placed[entry.name] then
      faults:add('current', nil, ("has no instance of component '%s'"):format(entry.name))
    end
  end
  return plan
end

local function changes(faults, given, request)
  given = value_of(given)
  if given == nil then return nil end
  if type(given) ~= 'table' then
    faults:add('changes', nil, 'must be a table, got ' .. shown(given))
    return nil
  end
  local known, names = {}, {}
  for i, entry in ipairs(request.components) do
    known[entry.name or ''] = true
    names[i] = tostring(entry.name)
  end
  local result, keys = {}, {}
  for key in next, given do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local value = value_of(given[key])
    if not known[key] then
      faults:add('changes', nil, ('names the unknown component %s (components: %s)'):format(
        shown(key), table.concat(names, ', ')))
    elseif value ~= nil and not is_whole(value, -M.MAX_INSTANCES, M.MAX_INSTANCES) then
      faults:add('changes', nil, ("of '%s' must be a whole number within -%d..%d, got %s"):format(key,
        M.MAX_INSTANCES, M.MAX_INSTANCES, shown(value)))
    elseif value ~= 0 then
      result[key] = value
    end
  end
  return result
end

--- Checks a request.
---@param given any
---@return table? request normal form: sizes in bytes, absent instead of null, `workers` as
---  `containers`, `current` sorted
---@return streamlua.Error? failure with `faults`
function M.request(given)
  local faults = check.new()
  if type(given) ~= 'table' then
    faults:add('', nil, 'must be a table, got ' .. shown(given))
    return faults:result('request')
  end
  faults:unknown_keys(given, REQUEST_KEYS, 'it')
  local request = { topology = value_of(given.topology) }
  check_name(faults, request.topology, 'topology')
  request.config = config(faults, given.config)
  request.components = components(faults, given.components)
  request.current = current(faults, given.current, request)
  request.changes = changes(faults, given.changes, request)
  request.containers = value_of(given.containers)
  if request.containers ~= nil and not is_whole(request.containers, 0, M.MAX_ID) then
    faults:add('containers', nil, 'must be a whole number of at least 1, got '
      .. shown(request.containers))
  end
  request.shrink = value_of(given.shrink)
  if request.shrink ~= nil and request.shrink ~= 'containers' and request.shrink ~= 'tasks' then
    faults:add('shrink', nil, "must be 'containers' or 'tasks', got " .. shown(request.shrink))
  end
  if value_of(given.current) == nil and request.changes and next(request.changes) then
    faults:add('changes', nil, 'need the current plan they change')
  end
  return faults:result('request', request)
end

--- Instances of each component that the request asks for: as submitted, or current plus changes.
---@param request table normal form
---@return table<string, integer>
function M.wanted(request)
  local counts = {}
  for _, entry in ipairs(request.components) do
    counts[entry.name] = request.current and 0 or entry.parallelism
  end
  if request.current then
    for _, item in ipairs(request.current.containers) do
      for _, placed in ipairs(item.instances) do
        counts[placed.component] = counts[placed.component] + 1
      end
    end
    for name, change in pairs(request.changes or {}) do counts[name] = counts[name] + change end
  end
  return counts
end

return M
