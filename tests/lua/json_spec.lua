local ffi = require 'ffi'
local json = require 'streamlua.json'

describe('streamlua.json.decode', function()
  it('reads every kind of value', function()
    local value = assert(json.decode('{"a":[1,-2.5,1e3,true,false,null,"x"],"b":{"c":{}}}'))
    assert.same({ 1, -2.5, 1000, true, false, json.null, 'x' }, value.a)
    assert.same({ c = {} }, value.b)
    assert.equal('text', json.decode('"text"'))
    assert.equal(12, json.decode(' 12 '))
    assert.equal(json.null, json.decode('null'))
    assert.is_false(json.decode('false'))
  end)

  it('keeps all digits of integers beyond 2^53', function()
    local value = assert(json.decode('[9007199254740993,-9223372036854775808,'
      .. '18446744073709551615,9223372036854775807,9007199254740992,1234567890123456.5]'))
    assert.is_true(value[1] == 9007199254740993LL)
    assert.is_true(ffi.istype('int64_t', value[1]))
    assert.is_true(value[2] == -9223372036854775807LL - 1)
    assert.is_true(ffi.istype('uint64_t', value[3]))
    assert.is_true(value[3] == 18446744073709551615ULL)
    assert.is_true(ffi.istype('int64_t', value[4]))
    assert.equal('number', type(value[5]))
    assert.equal(1234567890123456.5, value[6])
    assert.equal(1e30, json.decode('1000000000000000000000000000000'))
  end)

  it('sees a long integer wherever it stands', function()
    for before = 0, 40 do
      local text = '["' .. ('x'):rep(before) .. '",9007199254740993]'
      assert.is_true(json.decode(text)[2] == 9007199254740993LL)
      text = '[' .. (' '):rep(before) .. '1234567890123456789]'
      assert.is_true(json.decode(text)[1] == 1234567890123456789LL)
    end
    assert.is_true(json.decode('9007199254740993') == 9007199254740993LL)
    assert.is_true(json.decode('-9007199254740993 ') == -9007199254740993LL)
  end)

  it('keeps empty arrays apart from empty objects', function()
    local value = assert(json.decode('{"list":[ ],"map":{}}'))
    assert.is_true(json.is_array(value.list))
    assert.is_false(json.is_array(value.map))
    assert.equal('{"list":[],"map":{}}', json.encode(value))
  end)

  it('reads escapes and surrogate pairs the same by both ways', function()
    local text = '"a\\u00e9\\ud83d\\ude00\\n\\"\\\\\\/"'
    assert.equal('a\195\169\240\159\152\128\n"\\/', json.decode(text))
    assert.same({ 'a\195\169\240\159\152\128\n"\\/', json.array() },
      json.decode('[' .. text .. ',[]]'))
  end)

  it('says what is wrong and where', function()
    local cases = {
      { '{"a":1', "expected ',' or '}' at character 7 (line 1)" },
      { '[1,\n2,\nx]', "unexpected 'x' at character 8 (line 3)" },
      { '', 'unexpected end of the text' },
      { '[1,]', "unexpected ']'" },
      { '{a:1}', 'expected a string as key' },
      { '{"a" 1}', "expected ':'" },
      { '"abc', 'string without an end' },
      { '"\\x"', 'unknown escape' },
      { '"\\ud800"', 'half of a surrogate pair' },
      { '"\\u12"', 'bad unicode escape' },
      { '1 2', 'text behind the document' },
      { '01', 'bad number' },
      { '0x10', 'bad number' },
      { 'NaN', "unexpected 'N'" },
      { '-Infinity', 'bad number' },
      { 'nul', "unexpected 'n'" },
    }
    for _, case in ipairs(cases) do
      local value, message = json.decode(case[1])
      assert.is_nil(value, case[1])
      assert.truthy(message:find('invalid JSON', 1, true), case[1])
      assert.truthy(message:find(case[2], 1, true), case[1] .. ' -> ' .. message)
    end
    local _, message = json.decode(12)
    assert.equal('invalid JSON: expected a string, got number', message)
  end)

  it('refuses nesting beyond the limit, and takes the limit itself', function()
    local function nested(depth)
      return ('['):rep(depth) .. '1' .. (']'):rep(depth)
    end
    assert.truthy(json.decode(nested(json.MAX_DEPTH)))
    local value, message = json.decode(nested(json.MAX_DEPTH + 1))
    assert.is_nil(value)
    assert.truthy(message:find('nested too deeply', 1, true))
    assert.truthy(json.decode(nested(3), { max_depth = 3 }))
    assert.is_nil((json.decode(nested(4), { max_depth = 3 })))
    assert.is_nil((json.decode(('['):rep(1000000))))
  end)
end)

