--- Running topologies: a client of a cluster.
--
--     local cluster = require 'streamlua.cluster'
--     local client = assert(cluster.open({ state = 'localfs:state', logs = 'logs' }))
--     for _, name in ipairs(assert(client:names())) do print(name) end
--     client:close()
--
-- Every function blocks until it is done. Those that fail return nil and an error of streamlua.err.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local logs = require 'streamlua.cluster.logs'
local native = require 'streamlua.topology.native'
local packages = require 'streamlua.cluster.package'
local plans = require 'streamlua.cluster.plan'
local schedules = require 'streamlua.scheduling.native'

local C, ffi = abi.C, abi.ffi
local text_of, tonumber = ffi.string, tonumber

local M = {}

local STATES = { [tonumber(C.SL_TOPOLOGY_STARTING)] = 'STARTING',
  [tonumber(C.SL_TOPOLOGY_RUNNING)] = 'RUNNING', [tonumber(C.SL_TOPOLOGY_PAUSED)] = 'PAUSED',
  [tonumber(C.SL_TOPOLOGY_KILLED)] = 'KILLED' }

local OUTCOMES = { [tonumber(C.SL_UPDATE_DONE)] = 'done',
  [tonumber(C.SL_UPDATE_ROLLED_BACK)] = 'rolled_back',
  [tonumber(C.SL_UPDATE_NOT_ROLLED_BACK)] = 'not_rolled_back' }

---@class streamlua.Cluster
local Client = {}
Client.__index = Client

--- Opens a client. Options: `state` (URL), `logs` (folder of all logs), `program` (path of
--- streamlua), `timeout_ms` (limit of one step), `progress_fd` (lines about what is going on),
--- `reader` (it only looks, and leaves the state exactly as it is), `launcher` (its name), `service`
--- (schedulers are asked at their endpoints), `secret` (of the cluster), `settings` (of
--- streamlua.conf.control).
---@param options table
---@return streamlua.Cluster? client
---@return streamlua.Error?
function M.open(options)
  local given = ffi.new('struct sl_cluster_options')
  given.state_url, given.program, given.logs = options.state, options.program, options.logs
  given.timeout_ms, given.progress_fd = options.timeout_ms or 0, options.progress_fd or -1
  given.is_reader, given.is_service = options.reader or false, options.service or false
  given.launcher, given.secret, given.settings = options.launcher, options.secret, options.settings
  local pointer = C.sl_abi_cluster_open(given)
  if pointer == nil then return err.last() end
  return setmetatable({ pointer = ffi.gc(pointer, C.sl_abi_cluster_close), logs_folder = options.logs },
    Client)
end

--- Ends the client's session.
function Client:close()
  if self.pointer then C.sl_abi_cluster_close(ffi.gc(self.pointer, nil)) end
  self.pointer = nil
end

--- Names of all topologies, sorted.
---@return string[]? names
---@return streamlua.Error?
function Client:names()
  local count = C.sl_abi_cluster_names(self.pointer)
  if count < 0 then return err.last() end
  local names = {}
  for i = 0, count - 1 do names[i + 1] = text_of(C.sl_abi_cluster_name(self.pointer, i)) end
  return names
end

local function execution_table(from)
  return {
    topology_id = text_of(from.topology_id), submitted_ms = tonumber(from.submitted_ms),
    user = text_of(from.user), host = text_of(from.host), cwd = text_of(from.cwd),
    package_hash = text_of(from.package_hash), scheduler = text_of(from.scheduler),
    state = STATES[tonumber(from.state)], is_active = from.is_active,
  }
end

--- What is stored of a topology: {name=, execution=, plan=, components= names in the plan's order,
--- described= the definition, is_led=}; what is not there is nil.
---@param name string
---@return table? topology
---@return streamlua.Error?
function Client:load(name)
  local out = ffi.new('const struct sl_topology_view *[1]')
  if C.sl_abi_cluster_load(self.pointer, name, out) < 0 then return err.last() end
  local view = out[0]
  local result = { name = name, is_led = view.is_led,
    definition = text_of(view.definition, view.definition_size) }
  if view.execution ~= nil then result.execution = execution_table(view.execution) end
  if view.plan ~= nil then result.plan, result.components = plans.from_struct(view.plan) end
  local handle, failure = native.decode(result.definition)
  if not handle then return nil, failure end
  result.described, failure = native.describe(handle)
  if not result.described then return nil, failure end
  return result
end

--- The code of a topology, as streamlua.cluster.package makes it.
---@param name string
---@return table? code
---@return streamlua.Error?
function Client:package(name)
  local out = ffi.new('const struct sl_package *[1]')
  if C.sl_abi_cluster_package(self.pointer, name, out) < 0 then return err.last() end
  return packages.from_struct(out[0])
end

