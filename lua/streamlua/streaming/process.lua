--- The process of one container of a submitted stream program: the driver, or a host that works for it.
--
-- Both have a role (core/cluster/worker_role.h) that speaks with the topology master and is connected to
-- the other containers, and a crew of threads. The driver runs the context; its tasks and receivers run
-- on the hosts. A host's crew does what the driver sends, and its main thread hears plans.
--
-- Everything that a main thread waits for ends the wait of a streaming context: its own events, messages
-- of the crew, words of the role.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local hosts = require 'streamlua.streaming.hosts'
local load = require 'streamlua.topology.load'
local message = require 'streamlua.streaming.message'
local mode = require 'streamlua.streaming.mode'
local runs = require 'streamlua.streaming.run'
local site = require 'streamlua.streaming.site'
local sites = require 'streamlua.runtime.site'
local streams = require 'streamlua.streaming.stream'
local submission = require 'streamlua.streaming.submission'

local C, ffi = abi.C, abi.ffi

local M = {}

-- How long threads may take to leave.
local STOP_MS = 4000
-- How long the start waits for the processes that the plan names.
local HOSTS_MS = 5000
-- Connections carry messages, which need no window.
local WINDOW = 4096

local Process = {}
Process.__index = Process

local CODES = {}
for number = -64, -1 do CODES[ffi.string(C.sl_error_name(number))] = number end

local function check(rc)
  if rc < 0 then error(select(2, err.last()), 0) end
  return rc
end