describe('streamlua.json.encode', function()
  it('writes keys in an order that is asked for, in all levels, and others sorted behind', function()
    local order = { 'name', 'list', list = { 'b', 'a' }, map = { ['*'] = { 'z', 'y' } } }
    assert.equal('{"name":1,"list":[{"b":1,"a":2},{"b":3}],"map":{"p":{"z":1,"y":2}},"x":0}',
      json.encode({ x = 0, map = { p = { y = 2, z = 1 } }, list = { { a = 2, b = 1 }, { b = 3 } },
        name = 1 }, { order = order }))
  end)

  it('writes every kind of value, keys sorted', function()
    assert.equal('{"a":[1,2.5,true,null],"b":{"x":"y"},"c":null}',
      json.encode({ b = { x = 'y' }, a = { 1, 2.5, true, json.null }, c = json.null }))
    assert.equal('null', json.encode(nil))
    assert.equal('"x"', json.encode('x'))
  end)

  it('writes numbers so that they read back equal', function()
    assert.equal('0.1', json.encode(0.1))
    assert.equal('6', json.encode(6.0))
    assert.equal('100000000000000', json.encode(1e14))
    assert.equal('0', json.encode(0 * -1))
    for _, number in ipairs({ 1 / 3, 1e300, -1e-300, 2 ^ 53, 123456789.123456789 }) do
      assert.equal(number, tonumber(json.encode(number)))
    end
    assert.equal('9007199254740993', json.encode(9007199254740993LL))
    assert.equal('18446744073709551615', json.encode(18446744073709551615ULL))
    assert.equal('-9223372036854775808', json.encode(-9223372036854775807LL - 1))
  end)

  it('writes marked tables as they are marked', function()
    assert.equal('[]', json.encode(json.array()))
    assert.equal('{}', json.encode({}))
    assert.equal('{"1":"a","2":"b"}', json.encode(json.object({ 'a', 'b' })))
  end)

  it('escapes what must be escaped and repairs what is no UTF-8', function()
    assert.equal('"\\u0000\\n\\"\\\\\\u007f"', json.encode('\0\n"\\\127'))
    assert.equal('"\195\169\226\130\172\240\159\152\128"', json.encode('é€😀'))
    assert.equal('"a\239\191\189b\239\191\189"', json.encode('a\255b\195'))
    assert.equal('"\239\191\189\239\191\189\239\191\189"', json.encode('\237\160\128'))
    assert.equal('"\239\191\189\239\191\189"', json.encode('\192\128'))
  end)

  it('refuses what JSON can not say', function()
    local loop = {}
    loop.loop = loop
    for _, value in ipairs({ 0 / 0, math.huge, print, loop, io.stdout, ffi.new('int[2]'),
        { [1] = 1, [100] = 2 } }) do
      local text, message = json.encode(value)
      assert.is_nil(text)
      assert.equal('string', type(message))
    end
    assert.is_nil((json.encode({ [true] = 1 })))
  end)

  it('gives back what it decoded', function()
    for _, text in ipairs({ '[]', '{}', '[[],{}]', '{"a":[1,2,{"b":null}]}', '[1.5,"\\u0001"]',
        '[18446744073709551615,-9007199254740993]' }) do
      assert.equal(text, json.encode(assert(json.decode(text))))
    end
  end)
end)
