--- The owner's side of a worker: makes the C worker from a plan, starts it, and hears its events.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'

local C, ffi = abi.C, abi.ffi

local M = {}

local Worker = {}
Worker.__index = Worker

local MIB = 1024 * 1024
-- Memory of all batches of a worker, and the sizes of one.
local POOL_BYTES = 48 * MIB
local BATCH_MOST, BATCH_LEAST, CREDIT = 65536, 2048, 4

local function check(result)
  if result < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
  return result
end

-- Batches get smaller when there are many outboxes, so that all of them fit the pool.
local function batch_bytes(plan)
  local outboxes = 0
  for _, reader in ipairs(plan.readers) do
    outboxes = outboxes + #reader.stream.component.tasks * #reader.component.tasks
  end
  local bytes = POOL_BYTES / math.max(1, outboxes * (CREDIT + 2))
  bytes = math.max(BATCH_LEAST, math.min(BATCH_MOST, bytes))
  return bytes - bytes % 64
end

local function count_tasks(plan, kind)
  local count = 0
  for _, task in ipairs(plan.tasks) do
    if task.component.code == kind then count = count + 1 end
  end
  return count
end

-- Ids, spouts and ackers that may be added later.
local ROOM = 1024

local function make(plan, options)
  local settings = plan.settings
  local last = plan.tasks[#plan.tasks].id
  local pointer = C.sl_abi_worker_new(ffi.new('struct sl_worker_options', {
    executors = plan.executors,
    is_acking = settings.acking and 1 or 0,
    message_timeout_ms = settings.message_timeout * 1000,
    max_spout_pending = settings.max_spout_pending,
    task_capacity = last + 1 + ROOM,
    spout_capacity = math.min(65536, count_tasks(plan, C.SL_TASK_SPOUT) + ROOM),
    acker_capacity = count_tasks(plan, C.SL_TASK_ACKER) + ROOM,
    batch_bytes = batch_bytes(plan),
    credit = CREDIT,
    pool_bytes = POOL_BYTES / plan.executors,
    is_manual_clock = options.is_manual and 1 or 0,
    manual_start_ms = options.start_ms or 0,
    seed = options.seed or 0,
  }))
  if pointer == nil then
    local _, failure = err.last()
    error(failure, 0)
  end
  return pointer
end

local function fill(pointer, plan)
  for _, component in ipairs(plan.components) do
    check(C.sl_abi_worker_component(pointer, component.name, component.code, component.rank,
      component.scc))
  end
  for _, stream in ipairs(plan.stream_list) do
    check(C.sl_abi_worker_stream(pointer, stream.component.index, stream.name, #stream.fields,
      stream.is_direct and 1 or 0))
  end
  for _, reader in ipairs(plan.readers) do
    local keys = ffi.new('int32_t[?]', #reader.keys + 1, reader.keys)
    check(C.sl_abi_worker_reader(pointer, reader.stream.index, reader.component.index,
      reader.grouping, keys, #reader.keys))
  end
  for _, task in ipairs(plan.tasks) do
    check(C.sl_abi_worker_task(pointer, task.component.index, task.id, task.index, task.executor))
  end
  for _, component in ipairs(plan.components) do
    if component.groups then
      local owners = ffi.new('int32_t[?]', #component.groups, component.groups)
      check(C.sl_abi_worker_groups(pointer, component.index, owners, #component.groups))
    end
  end
end

--- A worker for a plan, without threads yet. Raises an error value when it can not be made.
---@param plan table
---@param options? { is_manual?: boolean, start_ms?: number, seed?: integer }
function M.new(plan, options)
  local pointer = make(plan, options or {})
  local self = setmetatable({ pointer = pointer, plan = plan }, Worker)
  local ok, failure = pcall(fill, pointer, plan)
  if not ok then
    C.sl_abi_worker_free(pointer)
    error(failure, 0)
  end
  return self
end

--- Starts the executors; each evaluates the script that `boot` names.
---@param boot { script: string, set: table?, defaults: table?, verbose: boolean?, log: table? }
function Worker:start(boot)
  boot.executors = self.plan.executors
  local text = buffer.encode(boot)
  C.sl_abi_worker_set_boot(self.pointer, text, #text)
  check(C.sl_abi_worker_start(self.pointer))
end

--- Sends a command to one executor, or to all.
---@param command integer enum sl_command
---@param argument? integer
---@param executor? integer
function Worker:command(command, argument, executor)
  for index = executor or 0, executor or self.plan.executors - 1 do
    check(C.sl_abi_worker_command(self.pointer, index, command, argument or -1))
  end
end

local event_t = ffi.typeof('struct sl_event')

--- Waits for an event: {kind, task, executor, text}, or nil when the time has passed.
---@param timeout_ms number negative = for ever
---@return table?
function Worker:wait(timeout_ms)
  local event = event_t()
  if C.sl_abi_worker_wait(self.pointer, timeout_ms, event) == 0 then return nil end
  return { kind = event.kind, task = event.task, executor = event.executor,
    text = ffi.string(event.text, event.text_len) }
end

local stats_t = ffi.typeof('struct sl_task_stats')
local COUNTERS = { 'emitted', 'executed', 'acked', 'failed', 'errors', 'pending' }

--- Counters by component: { [name] = { emitted=, executed=, acked=, failed=, errors=, pending= } }.
function Worker:stats()
  local out = {}
  local stats = stats_t()
  for _, task in ipairs(self.plan.tasks) do
    local name = task.component.name
    local sums = out[name]
    if not sums then
      sums = {}
      for _, counter in ipairs(COUNTERS) do sums[counter] = 0 end
      out[name] = sums
    end
    if C.sl_abi_worker_stats(self.pointer, task.id, stats) == 0 then
      for _, counter in ipairs(COUNTERS) do sums[counter] = sums[counter] + stats[counter] end
    end
  end
  return out
end

local busy_t = ffi.typeof('struct sl_busy')

--- Which user code the executors are in: list of { task = planned task, for_ms = number }.
function Worker:busy()
  local out = {}
  local busy = busy_t()
  for index = 0, self.plan.executors - 1 do
    C.sl_abi_worker_busy(self.pointer, index, busy)
    if busy.task >= 0 then
      out[#out + 1] = { task = self.plan.task[busy.task], for_ms = busy.for_ms }
    end
  end
  return out
end

--- A quantile of the complete latency in milliseconds, nil without any; after the executors stopped.
function Worker:latency_ms(quantile)
  local value = C.sl_abi_worker_latency_ms(self.pointer, quantile)
  return value >= 0 and value or nil
end

function Worker:dropped_in_cycles() return C.sl_abi_worker_dropped_in_cycles(self.pointer) end

--- Waits for the threads, which must have been told to stop.
function Worker:join() C.sl_abi_worker_join(self.pointer) end

--- Frees the worker; its executors must have stopped.
function Worker:free()
  if self.pointer then
    C.sl_abi_worker_free(self.pointer)
    self.pointer = nil
  end
end

return M
