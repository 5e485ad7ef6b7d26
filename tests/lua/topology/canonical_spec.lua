local canonical = require 'streamlua.topology.canonical'

local function both_ways(value)
  local text = assert(canonical.encode(value))
  local back, message = canonical.decode(text)
  assert.is_nil(message)
  assert.same(value, back)
  return text
end

describe('canonical text', function()
  it('keeps scalars', function()
    for _, value in ipairs { 0, 1, -1, 0.1, 1e300, -2.5e-10, 2 ^ 53, 2 ^ 60, 1e15, math.huge,
      -math.huge, true, false, '', 'x', 'a"b\\c', '\0\1\31\127\128\255', 'caf\195\169', '\n' } do
      both_ways(value)
    end
    local nan = canonical.decode(assert(canonical.encode(0 / 0)))
    assert.is_true(nan ~= nan)
    assert.is_nil(canonical.decode(assert(canonical.encode(nil))))
  end)

  it('keeps 64-bit integers', function()
    for _, value in ipairs { 1LL, -9223372036854775807LL, 18446744073709551615ULL } do
      local back = canonical.decode(assert(canonical.encode(value)))
      assert.is_true(back == value)
      assert.equal('cdata', type(back))
    end
  end)

  it('keeps lists, maps and maps with other keys', function()
    assert.equal('[1,"a",[true]]', both_ways({ 1, 'a', { true } }))
    assert.equal('{"a":1,"b":{"c":[]}}', (both_ways({ b = { c = {} }, a = 1 }):gsub('{}', '[]')))
    both_ways({ [1] = 'x', [3] = 'y', z = 1, [true] = 2, [1.5] = 3 })
    assert.equal('{}', both_ways({}))
  end)

  it('does not depend on the order in which a table was filled', function()
    local a, b = {}, {}
    for i = 1, 50 do a['k' .. i] = i end
    for i = 50, 1, -1 do b['k' .. i] = i end
    assert.equal(canonical.encode(a), canonical.encode(b))
  end)

  it('says what is no data and where it is', function()
    local deep = {}
    for _ = 1, 17 do deep = { deep } end
    local cycle = {}
    cycle.cycle = cycle
    local rows = {
      { print, 'the value is a function' },
      { { user = { callback = print } }, 'user.callback is a function' },
      { { list = { 1, io.stdout } }, 'list[2] is a userdata' },
      { { [{}] = 1 }, 'a table as a key' },
      { setmetatable({}, {}), 'a metatable' },
      { deep, 'deeper than 16 levels' },
      { cycle, 'deeper than 16 levels' },
    }
    for _, row in ipairs(rows) do
      local text, message = canonical.encode(row[1])
      assert.is_nil(text)
      assert.truthy(message:find(row[2], 1, true), message)
    end
  end)

  it('refuses text that is not canonical', function()
    for _, text in ipairs { '', '[', '{', '[1', '{"a"', '{"a":}', '{"a":1', '"x', '"\\q"', 'nil',
      '1 ', '1,2', '[1,]', '{null:1}', 'LL', '1LLL', '--1', '0x', ('['):rep(20),
      'os.exit()', '99999999999999999999999LL' } do
      local value, message = canonical.decode(text)
      assert.is_nil(value, text)
      assert.truthy(message, text)
    end
  end)
end)
