-- timeout: 300
-- A standalone cluster from the command line: two masters, three supervisors, a state folder.

local files = require 'support.files'
local json = require 'streamlua.json'
local posix = { dirent = require 'posix.dirent', poll = require 'posix.poll',
  signal = require 'posix.signal', unistd = require 'posix.unistd' }
local process = require 'support.process'

-- Emits numbered roots as long as it is told to. The sink writes what it saw; the spout, at its end,
-- how many it emitted and how many of them were acked.
local SCRIPT = [[
local streamlua = require 'streamlua'
local source = streamlua.spout {
  fields = { 'key', 'root' }, replay = true,
  open = function(self, context) self.config, self.n, self.acked = context.config, 0, 0 end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ 'k' .. self.n % 16, self.n }, { id = self.n })
  end,
  ack = function(self) self.acked = self.acked + 1 end,
  close = function(self)
    local file = assert(io.open(self.config.folder .. '/emitted', 'w'))
    file:write(self.n, ' ', self.acked, '\n')
    file:close()
  end,
}
local count = streamlua.bolt {
  fields = { 'key', 'count', 'root' },
  prepare = function(self, context)
    self.counts = context:state('counts')
    if context.config.broken then error('no such table') end
  end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.key, self.counts:add(tuple.key, 1), tuple.root })
  end,
}
local sink = streamlua.bolt {
  prepare = function(self, context)
    self.file = assert(io.open(context.config.folder .. '/sink', 'a'))
    -- What is acked is written, whoever dies.
    self.file:setvbuf('no')
  end,
  execute = function(self, tuple)
    self.file:write(('%s %d %d\n'):format(tuple.key, tuple.count, tuple.root))
  end,
  cleanup = function(self) self.file:close() end,
}
local t = streamlua.topology('counts', { containers = 3, executors = 1, max_spout_pending = 20 })
t:spout('source', source)
t:bolt('count', count, { parallelism = 2 }):fields('source', { 'key' })
t:bolt('sink', sink):global('count')
return t
]]

-- What fails is seen sooner than by default.
local QUICK = { 'heartbeat_interval=200ms', 'heartbeat_timeout=2s', 'monitor_interval=200ms',
  'registration_error_delay=100ms', 'registration_refused_delay=100ms', 'supervisor_timeout=1s' }

local folder, script, env, daemons

local function run(...)
  return process.run({ ... }, { env = env, cwd = folder })
end

local function ok(...)
  local result = run(...)
  assert.equal(0, result.code, result.stdout .. result.stderr)
  return result
end

local function document(...)
  return assert(json.decode(ok(...).stdout))
end

