--- The streaming context: settings, graph, life cycle, and the driver that does what C says is next.
--
--     local ssc = streaming.context { name = 'wc', batch = '1s' }
--     ssc:queue_stream({ { 'a' } }):print()
--     ssc:start()
--     ssc:await_termination()
--
-- One Lua state is the driver: it asks C for work (sl_abi_streaming_next), generates the jobs of a
-- batch, runs them (here, or with the help of a pool; see env), tells listeners, and sleeps in C. With a
-- manual clock `advance` moves the time to whatever is due next and works, so nothing ever sleeps.

local lfs = require 'lfs'
local abi = require 'streamlua.abi'
local clocks = require 'streamlua.streaming.clock'
local err = require 'streamlua.err'
local events = require 'streamlua.streaming.event'
local mode = require 'streamlua.streaming.mode'
local rdds = require 'streamlua.streaming.rdd'
local recovery = require 'streamlua.streaming.recovery'
local site = require 'streamlua.streaming.site'
local sources = require 'streamlua.streaming.source'
local streams = require 'streamlua.streaming.stream'
local topology = require 'streamlua.topology'
local units = require 'streamlua.units'
local wire = require 'streamlua.streaming.wire'
require 'streamlua.streaming.window'
require 'streamlua.streaming.file_source'
require 'streamlua.streaming.receiver_source'
local receivers = require 'streamlua.streaming.receivers'

local C, ffi = abi.C, abi.ffi
local UNKNOWN = C.SL_STREAMING_UNKNOWN

local M = {}

---@class streamlua.StreamingContext
local Context = { }
Context.__index = Context
Context.__streamlua = 'streaming'
M.Context = Context

-- The context that is active in this Lua state.
local active

local keep_block

---------------------------------------------------------------------------------------------------
-- options

local function duration_field(field)
  return function(out, value) out[field] = streams.duration_ms('context: ' .. field, value) end
end

local function number_field(field, least, is_whole)
  return function(out, value, name)
    if type(value) ~= 'number' or value ~= value or value < least
      or (is_whole and value ~= math.floor(value)) then
      site.raise('context: %s must be a %snumber from %g on, got %s', name, is_whole and 'whole ' or '',
        least, tostring(value))
    end
    out[field] = value
  end
end

local function boolean_field(field)
  return function(out, value, name)
    if type(value) ~= 'boolean' then
      site.raise('context: %s must be true or false, got %s', name, tostring(value))
    end
    if field then out[field] = value and 1 or 0 end
  end
end

-- How each option gets into struct sl_streaming_options; false: it is used elsewhere.
local OPTIONS = {
  name = false,
  batch = false,
  checkpoint = false,
  clock = false,
  config = false,
  remember = false,
  default_partitions = function(_, value, name)
    number_field('unused', 1, true)({}, value, name)
  end,
  write_ahead_log = boolean_field(nil),
  concurrent_jobs = number_field('concurrent_jobs', 1, true),
  block_interval = duration_field('block_interval_ms'),
  max_rate = number_field('max_rate', 0),
  initial_rate = number_field('initial_rate', 0),
  back_pressure = boolean_field('back_pressure'),
  graceful_timeout = duration_field('graceful_timeout_ms'),
  final_timeout = duration_field('final_timeout_ms'),
  receiver_restart_delay = duration_field('receiver_restart_ms'),
  catch_up = number_field('catch_up_max', 0, true),
  skip_down_time = boolean_field('skip_down_time'),
  drop_missing_state = boolean_field(nil),
  retained_batches = number_field('retained_batches', 1, true),
  pid_proportional = number_field('proportional', 0),
  pid_integral = number_field('integral', 0),
  pid_derived = number_field('derived', 0),
  pid_min_rate = number_field('min_rate', 0),
}

