--- Makes the TCP connections of receivers. The only `ffi.cdef` of the names of sockets.
--
--     local socket = require 'streamlua.streaming.socket'
--     local fd = assert(socket.connect('127.0.0.1', 9999))

local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'streamlua.connectors.libc'

ffi.cdef [[
struct sl_libc_addrinfo {
  int flags, family, type, protocol;
  unsigned int length;
  void *address;
  char *name;
  struct sl_libc_addrinfo *next;
};
int getaddrinfo(const char *host, const char *service, const struct sl_libc_addrinfo *hints,
                struct sl_libc_addrinfo **result);
void freeaddrinfo(struct sl_libc_addrinfo *result);
const char *gai_strerror(int code);
int socket(int domain, int type, int protocol);
int connect(int fd, const void *address, unsigned int length);
int getsockopt(int fd, int level, int name, void *value, unsigned int *length);
]]

local C = ffi.C

local M = {}

local SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC = 1, 0x800, 0x80000
local SOL_SOCKET, SO_ERROR = 1, 4
local EINPROGRESS = 115
local POLLOUT = 4

local function connect_one(entry, timeout_ms)
  local fd = C.socket(entry.family, bit.bor(SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC), entry.protocol)
  if fd < 0 then return nil, libc.message(ffi.errno()) end
  if C.connect(fd, entry.address, entry.length) == 0 then return fd end
  local code = ffi.errno()
  if code == EINPROGRESS then
    local waiting = ffi.new('struct sl_libc_pollfd[1]')
    waiting[0].fd, waiting[0].events = fd, POLLOUT
    if C.poll(waiting, 1, timeout_ms) == 1 then
      local result, size = ffi.new('int[1]'), ffi.new('unsigned int[1]', 4)
      C.getsockopt(fd, SOL_SOCKET, SO_ERROR, result, size)
      code = result[0]
      if code == 0 then return fd end
    else
      libc.close(fd)
      return nil, 'no answer'
    end
  end
  libc.close(fd)
  return nil, libc.message(code)
end

--- Connects to a host and port. Reads of the descriptor never block.
---@param host string
---@param port integer
---@param timeout_ms? integer 5000 when missing
---@return integer? fd
---@return string? message
function M.connect(host, port, timeout_ms)
  local hints = ffi.new('struct sl_libc_addrinfo')
  hints.type = SOCK_STREAM
  local result = ffi.new('struct sl_libc_addrinfo *[1]')
  local rc = C.getaddrinfo(host, tostring(port), hints, result)
  if rc ~= 0 then return nil, ffi.string(C.gai_strerror(rc)) end
  local fd, message
  local entry = result[0]
  while entry ~= nil and not fd do
    fd, message = connect_one(entry, timeout_ms or 5000)
    entry = entry.next
  end
  C.freeaddrinfo(result[0])
  return fd, message
end

return M
