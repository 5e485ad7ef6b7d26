--- The topology of the core: built from a Lua topology, or read from bytes, and looked at.
--
--     local native = require 'streamlua.topology.native'
--     local handle = assert(native.build(t))          -- owned by Lua, freed with it
--     local plain = native.describe(native.system(handle))
--     assert(plain.components[1].name == t.components[1].name)
--
-- Handles are `struct sl_topology *`; they are values and never change once built. Functions that can
-- fail return nil and an error of streamlua.err.

local abi = require 'streamlua.abi'
local canonical = require 'streamlua.topology.canonical'
local err = require 'streamlua.err'
local grouping = require 'streamlua.topology.grouping'

local C, ffi = abi.C, abi.ffi
local text_of, tonumber = ffi.string, tonumber

local M = {}

local component_spec_t = ffi.typeof('struct sl_topology_component_spec')
local stream_spec_t = ffi.typeof('struct sl_topology_stream_spec')
local input_spec_t = ffi.typeof('struct sl_topology_input_spec')
local text_t = ffi.typeof('struct sl_topology_text')
local texts_t = ffi.typeof('struct sl_topology_text[?]')
local places_t = ffi.typeof('struct sl_topology_place[?]')
local ranges_t = ffi.typeof('struct sl_task_range[?]')
local ints_t = ffi.typeof('int32_t[?]')
local bytes_t = ffi.typeof('uint8_t[?]')

local kinds = { spout = C.SL_COMPONENT_SPOUT, bolt = C.SL_COMPONENT_BOLT }
local NAN = 0 / 0

-- The bytes are borrowed: whoever calls keeps the string alive until C has copied it.
local function set_text(field, text)
  field.data, field.len = text, #text
end

