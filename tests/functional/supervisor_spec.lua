-- timeout: 300
-- What supervisors run and survive, as real processes: their restart and death, damaged files, workers
-- that end at once, ports that are taken, drained machines.

local commands = require 'support.commands'
local files = require 'support.files'
local json = require 'streamlua.json'
local posix = { signal = require 'posix.signal', unistd = require 'posix.unistd',
  stat = require 'posix.sys.stat', socket = require 'posix.sys.socket' }
local net = require 'support.net'
local process = require 'support.process'

local SCRIPT = [[
local ffi = require 'ffi'
local streamlua = require 'streamlua'
ffi.cdef 'void _exit(int);'
local source = streamlua.spout {
  fields = { 'n' },
  open = function(self, context)
    self.n = 0
    for line in io.lines(context.config.say or '/dev/null') do print(line) end
    if context.config.exits then
      io.stderr:write('there is no table\n')
      -- At once: what is not freed then is no leak.
      ffi.C._exit(3)
    end
  end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ self.n }, { id = self.n })
  end,
}
local sink = streamlua.bolt { execute = function() end }
local t = streamlua.topology('counts', { containers = 2, executors = 1, max_spout_pending = 20 })
t:spout('source', source)
t:bolt('sink', sink, { parallelism = 3 }):shuffle('source')
return t
]]

local run, ok, daemon, eventually = commands.run, commands.ok, commands.daemon, commands.eventually

local folder, script, env

local ADDRESS = net.address()

local function first_port(number) return 6800 + number * 3 end

local function supervisor(number, ...)
  local first = first_port(number)
  local started = daemon('supervisor', '--id', 's' .. number, '--host', ADDRESS, '--ports',
    ('%d-%d'):format(first, first + 2), ...)
  started:expect('stderr', 'is ready')
  return started
end

-- Another program has the port, until the descriptor is closed.
local function take_port(port)
  local socket = posix.socket.socket(posix.socket.AF_INET, posix.socket.SOCK_STREAM, 0)
  assert(posix.socket.setsockopt(socket, posix.socket.SOL_SOCKET, posix.socket.SO_REUSEADDR, 1))
  assert(posix.socket.bind(socket, { family = posix.socket.AF_INET, addr = ADDRESS,
    port = port }))
  assert(posix.socket.listen(socket, 1))
  return socket
end

local function kill(pid, number) posix.signal.kill(pid, number or posix.signal.SIGKILL) end

-- Processes of this spec's topologies: pids in a set.
local function processes()
  local set = {}
  for _, item in ipairs(commands.processes()) do set[item.pid] = item.text end
  return set
end

local function master_process() return commands.pid_of('topology-master') end

local function await_running(wanted)
  return commands.until_described(function(described)
    return commands.all_run(described) and (not wanted or wanted(described))
  end)
end

local function pids(described) return commands.by_id(described, 'pid') end

-- How many tuples the sinks have taken; heartbeats tell it.
local function taken()
  local state = commands.described()
  return state and state.components[2].executed or 0
end

