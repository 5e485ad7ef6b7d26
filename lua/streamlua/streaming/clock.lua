--- Clocks, recurring timers, rate estimators and the arithmetic of times; all in milliseconds.
--
--     local clocks = require 'streamlua.streaming.clock'
--     local clock, ticks = clocks.manual_clock(0), {}
--     local timer = clocks.recurring_timer { clock = clock, period = '100ms',
--       callback = function(ms) ticks[#ticks + 1] = ms end }
--     timer:start(0)
--     clock:advance(200)
--     assert(#ticks == 3 and timer:stop { interrupt = true } == 200)

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local site = require 'streamlua.streaming.site'
local units = require 'streamlua.units'

local C, ffi = abi.C, abi.ffi
local floor = math.floor

local M = {}

local function known(ms)
  if ms == C.SL_STREAMING_UNKNOWN then return nil end
  return ms
end

local function whole_ms(what, ms)
  if type(ms) ~= 'number' or ms ~= floor(ms) then
    site.raise('%s: expected whole milliseconds, got %s', what, tostring(ms))
  end
  return ms
end

---------------------------------------------------------------------------------------------------
-- the manual clock

---@class streamlua.ManualClock
local Clock = {}
Clock.__index = Clock

--- A clock that moves only when told. Timers and contexts that use it do what is due as it moves.
---@param start_ms? integer 0 when missing
---@return streamlua.ManualClock
function M.manual_clock(start_ms)
  local handle = C.sl_abi_streaming_clock_new(whole_ms('manual_clock', start_ms or 0))
  return setmetatable({
    handle = ffi.gc(handle, C.sl_abi_streaming_clock_free),
    -- What wants to be told when it moves, in order of their start; weak would lose running timers.
    followers = {},
  }, Clock)
end

--- Whether a value is a manual clock.
---@param item any
---@return boolean
function M.is(item) return getmetatable(item) == Clock end

--- The time in ms.
---@return integer
function Clock:now() return C.sl_abi_streaming_clock_now(self.handle) end

--- Moves it without telling anyone.
function Clock:move(ms) C.sl_abi_streaming_clock_set(self.handle, ms) end

--- Sets the time, forward or backward, and runs what is due then.
---@param ms integer
function Clock:set(ms)
  self:move(whole_ms('clock:set', ms))
  for _, follower in ipairs({ unpack(self.followers) }) do follower:clock_moved() end
end

--- Moves it on.
---@param ms integer
function Clock:advance(ms) self:set(self:now() + whole_ms('clock:advance', ms)) end

--- Tells `follower:clock_moved()` from now on.
function Clock:follow(follower) self.followers[#self.followers + 1] = follower end

--- Tells it no more.
function Clock:leave(follower)
  for i, other in ipairs(self.followers) do
    if other == follower then
      table.remove(self.followers, i)
      return
    end
  end
end

---------------------------------------------------------------------------------------------------
-- the recurring timer

local Timer = {}
Timer.__index = Timer

--- A timer that calls callback(nominal time) every period: as the manual clock moves, or, on the
--- system's clock, within its `run`.
---@param options { clock?: streamlua.ManualClock, period: number|string, callback: fun(ms: integer) }
function M.recurring_timer(options)
  if type(options) ~= 'table' then site.raise('recurring_timer: expected a table of options') end
  if options.clock ~= nil and not M.is(options.clock) then
    site.raise('recurring_timer: clock must be a manual clock')
  end
  local seconds, message = units.parse_duration(options.period)
  if not seconds then site.raise('recurring_timer: period: %s', message) end
  if type(options.callback) ~= 'function' then
    site.raise('recurring_timer: callback must be a function, got %s', type(options.callback))
  end
  local handle = C.sl_abi_recurring_timer_new(options.clock and options.clock.handle or nil,
    floor(seconds * 1000 + 0.5))
  if handle == nil then
    local _, failure = err.last()
    site.raise('recurring_timer: %s', tostring(failure))
  end
  return setmetatable({
    handle = ffi.gc(handle, C.sl_abi_recurring_timer_free),
    clock = options.clock,
    callback = options.callback,
  }, Timer)
end

--- The first multiple of the period after now.
function Timer:start_time() return C.sl_abi_recurring_timer_start_time(self.handle) end

--- The first time after now on the grid through `original`.
function Timer:restart_time(original)
  return C.sl_abi_recurring_timer_restart_time(self.handle, whole_ms('restart_time', original))
end

--- Calls the callback for all ticks that are due, in order.
function Timer:clock_moved()
  if self.is_firing then return end
  self.is_firing = true
  local ok, raised = true, nil
  while ok do
    local tick = C.sl_abi_recurring_timer_next(self.handle)
    if tick == C.SL_STREAMING_UNKNOWN then break end
    ok, raised = pcall(self.callback, tick)
  end
  self.is_firing = false
  if not ok then error(raised, 0) end
  if self:stopped() and self.clock then self.clock:leave(self) end
end

--- Starts it; returns the time of the first tick.
---@param ms? integer the next multiple of the period when missing
---@return integer
function Timer:start(ms)
  ms = ms == nil and self:start_time() or whole_ms('start', ms)
  if C.sl_abi_recurring_timer_start(self.handle, ms) < 0 then
    local _, failure = err.last()
    site.raise('recurring_timer: %s', tostring(failure))
  end
  if self.clock then self.clock:follow(self) end
  self:clock_moved()
  return ms
end

--- Runs a timer of the system's clock until `done()` is true; the callback is called meanwhile.
---@param done fun(): boolean
function Timer:run(done)
  local libc = require 'streamlua.connectors.libc'
  while not done() do
    self:clock_moved()
    local due = known(C.sl_abi_recurring_timer_due(self.handle))
    if not due or done() then return end
    libc.C.poll(nil, 0, math.max(0, due - C.sl_abi_streaming_clock_now(nil)))
  end
end

--- Stops it. With interrupt (the default) at once: returns the last nominal time that fired. Else the
--- tick it waits for still fires, and `stopped` tells that time afterwards.
---@param options? { interrupt?: boolean }
---@return integer?
function Timer:stop(options)
  local interrupt = not options or options.interrupt ~= false
  local last = C.sl_abi_recurring_timer_stop(self.handle, interrupt and 1 or 0)
  if interrupt and self.clock then self.clock:leave(self) end
  return known(last)
end

--- The last nominal time that fired, once it has stopped; nil before.
---@return integer?
function Timer:stopped() return known(C.sl_abi_recurring_timer_stopped(self.handle)) end

---------------------------------------------------------------------------------------------------
-- the rate estimator

local Pid = {}
Pid.__index = Pid

--- The PID rate estimator. Defaults: proportional 1, integral 0.2, derived 0, min_rate 100.
---@param options { batch_ms: integer, proportional?: number, integral?: number, derived?: number, min_rate?: number }
function M.pid_rate_estimator(options)
  if type(options) ~= 'table' then site.raise('pid_rate_estimator: expected a table of options') end
  if type(options.batch_ms) ~= 'number' then site.raise('pid_rate_estimator: batch_ms is missing') end
  local handle = C.sl_abi_pid_new(options.batch_ms, options.proportional or 1, options.integral or 0.2,
    options.derived or 0, options.min_rate or 100)
  if handle == nil then
    local _, failure = err.last()
    site.raise('pid_rate_estimator: %s', tostring(failure))
  end
  return setmetatable({ handle = ffi.gc(handle, C.sl_abi_pid_free) }, Pid)
end

--- Takes a completed batch; the new rate in records/s, nil when it says nothing.
---@return number?
function Pid:compute(time_ms, elements, processing_ms, scheduling_ms)
  return known(C.sl_abi_pid_compute(self.handle, time_ms, elements, processing_ms, scheduling_ms))
end

---------------------------------------------------------------------------------------------------
-- times

M.time = {}

local function check_step(what, step)
  if type(step) ~= 'number' or step <= 0 then site.raise('time.%s: the step must be above 0', what) end
end

--- The greatest multiple of d, counted from zero (0), that is not after t.
function M.time.floor(t, d, zero)
  check_step('floor', d)
  return C.sl_abi_time_floor(t, d, zero or 0)
end

local function range(from, to, step, is_closed)
  local out = {}
  for t = from, to, step do
    if t < to or is_closed then out[#out + 1] = t end
  end
  return out
end

--- The times from, from + step, ... before `to`.
function M.time.until_(from, to, step)
  check_step('until_', step)
  return range(from, to, step, false)
end

--- The same up to `to`.
function M.time.to(from, to, step)
  check_step('to', step)
  return range(from, to, step, true)
end

--- Whether t is a multiple of d.
function M.time.is_multiple_of(t, d)
  check_step('is_multiple_of', d)
  return C.sl_abi_time_is_multiple(t, d) == 1
end

return M