local function texts(list)
  local array = texts_t(math.max(#list, 1))
  for i, text in ipairs(list) do set_text(array[i - 1], text) end
  return array
end

local function check(result)
  if result < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
  return result
end

local function add_component(handle, entry, script)
  local spec = component_spec_t()
  local config = entry.config_text or ''
  spec.kind = kinds[entry.kind]
  set_text(spec.name, entry.name)
  set_text(spec.script, script)
  set_text(spec.code_name, entry.name)
  spec.parallelism = entry.parallelism
  spec.resources.cpu_cores = entry.cpu or NAN
  spec.resources.ram_bytes = entry.ram or NAN
  spec.resources.disk_bytes = entry.disk or NAN
  set_text(spec.config, config)
  return check(C.sl_abi_topology_add(handle, spec))
end

local function add_stream(handle, index, stream)
  local spec, fields = stream_spec_t(), texts(stream.fields)
  set_text(spec.name, stream.name)
  spec.is_direct = stream.direct
  spec.fields, spec.field_count = fields, #stream.fields
  check(C.sl_abi_topology_add_stream(handle, index, spec))
end

local function add_input(handle, index, input, ref)
  local spec, fields = input_spec_t(), texts(input.fields or {})
  set_text(spec.source, input.source)
  set_text(spec.stream, input.stream)
  spec.grouping = grouping.number[input.grouping]
  spec.fields, spec.field_count = fields, input.fields and #input.fields or 0
  set_text(spec.custom_ref, ref)
  check(C.sl_abi_topology_add_input(handle, index, spec))
end

local function fill(handle, t, settings)
  for _, entry in ipairs(t.components) do
    local index = add_component(handle, entry, t.script or '')
    for _, stream in ipairs(entry.streams) do add_stream(handle, index, stream) end
    for i, input in ipairs(entry.inputs) do
      -- A worker finds the function again as input i of this component of the script's topology.
      add_input(handle, index, input, input.fn and ('%s/%d'):format(entry.name, i) or '')
    end
  end
  for key, text in pairs(settings) do
    check(C.sl_abi_topology_set(handle, text_t(key, #key), text_t(text, #text)))
  end
end

--- Builds the core's topology of a Lua topology, whatever is wrong with it.
---@param t table topology
---@param settings? table<string, string> canonical text by config key; t.config when missing
---@return ffi.cdata*? handle
---@return streamlua.Error? failure
function M.build(t, settings)
  if not settings then
    settings = {}
    for key, value in pairs(t.config) do
      local text, message = canonical.encode(value)
      if not text then return nil, err.new('EINVAL', ('config key %s: %s'):format(key, message)) end
      settings[key] = text
    end
  end
  local handle = ffi.gc(C.sl_abi_topology_new(t.name, #t.name), C.sl_abi_topology_free)
  local ok, failure = pcall(fill, handle, t, settings)
  if not ok then return nil, failure end
  return handle
end

--- Everything the core finds wrong: a list of {code=, severity=, message=, component=, input=,
--- stream=}; component and input are positions from 1, or nil.
---@param handle ffi.cdata*
---@return table[]? problems
---@return streamlua.Error? failure
function M.validate(handle)
  local list = C.sl_abi_topology_validate(handle)
  if list == nil then return err.last() end
  list = ffi.gc(list, C.sl_abi_topology_problems_free)
  local problems = {}
  for i = 0, C.sl_abi_topology_problem_count(list) - 1 do
    local p = C.sl_abi_topology_problem(list, i)
    problems[i + 1] = {
      code = text_of(C.sl_abi_topology_problem_name(p.code)),
      severity = p.severity == C.SL_TOPOLOGY_WARNING and 'warning' or 'error',
      message = text_of(p.message),
      component = p.component >= 0 and p.component + 1 or nil,
      input = p.input >= 0 and p.input + 1 or nil,
      stream = p.stream[0] ~= 0 and text_of(p.stream) or nil,
    }
  end
  return problems
end

--- The system topology of a valid one.
---@param handle ffi.cdata*
---@param ackers? integer acker tasks; as the config says when missing
---@return ffi.cdata*? handle
---@return streamlua.Error? failure
function M.system(handle, ackers)
  local system = C.sl_abi_topology_system(handle, ackers or -1)
  if system == nil then return err.last() end
  return ffi.gc(system, C.sl_abi_topology_free)
end

--- The number of key groups.
---@param handle ffi.cdata*
---@return integer? groups
---@return streamlua.Error? failure
function M.key_groups(handle)
  local groups = C.sl_abi_topology_key_groups(handle)
  if groups < 0 then return err.last() end
  return groups
end

local function fields_of(fields, count)
  local list = {}
  for i = 0, count - 1 do list[i + 1] = text_of(fields[i]) end
  return list
end

local function amount(number) return number == number and number or nil end

local function describe_component(c)
  local streams, inputs = {}, {}
  for i = 0, c.stream_count - 1 do
    local stream = c.streams[i]
    streams[i + 1] = { name = text_of(stream.name), direct = stream.is_direct,
      fields = fields_of(stream.fields, stream.field_count) }
    streams[streams[i + 1].name] = streams[i + 1]
  end
  for i = 0, c.input_count - 1 do
    local input = c.inputs[i]
    inputs[i + 1] = { source = text_of(input.source), stream = text_of(input.stream),
      grouping = grouping.name[tonumber(input.grouping)],
      fields = input.field_count > 0 and fields_of(input.fields, input.field_count) or nil,
      custom_ref = input.custom_ref[0] ~= 0 and text_of(input.custom_ref) or nil }
  end
  return {
    name = text_of(c.name),
    kind = text_of(C.sl_abi_component_kind_name(tonumber(c.kind))),
    script = text_of(c.script),
    code_name = text_of(c.code_name),
    parallelism = c.parallelism,
    cpu = amount(c.resources.cpu_cores),
    ram = amount(c.resources.ram_bytes),
    disk = amount(c.resources.disk_bytes),
    config = c.config_len > 0 and canonical.decode(text_of(c.config, c.config_len)) or nil,
    streams = streams,
    inputs = inputs,
  }
end

--- A topology as plain data: {name=, system=, config=, components=}. Components carry name, kind,
--- parallelism, cpu, ram, disk, streams, inputs, script, code_name, config, and rank, scc, cyclic,
--- reachable; those of a system topology also first_task and tasks (a number).
---@param handle ffi.cdata*
---@return table? description
---@return streamlua.Error? failure
function M.describe(handle)
  local count = handle.component_count
  local components, config = {}, {}
  local places = places_t(math.max(count, 1))
  if C.sl_abi_topology_places(handle, places, count) < 0 then return err.last() end
  local ranges = handle.is_system and ranges_t(math.max(count, 1))
  if ranges and C.sl_abi_topology_task_ranges(handle, ranges, count) < 0 then return err.last() end
  for i = 0, count - 1 do
    local component, at = describe_component(handle.components[i]), places[i]
    component.rank, component.scc = at.rank, at.scc
    component.cyclic, component.reachable = at.is_cyclic, at.is_reachable
    if ranges then
      component.tasks = ranges[i].count
      component.first_task = ranges[i].count > 0 and ranges[i].first or nil
    end
    components[i + 1] = component
  end
  for i = 0, handle.setting_count - 1 do
    local setting = handle.settings[i]
    config[text_of(setting.key)] = canonical.decode(text_of(setting.value,
      tonumber(setting.value_len)))
  end
  return { name = text_of(handle.name), system = handle.is_system, config = config,
    components = components }
end

--- The bytes of a topology (proto/topology.proto).
---@param handle ffi.cdata*
---@return string? bytes
---@return streamlua.Error? failure
function M.encode(handle)
  local size = C.sl_abi_topology_encode(handle, nil, 0)
  if size < 0 then return err.last() end
  local bytes = bytes_t(math.max(size, 1))
  size = C.sl_abi_topology_encode(handle, bytes, size)
  if size < 0 then return err.last() end
  return text_of(bytes, size)
end

--- The topology that bytes hold.
---@param bytes string
---@return ffi.cdata*? handle
---@return streamlua.Error? failure
function M.decode(bytes)
  local handle = C.sl_abi_topology_decode(ffi.cast('const uint8_t *', bytes), #bytes)
  if handle == nil then return err.last() end
  return ffi.gc(handle, C.sl_abi_topology_free)
end

--- Whether two topologies say the same.
---@param a ffi.cdata*
---@param b ffi.cdata*
---@return boolean
function M.equal(a, b) return C.sl_abi_topology_equal(a, b) == 1 end

local function array(list)
  local values = ints_t(math.max(#list, 1))
  for i, value in ipairs(list) do values[i - 1] = value end
  return values
end

local function list_of(values, count)
  local list = {}
  for i = 1, count do list[i] = values[i - 1] end
  return list
end

--- The first owners of key groups: element g + 1 is the task that owns group g.
---@param tasks integer[]
---@param groups integer
---@return integer[]? owners
---@return streamlua.Error? failure
function M.assign_key_groups(tasks, groups)
  local owners = ints_t(math.max(groups, 1))
  if C.sl_abi_key_groups_assign(array(tasks), #tasks, owners, groups) < 0 then return err.last() end
  return list_of(owners, groups)
end

--- The owners after a change of the tasks, and how many groups moved (the fewest possible).
---@param owners integer[] as assign_key_groups gives them
---@param tasks integer[] all tasks there are now
---@return integer[]? owners
---@return integer|streamlua.Error moved or the failure
function M.rebalance_key_groups(owners, tasks)
  local after = ints_t(math.max(#owners, 1))
  local moved = C.sl_abi_key_groups_rebalance(array(owners), #owners, array(tasks), #tasks, after)
  if moved < 0 then return err.last() end
  return list_of(after, #owners), moved
end

return M
