--- A real ZooKeeper server for functional specs.
--
--     local server = require('support.zookeeper').start(folder)
--     server.url                        -- zookeeper://127.0.0.1:PORT/test
--     server:pause(); server:resume(); server:stop()

local net = require 'support.net'
local posix = { signal = require 'posix.signal', stat = require 'posix.sys.stat',
  unistd = require 'posix.unistd' }
local process = require 'support.process'

local M = {}

local Server = {}
Server.__index = Server

--- Starts a server with its data in a folder. It serves a second or two later; clients wait for it.
---@param folder string
---@return table server
function M.start(folder)
  local fd, port = net.listen()
  posix.unistd.close(fd)
  local config = folder .. '/zookeeper.cfg'
  posix.stat.mkdir(folder .. '/zookeeper')
  process.write_file(config, ('tickTime=200\nminSessionTimeout=400\nmaxSessionTimeout=60000\n'
    .. 'dataDir=%s/zookeeper\nclientPort=%d\nclientPortAddress=127.0.0.1\n'
    .. 'admin.enableServer=false\nmaxClientCnxns=0\n'):format(folder, port))
  -- Its log goes to standard output, which is read at its end only.
  local server = process.start({ '-c', ('exec java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 '
    .. '-Xshare:auto -cp /etc/zookeeper/conf:/usr/share/java/zookeeper.jar '
    .. "org.apache.zookeeper.server.quorum.QuorumPeerMain '%s' >'%s/zookeeper.log' 2>&1"):format(config,
    folder) }, { program = 'sh' })
  return setmetatable({ server = server, url = ('zookeeper://127.0.0.1:%d/test'):format(port) },
    Server)
end

--- Stops serving, as a machine that hangs.
function Server:pause() posix.signal.kill(self.server.pid, posix.signal.SIGSTOP) end
function Server:resume() posix.signal.kill(self.server.pid, posix.signal.SIGCONT) end

--- Ends it.
function Server:stop()
  self.server:signal('KILL')
  self.server:wait()
end

return M