local function daemon(...)
  local args = { ... }
  for _, item in ipairs(QUICK) do
    args[#args + 1] = '--set'
    args[#args + 1] = item
  end
  local started = process.start(args, { env = env, cwd = folder })
  daemons[#daemons + 1] = started
  return started
end

local function master()
  local started = daemon('master')
  started:expect('stderr', 'stands for election')
  return started
end

-- Slots that nobody else on this machine is likely to have.
local function supervisor(number, slots, ...)
  local first = 10000 + (posix.unistd.getpid() * 37 % 900) * 10 + number * 3
  local started = daemon('supervisor', '--id', 's' .. number, '--ports',
    ('%d-%d'):format(first, first + slots - 1), ...)
  started:expect('stderr', 'is ready')
  return started
end

-- Processes of this spec's topologies: {pid=, role=}.
local function processes()
  local list = {}
  for _, entry in ipairs(posix.dirent.dir('/proc')) do
    local file = entry:find('^%d+$') and io.open('/proc/' .. entry .. '/cmdline', 'rb')
    local text = file and file:read('*a')
    if file then file:close() end
    if text and text:find(folder .. '/state', 1, true) and text:find('--topology', 1, true) then
      list[#list + 1] = { pid = tonumber(entry), text = text }
    end
  end
  return list
end

local function until_described(wanted)
  for _ = 1, 300 * process.slowness do
    local result = run('describe', 'counts', '-o', 'json')
    local described = result.code == 0 and json.decode(result.stdout)
    if described and wanted(described) then return described end
    posix.poll.rpoll(0, 20)
  end
  error('it does not become so: ' .. run('describe', 'counts').stdout)
end

local function all_run(described)
  for _, container in ipairs(described.containers) do
    if container.state ~= 'RUNNING' then return false end
  end
  return described.state == 'RUNNING'
end

local function by_id(described, key)
  local list = {}
  for _, container in ipairs(described.containers) do list[container.id] = container[key] end
  return list
end

-- What sink and source wrote, after a kill that waited.
local function check_outcome()
  local largest, sum = {}, 0
  for line in process.read_file(folder .. '/sink'):gmatch('[^\n]+') do
    local key, count = line:match('^(%S+) (%d+) %d+$')
    largest[key] = math.max(largest[key] or 0, tonumber(count))
  end
  for _, count in pairs(largest) do sum = sum + count end
  local emitted, acked = process.read_file(folder .. '/emitted'):match('^(%d+) (%d+)')
  assert.is_true(tonumber(emitted) > 0)
  assert.equal(emitted, acked)
  assert.equal(tonumber(emitted), sum)
end

describe('a standalone cluster', function()
  before_each(function()
    folder = files.folder()
    script = files.write('counts.lua', SCRIPT)
    env = { STREAMLUA_STATE = 'localfs:' .. folder .. '/state', STREAMLUA_CLUSTER = 'standalone',
      STREAMLUA_SET = 'folder=' .. folder }
    daemons = {}
  end)

  after_each(function()
    for _, started in ipairs(daemons) do started:signal('KILL') end
    for _, item in ipairs(processes()) do posix.signal.kill(item.pid, posix.signal.SIGKILL) end
    for _, started in ipairs(daemons) do started:wait() end
    files.clean()
  end)

  it('runs a topology across the death of its leading master, and ends it without a trace', function()
    local first = master()
    first:expect('stderr', 'leads in term')
    master()
    for number = 1, 3 do supervisor(number, 2) end
    assert.same({ topology = 'counts', action = 'submit', state = 'RUNNING' },
      document('submit', script, '-o', 'json'))
    local described = until_described(all_run)
    assert.equal('standalone', described.scheduler)
    local places = {}
    for _, place in pairs(by_id(described, 'supervisor')) do places[#places + 1] = place end
    table.sort(places)
    assert.same({ 's1', 's2', 's3' }, places)
    assert.equal(4, run('submit', script).code)
    ok('deactivate', 'counts')
    assert.equal('PAUSED', document('describe', 'counts', '-o', 'json').state)
    ok('activate', 'counts')
    local before = by_id(until_described(all_run), 'pid')
    first:signal('KILL')
    local grown = document('update', 'counts', '--parallelism', 'count=4', '-o', 'json')
    assert.same({ from_version = 1, to_version = 2, kept = 4, started = 2, moved = 0 },
      { from_version = grown.from_version, to_version = grown.to_version, kept = grown.kept,
        started = grown.started, moved = grown.moved })
    ok('update', 'counts', '--parallelism', 'count=-2')
    -- Neither the leader's death nor the changes cost a process.
    assert.same(before, by_id(until_described(all_run), 'pid'))
    ok('kill', 'counts', '--wait', '30s')
    check_outcome()
    assert.same({}, processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.equal(3, run('kill', 'counts').code)
    assert.equal(3, run('update', 'counts', '--parallelism', 'count=3').code)
  end)

  it('moves what dies with its supervisor, and leaves the rest alone', function()
    master()
    local supervisors = {}
    for number = 1, 3 do supervisors['s' .. number] = supervisor(number, 2) end
    ok('submit', script)
    local described = until_described(all_run)
    local before, places = by_id(described, 'pid'), by_id(described, 'supervisor')
    -- The supervisor of a container, with that container, and the topology master if it is there.
    local lost = places[2]
    supervisors[lost]:signal('KILL')
    for _, item in ipairs(processes()) do
      if item.pid == before[2] or item.text:find('--supervisor%z' .. lost .. '%z')
        and item.text:find('topology%-master') then
        posix.signal.kill(item.pid, posix.signal.SIGKILL)
      end
    end
    local after = until_described(function(now)
      return all_run(now) and now.plan_version > described.plan_version
    end)
    for id, place in pairs(by_id(after, 'supervisor')) do
      assert.not_equal(lost, place)
      if places[id] ~= lost then
        assert.equal(places[id], place)
        assert.equal(before[id], by_id(after, 'pid')[id])
      end
    end
    ok('kill', 'counts')
    assert.same({}, processes())
  end)

  it('refuses what can not be placed, and leaves nothing of it', function()
    assert.equal(5, run('submit', script, '--timeout', '1s').code)
    master()
    supervisor(1, 2)
    local refused = run('submit', script)
    assert.equal(7, refused.code)
    assert.matches('not enough slots: need 3, free 2', refused.stderr, 1, true)
    refused = run('submit', script, '--set', 'scheduler=./own.lua')
    assert.equal(7, refused.code)
    assert.matches('masters never load user code', refused.stderr, 1, true)
    refused = run('submit', script, '--set', 'containers=2', '--set', 'isolation=["elsewhere"]')
    assert.equal(7, refused.code)
    refused = run('submit', script, '--set', 'containers=1', '--set', 'broken=true')
    assert.equal(1, refused.code)
    assert.matches('no such table', refused.stderr, 1, true)
    assert.same({}, processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.equal(3, run('kill', 'counts').code)
    ok('submit', script, '--set', 'containers=1')
    ok('kill', 'counts')
  end)
end)
