local streaming = require 'streamlua.streaming'
local testing = require 'streamlua.testing'
local helper = require 'lua.streaming.helper'

local add, subtract = helper.add, helper.subtract
local SIX = helper.batches('0 / 1 / 2 / 3 / 4 / 5')

local function check(expected, out)
  assert.same(helper.expected(expected), helper.texts(out))
end

-- Pairs "x:1,y:2 / {}".
local function pairs_of(text)
  local lists = helper.batches(text)
  for _, list in ipairs(lists) do
    for i, word in ipairs(list) do
      local key, value = word:match('^(.-):(.*)$')
      list[i] = { key, tonumber(value) }
    end
  end
  return lists
end

local BIG = helper.batches('a / a,b / a,b,c / a,b / a / {} / a / a,b / a,b,c / a,b / a / {}')
for _, list in ipairs(BIG) do
  for i, word in ipairs(list) do list[i] = { word, 1 } end
end

describe('windows', function()
  local folder
  before_each(function() folder = helper.folder() end)
  after_each(helper.clean)

  local function run(lists, operation, batches)
    return (testing.streams(lists, operation, { batches = batches, context = { checkpoint = folder .. '/c' } }))
  end

  local function windowed(window, slide, batches)
    return run(SIX, function(s) return s:window(window, slide) end, batches)
  end

  it('T35: 2 s every 1 s', function() check('0 / 0 1 / 1 2 / 2 3 / 3 4 / 4 5', windowed('2s', '1s')) end)
  it('T36: 2 s every 2 s', function() check('0 1 / 2 3 / 4 5', windowed('2s', '2s')) end)
  it('T37: 4 s every 2 s', function() check('0 1 / 0 1 2 3 / 2 3 4 5 / 4 5', windowed('4s', '2s', 8)) end)
  it('T39: 1 s every 3 s leaves gaps', function() check('2 / 5', windowed('1s', '3s')) end)
  it('T40: 3 s every 2 s', function() check('0 1 / 1 2 3 / 3 4 5 / 5', windowed('3s', '2s', 8)) end)
  it('the slide is the stream\'s when it is missing', function()
    check('0 / 0 1 / 1 2 / 2 3 / 3 4 / 4 5', windowed('2s'))
  end)

  local function reduced(lists, window, slide, inverse, options, batches)
    return run(lists, function(s)
      if inverse then return s:reduce_by_key_and_window(add, subtract, window, slide, options) end
      return s:reduce_by_key_and_window(add, window, slide)
    end, batches)
  end

  for _, inverse in ipairs({ false, true }) do
    local form = inverse and 'with inverse' or 'without inverse'
    it('T41: one batch, ' .. form, function()
      check('a:4', reduced(pairs_of('a:1,a:3'), '2s', '1s', inverse))
    end)
    it('T42: two batches, ' .. form, function()
      check('a:1 / a:2', reduced(pairs_of('a:1 / a:1'), '2s', '1s', inverse))
    end)
  end

  it('T44: keys leave without inverse', function()
    check('a:1 / a:2 / a:1 / {}', reduced(pairs_of('a:1 / a:1 / {} / {}'), '2s', '1s', false))
  end)
  it('T45: keys stay with inverse and without filter', function()
    check('a:1 / a:2 / a:1 / a:0', reduced(pairs_of('a:1 / a:1 / {} / {}'), '2s', '1s', true))
  end)

  local T47 = 'a:1 / a:2 b:1 / a:2 b:2 c:1 / a:2 b:2 c:1 / a:2 b:1 / a:1 / '
    .. 'a:1 / a:2 b:1 / a:2 b:2 c:1 / a:2 b:2 c:1 / a:2 b:1 / a:1'
  it('T47: BIG without inverse', function() check(T47, reduced(BIG, '2s', '1s', false)) end)
  it('T48: BIG with inverse, no filter', function()
    check('a:1 / a:2 b:1 / a:2 b:2 c:1 / a:2 b:2 c:1 / a:2 b:1 c:0 / a:1 b:0 c:0 / a:1 b:0 c:0 / '
      .. 'a:2 b:1 c:0 / a:2 b:2 c:1 / a:2 b:2 c:1 / a:2 b:1 c:0 / a:1 b:0 c:0',
      reduced(BIG, '2s', '1s', true))
  end)
  it('T49: BIG with inverse and filter', function()
    check(T47, reduced(BIG, '2s', '1s', true, { filter = function(pair) return pair[2] ~= 0 end }))
  end)
  it('drop_empty lets keys leave without a filter', function()
    check(T47, reduced(BIG, '2s', '1s', true, { drop_empty = true }))
  end)

  it('T51: count_by_window', function()
    check('1 / 2 / 3 / 3 / 1 / 0', run(helper.batches('1 / 2 / 1,2 / 0 / {} / {}'), function(s)
      return s:count_by_window('2s', '1s')
    end))
  end)
  it('count_by_window is empty before the first record', function()
    check('{} / 1 / 1', run(helper.batches('{} / 1 / {}'), function(s)
      return s:count_by_window('2s', '1s')
    end))
  end)
  it('count_by_value_and_window drops what is not there any more', function()
    check('a:1 / a:1 b:1 / b:1 / {}', run(helper.batches('a / b / {} / {}'), function(s)
      return s:count_by_value_and_window('2s', '1s')
    end))
  end)
  it('group_by_key_and_window joins the lists', function()
    check('a:[1] / a:[1,2] b:[3] / a:[2] b:[3]',
      run(pairs_of('a:1 / a:2,b:3 / {}'), function(s) return s:group_by_key_and_window('2s', '1s') end))
  end)
  it('reduce_by_window in both forms', function()
    check('1 / 3 / 5 / 3', run({ { 1 }, { 2 }, { 3 }, {} }, function(s)
      return s:reduce_by_window(add, '2s', '1s')
    end))
    check('1 / 3 / 5 / 3 / 0', run({ { 1 }, { 2 }, { 3 }, {}, {} }, function(s)
      return s:reduce_by_window(add, subtract, '2s', '1s')
    end))
  end)

  it('T53: persisting a window persists its parent', function()
    local ssc = streaming.context { name = 'p', batch = '1s', clock = streaming.manual_clock(0) }
    local source = ssc:queue_stream({})
    local window = source:window('2s', '1s')
    assert.equal('memory_serialized', source.storage_level)
    assert.is_nil(window.storage_level)
    window:persist('memory')
    assert.equal('memory', source.storage_level)
    assert.is_nil(window.storage_level)
  end)

  it('T54: a window must be a multiple of the interval of its stream', function()
    local ssc = streaming.context { name = 'p', batch = '1s', clock = streaming.manual_clock(0) }
    local source = ssc:queue_stream({})
    local ok, message = pcall(function() return source:window('1500ms') end)
    assert.is_false(ok)
    assert.matches('window_spec.lua:%d+: window: the window of 1500 ms is no multiple of 1000 ms', message)
    assert.has_error(function() source:window('2s', '1500ms') end)
  end)

  it('T55: nested windows remember as long as needed', function()
    local lists = {}
    for i = 1, 10 do lists[i] = { i } end
    local map, inner, outer
    local out, ssc = testing.streams(lists, function(s, context)
      context:remember('3s')
      map = s:map(function(x) return x + 1 end)
      inner = map:window('2s', '1s')
      outer = inner:window('4s', '2s')
      return outer
    end)
    assert.equal(5, #out)
    assert.equal(3000, outer:remember_ms())
    assert.equal(7000, inner:remember_ms())
    assert.equal(9000, map:remember_ms())
    local function has(stream, time)
      for _, at in ipairs(stream:remembered()) do
        if at == time then return true end
      end
      return false
    end
    assert.is_true(has(outer, 10000) and has(outer, 8000) and not has(outer, 6000))
    assert.is_true(has(inner, 4000) and not has(inner, 3000))
    assert.is_true(has(map, 2000) and not has(map, 1000))
    assert.equal('STOPPED', ssc:state())
  end)

  it('T153: a slide longer than the window leaves the gap out, in both forms', function()
    local lists = 'x:1 / y:2 / x:3 / {} / x:1 / y:1'
    check('x:3 y:2 / x:1 y:1', reduced(pairs_of(lists), '2s', '3s', true))
    check('x:3 y:2 / x:1 y:1', reduced(pairs_of(lists), '2s', '3s', false))
  end)

  it('T155: a filter acts on the output, not on what is kept', function()
    check('x:1 / {} / {} / x:-1 / {}', reduced(pairs_of('x:1 / x:-1 / {} / {} / {}'), '3s', '1s', true,
      { filter = function(pair) return pair[2] ~= 0 end }))
  end)

  it('the form with filter agrees with the one without inverse on random batches', function()
    math.randomseed(11)
    for _ = 1, 10 do
      local lists = {}
      for i = 1, 12 do
        lists[i] = {}
        for j = 1, math.random(0, 4) do
          lists[i][j] = { string.char(96 + math.random(1, 4)), math.random(1, 3) }
        end
      end
      local window, slide = math.random(1, 5), math.random(1, 4)
      local function both(s)
        return s:reduce_by_key_and_window(add, window, slide),
          s:reduce_by_key_and_window(add, subtract, window, slide,
            { filter = function(pair) return pair[2] ~= 0 end })
      end
      local plain, incremental = testing.streams(lists, both, { context = { checkpoint = folder .. '/r' } })
      assert.same(helper.texts(plain), helper.texts(incremental))
    end
  end)

  it('B13: keys without records leave the table with a filter', function()
    local lists = { {} }
    for i = 1, 10000 do lists[1][i] = { 'k' .. i, 1 } end
    local window
    testing.streams(lists, function(s)
      window = s:reduce_by_key_and_window(add, subtract, '2s', '1s',
        { filter = function(pair) return pair[2] ~= 0 end })
      return window
    end, { batches = 5, context = { checkpoint = folder .. '/c' } })
    local total = 0
    for _, size in ipairs(window.tables.sizes) do total = total + size end
    assert.equal(0, total)
  end)

  it('B13: without a filter the user is told that they stay', function()
    local lists, warnings = { {} }, {}
    for i = 1, 10000 do lists[1][i] = { 'k' .. i, 1 } end
    testing.streams(lists, function(s, ssc)
      ssc.warner = function(text) warnings[#warnings + 1] = text end
      return s:reduce_by_key_and_window(add, subtract, '2s', '1s')
    end, { batches = 4, context = { checkpoint = folder .. '/c' } })
    assert.equal(1, #warnings)
    assert.matches('keeps 10000 keys, also those without records', warnings[1])
  end)
end)
