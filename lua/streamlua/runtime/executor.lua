--- An executor: asks C for the next turn, runs it, and asks again.
--
-- The same loop serves a thread of its own (it blocks in C when there is nothing to do) and the
-- in-process cluster of streamlua.testing (it returns then, and `idle_hook` lets other executors of
-- the same Lua state run while an emit waits).

local abi = require 'streamlua.abi'
local collectors = require 'streamlua.runtime.collector'
local err = require 'streamlua.err'
local plans = require 'streamlua.runtime.plan'
local raised_text = require 'streamlua.runtime.raised'
local tasks = require 'streamlua.runtime.task'
local told = require 'streamlua.runtime.told'

local C, ffi = abi.C, abi.ffi
local new_table = require 'table.new'

local TURN_NONE, TURN_BATCH = tonumber(C.SL_TURN_NONE), tonumber(C.SL_TURN_BATCH)
local TURN_READY, TURN_TICK = tonumber(C.SL_TURN_READY), tonumber(C.SL_TURN_TICK)
local FLUSH_OK, FLUSH_RUN = tonumber(C.SL_FLUSH_OK), tonumber(C.SL_FLUSH_RUN)
local FLUSH_WAIT = tonumber(C.SL_FLUSH_WAIT)

local Executor = {}
Executor.__index = Executor

local M = {}

local turn_t = ffi.typeof('struct sl_turn')

local function last_message()
  local _, failure = err.last()
  return tostring(failure)
end

-- One turn for each level of nesting.
local function enter(self)
  local depth = self.depth + 1
  self.entered = self.entered + 1
  self.depth = depth
  local turn = self.turns[depth]
  if not turn then
    turn = turn_t()
    self.turns[depth] = turn
  end
  return turn
end

local function leave(self) self.depth = self.depth - 1 end

--- Milliseconds since the epoch by the worker's clock.
function Executor:now_ms() return C.sl_abi_executor_now_ms(self.pointer) end

---------------------------------------------------------------------------------------------------
-- waiting inside an emit

local function run_tick(self, turn)
  self.tasks[turn.task]:tick(turn.now_ms)
  C.sl_abi_turn_end(self.pointer, turn)
end

-- Runs what C named, or lets others run; what is wrong when nothing can move any more.
local function nested_step(self, turn, kind, what)
  if kind ~= TURN_NONE then self.turn_count = self.turn_count + 1 end
  if kind == TURN_BATCH then
    self.tasks[turn.task]:run_batch(turn)
  elseif kind == TURN_TICK then
    run_tick(self, turn)
  elseif kind < 0 then
    self.is_stopping = true
    return 'emit: ' .. last_message()
  elseif kind == TURN_NONE and not (self.idle_hook and self.idle_hook()) then
    return what
  end
end

local function find_room(self, outbox, need)
  collectors.too_large(need)
  while true do
    local result = C.sl_abi_outbox_flush(outbox, need)
    if result == FLUSH_OK then
      return
    elseif result == FLUSH_RUN then
      local turn = enter(self)
      local dest = outbox.dest
      if C.sl_abi_executor_nested(self.pointer, turn, dest) == TURN_BATCH then
        self.tasks[dest]:run_batch(turn)
      end
      leave(self)
      return
    elseif result ~= FLUSH_WAIT then
      collectors.user_error('emit: ' .. last_message())
    end
    local turn = enter(self)
    local kind, problem
    repeat
      kind = C.sl_abi_executor_await(self.pointer, turn, outbox, need, self.may_block)
      problem = nested_step(self, turn, kind, 'emit: the receiver takes no more')
    until kind == TURN_READY or problem
    leave(self)
    if problem then collectors.user_error(problem) end
  end
end

-- A batch of 64 KiB has no more records with one text, and a list may grow.
local TEXTS_OF_A_BATCH = 1638

--- Finds room for `need` bytes in an outbox, and makes the list of texts of the buffer it has then.
function Executor:flush(outbox, need)
  find_room(self, outbox, need)
  local texts = outbox.texts
  if texts > 0 and not self.texts[texts] then
    self.texts[texts] = new_table(TEXTS_OF_A_BATCH, 0)
  end
end