-- A schedule in the struct that is submitted, and what must live as long as that.
local function set_schedule(struct, schedule)
  if not schedule then return nil end
  local prepared = schedules.prepare(schedule.request)
  struct.schedule = prepared.struct
  struct.scheduler = schedules.schedulers[schedule.scheduler]
  return prepared
end

local function submit(self, wanted, is_dry_run)
  local plan, plan_keep = plans.to_struct(wanted.plan, wanted.components)
  local package, package_keep = packages.to_struct(wanted.package)
  local submission = ffi.new('struct sl_cluster_submission')
  submission.topology, submission.definition_size = wanted.name, #wanted.definition
  submission.definition = ffi.cast('const uint8_t *', wanted.definition)
  submission.plan, submission.package = plan, package
  submission.cwd, submission.user = wanted.cwd, wanted.user
  submission.is_active, submission.timeout_ms = wanted.active, wanted.timeout_ms
  submission.is_dry_run = is_dry_run
  local schedule_keep = set_schedule(submission, wanted.schedule)
  local planned = ffi.new('const struct sl_stored_plan *[1]')
  local rc = C.sl_abi_cluster_submit(self.pointer, submission, planned)
  if rc < 0 then return err.last() end
  if is_dry_run then return (plans.from_struct(planned[0])) end
  return plan_keep ~= nil and package_keep ~= nil and (schedule_keep ~= nil or not wanted.schedule)
end

--- Submits a topology and waits until all its tasks run. `wanted`: name, definition (bytes), plan
--- (document with key groups), components (their names in order), package (of
--- streamlua.cluster.package), cwd, user, active, timeout_ms; where masters schedule also `schedule`
--- (of streamlua.cluster.placement).
---@param wanted table
---@return boolean? done
---@return streamlua.Error?
function Client:submit(wanted) return submit(self, wanted, false) end

--- The plan that masters would make of a submission with a `schedule`; nothing starts.
---@param wanted table as submit's
---@return table? plan
---@return streamlua.Error?
function Client:place(wanted) return submit(self, wanted, true) end

local function list_of(count, make)
  local list = {}
  for i = 0, tonumber(count) - 1 do list[i + 1] = make(i) end
  return list
end

local COUNTERS = { 'executed', 'emitted', 'acked', 'failed', 'pending', 'errors' }

local function status_table(from)
  return {
    topology = text_of(from.topology), state = STATES[tonumber(from.state)],
    plan_version = tonumber(from.plan_version), is_settled = from.is_settled,
    pid = tonumber(from.pid), guardian_pid = tonumber(from.guardian_pid),
    event_count = tonumber(from.event_count),
    events = list_of(from.shown_events, function(i)
      local event = from.events[i]
      return { time_ms = tonumber(event.time_ms), text = text_of(event.text) }
    end),
    containers = list_of(from.container_count, function(i)
      local item = from.containers[i]
      local pid = tonumber(item.pid)
      return { id = item.id, pid = pid ~= 0 and pid or nil, host = text_of(item.host),
        port = item.port, state = text_of(item.state), restarts = item.restarts }
    end),
    counters = list_of(from.counter_count, function(i)
      local item = from.counters[i]
      local counters = { component = text_of(item.component) }
      for _, key in ipairs(COUNTERS) do counters[key] = tonumber(item[key]) end
      return counters
    end),
  }
end

--- How a topology is, as its topology master says: {state=, plan_version=, is_settled=, events= the last
--- ones, event_count= of all, containers=, counters=, pid=, guardian_pid=}.
---@param name string
---@return table? status
---@return streamlua.Error?
function Client:status(name)
  local out = ffi.new('const struct sl_control_status *[1]')
  if C.sl_abi_cluster_status(self.pointer, name, out) < 0 then return err.last() end
  return status_table(out[0])
end

--- Has the spouts called, or not any more.
---@param name string
---@param active boolean
---@param timeout_ms number
---@return boolean? changed false when it was so before
---@return streamlua.Error?
function Client:set_active(name, active, timeout_ms)
  local rc = C.sl_abi_cluster_set_active(self.pointer, name, active, timeout_ms)
  if rc < 0 then return err.last() end
  return rc == 0
end

--- Restarts one container, or all of them (0).
---@param name string
---@param container integer
---@param timeout_ms number
---@return boolean? done
---@return streamlua.Error?
function Client:restart(name, container, timeout_ms)
  if C.sl_abi_cluster_restart(self.pointer, name, container, timeout_ms) < 0 then
    return err.last()
  end
  return true
end

local MODES = { keep = C.SL_SCHED_KEEP, reassign = C.SL_SCHED_REASSIGN,
  minimal = C.SL_SCHED_MINIMAL }

