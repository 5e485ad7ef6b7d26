--- The owner's side of a worker: makes the C worker from a plan, starts it, hears its events, and
--- changes its tasks while they run.
--
--     assert(worker:change({ add = { { component = 'count' } }, remove = { 7 } }))
--
-- A change has phases: the new tasks are planned, attached and opened; the tasks that go leave the
-- plan, and keys get their new owners; every executor builds its routes anew, from when on the new
-- tasks get tuples and the old ones get none; the old ones finish what they have and are cleaned up;
-- the routes forget them. Between a sender and a receiver tuples keep their order all the time. Keyed
-- state stays where it is: who changes the owners of key groups moves it, while the spouts rest.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local native = require 'streamlua.topology.native'
local plans = require 'streamlua.runtime.plan'

local C, ffi = abi.C, abi.ffi

local M = {}

local Worker = {}
Worker.__index = Worker

local MIB = 1024 * 1024
-- Memory of all batches of a worker, and the sizes of one.
local POOL_BYTES = 48 * MIB
local BATCH_MOST, BATCH_LEAST = 65536, 2048
-- Batches under way from one task to another: more of them keep executors from waiting for each other.
local CREDIT_MOST, CREDIT_LEAST = 8, 4

local function check(result)
  if result < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
  return result
end

-- Credit and bytes of batches get smaller when there are many outboxes, so that all of them fit the pool.
local function batch_sizes(plan)
  local outboxes = 0
  for _, reader in ipairs(plan.readers) do
    outboxes = outboxes + reader.stream.component.planned * reader.component.planned
  end
  local share = POOL_BYTES / math.max(1, outboxes)
  local credit = math.max(CREDIT_LEAST, math.min(CREDIT_MOST, math.floor(share / BATCH_MOST) - 2))
  local bytes = math.max(BATCH_LEAST, math.min(BATCH_MOST, share / (credit + 2)))
  return credit, bytes - bytes % 64
end

local function count_tasks(plan, kind)
  local count = 0
  for _, task in ipairs(plan.tasks) do
    if task.component.code == kind then count = count + 1 end
  end
  return count
end

-- What stands for no limit: 31 years, and more roots than a spout task has slots for.
local TIMEOUT_MS_MOST, PENDING_MOST = 1e12, 2 ^ 31 - 1

-- Ids, spouts and ackers that may be added later.
local ROOM = 1024

-- Ids that tasks may have in a topology that spans processes, where roots carry those of spouts.
local SITE_IDS = 65536

