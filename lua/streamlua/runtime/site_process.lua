--- A worker process: the executors, the role that has its connections, and the tasks that plans give it.
--
-- The main thread waits for events. Plans, and whether spouts are called, come from the topology master
-- through the role (core/cluster/worker_role.h); a fixed plan is for benchmarks and tests, which have
-- no topology master. It ends when the role says so, or on SIGTERM.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local plans = require 'streamlua.runtime.plan'
local sites = require 'streamlua.runtime.site'
local workers = require 'streamlua.runtime.worker'

local C, ffi = abi.C, abi.ffi

local M = {}

-- How long executors may take to clean up.
local STOP_MS = 5000
-- Bytes that each other process may have under way to all tasks here, and to one at least and at most.
local MIB = 1024 * 1024
local WINDOWS, WINDOW_LEAST, WINDOW_MOST = 64 * MIB, 64 * 1024, 4 * MIB

local Process = {}
Process.__index = Process

local function task_name(self, id)
  local task = self.plan.task[id]
  return task and ('%s[%d]'):format(task.component.name, task.index) or ('task %d'):format(id)
end

local function window_bytes(plan)
  local tasks = 0
  for _, component in ipairs(plan.components) do tasks = tasks + component.planned end
  local bytes = math.max(WINDOW_LEAST, math.min(WINDOW_MOST, WINDOWS / math.max(1, tasks)))
  return bytes - bytes % 64
end

-- Numbers of the error codes by name.
local CODES = {}
for number = -64, -1 do CODES[ffi.string(C.sl_error_name(number))] = number end

-- Code from the state manager is in a folder of this process: who submitted it knows its files by their
-- names in there.
local function as_submitted(self, text)
  if not self.code_folder then return text end
  return (text:gsub(self.code_folder:gsub('%p', '%%%0') .. '/', ''))
end

