-- labels: short
local abi = require 'streamlua.abi'
local cjson = require 'cjson'
local value = require 'streamlua.runtime.value'
local ffi = abi.ffi

-- Constant garbage collection makes every round a hundred times slower.
local ROUNDS = os.getenv('SL_GC') == 'stress' and 100 or 3000

-- An upvalue that never changes is a constant to the compiler.
local CONSTANT = assert(value.encode({ a = 1, b = 'x' }))

local function round_trip(input)
  local bytes = assert(value.encode(input))
  return value.decode(bytes, #bytes)
end

local function nested(levels)
  local t = {}
  for _ = 2, levels do t = { t } end
  return t
end

describe('streamlua.runtime.value', function()
  it('gives back every simple value as it was', function()
    for _, v in ipairs({ true, false, 0, 1, -1.5, 1e308, math.huge, -math.huge, '', 'a',
      'any\0bytes\255', ('x'):rep(5000), value.null }) do
      assert.is_true(rawequal(v, round_trip(v)), tostring(v))
    end
    assert.is_nil(round_trip(nil))
  end)

  it('keeps the sign of zero and NaN in values', function()
    assert.equal(-math.huge, 1 / round_trip(-0.0))
    local nan = round_trip(0 / 0)
    assert.is_true(nan ~= nan)
  end)

  it('keeps the type and every bit of 64-bit integers', function()
    for _, v in ipairs({ 0LL, -1LL, 9223372036854775807LL, -9223372036854775807LL - 1LL }) do
      local back = round_trip(v)
      assert.is_true(ffi.istype('int64_t', back))
      assert.is_true(v == back)
    end
    for _, v in ipairs({ 0ULL, 18446744073709551615ULL }) do
      local back = round_trip(v)
      assert.is_true(ffi.istype('uint64_t', back))
      assert.is_true(v == back)
    end
  end)

  it('gives back tables of all shapes', function()
    for _, t in ipairs({
      {}, { 1, 2, 3 }, { { { 'deep' } } }, { a = 1, b = { c = false } }, { 'x', y = 'z' },
      { [0] = 'zero', 'one' }, { [1.5] = 1, [-3] = 2 }, { [true] = 1, [false] = 2 },
      { [value.null] = 'n', n = value.null }, { nil, 2 }, { 1, nil, 3, x = 1 },
    }) do
      assert.same(t, round_trip(t))
    end
    assert.is_true(round_trip({ { 5LL } })[1][1] == 5LL)
  end)

  it('gives equal content equal bytes in whatever order a table was filled', function()
    local up, down = {}, {}
    for i = 1, 50 do
      up['k' .. i], down['k' .. (51 - i)] = i, 51 - i
      up[i], down[51 - i] = i, 51 - i
      up[-i / 3], down[-(51 - i) / 3] = 0, 0
    end
    up[true], down[true] = 1, 1
    assert.equal(value.encode(up), value.encode(down))
    down.k7 = 8
    assert.is_not.equal(value.encode(up), value.encode(down))
  end)

  it('gives equal bytes to a list that was filled backwards', function()
    local backwards = {}
    for i = 20, 1, -1 do backwards[i] = i end
    local forwards = {}
    for i = 1, 20 do forwards[i] = i end
    assert.equal(value.encode(forwards), value.encode(backwards))
  end)

  it('encodes a table that appears twice twice', function()
    local shared = { 1 }
    assert.same({ { 1 }, { 1 } }, round_trip({ shared, shared }))
  end)

  it('does not let a metatable interfere', function()
    local guarded = setmetatable({ 1, 2 }, {
      __index = function() error('read through') end, __len = function() return 99 end })
    assert.same({ 1, 2 }, round_trip(guarded))
    guarded[4], guarded.x = 4, 5
    assert.equal(4, round_trip(guarded)[4])
  end)

  it('names what can not be a value', function()
    local loop = {}
    loop.a = { loop }
    for _, row in ipairs({
      { print, 'function value' },
      { coroutine.create(print), 'thread value' },
      { io.stdout, 'userdata value' },
      { ffi.new('int[2]'), 'cdata value' },
      { { a = { print } }, 'function value' },
      { { [print] = 1 }, 'function as a table key' },
      { { [{}] = 1 }, 'table as a table key' },
      { { [1LL] = 1 }, 'int64 as a table key' },
      { loop, 'cycle' },
      { nested(17), 'nesting deeper than 16' },
    }) do
      local bytes, problem = value.encode(row[1])
      assert.is_nil(bytes)
      assert.equal(row[2], problem)
    end
  end)

  it('accepts 16 levels, also after failures', function()
    value.encode(nested(30))
    assert.same(nested(16), round_trip(nested(16)))
  end)

  it('has a null that is the null of cjson and prints as null', function()
    assert.equal('null', tostring(value.null))
    assert.equal(cjson.null, value.null)
    assert.equal('[null]', cjson.encode({ value.null }))
    assert.is_true(rawequal(value.null, round_trip(cjson.decode('[null]'))[1]))
  end)

  it('has one key form for equal numbers', function()
    local function key(v)
      local bytes, length = value.encode_key(v)
      return ffi.string(bytes, length)
    end
    assert.equal(key(1), key(1LL))
    assert.equal(key(1), key(1ULL))
    assert.equal(key(0), key(-0.0))
    assert.equal(key(0 / 0), key(-(0 / 0)))
    assert.equal(key(2 ^ 60), key(1152921504606846976LL))
    assert.equal(key(2 ^ 60), key(1152921504606846976ULL))
    assert.equal(key(2 ^ 63), key(9223372036854775808ULL))
    assert.equal(key(-2 ^ 63), key(-9223372036854775807LL - 1LL))
    assert.equal(key(9007199254740993LL), key(9007199254740993ULL))
    assert.equal(key({ a = { 1 } }), key({ a = { 1LL } }))
    assert.is_not.equal(key(2 ^ 53), key(9007199254740993LL))
    assert.is_not.equal(key(2 ^ 63), key(9223372036854775807LL))
    assert.is_not.equal(key(2 ^ 64), key(18446744073709551615ULL))
    assert.is_not.equal(key(1), key('1'))
    assert.is_not.equal(key(0), key(false))
  end)

  it('refuses every prefix, foreign tags and bytes behind the value', function()
    local bytes = assert(value.encode({ 'a', { b = 1.5, c = { 1LL, true, value.null } }, '' }))
    for n = 0, #bytes - 1 do
      local back, problem = value.decode(bytes, n)
      assert.is_nil(back)
      assert.equal('malformed encoded value', problem)
    end
    assert.equal('1 bytes behind the encoded value', select(2, value.decode(bytes .. 'x', #bytes + 1)))
    assert.equal('malformed encoded value', select(2, value.decode('\10', 1)))
    -- A count that no memory could hold.
    assert.equal('malformed encoded value', select(2, value.decode('\8\255\255\255\255\0', 6)))
  end)

  it('decodes a constant in a compiled loop', function()
    -- The compiler of LuaJIT 2.1.0-beta3 lost the address of a constant string here.
    local decoded
    for _ = 1, 30 * ROUNDS do decoded = value.decode(CONSTANT, #CONSTANT) end
    assert.same({ a = 1, b = 'x' }, decoded)
  end)

  it('writes into memory of the caller when it fits', function()
    local room = ffi.new('uint8_t[16]')
    assert.equal(9, value.encode_to(room, 9, 5))
    assert.equal(5, value.decode(room, 9))
    assert.equal('no room', select(2, value.encode_to(room, 8, 5)))
    assert.equal('function value', select(2, value.encode_to(room, 16, print)))
  end)

  it('survives values of megabytes', function()
    local big = { ('x'):rep(3000000), ('y'):rep(100) }
    assert.same(big, round_trip(big))
    assert.equal('small', round_trip('small'))
  end)

  it('decodes what it encoded for thousands of random values', function()
    local state = 12345
    local function random(n)
      state = (state * 1103515245 + 12345) % 2147483648
      return math.floor(state / 65536) % n
    end
    local function make(depth)
      local kind = random(depth > 4 and 6 or 8)
      if kind == 0 then return random(2) == 0 end
      if kind == 1 then return random(1000) / 7 end
      if kind == 2 then return ('s'):rep(random(20)) end
      if kind == 3 then return value.null end
      if kind == 4 then return -random(9) end
      if kind == 5 then return string.char(random(256)) end
      local t = {}
      for i = 1, random(6) do
        t[kind == 6 and i or ('k' .. random(9))] = make(depth + 1)
      end
      return t
    end
    for _ = 1, ROUNDS do
      local input = make(0)
      assert.same(input, round_trip(input))
      assert.equal(value.encode(input), value.encode(round_trip(input)))
    end
  end)
end)
