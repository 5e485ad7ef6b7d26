--- Runs a stream program in this process: `streamlua run` on a script that returns its context.
--
-- The main thread is the driver: it generates jobs and does what C says is next. A pool of threads, each
-- with a Lua state that has evaluated the script, runs the tasks, the output operations and the
-- receivers. It ends when the program stops its context, when the time to live has passed, or on a
-- signal; both stop it gracefully. A second signal ends it at once.

local abi = require 'streamlua.abi'
local message = require 'streamlua.streaming.message'
local pools = require 'streamlua.streaming.pool'
local recovery = require 'streamlua.streaming.recovery'
local receivers = require 'streamlua.streaming.receivers'

local C = abi.C

local M = {}

-- How long threads may take to leave once everything has stopped.
local STOP_MS = 5000
-- The same after a second signal.
local ABORT_MS = 250

local Run = {}
Run.__index = Run

local function receiver_count(context)
  local count = 0
  for _, stream in pairs(context.streams) do
    if stream.receiver then count = count + 1 end
  end
  return count
end

-- Slots: one for each receiver and at least one for tasks.
local function slots_of(context, executors)
  local needed = receiver_count(context)
  return executors or math.max(C.sl_abi_core_count(), needed + 1), needed
end

-- Output operations of the program run on the pool's thread for them.
local function output_runner(pool)
  return function(stream, rdd, time)
    if stream.runs_in_driver then
      stream:run_job(rdd, time)
      return
    end
    pool:run_output(stream.node, time, rdd)
  end
end

local function stop(self, reason, graceful)
  if not self.reason then self.reason = reason end
  C.sl_abi_streaming_stop(self.context.handle, graceful and 1 or 0)
end

local function on_signal(self, number)
  if self.signal then
    self.is_aborted = true
    return
  end
  self.signal = number
  if self.on_stop then self.on_stop('signal') end
  stop(self, 'signal', true)
end

--- A pool for a context, with a driver that is to be run by its caller: jobs, output operations and
--- receivers of the context go there. Options are those of a pool, `on_event` and `on_stop(is_graceful)`,
--- which is called when the program stops its context.
---@param context streamlua.StreamingContext
---@param options table
---@return table pool
function M.connect(context, options)
  options.script, options.context = context.script, context
  local pool = pools.new(options)
  pool.keep = context.env.keep
  context.env = pool
  context.is_driven = true
  context.receivers = receivers.remote(context, pool)
  context.spawn = function(fn) pool:spawn(fn) end
  context.before_work = function() return pool:hear_all() end
  context.run_output = output_runner(pool)
  context.on_event = options.on_event
  pool:on(message.STOP, function(document)
    local is_graceful = document and document.graceful or false
    options.on_stop(is_graceful)
    C.sl_abi_streaming_stop(context.handle, is_graceful and 1 or 0)
  end)
  pool:on(message.WARNING, function(document) context:warn('%s', document.text) end)
  return pool
end

-- Waits until every thread has evaluated the script.
local function await_ready(self)
  while self.pool.ready < self.pool.members do
    self.pool:hear(-1)
    if self.pool.broken then error(self.pool.broken, 0) end
    if self.is_aborted then return false end
  end
  return true
end

local function work(self)
  local context = self.context
  while not self.is_aborted do
    local what, due = context:work_off()
    if what == 'stopped' then return end
    if self.pool.broken and not self.failure then
      self.failure = self.pool.broken
      stop(self, 'failed', false)
    end
    local wait_ms = due and math.max(1, math.min(3600000, due - context:now())) or 3600000
    if self.ttl_until and not self.reason then
      local left = self.ttl_until - C.sl_abi_monotonic_ms()
      wait_ms = math.min(wait_ms, left)
      if left <= 0 then
        if self.on_stop then self.on_stop('ttl') end
        stop(self, 'ttl', true)
      end
    end
    if wait_ms > 0 then C.sl_abi_streaming_wait(context.handle, math.ceil(wait_ms)) end
  end
end

---@class streamlua.StreamRunOptions
---@field executors? integer slots: threads for receivers and tasks
---@field ttl_ms? number
---@field set? table
---@field defaults? table
---@field on_event? fun(name: string, document: table)
---@field on_stop? fun(reason: 'ttl'|'signal')

--- Runs a context that was loaded from a script. Returns {reason = 'stopped' | 'ttl' | 'signal' |
--- 'failed', signal=, failure=, is_stuck=, seconds=, documents = batches}. Raises when it can not start.
---@param context streamlua.StreamingContext
---@param options streamlua.StreamRunOptions
---@return table
function M.run(context, options)
  local started = C.sl_abi_monotonic_ms()
  local slots, needed = slots_of(context, options.executors)
  context:add_worker('local', slots)
  local self = setmetatable({
    context = context,
    ttl_until = options.ttl_ms and started + options.ttl_ms,
    on_stop = options.on_stop,
  }, Run)
  local pool = M.connect(context, { executors = math.max(1, slots - needed), receivers = needed,
    set = options.set, defaults = options.defaults, on_event = options.on_event,
    on_stop = function() self.reason = self.reason or 'stopped' end })
  self.pool = pool
  pool.on_signal = function(number) on_signal(self, number) end
  C.sl_abi_crew_catch_signals(pool.crew)
  pool:start()
  local ok, raised = pcall(function()
    if await_ready(self) then
      if context.checkpoint_found and not context.is_restored then
        recovery.restore(context, context.checkpoint_found)
      end
      context:start()
      work(self)
    end
  end)
  if not pool:stop(function() return self.is_aborted and ABORT_MS or STOP_MS end) then
    return { reason = self.reason or 'failed', is_stuck = true, signal = self.signal,
      failure = not ok and raised or nil, seconds = (C.sl_abi_monotonic_ms() - started) / 1000 }
  end
  C.sl_abi_crew_catch_signals(nil)
  pool:close()
  if not ok then error(raised, 0) end
  return {
    reason = self.failure and 'failed' or self.reason or 'stopped',
    signal = self.signal,
    failure = self.failure,
    seconds = (C.sl_abi_monotonic_ms() - started) / 1000,
  }
end

return M
