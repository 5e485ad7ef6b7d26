--- Running a receiver: its calls, the blocks that its records are cut into, its errors and its end.
--
-- A runner is stepped, by a thread of its own in a run (M.run) or by the driver where everything is in
-- one Lua state. Every call of user code is protected: what it raises ends the receiver, and C starts it
-- again after a while.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local message = require 'streamlua.streaming.message'
local site = require 'streamlua.streaming.site'
local units = require 'streamlua.units'
local wire = require 'streamlua.streaming.wire'

local C, ffi = abi.C, abi.ffi
local UNKNOWN = C.SL_STREAMING_UNKNOWN
local EAGAIN = C.sl_error_from_name('EAGAIN')

local M = {}

-- Blocks that may wait to be stored.
local QUEUE = 10

---------------------------------------------------------------------------------------------------
-- what the receiver's functions get

---@class streamlua.Receiver
local Handle = {}
Handle.__index = Handle

local scratch = buffer.new()

local function encode_into_scratch(handle, record)
  local ok, problem = pcall(scratch.encode, scratch, record)
  if not ok then
    error(('%s: a record can not be stored: %s'):format(handle.runner.stream.node_name,
      (tostring(problem):gsub('^.-: ', ''))), 3)
  end
end

-- Adds what is encoded in the scratch; waits as long as the rate does not allow it.
local function add(handle, count)
  local runner = handle.runner
  local pointer, len = scratch:ref()
  while true do
    local rc = C.sl_abi_block_generator_add(runner.generator, pointer, len, count)
    if rc == 0 then return end
    if rc ~= EAGAIN then
      local _, failure = err.last()
      error(tostring(failure), 3)
    end
    C.sl_error_clear()
    if not runner:wait_for_rate() then error('the receiver is being stopped', 3) end
  end
end

--- Stores a record.
---@param record any
function Handle:store(record)
  scratch:reset()
  encode_into_scratch(self, record)
  add(self, 1)
end

--- Stores a list of records in one block. When it returns the block has been taken, and with a
--- write-ahead log it is on the disk: a source may be told that it need not send them again.
---@param list any[]
function Handle:store_block(list)
  if type(list) ~= 'table' then error('store_block: expected a list, got ' .. type(list), 2) end
  if #list == 0 then return end
  scratch:reset()
  for i = 1, #list do encode_into_scratch(self, list[i]) end
  add(self, #list)
  C.sl_abi_block_generator_cut(self.runner.generator)
  if not self.runner:flush() then error('the block could not be stored', 2) end
end

--- Ends the receiver and starts it again after `delay`.
---@param text? string why, for the listeners
---@param delay? number|string a duration
function Handle:restart(text, delay)
  local delay_ms
  if delay ~= nil then
    local seconds, problem = units.parse_duration(delay)
    if not seconds then error('restart: ' .. problem, 2) end
    delay_ms = math.floor(seconds * 1000 + 0.5)
  end
  self.runner.ending = { message = text and tostring(text) or 'restart', delay_ms = delay_ms }
end

--- Tells the listeners of an error; the receiver goes on.
---@param text string
function Handle:report_error(text)
  self.runner.sink.error(self.runner.stream, tostring(text))
end

--- Ends the receiver; the context starts it again after a while, as one that fails.
---@param text? string why, for the listeners
function Handle:stop(text)
  self.runner.ending = { message = text and tostring(text) or nil }
end

--- Whether the receiver is to end.
---@return boolean
function Handle:is_stopped() return self.runner.ending ~= nil end

---------------------------------------------------------------------------------------------------
-- a runner

local Runner = {}
Runner.__index = Runner

--- A runner of a stream's receiver. The sink is {started(stream) -> true or nil, error(stream, text),
--- ended(stream, ending), block(stream, data) -> true, or nil and perhaps why}.
---@param stream streamlua.DStream
---@param options { clock?: ffi.cdata*, interval_ms: integer, max_rate: number, initial_rate: number, sink: table }
function M.new(stream, options)
  local generator = C.sl_abi_block_generator_new(options.clock, options.interval_ms, QUEUE,
    options.max_rate, options.initial_rate)
  if generator == nil then
    local _, failure = err.last()
    error(failure, 0)
  end
  local self = setmetatable({
    stream = stream,
    receiver = stream.receiver,
    generator = ffi.gc(generator, C.sl_abi_block_generator_free),
    sink = options.sink,
    data = ffi.new('struct sl_block_data'),
  }, Runner)
  self.handle = setmetatable({ runner = self }, Handle)
  return self
