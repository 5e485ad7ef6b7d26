local native = require 'streamlua.topology.native'
local streamlua = require 'streamlua'
local topology = require 'streamlua.topology'

local function nothing() end

local function spout(fields)
  return streamlua.spout { fields = fields or { 'word' }, next_tuple = nothing }
end

local function bolt(fields)
  return streamlua.bolt { fields = fields or { 'word' }, execute = nothing }
end

local function line() return debug.getinfo(2, 'l').currentline end

-- "line severity code" of each problem, the line relative to `from`.
local function codes(t, from)
  local list = {}
  for i, p in ipairs(t:validate()) do
    assert.truthy(p.file:find('topology_spec.lua', 1, true))
    assert.truthy(#p.message > 0)
    list[i] = ('%d %s %s'):format(p.line - from, p.severity, p.code)
  end
  return list
end

local function raised(fn)
  local ok, message = pcall(fn)
  assert.is_false(ok)
  local text = tostring(message):match('topology_spec%.lua:%d+: (.*)$')
  assert(text, 'not blamed on the caller: ' .. tostring(message))
  return text
end

describe('a topology', function()
  it('is a plain value that keeps what was declared, in order', function()
    local t = streamlua.topology('wordcount', { input = 'a.txt' })
    local lines, split, count = spout({ 'line' }), bolt(), bolt({ 'word', 'count' })
    t:spout('lines', lines)
    t:bolt('split', split, { parallelism = 2, cpu = 0.5, ram = '512MiB', disk = 10 })
      :shuffle('lines')
    t:bolt('count', count, { parallelism = 4, config = { k = 1 } }):fields('split', { 'word' })
    assert.equal('wordcount', t.name)
    assert.same({ input = 'a.txt' }, t.config)
    assert.equal(3, #t.components)
    local entry = t.components[2]
    assert.equal('split', entry.name)
    assert.equal('bolt', entry.kind)
    assert.equal(split.definition, entry.definition)
    assert.equal(2, entry.parallelism)
    assert.equal(0.5, entry.cpu)
    assert.equal(536870912, entry.ram)
    assert.equal(10, entry.disk)
    assert.equal(1, t.components[1].parallelism)
    assert.is_nil(t.components[1].cpu)
    assert.same({ k = 1 }, t:component('count').config)
    local input = t:component('count').inputs[1]
    assert.equal('split', input.source)
    assert.equal('default', input.stream)
    assert.equal('fields', input.grouping)
    assert.same({ 'word' }, input.fields)
    assert.same({}, t:validate())
  end)

  it('has all nine groupings, each returning the declarer', function()
    local t = streamlua.topology('t')
    local function choose() return 1 end
    t:spout('s', streamlua.spout { fields = { 'a' }, next_tuple = nothing,
      streams = { x = { 'a' }, d = { fields = { 'a' }, direct = true } } })
    t:bolt('b1', bolt()):shuffle('s'):shuffle('s', 'x'):direct('s', 'd')
    t:bolt('b2', bolt()):fields('s', { 'a' }):fields('s', { 'a' }, 'x')
    t:bolt('b3', bolt()):all('s'):all('s', 'x')
    t:bolt('b4', bolt()):global('s'):global('s', 'x')
    t:bolt('b5', bolt()):none('s')
    t:bolt('b6', bolt()):local_or_shuffle('s'):local_or_shuffle('s', 'x')
    t:bolt('b7', bolt()):partial_key('s', { 'a' }):partial_key('s', { 'a' }, 'x')
    t:bolt('b8', bolt()):custom('s', choose):custom('s', choose, 'x')
    assert.same({}, t:validate())
    assert.equal(choose, t:component('b8').inputs[1].fn)
    assert.equal('x', t:component('b8').inputs[2].stream)
    local described = native.describe(t:native())
    assert.equal('b8/2', described.components[9].inputs[2].custom_ref)
    assert.same({ 'a' }, described.components[8].inputs[1].fields)
    assert.equal('direct', described.components[2].inputs[3].grouping)
  end)

  it('may use one component under several names', function()
    local t, b = streamlua.topology('t'), bolt()
    t:spout('s', spout())
    t:bolt('a', b):shuffle('s')
    t:bolt('b', b):shuffle('a')
    assert.same({}, t:validate())
  end)

  it('remembers the line of each declaration and of each input', function()
    local t = streamlua.topology('t')
    local at = line() + 1
    t:spout('s', spout())
    local declarer = t:bolt('b', bolt())
    declarer:shuffle('s')
    assert.equal(at - 1, t.line + 1)
    assert.equal(at, t.components[1].line)
    assert.equal(at + 1, t.components[2].line)
    assert.equal(at + 2, t.components[2].inputs[1].line)
  end)

  it('raises mistakes of the program at the line of the caller', function()
    local t = streamlua.topology('t')
    t:spout('s', spout())
    local rows = {
      { function() local x = streamlua.topology() return x end, 'the name must be a text' },
      { function() local x = streamlua.topology('t', 1) return x end, 'config must be a table' },
      { function() t:spout(1, spout()) end, 'spout: the name must be a text' },
      { function() t:spout('x', {}) end, "must be made by streamlua%.spout, got a table" },
      { function() t:spout('x', bolt()) end, 'this component is a bolt; use t:bolt' },
      { function() t:bolt('x', spout()) end, 'this component is a spout; use t:spout' },
      { function() t:bolt('x', bolt(), 3) end, 'options must be a table' },
      { function() t:bolt('x', bolt(), { paralelism = 2 }) end, "did you mean 'parallelism'" },
      { function() t:bolt('x', bolt(), { parallelism = '2' }) end, 'parallelism must be a number' },
      { function() t:bolt('x', bolt(), { config = 1 }) end, 'config must be a table' },
      { function() t.bolt('x', bolt()) end, 'call it as t:bolt' },
      { function() t:state_spout('x', spout()) end, 'reserved' },
      { function() t:bolt('y', bolt()):shuffle() end, 'the source must be the name' },
      { function() t:bolt('y', bolt()):shuffle('s', 1) end, 'the stream must be a name' },
      { function() t:bolt('y', bolt()):fields('s') end, 'fields must be a list' },
      { function() t:bolt('y', bolt()):fields('s', { 1 }) end, 'fields must be a list' },
      { function() t:bolt('y', bolt()):partial_key('s', 'word') end, 'fields must be a list' },
      { function() t:bolt('y', bolt()):custom('s', 'fn') end, 'must be a function' },
      { function() t:bolt('y', bolt()):shufle('s') end, "did you mean 'shuffle'" },
    }
    for i, row in ipairs(rows) do
      local text = raised(row[1])
      assert.truthy(text:find(row[2]), ('row %d: %s'):format(i, text))
    end
  end)
end)

describe('validation', function()
  it('finds unknown components, streams and fields at the line of the grouping', function()
    local t = streamlua.topology('t')
    t:spout('s', spout())
    local from = line()
    t:bolt('a', bolt()):shuffle('nobody')
    t:bolt('b', bolt()):shuffle('s', 'late')
    t:bolt('c', bolt()):fields('s', { 'word', 'count' })
    t:bolt('d', bolt())
      :fields('s', {})
    assert.same({ '1 error unknown-component', '2 error unknown-stream', '3 error unknown-field',
      '5 error no-fields' }, codes(t, from))
  end)

  it('finds duplicate names, fields and inputs', function()
    local t = streamlua.topology('t')
    local from = line()
    t:spout('s', spout({ 'a', 'b', 'a' }))
    t:spout('s', spout())
    t:bolt('b', bolt()):shuffle('s'):all('s')
    assert.same({ '1 error duplicate-field', '2 error duplicate-component',
      '3 error duplicate-input' }, codes(t, from))
  end)

  it('finds topologies without spouts, spouts with inputs and bolts without', function()
    local from = line()
    local t = streamlua.topology('t')
    assert.same({ '1 error no-spout' }, codes(t, from))
    t:spout('s', spout()):shuffle('b')
    t:bolt('b', bolt())
    assert.same({ '3 error spout-with-inputs', '4 error bolt-without-inputs' }, codes(t, from))
  end)

  it('finds parallelism that is no number of tasks', function()
    local t = streamlua.topology('t')
    for _, n in ipairs { 0, -1, 1.5, 1e9, 0 / 0, math.huge } do
      t:spout('s' .. #t.components, spout(), { parallelism = n })
    end
    local problems = t:validate()
    assert.equal(6, #problems)
    for _, p in ipairs(problems) do assert.equal('bad-parallelism', p.code) end
    assert.truthy(problems[5].message:find('is nan', 1, true))
  end)

  it('tells the problems of several files file by file, by line', function()
    local t = streamlua.topology('t')
    for i, at in ipairs { { 'a.lua', 5 }, { 'b.lua', 1 }, { 'a.lua', 3 } } do
      local text = ('\n'):rep(at[2] - 1) .. 'local t, s, i = ...; t:spout("s" .. i, s, { parallelism = 0 })'
      loadstring(text, '@' .. at[1])(t, spout(), i)
    end
    local places = {}
    for i, p in ipairs(t:validate()) do places[i] = ('%s:%d'):format(p.file, p.line) end
    assert.same({ 'a.lua:3', 'a.lua:5', 'b.lua:1' }, places)
  end)

  it('finds bad names', function()
    for _, name in ipairs { '__x', 'a/b', 'a\nb', 'a\0b', ('x'):rep(300), '', '.', '..' } do
      local t = streamlua.topology(name)
      t:spout(name, spout())
      local problems = t:validate()
      assert.equal(2, #problems)
      for _, p in ipairs(problems) do
        assert.equal('bad-name', p.code)
        assert.is_nil(p.message:find('[%c]'))
      end
    end
  end)

  it('finds direct groupings on other streams and other groupings on direct ones', function()
    local t = streamlua.topology('t')
    t:spout('s', streamlua.spout { fields = { 'a' }, next_tuple = nothing,
      streams = { d = { fields = { 'a' }, direct = true } } })
    local from = line()
    t:bolt('a', bolt()):direct('s', 'default')
    t:bolt('b', bolt()):shuffle('s', 'd')
    assert.same({ '1 error direct-mismatch', '2 error direct-mismatch' }, codes(t, from))
  end)

  it('finds parallelism above the key groups', function()
    local t = streamlua.topology('t', { key_groups = 2 })
    t:spout('s', spout(), { parallelism = 8 })
    local from = line()
    t:bolt('a', bolt(), { parallelism = 2 }):fields('s', { 'word' })
    t:bolt('b', bolt(), { parallelism = 3 }):fields('s', { 'word' })
    t:bolt('c', bolt(), { parallelism = 3 }):shuffle('s')
    assert.same({ '2 error bad-parallelism' }, codes(t, from))
    assert.equal(2, t:key_groups())
  end)

  it('finds resources that are no amounts', function()
    local t = streamlua.topology('t')
    local from = line()
    t:spout('a', spout(), { cpu = -1, ram = 'lots' })
    t:spout('b', spout(), { cpu = 0 / 0, disk = -5 })
    t:spout('c', spout(), { cpu = '1', ram = {} })
    t:spout('d', spout(), { cpu = 0, ram = 0, disk = 1.5 })
    assert.same({ '1 error bad-resource', '1 error bad-resource', '2 error bad-resource',
      '2 error bad-resource', '3 error bad-resource', '3 error bad-resource' }, codes(t, from))
    assert.equal(1, t:component('d').disk)
  end)

  it('warns of cycles and of bolts that nothing reaches', function()
    local t = streamlua.topology('t')
    t:spout('s', spout())
    local from = line()
    t:bolt('a', bolt()):shuffle('s'):shuffle('b')
    t:bolt('b', bolt()):shuffle('a')
    t:bolt('x', bolt()):shuffle('y')
    t:bolt('y', bolt()):shuffle('x')
    assert.same({ '1 warning cycle', '3 warning cycle', '3 warning unreachable',
      '4 warning unreachable' }, codes(t, from))
    local errors, warnings = topology.count(t:validate())
    assert.equal(0, errors)
    assert.equal(4, warnings)
  end)

  it('finds config that is no data, of the topology and of a component', function()
    local from = line() + 1
    local t = streamlua.topology('t', { callback = nothing, [1] = 'x' })
    t:spout('s', spout(), { config = { a = { b = io.stdout } } })
    assert.same({ '0 error bad-config', '0 error bad-config', '1 error bad-config' },
      codes(t, from))
    assert.truthy(t:validate()[3].message:find('a.b is a userdata', 1, true))
  end)

  it('warns at the line of the component that has a misspelt key', function()
    local t = streamlua.topology('t')
    local from = line()
    local b = streamlua.bolt { execute = nothing, prepair = nothing }
    t:spout('s', spout())
    t:bolt('b', b):shuffle('s')
    assert.same({ '1 warning misspelt' }, codes(t, from))
  end)
end)

describe('the system topology', function()
  local function example(config)
    local t = streamlua.topology('t', config)
    t:spout('spout', spout(), { parallelism = 2 })
    t:bolt('split', bolt(), { parallelism = 3 }):shuffle('spout')
    t:bolt('count', bolt(), { parallelism = 3 }):fields('split', { 'word' })
    return t
  end

  it('numbers bolts, __acker, __topology_master and then spouts', function()
    local system = assert(example({ ackers = 1 }):system())
    local ids = {}
    for i, c in ipairs(system.components) do
      ids[i] = ('%s %s+%d'):format(c.name, tostring(c.first_task), c.tasks)
    end
    assert.same({ 'spout 9+2', 'split 1+3', 'count 4+3', '__acker 7+1', '__topology_master 8+1',
      '__metrics nil+0', '__system nil+0' }, ids)
    assert.equal('system', system.components[4].kind)
  end)

  it('has no acker unless it is asked for, or when acking is off', function()
    local function has_acker(config)
      for _, c in ipairs(assert(example(config):system()).components) do
        if c.name == '__acker' then return true end
      end
      return false
    end
    assert.is_false(has_acker(nil))
    assert.is_false(has_acker({ ackers = 0 }))
    assert.is_true(has_acker({ ackers = 2 }))
    assert.is_false(has_acker({ ackers = 2, acking = false }))
  end)

  it('tells of a config that makes no sense', function()
    local system, err = example({ ackers = 1.5 }):system()
    assert.is_nil(system)
    assert.equal('EINVAL', err.code)
  end)
end)

describe('the definition as bytes', function()
  it('holds everything but the code', function()
    local t = streamlua.topology('t', { user = { list = { 1, 2 } }, flag = true, text = 'x' })
    t.script = 'topo.lua'
    t:spout('s', spout({ 'a', 'b' }), { parallelism = 3, cpu = 0.5, config = { deep = { 1 } } })
    t:bolt('b', bolt()):partial_key('s', { 'b', 'a' })
    local handle = assert(native.decode(assert(t:encode())))
    assert.is_true(native.equal(handle, t:native()))
    local plain = assert(native.describe(handle))
    assert.equal('t', plain.name)
    assert.same({ user = { list = { 1, 2 } }, flag = true, text = 'x' }, plain.config)
    local s = plain.components[1]
    assert.equal('topo.lua', s.script)
    assert.equal('s', s.code_name)
    assert.same({ deep = { 1 } }, s.config)
    assert.equal(0.5, s.cpu)
    assert.is_nil(s.ram)
    assert.same({ 'a', 'b' }, s.streams.default.fields)
    assert.same({ 'b', 'a' }, plain.components[2].inputs[1].fields)
    assert.equal(1, plain.components[2].rank)
  end)

  it('is refused when it is cut off', function()
    local t = streamlua.topology('t')
    t:spout('s', spout())
    local bytes = assert(t:encode())
    local handle, err = native.decode(bytes:sub(1, -2))
    assert.is_nil(handle)
    assert.equal('EPROTO', err.code)
  end)
end)

describe('key groups', function()
  it('start as contiguous ranges and move as little as possible', function()
    local owners = assert(native.assign_key_groups({ 1, 2 }, 8))
    assert.same({ 1, 1, 1, 1, 2, 2, 2, 2 }, owners)
    local after, moved = native.rebalance_key_groups(owners, { 1, 2, 3, 4 })
    assert.equal(4, moved)
    local counts = { 0, 0, 0, 0 }
    for _, task in ipairs(after) do counts[task] = counts[task] + 1 end
    assert.same({ 2, 2, 2, 2 }, counts)
    local none, err = native.assign_key_groups({ 1, 2, 3 }, 2)
    assert.is_nil(none)
    assert.equal('EINVAL', err.code)
  end)
end)
