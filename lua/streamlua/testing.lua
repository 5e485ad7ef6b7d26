--- Topologies under test: in this process and thread, by a clock that moves only when it is told
--- to.
--
--     local testing = require 'streamlua.testing'
--     local cluster = testing.cluster()
--     cluster:run(topology, { mock = { lines = { { 'to be' }, { 'or not' } } } }):wait()
--     assert.same({ { 'to' }, { 'be' }, { 'or' }, { 'not' } }, cluster:outputs('split'))
--     assert.same({ 1, 2 }, cluster:acked('lines'))
--     cluster:kill()
--
-- Nothing runs between calls: each call that starts, feeds, waits or moves time runs every executor
-- until all of them are at rest. See docs/testing.md.

local abi = require 'streamlua.abi'
local drives = require 'streamlua.testing.drive'
local feeders = require 'streamlua.testing.feeder'
local load = require 'streamlua.topology.load'
local plans = require 'streamlua.runtime.plan'
local recorders = require 'streamlua.testing.recorder'
local topologies = require 'streamlua.topology'
local units = require 'streamlua.units'
local workers = require 'streamlua.runtime.worker'

local C, ffi = abi.C, abi.ffi

local M = {}

--- Runs an operation over streams of lists in virtual time; see streamlua.testing.streams.
---@param inputs table
---@param operation function
---@param options? table
function M.streams(inputs, operation, options)
  return require('streamlua.testing.streams').run(inputs, operation, options)
end

--- Loads a stream program and runs it in virtual time; see streamlua.testing.streams.
---@param path string
---@param options? streamlua.TestProgramOptions
function M.program(path, options) return require('streamlua.testing.streams').program(path, options) end

---@class streamlua.TestCluster
local Cluster = {}
Cluster.__index = Cluster

-- How often a spout of the topology's own is called while time stands still: a spout that always
-- has something more would never let it move. `wait` has no such limit, `run` a high one.
local CALLS_A_MOMENT, CALLS_OF_RUN = 1000, 100000

local function mistake(text, ...) error(text:format(...), 3) end

local function seconds_of(what, duration)
  local seconds, problem = units.parse_duration(duration)
  if not seconds then error(('%s: %s'):format(what, problem), 3) end
  return seconds
end

local cluster_options = { clock = true, start_ms = true, executors = true, seed = true,
  raise_errors = true, poll = true, capture = true, turns = true }
local run_options = { mock = true, executors = true, config = true, deactivated = true, set = true,
  capture = true }

local function check_names(what, options, known)
  if options ~= nil and type(options) ~= 'table' then
    error(('%s: its options must be a table'):format(what), 3)
  end
  for name in pairs(options or {}) do
    if not known[name] then
      error(("%s: unknown option '%s'"):format(what, tostring(name)), 3)
    end
  end
  return options or {}
end

local CLOCKS = { manual = true, real = true, system = true }

---@class streamlua.TestClusterOptions
---@field clock? 'manual'|'real' manual = time moves by `advance` only (default)
---@field start_ms? integer the manual clock's first time, milliseconds since the epoch (0)
---@field executors? integer how many executors share the tasks; default: the topology's config, else 1
---@field seed? integer of all random choices (1); 0 = another one each time
---@field raise_errors? boolean an error in user code is raised by the call in which it happened
---@field poll? number|string how often a spout that emitted nothing is called again while time moves
---@field capture? boolean|string[] which components' emits `outputs` has (true = all)
---@field turns? integer a call that takes more turns than this raises (1,000,000)

--- Makes a cluster for one topology after the other. Several can exist at the same time.
---@param options? streamlua.TestClusterOptions
---@return streamlua.TestCluster
function M.cluster(options)
  options = check_names('testing.cluster', options, cluster_options)
  local clock = options.clock or 'manual'
  if not CLOCKS[clock] then
    mistake("testing.cluster: clock must be 'manual' or 'real', got '%s'", tostring(clock))
  end
  local poll = options.poll or '10ms'
  return setmetatable({
    is_manual = clock == 'manual',
    start_ms = options.start_ms or 0,
    executors = options.executors,
    seed = options.seed or 1,
    raise_errors = options.raise_errors,
    poll_ms = math.max(0.001, seconds_of('testing.cluster: poll', poll) * 1000),
    capture = options.capture == nil and true or options.capture,
    most_turns = options.turns or 1000000,
    is_active = true,
    recorder = recorders.new(true),
  }, Cluster)
