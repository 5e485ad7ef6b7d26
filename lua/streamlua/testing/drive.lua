--- Runs the executors of a worker in one thread: each in a coroutine of its own, by turns.
--
-- An executor whose emit has to wait yields, inside the emit, as its thread would park; it goes on
-- when its turn comes again. When some rounds moved nothing, everything is at rest: only the clock,
-- or another call, makes something happen. An emit may still be waiting then.

local abi = require 'streamlua.abi'
local executors = require 'streamlua.runtime.executor'

local C = abi.C
local running, isyieldable = coroutine.running, coroutine.isyieldable

local M = {}

local Drive = {}
Drive.__index = Drive

-- An ack goes from its bolt by way of an acker to the spout's executor without a turn of either.
local QUIET_ROUNDS = 3

-- Lets an executor run until it is idle or waits. Internal errors are raised here.
local function resume(entry)
  local ok, problem = coroutine.resume(entry.thread)
  if not ok then error(debug.traceback(entry.thread, tostring(problem)), 0) end
end

local function turn_count(self)
  local count = 0
  for _, entry in ipairs(self.entries) do count = count + entry.executor.turn_count end
  return count
end

-- One round; whether anything moved.
local function round(self)
  local before = turn_count(self)
  for _, entry in ipairs(self.entries) do
    if coroutine.status(entry.thread) == 'suspended' then resume(entry) end
  end
  return turn_count(self) > before
end

-- What an executor does while its emit waits: lets the others run. User code that called emit from
-- inside a C function (such as a callback of gsub), or in a coroutine of its own, can not be left,
-- so the others run on top of it then.
local function idle_hook(self, entry)
  return function()
    if running() == entry.thread and isyieldable() then
      coroutine.yield()
      return true
    end
    return round(self)
  end
end

local function add_executor(self, index)
  local executor = executors.new({
    worker = self.worker.pointer,
    index = index,
    plan = self.plan,
    may_block = false,
    tap = self.recorder:tap(),
    write_log = function(rt, level, text) self.recorder:log(rt, level, text) end,
  })
  local entry = { executor = executor }
  entry.thread = coroutine.create(function()
    while executor:run() ~= 'stopped' do coroutine.yield() end
  end)
  executor.idle_hook = idle_hook(self, entry)
  self.entries[#self.entries + 1] = entry
end

--- Runs all executors until everything is at rest. Raises when that takes more than `most` turns.
---@param most integer
function Drive:run(most)
  local first = turn_count(self)
  for _, entry in ipairs(self.entries) do
    entry.executor.turn_limit = entry.executor.turn_count + most
  end
  local quiet = 0
  while quiet < QUIET_ROUNDS do
    quiet = round(self) and 0 or quiet + 1
    if turn_count(self) - first >= most then
      error(('the topology does not come to rest: %d turns in one call (does a spout or a replay emit '
        .. 'without end?)'):format(most), 0)
    end
  end
end

--- Calls fn(rt) with every task.
function Drive:each_task(fn)
  for _, entry in ipairs(self.entries) do
    for _, id in ipairs(entry.executor.order) do fn(entry.executor.tasks[id]) end
  end
end

--- A task at run time by its id.
function Drive:task(id)
  for _, entry in ipairs(self.entries) do
    if entry.executor.tasks[id] then return entry.executor.tasks[id] end
  end
end

--- Metrics by task id: { [id] = { metrics = } }.
function Drive:reports()
  local out = {}
  for _, entry in ipairs(self.entries) do
    for id, report in pairs(entry.executor:report().tasks) do out[tonumber(id)] = report end
  end
  return out
end

--- Milliseconds until something happens by the clock alone.
---@return number
function Drive:due_ms()
  local due = math.huge
  for _, entry in ipairs(self.entries) do
    due = math.min(due, C.sl_abi_executor_due_ms(entry.executor.pointer))
  end
  return due
end

--- Moves the manual clock.
---@param ms number
function Drive:advance(ms)
  if C.sl_abi_worker_advance(self.worker.pointer, ms) ~= 0 then
    error('the clock can not be moved', 0)
  end
end

--- Calls close and cleanup of all tasks.
function Drive:close()
  for _, entry in ipairs(self.entries) do entry.executor:close() end
end

--- Executors with the tasks of a plan, none of them open yet.
---@param worker table streamlua.runtime.worker
---@param plan table
---@param recorder table streamlua.testing.recorder
function M.new(worker, plan, recorder)
  local self = setmetatable({ worker = worker, plan = plan, recorder = recorder, entries = {} }, Drive)
  for index = 0, plan.executors - 1 do add_executor(self, index) end
  return self
end

return M
