-- labels: short
-- timeout: 300
-- Two worker processes with a fixed plan: tuples, acks and ends of input between them.
local files = require 'support.files'
local json = require 'streamlua.json'
local net = require 'support.net'
local process = require 'support.process'

local NUMBERS = 1500

-- Two spouts, a bolt between, a keyed count and a sink that says what it has seen in the end.
local SCRIPT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('spread', { acking = true, ackers = tonumber('ACKERS') })
t:spout('numbers', streamlua.spout {
  fields = { 'n', 'text' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > ]] .. NUMBERS .. [[ then return streamlua.DONE end
    collector:emit({ self.n, { of = 'task', value = self.n } }, { id = self.n })
  end,
  ack = function() end,
}, { parallelism = 2 })
t:bolt('pass', streamlua.bolt {
  fields = { 'key', 'n' },
  execute = function(_, tuple, collector)
    assert(tuple.text.value == tuple.n)
    collector:emit({ tuple.n % 97, tuple.n })
  end,
}, { parallelism = 3 }):GROUPING('numbers')
t:bolt('count', streamlua.bolt {
  fields = { 'key', 'count' },
  prepare = function(self, context) self.counts = context:state('counts') end,
  execute = function(self, tuple) self.counts:add(tuple.key, tuple.n) end,
  finish = function(self, collector)
    for key, sum in self.counts:each() do collector:emit({ key, sum }) end
  end,
}, { parallelism = 4 }):fields('pass', { 'key' })
t:bolt('sink', streamlua.bolt {
  execute = function(self, tuple)
    self.sum = (self.sum or 0) + tuple.count
    self.keys = (self.keys or 0) + 1
  end,
  finish = function(self) print(('keys %d sum %d'):format(self.keys, self.sum)) end,
}):global('count')
return t
]]

-- Component, how many tasks, the container of each in turn.
local PLACES = { { 'numbers', 2 }, { 'pass', 3 }, { 'count', 4 }, { 'sink', 1 } }

local function identity(container) return ('%02x'):format(container):rep(16) end

local function write_plan(ackers)
  local plan = { topology_id = 'spread-1', containers = {}, tasks = {}, groups = {} }
  for id = 1, 2 do
    plan.containers[id] = { id = id, host = net.address(), port = 21000 + id, identity = identity(id) }
  end
  local places = { unpack(PLACES) }
  if ackers then places[#places + 1] = { '__acker', ackers } end
  for _, place in ipairs(places) do
    local first = #plan.tasks + 1
    for index = 0, place[2] - 1 do
      plan.tasks[#plan.tasks + 1] = { id = #plan.tasks + 1, component = place[1], index = index,
        container = 1 + #plan.tasks % 2 }
    end
    if place[1] == 'count' then
      local owners = {}
      for group = 1, 128 do owners[group] = first + group % 4 end
      plan.groups.count = owners
    end
  end
  return files.write('plan.json', json.encode(plan))
end

local function start(container, plan, script, ...)
  return process.start({ 'worker', '--container', tostring(container), '--plan', plan, script,
    '--summary', files.folder() .. ('/summary-%d.json'):format(container), ... })
end

local function summary(container)
  local file = assert(io.open(files.folder() .. ('/summary-%d.json'):format(container)))
  local document = json.decode(file:read('*a'))
  file:close()
  return document
end

local function add(one, other, component, counter) return one[component][counter]
  + other[component][counter] end

local function run_both(grouping, ackers)
  local text = SCRIPT:gsub('GROUPING', grouping):gsub("tonumber%('ACKERS'%)", tostring(ackers))
  local script = files.write('spread.lua', text)
  local plan = write_plan(ackers)
  local second = start(2, plan, script, '--until-finished')
  local first = start(1, plan, script, '--until-finished')
  local results = { first:wait(), second:wait() }
  for i, result in ipairs(results) do
    assert.equal(0, result.code, ('worker %d: %s'):format(i, result.stderr))
  end
  -- Two spouts with the numbers from 1 on.
  local sum = NUMBERS * (NUMBERS + 1)
  local copies = grouping == 'all' and 3 or 1
  assert.equal(('keys 97 sum %d\n'):format(sum * copies), results[1].stdout .. results[2].stdout)
  local one, other = summary(1), summary(2)
  assert.equal(2 * NUMBERS, add(one, other, 'numbers', 'acked'))
  assert.equal(0, add(one, other, 'numbers', 'failed'))
  assert.equal(0, add(one, other, 'numbers', 'pending'))
  assert.equal(2 * NUMBERS * copies, add(one, other, 'pass', 'executed'))
  assert.equal(2 * NUMBERS * copies, add(one, other, 'count', 'executed'))
  assert.is_true(one.pass.executed > 0 and other.pass.executed > 0)
end

describe('worker', function()
  after_each(files.clean)

  for _, grouping in ipairs({ 'shuffle', 'all', 'local_or_shuffle' }) do
    it(('counts exactly across two processes, with %s'):format(grouping), function()
      run_both(grouping, nil)
    end)
  end

  it('counts exactly with acker tasks in both processes', function() run_both('shuffle', 3) end)

  it('waits for its peer and ends in order on SIGTERM', function()
    local script = files.write('spread.lua',
      (SCRIPT:gsub('GROUPING', 'shuffle'):gsub("tonumber%('ACKERS'%)", 'nil')))
    local alone = start(1, write_plan(), script)
    alone:expect('stderr', 'container 1 listens on')
    alone:signal('TERM')
    local result = alone:wait()
    assert.equal(0, result.code, result.stderr)
    assert.equal('', result.stdout)
  end)

  it('refuses what it can not run', function()
    local script = files.write('spread.lua', 'return 1')
    local plan = write_plan()
    local function code(...) return process.run({ 'worker', ... }).code end
    assert.equal(2, code())
    assert.equal(2, code('--container', '1'))
    assert.equal(2, code('--container', 'x', '--plan', plan, script))
    assert.equal(2, code('--container', '1', '--plan', plan))
    assert.equal(3, code('--container', '1', '--plan', plan .. 'x', script))
    assert.equal(7, code('--container', '9', '--plan', plan, script))
    assert.equal(7, code('--container', '1', '--plan', plan, script))
  end)
end)