end

---------------------------------------------------------------------------------------------------
-- starting

local function load_topology(topology, options)
  if type(topology) == 'string' then
    local loaded, failure = load.script(topology, { set = options.set })
    if not loaded then
      local line = failure.line and (':' .. failure.line) or ''
      error(('%s%s: %s'):format(failure.file or topology, line, tostring(failure)), 0)
    end
    topology = loaded
  end
  if not topologies.is(topology) then
    error('run: it takes a topology, or the path of a script that returns one', 3)
  end
  if not options.config then return topology end
  -- The same topology with other config: everything but the config is shared.
  local copy = {}
  for key, value in pairs(topology) do copy[key] = value end
  copy.config = {}
  for key, value in pairs(topology.config) do copy.config[key] = value end
  for key, value in pairs(options.config) do copy.config[key] = value end
  return setmetatable(copy, getmetatable(topology))
end

local function check_topology(topology)
  local lines = {}
  for _, problem in ipairs(topology:validate()) do
    if problem.severity == 'error' then
      lines[#lines + 1] = ('%s:%d: %s'):format(problem.file, problem.line, problem.message)
    end
  end
  if #lines > 0 then
    error(("invalid topology '%s': %s"):format(tostring(topology.name),
      table.concat(lines, '\n')), 0)
  end
end

local function task_name(planned) return ('%s[%d]'):format(planned.component.name, planned.index) end

-- What the engine and user code told since the last look; waits for the first of it for so long.
local function hear(self, timeout_ms)
  while true do
    local event = self.worker:wait(timeout_ms or 0)
    if not event then return end
    timeout_ms = 0
    local planned = event.task >= 0 and self.plan.task[event.task] or nil
    if event.kind == C.SL_EVENT_ERROR then
      self.recorder:error(planned, event.text)
      self.first_error = self.first_error or ('%s: %s'):format(task_name(planned), event.text)
    elseif event.kind == C.SL_EVENT_BROKEN then
      self.broken = self.broken
        or (planned and task_name(planned) .. ': ' or '') .. event.text
    elseif event.kind == C.SL_EVENT_DONE and event.text ~= '' then
      self.broken = self.broken or event.text
    end
  end
end

-- Raises what has to be raised after a call; `level` 0: the texts name their place themselves.
local function settle(self)
  hear(self)
  local feeder_problem = feeders.take_problem(self.feeders)
  local problem, raised = self.broken, self.raise_errors and self.first_error
  self.broken, self.first_error = nil, nil
  if problem then
    self:kill()
    error(problem, 0)
  elseif feeder_problem or raised then
    error(feeder_problem or raised, 0)
  end
end

local function wake_spouts(self)
  if not self.is_active then return end
  self.drive:each_task(function(rt)
    if rt.component.kind == 'spout' and rt.is_open then
      self.feeders[rt.component.name]:wake(rt)
    end
  end)
end

local function has_raised(self)
  local found = false
  for _, feeder in pairs(self.feeders) do found = feeder:take_raised() or found end
  return found
end

-- A spout that raises is called again so often while time stands still.
local RAISES_A_MOMENT = 100

-- Lets every spout be called again at this moment, `calls` times at most, and runs to rest.
local function run_to_rest(self, calls)
  for _, feeder in pairs(self.feeders) do feeder.calls_left = calls end
  local tries = 0
  repeat
    tries = tries + 1
    wake_spouts(self)
    self.drive:run(self.most_turns)
    hear(self)
  until not has_raised(self) or tries > RAISES_A_MOMENT
end

local function need_running(self, what)
  if not self.drive then error(('%s: nothing runs; call run first'):format(what), 3) end
end

---@class streamlua.TestRunOptions
---@field mock? table<string, table>
---@field executors? integer
---@field config? table
---@field set? table
---@field deactivated? boolean
---@field capture? boolean|string[]

--- Starts a topology (a value, or the path of a script) and runs it to rest. What ran before in
--- this cluster is killed. Raises when the topology is invalid or a task could not be opened.
---
--- `mock` gives spouts by name what they emit instead of being called: a list whose items are lists
--- of values, or { values=, id=, stream=, task= }. Items without an id get their position in the
--- list as id; id = false means none. An empty list makes a spout that only emits what it is fed.
--- `config` is laid over the topology's own, `set` over a script's as --set does. `deactivated`
--- starts it inactive: no task is opened before `activate`.
---@param topology streamlua.Topology|string
---@param options? streamlua.TestRunOptions
---@return streamlua.TestCluster self
function Cluster:run(topology, options)
  options = check_names('run', options, run_options)
  topology = load_topology(topology, options)
  check_topology(topology)
  if self.drive then self:kill() end
  local plan = plans.new(topology, { executors = options.executors or self.executors
    or topology:settings().executors or 1 })
  self.plan = plan
  local capture = options.capture
  if capture == nil then capture = self.capture end
  self.recorder = recorders.new(capture)
  self.feeders = feeders.mock(plan, options.mock or {}, self)
  self.worker = workers.new(plan, { is_manual = self.is_manual, start_ms = self.start_ms,
    seed = self.seed })
  -- A cluster that is forgotten without kill gives its memory back.
  ffi.gc(self.worker.pointer, C.sl_abi_worker_free)
  self.drive = drives.new(self.worker, plan, self.recorder)
  self.drive:each_task(function(rt)
    if rt.component.kind == 'spout' then
      rt.pause_ms = self.feeders[rt.component.name]:pause_of(self, rt)
    end
  end)
  if options.deactivated then self.is_active = false end
  if self.is_active then self.worker:command(C.SL_COMMAND_ACTIVATE) end
  run_to_rest(self, CALLS_OF_RUN)
  settle(self)
  return self
end

--- Opens what is not open yet and lets the spouts emit. Before `run`: undoes `deactivate`.
---@return streamlua.TestCluster self
function Cluster:activate()
  self.is_active = true
  if self.drive then
    self.worker:command(C.SL_COMMAND_ACTIVATE)
    run_to_rest(self, CALLS_A_MOMENT)
    settle(self)
  end
  return self
end

--- Spouts emit no more until `activate`; bolts go on. Before `run`: the next topology starts
--- inactive.
---@return streamlua.TestCluster self
function Cluster:deactivate()
  self.is_active = false
  if self.drive then
    self.worker:command(C.SL_COMMAND_DEACTIVATE)
    run_to_rest(self, CALLS_A_MOMENT)
    settle(self)
  end
  return self
end

--- Ends the topology: `close` and `cleanup` are called, the engine's memory is given back. What it
--- emitted, acked and failed can still be asked for.
---@return streamlua.TestCluster self
function Cluster:kill()
  if not self.drive then return self end
  local drive, worker = self.drive, self.worker
  drive:close()
  hear(self)
  self.recorder:keep_stats(worker:stats(), drive:reports())
  self.last_ms = self:now()
  self.drive, self.worker = nil, nil
  ffi.gc(worker.pointer, nil)
  worker:free()
  self.is_active = true
  -- Compiled loops hold on to the tables of the tasks that they were made for.
  jit.flush()
  return self
end

---------------------------------------------------------------------------------------------------
-- running

--- Emits one tuple from a spout, mocked or not, and runs to rest; while the topology is inactive
--- the tuple waits. With an id it is tracked.
---@param spout string
---@param values table list of values
---@param id? string|number
---@return streamlua.TestCluster self
function Cluster:feed(spout, values, id)
  need_running(self, 'feed')
  local feeder = self.feeders[spout]
  if not feeder then mistake("feed: there is no spout '%s'", tostring(spout)) end
  if type(values) ~= 'table' then mistake('feed: the values must be a list, got %s', type(values)) end
  feeder:feed(values, id)
  run_to_rest(self, CALLS_A_MOMENT)
  settle(self)
  return self
end

--- Declares that a mocked spout, or every one, has nothing more: it is DONE once its list is empty.
---@param spout? string
---@return streamlua.TestCluster self
function Cluster:done(spout)
  need_running(self, 'done')
  if spout and not self.feeders[spout] then mistake("done: there is no spout '%s'", spout) end
  for name, feeder in pairs(self.feeders) do
    if name == spout or not spout then feeder.is_done = true end
  end
  run_to_rest(self, CALLS_A_MOMENT)
  settle(self)
  return self
end

local function advance_manually(self, ms)
  local drive = self.drive
  run_to_rest(self, CALLS_A_MOMENT)
  local left = ms
  while left > 0 do
    local due = math.min(drive:due_ms(), left)
    -- Something is due and can not happen, such as in a task that waits inside an emit.
    if due <= 0 then due = math.min(1, left) end
    drive:advance(due)
    left = left - due
    for _, feeder in pairs(self.feeders) do feeder.calls_left = CALLS_A_MOMENT end
    drive:run(self.most_turns)
  end
end

-- By the real clock the time until the next event is slept.
local function run_until(self, deadline, is_over)
  run_to_rest(self, math.huge)
  while not is_over() do
    local left = deadline - C.sl_abi_monotonic_ms()
    if left <= 0 then return false end
    hear(self, math.min(left, self.drive:due_ms()))
    self.drive:run(self.most_turns)
  end
  return true
end

--- Moves time on and runs whatever is due, each timer at its very moment: time moves to the next
--- one, everything runs to rest, and so on. By the real clock it runs for as long.
---@param duration number|string
---@return streamlua.TestCluster self
function Cluster:advance(duration)
  need_running(self, 'advance')
  local ms = seconds_of('advance', duration) * 1000
  if self.is_manual then
    advance_manually(self, ms)
  else
    run_until(self, C.sl_abi_monotonic_ms() + ms, function() return false end)
  end
  settle(self)
  return self
end

local function has_pending(self)
  for _, sums in pairs(self.worker:stats()) do
    if sums.pending > 0 then return true end
  end
  return false
end

--- Runs until nothing moves any more unless time does: everything that was emitted is executed, and
--- every tree that can be is acked or failed. Spouts mocked by a list are DONE then, so that bolts
--- finish. By the real clock it waits until no tuple is pending, 1.5 message time-outs at most.
---@return streamlua.TestCluster self
function Cluster:wait()
  need_running(self, 'wait')
  for _, feeder in pairs(self.feeders) do feeder:end_list() end
  run_to_rest(self, math.huge)
  if not self.is_manual then
    local deadline = C.sl_abi_monotonic_ms() + self.plan.settings.message_timeout * 1500
    run_until(self, deadline, function() return not has_pending(self) end)
  end
  settle(self)
  return self
end

---------------------------------------------------------------------------------------------------
-- looking

local function need_component(self, what, name)
  local component = self.plan and self.plan.by_name[name]
  if not component then error(("%s: there is no component '%s'"):format(what, tostring(name)), 3) end
  return component
end

--- What a component has emitted to a stream ('default'), read or not: a list of lists of values, in
--- the order of the emits.
---@param component string
---@param stream? string
---@return any[][]
function Cluster:outputs(component, stream)
  local planned = need_component(self, 'outputs', component)
  if stream ~= nil and not planned.stream_by_name[stream] then
    mistake("outputs: component '%s' has no stream '%s'", component, tostring(stream))
  end
  return self.recorder:outputs_of(component, stream or 'default')
end

--- Ids that a spout was told as acked, in order.
---@param spout string
---@return any[]
function Cluster:acked(spout)
  need_component(self, 'acked', spout)
  return self.recorder:told(spout, 'acked')
end

--- Ids that a spout was told as failed, in order.
---@param spout string
---@return any[]
function Cluster:failed(spout)
  need_component(self, 'failed', spout)
  return self.recorder:told(spout, 'failed')
end

--- Errors of user code so far: list of { component=, index=, task=, message= }.
---@return table[]
function Cluster:errors() return self.recorder.errors end

--- Lines of context.log so far: list of { component=, index=, level=, text= }.
---@return table[]
function Cluster:logs() return self.recorder.logs end

--- Counters by component: { [name] = { emitted=, executed=, acked=, failed=, errors=, pending= } }.
---@return table<string, table<string, number>>
function Cluster:stats() return self.worker and self.worker:stats() or self.recorder.stats or {} end

--- Counters, gauges and histograms of a task by name, as data.
---@param component string
---@param index? integer of the task in its component, from 0
---@return table<string, any>
function Cluster:metrics(component, index)
  local planned = need_component(self, 'metrics', component)
  local reports = self.drive and self.drive:reports() or self.recorder.reports
  local report = reports[planned.tasks[(index or 0) + 1]]
  return report and report.metrics or {}
end

--- The `self` of a task, to look into; nil when it does not run.
---@param component string
---@param index? integer of the task in its component, from 0
---@return table?
function Cluster:task(component, index)
  local planned = need_component(self, 'task', component)
  local rt = self.drive and self.drive:task(planned.tasks[(index or 0) + 1])
  return rt and rt.self
end

--- Milliseconds since the epoch by the cluster's clock.
---@return integer
function Cluster:now()
  if self.worker then return C.sl_abi_worker_now_ms(self.worker.pointer) end
  return self.last_ms or self.start_ms
end

return M
