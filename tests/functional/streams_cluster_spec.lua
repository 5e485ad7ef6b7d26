-- timeout: 240
-- Submitted stream programs: real processes, which are killed; what comes out is what one process gives.

local eventually = require 'support.eventually'
local files = require 'support.files'
local json = require 'streamlua.json'
local net = require 'support.net'
local posix = { signal = require 'posix.signal' }
local process = require 'support.process'

-- Each batch appends a line with its number to `out`. The window is incremental, the sums are a state, the
-- sizes come from a window that is shuffled anew.
local WINDOWED = [[
local streaming = require 'streamlua.streaming'
local ssc = streaming.context { name = 'windowed', batch = '100ms', checkpoint = 'checkpoint', catch_up = 1000,
  config = { out = 'out' } }
local zero
local words = ssc:input_stream(function(time, index)
  zero = time - index * 100
  local list = {}
  for i = 1, 40 do list[i] = { 'w' .. (i * i + index) % 11, i + index } end
  return list
end, { partitions = 3 }):name('words')
local function add(a, b) return a + b end
local counts = words:reduce_by_key_and_window(add, function(a, b) return a - b end, '1s', '100ms')
  :name('counts')
local sums = words:map_values(function(v) return v % 5 end):update_state_by_key(function(values, old)
  local sum = old or 0
  for _, v in ipairs(values) do sum = sum + v end
  return sum
end):checkpoint('300ms'):name('sums')
local sizes = words:group_by_key_and_window('500ms', '100ms'):name('sizes')
  :map_values(function(list) return #list end)
local function text_of(rdd)
  local list = {}
  for _, pair in ipairs(rdd:collect()) do list[#list + 1] = ('%s=%d'):format(pair[1], pair[2]) end
  table.sort(list)
  return table.concat(list, ' ')
end
ssc:transform({ counts, sums, sizes }, function(list)
  return list[1]:map_values(function(v) return { 'counts', v } end)
    :union(list[2]:map_values(function(v) return { 'sums', v } end),
      list[3]:map_values(function(v) return { 'sizes', v } end))
    :map(function(pair) return { pair[2][1] .. ':' .. pair[1], pair[2][2] } end)
end):foreach_rdd(function(rdd, time)
  local file = assert(io.open(ssc.config.out, 'a'))
  file:write(('%d %s\n'):format(time, text_of(rdd)))
  file:close()
end)
return ssc
]]

-- Two receivers that count, from where the last one of their name ended; a number is acknowledged when its
-- block was taken.
local RECEIVED = [[
local streaming = require 'streamlua.streaming'
local libc = require 'streamlua.connectors.libc'
local ssc = streaming.context { name = 'received', batch = '100ms', receiver_restart_delay = '50ms' }
local function append(name, text)
  local file = assert(io.open(name, 'a'))
  file:write(text, '\n')
  file:close()
end
local function numbers(name)
  return ssc:receiver_stream {
    on_start = function(self)
      append('started', ('%s %d'):format(name, libc.C.getpid()))
      self.n = 0
      local file = io.open('acknowledged-' .. name)
      if file then
        for line in file:lines() do self.n = tonumber(line) end
        file:close()
      end
    end,
    poll = function(self, r)
      libc.C.poll(nil, 0, 5)
      self.n = self.n + 1
      r:store_block { { name, self.n } }
      append('acknowledged-' .. name, self.n)
      return true
    end,
  }:name(name)
end
numbers('one'):union(numbers('two')):repartition(2):foreach_rdd(function(rdd)
  for _, pair in ipairs(rdd:collect()) do append('out-' .. pair[1], pair[2]) end
end)
return ssc
]]

-- Its start takes as long as several batches, which are over before it is.
local EARLY = [[
local streaming = require 'streamlua.streaming'
local libc = require 'streamlua.connectors.libc'
local ssc = streaming.context { name = 'early', batch = '20ms' }
ssc:add_listener { streaming_started = function() libc.C.poll(nil, 0, 100) end }
ssc:input_stream(function() return { 1 } end):name('ones'):foreach_rdd(function() end)
return ssc
]]

local folder, env
local daemons = {}

local function run(...) return process.run({ ... }, { env = env, cwd = folder }) end

local function ok(...)
  local result = run(...)
  assert.equal(0, result.code, result.stdout .. result.stderr)
  return result
end

local function document(...) return assert(json.decode(ok(...).stdout)) end

local function lines_of(name)
  local file, list = io.open(folder .. '/' .. name), {}
  if not file then return list end
  for line in file:lines() do list[#list + 1] = line end
  file:close()
  return list
end

-- Waits for something to become true of the files that processes write.
local function until_true(what, fn)
  local value = eventually(fn)
  if value then return value end
  error('it does not come to that: ' .. what .. '\n' .. run('logs', 'windowed', '--tail', '20').stdout
    .. run('logs', 'received', '--tail', '20').stdout)
end

local function more_lines(name, n)
  local before = #lines_of(name)
  until_true(('%d more lines of %s'):format(n, name), function() return #lines_of(name) >= before + n end)
end

local function container(described, id)
  for _, item in ipairs(described.containers) do
    if item.id == id then return item end
  end
end

local function kill(pid) assert(posix.signal.kill(pid, posix.signal.SIGKILL)) end

-- Lines by the number of their batch; a batch may have run twice, and said the same then.
local function batches_of(name)
  local list, lines, first, repeated = {}, lines_of(name), nil, 0
  for _, line in ipairs(lines) do
    local time, text = line:match('^(%d+) (.*)$')
    first = first or tonumber(time)
    local index = (tonumber(time) - first) / 100 + 1
    assert.is_true(list[index] == nil or list[index] == text, 'batch ' .. index .. ' says two things')
    if list[index] then repeated = repeated + 1 end
    list[index] = text
  end
  return list, repeated
end

describe('a submitted stream program', function()
  before_each(function()
    folder = files.folder()
    env = { STREAMLUA_STATE = 'localfs:' .. folder .. '/state' }
    files.write('windowed.lua', WINDOWED)
    files.write('received.lua', RECEIVED)
    files.write('early.lua', EARLY)
  end)

  after_each(function()
    for _, name in ipairs({ 'windowed', 'received', 'early' }) do run('-q', 'kill', name) end
    for i = #daemons, 1, -1 do
      daemons[i]:signal('TERM')
      daemons[i]:wait()
    end
    daemons = {}
    files.clean()
  end)

  it('gives what one process gives, whoever is killed', function()
    ok('submit', 'windowed.lua', '--set', 'containers=2')
    local listed = document('list', '-o', 'json').topologies[1]
    assert.same({ 'windowed', 'RUNNING', 3 }, { listed.name, listed.state, listed.containers })
    local described = document('describe', 'windowed', '-o', 'json')
    local components = {}
    for i, item in ipairs(described.components) do
      components[i] = ('%s %s %d'):format(item.name, item.kind, item.parallelism)
    end
    assert.same({ 'driver spout 1', 'words bolt 3', 'counts bolt 2', 'sums bolt 2', 'sizes bolt 2' },
      components)
    assert.equal('driver', container(described, 3).tasks[1].component)
    more_lines('out', 3)

    -- A process of tasks.
    kill(container(described, 1).pid)
    more_lines('out', 8)
    local _, repeated = batches_of('out')
    assert.equal(0, repeated)

    ok('update', 'windowed', '--parallelism', 'counts=3,sums=1')
    more_lines('out', 3)

    -- The driver: it goes on where its checkpoint ends.
    kill(container(described, 3).pid)
    more_lines('out', 8)
    described = document('describe', 'windowed', '-o', 'json')
    assert.equal(2, described.plan_version)
    assert.equal(1, container(described, 3).restarts)
    -- Heartbeats bring counters: batches are what the driver does.
    until_true('counters', function()
      local now = document('describe', 'windowed', '-o', 'json').components
      return now[1].executed and now[1].executed > 0 and now[2].emitted == 40 * now[1].executed
    end)

    ok('kill', 'windowed', '--wait', '30s')
    assert.same({}, document('list', '-o', 'json').topologies)
    local batches = batches_of('out')
    local single = process.start({ 'run', '-q', 'windowed.lua', '--set', 'out=single', '--set',
      'checkpoint=checkpoint-single' }, { cwd = folder })
    until_true('as many batches', function() return #lines_of('single') >= #batches end)
    single:signal('TERM')
    single:wait()
    local expected = batches_of('single')
    for i = 1, #batches do assert.equal(expected[i], batches[i], 'batch ' .. i) end
    assert.is_true(#batches >= 20)
  end)

  it('runs receivers on its processes, and loses nothing that it has taken', function()
    ok('submit', 'received.lua', '--set', 'containers=2', '--set', 'executors=2')
    until_true('both receivers', function() return #lines_of('started') == 2 end)
    local described = document('describe', 'received', '-o', 'json')
    local workers = { [container(described, 1).pid] = true, [container(described, 2).pid] = true }
    local homes = {}
    for _, line in ipairs(lines_of('started')) do
      local name, pid = line:match('^(%S+) (%d+)$')
      homes[name] = tonumber(pid)
      assert.is_true(workers[homes[name]])
    end
    assert.are_not.equal(homes.one, homes.two)
    more_lines('out-one', 5)
    kill(homes.one)
    until_true('the receiver runs again', function() return #lines_of('started') >= 3 end)
    more_lines('out-one', 5)
    -- What its last host has taken, too, which is gone when the program is told to end.
    kill(homes.two)
    ok('kill', 'received', '--wait', '30s')
    for _, name in ipairs({ 'one', 'two' }) do
      local seen, acknowledged = {}, lines_of('acknowledged-' .. name)
      for _, line in ipairs(lines_of('out-' .. name)) do seen[line] = true end
      for _, line in ipairs(acknowledged) do assert.is_true(seen[line], name .. ' ' .. line .. ' is lost') end
    end
  end)

  it('counts batches that are over before its start is', function()
    ok('submit', 'early.lua')
    until_true('counters', function()
      local components = document('describe', 'early', '-o', 'json').components
      return components[1].executed and components[1].executed > 0
    end)
  end)

  it('runs on supervisors as well', function()
    env.STREAMLUA_CLUSTER = 'standalone'
    daemons[1] = process.start({ 'master' }, { env = env, cwd = folder })
    daemons[1]:expect('stderr', 'stands for election')
    daemons[2] = process.start({ 'supervisor', '--host', net.address(), '--slots', '4' },
      { env = env, cwd = folder })
    daemons[2]:expect('stderr', 'is ready')
    ok('submit', 'windowed.lua', '--set', 'containers=2')
    more_lines('out', 3)
    local described = document('describe', 'windowed', '-o', 'json')
    for _, item in ipairs(described.containers) do
      local has_driver = false
      for _, task in ipairs(item.tasks) do has_driver = has_driver or task.component == 'driver' end
      if not has_driver then kill(item.pid) end
    end
    more_lines('out', 3)
    local _, repeated = batches_of('out')
    assert.equal(0, repeated)
    ok('kill', 'windowed', '--wait', '30s')
  end)

  it('refuses what it can not run', function()
    local result = run('submit', 'received.lua', '--set', 'executors=1')
    assert.equal(1, result.code)
    assert.matches('each receiver takes a slot for ever: receivers 2, slots 1,', result.stderr)
    assert.same({}, document('list', '-o', 'json').topologies)
    result = run('submit', 'windowed.lua', '--parallelism', 'driver=2')
    assert.equal(7, result.code)
    assert.matches("a program has one driver", result.stderr)
    files.write('none.lua', [[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'none', batch = '1s' }
      ssc:queue_stream({})
      return ssc]])
    result = run('submit', 'none.lua')
    assert.equal(7, result.code)
    assert.matches('none.lua:2: the context has no output operation', result.stderr)
    files.write('started.lua', [[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'started', batch = '1s' }
      ssc:queue_stream({}):print()
      ssc:start()
      return ssc]])
    result = run('submit', 'started.lua')
    assert.equal(7, result.code)
    assert.matches('started.lua:4: start: streamlua run starts the context itself, submit likewise', result.stderr)
  end)
end)
