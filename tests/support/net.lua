--- Listening sockets and addresses for specs.
--
-- A port is tried, not asked for: getsockname of Debian's lua-posix reads memory that it did not set.

local psocket = require 'posix.sys.socket'
local unistd = require 'posix.unistd'

local M = {}

local FIRST, COUNT = 20000, 12000

--- An address of the loopback interface that no other process gets here, so that what listens there may have
--- any port, also one that it had before and wants again.
---@return string
function M.address()
  local pid = unistd.getpid()
  return ('127.%d.%d.%d'):format(64 + math.floor(pid / 65536), math.floor(pid / 256) % 256, pid % 256)
end

--- A socket that listens on a free port of the loop-back interface.
---@return integer fd
---@return integer port
function M.listen()
  local start = unistd.getpid() * 7919
  for i = 0, COUNT - 1 do
    local fd = assert(psocket.socket(psocket.AF_INET, psocket.SOCK_STREAM, 0))
    local port = FIRST + (start + i) % COUNT
    psocket.setsockopt(fd, psocket.SOL_SOCKET, psocket.SO_REUSEADDR, 1)
    if psocket.bind(fd, { family = psocket.AF_INET, addr = '127.0.0.1', port = port })
      and psocket.listen(fd, 5) then
      return fd, port
    end
    unistd.close(fd)
  end
  error('no free port')
end

return M
