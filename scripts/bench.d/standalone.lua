--- A standalone cluster in a folder of its own, for the workloads beside it.
--
--     local cluster = standalone.open()          -- or standalone.open { zookeeper = true }
--     cluster:master('m1'); cluster:supervisor('s1', 4)
--     cluster:run('submit', 'some.lua')          -- its document; raises an error
--     cluster:close()                            -- whatever happened

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'

local M = {}

local folder = debug.getinfo(1, 'S').source:match('^@(.*)/[^/]*$') or '.'
local binary = libc.realpath(folder .. '/../../build/streamlua')
local ZOOKEEPER_JAR = '/usr/share/java/zookeeper.jar'
local FIRST_PORT, TICKS = 6800, 100

local function quoted(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

local function sentence(words)
  local list = {}
  for i, word in ipairs(words) do list[i] = quoted(word) end
  return table.concat(list, ' ')
end

local function read(path)
  local file = io.open(path, 'rb')
  local text = file and file:read('*a')
  if file then file:close() end
  return text
end

-- Waits until a file has a line that fits.
local function expect(path, pattern, seconds)
  local deadline = libc.clock_s('mono') + seconds
  repeat
    local found = (read(path) or ''):match(pattern)
    if found then return found end
    libc.readable(-1, 5)
  until libc.clock_s('mono') > deadline
  error(('%s: no %s in %s'):format(path, pattern, read(path) or 'no such file'), 0)
end

local Cluster = {}
Cluster.__index = Cluster

--- Is there a ZooKeeper to be started?
function M.has_zookeeper() return read(ZOOKEEPER_JAR) ~= nil end

-- Starts a program whose output goes to a log of its name.
function Cluster:daemon(name, words)
  local pipe = assert(io.popen(("exec 3>&1; exec >>'%s/%s.log' 2>&1; exec %s 3>&- & echo $! >&3"):format(
    self.folder, name, sentence(words))))
  self.daemons[name] = tonumber(pipe:read('*l'))
  pipe:close()
end

-- As docs/zookeeper.md configures a server.
function Cluster:zookeeper()
  local place, port = self.folder .. '/zookeeper', 21000 + self.number % 9000
  assert(os.execute('mkdir ' .. quoted(place)) == 0)
  local file = assert(io.open(place .. '/zoo.cfg', 'w'))
  file:write(('tickTime=500\ninitLimit=20\nsyncLimit=8\nmaxSessionTimeout=60000\ndataDir=%s\nclientPort=%d\n'
    .. 'clientPortAddress=%s\nadmin.enableServer=false\nmaxClientCnxns=0\n'):format(place, port,
    self.host))
  file:close()
  self:daemon('zookeeper-server', { 'java', '-Xmx128m', '-XX:+UseSerialGC', '-cp',
    '/etc/zookeeper/conf:' .. ZOOKEEPER_JAR,
    'org.apache.zookeeper.server.quorum.QuorumPeerMain', place .. '/zoo.cfg' })
  return ('zookeeper://%s:%d/bench'):format(self.host, port)
end

-- Words of a command on this cluster.
function Cluster:command(...)
  return { binary, '--cluster', 'standalone', '--state', self.url, ... }
end

--- Runs a command that must succeed and gives its document.
function Cluster:run(...)
  local words = self:command('-q', '-o', 'json', ...)
  local pipe = assert(io.popen('exec ' .. sentence(words) .. ' 2>&1', 'r'))
  local text = pipe:read('*a')
  pipe:close()
  local document = json.decode(text)
  if not document or document.error then error(table.concat(words, ' ') .. ': ' .. text, 0) end
  return document
end

--- Starts a master; returns when it stands for election.
function Cluster:master(name)
  self:daemon(name, self:command('master', '--host', self.host, '--api', 'off'))
  expect(self:log(name), 'stands for election', 30)
end

--- Waits until a master leads.
function Cluster:leads(name) expect(self:log(name), 'leads in term', 60) end

--- Starts a supervisor with room enough; returns when it is ready.
function Cluster:supervisor(name, slots)
  self.port = self.port + slots
  self:daemon(name, self:command('supervisor', '--id', name, '--host', self.host, '--ports',
    ('%d-%d'):format(self.port - slots, self.port - 1), '--cpu', slots * 100, '--ram',
    slots * 100 .. 'GiB'))
  expect(self:log(name), 'is ready', 30)
end

--- Where a daemon's output is.
function Cluster:log(name) return ('%s/%s.log'):format(self.folder, name) end

--- Ends a daemon at once.
function Cluster:kill(name)
  libc.kill(self.daemons[name], libc.SIGKILL)
  self.daemons[name] = nil
end

--- All processes of this cluster, without ZooKeeper: a list of {pid=, name=}.
function Cluster:processes()
  local list, own = {}, {}
  for name, pid in pairs(self.daemons) do own[pid] = name end
  for _, path in ipairs(libc.glob('/proc/[0-9]*/cmdline')) do
    local pid, text = tonumber(path:match('%d+')), read(path) or ''
    if text:find(self.url, 1, true) and own[pid] ~= 'zookeeper-server' then
      list[#list + 1] = { pid = pid, name = own[pid] or text:match('^%Z+%z(%Z+)') }
    end
  end
  return list
end

--- Processor seconds of processes together.
function M.cpu(processes)
  local ticks = 0
  for _, process in ipairs(processes) do
    local fields = (read(('/proc/%d/stat'):format(process.pid)) or ''):match('%) (.*)$')
    local at = 2
    for field in (fields or ''):gmatch('%S+') do
      at = at + 1
      if at == 14 or at == 15 then ticks = ticks + tonumber(field) end
    end
  end
  return ticks / TICKS
end

--- Memory of a process that it shares with no other, and its part of what it shares, in MiB.
function M.memory(pid)
  local text = read(('/proc/%d/smaps_rollup'):format(pid)) or ''
  return (tonumber(text:match('Pss:%s+(%d+)')) or 0) / 1024
end

--- Ends everything at once, and removes the folder.
function Cluster:close()
  for name, pid in pairs(self.daemons) do
    if name ~= 'zookeeper-server' then libc.kill(pid, libc.SIGKILL) end
  end
  -- Guards start what they miss anew: until nobody is left.
  repeat
    local list = self:processes()
    for _, process in ipairs(list) do libc.kill(process.pid, libc.SIGKILL) end
    if #list > 0 then libc.readable(-1, 20) end
  until #list == 0
  if self.daemons['zookeeper-server'] then self:kill('zookeeper-server') end
  os.execute('rm -rf ' .. quoted(self.folder))
end

--- A cluster without daemons.
---@param options? table zookeeper: keep the state in a server of its own
function M.open(options)
  local pipe = assert(io.popen('mktemp -d'))
  local self = setmetatable({ folder = pipe:read('*l'), daemons = {}, port = FIRST_PORT }, Cluster)
  pipe:close()
  -- 127.0.0.0/8 is ours, so runs do not meet.
  self.number = tonumber(io.open('/proc/self/stat', 'r'):read('*n'))
  self.host = ('127.%d.%d.4'):format(1 + math.floor(self.number / 250) % 250, self.number % 250)
  self.url = options and options.zookeeper and self:zookeeper() or 'localfs:' .. self.folder .. '/state'
  return self
end

return M
