--- The driver's side of a crew: sends tasks to executor threads and jobs to the thread of the output
--- operations, and hears what comes of them.
--
-- Members 0 .. executors - 1 run tasks; the next one runs output operations, so that a long one delays
-- no batch; each further one runs a receiver. A job is a coroutine of the driver: it rests while its
-- tasks run. Work that is not in a job, such as an action within `transform`, waits for its tasks.
--
-- With `hosts` (other processes of a submitted program) those run the tasks, except tasks on state, which
-- lies in this process.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local message = require 'streamlua.streaming.message'
local site = require 'streamlua.streaming.site'
local tasks = require 'streamlua.streaming.task'
local wire = require 'streamlua.streaming.wire'

local C, ffi = abi.C, abi.ffi

local M = {}

local Pool = {}
Pool.__index = Pool

local function check(rc)
  if rc < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
  return rc
end

local answer

---@class streamlua.PoolOptions
---@field executors integer threads that run tasks
---@field receivers integer threads for receivers
---@field script string
---@field set? table
---@field first_id? integer numbers of tasks begin behind it
---@field context table the driver's context

--- A pool; `start` starts its threads.
---@param options streamlua.PoolOptions
function M.new(options)
  local members = options.executors + 1 + options.receivers
  local crew = C.sl_abi_crew_new(members)
  if crew == nil then check(-1) end
  local self = setmetatable({
    crew = crew,
    executors = options.executors,
    output_member = options.executors,
    members = members,
    -- Members that are free to run a receiver.
    idle = {},
    context = options.context,
    message = ffi.new('struct sl_crew_message'),
    -- Tasks under way by number, jobs under way, and those of them that may go on.
    waiting = {},
    jobs = {},
    resumable = {},
    -- Another driver may have had the same hosts: its tasks have other numbers.
    last_id = options.first_id or 0,
    -- Output operations under way by number: { rdd, blocks }.
    outputs = {},
    last_output = 0,
    ready = 0,
    ended = 0,
    handlers = {},
  }, Pool)
  for i = 0, options.receivers - 1 do self.idle[i + 1] = options.executors + 1 + i end
  local boot = buffer.encode({ script = options.script, set = options.set, defaults = options.defaults,
    executors = options.executors })
  check(C.sl_abi_crew_set_boot(crew, boot, #boot))
  check(C.sl_abi_crew_wakes(crew, options.context.handle))
  self.default_partitions = options.context.default_partitions
  self.fetch, self.free = wire.fetch, wire.free
  self:on(message.ASK, function(document) answer(self, document) end)
  self.store = function(part) return { n = part.n, part = part } end
  return self
end

function Pool:start() check(C.sl_abi_crew_start(self.crew)) end

--- Sends a message to a member (SL_CREW_ANY: an executor).
function Pool:send(member, kind, document)
  local bytes = document and wire.encode(document) or ''
  check(C.sl_abi_crew_send(self.crew, member, kind, bytes, #bytes))
end

--- Sets the function that hears messages of a kind: f(document, member).
function Pool:on(kind, f) self.handlers[kind] = f end

-- Takes over the memory of blocks in a result.
local function adopt(item)
  if type(item) ~= 'table' then return end
  if item.addr then
    wire.own(item)
    return
  elseif item.bytes then
    wire.land(item)
    return
  end
  for key, inner in pairs(item) do
    if key ~= 'items' then adopt(inner) end
  end
end

--- A task has ended: {id, result} or {id, failure}.
function Pool:settle(document)
  local entry = self.waiting[document.id]
  if not entry then return end
  self.waiting[document.id] = nil
  if entry.host then self.hosts:ended(entry) end
  entry.group.left = entry.group.left - 1
  if document.failure then
    -- The first partition that failed, whatever came first, so that runs agree.
    if not entry.group.failed_at or entry.place < entry.group.failed_at then
      entry.group.failure, entry.group.failed_at = document.failure, entry.place
    end
  else
    adopt(document.result)
    entry.group.results[entry.place] = document.result
    if entry.group.on_result then entry.group.on_result(entry.place, document.result) end
  end
  if entry.group.left == 0 and entry.group.job then
    local job = entry.group.job
    entry.group.job = nil
    self.resumable[#self.resumable + 1] = job
  end
end

--- Hears one message; false when none came within timeout_ms.
function Pool:hear(timeout_ms)
  if C.sl_abi_crew_take(self.crew, timeout_ms, self.message) ~= 1 then return false end
  local kind, member = self.message.kind, self.message.member
  if kind == C.SL_CREW_ENDED then
    self.ended = self.ended + 1
    if self.on_ended then self.on_ended(member) end
    return true
  elseif kind == C.SL_CREW_SIGNAL then
    self.on_signal(member)
    return true
  end
  local bytes = ffi.string(self.message.bytes, self.message.len)
  if kind == C.SL_CREW_PEER then
    if self.hosts then self.hosts:changed(member, bytes:byte()) end
    return true
  end
  if kind == message.BROKEN then
    self.broken = self.broken or bytes
    self:fail_all(bytes)
  elseif kind == message.READY then
    self.ready = self.ready + 1
  elseif kind == message.RESULT then
    self:settle(buffer.decode(bytes))
  else
    local handler = self.handlers[kind]
    if handler then handler(buffer.decode(bytes), member) end
  end
  return true
end

--- Hears all messages there are and goes on with the jobs that waited for them. Returns whether there
--- were any.
---@return boolean
function Pool:hear_all()
  local has_heard = false
  while self:hear(0) do has_heard = true end
  self:resume()
  return has_heard
end

--- Goes on with the jobs whose tasks have ended.
function Pool:resume()
  while #self.resumable > 0 do
    local job = table.remove(self.resumable, 1)
    self:step(job)
  end
end

--- Lets everybody who waits for a task know that it will not come.
function Pool:fail_all(text)
  local ids = {}
  for id in pairs(self.waiting) do ids[#ids + 1] = id end
  for _, id in ipairs(ids) do self:settle({ id = id, failure = text }) end
end

-- Waits for the tasks of a group: within a job by resting, else by hearing messages until then.
local function await(self, group)
  local job = coroutine.running()
  if job and self.jobs[job] then
    group.job = job
    coroutine.yield()
    return
  end
  while group.left > 0 do
    if self.broken then error(self.broken, 0) end
    self:hear(-1)
  end
end

--- A number that no task has had.
---@return integer
function Pool:next_id()
  self.last_id = self.last_id + 1
  return self.last_id
end

local function send_task(self, group, place, member, kind, document)
  document.id = self:next_id()
  self.waiting[document.id] = { group = group, place = place }
  local bytes = wire.pack(document)
  check(C.sl_abi_crew_send(self.crew, member, kind, bytes, #bytes))
end

local function run_group(self, count, on_result, send)
  if self.broken then error(self.broken, 0) end
  local group = { left = count, results = {}, on_result = on_result }
  for i = 1, count do send(group, i) end
  if group.left > 0 then await(self, group) end
  if group.failure then error(group.failure, 0) end
  return group.results
end

-- Whether a task only deals records out that are here: that is less work than to send them away.
local function is_dealing(spec)
  local sink, tree = spec.sink, spec.tree
  return sink.kind == 'shuffle' and sink.combine.kind == 'deal' and tree.op == 'block'
    and tree.block.part ~= nil and tree.block.addr == nil
end

-- What a task begins with, behind its passes: 'state' reads a table of this process, 'nothing' is work
-- on such tables.
local STATE = { state = true, nothing = true }

local function is_on_state(spec)
  local tree = spec.tree
  while tree.input do tree = tree.input end
  return STATE[tree.op] or false
end

-- Steps that call their function for a partition without records too.
local WHOLE = { map_partitions = true, glom = true }
local CUTS = { store = true, count = true, take = true, shuffle = true }

local function has_records(tree)
  if tree.op == 'block' then return tree.block.n ~= 0 end
  if tree.op ~= 'read' then return true end
  for _, blocks in ipairs(tree.sides) do
    for _, block in ipairs(blocks) do
      if block.n ~= 0 then return true end
    end
  end
  return false
end

-- Whether a task has no records and calls no function of the program: that is done here at once.
local function is_void(spec)
  if not CUTS[spec.sink.kind] then return false end
  local tree = spec.tree
  while tree.op == 'pass' do
    for _, step in ipairs(tree.steps) do
      if WHOLE[step.op] then return false end
    end
    tree = tree.input
  end
  return not has_records(tree)
end

local function run_here(self, group, place, spec)
  local result = tasks.run(self, spec)
  group.left = group.left - 1
  group.results[place] = result
  if group.on_result then group.on_result(place, result) end
end

local function send_to_hosts(self, group, place, spec)
  local entry = { id = self:next_id(), group = group, place = place, document = { task = spec } }
  self.waiting[entry.id] = entry
  self.hosts:run(entry)
end

--- Runs tasks on executors at once; those with functions of this Lua state here.
---@param list table[]
---@param on_result? fun(place: integer, result: any)
---@return any[]
function Pool:run(list, on_result)
  if list[1] and (list[1].is_local or is_dealing(list[1])) then
    local results = {}
    for i, spec in ipairs(list) do
      results[i] = tasks.run(self, spec)
      if on_result then on_result(i, results[i]) end
    end
    return results
  end
  return run_group(self, #list, on_result, function(group, i)
    if is_void(list[i]) then
      run_here(self, group, i, list[i])
    elseif self.hosts and not is_on_state(list[i]) then
      send_to_hosts(self, group, i, list[i])
    else
      send_task(self, group, i, C.SL_CREW_ANY, message.TASK, { task = list[i] })
    end
  end)
end

-- What an output operation asks of its dataset.
local ANSWERS = {
  blocks = function(output)
    output.blocks = output.blocks or output.rdd:to_blocks()
    return { blocks = output.blocks }
  end,
  count = function(output) return { count = output.rdd:count() } end,
  take = function(output, n) return { items = output.rdd:take(n) } end,
}

function answer(self, document)
  local output = self.outputs[document.output]
  self:spawn(function()
    local ok, result = pcall(ANSWERS[document.what], output, document.n)
    if not ok then result = { failure = site.raised(result) } end
    local packed, bytes = pcall(wire.pack, result)
    if not packed then bytes = wire.pack({ failure = site.raised(bytes) }) end
    check(C.sl_abi_crew_send(self.crew, self.output_member, message.GIVE, bytes, #bytes))
  end)
end

--- Runs an output operation on the thread for them; it asks for the records of its dataset as it needs
--- them.
function Pool:run_output(node, time, rdd)
  self.last_output = self.last_output + 1
  local number = self.last_output
  local output = { rdd = rdd }
  self.outputs[number] = output
  local ok, raised = pcall(run_group, self, 1, nil, function(group, i)
    send_task(self, group, i, self.output_member, message.OUTPUT,
      { output = number, node = node, time = time, partitions = rdd.count_of_partitions })
  end)
  self.outputs[number] = nil
  if output.blocks and output.blocks ~= rdd.blocks then
    for _, block in ipairs(output.blocks) do wire.free(block) end
  end
  if not ok then error(raised, 0) end
end

--- Runs fn as a job: it may rest while its tasks run.
function Pool:spawn(fn)
  local job = coroutine.create(fn)
  self.jobs[job] = true
  self:step(job)
end

function Pool:step(job)
  local ok, raised = coroutine.resume(job)
  if coroutine.status(job) == 'dead' then self.jobs[job] = nil end
  if not ok then error(raised, 0) end
end

--- Tells all members to leave and waits for them at most limit() ms, which is asked again after each
--- message; false when some do not.
---@param limit fun(): number
---@return boolean
function Pool:stop(limit)
  C.sl_abi_crew_close(self.crew)
  local began = C.sl_abi_monotonic_ms()
  while self.ended < self.members do
    local left = began + limit() - C.sl_abi_monotonic_ms()
    if left <= 0 then return false end
    self:hear(math.ceil(left))
  end
  return true
end

--- Frees it; all members must have ended.
function Pool:close()
  C.sl_abi_crew_free(self.crew)
  self.crew = nil
end

return M