describe('a supervisor', function()
  before_each(function()
    folder, env = commands.open('counts', { env = { STREAMLUA_CLUSTER = 'standalone',
      STREAMLUA_SET = 'heartbeat_interval=200ms;heartbeat_timeout=10s;'
        .. 'registration_error_delay=100ms;registration_refused_delay=100ms' } })
    script = files.write('counts.lua', SCRIPT)
    daemon('master'):expect('stderr', 'stands for election')
  end)

  after_each(function()
    pcall(run, 'kill', 'counts', '-q')
    commands.close()
  end)

  it('that is killed leaves its workers running, and the next one takes them over', function()
    local one = supervisor(1)
    supervisor(2)
    ok('submit', script)
    local before, leader = pids(await_running()), master_process()
    one:signal('KILL')
    one:wait()
    local seen = taken()
    eventually('the count', function() return taken() > seen end)
    one = supervisor(1)
    assert.same(before, pids(await_running()))
    assert.equal(leader, master_process())
    -- What it took over is its own: it notices the end of a worker, and of the topology master.
    kill(before[1])
    local after = pids(await_running(function(state) return state.containers[1].pid ~= before[1] end))
    assert.equal(before[2], after[2])
    kill(leader)
    eventually('the topology master', function()
      local other = master_process()
      return other and other ~= leader
    end)
    assert.same(after, pids(await_running()))
    -- Told to end, it says goodbye and leaves them, too.
    one:signal('TERM')
    assert.equal(143, one:wait().code)
    supervisor(1)
    assert.same(after, pids(await_running()))
    ok('kill', 'counts')
    eventually('the end', function() return next(processes()) == nil end)
  end)

  it('starts with what it can read of a damaged file, and ends what it does not know', function()
    local one = supervisor(1)
    ok('submit', script)
    local before = pids(await_running())
    one:signal('KILL')
    one:wait()
    local path = folder .. '/state/supervisors/s1/processes'
    local kept = {}
    for line in process.read_file(path):gmatch('[^\n]+') do
      local container = line:match('^worker %S+ %S+ %S+ %S+ %S+ %S+ (%d+) ')
      if container ~= '2' then kept[#kept + 1] = line end
    end
    assert.equal(2, #kept)
    -- One of the lines is lost, and others are junk or cut.
    process.write_file(path, 'junk\0junk\n' .. table.concat(kept, '\n') .. '\nworker 1 2 3')
    one = supervisor(1)
    assert.matches('2 lines can not be read', one.text.stderr, 1, true)
    local after = pids(await_running(function(state) return state.containers[2].pid ~= before[2] end))
    assert.equal(before[1], after[1])
    assert.is_nil(processes()[before[2]])
    -- Nothing of it can be read: all starts anew, and nothing runs twice.
    one:signal('KILL')
    one:wait()
    process.write_file(path, ('\1\255'):rep(5000))
    supervisor(1)
    await_running(function(state)
      return state.containers[1].pid ~= after[1] and state.containers[2].pid ~= after[2]
    end)
    eventually('one process each', function()
      local count = 0
      for _ in pairs(processes()) do count = count + 1 end
      return count == 3
    end)
  end)

  it('reads the logs of its workers for commands, wherever these are typed', function()
    local one = supervisor(1)
    supervisor(2)
    local words = {}
    for i = 1, 300 do words[i] = ('a long line of a log %d %s'):format(i, ('x'):rep(4000)) end
    files.write('words', table.concat(words, '\n') .. '\n')
    ok('submit', script, '--set', 'say=' .. folder .. '/words')
    local state = await_running()
    local source = 1
    for _, container in ipairs(state.containers) do
      for _, task in ipairs(container.tasks) do
        if task.component == 'source' then source = container.id end
      end
    end
    -- Longer than one answer, and shown as soon as it is written.
    local whole = ok('logs', 'counts', '--container', tostring(source)).stdout
    assert.equal(table.concat(words, '\n') .. '\n', whole:match('a long line.*'))
    local last = json.decode(ok('logs', 'counts', '--tail', '2', '-o', 'json').stdout).logs
    assert.equal(2, #last)
    assert.same({ words[299], words[300] }, last[source].lines)
    local followed = daemon('logs', 'counts', '-f', '--tail', '1')
    followed:expect('stdout', 'a long line of a log 300')
    local log = assert(io.open(('%s/state/logs/counts/container-%d.log'):format(folder, source), 'a'))
    log:write('half a line')
    log:flush()
    log:write(', and its end\n')
    log:close()
    followed:expect('stdout', 'half a line, and its end\n')
    followed:signal('INT')
    followed:wait()
    -- One that is away is told of, with what it has; the others are shown.
    local place
    for _, container in ipairs(state.containers) do
      if container.supervisor == 's1' then place = container.id end
    end
    one:signal('KILL')
    one:wait()
    local rest = run('logs', 'counts', '--tail', '1')
    assert.equal(0, rest.code)
    assert.matches(('^warning: container %d: supervisor s1 on host %s, which has its log, can not '
      .. 'be asked: '):format(place, ADDRESS), rest.stderr)
    local alone = run('logs', 'counts', '--container', tostring(place))
    assert.equal(5, alone.code)
    assert.matches(('supervisor s1 on host %s, which has its log'):format(ADDRESS), alone.stderr, 1, true)
    assert.equal(3, run('logs', 'counts', '--container', '9').code)
  end)

  it('ends what it runs when it is interrupted', function()
    local one = supervisor(1)
    ok('submit', script)
    await_running()
    one:signal('INT')
    assert.equal(130, one:wait().code)
    assert.same({}, processes())
  end)

  it('of a name that is taken is refused, and the first one goes on', function()
    supervisor(1)
    ok('submit', script)
    local before = pids(await_running())
    local second = run('supervisor', '--id', 's1', '--host', ADDRESS, '--slots', '1')
    assert.equal(4, second.code)
    assert.matches('^error: supervisor: supervisor s1 is there already: process %d+ on host ' .. ADDRESS
      .. '\n$', second.stderr)
    assert.same(before, pids(await_running()))
  end)

  it('whose ports another one of the host has is refused, and the first one goes on', function()
    supervisor(1)
    ok('submit', script)
    local before = pids(await_running())
    local first = first_port(1)
    local second = run('supervisor', '--id', 's2', '--host', ADDRESS, '--ports',
      ('%d-%d'):format(first + 2, first + 4))
    assert.equal(4, second.code)
    assert.matches(('^error: supervisor: port %d of host %s is a slot of supervisor s1 already '
      .. '%%(process %%d+%%)\n$'):format(first + 2, ADDRESS), second.stderr)
    assert.same(before, pids(await_running()))
    local other = daemon('supervisor', '--id', 's2', '--host', ADDRESS, '--ports',
      ('%d-%d'):format(first + 3, first + 4))
    other:expect('stderr', 'is ready')
  end)

  it('needs slots, good ports and a name', function()
    assert.equal(7, run('supervisor', '--slots', '0').code)
    assert.matches('it has no slots', run('supervisor', '--slots', '0').stderr, 1, true)
    assert.equal(2, run('supervisor', '--ports', '7-6').code)
    assert.equal(2, run('supervisor', '--slots', 'many').code)
    assert.equal(2, run('supervisor', '--slots', '2', '--ports', '6800-6801').code)
    assert.equal(2, run('supervisor', '--cpu', '0').code)
    assert.equal(7, run('supervisor', '--id', 'a/b').code)
    assert.equal(7, run('supervisor', '--slots', '1', '--host', '0.0.0.0').code)
  end)

  local function check_nothing_is_left()
    eventually('the end', function() return next(processes()) == nil end)
    assert.same({ topologies = {} }, commands.document('list', '-o', 'json'))
  end

  it('gives a worker up that ends at once; the submission says why, and leaves nothing', function()
    supervisor(1)
    local result = run('submit', script, '--set', 'exits=true', '--timeout', '60s')
    assert.equal(1, result.code, result.stderr)
    assert.matches('exit code 3: there is no table', result.stderr, 1, true)
    check_nothing_is_left()
    -- Where it is loaded already, which says file and line.
    local path = files.write('top.lua', "local args = io.open('/proc/self/cmdline'):read('*a')\n"
      .. "if args:find('%zworker%z') then error('not here') end\n" .. SCRIPT)
    result = run('submit', path, '--timeout', '60s')
    assert.equal(1, result.code, result.stderr)
    assert.matches('exit code 7: .*top%.lua:2: not here', result.stderr)
    check_nothing_is_left()
  end)

  -- Another program in the place of this one, as when a machine was set up wrongly.
  it('whose program ends at once, or is not there, starts nothing, and the submission says so', function()
    local binary = files.write('streamlua', '')
    env.STREAMLUA_HOME = process.root
    for _, row in ipairs { { '#!/bin/sh\necho it is broken >&2; exit 9\n', 'exit code 9: it is broken' },
      { '#!/bin/sh\nexit 0\n', 'it ends at once (exit code 0)' },
      { nil, 'No such file or directory' } } do
      assert(os.remove(binary))
      assert.equal(0, process.run({ process.binary, binary }, { program = 'cp' }).code)
      local first = first_port(1)
      local one = commands.keep(commands.start({ 'supervisor', '--id', 's1', '--host', ADDRESS, '--ports',
        ('%d-%d'):format(first, first + 1) }, { program = binary }))
      one:expect('stderr', 'is ready')
      assert(os.remove(binary))
      if row[1] then
        files.write('streamlua', row[1])
        posix.stat.chmod(binary, 448)
      end
      local result = run('submit', script, '--timeout', '60s')
      assert.equal(1, result.code, result.stderr)
      assert.matches('it can not start: its topology master can not be started', result.stderr, 1, true)
      assert.matches(row[2], result.stderr, 1, true)
      check_nothing_is_left()
      one:signal('INT')
      one:wait()
      files.write('streamlua', '')
    end
  end)

  it('whose port is taken by another program has its containers elsewhere, or none', function()
    local socket = take_port(first_port(1))
    local one = daemon('supervisor', '--id', 's1', '--host', ADDRESS, '--ports',
      ('%d-%d'):format(first_port(1), first_port(1) + 1))
    one:expect('stderr', 'is ready')
    local result = run('submit', script)
    assert.equal(1, result.code)
    assert.matches(('port %d of s1 can not be used: .*address already in use; elsewhere: '
      .. 'not enough slots'):format(first_port(1)), result.stderr)
    assert.same({ topologies = {} }, commands.document('list', '-o', 'json'))
    supervisor(2)
    ok('submit', script)
    for _, container in ipairs(await_running().containers) do
      assert.not_equal(first_port(1), container.port)
    end
    posix.unistd.close(socket)
  end)

  it('whose ports are all taken says so at once, and nothing goes round in a circle', function()
    local sockets = {}
    for i = 0, 2 do sockets[i] = take_port(first_port(1) + i) end
    supervisor(1)
    local result = run('submit', script)
    assert.equal(1, result.code)
    assert.matches('port %d+ of s1 can not be used: .*address already in use; elsewhere: '
      .. 'not enough slots', result.stderr)
    check_nothing_is_left()
    for _, socket in pairs(sockets) do posix.unistd.close(socket) end
  end)
end)
