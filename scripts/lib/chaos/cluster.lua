-- The cluster that scripts/chaos does harm to: commands, daemons, ZooKeeper servers, hosts, and what can be
-- seen of them. What must not be is raised as an error.
--
--     local cluster = require('chaos.cluster').new(options)
--     cluster:begin()
--     local document, code = cluster:run('describe', 'chaos')
--     cluster:finish()

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'
local network = require 'support.network'
local posix = { poll = require 'posix.poll', signal = require 'posix.signal' }
local process = require 'support.process'
local topology = require 'chaos.topology'
local zookeeper = require 'support.zookeeper'

local M = {}

local Cluster = {}
Cluster.__index = Cluster

local SLOTS = 4
local LISTENING = '0A'

-- What fails is seen sooner than by default. All processes of the cluster read it.
local SETTINGS = [[return { heartbeat_interval = '300ms', heartbeat_timeout = '3s',
  registration_error_delay = '200ms', registration_refused_delay = '200ms', monitor_interval = '300ms',
  supervisor_timeout = '2s', state_timeout = '2s', zookeeper_session_timeout = '%s', %s }]]

--- Session time-out of ZooKeeper, in seconds.
M.SESSION_S = 3

function M.now() return libc.clock_s('mono') end
function M.sleep(seconds) posix.poll.poll({}, math.floor(seconds * 1000)) end

--- A cluster that is not begun yet. Options: folder, seed, supervisors (0: none, topologies are local),
--- members (of ZooKeeper; 0: a state folder), with_hosts (each daemon in a network of its own).
function M.new(options)
  local self = setmetatable({ options = options, folder = options.folder, daemons = {}, hosts = {},
    updates = 0 }, Cluster)
  self.is_standalone = options.supervisors > 0
  self.binary = libc.realpath('/proc/self/exe')
  self.started = M.now()
  self.state = 'localfs:' .. self.folder .. '/state'
  return self
end

function Cluster:say(...)
  io.stderr:write(('%7.1f  '):format(M.now() - self.started), table.concat({ ... }, ' '), '\n')
end

-- Commands.

--- Starts a command.
function Cluster:start(...)
  return process.start({ '-q', '-o', 'json', ... }, { program = self.binary, env = self.env })
end

--- Runs a command; its document, its exit code, and all it said.
function Cluster:run(...)
  local result = self:start(...):wait()
  local text = result.stdout .. result.stderr
  return json.decode(result.stdout), result.code, text
end

--- Runs a command that must succeed.
function Cluster:ok(...)
  local document, code, text = self:run(...)
  if code ~= 0 then error(table.concat({ ... }, ' ') .. ': exit ' .. code .. ': ' .. text, 0) end
  return document
end

--- Counts an update that ended; its exit code.
function Cluster:updated(running)
  local result = running:wait()
  local document = json.decode(result.stdout)
  if result.code == 0 then
    self.updates = self.updates + 1
    if not self.is_standalone and document.to_version ~= self.updates + 1 then
      error(('the plan has version %s after %d updates'):format(document.to_version, self.updates), 0)
    end
    return 0
  end
  local failure = json.decode(result.stderr)
  local message = failure and failure.error.message or result.stderr
  -- The answer was lost with the topology master: by now, or when the next one was asked again.
  self.is_in_doubt = message:find('closed the connection', 1, true) ~= nil
    or message:find('not the one planned from', 1, true) ~= nil
  if not (result.code == 4 or result.code == 8 or (result.code == 1 and self.is_in_doubt)
    or (self.is_standalone and result.code == 5)) then
    error(('update ended with %d: %s'):format(result.code, message), 0)
  end
  self:say('update:', message)
  return result.code
end

-- Daemons, as a service manager keeps them.

