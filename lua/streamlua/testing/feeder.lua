--- Spouts under test: what they are fed and, when they are mocked, what they emit instead.
--
-- Every spout of a topology under test gets a feeder. It stands before the spout's own next_tuple:
-- what was fed comes first; then a mocked spout emits its list, and any other one is called, but
-- only so often while time stands still.

local abi = require 'streamlua.abi'
local constants = require 'streamlua.runtime.constants'

local C = abi.C

local M = {}

local Feeder = {}
Feeder.__index = Feeder

-- Pause of a mocked spout that has nothing: it is woken when that changes. In milliseconds.
local FOR_EVER = 1e12

local function push(self, entry)
  self.last = self.last + 1
  self.queue[self.last] = entry
end

--- Feeds one tuple.
function Feeder:feed(values, id)
  push(self, { values = values, id = id })
  self.was_fed = true
  self.is_done = false
end

--- `wait` was called: a mock that has a list and was not fed has had its last tuple.
function Feeder:end_list()
  if self.has_list and not self.was_fed then self.is_done = true end
end

-- Emits the next queued tuple. What is wrong with it is the test's mistake, not the topology's.
local function emit_next(self, collector)
  local entry = self.queue[self.first]
  self.queue[self.first] = nil
  self.first = self.first + 1
  local options = { stream = entry.stream, task = entry.task, id = entry.id }
  local ok, problem = pcall(collector.emit, collector, entry.values, options)
  if not ok then
    self.problem = self.problem
      or ("spout '%s' can not emit what it was given: %s"):format(self.name, tostring(problem))
  end
end

function Feeder:has_queued() return self.first <= self.last end

--- The next_tuple of the tasks of this spout.
function Feeder:next_function()
  local own = not self.is_mocked and self.definition.next_tuple
  return function(task_self, collector)
    if self.first <= self.last then
      emit_next(self, collector)
      return nil
    end
    if not own then return self.is_done and constants.DONE or false end
    if self.calls_left <= 0 then return false end
    self.calls_left = self.calls_left - 1
    self.has_raised = true
    local result = own(task_self, collector)
    self.has_raised = false
    return result
  end
end

--- Whether the last call of the spout raised, once.
function Feeder:take_raised()
  local has_raised = self.has_raised
  self.has_raised = false
  return has_raised
end

--- Lets a task of this spout be called again now.
function Feeder:wake(rt)
  if rt.is_user_done then
    if not self:has_queued() then return end
    rt.is_user_done = false
  end
  C.sl_abi_spout_reopen(rt.task)
end

--- How long a task of this spout is left alone when it emitted nothing: a function.
function Feeder:pause_of(cluster, rt)
  if self.is_mocked then return function() return FOR_EVER end end
  if not cluster.is_manual then return nil end
  local poll = cluster.poll_ms
  return function()
    -- On whole multiples, so that what depends on the time of day happens at round times.
    return poll - rt.executor:now_ms() % poll
  end
end

local function entry_of(spout, at, item)
  if type(item) ~= 'table' then
    error(("mock '%s': item %d must be a list of values, got %s"):format(spout, at, type(item)), 0)
  end
  if type(item.values) == 'table' then
    local id = item.id
    if id == nil then id = at end
    return { values = item.values, id = id or nil, stream = item.stream, task = item.task }
  end
  return { values = item, id = at }
end

local function new(component, list)
  local self = setmetatable({
    name = component.name,
    definition = component.definition,
    is_mocked = list ~= nil,
    has_list = list ~= nil and #list > 0,
    queue = {},
    first = 1,
    last = 0,
    calls_left = 0,
  }, Feeder)
  for i, item in ipairs(list or {}) do push(self, entry_of(component.name, i, item)) end
  return self
end

-- A mocked spout has none of the functions of the one it stands for.
local function stand_in(self)
  local definition = { next_tuple = self:next_function() }
  if self.is_mocked then return definition end
  return setmetatable(definition, { __index = self.definition })
end

--- Puts a feeder before every spout of a plan; { [name of spout] = feeder }.
---@param plan table streamlua.runtime.plan
---@param mocks table<string, table>
function M.mock(plan, mocks)
  if type(mocks) ~= 'table' then error('run: mock must be a table of lists by spout', 0) end
  local feeders = {}
  for name, list in pairs(mocks) do
    local component = plan.by_name[name]
    if not component or component.kind ~= 'spout' then
      error(("run: mock: there is no spout '%s'"):format(tostring(name)), 0)
    elseif type(list) ~= 'table' then
      error(("run: mock '%s' must be a list, got %s"):format(name, type(list)), 0)
    end
  end
  for _, component in ipairs(plan.components) do
    if component.kind == 'spout' then
      local feeder = new(component, mocks[component.name])
      component.definition = stand_in(feeder)
      feeders[component.name] = feeder
    end
  end
  return feeders
end

--- The first problem that any of them met, once.
function M.take_problem(feeders)
  local found
  for _, feeder in pairs(feeders) do
    found = found or feeder.problem
    feeder.problem = nil
  end
  return found
end

return M
