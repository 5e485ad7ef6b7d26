-- timeout: 300
-- Local topologies from the command line: real processes, a state folder of their own.

local commands = require 'support.commands'
local files = require 'support.files'
local json = require 'streamlua.json'
local posix = { signal = require 'posix.signal', stat = require 'posix.sys.stat' }
local process = require 'support.process'

-- Emits numbered roots as long as it is told to. The sink writes what it saw; the spout, at its end,
-- which roots it emitted last and which were acked. With `replay` what fails comes again.
local SCRIPT = [[
local streamlua = require 'streamlua'
local keys = require 'keys'
local source = streamlua.spout {
  fields = { 'key', 'root' }, replay = true,
  open = function(self, context) self.config, self.n, self.acked = context.config, 0, {} end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ keys.of(self.n), self.n }, { id = self.n })
  end,
  ack = function(self, id) self.acked[#self.acked + 1] = id end,
  close = function(self)
    local file = assert(io.open(self.config.folder .. '/emitted', 'w'))
    file:write(self.n, '\n', table.concat(self.acked, '\n'), '\n')
    file:close()
  end,
}
local count = streamlua.bolt {
  fields = { 'key', 'count', 'root' },
  prepare = function(self, context)
    self.counts, self.tried, self.flaky = context:state('counts'), {}, context.config.flaky
    if context.config.broken then error('no such table') end
    if context.config.fragile and context.index >= 3 then error('not that many') end
    local gate = context.index >= 2 and io.open(context.config.folder .. '/gate')
    if gate then gate:read('*a') end
  end,
  execute = function(self, tuple, collector)
    if self.flaky and not self.tried[tuple.root] then
      self.tried[tuple.root] = true
      error('not at first')
    end
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
local t = streamlua.topology('counts', { containers = 2, executors = 1, max_spout_pending = 20 })
t:spout('source', source)
t:bolt('count', count, { parallelism = 2 }):fields('source', { 'key' })
t:bolt('sink', sink):global('count')
return t
]]
local KEYS = [[return { of = function(n) return 'k' .. n % 16 end }]]

-- The launcher is loaded; without it the topology master is asked, whose endpoint is published.
local LIBRARY = 'scheduler_service=false'

local run, ok, document = commands.run, commands.ok, commands.document
local processes, process_of = commands.processes, commands.pid_of
local all_run, until_described = commands.all_run, commands.until_described

local folder, script, env

local function pids(described) return commands.by_id(described, 'pid') end

