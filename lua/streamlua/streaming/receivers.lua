--- The receivers of a context and their blocks, from the driver's side: run here, one after the other in
--- coroutines, or by members of a pool, or by those of hosts.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local message = require 'streamlua.streaming.message'
local receive = require 'streamlua.streaming.receive'
local wire = require 'streamlua.streaming.wire'

local C, ffi = abi.C, abi.ffi
local UNKNOWN = C.SL_STREAMING_UNKNOWN

local M = {}

---------------------------------------------------------------------------------------------------
-- blocks

local Blocks = {}
Blocks.__index = Blocks

local function keep_block(self, node, id, block)
  self.blocks[node] = self.blocks[node] or {}
  self.blocks[node][id] = wire.own(block)
end

local function from_log(self, node, info)
  if info.wal_path == nil or info.wal_length <= 0 then return nil end
  local path = ffi.string(info.wal_path)
  if path == '' then return nil end
  local segment = ffi.new('struct sl_wal_segment', { offset = info.wal_offset, length = info.wal_length,
    path = path })
  local len = ffi.new('size_t[1]')
  local wal, problem = self:log_of(node)
  local bytes = wal and C.sl_abi_wal_read(wal, segment, len)
  if bytes == nil then
    problem = problem or tostring(select(2, err.last()))
    self.context:warn('a block can not be read from the log: %s', problem)
    return nil
  end
  local n, size = tonumber(info.records), tonumber(len[0])
  local block = { n = n, addr = wire.keep(bytes, size), len = size, form = 'values' }
  keep_block(self, node, tonumber(info.id), block)
  return block
end

--- The folder of the log of an input's data, nil when it writes none.
function Blocks:log_dir(node)
  local context = self.context
  if not context.write_ahead_log or not context.checkpoint_dir then return nil end
  return ('%s/receivedData/%d'):format(context.checkpoint_dir, context.streams[node]:input_id())
end

--- The log of an input's data for this thread; nil and why it can not be opened.
---@param node integer
---@return ffi.cdata*?
---@return string?
function Blocks:log_of(node)
  local wal = self.logs[node]
  if not wal then
    local dir = ('%s/receivedData/%d'):format(self.context.checkpoint_dir or '.',
      self.context.streams[node]:input_id())
    local opened = C.sl_abi_wal_new(dir, M.ROLLING_MS)
    if opened == nil then return nil, tostring(select(2, err.last())) end
    wal = ffi.gc(opened, C.sl_abi_wal_free)
    self.logs[node] = wal
  end
  return wal
end

M.ROLLING_MS = 60000

--- Deletes the files of an input's log that end before a time.
function Blocks:clean_log(node, time)
  local wal = self:log_dir(node) and self:log_of(node)
  if wal then C.sl_abi_wal_clean(wal, time) end
end

--- The block of this number, from memory or from the log; nil when it is lost.
---@param node integer
---@param id integer
---@param info ffi.cdata* struct sl_streaming_block
---@return table?
function Blocks:block(node, id, info)
  local own = self.blocks[node]
  if own and own[id] then return own[id] end
  if self.before_look_up then
    self.before_look_up()
    own = self.blocks[node]
    if own and own[id] then return own[id] end
  end
  return from_log(self, node, info)
end

--- A block is not needed any more.
function Blocks:drop(node, id)
  local own = self.blocks[node]
  if not own or not own[id] then return end
  wire.free(own[id])
  own[id] = nil
end

local function report(self, rc)
  if rc < 0 then
    local _, failure = err.last()
    return nil, tostring(failure)
  end
  return self
end

local function base(context)
  return { context = context, blocks = {}, logs = {}, runners = {} }
end

---------------------------------------------------------------------------------------------------
-- in this Lua state

local Inline = setmetatable({}, { __index = Blocks })
Inline.__index = Inline

-- Takes n encoded records that a receiver has stored: into the log when there is one, then into memory,
-- then into the next batch. `worker` brought them. True when they were taken, else nil and why not.
local block_out, segment_out = ffi.new('struct sl_streaming_block'), ffi.new('struct sl_wal_segment')
local function take_block(self, stream, data, worker)
  local context, block, segment = self.context, block_out, segment_out
  local id, n, len = tonumber(data.id), tonumber(data.records), tonumber(data.len)
  keep_block(self, stream.node, id, { n = n, addr = wire.keep(data.bytes, len), len = len, form = 'values' })
  block.id, block.records, block.worker, block.is_valid = data.id, data.records, worker, 1
  block.wal_path, block.wal_offset, block.wal_length = '', 0, 0
  if self:log_dir(stream.node) then
    local wal, problem = self:log_of(stream.node)
    local ok = wal ~= nil
    if ok then
      ok, problem = report(self, C.sl_abi_wal_write(wal, data.bytes, len, context:now(), segment))
    end
    if not ok then
      self:drop(stream.node, id)
      return nil, problem
    end
    block.wal_path, block.wal_offset, block.wal_length = segment.path, segment.offset, segment.length
  end
  local ok, problem = report(self, C.sl_abi_streaming_block_add(context.handle, stream.node, block))
  if not ok then
    self:drop(stream.node, id)
    context:warn('%s: a block of %d records was refused: %s', stream.node_name, n, problem)
  end
  return ok and true or nil, problem
