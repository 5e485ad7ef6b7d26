-- The kinds of harm that scripts/chaos does: to a local topology, to a standalone cluster, to its ZooKeeper
-- servers, to the networks of its hosts. Each returns when the harm is over; what must be true meanwhile is
-- checked here, what must be true afterwards in scripts/lib/chaos.lua.

local Cluster = require 'chaos.cluster'
local network = require 'support.network'
local posix = { signal = require 'posix.signal' }
local process = require 'support.process'

local M = {}

-- Longer than a session and a heartbeat's time-out: whoever is away for so long is replaced.
local LONG_S = 2 * Cluster.SESSION_S
-- The longest that nothing is acked while nothing of a topology is harmed.
local GAP_S = 5
-- How long commands wait for a cluster that is away, and when they must have said so.
local WAIT_S, REFUSAL_S = 2, 8

local function any(list) return list[math.random(#list)] end

local function pause() Cluster.sleep(math.random(1, 4000) / 1000) end

local function signal(item, name)
  if item then posix.signal.kill(item.pid, posix.signal['SIG' .. name]) end
end

-- Fault functions of processes of topologies.

local function kill_one(role)
  return function(cluster) signal(any(cluster:processes(role)), 'KILL') end
end

-- Stops one for so long, or for up to 3 s.
local function stop_one(role, seconds)
  return function(cluster)
    local item = any(cluster:processes(role))
    signal(item, 'STOP')
    Cluster.sleep(seconds or math.random(100, 3000) / 1000)
    signal(item, 'CONT')
  end
end

local function both(one, two)
  return function(cluster)
    one(cluster)
    two(cluster)
  end
end

-- Other than the time before, so that there is something to do, if that one succeeded.
local last_count
local function start_update(cluster)
  local count = math.random(1, 5)
  if count == last_count then count = 6 end
  last_count = count
  return cluster:start('update', 'chaos', '--parallelism', 'count=' .. count, '--drain-timeout', '10s')
end

-- While nothing is harmed there is no reason to roll it back, or to start a process again that stays.
local function update_with(start)
  return function(cluster)
    local before = cluster:ok('describe', 'chaos').containers
    local code = cluster:updated(start(cluster))
    if code == 8 then error('an update without any harm was rolled back', 0) end
    local now = cluster:settled('RUNNING').containers
    -- With supervisors a container may move to another one.
    for _, old in ipairs(cluster.is_standalone and {} or before) do
      for _, new in ipairs(now) do
        if old.id == new.id and old.pid ~= new.pid then
          error(('an update started container %d again'):format(old.id), 0)
        end
      end
    end
    return code
  end
end

local update = update_with(start_update)

local function start_containers(cluster)
  return cluster:start('update', 'chaos', '--containers', math.random(2, 5), '--drain-timeout', '10s')
end

local function start_reassign(cluster)
  return cluster:start('update', 'chaos', '--mode', any({ 'reassign', 'minimal' }), '--drain-timeout', '10s')
end

-- Does harm at any moment of an update.
local function while_updated(harm)
  return function(cluster)
    local running = any({ start_update, start_containers, start_reassign })(cluster)
    Cluster.sleep(math.random(0, 1000) / 1000)
    harm(cluster)
    return cluster:updated(running)
  end
end

-- Several at once, of those that run then.
local function kill_some(role, count)
  return function(cluster)
    local list = cluster:processes(role)
    for _ = 1, count do
      if #list > 0 then signal(table.remove(list, math.random(#list)), 'KILL') end
    end
  end
end

-- One that dies again as soon as its successor is there.
local function kill_again(cluster)
  for _ = 1, 3 do
    kill_one('worker')(cluster)
    Cluster.sleep(math.random(0, 1500) / 1000)
  end
end

-- Does harm before spouts are paused, while they are, and when they go on.
local function while_paused(harm)
  return function(cluster)
    local running = cluster:start('deactivate', 'chaos')
    Cluster.sleep(math.random(0, 200) / 1000)
    harm(cluster)
    running:wait()
    if math.random(2) == 1 then cluster:settled('PAUSED') end
    running = cluster:start('activate', 'chaos')
    Cluster.sleep(math.random(0, 200) / 1000)
    harm(cluster)
    running:wait()
    cluster:run('activate', 'chaos')
  end
end

-- A command in the network of a process.
local SS = 'nsenter --net=/proc/%s/ns/net ss %s 2>/dev/null'

--- Why connections can not be broken here; nil where they can.
function M.missing_ss()
  if os.execute(SS:format('self', '-K dport = :1') .. ' >/dev/null') ~= 0 then
    return 'connections of others can not be broken here'
  end
end

-- Breaks all connections of a worker, some times; both ends see it.
local function break_connections(cluster)
  local pid = any(cluster:processes('worker')).pid
  for _ = 1, math.random(5) do
    local pipe = io.popen(SS:format(pid, '-Htnp state established'))
    for line in pipe:lines() do
      local own, other = line:match(':(%d+)%s+%S+:(%d+)%s')
      if line:find(('pid=%d,'):format(pid), 1, true) then
        os.execute(SS:format(pid, ('-K sport = :%s dport = :%s'):format(own, other)) .. ' >/dev/null')
      end
    end
    pipe:close()
    Cluster.sleep(math.random(0, 300) / 1000)
  end
end

local function restart_container(cluster)
  local container = any(cluster:ok('describe', 'chaos').containers)
  cluster:run('restart', 'chaos', '--container', container.id)
end

local function pause_and_resume(cluster)
  cluster:run('deactivate', 'chaos')
  cluster:settled('PAUSED')
  cluster:run('activate', 'chaos')
end

local function kill_guardian_and_master(cluster)
  local master = cluster:processes('topology-master')[1]
  signal(master, 'STOP')
  kill_one('guardian')(cluster)
  signal(master, 'KILL')
end

--- To local topologies.
M.LOCAL = {
  { 'kill a worker', kill_one('worker') },
  { 'kill the topology master', kill_one('topology-master') },
  { 'kill the guardian', kill_one('guardian') },
  { 'stop the guardian', stop_one('guardian') },
  { 'stop a worker', stop_one('worker') },
  { 'stop the topology master', stop_one('topology-master') },
  { 'kill a worker and the topology master', both(kill_one('worker'), kill_one('topology-master')) },
  { 'kill the guardian and the topology master', kill_guardian_and_master },
  { 'restart a container', restart_container },
  { 'pause and resume', pause_and_resume },
  { 'update', update, weight = 3 },
}

--- To the workers of topologies of both kinds.
M.WORKERS = {
  { 'kill two workers', kill_some('worker', 2) },
  { 'kill all workers', kill_some('worker', 9) },
  { 'kill a worker again and again', kill_again },
  { 'kill a worker during an update', while_updated(kill_one('worker')), weight = 3 },
  { 'kill two workers during an update', while_updated(kill_some('worker', 2)) },
  { 'kill the topology master during an update', while_updated(kill_one('topology-master')) },
  { 'kill a worker and the topology master during an update',
    while_updated(both(kill_one('worker'), kill_one('topology-master'))), weight = 2 },
  { 'restart a container during an update', while_updated(restart_container) },
  { 'kill a worker while paused', while_paused(kill_one('worker')), weight = 2 },
  { 'update to other containers', update_with(start_containers) },
  { 'update that moves tasks', update_with(start_reassign) },
}

--- To their connections.
M.CONNECTIONS = {
  { 'break connections', break_connections, weight = 2 },
  { 'break connections during an update', while_updated(break_connections), weight = 2 },
}

-- Fault functions of daemons.

local function signal_daemon(pattern, name)
  return function(cluster)
    cluster:signal(any(cluster:names(pattern)), name)
    pause()
  end
end

local function stop_daemon(pattern)
  return function(cluster)
    local name = any(cluster:names(pattern))
    cluster:signal(name, 'STOP')
    pause()
    cluster:signal(name, 'CONT')
  end
end

-- Nothing of what it runs is moved or ended, however long it is stopped.
local function stop_supervisor(cluster)
  local name, workers = any(cluster:names('^supervisor')), cluster:workers()
  cluster:signal(name, 'STOP')
  cluster:flows(LONG_S, GAP_S)
  cluster:signal(name, 'CONT')
  -- It registers again, and is told what became of its slots.
  cluster:flows(1, GAP_S)
  cluster:settled('RUNNING')
  cluster:check_workers(workers)
end

local function kill_masters(cluster)
  for _, name in ipairs(cluster:names('^master')) do cluster:signal(name, 'KILL') end
  pause()
end

local function kill_supervisor_and_worker(cluster)
  cluster:signal(any(cluster:names('^supervisor')), 'KILL')
  kill_one('worker')(cluster)
  pause()
end

-- The id of a supervisor, by its daemon's name.
local function id_of(name) return 's' .. name:match('%d+$') end

-- A machine goes: all at once, and comes back later.
local function kill_machine(cluster)
  local name = any(cluster:names('^supervisor'))
  cluster:signal(name, 'KILL')
  for _, item in ipairs(cluster:processes()) do
    if item.supervisor == id_of(name) then signal(item, 'KILL') end
  end
  pause()
end

-- The next leader does what is asked while the former one is stopped; that one, when it goes on, learns
-- that its term is over before it does anything.
local function without_leader(cluster, harm, heal)
  local name, term = cluster:leader()
  local workers = cluster:workers()
  harm(name)
  -- Asked of the leader that hears it but does not answer, or of the next one.
  local asked = start_update(cluster)
  local _, next_term = cluster:leader(name)
  if next_term <= term then error(('term %d follows term %d'):format(next_term, term), 0) end
  cluster:flows(1, GAP_S)
  cluster:ok('deactivate', 'chaos')
  cluster:ok('activate', 'chaos')
  heal(name)
  local code = cluster:updated(asked)
  cluster:leader()
  if code ~= 0 then cluster:check_workers(workers) end
  return code
end

local function stop_leader(cluster)
  return without_leader(cluster, function(name) cluster:signal(name, 'STOP') end,
    function(name) cluster:signal(name, 'CONT') end)
end

-- One that hangs for ever is replaced, and its workers do not notice.
local function hang_topology_master(cluster)
  local workers, old = cluster:workers(), any(cluster:processes('topology-master'))
  signal(old, 'STOP')
  cluster:await(60, 'a topology master that hangs is not replaced', function()
    local now = cluster:processes('topology-master')
    return now[1] and now[1].pid ~= old.pid
  end)
  cluster:settled('RUNNING')
  cluster:check_workers(workers)
end

--- To the processes of a standalone cluster.
M.STANDALONE = {
  { 'kill a master', signal_daemon('^master', 'KILL') },
  { 'kill both masters', kill_masters },
  { 'stop a master', stop_daemon('^master') },
  { 'kill a supervisor', signal_daemon('^supervisor', 'KILL') },
  { 'kill a supervisor and a worker', kill_supervisor_and_worker },
  { 'stop a supervisor', stop_daemon('^supervisor') },
  { 'stop a supervisor for long', stop_supervisor },
  { 'end a supervisor', signal_daemon('^supervisor', 'TERM') },
  { 'kill a machine', kill_machine, weight = 2 },
  { 'kill a worker', kill_one('worker') },
  { 'stop a worker', stop_one('worker') },
  { 'stop a worker for long', stop_one('worker', LONG_S) },
  { 'kill the topology master', kill_one('topology-master') },
  { 'stop the topology master', stop_one('topology-master') },
  { 'stop the topology master for long', stop_one('topology-master', LONG_S) },
  { 'kill a worker and the topology master', both(kill_one('worker'), kill_one('topology-master')) },
  { 'pause and resume', pause_and_resume },
  { 'update', update, weight = 3 },
}

-- Fault functions of ZooKeeper.

-- Nobody notices that a member is away, though commands run.
local function without_member(cluster, number, down, up)
  local servers = cluster.zookeeper
  local workers = cluster:workers()
  down(servers, number)
  cluster:flows(1, GAP_S)
  cluster:ok('deactivate', 'chaos')
  cluster:ok('activate', 'chaos')
  up(servers, number)
  servers:await(number)
  cluster:check_workers(workers)
end

local function leading_member(cluster)
  return cluster:await(20, 'ZooKeeper has no leader', function() return cluster.zookeeper:leader() end)
end

local function other_member(cluster)
  local leader = leading_member(cluster)
  return (leader + math.random(0, #cluster.zookeeper.members - 2)) % #cluster.zookeeper.members + 1
end

local function harm_member(choose, down, up)
  return function(cluster) without_member(cluster, choose(cluster), down, up) end
end

local function kill_member(servers, number) servers:kill(number) end
local function start_member(servers, number) servers:start(number) end
local function stop_member(servers, number) servers:pause(number) end
local function resume_member(servers, number) servers:resume(number) end

-- Commands end by themselves, in bounded time, with one error and the documented exit code.
local function check_refusals(cluster)
  local commands = { { 'list' }, { 'describe', 'chaos' }, { 'deactivate', 'chaos' }, { 'kill', 'chaos' },
    { 'update', 'chaos', '--parallelism', 'count=2' }, { 'submit', cluster.folder .. '/other.lua' } }
  local running = {}
  for i, words in ipairs(commands) do
    running[i] = cluster:start('--timeout', WAIT_S .. 's', unpack(words))
    running[i].timeout = REFUSAL_S * process.slowness
  end
  for i, words in ipairs(commands) do
    local result = running[i]:wait()
    local said = result.stdout .. result.stderr
    if result.code ~= 5 or not said:find('^{"error":{"code":"unreachable",[^\n]*}}\n$') then
      error(('%s without ZooKeeper: exit %d: %s'):format(table.concat(words, ' '), result.code, said), 0)
    end
  end
end

local function without_zookeeper(down, up)
  return function(cluster)
    local workers, version = cluster:workers(), cluster:ok('describe', 'chaos').plan_version
    local began = Cluster.now()
    down(cluster.zookeeper)
    check_refusals(cluster)
    cluster:flows(math.max(1, began + cluster.options.outage - Cluster.now()), GAP_S)
    up(cluster.zookeeper)
    cluster.zookeeper:await()
    cluster:leader()
    local now = cluster:settled('RUNNING').plan_version
    if now ~= version then error(('plan %d is now plan %d'):format(version, now), 0) end
    cluster:check_workers(workers)
    pause_and_resume(cluster)
  end
end

local function start_all(servers)
  for number in ipairs(servers.members) do servers:start(number) end
end

--- To the ZooKeeper servers of a standalone cluster.
M.ZOOKEEPER = {
  { 'stop the leading master', stop_leader, weight = 2 },
  { 'stop the topology master for ever', hang_topology_master },
  { 'kill all of ZooKeeper', without_zookeeper(kill_member, start_all) },
  { 'stop all of ZooKeeper', without_zookeeper(stop_member, resume_member) },
}

--- To those of an ensemble.
M.ENSEMBLE = {
  { 'kill a ZooKeeper member', harm_member(other_member, kill_member, start_member) },
  { 'kill the leading ZooKeeper member', harm_member(leading_member, kill_member, start_member) },
  { 'stop a ZooKeeper member', harm_member(other_member, stop_member, resume_member) },
  { 'stop the leading ZooKeeper member', harm_member(leading_member, stop_member, resume_member) },
}

-- Fault functions of networks.

local function each_host(cluster, names, fn)
  for _, name in ipairs(names) do fn(cluster.daemons[name].host) end
end

local function cut_leader(cluster)
  local function with_all(change)
    return function(name)
      for _, host in ipairs(cluster.zookeeper_hosts) do change(cluster.daemons[name].host, host) end
    end
  end
  return without_leader(cluster, with_all(network.cut), with_all(network.heal))
end

local function leads_on(cluster, name)
  for _, item in ipairs(cluster:processes('topology-master')) do
    if item.supervisor == id_of(name) then return true end
  end
  return false
end

-- A host that neither masters nor ZooKeeper reach: its workers go on, led from elsewhere.
local function cut_supervisor(cluster)
  local name = any(cluster:names('^supervisor'))
  local host = cluster.daemons[name].host
  local is_led_there = leads_on(cluster, name)
  local workers = cluster:workers()
  local function change(fn)
    each_host(cluster, cluster:names('^master'), function(other) fn(host, other) end)
    for _, other in ipairs(cluster.zookeeper_hosts) do fn(host, other) end
  end
  change(network.cut)
  if is_led_there then
    Cluster.sleep(LONG_S)
  else
    cluster:flows(LONG_S, GAP_S)
    cluster:check_workers(workers)
  end
  change(network.heal)
end

-- Workers that do not reach each other; all else does.
local function cut_workers(cluster)
  local names = cluster:names('^supervisor')
  local one = table.remove(names, math.random(#names))
  local two = any(names)
  network.cut(cluster.daemons[one].host, cluster.daemons[two].host)
  Cluster.sleep(LONG_S)
  network.heal(cluster.daemons[one].host, cluster.daemons[two].host)
end

-- A host that nobody reaches.
local function unplug_supervisor(cluster)
  local host = cluster.daemons[any(cluster:names('^supervisor'))].host
  network.unplug(host)
  Cluster.sleep(LONG_S)
  network.plug(host)
end

local function unplug_member(servers, number) network.unplug(servers.members[number].host) end
local function plug_member(servers, number) network.plug(servers.members[number].host) end

--- To the networks of a standalone cluster whose hosts have one each.
M.NETWORK = {
  { 'cut the leading master off from ZooKeeper', cut_leader },
  { 'cut a supervisor off from masters and ZooKeeper', cut_supervisor },
  { 'cut two supervisors off from each other', cut_workers },
  { 'unplug a supervisor', unplug_supervisor },
}

--- To the network of a member of an ensemble.
M.NETWORK_ENSEMBLE = {
  { 'unplug the leading ZooKeeper member', harm_member(leading_member, unplug_member, plug_member) },
}

return M