--- Waits for a free root of a spout. Completed ones are taken aside; they are told to the spout after
--- its call has returned.
function Executor:await_root(rt)
  local turn = enter(self)
  local problem
  while rt.task.is_full ~= 0 and not problem do
    local kind = C.sl_abi_executor_await_root(self.pointer, turn, rt.task, self.may_block)
    if rt.task.done_count > 0 then rt:take_aside() end
    problem = nested_step(self, turn, kind, 'emit: one call of next_tuple emitted more tuples with an '
      .. 'id than can be pending')
  end
  leave(self)
  if problem then collectors.user_error(problem) end
end

jit.off(find_room)
jit.off(Executor.flush)
jit.off(Executor.await_root)

---------------------------------------------------------------------------------------------------
-- turns

local function each_task(self, fn)
  for _, id in ipairs(self.order) do fn(self.tasks[id]) end
end

local function activate(self)
  local ok = true
  each_task(self, function(rt)
    if ok and not rt.is_open and not rt.is_closed then
      ok = rt:open(self.is_held)
      if not ok then
        self:post(C.SL_EVENT_BROKEN, rt.planned.id, rt.open_error or 'open failed')
      end
    end
  end)
  if not ok then return end
  each_task(self, function(rt)
    if rt.component.kind == 'spout' and not rt.waits then rt:activate() end
  end)
end

local commands = {
  [tonumber(C.SL_COMMAND_ACTIVATE)] = activate,
  [tonumber(C.SL_COMMAND_DEACTIVATE)] = function(self)
    each_task(self, function(rt)
      if rt.component.kind == 'spout' and rt.is_open and not rt.waits then rt:deactivate() end
    end)
  end,
  [tonumber(C.SL_COMMAND_ADD_TASK)] = function(self, id) return self:add(id, self.is_held) end,
  [tonumber(C.SL_COMMAND_REMOVE_TASK)] = function(self, id) return self:detach(id) end,
  [tonumber(C.SL_COMMAND_ROUTES)] = function(self)
    plans.refresh(self.plan, self.worker)
    local rc = C.sl_abi_executor_route(self.pointer)
    local problem = rc ~= 0 and last_message() or nil
    -- Also after a failure: some tasks may have new routes.
    each_task(self, function(rt) rt:route() end)
    return problem
  end,
  [tonumber(C.SL_COMMAND_DRAIN)] = function() end,
}

-- Carries a command out and tells the worker's owner; true when the executor should leave.
local function run_command(self, turn)
  local command = turn.command
  if command == C.SL_COMMAND_STOP then
    self.is_stopping = false
    return true
  end
  if command == C.SL_COMMAND_TELL then
    local size = ffi.new('size_t[1]')
    local text = C.sl_abi_executor_told(self.pointer, size)
    self:post(C.SL_EVENT_TOLD, turn.argument, told.answer(self, ffi.string(text, size[0])))
    return false
  end
  if command == C.SL_COMMAND_ACTIVATE then self.is_active = true end
  if command == C.SL_COMMAND_DEACTIVATE then self.is_active = false end
  local problem, is_later = commands[command](self, turn.argument)
  if is_later then return false end
  self:post(C.SL_EVENT_DONE, turn.argument, problem or '')
  return false
end

local runners = {
  [TURN_BATCH] = function(self, turn) self.tasks[turn.task]:run_batch(turn) end,
  [tonumber(C.SL_TURN_SPOUT)] = function(self, turn) self.tasks[turn.task]:run_spout(turn) end,
  [tonumber(C.SL_TURN_ACKS)] = function(self, turn) self.tasks[turn.task]:run_acks(turn) end,
  [TURN_TICK] = run_tick,
  [tonumber(C.SL_TURN_FINISH)] = function(self, turn)
    self.tasks[turn.task]:finish()
    C.sl_abi_turn_end(self.pointer, turn)
  end,
  [tonumber(C.SL_TURN_COMMAND)] = run_command,
}

-- The collector's pause in percent, so that a small heap is not collected all the time: words that come
-- again and again stay interned in between. From 24 MiB on it is LuaJIT's own.
local GC_HEADROOM_KIB, GC_PAUSE_LEAST, GC_PAUSE_MOST = 24 * 1024, 200, 1000
local TURNS_BETWEEN_TUNING = 4096

