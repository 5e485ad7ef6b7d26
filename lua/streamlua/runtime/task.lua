--- A task at run time: the user's component in one executor, its loops, acks and replays.
--
-- It is a table `rt` whose functions the executor calls turn by turn. User code runs in protected
-- calls, one for a whole turn; an error costs the tuple it was raised for and is reported.
--
-- For streamlua.testing: `tap` (of the executor) hears of emits and completed roots, and `pause_ms()`,
-- when set, says how long a spout that emitted nothing is left alone.

local abi = require 'streamlua.abi'
local collectors = require 'streamlua.runtime.collector'
local contexts = require 'streamlua.runtime.context'
local driver = require 'streamlua.runtime.driver'
local raised = require 'streamlua.runtime.raised'
local replays = require 'streamlua.runtime.replay'
local tuples = require 'streamlua.runtime.tuple'

local C, ffi = abi.C, abi.ffi
local band, rshift = bit.band, bit.rshift
local setmetatable, xpcall = setmetatable, xpcall
local bytes_p = ffi.typeof('uint8_t *')
local SPOUT_NOTHING, SPOUT_DONE = tonumber(C.SL_SPOUT_NOTHING), tonumber(C.SL_SPOUT_DONE)
local SPOUT_EMITTED = tonumber(C.SL_SPOUT_EMITTED)

local Task = {}
Task.__index = Task

local M = {}

-- Calls a function of the component, if it has it. Returns false when it raised.
local function call(rt, name, ...)
  local fn = rt.definition[name]
  if not fn then return true end
  local ok, err = xpcall(fn, rt.handler, rt.self, ...)
  if not ok then rt.report_error(err, name) end
  return ok
end

-- Calls it outside of a turn, where C does not know which task is in user code.
local function call_alone(rt, name, ...)
  C.sl_abi_executor_calls(rt.executor.pointer, rt.planned.id)
  local ok = call(rt, name, ...)
  C.sl_abi_executor_calls(rt.executor.pointer, -1)
  return ok
end

---------------------------------------------------------------------------------------------------
-- bolts

-- The loop for a stream, made when its first batch comes.
local function bolt_loop(rt, stream)
  local loop = driver.bolt(rt.task, rt.plan.streams[stream].fields, {
    execute = rt.definition.execute,
    self = rt.self,
    collector = rt.collector,
    hold = rt.hold,
  })
  rt.loops[stream] = loop
  return loop
end

-- The tuple that raised has failed.
local function fail_current(rt)
  if rt.hold then
    if rt.held >= 0 then C.sl_abi_held_settle(rt.task, rt.held, 1) end
  else
    C.sl_abi_task_fail(rt.task)
  end
end

-- The loop raised: fails the tuple, reports the error, and goes on behind it, as often as needed.
-- Returns what the loop returns.
local function resume(rt, turn, loop, meta, texts, keys, err)
  local task, count = rt.task, turn.count
  while true do
    local record = task.record
    local done = C.sl_abi_batch_position(rt.executor.pointer, turn) + 1
    local head = ffi.cast(bytes_p, record) + record.len
    fail_current(rt)
    rt.report_error(err, 'execute')
    if done == count or task.yield ~= 0 then return done, head end
    local ok, ran, following = xpcall(loop, rt.handler, head, count - done, meta, texts,
      keys)
    if ok then return done + ran, following end
    err = ran
  end
end

local NO_KEYS = {}

-- The keys that this task has read from the sender of a turn, by number. Batches of one sender come in
-- order, so with the first one of another set those of the set before are of no more use.
local function keys_of(rt, turn)
  local sender = turn.stream * 4294967296 + turn.source
  local keys = rt.keys[sender]
  if not keys or keys.set ~= turn.known then
    keys = { set = turn.known }
    rt.keys[sender] = keys
  end
  keys.turn = turn
  return keys
end

--- Runs up to turn.count records from turn.head on.
function Task:run_batch(turn)
  local stream = turn.stream
  local loop = self.loops[stream] or bolt_loop(self, stream)
  local meta = tuples.meta(self.plan, turn.source, stream)
  local outer = self.meta
  self.meta = meta
  local texts = self.texts[turn.texts]
  local keys = turn.known ~= 0 and keys_of(self, turn) or NO_KEYS
  local ok, done, head = xpcall(loop, self.handler, turn.head, turn.count, meta, texts, keys)
  if not ok then done, head = resume(self, turn, loop, meta, texts, keys, done) end
  self.meta = outer
  C.sl_abi_batch_end(self.pointer, turn, done, head)
