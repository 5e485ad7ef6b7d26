-- Cuts a descriptor's bytes into lines: large reads into one C buffer, line ends found by memchr.
-- Any bytes are allowed, NUL too; `\n` ends a line, `\r` stays. A line longer than the limit is
-- dropped and counted without ever being held whole, so memory is bounded by limit and block size.
--
--   local reader = require('streamlua.connectors.line_reader').new(fd, { max_line = 1048576 })
--   local line, state = reader:next()       -- state: 'again', 'end' or 'error' when line is nil

local ffi = require 'ffi'
local libc = require 'streamlua.connectors.libc'

local C = libc.C
local cast, copy_string = ffi.cast, ffi.string
local char_pointer = ffi.typeof('char *')

local M = {}

--- Bytes asked for by one read.
M.BLOCK = 262144

local Reader = {}
Reader.__index = Reader

--- Makes a reader; the descriptor stays the caller's.
---@param fd integer
---@param options table? {max_line= bytes, block= bytes, poll= ask before each read whether it would
---  block}
function M.new(fd, options)
  options = options or {}
  return setmetatable({
    fd = fd,
    max_line = options.max_line or 1048576,
    block = options.block or M.BLOCK,
    poll = options.poll or false,
    -- buffer[from..to) is not cut yet; buffer[from..scan) holds no line end.
    buffer = nil, capacity = 0,
    from = 0, scan = 0, to = 0,
    -- Inside a line that is too long: its bytes are thrown away up to the line end.
    skipping = false,
    --- Lines dropped so far, and bytes read so far.
    dropped = 0, bytes = 0,
  }, Reader)
end

local function make_room(self)
  if self.from == self.to then
    self.from, self.scan, self.to = 0, 0, 0
  elseif self.from > 0 and self.capacity - self.to < self.block then
    C.memmove(self.buffer, self.buffer + self.from, self.to - self.from)
    self.scan, self.to = self.scan - self.from, self.to - self.from
    self.from = 0
  end
  if self.capacity - self.to >= self.block then
    return
  end
  local capacity = math.max(self.capacity * 2, self.block)
  local old = self.buffer
  local data = C.malloc(capacity)
  if data == nil then
    error('no memory for a line buffer', 0)
  end
  self.buffer = ffi.gc(cast(char_pointer, data), C.free)
  if old then
    ffi.copy(self.buffer, old, self.to)
    C.free(ffi.gc(old, nil))
  end
  self.capacity = capacity
end

-- Reads once. Returns nil when bytes came, else why not: 'again', 'end', or 'error' and the text.
local function fill(self)
  make_room(self)
  while true do
    if self.poll and not libc.readable(self.fd) then
      return 'again'
    end
    local n = tonumber(C.read(self.fd, self.buffer + self.to, self.capacity - self.to))
    if n > 0 then
      self.to = self.to + n
      self.bytes = self.bytes + n
      return nil
    elseif n == 0 then
      return 'end'
    end
    local code = ffi.errno()
    if code == libc.EAGAIN then
      return 'again'
    elseif code ~= libc.EINTR then
      return 'error', libc.message(code)
    end
  end
end

-- No line end in what is there: throw away what can only belong to a line that is too long.
local function drop_excess(self)
  if self.skipping or self.to - self.from > self.max_line then
    self.skipping = true
    self.from, self.scan, self.to = 0, 0, 0
  end
end

--- The next line without its line end, or nil and 'again' (nothing there now), 'end', or 'error'
--- and a text.
---@return string? line
---@return string? state
---@return string? message
function Reader:next()
  while true do
    if self.scan < self.to then
      local found = C.memchr(self.buffer + self.scan, 10, self.to - self.scan)
      if found ~= nil then
        local stop = cast(char_pointer, found) - self.buffer
        local from = self.from
        self.from, self.scan = stop + 1, stop + 1
        if self.skipping or stop - from > self.max_line then
          self.skipping = false
          self.dropped = self.dropped + 1
        else
          return copy_string(self.buffer + from, stop - from)
        end
      else
        self.scan = self.to
      end
    else
      drop_excess(self)
      local state, message = fill(self)
      if state then
        return nil, state, message
      end
    end
  end
end

--- What is left without a line end: the last line at the end of a file, or nil.
---@return string?
function Reader:rest()
  local size = self.to - self.from
  if self.skipping or size > self.max_line then
    self.skipping = false
    self.dropped = self.dropped + 1
    size = 0
  end
  local line = size > 0 and copy_string(self.buffer + self.from, size) or nil
  self.from, self.scan, self.to = 0, 0, 0
  return line
end

--- Forgets bytes that were read but not cut, e.g. after the file was truncated.
function Reader:forget()
  self.from, self.scan, self.to, self.skipping, self.bytes = 0, 0, 0, false, 0
end

--- Frees the buffer; the reader can not be used afterwards.
function Reader:close()
  if self.buffer then
    C.free(ffi.gc(self.buffer, nil))
    self.buffer, self.capacity = nil, 0
  end
end

return M
