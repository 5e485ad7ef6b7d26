--- Runs a topology in this process: `streamlua run`, and `run` of the REPL.
--
-- Phases: loading (executors evaluate the script), running, draining (spouts emit no more, what is in
-- flight is done), stopping. It ends when all tasks have finished, when the time to live has passed, or
-- on a signal; a task that does not come back from user code can not hold it up for long.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local plans = require 'streamlua.runtime.plan'
local workers = require 'streamlua.runtime.worker'

local C = abi.C

local M = {}

--- A task that stays in user code for so long while the run wants to end is stuck.
M.STUCK_MS = 5000
--- How long a run that has reached its time to live may go on draining.
M.TTL_DRAIN_MS = 2000
-- How long executors may take to clean up.
local STOP_MS = 5000

local Run = {}
Run.__index = Run

local function now_ms() return C.sl_abi_monotonic_ms() end

local function task_name(task) return ('%s[%d]'):format(task.component.name, task.index) end

--- Names of the tasks that have been in user code for at least that long, with how long.
local function stuck_tasks(self, least_ms)
  local names = {}
  for _, busy in ipairs(self.worker:busy()) do
    if busy.for_ms >= least_ms then
      names[#names + 1] = ('%s for %.1f s'):format(task_name(busy.task), busy.for_ms / 1000)
    end
  end
  return names
end

local function drain(self, reason)
  if self.phase == 'running' then
    self.phase, self.reason = 'draining', reason
    local limit = self.drain_ms
    if reason == 'ttl' then limit = math.min(limit, M.TTL_DRAIN_MS) end
    self.drain_until = now_ms() + limit
    self.worker:command(C.SL_COMMAND_DRAIN)
    if self.on_drain then self.on_drain(reason) end
  elseif self.phase == 'loading' then
    self.phase, self.reason = 'stopped', reason
  end
end

local handlers = {
  [tonumber(C.SL_EVENT_READY)] = function(self)
    self.ready = self.ready + 1
    if self.ready == self.plan.executors and self.phase == 'loading' then
      self.phase = 'running'
      self.worker:command(C.SL_COMMAND_ACTIVATE)
    end
  end,
  [tonumber(C.SL_EVENT_BROKEN)] = function(self, event)
    self.failure = self.failure or {
      task = event.task >= 0 and task_name(self.plan.task[event.task]) or nil,
      message = event.text,
    }
    self.phase = 'stopped'
  end,
  [tonumber(C.SL_EVENT_ERROR)] = function(self, event)
    self.on_error(task_name(self.plan.task[event.task]), event.text)
  end,
  [tonumber(C.SL_EVENT_FINISHED)] = function(self, event)
    if not self.finished[event.executor] then
      self.finished[event.executor] = true
      self.finished_count = self.finished_count + 1
    end
    if self.finished_count == self.plan.executors then self.phase = 'stopped' end
  end,
  [tonumber(C.SL_EVENT_RESUMED)] = function(self, event)
    if self.finished[event.executor] then
      self.finished[event.executor] = nil
      self.finished_count = self.finished_count - 1
    end
  end,
  [tonumber(C.SL_EVENT_SIGNAL)] = function(self, event)
    if self.signal then
      self.is_aborted = true
      self.phase = 'stopped'
      return
    end
    self.signal = event.task
    drain(self, 'signal')
  end,
  [tonumber(C.SL_EVENT_REPORT)] = function(self, event)
    self.reports[#self.reports + 1] = buffer.decode(event.text)
  end,
  [tonumber(C.SL_EVENT_STOPPED)] = function(self) self.stopped = self.stopped + 1 end,
  [tonumber(C.SL_EVENT_DONE)] = function(self, event)
    if event.text ~= '' then
      self.failure = self.failure or { message = event.text }
      self.phase = 'stopped'
    end
  end,
}

-- Time until the next thing that happens by the clock alone.
local function wait_ms(self, now)
  local until_ms = math.huge
  if self.ttl_until and self.phase ~= 'draining' then until_ms = self.ttl_until end
  if self.phase == 'draining' then until_ms = math.min(self.drain_until, now + 250) end
  if self.on_progress then until_ms = math.min(until_ms, self.progress_at) end
  return until_ms == math.huge and -1 or math.max(0, until_ms - now)
end

local function check_clock(self, now)
  if self.on_progress and now >= self.progress_at then
    self.progress_at = now + self.progress_ms
    self.on_progress(self.worker:stats(), (now - self.started_ms) / 1000)
  end
  if self.ttl_until and now >= self.ttl_until and self.phase ~= 'draining' then
    drain(self, 'ttl')
  elseif self.phase == 'draining' then
    if now >= self.drain_until or #stuck_tasks(self, M.STUCK_MS) > 0 then
      self.is_aborted = true
      self.phase = 'stopped'
    end
  end
end

local function hear(self, timeout_ms)
  local event = self.worker:wait(timeout_ms)
  if event then handlers[event.kind](self, event) end
  return event ~= nil
end

-- Tells the executors to stop and waits for them; false when some do not.
local function stop(self)
  self.worker:command(C.SL_COMMAND_STOP)
  local deadline = now_ms() + (self.is_aborted and 250 or STOP_MS)
  while self.stopped < self.plan.executors do
    local left = deadline - now_ms()
    if left <= 0 then return false end
    hear(self, left)
  end
  self.worker:join()
  return true
end

local function component_summary(component, sums)
  local out = { emitted = sums.emitted, executed = sums.executed }
  if component.kind == 'spout' then
    out.acked, out.failed = sums.acked, sums.failed
  end
  if sums.errors > 0 then out.errors = sums.errors end
  return out
end

-- What the advisors of all executors found, each place once.
local function merge_advice(reports)
  local advice, by_id = {}, {}
  for _, report in ipairs(reports) do
    for _, found in ipairs(report.advice.findings) do
      local id = found.what .. ' ' .. found.place
      if by_id[id] then
        by_id[id].count = by_id[id].count + found.count
      else
        by_id[id] = found
        advice[#advice + 1] = found
      end
    end
  end
  return #advice > 0 and advice or nil
end

local function merge_reports(self, summary)
  local metrics = {}
  for _, report in ipairs(self.reports) do
    for task, entry in pairs(report.tasks) do
      metrics[task_name(self.plan.task[tonumber(task)])] = entry.metrics
    end
  end
  summary.advice = merge_advice(self.reports)
  summary.metrics = next(metrics) and metrics or nil
end

-- Roots that are neither acked nor failed.
local function in_flight(self)
  local count = 0
  for _, sums in pairs(self.worker:stats()) do count = count + sums.pending end
  return count
end

local function summarise(self)
  local summary = {
    topology = self.plan.name,
    seconds = (now_ms() - self.started_ms) / 1000,
    components = {},
  }
  local stats = self.worker:stats()
  for _, component in ipairs(self.plan.components) do
    if component.definition then
      summary.components[component.name] = component_summary(component, stats[component.name])
    end
  end
  local dropped = self.worker:dropped_in_cycles()
  if dropped > 0 then summary.dropped_in_cycles = dropped end
  return summary
end

---@class streamlua.RunOptions
---@field executors? integer
---@field ttl_ms? number
---@field drain_ms? number how long a drain may take; default the message time-out
---@field set? table overrides of the topology's config
---@field defaults? table
---@field verbose? boolean
---@field catch_signals? boolean
---@field on_error fun(task: string, text: string)
---@field on_drain? fun(reason: 'ttl'|'signal')
---@field on_progress? fun(stats: table, seconds: number)
---@field progress_ms? number

--- Runs a valid topology that was loaded from a script. Returns the outcome: {reason = 'finished' |
--- 'ttl' | 'signal' | 'failed', signal=, failure = {task=, message=}, in_flight = roots that were left,
--- stuck = names of tasks, summary}. When `stuck` is there, threads are still running: the process has
--- to end without them.
---@param topology streamlua.Topology
---@param options streamlua.RunOptions
function M.run(topology, options)
  local started = now_ms()
  local plan = plans.new(topology, { executors = options.executors })
  local worker = workers.new(plan)
  local self = setmetatable({
    plan = plan,
    worker = worker,
    phase = 'loading',
    ready = 0,
    finished = {},
    finished_count = 0,
    stopped = 0,
    reports = {},
    started_ms = started,
    ttl_until = options.ttl_ms and started + options.ttl_ms,
    drain_ms = options.drain_ms or plan.settings.message_timeout * 1000,
    on_error = options.on_error,
    on_drain = options.on_drain,
    on_progress = options.on_progress,
    progress_ms = options.progress_ms or 1000,
    progress_at = started + (options.progress_ms or 1000),
  }, Run)
  if options.catch_signals then C.sl_abi_worker_catch_signals(worker.pointer) end
  worker:start({ script = topology.script, set = options.set, defaults = options.defaults,
    verbose = options.verbose, log = { level = options.verbose and 'debug' or 'info' } })
  while self.phase ~= 'stopped' do
    local now = now_ms()
    check_clock(self, now)
    if self.phase ~= 'stopped' then hear(self, wait_ms(self, now)) end
  end
  local outcome = { reason = self.failure and 'failed' or self.reason or 'finished',
    signal = self.signal, failure = self.failure }
  outcome.summary = summarise(self)
  outcome.in_flight = self.is_aborted and in_flight(self) or 0
  if not stop(self) then
    outcome.stuck = stuck_tasks(self, 0)
    return outcome
  end
  outcome.summary = summarise(self)
  local p50 = worker:latency_ms(0.5)
  if p50 and plan.settings.acking then
    outcome.summary.complete_latency_ms = { p50 = p50, p99 = worker:latency_ms(0.99) }
  end
  merge_reports(self, outcome.summary)
  if options.catch_signals then C.sl_abi_worker_catch_signals(nil) end
  worker:free()
  return outcome
end

return M
