local parallelism = require 'streamlua.cli.parallelism'

local components = { { name = 'foo', parallelism = 1 }, { name = 'bar', parallelism = 2 } }

local function parse(...)
  local list, err = parallelism.parse({ ... })
  if not list then
    return nil, err
  end
  local map = {}
  for _, entry in ipairs(list) do
    map[entry.name] = entry.value or ('%+d'):format(entry.delta)
  end
  return map
end

local function resolve(texts, options)
  return parallelism.resolve(assert(parallelism.parse(texts)), components, options)
end

describe('parsing --parallelism', function()
  it('G1 reads a comma list, with = and with :', function()
    assert.same({ foo = 1, bar = 2 }, parse('foo=1,bar=2'))
    assert.same({ foo = 1, bar = 2 }, parse('foo:1,bar:2'))
    assert.same({ foo = 1, bar = 2 }, parse('foo=1', 'bar=2'))
  end)

  it('G2 reads an empty text as no change and skips empty pieces', function()
    assert.same({}, parse(''))
    assert.same({ foo = 1 }, parse(',foo=1,,'))
  end)

  it('G3 refuses a piece without a number, with the expected form and the text', function()
    for _, text in ipairs({ 'foo=1,bar2', 'foo=', '=1', 'foo=1.5', 'foo=1e9', 'foo=x', 'foo=0x10',
        'foo=nan', 'foo= 1', 'foo=1=2', 'foo=++1' }) do
      local map, err = parse(text)
      assert.is_nil(map, text)
      assert.equal('usage', err.code)
      assert.truthy(err.message:find('COMPONENT=N', 1, true), text)
    end
    local _, err = parse('foo=1,bar2')
    assert.truthy(err.message:find("'bar2'", 1, true))
  end)

  it('G5 refuses one component with two values, and takes the same value twice', function()
    local map, err = parse('foo=1,foo=3')
    assert.is_nil(map)
    assert.equal('invalid', err.code)
    assert.truthy(err.message:find("'foo'", 1, true))
    assert.is_nil((parse('foo=1', 'foo=3')))
    assert.is_nil((parse('foo=+1', 'foo=+1')))
    assert.is_nil((parse('foo=2', 'foo=+1')))
    assert.same({ foo = 3 }, parse('foo=3,foo=3'))
  end)

  it('G6 refuses 0 and reads -1 as a delta', function()
    local map, err = parse('foo=0')
    assert.is_nil(map)
    assert.equal('invalid', err.code)
    assert.same({ foo = '-1', bar = '+2' }, parse('foo=-1,bar=+2'))
    -- In Heron's form, which has no deltas, it is a number below 1.
    for text, code in pairs({ ['foo:0'] = 'invalid', ['foo:-1'] = 'invalid', ['foo:+1'] = 'usage' }) do
      map, err = parse(text)
      assert.is_nil(map, text)
      assert.equal(code, err.code, text)
    end
  end)
end)

describe('the meaning of --parallelism', function()
  it('H1 gives the difference to the present number', function()
    local change = resolve({ 'foo=3' })
    assert.same({ foo = 2 }, change.deltas)
    assert.same({ 'foo' }, change.changed)
  end)

  it('H2 drops differences of zero', function()
    local change = resolve({ 'foo=1' })
    assert.same({}, change.deltas)
    assert.same({}, change.changed)
    assert.same({ foo = 1 }, change.parallelism)
  end)

  it('compares by value at every magnitude', function()
    local many = { { name = 'c', parallelism = 1000000 } }
    local change = parallelism.resolve(parallelism.parse('c=1000000'), many)
    assert.same({}, change.deltas)
  end)

  it('adds deltas to the present number', function()
    assert.same({ foo = 3, bar = 1 }, resolve({ 'foo=+2,bar=-1' }).parallelism)
  end)

  it('refuses a result below 1', function()
    local change, err = resolve({ 'bar=-2' })
    assert.is_nil(change)
    assert.equal('invalid', err.code)
    assert.truthy(err.message:find("'bar' has 2", 1, true))
  end)

  it('names the valid components when one is unknown', function()
    local change, err = resolve({ 'baz=2' })
    assert.is_nil(change)
    assert.equal('invalid', err.code)
    assert.equal("did you mean 'bar'?", err.hint)
    err = select(2, resolve({ 'quux=2' }))
    assert.equal('components: foo, bar', err.hint)
  end)

  it('needs force beyond ten times: 4 to 41 does, 4 to 40 does not', function()
    local four = { { name = 'bolt', parallelism = 4 } }
    local function grow(text, force)
      return parallelism.resolve(parallelism.parse(text), four, { guard = true, force = force })
    end
    assert.equal(40, grow('bolt=40').parallelism.bolt)
    local change, err = grow('bolt=41')
    assert.is_nil(change)
    assert.equal('invalid', err.code)
    assert.truthy(err.hint:find('--force', 1, true))
    assert.equal(41, grow('bolt=41', true).parallelism.bolt)
  end)
end)