end

local function call(self, name, ...)
  local fn = self.receiver[name]
  if not fn then return nil end
  local ok, result = xpcall(fn, site.raised, self.receiver, ...)
  if ok then return result end
  self.ending = self.ending or { message = result }
  return nil
end

--- Starts: false when it may not.
function Runner:start()
  C.sl_abi_block_generator_start(self.generator)
  if not self.sink.started(self.stream) then
    self.ending = { is_refused = true }
    return false
  end
  call(self, 'on_start', self.handle)
  return true
end

--- Hands the blocks over that have been cut; false when one was not taken.
function Runner:flush()
  while C.sl_abi_block_generator_pull(self.generator, self.data) == 1 do
    local is_taken, why = self.sink.block(self.stream, self.data)
    if not is_taken then
      self.ending = self.ending
        or { message = 'a block could not be stored' .. (why and ': ' .. why or '') }
      return false
    end
  end
  return true
end

--- Calls poll once and hands blocks over. Returns whether there was anything.
function Runner:step()
  if self.ending then return false end
  local result = call(self, 'poll', self.handle)
  self:flush()
  return result ~= false and result ~= nil
end

--- Ends: what has been stored is handed over.
function Runner:finish()
  call(self, 'on_stop')
  C.sl_abi_block_generator_stop(self.generator)
  self:flush()
  if not self.ending.is_refused then self.sink.ended(self.stream, self.ending) end
end

---------------------------------------------------------------------------------------------------
-- on a thread of its own

local function thread_sink(document, link)
  local driver = ffi.cast('struct sl_streaming *', document.context)
  local block = ffi.new('struct sl_streaming_block')
  local wal
  local segment = ffi.new('struct sl_wal_segment')
  -- Writes records to the log; false with an error of C.
  local function write(bytes, len)
    if not wal then
      local opened = C.sl_abi_wal_new(document.wal_dir, document.wal_rolling_ms)
      if opened == nil then return false end
      wal = ffi.gc(opened, C.sl_abi_wal_free)
    end
    return C.sl_abi_wal_write(wal, bytes, len, C.sl_abi_streaming_clock_now(nil), segment) >= 0
  end
  -- Has C take a block whose records the driver has; false with an error of C.
  local function give(stream, data, len)
    block.id, block.records, block.worker = data.id, data.records, 'member'
    block.wal_path, block.wal_offset, block.wal_length, block.is_valid = '', 0, 0, 1
    if document.wal_dir then
      if not write(data.bytes, len) then return false end
      block.wal_path, block.wal_offset, block.wal_length = segment.path, segment.offset, segment.length
    end
    return C.sl_abi_streaming_block_add(driver, stream.node, block) >= 0
  end
  return {
    -- The driver registers it, and tells it to end where that is refused.
    started = function(stream)
      link.post(message.RECEIVER_STARTED, { node = stream.node, run = document.run })
      return true
    end,
    error = function(stream, text)
      link.post(message.RECEIVER_ERROR, { node = stream.node, run = document.run, message = text })
    end,
    ended = function(stream, ending)
      link.post(message.RECEIVER_ENDED, { node = stream.node, run = document.run,
        message = ending.message, delay_ms = ending.delay_ms, member = link.member })
    end,
    block = function(stream, data)
      local id, n, len = tonumber(data.id), tonumber(data.records), tonumber(data.len)
      local addr = wire.keep(data.bytes, len)
      -- First to the driver: a batch may ask for the block as soon as C has it.
      link.post(message.BLOCK, { node = stream.node, id = id, addr = addr, len = len, n = n })
      if give(stream, data, len) then return true end
      local _, failure = err.last()
      link.post(message.BLOCK_REFUSED, { node = stream.node, id = id })
      return nil, tostring(failure)
    end,
  }
