local streaming = require 'streamlua.streaming'
local helper = require 'lua.streaming.helper'
local show = require 'streamlua.streaming.show'

-- Runs batches of a queue with an output operation; what print wrote.
local function run(batches, declare)
  local ssc = streaming.context { name = 'o', batch = '1s', clock = streaming.manual_clock(0) }
  local written = {}
  ssc.printer = function(text) written[#written + 1] = text end
  local count = #batches
  declare(ssc:queue_stream(batches), ssc)
  ssc:start()
  ssc:advance(count)
  ssc:stop()
  return table.concat(written)
end

local read = require('support.process').read_file

describe('output operations', function()
  after_each(helper.clean)

  it('print shows the time, the first records, dots when there are more', function()
    local rule = ('-'):rep(43)
    assert.equal(rule .. '\nTime: 1000 ms\n' .. rule .. '\n(a,2)\n(b,1)\n\n',
      run({ { { 'a', 2 }, { 'b', 1 } } }, function(s) s:print() end))
    assert.equal(rule .. '\nTime: 1000 ms\n' .. rule .. '\n1\n2\n...\n\n',
      run({ { 1, 2, 3 } }, function(s) s:print(2) end))
    assert.equal(rule .. '\nTime: 1000 ms\n' .. rule .. '\n1\n2\n\n',
      run({ { 1, 2 } }, function(s) s:print(2) end))
  end)

  it('records print as Spark prints them', function()
    assert.equal('(a,(1,None))', show.text({ 'a', { 1, streaming.NONE } }))
    assert.equal('(a,(1,2,3))', show.text({ 'a', { 1, 2, 3 } }))
    assert.equal('1.5', show.text(1.5))
    assert.equal('null', show.text(nil))
    assert.equal('Map(a -> 1, b -> x)', show.text({ a = 1, b = 'x' }))
    assert.equal('12345678901234567', show.text(12345678901234567LL))
  end)

  it('names of saved batches: prefix, time, suffix', function()
    assert.equal('out-1000.txt', show.file_name('out', 'txt', 1000))
    assert.equal('1000.txt', show.file_name(nil, 'txt', 1000))
    assert.equal('1000.txt', show.file_name('', 'txt', 1000))
    assert.equal('out-1000', show.file_name('out', nil, 1000))
  end)

  it('save_as_text_files writes a file a partition and replaces what is there (T119)', function()
    local prefix = helper.folder() .. '/deep/out'
    for _ = 1, 2 do
      run({ { 'a', 'b', { 'c', 1 } }, {} }, function(s) s:save_as_text_files(prefix, 'txt') end)
      assert.equal('a\n', read(prefix .. '-1000.txt/part-00000'))
      assert.equal('b\n(c,1)\n', read(prefix .. '-1000.txt/part-00001'))
      assert.equal('', read(prefix .. '-2000.txt/_SUCCESS'))
    end
  end)

  it('foreach_rdd gets the dataset and the time, in order of declaration', function()
    local seen = {}
    run({ { 1, 2 } }, function(s)
      s:foreach_rdd(function(rdd, time) seen[#seen + 1] = { 'first', rdd:count(), time } end)
      s:foreach_rdd(function(rdd, time) seen[#seen + 1] = { 'second', rdd:first(), time } end)
    end)
    assert.same({ { 'first', 2, 1000 }, { 'second', 1, 1000 } }, seen)
  end)
end)

describe('datasets', function()
  local rdds = require 'streamlua.streaming.rdd'
  local env = rdds.inline()
  local numbers = rdds.of_list(env, { 5, 3, 9, 3 }, 2)

  it('collect, count, take, first, partitions, reduce, fold, foreach', function()
    assert.same({ 5, 3, 9, 3 }, numbers:collect())
    assert.equal(4, numbers:count())
    assert.same({ 5, 3, 9 }, numbers:take(3))
    assert.equal(5, numbers:first())
    assert.same({ { 5, 3 }, { 9, 3 } }, numbers:partitions())
    assert.equal(20, numbers:reduce(function(a, b) return a + b end))
    assert.equal(21, numbers:fold(1, function(a, b) return a + b end))
    assert.is_true(rdds.empty(env):is_empty())
    assert.same({}, rdds.empty(env):take(5))
    assert.is_nil(rdds.empty(env):reduce(function(a) return a end))
  end)

  it('sort_by orders over all partitions, ascending or not', function()
    assert.same({ 3, 3, 5, 9 }, numbers:sort_by():collect())
    assert.same({ 9, 5, 3, 3 }, numbers:sort_by(function(x) return x end, false):collect())
    local pairs_of = rdds.of_list(env, { { 'b', 1 }, { 'a', 2 } }, 2)
    assert.same({ { 'a', 2 }, { 'b', 1 } }, pairs_of:sort_by_key():collect())
    assert.same({ { 'b', 1 }, { 'a', 2 } }, pairs_of:sort_by(function(p) return p[2] end):collect())
    local sorted = rdds.of_list(env, { 3, 0 / 0, 1, 0 / 0, 2 }, 2):sort_by():collect()
    assert.same({ 1, 2, 3 }, { unpack(sorted, 1, 3) })
    assert.is_true(sorted[4] ~= sorted[4] and sorted[5] ~= sorted[5])
  end)

  it('distinct, union, keys, values, subtract_by_key', function()
    assert.same({ 3, 5, 9 }, numbers:distinct():sort_by():collect())
    assert.equal(8, numbers:union(numbers):count())
    local a = rdds.of_list(env, { { 'x', 1 }, { 'y', 2 } }, 1)
    local b = rdds.of_list(env, { { 'y', 3 } }, 1)
    assert.same({ 'x', 'y' }, a:keys():collect())
    assert.same({ 1, 2 }, a:values():collect())
    assert.same({ { 'x', 1 } }, a:subtract_by_key(b):collect())
  end)

  it('a persisted dataset is computed once, another for every action', function()
    local calls = 0
    local mapped = numbers:map(function(x)
      calls = calls + 1
      return x
    end)
    mapped:collect()
    mapped:count()
    assert.equal(8, calls)
    mapped:persist():collect()
    mapped:collect()
    assert.equal(12, calls)
    mapped:unpersist():collect()
    assert.equal(16, calls)
  end)
end)
