-- timeout: 300
-- What goes wrong around local topologies: one clear error, the right exit code, nothing half done.

local commands = require 'support.commands'
local eventually = require 'support.eventually'
local files = require 'support.files'
local json = require 'streamlua.json'
local posix = { signal = require 'posix.signal',
  poll = require 'posix.poll', unistd = require 'posix.unistd', stat = require 'posix.sys.stat' }
local process = require 'support.process'

local SCRIPT = [[
local streamlua = require 'streamlua'
local source = streamlua.spout {
  fields = { 'n' },
  open = function(self, context)
    self.n = 0
    if context.config.exits then os.exit(9) end
  end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ self.n }, { id = self.n })
  end,
}
local t = streamlua.topology('faults', { containers = 2, executors = 1, max_spout_pending = 10 })
t:spout('source', source, { parallelism = 2 })
t:bolt('sink', streamlua.bolt { execute = function() end }, { parallelism = 2 }):shuffle('source')
return t
]]

local run, ok, processes = commands.run, commands.ok, commands.processes

local folder, script, env

local function nothing_is_left()
  assert.same({}, processes())
  assert.same({ topologies = {} }, commands.document('list', '-o', 'json'))
end

describe('a local topology that', function()
  before_each(function()
    folder, env = commands.open('faults')
    script = files.write('faults.lua', SCRIPT)
  end)

  after_each(function()
    run('kill', 'faults', '-q')
    commands.close()
  end)

  it('has workers that exit at once is taken back, with how they ended', function()
    local result = run('submit', script, '--set', 'exits=true')
    assert.equal(1, result.code)
    assert.matches('container %d ends again and again %(exit code 9%)', result.stderr)
    nothing_is_left()
  end)

  it('is submitted twice at once runs once', function()
    local one = process.start({ 'submit', script }, { env = env, cwd = folder })
    local two = process.start({ 'submit', script }, { env = env, cwd = folder })
    local codes = { one:wait().code, two:wait().code }
    table.sort(codes)
    assert.same({ 0, 4 }, codes)
    assert.equal(4, #processes())
  end)

  it('is killed twice, one after the other or at once, is gone', function()
    ok('submit', script)
    local one = process.start({ 'kill', 'faults' }, { env = env, cwd = folder })
    local two = process.start({ 'kill', 'faults' }, { env = env, cwd = folder })
    for _, result in ipairs({ one:wait(), two:wait() }) do
      assert.is_true(result.code == 0 or result.code == 3 or result.code == 4, result.stderr)
    end
    assert.equal(3, run('kill', 'faults').code)
    for _, command in ipairs({ 'update', 'activate', 'restart' }) do
      local result = command == 'update' and run(command, 'faults', '--parallelism', 'sink=3')
        or run(command, 'faults')
      assert.equal(3, result.code)
      assert.matches('no topology of that name is running', result.stderr)
    end
    nothing_is_left()
  end)

  it('can not write its logs runs all the same', function()
    local logs = folder .. '/state/logs/faults'
    for _, path in ipairs({ folder .. '/state', folder .. '/state/logs', logs }) do
      assert(posix.stat.mkdir(path))
    end
    for _, name in ipairs({ 'guardian', 'topology-master', 'container-1', 'container-2' }) do
      assert(posix.unistd.link('/dev/full', logs .. '/' .. name .. '.log', true))
    end
    ok('submit', script)
    ok('update', 'faults', '--parallelism', 'sink=3')
    ok('kill', 'faults')
    nothing_is_left()
  end)

  it('finds no free port is taken back, and says so', function()
    local streamlua = process.binary
    local probe = io.popen('unshare -rn true 2>&1 && echo fine')
    local can = probe:read('*a') == 'fine\n'
    probe:close()
    if not can then return end
    -- In a network of its own that has two ports, which is not enough for three processes.
    local command = ([[unshare -rn sh -c 'ip link set lo up
      echo "40000 40001" > /proc/sys/net/ipv4/ip_local_port_range
      "$0" submit "$1"; echo " $?"; "$0" list -o json' '%s' '%s' 2>&1]]):format(streamlua, script)
    local pipe = io.popen(('STREAMLUA_STATE=localfs:%s/state %s'):format(folder, command))
    local text = pipe:read('*a')
    pipe:close()
    assert.matches("error: topology 'faults': [^\n]+", text)
    assert.matches(' [156]\n{"topologies":%[%]}\n$', text)
    assert.same({}, processes())
  end)

  local function with(changes)
    local text = process.read_file(script)
    for from, to in pairs(changes) do
      local changed, count = text:gsub(from, to)
      assert.is_true(count > 0, from)
      text = changed
    end
    process.write_file(script, text)
  end

  -- Each tuple takes 200 ms; specs wait for none of them.
  local SLOW = { ['execute = function%(%) end'] = [[execute = function()
    require('ffi').C.usleep(200000)
  end, prepare = function() require('ffi').cdef('int usleep(unsigned us);') end]],
    ['max_spout_pending = 10'] = 'acking = false' }

  -- heron 7.2: what is asked of workers does not wait behind tuples, and what is in flight may stay there.
  it('is full of slow tuples grows all the same', function()
    with(SLOW)
    ok('submit', script)
    -- What waits would take hours.
    ok('update', 'faults', '--parallelism', 'sink=3')
    local now = assert(json.decode(ok('describe', 'faults', '-o', 'json').stdout))
    assert.equal(2, now.plan_version)
    assert.equal('RUNNING', now.state)
    ok('kill', 'faults')
    nothing_is_left()
  end)

  it('is full of slow tuples does not lose a task and goes on, in bounded time', function()
    with(SLOW)
    ok('submit', script)
    local result = run('update', 'faults', '--parallelism', 'sink=1', '--drain-timeout', '500ms')
    assert.equal(8, result.code, result.stderr)
    assert.matches('%d+ roots and tuples are still in flight after 500 ms\n', result.stderr)
    assert.matches('\nhint: [^\n]+%-%-drain%-timeout', result.stderr)
    local now = assert(json.decode(ok('describe', 'faults', '-o', 'json').stdout))
    assert.equal(1, now.plan_version)
    assert.equal('RUNNING', now.state)
    ok('kill', 'faults')
    nothing_is_left()
  end)

  -- Megabytes of a process.
  local function resident(pid)
    return tonumber(process.read_file(('/proc/%d/status'):format(pid)):match('VmRSS:%s+(%d+)')) / 1024
  end

  local function described() return json.decode(ok('describe', 'faults', '-o', 'json').stdout) end

  it('has a worker that is stopped keeps its memory, and goes on with it', function()
    local text = process.read_file(script)
    process.write_file(script, (text:gsub('max_spout_pending = 10', 'acking = false')
      :gsub('parallelism = 2', 'parallelism = 1')))
    ok('submit', script)
    local spout, sink
    for _, container in ipairs(described().containers) do
      if container.tasks[1].component == 'source' then spout = container else sink = container end
    end
    local function executed()
      for _, component in ipairs(described().components) do
        if component.name == 'sink' then return component.executed end
      end
    end
    local before = resident(spout.pid)
    posix.signal.kill(sink.pid, posix.signal.SIGSTOP)
    posix.poll.poll({}, 3000)
    -- All that it may take for batches is 48 MiB; unbounded, it takes some hundred a second.
    local grown = resident(spout.pid) - before
    assert.is_true(grown < 100, grown)
    posix.signal.kill(sink.pid, posix.signal.SIGCONT)
    local first = executed()
    assert.is_true(eventually(function() return executed() > first end))
  end)

  it('is asked for in a state of a newer version is refused', function()
    ok('submit', script)
    ok('kill', 'faults')
    local log = folder .. '/state/state.log'
    local text = process.read_file(log)
    process.write_file(log, (text:gsub('^streamlua state\n', 'streamlua state2')))
    local before = process.read_file(log)
    for _, words in ipairs({ { 'submit', script }, { 'list' }, { 'kill', 'faults' },
      { 'update', 'faults', '--parallelism', 'sink=3' } }) do
      local result = run(unpack(words))
      assert.equal(5, result.code)
      assert.matches('written by a newer version', result.stderr)
    end
    assert.is_true(before == process.read_file(log))
    assert.same({}, processes())
    process.write_file(log, text)
  end)
end)