end

local function inline_sink(self)
  local context = self.context
  return {
    started = function(stream)
      return report(self, C.sl_abi_streaming_receiver_started(context.handle, stream.node, self.worker or 0))
    end,
    error = function(stream, text)
      C.sl_abi_streaming_receiver_error(context.handle, stream.node, text)
    end,
    ended = function(stream, ending)
      C.sl_abi_streaming_receiver_ended(context.handle, stream.node, ending.message,
        ending.delay_ms or UNKNOWN)
    end,
    block = function(stream, data) return take_block(self, stream, data, 'driver') end,
  }
end

--- Starts the receiver of a node.
function Inline:start(node)
  local context = self.context
  local stream = context.streams[node]
  local runner = receive.new(stream, {
    clock = context.clock and context.clock.handle or nil,
    interval_ms = context.block_interval_ms,
    max_rate = context.max_rate,
    initial_rate = context.initial_rate,
    sink = inline_sink(self),
  })
  function runner.wait_for_rate()
    coroutine.yield('rate')
    return runner.ending == nil
  end
  local body = coroutine.create(function()
    if runner:start() then
      while not runner.ending do coroutine.yield(runner:step() and 'more' or 'idle') end
    end
    runner:finish()
  end)
  self.runners[node] = { runner = runner, body = body }
  self:step(node)
end

--- Asks it to end.
function Inline:stop(node)
  local entry = self.runners[node]
  if not entry then return end
  entry.runner.ending = entry.runner.ending or {}
  self:step(node)
end

--- Sets its rate.
function Inline:rate(node, rate)
  local entry = self.runners[node]
  if entry then C.sl_abi_block_generator_rate(entry.runner.generator, rate) end
end

-- Calls of poll in one moment; a receiver that floods is gone on with at the next one.
local CALLS_A_MOMENT = 10000

function Inline:step(node)
  local entry = self.runners[node]
  for _ = 1, CALLS_A_MOMENT do
    if coroutine.status(entry.body) == 'dead' then
      self.runners[node] = nil
      return
    end
    entry.runner:flush()
    local ok, what = coroutine.resume(entry.body)
    if not ok then
      self.runners[node] = nil
      error(what, 0)
    end
    if what == 'rate' and C.sl_abi_block_generator_retry(entry.runner.generator) > 0 then return end
    if what == 'idle' then return end
  end
end