local function host_of(self, address)
  if not self.options.with_hosts then return nil end
  local host = network.host(address)
  self.hosts[#self.hosts + 1] = host
  return host
end

function Cluster:daemon_start(name)
  local daemon = self.daemons[name]
  if daemon.process then daemon.process:wait() end
  local words = { self.binary, unpack(daemon.words) }
  if daemon.host then
    words = { 'nsenter', ('--net=/proc/%d/ns/net'):format(daemon.host.network), unpack(words) }
  end
  for i, word in ipairs(words) do words[i] = "'" .. word .. "'" end
  -- What it says goes to a file: nobody reads its output.
  daemon.process = process.start({ '-c', ("exec setpriv --pdeathsig KILL %s >>'%s' 2>&1"):format(
    table.concat(words, ' '), daemon.log) }, { program = 'sh', env = self.env })
end

local function daemon_add(self, name, address, ...)
  local host = host_of(self, address)
  local words = { ... }
  if host then
    words[#words + 1] = '--host'
    words[#words + 1] = address
  end
  self.daemons[name] = { words = words, host = host, log = ('%s/%s.log'):format(self.folder, name) }
  self:daemon_start(name)
end

local function is_alive(pid)
  local file = io.open('/proc/' .. pid .. '/stat')
  local text = file and file:read('*a') or ''
  if file then file:close() end
  return text ~= '' and not text:find(') Z', 1, true)
end

--- Starts the daemons that ended.
function Cluster:keep()
  for name, daemon in pairs(self.daemons) do
    if not is_alive(daemon.process.pid) then self:daemon_start(name) end
  end
end

--- Signals a daemon: 'KILL', 'STOP', ...
function Cluster:signal(name, signal) self.daemons[name].process:signal(signal) end

--- Names of the daemons that match a pattern, sorted.
function Cluster:names(pattern)
  local list = {}
  for name in pairs(self.daemons) do
    if name:find(pattern) then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

local function ports_of(self, number)
  -- Slots that nobody else on this machine is likely to have.
  local first = self.options.with_hosts and 6800
    or 30000 + self.options.seed % 1000 * 20 + number * SLOTS
  return first, first + SLOTS - 1
end

local function begin_zookeeper(self)
  local hosts = {}
  for i = 1, self.options.members do hosts[i] = host_of(self, '10.78.0.' .. i) end
  self.zookeeper = zookeeper.start(self.folder, { members = self.options.members,
    hosts = self.options.with_hosts and hosts, root = 'chaos' .. self.folder:gsub('%W', '') })
  self.zookeeper_hosts = hosts
  self.state = self.zookeeper.url
  self.zookeeper:await()
end

--- Starts all that commands need.
function Cluster:begin()
  if self.options.with_hosts then network.open('10.78.0.254') end
  if self.options.members > 0 then begin_zookeeper(self) end
  self.env = { STREAMLUA_STATE = self.state, STREAMLUA_CLUSTER = self.is_standalone and 'standalone' or 'local',
    STREAMLUA_SET = 'folder=' .. self.folder }
  if not self.is_standalone then return end
  self.env.STREAMLUA_CONFIG, self.env.XDG_STATE_HOME = self.folder .. '/settings.lua', self.folder
  process.write_file(self.env.STREAMLUA_CONFIG, SETTINGS:format(M.SESSION_S .. 's',
    self.options.with_hosts and "secret = 'of-chaos'" or ''))
  for i = 1, 2 do daemon_add(self, 'master-' .. i, '10.78.0.' .. 10 + i, 'master', '--api', 'off') end
  for i = 1, self.options.supervisors do
    daemon_add(self, 'supervisor-' .. i, '10.78.0.' .. 20 + i, 'supervisor', '--id', 's' .. i, '--ports',
      ('%d-%d'):format(ports_of(self, i)))
  end
end

-- Processes of topologies.

--- Processes of the topology, of one role only when it is given: {pid=, role=, supervisor=}, by pid.
function Cluster:processes(role)
  local list = {}
  for _, path in ipairs(libc.glob('/proc/[0-9]*/cmdline')) do
    local file = io.open(path, 'rb')
    local text = file and file:read('*a')
    if file then file:close() end
    if text and text:find(self.state, 1, true) and text:find('--topology', 1, true) then
      local item = { pid = tonumber(path:match('%d+')), role = text:match('^%Z+%z(%Z+)'),
        supervisor = text:match('%z%-%-supervisor%z(%Z+)') }
      if not role or item.role == role then list[#list + 1] = item end
    end
  end
  table.sort(list, function(a, b) return a.pid < b.pid end)
  return list
end

-- What can be seen.

--- Waits until something is true; after the limit an error that says what is not, a text or a function that
--- gives it.
function Cluster:await(seconds, what, condition)
  local deadline = M.now() + seconds * process.slowness
  repeat
    local result = condition()
    if result then return result end
    M.sleep(0.05)
  until M.now() > deadline
  error(type(what) == 'function' and what() or what, 0)
end

--- The processes of all containers, as text. One that has no place any more may run for a moment longer: it is
--- not among them.
function Cluster:workers()
  local list = {}
  for i, container in ipairs(self:ok('describe', 'chaos').containers) do
    list[i] = ('%d: %d'):format(container.id, container.pid)
  end
  table.sort(list)
  return table.concat(list, ', ')
end

--- Raises when not the same processes run the containers as before.
function Cluster:check_workers(before)
  local now = self:workers()
  if now ~= before then error(('processes of containers were %s and are %s'):format(before, now), 0) end
end

--- Waits until every container runs again in this state, with a worker each and none besides.
function Cluster:settled(state)
  local deadline, text = M.now() + 90 * process.slowness
  repeat
    self:keep()
    local document, code
    document, code, text = self:run('describe', 'chaos')
    local is_settled = code == 0 and document.state == state and #document.containers > 0
    for _, container in ipairs(code == 0 and document.containers or {}) do
      is_settled = is_settled and container.state == state
    end
    -- One that its supervisor or a new plan does not want any more has a moment to end.
    if is_settled and #self:processes('worker') == #document.containers then return document end
    M.sleep(0.1)
  until M.now() > deadline
  error(('the topology does not recover: workers=%d %s'):format(#self:processes('worker'), text), 0)
end

local function acked_size(self)
  local stat = libc.stat(self.folder .. '/acked')
  return stat and stat.size or 0
end

--- Roots go on being acked for so long, without a gap of more than some seconds.
function Cluster:flows(seconds, gap)
  local deadline, size, last = M.now() + seconds, acked_size(self), M.now()
  repeat
    M.sleep(0.1)
    local now = acked_size(self)
    if now > size then size, last = now, M.now() end
    if M.now() - last > gap * process.slowness then
      error(('nothing was acked for %g s'):format(M.now() - last), 0)
    end
  until M.now() >= deadline
end

--- Waits until no root can be open any more that was emitted before, unless it waits for its time-out, which
--- raises an error. Without an end of any root for so long there is one too.
function Cluster:ends(gap)
  local from, count, last = acked_size(self), 0, M.now()
  repeat
    M.sleep(0.05)
    local file = assert(io.open(self.folder .. '/acked', 'rb'))
    file:seek('set', from)
    local text = file:read('*a')
    file:close()
    if #text > 0 then
      from, count, last = from + #text, count + select(2, text:gsub('\n', '')), M.now()
    elseif M.now() - last > gap * process.slowness then
      error(('nothing was acked for %g s'):format(M.now() - last), 0)
    end
    topology.check_waits(self.folder)
  until count > 2 * topology.LATER
end

-- The term that each living master leads in, by the name of its daemon, as its log says.
local function leading(self)
  local terms = {}
  for _, name in ipairs(self:names('^master')) do
    local term
    for line in io.lines(self.daemons[name].log) do
      if line:find('stands for election', 1, true) or line:find('term %d+ is over') then term = nil end
      term = tonumber(line:match('leads in term (%d+)')) or term
    end
    if is_alive(self.daemons[name].process.pid) then terms[name] = term end
  end
  return terms
end

--- Waits until exactly one master leads, of those that are not excluded: its name and term.
function Cluster:leader(excluded)
  local found
  self:await(30, 'there is not one leading master', function()
    found = nil
    for name, term in pairs(leading(self)) do
      if name ~= excluded then
        if found then return false end
        found = { name = name, term = term }
      end
    end
    return found ~= nil
  end)
  return found.name, found.term
end

-- The end.

-- Sockets that listen in the network of a process: "ADDRESS:PORT", in hexadecimal.
local function listeners(pid)
  local list = {}
  for line in io.lines(('/proc/%s/net/tcp'):format(pid)) do
    local place, state = line:match('^%s*%d+: (%x+:%x+) %x+:%x+ (%x%x)')
    if state == LISTENING then list[#list + 1] = place end
  end
  return list
end

local function check_ports(self)
  for i, name in ipairs(self:names('^supervisor')) do
    local first, last = ports_of(self, i)
    local host = self.daemons[name].host
    for _, place in ipairs(listeners(host and host.network or 'self')) do
      local port = tonumber(place:match('%x+$'), 16)
      -- In a network of its own nothing at all is left.
      if host or (port >= first and port <= last) then
        error(('port %d of %s is still listened on'):format(port, name), 0)
      end
    end
  end
end

--- Ends all daemons as their service manager does: when they are gone, nobody listens at their ports.
function Cluster:end_daemons()
  for name in pairs(self.daemons) do self:signal(name, 'TERM') end
  for _, daemon in pairs(self.daemons) do daemon.process:wait() end
  check_ports(self)
  self.daemons = {}
end

--- Ends everything, whatever happened.
function Cluster:finish()
  -- Local processes start each other anew.
  if not self.is_standalone then self:run('kill', 'chaos') end
  for name in pairs(self.daemons) do
    self:signal(name, 'KILL')
  end
  for _, item in ipairs(self:processes()) do posix.signal.kill(item.pid, posix.signal.SIGKILL) end
  if self.zookeeper then self.zookeeper:stop() end
  network.close(self.hosts)
end

return M