local function check_options(options)
  if type(options) ~= 'table' then site.raise('context: expected a table of options, got %s', type(options)) end
  for name in pairs(options) do
    if OPTIONS[name] == nil then site.raise("context: there is no option '%s'", tostring(name)) end
  end
  if type(options.name) ~= 'string' or options.name == '' then
    site.raise('context: name must be a text, got %s', tostring(options.name))
  end
  if options.batch == nil then site.raise('context: batch is missing: the interval of the batches') end
  if options.clock ~= nil and not clocks.is(options.clock) then
    site.raise('context: clock must be a manual clock')
  end
  if options.config ~= nil and type(options.config) ~= 'table' then
    site.raise('context: config must be a table, got %s', type(options.config))
  end
  if options.checkpoint ~= nil and (type(options.checkpoint) ~= 'string' or options.checkpoint == '') then
    site.raise('context: checkpoint must be the name of a folder')
  end
end

-- The options with what --set says of them, and the program's own settings likewise. A spec may bring
-- its clock.
local function with_overrides(options)
  if type(options) ~= 'table' then return options end
  local merged, config = {}, {}
  for name, value in pairs(options) do merged[name] = value end
  if type(options.config) == 'table' then
    for name, value in pairs(options.config) do config[name] = value end
  end
  for name, value in pairs(topology.overrides()) do
    if OPTIONS[name] ~= nil and name ~= 'clock' and name ~= 'config' then
      merged[name] = value
    else
      config[name] = value
    end
  end
  if merged.config == nil or type(merged.config) == 'table' then merged.config = config end
  if mode.clock then merged.clock = mode.clock end
  return merged
end

-- Raises what C says of a failed call, at the user's line.
local function raise_last(what)
  local _, failure = err.last()
  site.raise('%s: %s', what, tostring(failure))
end

-- The folder for datasets on the disk, made when it is first needed.
local function disk_folder(self)
  if not self.disk_dir then
    self.disk_dir = os.tmpname()
    os.remove(self.disk_dir)
    assert(lfs.mkdir(self.disk_dir))
  end
  return self.disk_dir
end

-- A block as its level says.
function keep_block(self, block, level)
  if level == 'disk' then return wire.to_disk(block, disk_folder(self)) end
  if level == 'memory_serialized' and block.part then
    local stored = wire.own(wire.store(block.part))
    wire.free(block)
    return stored
  end
  return block
end

---@class streamlua.StreamingOptions
---@field name string
---@field batch number|string
---@field checkpoint? string
---@field clock? streamlua.ManualClock
---@field default_partitions? integer
---@field concurrent_jobs? integer
---@field block_interval? number|string
---@field max_rate? number
---@field back_pressure? boolean
---@field initial_rate? number
---@field write_ahead_log? boolean
---@field remember? number|string
---@field graceful_timeout? number|string
---@field config? table the program's own settings; --set overrides them, ssc.config has them