describe('a local topology', function()
  before_each(function()
    folder, env = commands.open('counts')
    env.STREAMLUA_SET = 'folder=' .. folder
    script = files.write('counts.lua', SCRIPT)
    files.write('keys.lua', KEYS)
  end)

  after_each(function()
    run('kill', 'counts', '-q')
    commands.close()
  end)

  it('is submitted, looked at, paused, resumed and killed without a trace', function()
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.same({ topology = 'counts', action = 'submit', state = 'RUNNING' },
      document('submit', script, '-o', 'json'))
    local listed = document('list', '-o', 'json').topologies[1]
    assert.equal('counts', listed.name)
    assert.equal('RUNNING', listed.state)
    assert.equal(1, listed.plan_version)
    assert.equal(2, listed.containers)
    assert.equal(4, listed.tasks)
    local described = until_described(all_run)
    assert.equal('packed', described.scheduler)
    assert.same({ name = 'count', kind = 'bolt', parallelism = 2 },
      { name = described.components[2].name, kind = described.components[2].kind,
        parallelism = described.components[2].parallelism })
    assert.equal(4, #processes())
    local asked = ok('repl', '-o', 'json', '-e', "local c = connect() return { c:list()[1].name, "
      .. "c:describe('counts').state, c:plan('counts').version, #c:plans().counts.containers }")
    assert.same({ 'counts', 'RUNNING', 1, 2 }, json.decode(asked.stdout))
    assert.same({ topology = 'counts', action = 'deactivate', state = 'PAUSED' },
      document('deactivate', 'counts', '-o', 'json'))
    assert.equal('PAUSED', document('list', '-o', 'json').topologies[1].state)
    ok('activate', script)
    assert.equal('RUNNING', document('describe', script, '-o', 'json').state)
    assert.equal(4, run('submit', script).code)
    assert.matches('==> container 1 <==\nworker: [^\n]+\n==> container 2 <==\n',
      ok('logs', 'counts').stdout)
    assert.equal(1, #document('logs', 'counts', '--container', '2', '--tail', '1', '-o',
      'json').logs[1].lines)
    assert.equal(3, run('logs', 'counts', '--container', '3').code)
    ok('restart', 'counts', '--container', '2', '--set', LIBRARY)
    ok('restart', 'counts')
    ok('kill', 'counts', '--wait', '5s', '--set', LIBRARY)
    assert.same({}, processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.equal(3, run('kill', 'counts').code)
    for _, command in ipairs({ 'describe', 'activate', 'deactivate', 'restart' }) do
      assert.equal(3, run(command, 'counts').code, command)
    end
    assert.equal(3, run('update', 'counts', '--parallelism', 'count=3').code)
  end)

  it('can be submitted paused, and activated; its processes have the settings of submit', function()
    ok('submit', script, '--deactivated', '--set', 'heartbeat_interval=123ms')
    for _, item in ipairs(processes()) do
      assert.matches('STREAMLUA_HEARTBEAT_INTERVAL=123ms\0',
        process.read_file(('/proc/%d/environ'):format(item.pid)), 1, true)
    end
    assert.equal('PAUSED', document('describe', 'counts', '-o', 'json').state)
    ok('activate', 'counts')
    until_described(all_run)
  end)

  it('is shipped with the files that it asks for, and reads its input where it was submitted', function()
    files.write('data/words.txt', 'ham eggs\n')
    files.write('here.txt', 'spam\n')
    script = files.write('files.lua', [[
      local streamlua = require 'streamlua'
      local path = streamlua.file('data/words.txt')
      local t = streamlua.topology('counts', { containers = 1 })
      t:spout('lines', streamlua.io.lines { path = t.config.input or path })
      t:bolt('write', streamlua.bolt {
        execute = function(self, tuple)
          local file = assert(io.open(t.config.folder .. '/out', 'a'))
          file:write(tuple.line, '\n')
          file:close()
        end }):global('lines')
      return t
    ]])
    for _, case in ipairs({ { 'ham eggs\n' }, { 'spam\n', '--set', 'input=here.txt' } }) do
      ok('submit', script, unpack(case, 2))
      commands.eventually('the output', function() return io.open(folder .. '/out') end)
      ok('kill', 'counts', '--wait', '5s')
      assert.equal(case[1], process.read_file(folder .. '/out'))
      os.remove(folder .. '/out')
    end
  end)

  it('that can not start is taken back whole, with its reason', function()
    local result = process.run({ 'submit', script, '--set', 'broken=true' },
      { env = env, cwd = folder })
    assert.equal(1, result.code)
    -- The file as it is called where it was submitted, not where a worker unpacked it.
    assert.matches('it can not start: count%[%d%]: counts.lua:21: no such table\n', result.stderr)
    assert.same({}, processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.equal(3, run('kill', 'counts').code)
  end)

  it('survives the death of each of its processes, with the others running on', function()
    ok('submit', script)
    local before = pids(until_described(all_run))
    posix.signal.kill(before[1], posix.signal.SIGKILL)
    local after = pids(until_described(function(described)
      return all_run(described) and described.containers[1].pid ~= before[1]
    end))
    assert.equal(before[2], after[2])
    local master = process_of('topology-master')
    posix.signal.kill(master, posix.signal.SIGKILL)
    until_described(function(described)
      return all_run(described) and process_of('topology-master') ~= master
    end)
    local guardian = process_of('guardian')
    posix.signal.kill(guardian, posix.signal.SIGKILL)
    -- The next topology master needs the next guardian.
    until_described(function()
      local other = process_of('guardian')
      return other ~= nil and other ~= guardian
    end)
    master = process_of('topology-master')
    posix.signal.kill(master, posix.signal.SIGKILL)
    local last = pids(until_described(function(described)
      return all_run(described) and process_of('topology-master') ~= master
    end))
    assert.same(after, last)
  end)

  it('finds a guardian again when that and the topology master die at the same time', function()
    ok('submit', script)
    local before = pids(until_described(all_run))
    local master, guardian = process_of('topology-master'), process_of('guardian')
    -- Neither sees the other's end.
    posix.signal.kill(master, posix.signal.SIGSTOP)
    posix.signal.kill(guardian, posix.signal.SIGKILL)
    posix.signal.kill(master, posix.signal.SIGKILL)
    assert.same(before, pids(until_described(function(described)
      return all_run(described) and process_of('topology-master') ~= master
    end)))
    local guardians = 0
    for _, item in ipairs(processes()) do
      guardians = guardians + (item.role == 'guardian' and 1 or 0)
    end
    assert.equal(1, guardians)
  end)

  -- What sink and source wrote: the largest count of each key added up, the roots that the sink saw,
  -- how many were emitted, and which were acked.
  local function outcome()
    local largest, result = {}, { sum = 0, seen = {}, acked = {} }
    for line in process.read_file(folder .. '/sink'):gmatch('[^\n]+') do
      local key, count, root = line:match('^(%S+) (%d+) (%d+)$')
      largest[key] = math.max(largest[key] or 0, tonumber(count))
      result.seen[tonumber(root)] = true
    end
    for _, count in pairs(largest) do result.sum = result.sum + count end
    for number in process.read_file(folder .. '/emitted'):gmatch('%d+') do
      if result.emitted then
        result.acked[#result.acked + 1] = tonumber(number)
      else
        result.emitted = tonumber(number)
      end
    end
    return result
  end

  it('is updated under load: counts stay exact, processes that stay are the same', function()
    ok('submit', script)
    local before = pids(until_described(all_run))
    local dry = document('update', 'counts', '--parallelism', 'count=4', '--dry-run', '-o', 'json')
    assert.is_true(dry.groups_moved > 0 and dry.bytes_moved > 0)
    assert.equal(1, document('describe', 'counts', '-o', 'json').plan_version)
    local grown = document('update', 'counts', '--parallelism', 'count=4,sink=1', '-o', 'json')
    assert.same({ topology = 'counts', from_version = 1, to_version = 2, changes = { count = 2 },
      kept = 4, started = 2, stopped = 0, moved = 0 },
      { topology = grown.topology, from_version = grown.from_version, to_version = grown.to_version,
        changes = grown.changes, kept = grown.kept, started = grown.started,
        stopped = grown.stopped, moved = grown.moved })
    assert.is_true(grown.groups_moved > 0 and grown.bytes_moved > 0)
    local after = until_described(all_run)
    assert.equal(2, after.plan_version)
    assert.same(before, { pids(after)[1], pids(after)[2] })
    ok('update', script, '--parallelism', 'count=-3', '--set', LIBRARY)
    local described = document('describe', 'counts', '-o', 'json')
    assert.equal(1, described.components[2].parallelism)
    local evened = document('update', 'counts', '--mode', 'reassign', '--parallelism', 'count=5',
      '-o', 'json')
    assert.equal(4, evened.started)
    local sizes = {}
    for i, container in ipairs(document('describe', 'counts', '-o', 'json').containers) do
      sizes[i] = #container.tasks
    end
    table.sort(sizes)
    assert.same({ 3, 4 }, sizes)
    ok('update', 'counts', '--containers', '3', '--set', LIBRARY)
    assert.equal(3, #document('describe', 'counts', '-o', 'json').containers)
    ok('kill', 'counts', '--wait', '30s')
    local result = outcome()
    assert.is_true(result.emitted > 0)
    assert.equal(result.emitted, result.sum)
    assert.equal(result.emitted, #result.acked)
  end)

  -- Task ids of a component, in order; and the container of each.
  local function tasks_of(described, name)
    local list, container_of = {}, {}
    for _, container in ipairs(described.containers) do
      for _, task in ipairs(container.tasks) do
        if task.component == name then
          list[#list + 1] = task.task
          container_of[task.task] = container.id
        end
      end
    end
    table.sort(list)
    return list, container_of
  end

  it('goes up and down 20 times under load: nothing is lost, the highest ids end', function()
    ok('submit', script)
    local described = until_described(all_run)
    local tasks, container_of = tasks_of(described, 'count')
    local size = 2
    for i = 1, 20 do
      local wanted = ({ 5, 1, 3, 6, 2 })[i % 5 + 1]
      local result = document('update', 'counts', '--parallelism', 'count=' .. wanted, '-o', 'json')
      local before, was_in = pids(described), container_of
      described = document('describe', 'counts', '-o', 'json')
      local after
      after, container_of = tasks_of(described, 'count')
      assert.equal(wanted, #after)
      assert.equal(0, result.moved)
      for k = 1, math.min(size, wanted) do
        assert.equal(tasks[k], after[k])
        assert.equal(was_in[after[k]], container_of[after[k]])
      end
      for id, pid in pairs(pids(described)) do
        assert.is_true(before[id] == nil or before[id] == pid)
      end
      tasks, size = after, wanted
    end
    ok('kill', 'counts', '--wait', '30s')
    local result = outcome()
    assert.is_true(result.emitted > 0)
    assert.equal(result.emitted, result.sum)
    assert.equal(result.emitted, #result.acked)
  end)

  it('has new spouts and ticking bolts ready before anything stops, or is not changed', function()
    local lively = files.write('lively.lua', [[
local streamlua = require 'streamlua'
local function told(self, what)
  local file = assert(io.open(self.config.folder .. '/told', 'a'))
  file:write(self.component, ' ', self.index, ' ', what, '\n')
  file:close()
end
local function begin(self, context)
  self.component, self.index, self.config = context.component, context.index, context.config
  if context.index == 2 then error(context.component .. ' can not be three') end
  local gate = context.index == 1 and io.open(context.config.folder .. '/gate')
  if gate then gate:read('*a') end
  told(self, 'opened')
end
local function first(self, what)
  if not self.has_begun then told(self, what) end
  self.has_begun = true
end
local t = streamlua.topology('counts', { containers = 1, executors = 1 })
t:spout('source', streamlua.spout {
  fields = { 'n' }, open = begin,
  next_tuple = function(self) first(self, 'called') end,
})
t:bolt('clock', streamlua.bolt {
  tick_every = 0.001, prepare = begin,
  execute = function() end,
  tick = function(self) first(self, 'ticked') end,
}):shuffle('source')
return t
]])
    local function pauses()
      local count = 0
      for _, event in ipairs(document('describe', 'counts', '-o', 'json').events) do
        if event.text == 'update: pausing spouts' then count = count + 1 end
      end
      return count
    end
    local function told(line)
      return ('\n' .. process.read_file(folder .. '/told')):find('\n' .. line .. '\n', 1, true)
    end
    ok('submit', lively)
    until_described(all_run)
    for _, component in ipairs({ 'source', 'clock' }) do
      local refused = run('update', 'counts', '--parallelism', component .. '=3')
      assert.equal(8, refused.code)
      assert.matches(component .. ' can not be three', refused.stderr, 1, true)
      assert.equal(0, pauses())
    end
    for index, case in ipairs({ { 'source', 'called' }, { 'clock', 'ticked' } }) do
      local component, what = unpack(case)
      process.write_file(folder .. '/told', '')
      local gate = files.gate('gate')
      local update = process.start({ 'update', 'counts', '--parallelism', component .. '=2' },
        { env = env, cwd = folder })
      gate.arrived()
      assert.equal(index - 1, pauses())
      gate.open()
      assert.equal(0, update:wait().code)
      assert.equal(index, pauses())
      local opened = assert(told(component .. ' 1 opened'))
      while not told(component .. ' 1 ' .. what) do document('describe', 'counts', '-o', 'json') end
      assert.is_true(told(component .. ' 1 ' .. what) > opened)
    end
    ok('kill', 'counts')
  end)

  it('loses nothing of what ticks emit while state moves', function()
    local ticking = files.write('ticking.lua', [[
local streamlua = require 'streamlua'
local EMITS = 4000
local t = streamlua.topology('counts', { containers = 2, executors = 1 })
t:spout('source', streamlua.spout { fields = { 'n' }, next_tuple = function() end })
t:bolt('clock', streamlua.bolt {
  fields = { 'key' }, tick_every = 0.004,
  prepare = function(self) self.n = 0 end,
  execute = function() end,
  tick = function(self, collector)
    for _ = 1, 10 do
      if self.n == EMITS then return end
      self.n = self.n + 1
      collector:emit({ 'k' .. self.n % 64 })
    end
  end,
}):shuffle('source')
t:bolt('count', streamlua.bolt {
  fields = { 'key', 'count' },
  prepare = function(self, context) self.counts = context:state('counts') end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.key, self.counts:add(tuple.key, 1) })
  end,
}, { parallelism = 2 }):fields('clock', { 'key' })
t:bolt('sink', streamlua.bolt {
  prepare = function(self, context)
    self.file = assert(io.open(context.config.folder .. '/sink', 'a'))
    self.file:setvbuf('no')
  end,
  execute = function(self, tuple) self.file:write(('%s %d\n'):format(tuple.key, tuple.count)) end,
}):global('count')
return t
]])
    ok('submit', ticking)
    until_described(all_run)
    for _, tasks in ipairs({ 4, 2, 5, 3, 4, 2 }) do
      ok('update', 'counts', '--parallelism', 'count=' .. tasks)
    end
    until_described(function(described)
      local by_name = {}
      for _, component in ipairs(described.components) do by_name[component.name] = component end
      return by_name.sink.executed == 4000
    end)
    ok('kill', 'counts')
    local largest, sum = {}, 0
    for key, count in process.read_file(folder .. '/sink'):gmatch('(%S+) (%d+)\n') do
      largest[key] = math.max(largest[key] or 0, tonumber(count))
    end
    for _, count in pairs(largest) do sum = sum + count end
    assert.equal(4000, sum)
  end)

  it('grows with tuples in flight that nobody acks, each of which arrives once', function()
    local flowing = files.write('flowing.lua', [[
local streamlua = require 'streamlua'
local TUPLES = 4000
local t = streamlua.topology('counts', { containers = 2, executors = 1, acking = false })
t:spout('source', streamlua.spout {
  fields = { 'n' },
  open = function(self, context) self.n = context.index == 0 and 0 or TUPLES end,
  next_tuple = function(self, collector)
    for _ = 1, 50 do
      if self.n == TUPLES then return end
      self.n = self.n + 1
      collector:emit({ self.n })
    end
  end,
})
t:bolt('work', streamlua.bolt {
  fields = { 'n' },
  prepare = function() require('ffi').cdef('int usleep(unsigned us);') end,
  execute = function(_, tuple, collector)
    -- The bolt is slow, so that tuples wait for it: nothing here waits for the time to pass.
    require('ffi').C.usleep(500)
    collector:emit({ tuple.n })
  end,
}, { parallelism = 2 }):shuffle('source')
t:bolt('sink', streamlua.bolt {
  prepare = function(self, context)
    self.file = assert(io.open(context.config.folder .. '/sink', 'a'))
    self.file:setvbuf('no')
  end,
  execute = function(self, tuple) self.file:write(('%d\n'):format(tuple.n)) end,
}):global('work')
return t
]])
    ok('submit', flowing)
    until_described(all_run)
    for _, change in ipairs({ 'work=3', 'work=5,source=2', 'work=6' }) do
      ok('update', 'counts', '--parallelism', change)
    end
    until_described(function(described)
      for _, component in ipairs(described.components) do
        if component.name == 'sink' then return component.executed >= 4000 end
      end
    end)
    ok('kill', 'counts')
    local seen, count = {}, 0
    for n in process.read_file(folder .. '/sink'):gmatch('%d+') do
      assert.is_nil(seen[n])
      seen[n], count = true, count + 1
    end
    assert.equal(4000, count)
  end)

  it('has new tasks ready before anything stops, or is not changed', function()
    ok('submit', script, '--set', 'fragile=true')
    local before = pids(until_described(all_run))
    local refused = run('update', 'counts', '--parallelism', 'count=5')
    assert.equal(8, refused.code)
    assert.matches('not that many', refused.stderr)
    local described = until_described(all_run)
    assert.equal(1, described.plan_version)
    assert.same(before, pids(described))
    local gate = files.gate('gate')
    local update = process.start({ 'update', 'counts', '--parallelism', 'count=3' },
      { env = env, cwd = folder })
    gate.arrived()
    local function has_paused()
      local pauses = 0
      for _, event in ipairs(document('describe', 'counts', '-o', 'json').events) do
        if event.text == 'update: pausing spouts' then pauses = pauses + 1 end
      end
      return pauses > 0
    end
    assert.is_false(has_paused())
    gate.open()
    assert.equal(0, update:wait().code)
    assert.is_true(has_paused())
    described = document('describe', 'counts', '-o', 'json')
    assert.equal(3, described.components[2].parallelism)
    assert.same(before, pids(described))
    ok('kill', 'counts', '--wait', '30s')
    local outcome_now = outcome()
    assert.equal(outcome_now.emitted, outcome_now.sum)
    assert.equal(outcome_now.emitted, #outcome_now.acked)
  end)

  it('is evened out by the modes, each in its way', function()
    ok('submit', script)
    ok('update', 'counts', '--parallelism', 'count=8')
    ok('update', 'counts', '--parallelism', 'count=3,source=2', '--containers', '3')
    ok('update', 'counts', '--parallelism', 'source=7')
    assert.equal(4, run('update', 'counts', '--mode', 'keep').code)
    local dry = document('update', 'counts', '--mode', 'minimal', '--dry-run', '-o', 'json')
    local anew = document('update', 'counts', '--mode', 'reassign', '--dry-run', '-o', 'json')
    assert.is_true(dry.moved > 0 and dry.moved < anew.moved)
    assert.equal(dry.moved, #dry.moves)
    assert.matches('Moves: %a+ %(task %d+%) from container %d to %d\n',
      ok('update', 'counts', '--mode', 'minimal', '--dry-run').stdout)
    local before = pids(document('describe', 'counts', '-o', 'json'))
    assert.equal(dry.moved, document('update', 'counts', '--mode', 'minimal', '-o', 'json').moved)
    local described = document('describe', 'counts', '-o', 'json')
    local sizes = {}
    for k, container in ipairs(described.containers) do sizes[k] = #container.tasks end
    table.sort(sizes)
    assert.same({ 3, 4, 4 }, sizes)
    assert.same(before, pids(described))
    assert.equal(4, run('update', 'counts', '--mode', 'minimal').code)
    ok('kill', 'counts', '--wait', '30s')
  end)

  it('keeps its state when an update asks for what can not be, and a dry run touches nothing', function()
    ok('submit', script, '--deactivated')
    local log = process.read_file(folder .. '/state/state.log')
    assert.equal(0, run('update', 'counts', '--parallelism', 'count=3', '--dry-run').code)
    local dry = document('update', 'counts', '--parallelism', 'count=3', '--dry-run', '-o', 'json')
    assert.equal('first_fit_decreasing', dry.repacking)
    assert.equal(1, dry.started)
    local text = ok('update', 'counts', '--parallelism', 'count=3', '--dry-run', '-o', 'json').stdout
    assert.matches('"added":%[{"component":"count","task":%d+,"index":2,"cpu":', text)
    assert.is_true(dry.groups_moved > 0)
    -- No dump of bytes when it fails.
    assert.is_true(log == process.read_file(folder .. '/state/state.log'))
    for i, case in ipairs({
      { 4, '--parallelism', 'count=2' }, { 7, '--parallelism', 'cuont=2' },
      { 7, '--parallelism', 'count=0' }, { 2, '--parallelism', 'count=1.5' },
      { 7, '--parallelism', 'count=1000000000' }, { 7, '--parallelism', 'count=21' },
      { 7, '--parallelism', 'count=3,count=4' }, { 7, '--parallelism', 'count=-2' }, { 2 },
      { 4, '--parallelism', 'count=3', '--if-version', '2' }, { 7, '--containers', '100' },
      { 4, '--mode', 'keep' }, { 4, '--mode', 'minimal' }, { 4, '--mode', 'reassign' },
      { 2, '--mode', 'other' },
    }) do
      local mode = 'scheduler_service=' .. tostring(i % 2 == 0)
      local result = run('update', 'counts', '--set', mode, unpack(case, 2))
      assert.equal(case[1], result.code, table.concat(case, ' ') .. ': ' .. result.stderr)
    end
    process.write_file(script, process.read_file(script) .. '\n')
    local result = run('update', script, '--parallelism', 'count=3')
    assert.equal(4, result.code)
    assert.matches('differs', result.stderr)
    -- The definition is what was submitted; the plan alone says how many there are.
    local definition = [[local c = assert(require('streamlua.cluster').open({ logs = '.',
      program = '', reader = true, state = os.getenv('STREAMLUA_STATE') }))
      io.write(assert(c:load('counts')).definition)]]
    local reader = files.write('definition.lua', definition)
    local submitted = ok('exec', reader).stdout
    assert.is_true(#submitted > 0)
    -- A paused topology is updated, too, and stays paused.
    local done = document('update', 'counts', '--parallelism', 'count=3', '-o', 'json')
    assert.equal(0, done.paused_ms)
    assert.equal('PAUSED', document('describe', 'counts', '-o', 'json').state)
    assert.is_true(submitted == ok('exec', reader).stdout)
  end)

  it('takes one of two updates at once', function()
    ok('submit', script)
    local one = process.start({ 'update', 'counts', '--parallelism', 'count=3' },
      { env = env, cwd = folder })
    local two = process.start({ 'update', 'counts', '--parallelism', 'count=4' },
      { env = env, cwd = folder })
    local codes = { one:wait().code, two:wait().code }
    table.sort(codes)
    assert.equal(0, codes[1])
    assert.is_true(codes[2] == 0 or codes[2] == 4, codes[2])
  end)

  it('shrinks from more tasks than its script says, many of them without state', function()
    ok('submit', script, '--parallelism', 'count=100')
    assert.equal(97, document('update', 'counts', '--parallelism', 'count=3', '-o', 'json').stopped)
    ok('kill', 'counts', '--wait', '30s')
    local outcome_now = outcome()
    assert.is_true(outcome_now.emitted > 0)
    assert.equal(outcome_now.emitted, outcome_now.sum)
    assert.equal(outcome_now.emitted, #outcome_now.acked)
  end)

  it('says who has an update under way', function()
    ok('submit', script, '--parallelism', 'count=2')
    env.USER = 'ann'
    local gate = files.gate('gate')
    local first = process.start({ 'update', 'counts', '--parallelism', 'count=3' },
      { env = env, cwd = folder })
    gate.arrived()
    local second = run('update', 'counts', '--parallelism', 'count=4', '--lock-timeout', '0')
    assert.equal(4, second.code)
    assert.matches(("the lock is held by another update of counts, asked by 'client' 'ann@%%S+, process %d' at ")
      :format(first.pid), second.stderr)
    gate.open()
    assert.equal(0, first:wait().code)
  end)

  it('emits again what fails while a kill waits', function()
    process.write_file(script, (process.read_file(script):gsub('replay = true',
      "replay = { delay = '700ms' }")))
    ok('submit', script, '--set', 'flaky=true', '--set', 'max_spout_pending=50')
    until_described(function(described) return described.components[2].executed > 100 end)
    ok('kill', 'counts', '--wait', '30s')
    local result = outcome()
    assert.is_true(result.emitted > 50)
    assert.equal(result.emitted, #result.acked)
    assert.equal(result.emitted, result.sum)
  end)

  it('loses no root when workers and its topology master die', function()
    ok('submit', script, '--set', 'message_timeout=2s')
    local described = until_described(all_run)
    -- The one without the source, which would not know any more what it has emitted.
    local victim
    for _, container in ipairs(described.containers) do
      local has_source = false
      for _, task in ipairs(container.tasks) do
        has_source = has_source or task.component == 'source'
      end
      if not has_source then victim = container.id end
    end
    for _ = 1, 2 do
      local pid = pids(described)[victim]
      posix.signal.kill(pid, posix.signal.SIGKILL)
      posix.signal.kill(process_of('topology-master'), posix.signal.SIGKILL)
      described = until_described(function(now)
        return all_run(now) and pids(now)[victim] ~= pid
      end)
    end
    ok('kill', 'counts', '--wait', '30s')
    local result = outcome()
    for _, root in ipairs(result.acked) do
      assert.is_true(result.seen[root], 'lost: ' .. root)
    end
    -- What is not acked was given up by the kill; there are never more in flight.
    assert.is_true(result.emitted - #result.acked <= 20)
    assert.is_true(#result.acked > 20)
  end)
end)
