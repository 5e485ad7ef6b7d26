-- labels: short
local abi = require 'streamlua.abi'
local key = require 'streamlua.runtime.key'
local state = require 'streamlua.runtime.state'
local value = require 'streamlua.runtime.value'
local ffi = abi.ffi

local function new(options)
  options = options or {}
  options.name = options.name or 'test'
  return assert(state.new(options))
end

local function collect(s)
  local found, count = {}, 0
  for k, v in s:each() do
    found[k] = v
    count = count + 1
  end
  return found, count
end

-- Constant garbage collection makes everything a hundred times slower.
local is_slow = os.getenv('SL_GC') == 'stress'

describe('streamlua.runtime.state', function()
  it('gives nil for what was never put', function()
    local s = new()
    for _, k in ipairs({ 1, 'a', true, value.null, { 1 }, 1LL }) do assert.is_nil(s:get(k)) end
    assert.is_nil(s:get(nil))
    assert.equal(0, s:size())
    assert.is_false(s:remove('a'))
  end)

  it('keeps every kind of value under every kind of key', function()
    local keys = { 1, -0.5, 'a', '', ('k'):rep(100), 'any\0bytes', true, false, value.null, { 1, 'x' },
      { a = { b = 1 } }, 9007199254740993LL, 18446744073709551615ULL }
    local values = { 1, 'short', ('long'):rep(50), '', true, false, value.null, { 1, { 2 } }, {} }
    for _, v in ipairs(values) do
      local s = new()
      for _, k in ipairs(keys) do s:put(k, v) end
      s:put(nil, v)
      assert.equal(#keys + 1, s:size())
      for _, k in ipairs(keys) do assert.same(v, s:get(k)) end
      assert.same(v, s:get(nil))
      for _, k in ipairs(keys) do assert.is_true(s:remove(k)) end
      assert.is_true(s:remove(nil))
      assert.equal(0, s:size())
    end
  end)

  it('keeps 64-bit integers as they are', function()
    local s = new()
    s:put('i', -5LL)
    s:put('u', 18446744073709551615ULL)
    assert.is_true(ffi.istype('int64_t', s:get('i')) and s:get('i') == -5LL)
    assert.is_true(ffi.istype('uint64_t', s:get('u')) and s:get('u') == 18446744073709551615ULL)
  end)

  it('takes equal numbers as one key', function()
    local s = new()
    for _, row in ipairs({ { 1, 1LL, 1ULL }, { 0, -0.0, 0LL }, { 2 ^ 60, 1152921504606846976LL },
      { 2 ^ 63, 9223372036854775808ULL }, { 0 / 0, -(0 / 0) } }) do
      s:clear()
      for i, k in ipairs(row) do assert.equal(i, s:add(k, 1)) end
      assert.equal(1, s:size())
    end
    s:clear()
    s:put({ x = 1, 2 }, 'first')
    assert.equal('first', s:get({ 2LL, x = 1ULL }))
  end)

  it('copies tables in and out', function()
    local s, t = new(), { 1, inner = { 'a' } }
    s:put('t', t)
    t.inner[1] = 'changed'
    assert.equal('a', s:get('t').inner[1])
    s:get('t').inner[1] = 'changed'
    assert.equal('a', s:get('t').inner[1])
  end)

  it('adds, starting from nothing, and returns the sum', function()
    local s = new()
    assert.equal(2, s:add('a', 2))
    assert.equal(1.5, s:add('a', -0.5))
    assert.equal(3, s:add('a', 1.5))
    assert.equal(7, s:add({ 'table' }, 7))
    assert.equal(9, s:add(nil, 9))
    assert.equal(10, s:add('a', 7LL))
    s:put('i', 5LL)
    assert.is_true(s:add('i', 2) == 7LL)
  end)

  it('raises when there is nothing to add to or nothing to add', function()
    local s = new({ name = 'counts' })
    s:put('s', 'text')
    assert.has_error(function() s:add('s', 1) end,
      "state 'counts': add: can not add to a value that is a string")
    assert.has_error(function() s:add('n', '1') end,
      "state 'counts': add: expected a number, got string")
    assert.has_error(function() s:add('n') end,
      "state 'counts': add: expected a number, got nil")
    assert.equal('text', s:get('s'))
  end)

  it('removes a key when nil is put', function()
    local s = new()
    s:put('a', 1)
    s:put('a', nil)
    s:put('b', nil)
    assert.equal(0, s:size())
    assert.is_nil(s:get('a'))
  end)

  it('names what can be neither key nor value, at the place of the call', function()
    local s = new({ name = 'n' })
    local ok, message = pcall(function() s:put('k', { print }) end)
    assert.is_false(ok)
    assert.matches("state_spec%.lua:%d+: state 'n': put: function value can not be stored", message)
    for _, call in ipairs({
      function() s:get(print) end, function() s:put(print, 1) end, function() s:put(print, {}) end,
      function() s:add(print, 1) end, function() s:remove(print) end,
    }) do
      ok, message = pcall(call)
      assert.is_false(ok)
      assert.matches("state_spec%.lua:%d+: state 'n': %a+: function value can not be a key", message)
    end
    assert.equal(0, s:size())
  end)

  it('iterates over everything once', function()
    local s, expected = new(), {}
    for i = 1, 500 do
      s:put(i, i * 2)
      s:put('k' .. i, 'v' .. i)
      expected[i], expected['k' .. i] = i * 2, 'v' .. i
    end
    local found, count = collect(s)
    assert.same(expected, found)
    assert.equal(1000, count)
  end)

  it('does not end at the key nil', function()
    local s = new()
    for i = 1, 50 do s:put(i, i) end
    s:put(nil, 'nothing')
    local found, count = collect(s)
    assert.equal(51, count)
    assert.equal('nothing', found[value.null])
  end)

  it('lets the loop remove what it is given and put what is there', function()
    local s = new({ key_groups = 3 })
    for i = 1, 3000 do s:put(i, i) end
    local visits = 0
    for k, v in s:each() do
      visits = visits + 1
      if k % 2 == 0 then s:remove(k) else s:put(k, v + 1) end
    end
    assert.equal(3000, visits)
    assert.equal(1500, s:size())
    for i = 1, 3000, 2 do assert.equal(i + 1, s:get(i)) end
  end)

  it('iterates twice at the same time', function()
    local s = new()
    for i = 1, 5 do s:put(i, i) end
    local pairs_seen = 0
    for _ in s:each() do
      for _ in s:each() do pairs_seen = pairs_seen + 1 end
    end
    assert.equal(25, pairs_seen)
  end)

  it('follows a plain table through thousands of steps', function()
    local s, model = new({ key_groups = 5 }), {}
    local seed = 7
    local function random(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return math.floor(seed / 65536) % n
    end
    for step = 1, is_slow and 2000 or 20000 do
      local k = random(2) == 0 and random(200) or 'key' .. ('x'):rep(random(12)) .. random(20)
      local action = random(4)
      if action == 0 then
        s:put(k, step)
        model[k] = step
      elseif action == 1 then
        assert.equal(model[k] ~= nil, s:remove(k))
        model[k] = nil
      elseif action == 2 then
        model[k] = (model[k] or 0) + 3
        assert.equal(model[k], s:add(k, 3))
      else
        assert.equal(model[k], s:get(k))
      end
    end
    assert.same(model, (collect(s)))
  end)

  it('raises at its limit and stays as it was', function()
    local s = new({ name = 'small', limit_bytes = 20000 })
    local count = 0
    local ok, message
    repeat
      count = count + 1
      ok, message = pcall(s.put, s, 'key number ' .. count, ('v'):rep(200))
    until not ok
    assert.matches("state 'small': put: keyed state would take %d+ bytes, its limit is 20000", message)
    assert.equal(count - 1, s:size())
    assert.is_true(s:memory() <= 20000)
    assert.is_nil(s:get('key number ' .. count))
    s:clear()
    s:put('a', 1)
    assert.equal(1, s:get('a'))
  end)

  it('refuses impossible numbers of key groups', function()
    local s, failure = state.new({ key_groups = 0 })
    assert.is_nil(s)
    assert.equal('EINVAL', failure.code)
  end)

  it('moves key groups to another state and back without loss', function()
    local a, b = new({ key_groups = 8 }), new({ key_groups = 8 })
    local keys = { true, value.null, 'word', ('long'):rep(20), 3, 2.5, { 'x', 1 } }
    for i = 1, 300 do keys[#keys + 1] = 'k' .. i end
    for i, k in ipairs(keys) do a:put(k, { i, 'value' }) end
    local moved = {}
    local entries = 0
    for group = 0, 3 do
      local bytes, summary = assert(a:export_group(group))
      moved[#moved + 1] = bytes
      entries = entries + summary.entries
      a:clear_group(group)
    end
    assert.equal(#keys, entries + a:size())
    assert.equal(entries, assert(b:import(table.concat(moved))).entries)
    for i, k in ipairs(keys) do
      local owner = key.key_group(k, 8) < 4 and b or a
      local other = owner == a and b or a
      assert.same({ i, 'value' }, owner:get(k))
      assert.is_nil(other:get(k))
    end
    local bytes, before = assert(b:export_group(2))
    local c = new({ key_groups = 8 })
    assert.same(before, c:import(bytes))
  end)

  it('refuses malformed exports and groups that do not exist', function()
    local s = new({ key_groups = 2 })
    s:put('a', 1)
    local bytes = s:export_group(key.key_group('a', 2))
    local empty = new({ key_groups = 2 })
    for n = 1, #bytes - 1 do
      local _, failure = empty:import(bytes:sub(1, n))
      assert.equal('EPROTO', failure.code)
    end
    assert.equal(0, empty:size())
    assert.equal('EINVAL', select(2, s:export_group(2)).code)
  end)

  it('gives its memory back when it is collected', function()
    for _ = 1, 200 do
      local s = new()
      for i = 1, 100 do s:put(i, ('x'):rep(1000)) end
    end
    collectgarbage()
    collectgarbage()
  end)

  it('finds keys that are used over and over, whatever happened to them meanwhile', function()
    local rounds = is_slow and 3000 or 60000
    local s = new({ key_groups = 4 })
    local twin = state.wrap(s.handle, 'twin')
    local model, seed = {}, 99
    local function random(n)
      seed = (seed * 48271) % 2147483647
      return seed % n
    end
    for i = 1, rounds do
      local k = 'key ' .. random(300)
      local who = random(2) == 0 and s or twin
      local act = random(2000)
      if act == 0 then
        assert.equal(model[k] ~= nil, who:remove(k))
        model[k] = nil
      elseif act == 1 then
        who:put(k, 'text')
        model[k] = 'text'
      elseif act == 2 and i % 7 == 0 then
        who:clear()
        model = {}
      elseif act < 500 then
        assert.equal(model[k], who:get(k))
      elseif act < 800 or type(model[k]) == 'string' then
        who:put(k, i)
        model[k] = i
      else
        model[k] = (model[k] or 0) + act
        assert.equal(model[k], who:add(k, act))
      end
    end
    for k, v in s:each() do
      assert.equal(model[k], v)
      model[k] = nil
    end
    assert.is_nil(next(model))
  end)

  it('stays exact with more keys than it can remember', function()
    local s = new()
    local keys = is_slow and 1000 or 20000
    for round = 1, 8 do
      for i = 1, keys do assert(s:add('key ' .. i, 1) == round) end
    end
    assert.equal(keys, s:size())
  end)
end)