local function answer(self, request, failure)
  local code = failure and (CODES[failure.code] or CODES.EUSER) or 0
  local text = failure and failure.message or ''
  C.sl_abi_worker_role_answer(self.role, request, code, text, #text)
end

local function finish(self, code, reason)
  self.outcome = self.outcome or { code = code, reason = reason }
end

local function fail(self, text)
  if self.role then C.sl_abi_worker_role_report(self.role, '', 0, text, #text, 1) end
  finish(self, 1, text)
end

--- The container of a plan's driver.
local function driver_of(tasks)
  for _, task in pairs(tasks) do
    if task.component == submission.DRIVER and task.index == 0 then return task.container end
  end
end

-- Slots of a host: its threads. Each receiver of the program finds one, and a task too.
local function slots_of(context, host_count)
  local receivers = 0
  for _, stream in pairs(context.streams) do
    if stream.receiver then receivers = receivers + 1 end
  end
  return context.config.executors or math.max(C.sl_abi_core_count(),
    math.ceil((receivers + 1) / math.max(1, host_count))), receivers
end

---------------------------------------------------------------------------------------------------
-- what both have

-- An engine without tasks: its lane is what processes are connected by.
local function new_worker()
  local worker = C.sl_abi_worker_new(ffi.new('struct sl_worker_options', {
    executors = 1, is_acking = 0, message_timeout_ms = 30000, max_spout_pending = 1, task_capacity = 65536,
    spout_capacity = 0, acker_capacity = 0, batch_bytes = 4096, credit = 1, pool_bytes = 65536,
    remote_window = WINDOW,
  }))
  if worker == nil then error(select(2, err.last()), 0) end
  return worker
end

local function start_role(self, options)
  local role_options = ffi.new('struct sl_worker_role_options', {
    topology = options.topology,
    container = options.container,
    host = options.host,
    data_port = options.data_port or 0,
    supervisor = options.supervisor,
    slot_port = options.supervisor and options.data_port or 0,
    state_url = options.state_url,
    secret = options.secret,
    secret_len = options.secret and #options.secret or 0,
    drains_owner = 1,
  })
  local role = C.sl_abi_worker_role_new(self.worker, role_options, options.settings)
  if role == nil then error(select(2, err.last()), 0) end
  self.role = role
  if options.on_listen then options.on_listen(C.sl_abi_worker_role_port(role)) end
end

local event = ffi.new('struct sl_event')

-- Hears what the role asks; true when there was something.
local function hear_role(self)
  local has_heard = false
  while C.sl_abi_worker_wait(self.worker, 0, event) == 1 do
    has_heard = true
    if event.kind == C.SL_EVENT_ROLE then
      local text = ffi.string(event.text, event.text_len)
      local what, request = tonumber(event.task), tonumber(event.executor)
      if what == tonumber(C.SL_ASK_END) then
        local code, reason = text:match('^(%d+) (.*)$')
        finish(self, tonumber(code), reason)
      elseif what == tonumber(C.SL_ASK_EXPORT) then
        -- There is no keyed state of tasks.
        answer(self, request)
      elseif self.asks[what] then
        self.asks[what](self, request, text)
      end
    end
  end
  return has_heard
end

-- Parts the process from the others.
local function leave(self)
  C.sl_abi_worker_wakes(self.worker, nil)
  C.sl_abi_worker_role_free(self.role)
  C.sl_abi_crew_link_free(self.link)
end

local function boot_text(self, options, extra)
  extra.script, extra.set, extra.defaults = self.context.script, options.set, options.defaults
  return extra
end

---------------------------------------------------------------------------------------------------
-- a host

local function hear_crew(self)
  local received = self.received
  local has_heard = false
  while C.sl_abi_crew_take(self.crew, 0, received) == 1 do
    has_heard = true
    if received.kind == C.SL_CREW_SIGNAL then
      finish(self, 0, 'signal ' .. received.member)
    elseif received.kind == C.SL_CREW_ENDED then
      self.ended = self.ended + 1
    elseif received.kind == message.BROKEN then
      fail(self, ffi.string(received.bytes, received.len))
    elseif received.kind == message.READY then
      self.ready = self.ready + 1
    end
  end
  return has_heard
end

local function await(self, is_done, timeout_ms)
  local deadline = timeout_ms and C.sl_abi_monotonic_ms() + timeout_ms
  while not is_done() do
    local left = deadline and deadline - C.sl_abi_monotonic_ms() or 3600000
    if left <= 0 then return false end
    if not hear_crew(self) then C.sl_abi_streaming_wait(self.context.handle, math.ceil(left)) end
  end
  return true
end

local function send_to_driver(self, kind, document)
  local bytes = buffer.encode(document)
  check(C.sl_abi_crew_link_send(self.link, self.driver, 0, kind, bytes, #bytes))
end

local host_asks = {
  [tonumber(C.SL_ASK_PLAN)] = function(self, request, text)
    local plan = sites.parse(text)
    local driver = driver_of(plan.tasks)
    if driver ~= self.driver then
      finish(self, 0, 'the driver is in another container now')
    elseif plan.containers[driver] ~= '-' and plan.containers[driver] ~= self.driver_identity then
      -- Another process drives: what the one before had begun ends here.
      if self.driver_identity then
        for member = 0, self.slots - 1 do
          C.sl_abi_crew_send(self.crew, member, message.RECEIVER_STOP, '', 0)
        end
      end
      self.driver_identity = plan.containers[driver]
      send_to_driver(self, message.HOST, { slots = self.slots, host = self.host })
    end
    answer(self, request)
  end,
  [tonumber(C.SL_ASK_SPOUTS)] = answer,
  [tonumber(C.SL_ASK_DRAIN)] = answer,
}
for kind, fn in pairs(host_asks) do
  if fn == answer then host_asks[kind] = function(self, request) answer(self, request) end end
end

local function run_host(self, options)
  self.asks, self.host = host_asks, options.host
  self.slots = slots_of(self.context, options.host_count)
  self.received = ffi.new('struct sl_crew_message')
  self.ready, self.ended = 0, 0
  local crew = C.sl_abi_crew_new(self.slots)
  if crew == nil then check(-1) end
  self.crew = crew
  local boot = buffer.encode(boot_text(self, options, { executors = self.slots, is_host = true }))
  check(C.sl_abi_crew_set_boot(crew, boot, #boot))
  check(C.sl_abi_crew_wakes(crew, self.context.handle))
  check(C.sl_abi_crew_catch_signals(crew))
  check(C.sl_abi_crew_start(crew))
  await(self, function() return self.ready == self.slots or self.outcome ~= nil end)
  local worker = new_worker()
  self.worker = worker
  C.sl_abi_worker_wakes(worker, self.context.handle)
  self.link = C.sl_abi_crew_link_new(worker, crew)
  if self.link == nil then check(-1) end
  check(C.sl_abi_crew_link_serve(self.link, self.driver))
  if not self.outcome then start_role(self, options) end
  while not self.outcome do
    local has_heard = hear_role(self)
    if not hear_crew(self) and not has_heard then C.sl_abi_streaming_wait(self.context.handle, 3600000) end
  end
  C.sl_abi_crew_close(crew)
  self.outcome.is_stuck = not await(self, function() return self.ended == self.slots end, STOP_MS)
  if self.outcome.is_stuck then return self.outcome end
  leave(self)
  C.sl_abi_crew_catch_signals(nil)
  C.sl_abi_crew_free(crew)
  C.sl_abi_worker_free(worker)
  return self.outcome
end

---------------------------------------------------------------------------------------------------
-- the driver

-- The partitions that a plan gives to streams.
local function apply_sizes(self, plan)
  local counts = {}
  for _, task in pairs(plan.tasks) do counts[task.component] = (counts[task.component] or 0) + 1 end
  for _, stream in ipairs(submission.resizable(self.context)) do
    local wanted = counts[stream.node_name]
    if wanted and wanted ~= stream.partitions then
      if self.context:state() ~= 'INITIALIZED' then
        self.context:note('%s: %d partitions from now on, %d before', stream.node_name, wanted,
          stream.partitions)
      end
      streams.resize(stream, wanted)
    end
  end
end

-- Batches are generated from now on, or not: answered when that is so, which is, at first, when the program
-- has started.
local function set_active(self, request, is_active)
  self.is_active = is_active
  if is_active and not self.is_started then
    self.start_requests[#self.start_requests + 1] = request
    self.hosts_until = self.hosts_until or C.sl_abi_monotonic_ms() + HOSTS_MS
    return
  elseif is_active then
    self.context:resume()
  elseif self.is_started then
    self.context:pause()
  end
  answer(self, request)
end

local function answer_start(self, failure)
  for _, request in ipairs(self.start_requests) do answer(self, request, failure) end
  self.start_requests = {}
end

-- Answers the drains that wait for nothing to be under way.
local function answer_drains(self)
  if #self.drains == 0 then return end
  local is_done
  if self.is_last_drain and self.is_started then
    is_done = self.is_stopped
  else
    is_done = self.context:is_at_rest()
  end
  if not is_done then return end
  for _, request in ipairs(self.drains) do answer(self, request) end
  self.drains = {}
end

local driver_asks = {
  [tonumber(C.SL_ASK_PLAN)] = function(self, request, text)
    local plan = sites.parse(text)
    if driver_of(plan.tasks) ~= self.container then
      finish(self, 0, 'the driver is in another container now')
      return
    end
    local ok, raised = pcall(apply_sizes, self, plan)
    if not ok then
      answer(self, request, { code = 'EUSER', message = site.raised(raised) })
      return
    end
    self.plan = plan
    set_active(self, request, plan.is_active)
  end,
  [tonumber(C.SL_ASK_SPOUTS)] = function(self, request, text) set_active(self, request, text == '1') end,
  [tonumber(C.SL_ASK_DRAIN)] = function(self, request, text)
    self.drains[#self.drains + 1] = request
    if text == '1' and not self.is_last_drain then
      self.is_last_drain = true
      if self.is_started then
        self.context:resume()
        C.sl_abi_streaming_stop(self.context.handle, 1)
      end
    end
  end,
}

-- Whether all other processes of the plan are there.
local function has_all_hosts(self)
  for container in pairs(self.plan.containers) do
    if container ~= self.container and not self.pool.hosts.by_container[container] then return false end
  end
  return true
end

-- Starts the program as soon as its processes are there; how long that may still take, nil: nothing is
-- waited for.
local function start_when_ready(self)
  if self.is_started or not self.plan or not self.is_active then return nil end
  if self.pool.hosts and not has_all_hosts(self) then
    local left = self.hosts_until - C.sl_abi_monotonic_ms()
    if left > 0 then return left end
  end
  local context = self.context
  local ok, raised = pcall(function()
    if context.checkpoint_found and not context.is_restored then
      require('streamlua.streaming.recovery').restore(context, context.checkpoint_found)
    end
    context:start()
  end)
  if not ok then
    local text = site.raised(raised)
    answer_start(self, { code = 'EUSER', message = text })
    fail(self, text)
    return nil
  end
  self.is_started = true
  answer_start(self)
end

local progress = ffi.new('struct sl_streaming_progress')

-- What `describe` shows of the program: its batches as the driver's work, and the records of its inputs.
local function count(self, document)
  local counts = self.counts
  C.sl_abi_streaming_progress(self.context.handle, progress)
  local function add(name)
    local entry = counts[name]
    if not entry then
      entry = { component = name, struct = ffi.new('struct sl_worker_counters') }
      entry.struct.component = entry.component
      counts[name] = entry
    end
    return entry.struct
  end
  local driver = add(submission.DRIVER)
  driver.executed, driver.failed = progress.completed_batches, progress.failed_batches
  driver.pending, driver.emitted = progress.waiting_batches, progress.processed_records
  for _, stream in ipairs(submission.resizable(self.context)) do
    local records = stream.is_input and document.inputs[stream:input_id()]
    if records then
      local input = add(stream.node_name)
      input.emitted = input.emitted + records
    end
  end
  for _, entry in pairs(counts) do C.sl_abi_worker_role_count(self.role, entry.struct) end
end

-- Errors of batches for `describe`.
local function report_failures(self, document)
  for _, operation in ipairs(document.output_operations) do
    if operation.failure_reason then
      local text = ('batch %d: %s (%s): %s'):format(document.time, operation.name, operation.call_site,
        operation.failure_reason)
      C.sl_abi_worker_role_report(self.role, submission.DRIVER, 0, text, #text, 0)
    end
  end
end

local function drive(self)
  local context, pool = self.context, self.pool
  while not self.outcome do
    local wait_ms = 3600000
    local has_heard = hear_role(self)
    local left = start_when_ready(self)
    if left then wait_ms = math.min(wait_ms, left) end
    left = pool.hosts and pool.hosts:check()
    if left then wait_ms = math.min(wait_ms, left) end
    if self.is_started and not self.is_stopped and not self.outcome then
      local what, due = context:work_off()
      if what == 'stopped' then
        self.is_stopped = true
        local text = 'the program has stopped'
        context:note('%s', text)
        C.sl_abi_worker_role_report(self.role, submission.DRIVER, 0, text, #text, 0)
      elseif due then
        wait_ms = math.min(wait_ms, math.max(1, due - context:now()))
      end
    else
      has_heard = pool:hear_all() or has_heard
    end
    answer_drains(self)
    if pool.broken then fail(self, pool.broken) end
    if not has_heard and not self.outcome then C.sl_abi_streaming_wait(context.handle, math.ceil(wait_ms)) end
  end
end

-- The program again, now as the one that runs: it goes on where its checkpoint ends.
local function load_driver(self, options)
  mode.is_member, mode.is_automatic = false, true
  local context, failure = load.script(self.context.script,
    { set = options.set, defaults = options.defaults })
  if not context then error(tostring(failure), 0) end
  self.context = context
  return context
end

local function run_driver(self, options)
  self.asks, self.container, self.drains = driver_asks, options.container, {}
  self.start_requests, self.counts = {}, {}
  local context = load_driver(self, options)
  local slots, receivers = slots_of(context, options.host_count)
  local has_hosts = options.host_count > 0
  -- With hosts they are for the work on state.
  local executors = has_hosts and C.sl_abi_core_count() or math.max(1, slots - receivers)
  local pool = runs.connect(context, {
    executors = executors,
    receivers = has_hosts and 0 or receivers,
    set = options.set,
    defaults = options.defaults,
    -- Far from those that another driver of the same hosts may have given.
    first_id = math.floor(C.sl_abi_streaming_clock_now(nil)) * 1000,
    on_event = function(name, document)
      options.follow(name, document)
      if name == 'batch_completed' then
        report_failures(self, document)
        count(self, document)
      end
    end,
    on_stop = function() self.is_last_drain = true end,
  })
  self.pool = pool
  pool.on_signal = function(number) finish(self, 0, 'signal ' .. number) end
  if not has_hosts then context:add_worker('local', executors + receivers) end
  C.sl_abi_crew_catch_signals(pool.crew)
  pool:start()
  while pool.ready < pool.members and not pool.broken and not self.outcome do pool:hear(-1) end
  if pool.broken then fail(self, pool.broken) end
  local worker = new_worker()
  self.worker = worker
  C.sl_abi_worker_wakes(worker, context.handle)
  self.link = C.sl_abi_crew_link_new(worker, pool.crew)
  if self.link == nil then check(-1) end
  if has_hosts then
    pool.hosts = hosts.new(pool, self.link)
    pool.hosts.on_lost = function(host) context.receivers:host_lost(host) end
  end
  if not self.outcome then
    start_role(self, options)
    drive(self)
  end
  self.outcome.is_stuck = not pool:stop(function() return STOP_MS end)
  if self.outcome.is_stuck then return self.outcome end
  leave(self)
  C.sl_abi_crew_catch_signals(nil)
  pool:close()
  C.sl_abi_worker_free(worker)
  return self.outcome
end

---@class streamlua.StreamProcessOptions
---@field topology string
---@field container integer
---@field plan table the stored plan
---@field host string
---@field data_port? integer
---@field supervisor? string
---@field state_url string
---@field secret? string
---@field settings ffi.cdata* struct sl_settings *
---@field set? table
---@field defaults? table
---@field follow fun(name: string, document: table) hears the events of the driver's context
---@field on_listen? fun(port: integer)

--- Runs the process of a container until it has to end. `context` has been declared only (mode.is_member).
--- Returns { code=, reason=, is_stuck = threads are left }.
---@param context table
---@param options streamlua.StreamProcessOptions
function M.run(context, options)
  local self = setmetatable({ context = context }, Process)
  local tasks = {}
  for _, container in ipairs(options.plan.containers) do
    for _, instance in ipairs(container.instances) do
      tasks[#tasks + 1] = { component = instance.component, index = instance.index, container = container.id }
    end
  end
  self.driver = driver_of(tasks)
  options.host_count = #options.plan.containers - 1
  if self.driver == options.container then return run_driver(self, options) end
  return run_host(self, options)
end

return M