end

-- Tracks the tuple that is about to be executed until the user acks it.
local function hold_function(rt)
  return function(meta)
    local handle = C.sl_abi_task_hold(rt.task)
    rt.held = handle
    return tuples.meta(meta.plan, meta.source, meta.stream, handle)
  end
end

function Task:tick(now_ms) call(self, 'tick', self.collector, now_ms) end

function Task:finish() call(self, 'finish', self.collector) end

---------------------------------------------------------------------------------------------------
-- spouts

-- The loop over completed roots: returns when all are told; an error leaves `at` on the one told.
local function ack_loop(rt, state)
  local task, ids, self = rt.task, rt.ids, rt.self
  local on_ack, on_fail, kept = rt.definition.ack, rt.definition.fail, rt.replays
  local done, tap = task.done, rt.tap
  for i = state.at, state.count - 1 do
    state.at = i
    local entry = done[i]
    local slot = rshift(entry, 1)
    local id = ids[slot]
    if band(entry, 1) == 0 then
      if kept then kept:forget(slot) end
      if tap then tap.acked(rt, id) end
      if on_ack then on_ack(self, id) end
    elseif kept and kept:retry(slot) then
      state.reopen = true
    else
      state.has_failed = true
      if tap then tap.failed(rt, id) end
      if on_fail then on_fail(self, id) end
    end
    if state.is_cut then return end
  end
end

-- Runs a loop that counts in state.at until it comes to its end, past what raises.
local function run_all(rt, loop, state)
  repeat
    local ok, err = xpcall(loop, rt.handler, rt, state)
    if not ok then
      rt.report_error(err, 'ack')
      state.at = state.at + 1
    end
  until ok or state.is_cut or state.at >= state.count
end

-- Roots that completed during a call of next_tuple and whose slots were needed at once.
local function aside_loop(rt, state)
  local on_ack, on_fail = rt.definition.ack, rt.definition.fail
  local list, tap = state.list, rt.tap
  for i = state.at, state.count - 1 do
    state.at = i
    local entry = list[i + 1]
    local told = entry.has_failed and on_fail or not entry.has_failed and on_ack
    if tap then (entry.has_failed and tap.failed or tap.acked)(rt, entry.id) end
    if told then told(rt.self, entry.id) end
  end
end

