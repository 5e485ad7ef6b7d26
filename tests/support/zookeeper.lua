--- Real ZooKeeper servers for functional specs and scripts/chaos: one, or an ensemble.
--
--     local server = zookeeper.start(folder)
--     server.url                        -- zookeeper://127.64.18.3:2181/test
--     server:pause(); server:resume(); server:stop()
--
--     local ensemble = zookeeper.start(folder, { members = 3 })
--     ensemble:await()                  -- until all members serve
--     local leader = ensemble:leader()  -- a number
--     ensemble:kill(leader); ensemble:start(leader)
--
-- Options: `members`; `hosts`, a list of {address=, network=} where each member runs: the address that it
-- listens at, and the process whose network that is; `root` of the URL.

local eventually = require 'support.eventually'
local net = require 'support.net'
local posix = { dirent = require 'posix.dirent', socket = require 'posix.sys.socket',
  stat = require 'posix.sys.stat', unistd = require 'posix.unistd' }
local process = require 'support.process'

local M = {}

local Ensemble = {}
Ensemble.__index = Ensemble

local TICK_MS = 200
local JAVA = 'java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto '
  .. '-cp /etc/zookeeper/conf:/usr/share/java/zookeeper.jar '

--- True where ZooKeeper can be started.
function M.is_installed() return posix.unistd.access('/usr/share/java/zookeeper.jar', 'r') == 0 end

local function write_config(self, number)
  local member = self.members[number]
  local folder = ('%s/zookeeper-%d'):format(self.folder, number)
  local lines = { 'tickTime=' .. TICK_MS, 'initLimit=50', 'syncLimit=5', 'minSessionTimeout=400',
    'maxSessionTimeout=60000', 'dataDir=' .. folder, 'clientPort=' .. member.ports[1],
    'clientPortAddress=' .. member.address, 'admin.enableServer=false', 'maxClientCnxns=0' }
  posix.stat.mkdir(folder)
  if #self.members > 1 then
    for i, peer in ipairs(self.members) do
      lines[#lines + 1] = ('server.%d=%s:%d:%d'):format(i, peer.address, peer.ports[2], peer.ports[3])
    end
    process.write_file(folder .. '/myid', number .. '\n')
  end
  member.config = folder .. '.cfg'
  process.write_file(member.config, table.concat(lines, '\n') .. '\n')
end

--- Starts servers with their data in a folder. They serve a second or two later; clients wait for them.
---@param folder string
---@param options table?
---@return table ensemble
function M.start(folder, options)
  options = options or {}
  local self = setmetatable({ folder = folder, members = {} }, Ensemble)
  for number = 1, options.members or 1 do
    local host = options.hosts and options.hosts[number] or { address = net.address() }
    self.members[number] = { host = host, address = host.address, network = host.network,
      -- For clients, for its peers, for elections.
      ports = { 2180 + number, 2880 + number, 3880 + number } }
  end
  local places = {}
  for number, member in ipairs(self.members) do
    write_config(self, number)
    places[number] = member.address .. ':' .. member.ports[1]
  end
  self.url = ('zookeeper://%s/%s'):format(table.concat(places, ','), options.root or 'test')
  for number in ipairs(self.members) do self:start(number) end
  return self
end

--- Starts a member that does not run.
---@param number integer
function Ensemble:start(number)
  local member = self.members[number]
  local enter = member.network and ('nsenter --net=/proc/%d/ns/net '):format(member.network) or ''
  -- Its log goes to a file; nobody reads its output.
  member.server = process.start({ '-c', ("exec setpriv --pdeathsig KILL %s%s"
    .. "org.apache.zookeeper.server.quorum.QuorumPeerMain '%s' >>'%s/zookeeper-%d.log' 2>&1"):format(enter,
    JAVA, member.config, self.folder, number) }, { program = 'sh' })
end

-- Numbers of all members, or the one that is given.
local function chosen(self, number)
  local list = { number }
  for i = 1, number and 0 or #self.members do list[i] = i end
  return list
end

--- Has a member, or all, stop serving, as a machine that hangs.
---@param number integer?
function Ensemble:pause(number)
  for _, i in ipairs(chosen(self, number)) do self.members[i].server:signal('STOP') end
end

--- Has a member, or all, go on.
---@param number integer?
function Ensemble:resume(number)
  for _, i in ipairs(chosen(self, number)) do self.members[i].server:signal('CONT') end
end

--- Ends a member, or all, as a power failure does.
---@param number integer?
function Ensemble:kill(number)
  for _, i in ipairs(chosen(self, number)) do self.members[i].server:signal('KILL') end
  for _, i in ipairs(chosen(self, number)) do self.members[i].server:wait() end
end

Ensemble.stop = Ensemble.kill

-- What a member says of itself; '' while it does not serve.
local function ask(member)
  local fd = assert(posix.socket.socket(posix.socket.AF_INET, posix.socket.SOCK_STREAM, 0))
  -- A member that hangs, or is cut off, answers nothing.
  for _, option in ipairs({ posix.socket.SO_RCVTIMEO, posix.socket.SO_SNDTIMEO }) do
    posix.socket.setsockopt(fd, posix.socket.SOL_SOCKET, option, 0, 150000)
  end
  local text = ''
  if posix.socket.connect(fd, { family = posix.socket.AF_INET, addr = member.address,
    port = member.ports[1] }) and posix.socket.send(fd, 'srvr') then
    local part = posix.socket.recv(fd, 1024)
    while part and part ~= '' do
      text = text .. part
      part = posix.socket.recv(fd, 1024)
    end
  end
  posix.unistd.close(fd)
  return text
end

--- Waits until a member, or all, serve.
---@param number integer?
function Ensemble:await(number)
  for _, i in ipairs(chosen(self, number)) do
    local is_serving = eventually(function() return ask(self.members[i]):find('Mode: ', 1, true) end)
    if not is_serving then error(('ZooKeeper member %d does not serve'):format(i), 0) end
  end
end

--- Number of the member that leads the others, nil while none does.
---@return integer?
function Ensemble:leader()
  for i, member in ipairs(self.members) do
    if ask(member):find('Mode: [ls][et]a') then return i end
  end
end

--- Paths of the files in which each member writes down its transactions.
---@return string[][]
function Ensemble:logs()
  local list = {}
  for number in ipairs(self.members) do
    local folder = ('%s/zookeeper-%d/version-2'):format(self.folder, number)
    list[number] = {}
    for name in posix.dirent.files(folder) do
      if name:find('^log%.') then table.insert(list[number], folder .. '/' .. name) end
    end
  end
  return list
end

return M