--- Makes a context.
---@param options streamlua.StreamingOptions
---@return streamlua.StreamingContext
function M.new(options)
  options = with_overrides(options)
  check_options(options)
  local batch_ms = streams.duration_ms('context: batch', options.batch)
  local checkpoint = recovery.for_context(options.checkpoint)
  local differences
  if checkpoint then
    local own = {}
    for name, value in pairs(options) do own[name] = value end
    options = own
    differences = recovery.merge_settings(checkpoint, options)
    if checkpoint.batch_ms ~= batch_ms then
      differences[#differences + 1] = ('the batch interval is %d ms there and stays so, the script says %d ms')
        :format(checkpoint.batch_ms, batch_ms)
      batch_ms = checkpoint.batch_ms
    end
  end
  local script = site.find()
  local script_hash = recovery.script_hash(script)
  local fields = {}
  for name, apply in pairs(OPTIONS) do
    if apply and options[name] ~= nil then apply(fields, options[name], name) end
  end
  local settings = ffi.new('struct sl_streaming_options')
  C.sl_abi_streaming_options_default(settings)
  settings.name, settings.batch_ms = options.name, batch_ms
  if options.checkpoint then settings.checkpoint_dir = options.checkpoint end
  settings.script, settings.script_hash = script, script_hash
  for field, value in pairs(fields) do settings[field] = value end
  local handle = C.sl_abi_streaming_new(settings, options.clock and options.clock.handle or nil)
  if handle == nil then raise_last('context') end
  local self = setmetatable({
    handle = ffi.gc(handle, C.sl_abi_streaming_free),
    -- The program's own settings, with those of --set.
    config = options.config,
    name = options.name,
    batch_ms = batch_ms,
    checkpoint_dir = options.checkpoint,
    clock = options.clock,
    default_partitions = options.default_partitions or 2,
    write_ahead_log = options.write_ahead_log or false,
    drops_missing_state = options.drop_missing_state or false,
    script_hash = script_hash,
    -- What the checkpoint that is taken over has otherwise, and that checkpoint (`streamlua run`).
    differences = differences,
    checkpoint_found = checkpoint,
    settings = {},
    -- States by batch that are to be complete when the batch is.
    versions = {},
    call_site = site.text(),
    -- Streams by their number in C, and how many operations the user has declared.
    streams = {},
    position = 0,
    made = 0,
    -- Functions of the program by number.
    descriptors = {},
    -- Datasets by handle.
    datasets = {},
    last_handle = 0,
    jobs = {},
    listeners = {},
    work = ffi.new('struct sl_streaming_work'),
    depth = 0,
  }, Context)
  self.block_interval_ms = tonumber(settings.block_interval_ms)
  self.max_rate, self.initial_rate = settings.max_rate, settings.initial_rate
  self.receivers = receivers.inline(self)
  self.env = rdds.inline({ default_partitions = self.default_partitions })
  self.env.fetch, self.env.free = wire.fetch, wire.free
  self.env.keep = function(block, level) return keep_block(self, block, level) end
  for _, name in ipairs(recovery.SETTINGS) do self.settings[name] = options[name] end
  if options.remember ~= nil then self:remember(options.remember) end
  return self
end

---------------------------------------------------------------------------------------------------
-- declaring

local STATES = {
  [tonumber(C.SL_STREAMING_INITIALIZED)] = 'INITIALIZED',
  [tonumber(C.SL_STREAMING_ACTIVE)] = 'ACTIVE',
  [tonumber(C.SL_STREAMING_STOPPED)] = 'STOPPED',
}

--- INITIALIZED, ACTIVE or STOPPED.
---@return string
function Context:state()
  -- In a thread of a run the program's context stands for the driver's.
  if self.remote then return 'ACTIVE' end
  return STATES[C.sl_abi_streaming_state(self.handle)]
end

--- Raises when the graph can not be changed any more.
function Context:check_open(what)
  local state = self:state()
  if state == 'ACTIVE' then
    site.raise('%s: nothing can be added to the graph after the context has been started', what)
  elseif state == 'STOPPED' then
    site.raise('%s: nothing can be added to the graph after the context has been stopped', what)
  end
end

for name, make in pairs(sources.METHODS) do Context[name] = make end

--- The union of a list of streams.
---@param list streamlua.DStream[]
function Context:union(list)
  if type(list) ~= 'table' or #list == 0 then site.raise('union: expected a list of streams') end
  return streams.union(list)
end

--- A stream whose dataset f(list of datasets, time) makes from those of a list of streams.
---@param list streamlua.DStream[]
---@param f function
function Context:transform(list, f)
  if type(list) ~= 'table' or #list == 0 then site.raise('transform: expected a list of streams') end
  return streams.transform('transform', list, f, false)
end

--- Keeps all datasets at least so long. Once a context.
---@param duration number|string
function Context:remember(duration)
  local ms = streams.duration_ms('remember', duration)
  if C.sl_abi_streaming_remember(self.handle, ms) < 0 then raise_last('remember') end
end

--- Sets the checkpoint folder, or nil for none.
---@param dir? string
function Context:checkpoint(dir)
  if dir ~= nil and type(dir) ~= 'string' then site.raise('checkpoint: expected a folder, got %s', type(dir)) end
  if C.sl_abi_streaming_checkpoint_dir(self.handle, dir) < 0 then raise_last('checkpoint') end
  self.checkpoint_dir = dir
end

--- Adds a listener: a table of functions by event.
---@param listener table
function Context:add_listener(listener)
  if type(listener) ~= 'table' then site.raise('add_listener: expected a table, got %s', type(listener)) end
  for name, fn in pairs(listener) do
    if not events.NAMES[name] then site.raise("add_listener: there is no event '%s'", tostring(name)) end
    streams.check_function('add_listener: ' .. name, fn)
  end
  self.listeners[#self.listeners + 1] = listener
end

---------------------------------------------------------------------------------------------------
-- datasets

local found = ffi.new('struct sl_streaming_dataset')
local FOUND, NOTHING = tonumber(C.SL_STREAMING_FOUND), tonumber(C.SL_STREAMING_NOTHING)
local MARK_PERSIST = tonumber(C.SL_STREAMING_MARK_PERSIST)
local MARK_CHECKPOINT = tonumber(C.SL_STREAMING_MARK_CHECKPOINT)

--- The dataset of a stream for a batch: the remembered one, or made now; nil when there is none.
---@param stream streamlua.DStream
---@param time integer
---@return streamlua.Rdd?
function Context:dataset(stream, time)
  local kind = C.sl_abi_streaming_find(self.handle, stream.node, time, found)
  if kind == FOUND then return self.datasets[tonumber(found.handle)] end
  if kind == NOTHING then return nil end
  if kind < 0 then raise_last(stream.node_name) end
  local marks = found.marks
  if not stream.compute then return nil end
  local rdd = stream:compute(time)
  if not rdd then return nil end
  if bit.band(marks, MARK_PERSIST) ~= 0 then rdd:persist(stream.storage_level) end
  rdd.must_save = bit.band(marks, MARK_CHECKPOINT) ~= 0
  return self:remember_dataset(stream, time, rdd)
end

--- Has C remember a dataset of a stream.
function Context:remember_dataset(stream, time, rdd)
  rdd.is_remembered = true
  self.last_handle = self.last_handle + 1
  self.datasets[self.last_handle] = rdd
  if C.sl_abi_streaming_put(self.handle, stream.node, time, self.last_handle) < 0 then
    raise_last(stream.node_name)
  end
  return rdd
end

--- Reports how many records an input has in a batch.
function Context:report_input(stream, time, records, metadata)
  if C.sl_abi_streaming_input_report(self.handle, stream.node, time, records, metadata) < 0 then
    raise_last(stream.node_name)
  end
end

--- Writes to standard output; `printer` replaces it.
function Context:write(text)
  if self.printer then
    self.printer(text)
  else
    io.stdout:write(text)
    io.stdout:flush()
  end
end

--- Something of the engine that is no warning, on standard error; `noter` replaces it.
function Context:note(text, ...)
  text = text:format(...)
  if self.noter then self.noter(text) else io.stderr:write(text, '\n') end
end

--- A warning of the engine, on standard error; `warner` replaces it.
function Context:warn(text, ...)
  if select('#', ...) > 0 then text = text:format(...) end
  if self.warner then
    self.warner(text)
  else
    io.stderr:write('warning: ', text, '\n')
  end
end

---------------------------------------------------------------------------------------------------
-- work

-- What a batch needs before it can run: each output's dataset, in order of declaration.
local function generate(self, time)
  for node = 0, C.sl_abi_streaming_node_count(self.handle) - 1 do
    local stream = self.streams[node]
    if stream.is_output then
      local rdd = stream.parents[1]:get_or_compute(time)
      if rdd then
        local place = C.sl_abi_streaming_job_add(self.handle, time, node)
        if place < 0 then raise_last(stream.node_name) end
        self.jobs[time] = self.jobs[time] or {}
        self.jobs[time][place] = rdd
      end
    end
  end
end

local function note_failure(self, text)
  self.failure = self.failure or text
end

-- Ends a job; error nil when it went well. The last one of a batch completes its states too.
local function end_job(self, id, time, place, failure)
  local jobs = self.jobs[time]
  if jobs then
    jobs[place] = nil
    if next(jobs) == nil then
      self.jobs[time] = nil
      local ok, raised = pcall(recovery.complete, self, time)
      if not ok then failure = failure or site.raised(raised) end
    end
  end
  if failure then note_failure(self, failure) end
  C.sl_abi_streaming_job_end(self.handle, id, failure)
end

local function run_job(self, id, time, node, place)
  local stream = self.streams[node]
  local rdd = self.jobs[time][place]
  local function run()
    local ok, raised = pcall(self.run_output or stream.run_job, stream, rdd, time)
    end_job(self, id, time, place, not ok and site.raised(raised) or nil)
  end
  if self.spawn then
    self.spawn(run)
  else
    self.running_jobs = (self.running_jobs or 0) + 1
    run()
    self.running_jobs = self.running_jobs - 1
  end
end

local function call_listeners(self, name, document)
  for _, listener in ipairs(self.listeners) do
    local fn = listener[name]
    if fn then
      self.is_in_listener = true
      local ok, raised = pcall(fn, document)
      self.is_in_listener = false
      if not ok then self:warn('listener: %s: %s', name, site.raised(raised)) end
    end
  end
end

local HANDLERS = {
  [tonumber(C.SL_STREAMING_WORK_GENERATE)] = function(self, time)
    if self.is_paused then
      self.held = time
      return
    end
    local ok, raised = pcall(generate, self, time)
    local text = not ok and site.raised(raised) or nil
    if text then
      self.jobs[time] = nil
      note_failure(self, text)
    end
    C.sl_abi_streaming_generated(self.handle, time, text)
  end,
  [tonumber(C.SL_STREAMING_WORK_RUN_JOB)] = function(self, time, id, node, place)
    run_job(self, id, time, node, place)
  end,
  [tonumber(C.SL_STREAMING_WORK_DROP)] = function(self, _, id)
    local handle = tonumber(id)
    local rdd = self.datasets[handle]
    self.datasets[handle] = nil
    if rdd then
      rdd.is_remembered = nil
      rdd:release()
    end
  end,
  [tonumber(C.SL_STREAMING_WORK_EVENT)] = function(self, _, _, _, _, event)
    local name, document = events.document(event, C.sl_abi_streaming_report(self.handle))
    if self.on_event then self.on_event(name, document) end
    call_listeners(self, name, document)
  end,
  [tonumber(C.SL_STREAMING_WORK_START_INPUTS)] = function(self, time) sources.start(self, time) end,
  [tonumber(C.SL_STREAMING_WORK_STOP_INPUTS)] = function(self) sources.stop(self) end,
  [tonumber(C.SL_STREAMING_WORK_START_RECEIVER)] = function(self, _, id, node)
    self.receivers:start(node, tonumber(id))
  end,
  [tonumber(C.SL_STREAMING_WORK_STOP_RECEIVER)] = function(self, _, _, node) self.receivers:stop(node) end,
  [tonumber(C.SL_STREAMING_WORK_DROP_BLOCK)] = function(self, _, id, node)
    self.receivers:drop(node, tonumber(id))
  end,
  [tonumber(C.SL_STREAMING_WORK_CLEAN_LOG)] = function(self, time, _, node)
    self.receivers:clean_log(node, time)
  end,
  [tonumber(C.SL_STREAMING_WORK_SAVE_STATE)] = function(self, time)
    recovery.save_all(self, time)
    C.sl_abi_streaming_state_saved(self.handle)
  end,
  [tonumber(C.SL_STREAMING_WORK_RATE)] = function(self, _, _, node)
    self.receivers:rate(node, self.work.rate)
  end,
  [tonumber(C.SL_STREAMING_WORK_CHECKPOINT)] = function(self)
    local section = recovery.section(self)
    C.sl_abi_streaming_checkpoint_write(self.handle, section, #section)
  end,
}
M.HANDLERS = HANDLERS

--- Holds the generation of batches back: what has been generated runs on, ticks are made up for later.
function Context:pause() self.is_paused = true end

--- Generates batches again.
function Context:resume()
  self.is_paused = false
  local time = self.held
  if time then
    self.held = nil
    HANDLERS[tonumber(C.SL_STREAMING_WORK_GENERATE)](self, time)
  end
end

--- Whether no job is under way or waits for its turn.
---@return boolean
function Context:is_at_rest() return next(self.jobs) == nil end

local NONE, STOPPED = tonumber(C.SL_STREAMING_WORK_NONE), tonumber(C.SL_STREAMING_WORK_STOPPED)

-- The earlier of two times, either of which may be unknown.
local function earlier(time, other)
  if time == UNKNOWN then return other end
  return other and math.min(time, other) or time
end

--- Does all work there is. Returns 'none' and the time of the clock at which there may be more (nil:
--- when something is reported), or 'stopped'.
---@return string
---@return integer?
function Context:work_off()
  local work = self.work
  while true do
    self.receivers:step_all()
    if self.before_work then self:before_work() end
    local kind = C.sl_abi_streaming_next(self.handle, work)
    -- What came in since it was asked for: a wait ends for what comes later only.
    if kind == NONE and self.before_work and self:before_work() then
      kind = nil
    elseif kind == NONE then
      return 'none', earlier(tonumber(work.time), self.receivers:due())
    elseif kind == STOPPED then
      self:leave()
      return 'stopped'
    end
    if kind then HANDLERS[kind](self, tonumber(work.time), work.id, work.node, work.output, work.event) end
  end
end

--- The same until no batch is under way and no checkpoint is being written.
function Context:work_to_rest()
  while true do
    local what, time = self:work_off()
    if what == 'stopped' or C.sl_abi_streaming_is_idle(self.handle) == 1 then return what, time end
    if (self.running_jobs or 0) > 0 then return what, time end
    C.sl_abi_streaming_wait(self.handle, 1000)
  end
end

--- The manual clock has moved.
function Context:clock_moved()
  if self:state() ~= 'INITIALIZED' then self:work_off() end
end

--- Nothing of the context is active any more.
function Context:leave()
  if active == self then active = nil end
  if self.clock then self.clock:leave(self) end
  if self.disk_dir then
    for _, rdd in pairs(self.datasets) do rdd:release() end
    lfs.rmdir(self.disk_dir)
    self.disk_dir = nil
  end
end

---------------------------------------------------------------------------------------------------
-- life cycle

-- "file:line" -> the two.
local function place_of(call_site)
  local file, line = call_site:match('^(.*):(%d+)$')
  return file, tonumber(line)
end

--- What keeps the context from being started, as far as that is known before: a list of {file, line,
--- severity, code, message}.
---@return table[]
function Context:validate()
  local problems = {}
  local function add(call_site, code, message)
    local file, line = place_of(call_site)
    problems[#problems + 1] = { severity = 'error', code = code, message = message, file = file, line = line }
  end
  local has_output = false
  for node = 0, C.sl_abi_streaming_node_count(self.handle) - 1 do
    local stream = self.streams[node]
    has_output = has_output or stream.is_output or false
    local problem = sources.problem(stream)
    if problem then add(stream.call_site, 'no-checkpoint', problem) end
    if stream.task_of and not self.checkpoint_dir then
      add(stream.call_site, 'no-checkpoint', ('%s needs a checkpoint folder: set checkpoint of the context')
        :format(stream.op))
    end
  end
  if not has_output then
    add(self.call_site, 'no-output', 'the context has no output operation: nothing would be computed')
  end
  return problems
end

local function check_start(self)
  if active and active ~= self then
    site.raise("start: another context is active: '%s', started at %s", active.name,
      active.started_at)
  end
  for _, problem in ipairs(self:validate()) do
    error(('%s:%d: start: %s'):format(problem.file or '?', problem.line or 0, problem.message), 0)
  end
end

--- Adds a worker that runs receivers and tasks, with its slots. Without any, start adds this process with
--- a slot for each receiver and one for tasks.
---@param name string
---@param slots integer
function Context:add_worker(name, slots)
  if C.sl_abi_streaming_worker_add(self.handle, name, 'localhost', slots) < 0 then raise_last('add_worker') end
  self.has_worker = true
end

local function add_own_worker(self)
  local slots = 1
  for _, stream in pairs(self.streams) do
    if stream.receiver then slots = slots + 1 end
  end
  self:add_worker('driver', slots)
end

--- Starts it: from now on there is a batch every interval.
function Context:start()
  if (mode.is_automatic or mode.is_member) and topology.is_loading() then
    site.raise('start: streamlua run starts the context itself, submit likewise: end the script with `return` and the '
      .. 'context')
  end
  local state = self:state()
  if state == 'ACTIVE' then
    self:warn('the context is active already, start does nothing')
    return
  elseif state == 'STOPPED' then
    site.raise('start: the context has been stopped and can not be started again')
  end
  check_start(self)
  if not self.has_worker then add_own_worker(self) end
  if C.sl_abi_streaming_start(self.handle) < 0 then
    local _, failure = err.last()
    C.sl_abi_streaming_stop(self.handle, 0)
    self:work_off()
    site.raise('start: %s', tostring(failure))
  end
  self.started_at = site.text()
  active = self
  if self.clock then self.clock:follow(self) end
  self:work_off()
end

-- The last time that a number holds exactly.
local LAST_MS = 2 ^ 53

-- Works until the context has stopped; a manual clock moves on as far as needed.
local function work_to_stop(self)
  while true do
    -- Twice: what was done last may have ended a phase of the stop.
    local what, time = self:work_off()
    if what ~= 'stopped' then what, time = self:work_off() end
    if what == 'stopped' then return end
    if self.clock and C.sl_abi_streaming_is_idle(self.handle) == 1 and time then
      if time > self.clock:now() then self.clock:move(math.min(time, LAST_MS)) end
    else
      C.sl_abi_streaming_wait(self.handle, 1000)
    end
  end
end

--- Stops it; graceful = everything received is processed first. Within a job or a callback of the
--- program the stop begins and ends after it.
---@param options? { graceful?: boolean }
function Context:stop(options)
  if self.remote then
    self.remote.stop(options)
    return
  end
  if self.is_in_listener then site.raise('stop: a listener can not stop its context') end
  local graceful = type(options) == 'table' and options.graceful == true
  if C.sl_abi_streaming_stop(self.handle, graceful and 1 or 0) == 1 then
    self:warn('the context has been stopped already, stop does nothing')
    return
  end
  if (self.running_jobs or 0) == 0 and not self.is_driven then work_to_stop(self) end
end

--- Moves a manual clock on by a duration and returns when every batch due by then has completed or
--- failed.
---@param duration number|string
function Context:advance(duration)
  if not self.clock then site.raise('advance: the context has no manual clock') end
  local seconds, message = units.parse_duration(duration)
  if not seconds then site.raise('advance: %s', message) end
  local target = self.clock:now() + math.floor(seconds * 1000 + 0.5)
  while true do
    local what, time = self:work_to_rest()
    if what == 'stopped' or not time or time >= target then break end
    -- Others that use the clock get to every one of these moments too.
    self.clock:set(math.max(time, self.clock:now() + 1))
  end
  self.clock:set(target)
  self:work_to_rest()
end

-- How long receivers in this thread rest when nothing else is due.
local RECEIVER_PAUSE_MS = 20

local function check_failure(self)
  if self.failure then error(self.failure, 0) end
end

--- Waits until it has stopped: true; or, with a duration, false when that has passed. Raises the error of
--- a batch that failed. With a manual clock it does what is due and does not wait.
---@param duration? number|string
---@return boolean
function Context:await_termination(duration)
  local seconds
  if duration ~= nil then
    local message
    seconds, message = units.parse_duration(duration)
    if not seconds then site.raise('await_termination: %s', message) end
  end
  local deadline = seconds and C.sl_abi_monotonic_ms() + seconds * 1000
  while true do
    if self:state() == 'INITIALIZED' then site.raise('await_termination: the context has not been started') end
    local what = self:work_off()
    check_failure(self)
    if what == 'stopped' then return true end
    if self.clock then
      if deadline then return false end
      site.raise('await_termination: a manual clock does not move by itself; use advance')
    end
    local left = deadline and deadline - C.sl_abi_monotonic_ms() or 1000
    if left <= 0 then return false end
    -- Receivers that run here are asked for records in between.
    local most = next(self.receivers.runners) and RECEIVER_PAUSE_MS or 1000
    C.sl_abi_streaming_wait(self.handle, math.ceil(math.min(left, most)))
  end
end

---------------------------------------------------------------------------------------------------
-- looking

--- Counters and the batches that completed last, newest first.
---@return table
function Context:progress() return events.progress(self.handle) end

--- Milliseconds since the epoch by the context's clock.
---@return integer
function Context:now() return C.sl_abi_streaming_clock_now(self.clock and self.clock.handle or nil) end

--- The active context, nil when there is none.
---@return streamlua.StreamingContext?
function M.active() return active end

return M