end

-- In another process than the driver's: blocks go there, and count when it says so.
local function host_sink(document, link)
  local run = document.run
  return {
    started = function(stream)
      link.post(message.RECEIVER_STARTED, { node = stream.node, run = run, member = link.member })
      return true
    end,
    error = function(stream, text)
      link.post(message.RECEIVER_ERROR, { node = stream.node, run = run, message = text })
    end,
    ended = function(stream, ending)
      link.post(message.RECEIVER_ENDED, { node = stream.node, run = run, message = ending.message,
        delay_ms = ending.delay_ms })
    end,
    block = function(stream, data)
      local id = tonumber(data.id)
      link.post(message.BLOCK, { node = stream.node, run = run, member = link.member, id = id,
        n = tonumber(data.records), bytes = ffi.string(data.bytes, data.len) })
      return link.await_taken(id)
    end,
  }
end

-- Pauses of a receiver that has nothing, in ms.
local PAUSE_LEAST, PAUSE_MOST = 1, 50

--- Runs the receiver of a node until it ends or is told to.
---@param context table this Lua state's
---@param document table { node, run, context, interval_ms, max_rate, initial_rate, wal_dir, wal_rolling_ms }
---@param link table { crew, member, post, is_host }
function M.run(context, document, link)
  local stream = context.streams[document.node]
  local received = ffi.new('struct sl_crew_message')
  local runner
  runner = M.new(stream, {
    interval_ms = document.interval_ms,
    max_rate = document.max_rate,
    initial_rate = document.initial_rate,
    sink = (link.is_host and host_sink or thread_sink)(document, link),
  })
  -- What became of the block that was sent last.
  local taken
  -- Hears what the driver wants, waiting at most so long.
  local function hear(timeout_ms)
    local rc = C.sl_abi_crew_receive(link.crew, link.member, 0, timeout_ms, received)
    if rc < 0 then
      C.sl_error_clear()
      runner.ending = runner.ending or {}
      runner.is_orphan = true
    elseif rc == 1 and received.kind == message.RECEIVER_STOP then
      runner.ending = runner.ending or {}
      -- Its driver is gone: nobody answers for blocks.
      runner.is_orphan = runner.is_orphan or received.len == 0
    elseif rc == 1 and received.kind == message.BLOCK_TAKEN then
      taken = buffer.decode(ffi.string(received.bytes, received.len))
    elseif rc == 1 and received.kind == message.RECEIVER_RATE then
      local rate = buffer.decode(ffi.string(received.bytes, received.len)).rate
      C.sl_abi_block_generator_rate(runner.generator, rate)
    end
    return rc == 1
  end
  function link.await_taken(id)
    taken = nil
    while not (taken and taken.id == id) do
      if runner.is_orphan then return nil end
      hear(-1)
    end
    return taken.is_taken or nil
  end
  function runner:wait_for_rate()
    self:flush()
    hear(math.max(1, math.min(PAUSE_MOST, C.sl_abi_block_generator_retry(self.generator))))
    return self.ending == nil
  end
  local pause = PAUSE_LEAST
  if runner:start() then
    while not runner.ending do
      if runner:step() then
        pause = PAUSE_LEAST
        while hear(0) do end
      elseif not runner.ending then
        local due = C.sl_abi_block_generator_due(runner.generator)
        local limit = due ~= UNKNOWN and math.max(1, due - C.sl_abi_streaming_clock_now(nil)) or PAUSE_MOST
        hear(math.min(pause, limit))
        pause = math.min(PAUSE_MOST, pause * 2)
      end
    end
  end
  runner:finish()
end

return M
