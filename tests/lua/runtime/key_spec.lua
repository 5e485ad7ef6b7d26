-- labels: short
local key = require 'streamlua.runtime.key'
local value = require 'streamlua.runtime.value'

local group = key.key_group

describe('streamlua.runtime.key', function()
  it('puts the same key into the same group in every process', function()
    -- Pinned: a running plan depends on them.
    for _, row in ipairs({
      { 'word', 128, 101 }, { '', 128, 82 }, { 1, 128, 32 }, { 0.5, 128, 65 },
      { -1, 32768, 24772 },
    }) do
      assert.equal(row[3], group(row[1], row[2]))
    end
  end)

  it('takes numbers of equal value as one key', function()
    for _, m in ipairs({ 7, 128, 32768 }) do
      assert.equal(group(1, m), group(1LL, m))
      assert.equal(group(1, m), group(1ULL, m))
      assert.equal(group(0, m), group(-0.0, m))
      assert.equal(group(0 / 0, m), group(-(0 / 0), m))
      assert.equal(group(2 ^ 60, m), group(1152921504606846976LL, m))
      assert.equal(group(2 ^ 63, m), group(9223372036854775808ULL, m))
      assert.equal(group({ x = 1, 2 }, m), group({ 2LL, x = 1ULL }, m))
    end
  end)

  it('keeps different keys apart', function()
    local seen = {}
    for _, k in ipairs({ 1, '1', 2, true, false, value.null, '', 'nil', { 1, 2 }, { 2, 1 },
      { a = 1 }, { b = 1 }, { a = 1, b = 1 }, {}, 9007199254740993LL,
      9007199254740992LL }) do
      local at = tostring(key.hash(k))
      assert.is_nil(seen[at], tostring(k))
      seen[at] = true
    end
    assert.is_nil(seen[tostring(key.hash(nil))])
  end)

  it('hashes a list as the key of its fields', function()
    local folded = key.combine(key.combine(key.hash('a'), key.hash(7)), key.hash(true))
    assert.is_true(key.hash({ 'a', 7, true }) == folded)
    assert.is_true(key.hash({ 'a' }) == key.hash('a'))
  end)

  it('fills the groups evenly', function()
    local counts = {}
    for i = 1, 20000 do
      local g = group('user-' .. i, 100)
      counts[g] = (counts[g] or 0) + 1
    end
    for g = 0, 99 do assert.is_true(counts[g] > 120 and counts[g] < 280, g) end
  end)

  it('refuses what is no key and what is no count', function()
    assert.has_error(function() group(print, 8) end, 'key_group: function value can not be a key')
    for _, m in ipairs({ 0, -1, 1.5, 2 ^ 40, '8' }) do
      assert.has_error(function() group('a', m) end)
    end
    assert.has_error(function() group('a') end)
  end)
end)