local function tune_collector()
  local heap = collectgarbage('count')
  local pause = 100 * (heap + GC_HEADROOM_KIB) / heap
  collectgarbage('setpause', math.max(GC_PAUSE_LEAST, math.min(GC_PAUSE_MOST, pause)))
end

-- The compiler keeps to the way that was taken first, when every key was new and every table empty. After
-- so many turns, nested ones among them, it starts afresh with what has become usual.
local FIRST_RECOMPILATION, LAST_RECOMPILATION, RECOMPILATION_FACTOR = 256, 4096, 16

local function recompile(self)
  if self.recompile_at == LAST_RECOMPILATION then
    self.recompile_at = math.huge
  else
    self.recompile_at = self.recompile_at * RECOMPILATION_FACTOR
  end
  jit.flush()
end

--- Runs turns until the executor is stopped or, without blocking, until there is nothing to do or
--- `turn_limit` is reached. Returns 'stopped' or 'idle', and whether any turn was run.
function Executor:run()
  local turn = enter(self)
  local has_run = false
  local turns = 0
  while true do
    if self.turn_count >= self.turn_limit then
      leave(self)
      return 'idle', has_run
    end
    if turns % TURNS_BETWEEN_TUNING == 0 and self.tunes_collector then tune_collector() end
    if turns + self.entered >= self.recompile_at then recompile(self) end
    turns = turns + 1
    local kind = C.sl_abi_executor_next(self.pointer, turn, self.may_block)
    if kind == TURN_NONE then
      leave(self)
      return 'idle', has_run
    end
    has_run = true
    self.turn_count = self.turn_count + 1
    if runners[kind](self, turn) then
      leave(self)
      return 'stopped', true
    end
  end
end

jit.off(Executor.run)