local function fill_result(result, from)
  result.outcome, result.reason = OUTCOMES[tonumber(from.outcome)], text_of(from.reason)
  result.code = from.code ~= 0 and text_of(C.sl_error_name(from.code)) or nil
  for _, key in ipairs({ 'from_version', 'to_version', 'paused_ms', 'total_ms', 'groups_moved',
    'bytes_moved' }) do
    result[key] = tonumber(from[key])
  end
end

--- Changes a topology from one plan to the next: {outcome= done, rolled_back or not_rolled_back,
--- code=, reason=, from_version=, to_version=, paused_ms=, total_ms=, groups_moved=, bytes_moved=}.
--- An error: nothing was touched. Options: lock_ms, drain_ms; where masters schedule also `mode`
--- (keep, reassign, minimal), `schedule` (how from now on), `dry_run`; the result has their `plan`
--- then, and of a dry run nothing else.
---@param current table plan as `load` gave it
---@param proposed table plan with key groups
---@param components string[]
---@param options table
---@return table? result
---@return streamlua.Error?
function Client:update(current, proposed, components, options)
  local before, before_keep = plans.to_struct(current, components)
  local after, after_keep = plans.to_struct(proposed, components)
  local change = ffi.new('struct sl_cluster_change')
  change.current, change.proposed = before, after
  change.lock_timeout_ms, change.drain_timeout_ms = options.lock_ms or 0, options.drain_ms or 0
  change.mode = MODES[options.mode or 'keep']
  change.is_dry_run = options.dry_run or false
  local schedule_keep = set_schedule(change, options.schedule)
  local out = ffi.new('const struct sl_update_result *[1]')
  local planned = ffi.new('const struct sl_stored_plan *[1]')
  local rc = C.sl_abi_cluster_update(self.pointer, change, out, planned)
  if rc < 0 then return err.last() end
  local result = { kept = before_keep and after_keep and schedule_keep and nil }
  if planned[0] ~= nil then result.plan = plans.from_struct(planned[0]) end
  if out[0] ~= nil then fill_result(result, out[0]) end
  return result
end

-- The containers of a topology whose logs supervisors have; nil: they are on this machine, if at all.
local function supervised(self, name, wanted)
  local topology = self:load(name)
  if not (topology and topology.plan and topology.execution
    and topology.execution.scheduler == 'standalone') then return nil end
  local list = {}
  for _, container in ipairs(topology.plan.containers) do
    local is_wanted = not wanted or wanted == container.id
    if is_wanted and container.supervisor and container.supervisor ~= '' then
      list[#list + 1] = { id = container.id, supervisor = container.supervisor, host = container.host }
    end
  end
  return #list > 0 and list or nil
end

-- What a supervisor answered, as streamlua.cluster.logs has it; nil when there is no such log.
local function answered_log(container, question, tail)
  local log = { container = container.id, lines = {}, at = tonumber(question.position) }
  local code = text_of(C.sl_error_name(question.code))
  if code == 'ENOTFOUND' then return nil end
  if question.code ~= 0 then
    log.missing = ("container %d: supervisor %s on host %s, which has its log, can not be asked: %s")
      :format(container.id, container.supervisor, container.host, text_of(question.reason))
  elseif question.size > 0 then
    local text = text_of(question.data, question.size)
    local lines, size = logs.lines(text, tail)
    -- A line without an end that fills all that is told at once.
    if size == 0 then lines, size = { text }, #text end
    log.lines, log.at = lines, log.at + size
  end
  return log
end

--- What its workers wrote, as streamlua.cluster.logs reads it. On a cluster of supervisors these are asked;
--- what one that is away has is `missing`, a text, then.
---@param name string
---@param options table
---@return table[]? logs
---@return streamlua.Error?
function Client:logs(name, options)
  local containers = supervised(self, name, options.container)
  if not containers then return logs.read(self.logs_folder .. '/' .. name, options) end
  local questions = ffi.new('struct sl_log_question[?]', #containers)
  for i, container in ipairs(containers) do
    local question = questions[i - 1]
    question.supervisor, question.container = container.supervisor, container.id
    question.position = options.after and options.after[container.id] or 0
    question.is_end = options.tail ~= nil
  end
  local rc = C.sl_abi_cluster_logs(self.pointer, name, questions, #containers, options.wait_ms or 0)
  if rc < 0 then return err.last() end
  local list = {}
  for i, container in ipairs(containers) do
    list[#list + 1] = answered_log(container, questions[i - 1], options.tail)
  end
  return list
end

--- Ends a topology and deletes what is stored of it.
---@param name string
---@param wait_ms number how long what is in flight may take
---@param timeout_ms number
---@param purge boolean? also what masters keep for its return
---@return boolean? done
---@return streamlua.Error?
function Client:kill(name, wait_ms, timeout_ms, purge)
  if C.sl_abi_cluster_kill(self.pointer, name, wait_ms, timeout_ms, purge or false) < 0 then
    return err.last()
  end
  return true
end

return M