--- Takes completed roots aside, so that their slots are free again inside a call of next_tuple, or of
--- an ack or fail that emits. What the loop over completed roots has told already is done with.
function Task:take_aside()
  local aside = self.aside or {}
  self.aside = aside
  local first = 0
  local telling = self.telling
  if telling and not telling.is_cut then
    telling.is_cut = true
    first = telling.at + 1
  end
  for i = first, self.task.done_count - 1 do
    local entry = self.task.done[i]
    local slot, has_failed = rshift(entry, 1), band(entry, 1) == 1
    local is_retried = false
    if self.replays then
      if has_failed then
        is_retried = self.replays:retry(slot)
      else
        self.replays:forget(slot)
      end
    end
    if is_retried then
      self.has_retried = true
    else
      aside[#aside + 1] = { id = self.ids[slot], has_failed = has_failed }
    end
  end
  C.sl_abi_roots_release(self.task, self.task.done_count)
end

-- Tells what was taken aside, also what is while it is told; whether any of it had failed.
local function tell_aside(rt)
  local has_failed = false
  while rt.aside do
    local aside = rt.aside
    rt.aside = nil
    run_all(rt, aside_loop, { at = 0, count = #aside, list = aside })
    for _, entry in ipairs(aside) do has_failed = has_failed or entry.has_failed end
  end
  return has_failed
end

--- Calls next_tuple up to turn.count times; replays that are due come first.
function Task:run_spout(turn)
  local pointer = self.executor.pointer
  local again_ms = -1
  if self.replays then
    local emitted
    emitted, again_ms = self.replays:emit_due(turn.count)
    if tell_aside(self) and self.definition.fail then self.is_user_done = false end
    if emitted > 0 then
      C.sl_abi_spout_end(pointer, turn, emitted, SPOUT_EMITTED, -1)
      return
    end
  end
  if self.is_user_done or turn.argument ~= 0 then
    local result = again_ms >= 0 and SPOUT_NOTHING or SPOUT_DONE
    C.sl_abi_spout_end(pointer, turn, 0, result, again_ms)
    return
  end
  local ok, calls, result = xpcall(self.loop, self.handler, turn.count)
  if not ok then
    self.report_error(calls, 'next_tuple')
    calls, result = 1, SPOUT_NOTHING
  elseif result == SPOUT_DONE then
    self.is_user_done = true
  end
  if tell_aside(self) and result == SPOUT_DONE and self.definition.fail then
    self.is_user_done = false
    result = SPOUT_NOTHING
  end
  if self.replays then
    again_ms = self.replays:due_in()
    if again_ms >= 0 and result == SPOUT_DONE then result = SPOUT_NOTHING end
  end
  if self.pause_ms and result == SPOUT_NOTHING then
    local pause = self.pause_ms()
    again_ms = again_ms < 0 and pause or math.min(again_ms, pause)
  end
  C.sl_abi_spout_end(pointer, turn, calls, result, again_ms)
end

--- Tells the spout of completed roots.
function Task:run_acks(turn)
  local state = { at = 0, count = turn.count, reopen = false, has_failed = false }
  self.telling, self.has_retried = state, false
  run_all(self, ack_loop, state)
  self.telling = nil
  if not state.is_cut then C.sl_abi_roots_release(self.task, state.count) end
  local has_failed = tell_aside(self) or state.has_failed
  if has_failed and self.definition.fail then self.is_user_done = false end
  if state.reopen or self.has_retried or (has_failed and self.definition.fail) then
    C.sl_abi_spout_reopen(self.task)
  end
  C.sl_abi_turn_end(self.executor.pointer, turn)
end

---------------------------------------------------------------------------------------------------
-- life

--- Gives the collector its emit functions, at first and whenever the routes change.
function Task:route()
  self.keys = {}
  collectors.route(self, self.executor)
  self.context.parallelism = #self.component.tasks
end

--- The task is detached: its memory in C is gone.
function Task:cut()
  collectors.cut(self)
  self.task = nil
end

--- Calls open or prepare; false when it raised. With `waits` the task begins nothing before `start`.
---@param waits? boolean
---@return boolean
function Task:open(waits)
  local name = self.component.kind == 'spout' and 'open' or 'prepare'
  if not call_alone(self, name, self.context) then return false end
  self.is_open = true
  self.waits = true
  if not waits then self:start() end
  return true
end

--- From now on an open task gets tuples, ticks, and is called.
function Task:start()
  self.waits = false
  local options = self.component.options
  if options.tick_every and self.definition.tick then
    C.sl_abi_task_tick(self.task, options.tick_every * 1000, options.tick_aligned and 1 or 0)
  end
  C.sl_abi_task_opened(self.task)
end

function Task:activate() call_alone(self, 'activate') end

function Task:deactivate() call_alone(self, 'deactivate') end

function Task:close()
  if self.is_open then
    call_alone(self, self.component.kind == 'spout' and 'close' or 'cleanup')
    self.is_open = false
  end
end

local function spout_parts(rt)
  local definition, task = rt.definition, rt.task
  local wants_acks = definition.ack or definition.fail or rt.component.options.replay or rt.tap
  task.wants_acks = wants_acks and 1 or 0
  if wants_acks then rt.ids = {} end
  if rt.component.options.replay then
    rt.replays = replays.new(rt, rt.component.options.replay)
    rt.keep = function(...) rt.replays:keep(...) end
  end
end

--- A task of the plan that has been attached to its executor.
---@param executor table streamlua.runtime.executor
---@param planned table the task in the plan: {id, component, index}
---@param pointer ffi.cdata* struct sl_task *
function M.new(executor, planned, pointer)
  local component = planned.component
  local rt = setmetatable({
    executor = executor,
    plan = executor.plan,
    planned = planned,
    component = component,
    definition = component.definition,
    task = pointer,
    -- The executor in C, one look-up away for the hot path.
    pointer = executor.pointer,
    texts = executor.texts,
    self = setmetatable({}, { __index = component.definition }),
    tap = executor.tap,
    loops = {},
    is_open = false,
  }, Task)
  rt.handler = raised.handler({ verbose = executor.verbose })
  rt.report_error = function(err, where) executor:report_error(rt, err, where) end
  if component.kind == 'spout' then
    spout_parts(rt)
  elseif component.options.manual_ack then
    pointer.manual_ack = 1
    rt.held = -1
    rt.hold = hold_function(rt)
  end
  rt.context = contexts.new(rt)
  rt.collector = collectors.new(rt)
  rt:route()
  if component.kind == 'spout' then
    rt.loop = driver.spout(pointer, {
      next_tuple = component.definition.next_tuple,
      self = rt.self,
      collector = rt.collector,
    })
  end
  return rt
end

return M
