--- Sources whose records come from receivers: custom ones and lines of a TCP connection.

local abi = require 'streamlua.abi'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local socket = require 'streamlua.streaming.socket'
local sources = require 'streamlua.streaming.source'
local streams = require 'streamlua.streaming.stream'
local libc = require 'streamlua.connectors.libc'
local line_reader = require 'streamlua.connectors.line_reader'

local C, ffi = abi.C, abi.ffi

local M = {}

local block_out = ffi.new('struct sl_streaming_block')

-- The blocks of a batch: their records are in memory, or else in the log.
local function compute(self, time)
  local context = self.context
  local blocks = {}
  local count = C.sl_abi_streaming_block_count(context.handle, self.node, time)
  local records = 0
  for i = 0, count - 1 do
    streams.check_c(self.op, C.sl_abi_streaming_block_get(context.handle, self.node, time, i, block_out))
    local n = tonumber(block_out.records)
    local block = context.receivers:block(self.node, tonumber(block_out.id), block_out)
    if block then
      blocks[#blocks + 1] = block
    else
      context:warn('%s: a block of %d records of batch %d is lost: it was in memory only; '
        .. 'write_ahead_log = true keeps them', self.node_name, n, time)
    end
    records = records + n
  end
  C.sl_abi_streaming_input_report(context.handle, self.node, time, records, nil)
  C.sl_error_clear()
  local made = rdds.of_blocks(context.env, blocks)
  -- The tracker of blocks says when they are not needed any more.
  made.is_borrowed = true
  return made
end

--- A stream of what a receiver stores.
---@param receiver table { on_start(self, r), poll(self, r), on_stop(self), preferred_host= }
function sources.METHODS.receiver_stream(context, receiver)
  if type(receiver) ~= 'table' then
    site.raise('receiver_stream: expected a receiver, got %s', type(receiver))
  end
  for _, name in ipairs({ 'on_start', 'poll', 'on_stop' }) do
    if receiver[name] ~= nil then streams.check_function('receiver_stream: ' .. name, receiver[name]) end
  end
  if not receiver.poll and not receiver.on_start then
    site.raise('receiver_stream: the receiver has neither poll nor on_start')
  end
  local stream = sources.make(context, receiver.op or 'receiver_stream', {
    receiver = receiver,
    flags = C.SL_STREAMING_RECEIVER,
    compute = compute,
  })
  if receiver.preferred_host then
    streams.check_c('receiver_stream', C.sl_abi_streaming_preferred_host(context.handle, stream.node,
      receiver.preferred_host))
  end
  return stream
end

---------------------------------------------------------------------------------------------------
-- lines of a connection

local Lines = {}
Lines.__index = Lines

local RETRY_MS = 5000

-- A poll comes to an end, also of a connection that is faster than its reader.
local LINES_A_POLL = 1024

function Lines:on_start(r)
  local fd, problem = socket.connect(self.host, self.port, RETRY_MS)
  if not fd then
    r:restart(('connect to %s:%d: %s'):format(self.host, self.port, problem))
    return
  end
  self.fd, self.reader, self.told = fd, line_reader.new(fd), 0
end

-- Tells of lines that were dropped since it was called last.
local function tell_dropped(self, r)
  local reader = self.reader
  if reader.dropped > self.told then
    r:report_error(('%s:%d: lines of more than %d bytes were dropped: %d'):format(self.host, self.port,
      reader.max_line, reader.dropped - self.told))
    self.told = reader.dropped
  end
end

function Lines:poll(r)
  local reader = self.reader
  if not reader then return false end
  for i = 1, LINES_A_POLL do
    local line, state, problem = reader:next()
    if line then
      r:store(line)
    elseif state == 'again' then
      tell_dropped(self, r)
      return i > 1
    else
      local rest = reader:rest()
      if rest then r:store(rest) end
      tell_dropped(self, r)
      -- Closed before the restart, so that a new connection never meets the old one.
      self:on_stop()
      r:restart(problem and ('read from %s:%d: %s'):format(self.host, self.port, problem)
        or ('%s:%d has ended the connection'):format(self.host, self.port))
      return true
    end
  end
  return true
end

function Lines:on_stop()
  if self.fd then
    self.reader:close()
    libc.close(self.fd)
    self.fd, self.reader = nil, nil
  end
end

--- The lines that a TCP server sends; each ends with \n. Lines of more than 1 MiB are dropped and told as
--- errors. A connection that is refused, fails or ends is made again after the receiver's restart delay.
---@param host string
---@param port integer
function sources.METHODS.socket_text_stream(context, host, port)
  if type(host) ~= 'string' or host == '' then
    site.raise('socket_text_stream: expected a host, got %s', type(host))
  end
  port = tonumber(port)
  if not port or port < 1 or port > 65535 or port ~= math.floor(port) then
    site.raise('socket_text_stream: a port is a whole number from 1 to 65535')
  end
  return sources.METHODS.receiver_stream(context, setmetatable({ host = host, port = port,
    op = 'socket_text_stream' }, Lines))
end

return M