local function answer(self, request, failure)
  if not self.role then return end
  local code = failure and (CODES[failure.code] or CODES.EINTERNAL) or 0
  local text = failure and as_submitted(self, failure.message) or ''
  C.sl_abi_worker_role_answer(self.role, request, code, text, #text)
end

local function finish(self, code, reason)
  self.outcome = self.outcome or { code = code, reason = reason }
end

-- The tasks of a plan run, or what was wrong with one of them ends the process.
local function run_plan(self, plan)
  local ok, failure = self.site:apply(plan)
  if ok then ok, failure = self.site:set_active(plan.is_active, plan.is_held) end
  return ok, failure
end

local whole = ffi.new('struct sl_keyed_summary')

local asks = {
  [tonumber(C.SL_ASK_PLAN)] = function(self, event)
    local plan = sites.parse(event.text)
    local ok, failure = run_plan(self, plan)
    if ok then
      ok, failure = self.site:make_ready(plan)
      answer(self, event.executor, not ok and failure or nil)
      return
    end
    answer(self, event.executor, failure)
    if failure.code == 'EUSER' then
      local text = as_submitted(self, failure.message)
      C.sl_abi_worker_role_report(self.role, '', 0, text, #text, 1)
      finish(self, 1, text)
    end
  end,
  [tonumber(C.SL_ASK_SPOUTS)] = function(self, event)
    local ok, failure = self.site:set_active(event.text == '1', event.text:find(' ', 1, true) ~= nil,
      event.text == '0 way')
    answer(self, event.executor, not ok and failure or nil)
  end,
  [tonumber(C.SL_ASK_EXPORT)] = function(self, event)
    local component, task, cursor, groups = event.text:match('^(%S+) (%d+) ([^\n]*)\n(.*)$')
    local list = {}
    for group in groups:gmatch('%d+') do list[#list + 1] = tonumber(group) end
    if cursor == 'size' then
      local bytes, failure = self.site:measure(component, list, tonumber(task))
      local text = bytes and ('%d'):format(bytes)
      if not text then return answer(self, event.executor, failure) end
      C.sl_abi_worker_role_answer(self.role, event.executor, 0, text, #text)
      return
    end
    local pieces, following = self.site:export(component, list, tonumber(task), cursor)
    if not pieces then
      answer(self, event.executor, following)
      return
    end
    for _, piece in ipairs(pieces) do
      if piece.whole then ffi.copy(whole, piece.whole, ffi.sizeof(whole)) end
      C.sl_abi_worker_role_piece(self.role, piece.state, self.plan.key_groups, piece.group,
        piece.entries, #piece.entries, piece.count, piece.whole and whole or nil)
    end
    C.sl_abi_worker_role_answer(self.role, event.executor, 0, following, #following)
  end,
  [tonumber(C.SL_ASK_DRAIN)] = function(self, event)
    local ok, failure = true, nil
    if event.text == '1' then ok, failure = self.site:drain() end
    answer(self, event.executor, not ok and failure or nil)
  end,
  [tonumber(C.SL_ASK_END)] = function(self, event)
    local code, reason = event.text:match('^(%d+) (.*)$')
    finish(self, tonumber(code), reason)
  end,
  [tonumber(C.SL_ASK_PEERS)] = function(self, event)
    local connected, all = event.text:match('^(%d+) (%d+)$')
    self.is_connected = connected == all
  end,
}

local handlers = {
  [tonumber(C.SL_EVENT_READY)] = function(self) self.ready = self.ready + 1 end,
  [tonumber(C.SL_EVENT_BROKEN)] = function(self, event)
    local text = as_submitted(self, event.text)
    if self.role then C.sl_abi_worker_role_report(self.role, '', 0, text, #text, 1) end
    finish(self, 1, text)
  end,
  [tonumber(C.SL_EVENT_ERROR)] = function(self, event)
    local name = task_name(self, event.task)
    self.on_error(name, as_submitted(self, event.text))
  end,
  [tonumber(C.SL_EVENT_FINISHED)] = function(self, event) self.finished[event.executor] = true end,
  [tonumber(C.SL_EVENT_RESUMED)] = function(self, event) self.finished[event.executor] = nil end,
  [tonumber(C.SL_EVENT_SIGNAL)] = function(self, event)
    if event.task == 15 then finish(self, 0, 'SIGTERM') end
  end,
  [tonumber(C.SL_EVENT_STOPPED)] = function(self) self.stopped = self.stopped + 1 end,
  [tonumber(C.SL_EVENT_REPORT)] = function() end,
  [tonumber(C.SL_EVENT_DONE)] = function() end,
  [tonumber(C.SL_EVENT_TOLD)] = function() end,
  [tonumber(C.SL_EVENT_ROLE)] = function(self, event) asks[event.task](self, event) end,
}

local function hear(self, timeout_ms)
  local event = self.worker:wait(timeout_ms)
  if event then handlers[event.kind](self, event) end
  return event ~= nil
end

local function from_hex(text)
  return (text:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end))
end

local staged = ffi.new('struct sl_staged')

-- The next state of a task that has come for the plan of a version.
local function next_staged(self, version)
  if not self.role or C.sl_abi_worker_role_staged(self.role, version, staged) ~= 1 then return nil end
  return { component = ffi.string(staged.component), state = ffi.string(staged.state),
    task = staged.task, handle = ffi.gc(staged.entries, C.sl_keyed_free) }
end

local function start_role(self, options)
  local role_options = ffi.new('struct sl_worker_role_options', {
    topology = self.plan.name,
    container = options.container,
    host = options.host,
    data_port = options.data_port or 0,
    supervisor = options.supervisor,
    slot_port = options.supervisor and options.data_port or 0,
    state_url = options.state_url,
    secret = options.secret,
    secret_len = options.secret and #options.secret or 0,
    no_master_ms = options.no_master_ms or 0,
    logs = options.logs,
    program = options.program,
  })
  if options.identity then
    ffi.copy(role_options.identity, from_hex(options.identity), 16)
  end
  local role = C.sl_abi_worker_role_new(self.worker.pointer, role_options,
    options.settings)
  if role == nil then return nil, select(2, err.last()) end
  self.role = role
  if options.on_listen then options.on_listen(C.sl_abi_worker_role_port(role)) end
  return true
end

-- Runs a fixed plan and tells the role its peers; spouts are called when all are connected.
local function run_fixed(self, fixed)
  C.sl_abi_worker_role_topology(self.role, fixed.topology_id)
  local plan = { version = 1, is_active = false, containers = {}, tasks = {}, groups = {} }
  for _, container in ipairs(fixed.containers) do plan.containers[container.id] = container.identity end
  for _, task in ipairs(fixed.tasks) do
    plan.tasks[task.id] = { id = task.id, component = task.component, index = task.index,
      container = task.container }
  end
  for name, owners in pairs(fixed.groups or {}) do plan.groups[name] = owners end
  local ok, failure = self.site:apply(plan)
  if not ok then return nil, failure end
  for _, container in ipairs(fixed.containers) do
    if container.id ~= self.container then
      C.sl_abi_worker_role_peer(self.role, container.id, from_hex(container.identity),
        container.host, container.port)
    end
  end
  while not self.is_connected and not self.outcome do hear(self, -1) end
  return self.site:set_active(true)
end

-- Tells the executors to stop and waits for them; false when some do not.
local function stop(self)
  self.worker:command(C.SL_COMMAND_STOP)
  local deadline = C.sl_abi_monotonic_ms() + STOP_MS
  while self.stopped < self.plan.executors do
    local left = deadline - C.sl_abi_monotonic_ms()
    if left <= 0 then return false end
    hear(self, left)
  end
  self.worker:join()
  C.sl_abi_worker_role_free(self.role)
  self.role = nil
  return true
end

local function all_finished(self)
  for index = 0, self.plan.executors - 1 do
    if not self.finished[index] then return false end
  end
  return true
end

---@class streamlua.SiteProcessOptions
---@field container integer
---@field host string
---@field state_url? string
---@field fixed? table a fixed plan: { topology_id=, containers = {{id=, identity=, host=, port=}},
---tasks = {{id=, component=, index=, container=}}, groups? = {[component] = {task}} }
---@field data_port? integer
---@field supervisor? string that started it; data_port is then its slot's
---@field identity? string 32 hexadecimal digits
---@field ttl_ms? number ends after so long
---@field ends_when_finished? boolean with a fixed plan: ends when all its tasks have finished
---@field executors? integer
---@field secret? string
---@field settings ffi.cdata* struct sl_settings *, those of the control plane
---@field no_master_ms? number
---@field set? table
---@field defaults? table
---@field verbose? boolean
---@field on_error fun(task: string, text: string)
---@field code_folder? string where the code of the state manager was unpacked
---@field on_listen? fun(port: integer) other workers can connect

--- Runs a worker process of a topology loaded from a script, until it has to end. Returns { code=,
--- reason=, stats = counters by component, is_stuck = threads are left }.
---@param topology streamlua.Topology
---@param options streamlua.SiteProcessOptions
function M.run(topology, options)
  local plan = plans.new(topology, { executors = options.executors, is_site = true })
  local worker = workers.new(plan, { remote_window = window_bytes(plan) })
  local self = setmetatable({
    plan = plan,
    worker = worker,
    container = options.container,
    ready = 0,
    stopped = 0,
    finished = {},
    on_error = options.on_error,
    code_folder = options.code_folder,
  }, Process)
  C.sl_abi_worker_catch_signals(worker.pointer)
  worker:start({ script = topology.script, set = options.set, defaults = options.defaults,
    verbose = options.verbose, log = { level = options.verbose and 'debug' or 'info' } })
  while self.ready < plan.executors and not self.outcome do hear(self, -1) end
  local ok, failure = true, nil
  if not self.outcome then
    -- Plans may come while the executors wait: they are active, with spouts only when told.
    self.site = sites.new({ worker = worker, plan = plan, container = options.container,
      next_staged = function(version) return next_staged(self, version) end })
    ok, failure = start_role(self, options)
    if ok and options.fixed then ok, failure = run_fixed(self, options.fixed) end
  end
  if not ok then finish(self, 1, tostring(failure)) end
  local deadline = options.ttl_ms and C.sl_abi_monotonic_ms() + options.ttl_ms
  while not self.outcome do
    local left = deadline and deadline - C.sl_abi_monotonic_ms() or -1
    if deadline and left <= 0 then
      finish(self, 0, 'time to live')
    else
      hear(self, left)
    end
    if options.fixed and options.ends_when_finished then
      -- Executors without tasks have finished; that of those with tasks was taken back, and is told next.
      while hear(self, 0) do end
      if all_finished(self) then finish(self, 0, 'finished') end
    end
  end
  self.outcome.stats = worker:stats()
  if not stop(self) then
    self.outcome.is_stuck = true
    return self.outcome
  end
  self.outcome.stats = worker:stats()
  C.sl_abi_worker_catch_signals(nil)
  worker:free()
  return self.outcome
end

return M