--- Attaches a task of the plan. Returns true, or false and why not.
function Executor:attach(id)
  local out = ffi.new('struct sl_task *[1]')
  if C.sl_abi_executor_attach(self.pointer, id, out) ~= 0 then return false, last_message() end
  local planned = self.plan.task[id]
  if not planned.component.definition then return true end
  self.tasks[id] = tasks.new(self, planned, out[0])
  self.order[#self.order + 1] = id
  local kept = self.kept[id]
  if kept and kept.component == planned.component.name then self.tasks[id].states = kept.states end
  self.kept[id] = nil
  return true
end

--- Attaches a task of the plan and opens it, if that is not done later for all of them. Returns why it can
--- not, or nil.
---@param id integer
---@param waits boolean it begins nothing before it is let
---@return string?
function Executor:add(id, waits)
  local known = self.plan.task[id]
  if not known or known.is_gone then plans.refresh(self.plan, self.worker) end
  if self.plan.is_site then plans.refresh_key_groups(self.plan, self.worker) end
  local ok, problem = self:attach(id)
  if not ok then return problem end
  local rt = self.tasks[id]
  if not rt or not (self.is_active or self.plan.is_site) then return nil end
  if not rt:open(waits) then
    return ('%s[%d]: %s'):format(rt.component.name, self.plan.task[id].index,
      rt.open_error or 'open failed')
  end
  if rt.component.kind == 'spout' and self.is_active and not waits then rt:activate() end
end

--- Holds the executor: no task ticks, and those that are opened wait. Or lets all of them begin.
---@param is_held boolean
---@param has_way boolean bolts begin only when nothing that they have emitted is under way
function Executor:hold(is_held, has_way)
  self.is_held = is_held
  local hold = has_way and C.SL_HOLD_TICKS_AND_WAY or C.SL_HOLD_TICKS
  C.sl_abi_executor_hold(self.pointer, is_held and hold or C.SL_HOLD_NOTHING)
  if is_held then return end
  each_task(self, function(rt)
    if not rt.waits then return end
    rt:start()
    if rt.component.kind == 'spout' and self.is_active then rt:activate() end
  end)
end

--- Cleans a task up and lets it go. Returns why it can not, or nil and whether that comes later: its
--- cleanup has emitted something.
function Executor:detach(id)
  local rt = self.tasks[id]
  if rt then
    rt:close()
    rt.is_closed = true
  end
  if C.sl_abi_executor_detach(self.pointer, id) ~= 0 then
    local _, failure = err.last()
    if failure.code ~= 'EAGAIN' then return tostring(failure) end
    C.sl_abi_worker_command(self.worker, C.sl_abi_executor_index(self.pointer),
      C.SL_COMMAND_REMOVE_TASK, id)
    return nil, true
  end
  if not rt then return nil end
  rt:cut()
  self.gone[tostring(id)] = rt.metrics:totable()
  if self.plan.is_site then
    self.kept[id] = { component = rt.component.name, states = rt.states }
  end
  self.tasks[id] = nil
  for i, other in ipairs(self.order) do
    if other == id then
      table.remove(self.order, i)
      break
    end
  end
end

--- Calls close and cleanup of all tasks.
function Executor:close()
  each_task(self, function(rt)
    rt:close()
    rt.is_closed = true
  end)
end

---------------------------------------------------------------------------------------------------
-- what others hear of it

--- Posts an event to the worker's owner.
function Executor:post(kind, task, text)
  C.sl_abi_worker_post(self.worker, kind, task, C.sl_abi_executor_index(self.pointer), text, #text)
end

--- Reports an error that user code raised or told.
---@param rt table
---@param raised any
---@param where? string the function that raised; nil = collector:report_error
function Executor:report_error(rt, raised, where)
  -- An emit that gave up since the executor stops is nobody's mistake.
  if self.is_stopping then return end
  local text = raised_text.place(raised_text.text(raised), where and rt.definition[where])
  if rt.task then C.sl_abi_task_count_error(rt.task) end
  if where == 'open' or where == 'prepare' then
    rt.open_error = text
    return
  end
  self:post(C.SL_EVENT_ERROR, rt.planned.id, text)
end

--- Writes a line of user code's log.
function Executor:log(rt, level, text) self.write_log(rt, level, text) end

--- What the summary and the progress say of this executor's tasks beyond the counters of C.
---@return table { tasks = { [id as text] = { metrics = {} } } }
function Executor:report()
  local out = {}
  each_task(self, function(rt)
    local metrics = rt.metrics:totable()
    if next(metrics) then out[tostring(rt.planned.id)] = { metrics = metrics } end
  end)
  for id, metrics in pairs(self.gone) do
    if next(metrics) and not out[id] then out[id] = { metrics = metrics } end
  end
  return { tasks = out }
end

---@class streamlua.ExecutorOptions
---@field worker ffi.cdata* struct sl_worker *
---@field index integer
---@field plan table
---@field may_block boolean
---@field verbose? boolean
---@field write_log fun(rt: table, level: string, text: string)
---@field tap? { emitted: fun(rt, stream, values), acked: fun(rt, id), failed: fun(rt, id) }

--- An executor with all its planned tasks attached. Raises when one can not be.
---@param options streamlua.ExecutorOptions
function M.new(options)
  local self = setmetatable({
    worker = options.worker,
    pointer = C.sl_abi_worker_executor(options.worker, options.index),
    plan = options.plan,
    may_block = options.may_block and 1 or 0,
    -- A thread's state is the executor's own; the state of a test is not.
    tunes_collector = options.may_block and os.getenv('SL_GC') ~= 'stress',
    verbose = options.verbose,
    write_log = options.write_log,
    tasks = {},
    order = {},
    -- Metrics of tasks that were removed, by id as text.
    gone = {},
    -- State of tasks that have left, until the plan without them is committed: see told.lua.
    kept = {},
    turns = {},
    -- Strings under way inside this executor by number of their batch; 0: none.
    texts = { [0] = false },
    -- Turns that were run, and steps of waits in which something moved.
    turn_count = 0,
    turn_limit = math.huge,
    depth = 0,
    -- Turns begun inside others, and the number of turns at which traces are thrown away.
    entered = 0,
    recompile_at = options.may_block and FIRST_RECOMPILATION or math.huge,
    tap = options.tap,
    is_active = false,
    is_held = false,
  }, Executor)
  for _, planned in ipairs(options.plan.tasks) do
    if planned.executor == options.index then
      local ok, problem = self:attach(planned.id)
      if not ok then error(problem, 0) end
    end
  end
  return self
end

return M
