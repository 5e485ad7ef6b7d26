-- B12: a standalone cluster. A hundred tiny topologies on one master: how long the slowest `submit` takes, and
-- what all of them together cost when they have nothing to do. Then two masters on a ZooKeeper server
-- of its own: from `kill -9` of the one that leads until a `submit` that was typed at that moment is
-- done, and what a topology that runs notices of it. Not in quick runs: it takes two minutes.

local libc = require 'streamlua.connectors.libc'
local standalone = require 'standalone'

local folder = debug.getinfo(1, 'S').source:match('^@(.*)/[^/]*$') or '.'

local TOPOLOGIES, SLOTS, IDLE_S = 100, 60, 30
-- conf/standalone.lua says nothing else, so this is what processes have.
local SESSION_MS = 10000
local FLOW_MS = 3000
-- Of the spout of acks.lua, in half a second.
local LINES = 5

local function copy(from, to)
  local source, target = assert(io.open(from)), assert(io.open(to, 'w'))
  target:write(source:read('*a'))
  source:close()
  target:close()
end

local function submit(cluster, name)
  local path = ('%s/%s.lua'):format(cluster.folder, name)
  copy(folder .. '/topologies/tiny.lua', path)
  local before = libc.clock_s('mono')
  cluster:run('submit', path)
  return (libc.clock_s('mono') - before) * 1000
end

local function many(bench, cluster)
  cluster:master('m1')
  cluster:leads('m1')
  cluster:supervisor('s1', SLOTS)
  cluster:supervisor('s2', SLOTS)
  local times = {}
  for i = 1, TOPOLOGIES do times[i] = submit(cluster, 'tiny' .. i) end
  table.sort(times)
  bench:figure('100-submits', ('half of %d submits take'):format(TOPOLOGIES), times[TOPOLOGIES / 2],
    'ms')
  bench:figure('100-submit', 'the slowest of them', times[TOPOLOGIES], 'ms',
    { target = 1000, better = 'less' })
  local processes = cluster:processes()
  local cpu, before = standalone.cpu(processes), libc.clock_s('mono')
  libc.readable(-1, IDLE_S * 1000)
  local share = (standalone.cpu(processes) - cpu) / (libc.clock_s('mono') - before)
  bench:figure('100-idle', ('%d processes with nothing to do'):format(#processes), share * 100,
    '% of a core', { target = 50, better = 'less' })
  bench:figure('100-master', 'memory of the master', standalone.memory(cluster.daemons.m1), 'MiB')
end

-- Lines of the spout: {ms, acked}.
local function acks(path)
  local list = {}
  for line in io.lines(path) do
    local ms, count = line:match('^(%d+) (%d+)$')
    if ms then list[#list + 1] = { tonumber(ms), tonumber(count) } end
  end
  return list
end

-- The least that was acked in any half second between two times, as a share of the pace of 1 a ms.
local function least_share(list, from, to)
  local least = math.huge
  for i = LINES + 1, #list do
    local before, now = list[i - LINES], list[i]
    if before[1] >= from and now[1] <= to then
      least = math.min(least, (now[2] - before[2]) / (now[1] - before[1]))
    end
  end
  return least
end

local function failover(bench, cluster)
  local out = cluster.folder .. '/acked'
  cluster:master('m1')
  cluster:leads('m1')
  cluster:master('m2')
  cluster:supervisor('s1', 4)
  cluster:run('submit', folder .. '/topologies/acks.lua', '--set', 'out=' .. out)
  libc.readable(-1, FLOW_MS)
  local killed = libc.clock_s('wall') * 1000
  cluster:kill('m1')
  submit(cluster, 'tiny')
  local done = libc.clock_s('wall') * 1000
  cluster:leads('m2')
  bench:figure('failover', 'kill -9 of the leading master to a submit', done - killed, 'ms',
    { limit = SESSION_MS, target = SESSION_MS + 1000, better = 'less' })
  bench:figure('failover-acks', 'least acks meanwhile, of their pace',
    least_share(acks(out), killed, done), '', { target = 0.9 })
end

local function with_cluster(bench, options, measure)
  local cluster = standalone.open(options)
  local ok, failure = pcall(measure, bench, cluster)
  cluster:close()
  if not ok then error(failure, 0) end
end

return {
  id = 'B12',
  name = 'a standalone cluster',
  run = function(bench)
    if bench.quick then return end
    with_cluster(bench, nil, many)
    if standalone.has_zookeeper() then with_cluster(bench, { zookeeper = true }, failover) end
  end,
}