local function make(plan, options)
  local settings = plan.settings
  local credit, bytes = batch_sizes(plan)
  local ids = plan.is_site and SITE_IDS or plan.tasks[#plan.tasks].id + 1 + ROOM
  local pointer = C.sl_abi_worker_new(ffi.new('struct sl_worker_options', {
    executors = plan.executors,
    is_acking = settings.acking and 1 or 0,
    message_timeout_ms = math.min(settings.message_timeout * 1000, TIMEOUT_MS_MOST),
    max_spout_pending = math.min(settings.max_spout_pending, PENDING_MOST),
    task_capacity = ids,
    spout_capacity = math.min(65536, count_tasks(plan, C.SL_TASK_SPOUT) + ROOM),
    acker_capacity = math.min(65536, count_tasks(plan, C.SL_TASK_ACKER) + ROOM),
    batch_bytes = bytes,
    credit = credit,
    pool_bytes = POOL_BYTES / plan.executors,
    is_manual_clock = options.is_manual and 1 or 0,
    manual_start_ms = options.start_ms or 0,
    seed = options.seed or 0,
    remote_window = options.remote_window or 0,
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
---@param options? { is_manual?: boolean, start_ms?: number, seed?: integer, remote_window?: integer }
function M.new(plan, options)
  local pointer = make(plan, options or {})
  local self = setmetatable({ pointer = pointer, plan = plan, early = {},
    last_id = #plan.tasks > 0 and plan.tasks[#plan.tasks].id or 0 }, Worker)
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
  boot.executors, boot.is_site = self.plan.executors, self.plan.is_site
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

-- The next event of C.
local function take(self, timeout_ms)
  local event = event_t()
  if C.sl_abi_worker_wait(self.pointer, timeout_ms, event) == 0 then return nil end
  return { kind = event.kind, task = event.task, executor = event.executor,
    text = ffi.string(event.text, event.text_len) }
end

--- Waits for an event: {kind, task, executor, text}, or nil when the time has passed.
---@param timeout_ms number negative = for ever
---@return table?
function Worker:wait(timeout_ms)
  -- What came while a change waited for something else.
  local early = table.remove(self.early, 1)
  if early then return early end
  return take(self, timeout_ms)
end

---------------------------------------------------------------------------------------------------
-- changes of the tasks

local function refuse(code, message, ...) return nil, err.new(code, message:format(...)) end

-- Errors of user code that nobody has asked for yet; C bounds those that it holds itself.
local MOST_EARLY = 4096

-- Waits until all of `pending` (executor .. ':' .. argument -> true) are DONE. Returns nil and what
-- went wrong first, or which are missing when the time is over.
local function await_done(self, pending, options)
  local deadline = C.sl_abi_monotonic_ms() + options.limit_ms
  local failure
  while next(pending) do
    local left = math.max(0, deadline - C.sl_abi_monotonic_ms())
    local event = take(self, options.pump and 0 or left)
    if event and event.kind == C.SL_EVENT_DONE and pending[event.executor .. ':' .. event.task] then
      pending[event.executor .. ':' .. event.task] = nil
      if event.text ~= '' then failure = failure or err.new('EUSER', event.text) end
    elseif event and options.on_event then
      options.on_event(event)
    elseif event then
      if event.kind ~= C.SL_EVENT_ERROR or #self.early < MOST_EARLY then
        self.early[#self.early + 1] = event
      end
    elseif (options.pump and not options.pump()) or (not options.pump and left == 0) then
      failure = failure or err.new('ETIMEDOUT', 'an executor has not done what it was told in time')
      break
    end
  end
  if failure then return nil, failure end
  return true
end

-- Arguments of ROUTES that tell its DONE from any other.
local ROUTES_FIRST = 2 ^ 30

local function route(self, options)
  self.routes = (self.routes or ROUTES_FIRST) + 1
  if self.routes == 2 ^ 31 - 1 then self.routes = ROUTES_FIRST end
  local pending = {}
  for index = 0, self.plan.executors - 1 do
    self:command(C.SL_COMMAND_ROUTES, self.routes, index)
    pending[index .. ':' .. self.routes] = true
  end
  return await_done(self, pending, options)
end

--- Has all executors build their routes anew, and waits.
---@param options { limit_ms: number, on_event?: fun(event: table), pump?: fun(): boolean }
function Worker:route(options) return route(self, options) end

--- Sends a command to all executors and waits until it has been carried out.
function Worker:command_all(command, options)
  local pending = {}
  for index = 0, self.plan.executors - 1 do
    self:command(command, -1, index)
    pending[index .. ':-1'] = true
  end
  return await_done(self, pending, options)
end

-- Sends each task's executor a command about it and waits.
local function command_tasks(self, command, tasks, options)
  local pending = {}
  for _, task in ipairs(tasks) do
    self:command(command, task.id, task.executor)
    pending[task.executor .. ':' .. task.id] = true
  end
  return await_done(self, pending, options)
end

--- Tells executors what to do (see told.lua): requests by executor. Returns their answers by executor, or
--- nil and an error.
---@param requests table<integer, table>
---@param options { limit_ms: number }
function Worker:tell(requests, options)
  self.told = (self.told or 0) + 1
  local answers, missing, failure = {}, {}, nil
  for index, request in pairs(requests) do
    local text = buffer.encode(request)
    check(C.sl_abi_worker_tell(self.pointer, index, self.told, text, #text))
    missing[index] = true
  end
  local deadline = C.sl_abi_monotonic_ms() + options.limit_ms
  while next(missing) do
    local left = deadline - C.sl_abi_monotonic_ms()
    local event = take(self, math.max(0, left))
    if event and event.kind == C.SL_EVENT_TOLD then
      if event.task == self.told then
        local answer = buffer.decode(event.text)
        missing[event.executor], answers[event.executor] = nil, answer.value
        failure = failure or answer.problem and err.new('EUSER', answer.problem)
      end
    elseif event then
      self.early[#self.early + 1] = event
    elseif left <= 0 then
      return nil, err.new('ETIMEDOUT', 'an executor has not done what it was told in time')
    end
  end
  if failure then return nil, failure end
  return answers
end

--- Has planned tasks ({id=, executor=}) attached and opened, and waits.
function Worker:open_tasks(tasks, options)
  return command_tasks(self, C.SL_COMMAND_ADD_TASK, tasks, options)
end

--- Has tasks that left the plan let go when they are drained, and waits.
function Worker:remove_tasks(tasks, options)
  return command_tasks(self, C.SL_COMMAND_REMOVE_TASK, tasks, options)
end

-- The executor with the fewest tasks, counting those to be added.
local function idlest_executor(self, added)
  local counts = {}
  for index = 0, self.plan.executors - 1 do counts[index] = 0 end
  for _, task in ipairs(self.plan.tasks) do counts[task.executor] = counts[task.executor] + 1 end
  for _, task in ipairs(added) do counts[task.executor] = counts[task.executor] + 1 end
  local best = 0
  for index = 1, self.plan.executors - 1 do
    if counts[index] < counts[best] then best = index end
  end
  return best
end

local function is_planned(self, id)
  return C.sl_abi_worker_planned(self.pointer, id, ffi.new('struct sl_planned')) == 0
end

-- The tasks to add as {id, component, index, executor}, or nil and why not.
local function plan_added(self, wanted)
  local added, of_component = {}, {}
  for _, spec in ipairs(wanted or {}) do
    local component = self.plan.by_name[spec.component]
    if not component or not component.definition then
      return refuse('ENOTFOUND', "no component '%s'", tostring(spec.component))
    end
    local before = of_component[component] or 0
    of_component[component] = before + 1
    if spec.id and is_planned(self, spec.id) then
      return refuse('EEXIST', 'there is a task %d already', spec.id)
    end
    if not spec.id then self.last_id = self.last_id + 1 end
    added[#added + 1] = {
      id = spec.id or self.last_id,
      component = component,
      index = spec.index or #component.tasks + before,
      executor = spec.executor or idlest_executor(self, added),
    }
    self.last_id = math.max(self.last_id, added[#added].id)
  end
  return added
end

-- The tasks to remove, or nil and why not.
local function plan_removed(self, wanted)
  local removed = {}
  for _, id in ipairs(wanted or {}) do
    local task = self.plan.task[id]
    if not task or task.component.code == C.SL_TASK_ACKER or not is_planned(self, id) then
      return refuse('ENOTFOUND', 'no task %s', tostring(id))
    end
    removed[#removed + 1] = task
  end
  return removed
end

-- The ids that every component concerned has afterwards, ascending, or nil and why not.
local function plan_result(added, removed)
  local result, is_removed = {}, {}
  for _, task in ipairs(removed) do is_removed[task.id] = true end
  for _, list in ipairs({ added, removed }) do
    for _, task in ipairs(list) do result[task.component] = {} end
  end
  for component, ids in pairs(result) do
    for _, id in ipairs(component.tasks) do
      if not is_removed[id] then ids[#ids + 1] = id end
    end
  end
  for _, task in ipairs(added) do table.insert(result[task.component], task.id) end
  for component, ids in pairs(result) do
    if #ids == 0 then return refuse('EINVAL', "component '%s' must keep a task", component.name) end
    table.sort(ids)
  end
  return result
end

local function check_groups(component, groups, ids)
  local is_task = {}
  for _, id in ipairs(ids) do is_task[id] = true end
  if #groups ~= #component.groups then
    return refuse('EINVAL', "component '%s' has %d key groups, not %d", component.name,
      #component.groups, #groups)
  end
  for group, id in ipairs(groups) do
    if not is_task[id] then
      return refuse('EINVAL', "key group %d of component '%s' is given to task %s, which is none of it",
        group - 1, component.name, tostring(id))
    end
  end
  return groups
end

-- The owners of key groups of every component concerned that is read by fields, or nil and why not.
local function plan_groups(result, given)
  local planned = {}
  for component, ids in pairs(result) do
    if component.groups then
      local groups, failure
      if given and given[component.name] then
        groups, failure = check_groups(component, given[component.name], ids)
      else
        groups, failure = native.rebalance_key_groups(component.groups, ids)
      end
      if not groups then return nil, failure end
      planned[component] = groups
    end
  end
  return planned
end

local function set_groups(self, planned)
  for component, groups in pairs(planned) do
    local owners = ffi.new('int32_t[?]', #groups, groups)
    check(C.sl_abi_worker_groups(self.pointer, component.index, owners, #groups))
    component.groups = groups
  end
end

-- Takes tasks back that could not be added; nobody has sent them anything.
local function undo_added(self, added, options)
  local attached = {}
  for _, task in ipairs(added) do
    if C.sl_abi_worker_remove_task(self.pointer, task.id) == 0 and is_planned(self, task.id) then
      attached[#attached + 1] = task
    end
  end
  command_tasks(self, C.SL_COMMAND_REMOVE_TASK, attached, options)
  route(self, options)
  plans.refresh(self.plan, self.pointer)
end

local function add(self, added, options)
  for i, task in ipairs(added) do
    if C.sl_abi_worker_task(self.pointer, task.component.index, task.id, task.index,
      task.executor) < 0 then
      local _, failure = err.last()
      for k = 1, i - 1 do C.sl_abi_worker_remove_task(self.pointer, added[k].id) end
      -- The plan is what it was, but newer than the routes, which ends of input wait for.
      if i > 1 then route(self, options) end
      return nil, failure
    end
  end
  local ok, failure = command_tasks(self, C.SL_COMMAND_ADD_TASK, added, options)
  if not ok then
    undo_added(self, added, options)
    return nil, failure
  end
  return true
end

-- How long executors may take for what waits for no tuple, unless they are in user code.
local QUICK_MS = 30000

---@class streamlua.WorkerChange
---@field add? { component: string, id?: integer, index?: integer, executor?: integer }[] defaults: the
---highest id so far + 1, the next index of the component, the executor with the fewest tasks
---@field remove? integer[] ids of tasks
---@field groups? table<string, integer[]> owner of each key group of components read by fields; unset:
---as few groups as possible change their owner

---@class streamlua.ChangeOptions
---@field drain_ms? number how long the removed tasks may take to finish what they have; default 1.5
---message time-outs, after which every tuple has been settled
---@field on_event? fun(event: table) hears what else happens meanwhile; unset: `wait` tells later
---@field pump? fun(): boolean runs executors that have no thread; false when nothing moves any more

--- Adds and removes tasks of a running worker. Returns true, or nil and an error: the change was refused
--- or taken back (ENOTFOUND, EINVAL, EEXIST, ELIMIT; EUSER: a new task could not open), or (ETIMEDOUT)
--- removed tasks are still draining; to call it again with the same `remove` waits for them again.
---@param change streamlua.WorkerChange
---@param options? streamlua.ChangeOptions
function Worker:change(change, options)
  options = options or {}
  local added, failure = plan_added(self, change.add)
  if not added then return nil, failure end
  local removed
  removed, failure = plan_removed(self, change.remove)
  if not removed then return nil, failure end
  local result, groups
  result, failure = plan_result(added, removed)
  if not result then return nil, failure end
  groups, failure = plan_groups(result, change.groups)
  if not groups then return nil, failure end
  local quick = { limit_ms = QUICK_MS, on_event = options.on_event, pump = options.pump }
  local ok
  ok, failure = add(self, added, quick)
  if not ok then return nil, failure end
  for _, task in ipairs(removed) do check(C.sl_abi_worker_remove_task(self.pointer, task.id)) end
  plans.refresh(self.plan, self.pointer)
  set_groups(self, groups)
  ok, failure = route(self, quick)
  if not ok or #removed == 0 then return ok, failure end
  ok, failure = command_tasks(self, C.SL_COMMAND_REMOVE_TASK, removed, {
    limit_ms = options.drain_ms or self.plan.settings.message_timeout * 1500,
    on_event = options.on_event,
    pump = options.pump,
  })
  if not ok then return nil, failure end
  -- Now nobody counts on them any more.
  return route(self, quick)
end

--- Adds one task; see change. Returns its id, or nil and an error.
---@param spec { component: string, id?: integer, index?: integer, executor?: integer }
---@param options? streamlua.ChangeOptions
function Worker:add_task(spec, options)
  local ok, failure = self:change({ add = { spec } }, options)
  if not ok then return nil, failure end
  return spec.id or self.last_id
end

--- Removes one task; see change. Returns true, or nil and an error.
---@param id integer
---@param options? streamlua.ChangeOptions
function Worker:remove_task(id, options) return self:change({ remove = { id } }, options) end

---------------------------------------------------------------------------------------------------
-- looking in

local stats_t = ffi.typeof('struct sl_task_stats')
local COUNTERS = { 'emitted', 'executed', 'acked', 'failed', 'errors', 'queued', 'pending' }

--- Counters by component: { [name] = { emitted=, executed=, acked=, failed=, errors=, queued=, pending=,
--- latency_ms= of its slowest task at present, nil = not known } }.
function Worker:stats()
  local out = {}
  local stats = stats_t()
  local function count(sums)
    for _, counter in ipairs(COUNTERS) do sums[counter] = (sums[counter] or 0) + stats[counter] end
  end
  for _, component in ipairs(self.plan.components) do
    local sums = {}
    out[component.name] = sums
    -- Those of tasks that were removed.
    check(C.sl_abi_worker_gone_stats(self.pointer, component.index, stats))
    count(sums)
  end
  for id, task in pairs(self.plan.task) do
    if C.sl_abi_worker_stats(self.pointer, id, stats) == 0 then
      local sums = out[task.component.name]
      count(sums)
      if stats.latency_ns > 0 then
        sums.latency_ms = math.max(sums.latency_ms or 0, stats.latency_ns / 1e6)
      end
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