--- Lets all receivers work as far as they can now.
function Inline:step_all()
  if self.is_stepping then return end
  self.is_stepping = true
  local nodes = {}
  for node in pairs(self.runners) do nodes[#nodes + 1] = node end
  table.sort(nodes)
  for _, node in ipairs(nodes) do self:step(node) end
  self.is_stepping = false
end

--- The time of the clock at which a block is cut next or a rate allows more; nil: never.
function Inline:due()
  local least
  for _, entry in pairs(self.runners) do
    local time = C.sl_abi_block_generator_due(entry.runner.generator)
    if time ~= UNKNOWN and (not least or time < least) then least = time end
    local retry = C.sl_abi_block_generator_retry(entry.runner.generator)
    if retry > 0 then
      local at = self.context:now() + math.ceil(retry)
      if not least or at < least then least = at end
    end
  end
  return least
end

--- Receivers that run in the driver.
---@param context table
function M.inline(context) return setmetatable(base(context), Inline) end

---------------------------------------------------------------------------------------------------
-- in members of a pool

local Remote = setmetatable({}, { __index = Blocks })
Remote.__index = Remote

local function fail_start(self, node, text)
  C.sl_abi_streaming_receiver_ended(self.context.handle, node, text, UNKNOWN)
end

-- On whichever member of a host comes first; it says which when it has started.
local function start_on_host(self, node, entry, document)
  local hosts = self.pool.hosts
  entry.host = hosts.by_worker[entry.worker]
  if not entry.host then
    fail_start(self, node, 'its worker is gone')
    return
  end
  self.runners[node] = entry
  hosts:occupy(entry.host, 1)
  hosts:send(entry.host, C.SL_CREW_ANY, message.RECEIVE, wire.encode(document))
end

--- Starts the receiver of a node on a free member.
function Remote:start(node, worker)
  local context, pool = self.context, self.pool
  self.last_run = self.last_run + 1
  local entry = { worker = worker, run = self.last_run }
  local document = {
    node = node,
    run = entry.run,
    interval_ms = context.block_interval_ms,
    max_rate = context.max_rate,
    initial_rate = context.initial_rate,
  }
  if pool.hosts then
    start_on_host(self, node, entry, document)
    return
  end
  entry.member = table.remove(pool.idle)
  if not entry.member then
    fail_start(self, node, 'there is no thread for it')
    return
  end
  self.runners[node] = entry
  document.context = tonumber(ffi.cast('uintptr_t', context.handle))
  document.wal_dir, document.wal_rolling_ms = self:log_dir(node), M.ROLLING_MS
  pool:send(entry.member, message.RECEIVE, document)
end

-- Sends to the member that runs a receiver.
local function tell_runner(self, entry, kind, document)
  if not entry.host then
    self.pool:send(entry.member, kind, document)
  elseif entry.member then
    self.pool.hosts:send(entry.host, entry.member, kind, wire.encode(document or {}))
  end
end

--- How long a receiver may take to end before the others go on without it.
M.STOP_MS = 10000

local function end_runner(self, entry)
  entry.give_up_at = entry.give_up_at or self.context:now() + M.STOP_MS
  entry.must_stop = true
  tell_runner(self, entry, message.RECEIVER_STOP)
end

--- Asks the receiver of a node to end, which is told when it has.
function Remote:stop(node)
  local entry = self.runners[node]
  if not entry then return end
  entry.is_awaited = true
  end_runner(self, entry)
end

function Remote:rate(node, rate)
  local entry = self.runners[node]
  if entry then tell_runner(self, entry, message.RECEIVER_RATE, { rate = rate }) end
end

--- Gives receivers up that do not come back from their own code.
function Remote:step_all()
  for node, entry in pairs(self.runners) do
    if entry.give_up_at and not entry.is_lost and self.context:now() >= entry.give_up_at then
      entry.is_lost = true
      self.retired[entry.run] = entry.host
      self.context:warn('receiver %s does not end: its code does not return',
        self.context.streams[node].node_name)
      C.sl_abi_streaming_receiver_ended(self.context.handle, node, 'it does not end', UNKNOWN)
    end
  end
end

--- When the next one is given up, nil: never.
function Remote:due()
  local least
  for _, entry in pairs(self.runners) do
    if entry.give_up_at and not entry.is_lost and (not least or entry.give_up_at < least) then
      least = entry.give_up_at
    end
  end
  return least
end

-- The receiver that a message is about, nil when that was given up.
local function runner_of(self, document)
  local entry = self.runners[document.node]
  return entry and entry.run == document.run and entry or nil
end

-- A block of a receiver in another process: its bytes came along, and it waits for the answer.
local function take_from_host(self, document, container)
  local entry = runner_of(self, document)
  local is_taken = entry ~= nil and take_block(self, self.context.streams[document.node], {
    id = document.id, records = document.n, len = #document.bytes,
    bytes = ffi.cast('const uint8_t *', document.bytes),
  }, ('container-%d'):format(container)) or false
  -- One that was given up waits for the answer too.
  self.pool.hosts:send({ container = container }, document.member, message.BLOCK_TAKEN,
    wire.encode({ id = document.id, is_taken = is_taken }))
end

--- A host is lost with its receivers; C places them anew.
function Remote:host_lost(host)
  for node, entry in pairs(self.runners) do
    if entry.host == host then self.runners[node] = nil end
  end
end

--- Receivers that run in members of a pool.
---@param context table
---@param pool table
function M.remote(context, pool)
  local self = setmetatable(base(context), Remote)
  self.pool = pool
  self.last_run = 0
  -- Receivers that were given up and still have their slot: run -> host.
  self.retired = {}
  self.before_look_up = function()
    while pool:hear(0) do end
  end
  pool:on(message.RECEIVER_STARTED, function(document)
    local entry = runner_of(self, document)
    if not entry then return end
    entry.member = document.member or entry.member
    if entry.must_stop then tell_runner(self, entry, message.RECEIVER_STOP) end
    local rc = C.sl_abi_streaming_receiver_started(context.handle, document.node, entry.worker)
    if rc < 0 then
      C.sl_error_clear()
      -- Placed elsewhere by now, or the context stops: then its end is waited for all the same.
      entry.is_refused = true
      end_runner(self, entry)
    end
  end)
  pool:on(message.RECEIVER_ERROR, function(document)
    if not runner_of(self, document) then return end
    C.sl_abi_streaming_receiver_error(context.handle, document.node, document.message)
  end)
  pool:on(message.RECEIVER_ENDED, function(document)
    local entry, retired = runner_of(self, document), self.retired[document.run]
    if entry then self.runners[document.node] = nil end
    self.retired[document.run] = nil
    if not pool.hosts then
      pool.idle[#pool.idle + 1] = document.member
    elseif retired or entry then
      pool.hosts:occupy(retired or entry.host, -1)
    end
    if entry and (entry.is_awaited or not entry.is_refused) and not entry.is_lost then
      C.sl_abi_streaming_receiver_ended(context.handle, document.node, document.message,
        document.delay_ms or UNKNOWN)
    end
  end)
  pool:on(message.BLOCK_REFUSED, function(document) self:drop(document.node, document.id) end)
  pool:on(message.BLOCK, function(document, from)
    if document.bytes then
      take_from_host(self, document, from)
      return
    end
    keep_block(self, document.node, document.id,
      { n = document.n, addr = document.addr, len = document.len, form = 'values' })
  end)
  return self
end

return M
