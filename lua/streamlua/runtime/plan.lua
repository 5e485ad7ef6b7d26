--- The plan of one worker: which tasks of a topology run on which executor, and what they read.
--
--     local plan = require('streamlua.runtime.plan').new(topology, { executors = 2 })
--     assert(plan.task[1].component.name)
--
-- It is plain data made from the topology alone, so every executor's Lua state comes to the same plan
-- as the state that started the worker. Indexes of components and streams are those of the C worker.

local abi = require 'streamlua.abi'
local grouping = require 'streamlua.topology.grouping'
local native = require 'streamlua.topology.native'

local C, ffi = abi.C, abi.ffi

local M = {}

-- Streams of a component with their index in the worker.
local function add_streams(plan, component, entry)
  component.streams, component.stream_by_name = {}, {}
  for i, stream in ipairs(entry.streams) do
    local planned = {
      name = stream.name,
      fields = stream.fields,
      is_direct = stream.direct,
      component = component,
      index = #plan.stream_list,
    }
    component.streams[i] = planned
    component.stream_by_name[stream.name] = planned
    plan.stream_list[#plan.stream_list + 1] = planned
    plan.streams[planned.index] = planned
    plan.readers_of[planned.index] = {}
  end
end

local function field_position(stream, name)
  for i, field in ipairs(stream.fields) do
    if field == name then return i - 1 end
  end
end

local function add_readers(plan, component, entry)
  for _, input in ipairs(entry.inputs) do
    local source = plan.by_name[input.source]
    local stream = source.stream_by_name[input.stream]
    local keys = {}
    for i, name in ipairs(input.fields or {}) do keys[i] = field_position(stream, name) end
    local reader = {
      stream = stream,
      component = component,
      grouping = grouping.number[input.grouping],
      keys = keys,
      fn = input.fn,
    }
    plan.readers[#plan.readers + 1] = reader
    local of = plan.readers_of[stream.index]
    of[#of + 1] = reader
    component.is_keyed = component.is_keyed or input.grouping == 'fields'
  end
end

local KINDS = { spout = C.SL_TASK_SPOUT, bolt = C.SL_TASK_BOLT }

-- Where a component stands among the user's own: the engine's streams to and from __acker and others
-- would put all of them on cycles.
local function add_component(plan, described, place, entry)
  local component = {
    name = described.name,
    kind = described.kind,
    code = tonumber(entry and KINDS[described.kind] or C.SL_TASK_ACKER),
    definition = entry and entry.definition,
    options = entry and entry.options or {},
    config = entry and setmetatable(entry.config or {}, { __index = plan.config }) or plan.config,
    rank = place and place.rank or 0,
    scc = place and place.cyclic and place.scc or -1,
    tasks = {},
    index = #plan.components,
    streams = {},
    stream_by_name = {},
  }
  -- How many there were at submission.
  component.planned = described.tasks or 0
  for i = 0, plan.is_site and -1 or component.planned - 1 do
    component.tasks[i + 1] = described.first_task + i
  end
  plan.components[#plan.components + 1] = component
  plan.by_name[component.name] = component
  return component
end

-- Tasks in the order in which executors are filled: along the stream, so that neighbours that are one
-- each share an executor only when there is just one.
local function spread(plan, executors)
  local ordered = {}
  for i, component in ipairs(plan.components) do ordered[i] = component end
  table.sort(ordered, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return a.index < b.index
  end)
  local next_executor = 0
  for _, component in ipairs(ordered) do
    for i, id in ipairs(component.tasks) do
      plan.tasks[#plan.tasks + 1] = { id = id, component = component, index = i - 1,
        executor = next_executor }
      next_executor = (next_executor + 1) % executors
    end
  end
  table.sort(plan.tasks, function(a, b) return a.id < b.id end)
  for _, task in ipairs(plan.tasks) do plan.task[task.id] = task end
end

-- Key groups of components that are read by fields.
local function add_key_groups(plan)
  for _, component in ipairs(plan.components) do
    if component.is_keyed and #component.tasks > 0 then
      component.groups = assert(native.assign_key_groups(component.tasks, plan.key_groups))
    end
  end
end

local function planned_task(plan, worker, id)
  local where = ffi.new('struct sl_planned')
  if C.sl_abi_worker_planned(worker, id, where) ~= 0 then return nil end
  return { id = id, component = plan.components[where.component + 1], index = where.index,
    executor = where.executor }
end

-- The ids that a component has in the worker.
local function component_tasks(worker, component)
  local count = C.sl_abi_worker_tasks(worker, component.index, nil, 0)
  local ids = ffi.new('int32_t[?]', math.max(count, 1))
  count = math.min(count, C.sl_abi_worker_tasks(worker, component.index, ids, count))
  local list = {}
  for i = 0, count - 1 do list[i + 1] = ids[i] end
  return list
end

--- Brings the tasks of a plan up to those of a worker that changed while it runs. Tasks that are gone
--- stay in `plan.task`, where events look up names.
---@param plan table
---@param worker ffi.cdata* struct sl_worker *
function M.refresh(plan, worker)
  local tasks = {}
  for _, component in ipairs(plan.components) do
    local ids = component_tasks(worker, component)
    -- The lists stay the same tables: user code of custom groupings is given them.
    for i = 1, math.max(#ids, #component.tasks) do component.tasks[i] = ids[i] end
    for _, id in ipairs(ids) do
      local known = plan.task[id]
      if not known or known.is_gone then known = planned_task(plan, worker, id) end
      if known then
        plan.task[id] = known
        tasks[#tasks + 1] = known
      end
    end
  end
  for _, task in ipairs(plan.tasks) do task.is_gone = true end
  for _, task in ipairs(tasks) do task.is_gone = nil end
  table.sort(tasks, function(a, b) return a.id < b.id end)
  plan.tasks = tasks
end

--- Takes the number of key groups from a worker that was told the physical plan: submission fixes it.
---@param plan table
---@param worker ffi.cdata* struct sl_worker *
function M.refresh_key_groups(plan, worker)
  for _, component in ipairs(plan.components) do
    local count = C.sl_abi_worker_group_count(worker, component.index)
    if count > 0 then
      plan.key_groups = count
      return
    end
  end
end

local function task_count(described)
  local count = 0
  for _, component in ipairs(described.components) do
    if component.kind ~= 'system' then count = count + component.tasks end
  end
  return count
end

--- Makes the plan of a worker that runs a whole (valid) topology.
---@param topology streamlua.Topology
---@param options? { executors?: integer, is_site?: boolean } threads (unset = config `executors`, else
---min(cores, tasks)); is_site: a physical plan says later which tasks there are (runtime/site.lua)
---@return table plan
function M.new(topology, options)
  local described = assert(topology:system())
  local places = {}
  for _, place in ipairs(assert(native.describe(assert(topology:native()))).components) do
    places[place.name] = place
  end
  local settings = topology:settings()
  local plan = {
    name = topology.name,
    config = topology.config,
    settings = settings,
    key_groups = assert(topology:key_groups()),
    is_site = options and options.is_site or false,
    components = {},
    by_name = {},
    streams = {},
    stream_list = {},
    readers = {},
    readers_of = {},
    tasks = {},
    task = {},
  }
  plan.executors = options and options.executors or settings.executors
    or math.min(C.sl_abi_core_count(), task_count(described))
  for _, component in ipairs(described.components) do
    local entry = topology:component(component.name)
    if entry or (component.name == '__acker' and settings.acking) then
      local planned = add_component(plan, component, places[component.name], entry)
      if entry then add_streams(plan, planned, entry) end
    end
  end
  for _, component in ipairs(plan.components) do
    local entry = topology:component(component.name)
    if entry then add_readers(plan, component, entry) end
  end
  add_key_groups(plan)
  spread(plan, plan.executors)
  return plan
end

return M
