-- What masters need of a topology to place it: how it wants to be scheduled, and a plan whose tasks
-- have the ids of scheduling requests. Masters choose the slots, and for all schedulers but `packed`
-- the containers, too.
--
--   local placement = require 'streamlua.cluster.placement'
--   local schedule = assert(placement.schedule(t, 'balanced'))
--   local plan = placement.first_plan(packed, schedule)
--   local larger = placement.resize(plan, { count = 2, split = -1 })

local err = require 'streamlua.err'
local native = require 'streamlua.scheduling.native'
local packing = require 'streamlua.packing'
local scheduling = require 'streamlua.scheduling'

local M = {}

-- The topology master's task beside a packer's, which grow by max + 1 and never get there.
local PACKED_MASTER = 2000000000

--- True for the schedulers that masters have; others are user code, which they never load.
---@param name string
---@return boolean
function M.is_known(name) return native.schedulers[name] ~= nil end

--- How a topology wants to be scheduled: {scheduler=, request=}, where the request's cluster means
--- nothing. Options: `containers` instead of the config's.
---@param t table topology, or its description
---@param scheduler string
---@param options table? {containers=}
---@return table? schedule
---@return streamlua.Error?
function M.schedule(t, scheduler, options)
  if not M.is_known(scheduler) then
    return nil, err.new('EINVAL', ("scheduler '%s': masters have %s only"):format(scheduler,
      table.concat(native.names, ', ')))
  end
  local config = {}
  for key, value in pairs(t.config) do config[key] = value end
  if options and options.containers then config.containers = options.containers end
  local request, fault = scheduling.request_from_topology(
    { name = t.name, components = t.components, config = config }, { supervisors = 1, slots = 1 })
  if not request then return nil, fault end
  return { scheduler = scheduler, request = request }
end

-- Instances by component, in the order of their indexes; and the highest task.
local function instances_of(plan)
  local by_component, highest = {}, 0
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do
      local list = by_component[instance.component] or {}
      by_component[instance.component] = list
      list[#list + 1] = instance
      highest = math.max(highest, instance.task)
    end
  end
  for _, list in pairs(by_component) do
    table.sort(list, function(a, b) return a.index < b.index end)
  end
  return by_component, highest
end

-- Their ids are those of the request, in order.
local function take_ids(plan, request)
  local instances = instances_of(plan)
  for _, component in ipairs(request.components) do
    for i, instance in ipairs(instances[component.name] or {}) do
      instance.task = component.tasks[i]
    end
  end
  for _, container in ipairs(plan.containers) do
    table.sort(container.instances, function(a, b) return a.task < b.task end)
  end
end

--- A first plan as masters take it: the packed one with the ids of the scheduler, and the task of the
--- topology master. The plan is changed in place.
---@param plan table
---@param schedule table of M.schedule
---@return table plan
function M.first_plan(plan, schedule)
  if schedule.scheduler == 'packed' then
    plan.master = { task = PACKED_MASTER }
    return plan
  end
  take_ids(plan, schedule.request)
  plan.packing = 'scheduler:' .. schedule.scheduler
  for _, component in ipairs(schedule.request.components) do
    if component.name == native.MASTER then plan.master = { task = component.tasks[1] } end
  end
  return plan
end

--- The scheduler that made the containers of a running topology; nil when a packer did.
---@param plan table
---@return string?
function M.scheduler_of(plan) return plan.packing:match('^scheduler:(.*)$') end

-- The highest task and index stay free for ever: nobody takes what was somebody else's.
local function grow(container, list, count, next_task)
  local last = list[#list]
  for i = 1, count do
    container.instances[#container.instances + 1] = { component = last.component,
      task = next_task + i - 1, index = last.index + i, cpu = last.cpu, ram = last.ram,
      disk = last.disk }
    for _, dimension in ipairs({ 'cpu', 'ram', 'disk' }) do
      container[dimension] = container[dimension] + last[dimension]
    end
  end
end

local function shrink(plan, list, count)
  local gone = {}
  table.sort(list, function(a, b) return a.task < b.task end)
  for i = #list - count + 1, #list do gone[list[i].task] = true end
  for _, container in ipairs(plan.containers) do
    local left = {}
    for _, instance in ipairs(container.instances) do
      if not gone[instance.task] then left[#left + 1] = instance end
    end
    container.instances = left
  end
end

local function copy_of(plan)
  local copy = { topology = plan.topology, version = plan.version + 1, packing = plan.packing,
    containers = {} }
  for k, container in ipairs(plan.containers) do
    copy.containers[k] = { id = container.id, cpu = container.cpu, ram = container.ram,
      disk = container.disk, instances = {} }
    for i, instance in ipairs(container.instances) do
      local own = {}
      for key, value in pairs(instance) do own[key] = value end
      copy.containers[k].instances[i] = own
    end
  end
  return copy
end

--- The next plan of a topology whose containers are the scheduler's: growth takes max + 1, shrinking
--- drops the highest ids. Where the tasks go is not said; the new ones are in the last container.
---@param plan table
---@param changes table<string, integer> signed, by component
---@return table? plan
---@return streamlua.Error?
function M.resize(plan, changes)
  local resized = copy_of(plan)
  local instances, highest = instances_of(resized)
  highest = math.max(highest, plan.master and plan.master.task or 0)
  local names = {}
  for name in pairs(changes) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local change = changes[name]
    if change > 0 then
      grow(resized.containers[#resized.containers], instances[name], change, highest + 1)
      highest = highest + change
    elseif change < 0 then
      shrink(resized, instances[name], -change)
    end
  end
  local left = {}
  for _, container in ipairs(resized.containers) do
    if #container.instances > 0 then left[#left + 1] = container end
  end
  resized.containers = left
  return packing.validate_plan(resized)
end

return M
