local streaming = require 'streamlua.streaming'
local testing = require 'streamlua.testing'
local helper = require 'lua.streaming.helper'

local add, pair_with_one = helper.add, helper.pair_with_one
local A = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }
local W = helper.batches('a,a,b / "","" / {}')

local function check(expected, out, is_ordered)
  assert.same(helper.expected(expected), helper.texts(out, is_ordered))
end

describe('stateless operations', function()
  it('T12: map keeps the order', function()
    local out = testing.streams(A, function(s) return s:map(tostring) end)
    assert.same({ { '1', '2', '3', '4' }, { '5', '6', '7', '8' }, { '9', '10', '11', '12' } }, { unpack(out) })
  end)

  it('T13: flat_map takes lists apart', function()
    local out = testing.streams(A, function(s) return s:flat_map(function(x) return { x, 2 * x } end) end)
    check('1 2 2 4 3 6 4 8 / 5 10 6 12 7 14 8 16 / 9 18 10 20 11 22 12 24', out)
  end)

  it('T14: filter keeps what is even', function()
    local out = testing.streams(A, function(s) return s:filter(function(x) return x % 2 == 0 end) end)
    check('2 4 / 6 8 / 10 12', out)
  end)

  it('T15: glom gives a list a partition', function()
    local out = testing.streams(A, function(s) return s:glom() end)
    assert.same({ { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } }, { { 9, 10 }, { 11, 12 } } }, { unpack(out) })
  end)

  it('map_partitions gets a list of each partition and gives one', function()
    local out = testing.streams(A, function(s)
      return s:map_partitions(function(list) return { #list, list[1] } end)
    end)
    check('2 1 2 3 / 2 5 2 7 / 2 9 2 11', out)
  end)

  it('T17: repartition gives exactly so many partitions with the same records', function()
    local lists = { {}, {}, {} }
    for i = 1, 300 do lists[math.ceil(i / 100)][(i - 1) % 100 + 1] = i end
    local counts = {}
    local out = testing.streams(lists, function(s)
      return s:repartition(5):transform(function(rdd)
        counts[#counts + 1] = rdd:num_partitions()
        return rdd
      end)
    end)
    assert.same({ 5, 5, 5 }, counts)
    for i, batch in ipairs(out) do
      table.sort(batch)
      assert.same(lists[i], batch)
    end
    local fewer = testing.streams(lists, function(s) return s:repartition(1):glom() end)
    assert.equal(100, #fewer[1][1])
  end)

  it('T19: group_by_key collects values', function()
    check('a:[1,1] b:[1] / "":[1,1] / {}',
      (testing.streams(W, function(s) return s:map(pair_with_one):group_by_key() end)))
  end)

  it('T20: reduce_by_key adds up', function()
    check('a:2 b:1 / "":2 / {}',
      (testing.streams(W, function(s) return s:map(pair_with_one):reduce_by_key(add) end)))
  end)

  it('combine_by_key creates, merges and joins combiners, with and without the map side', function()
    for _, map_side in ipairs({ true, false }) do
      local out = testing.streams(W, function(s)
        return s:map(pair_with_one):combine_by_key(function(x) return { x } end,
          function(list, x)
            list[#list + 1] = x
            return list
          end,
          function(a, b)
            local joined = { unpack(a) }
            for _, x in ipairs(b) do joined[#joined + 1] = x end
            return joined
          end, 2, map_side)
      end)
      check('a:[1,1] b:[1] / "":[1,1] / {}', out)
    end
  end)

  it('T21: reduce gives one record', function()
    check('10 / 26 / 42', (testing.streams(A, function(s) return s:reduce(add) end)))
  end)

  it('reduce of an empty batch gives an empty one', function()
    check('3 / {}', (testing.streams({ { 1, 2 }, {} }, function(s) return s:reduce(add) end)))
  end)

  it('T22: count gives the number of records, also 0', function()
    check('0 / 1 / 2 / 3 / 4', (testing.streams(helper.batches('{} / 1 / 1,2 / 1,2,3 / 1,2,3,4'),
      function(s) return s:count() end)))
  end)

  it('count_by_value counts what is there', function()
    check('a:2 b:1 / "":2 / {}', (testing.streams(W, function(s) return s:count_by_value() end)))
  end)

  it('T24: map_values changes values only', function()
    check('a:12 b:11 / "":12 / {}', (testing.streams(W, function(s)
      return s:map(pair_with_one):reduce_by_key(add):map_values(function(x) return x + 10 end)
    end)))
  end)

  it('flat_map_values gives a pair for each element', function()
    check('a:1 a:2 / {}', (testing.streams({ { { 'a', 2 }, { 'b', 0 } }, {} }, function(s)
      return s:flat_map_values(function(n)
        local list = {}
        for i = 1, n do list[i] = i end
        return list
      end)
    end)))
  end)

  it('T26: union puts streams together', function()
    local lists = helper.batches('1,2,3,4 / 101,102,103,104 / 201,202,203,204')
    check('1 2 3 4 5 6 7 8 / 101 102 103 104 105 106 107 108 / 201 202 203 204 205 206 207 208',
      (testing.streams(lists, function(s) return s:union(s:map(function(x) return x + 4 end)) end)))
  end)

  it('T28: the union of a list, and a transform of a list that does it', function()
    local lists = helper.batches('1,2,3,4 / 101,102,103,104 / 201,202,203,204')
    local function three(s)
      return { s, s:map(function(x) return x + 4 end), s:map(function(x) return x + 8 end) }
    end
    local expected = '1 2 3 4 5 6 7 8 9 10 11 12 / 101 102 103 104 105 106 107 108 109 110 111 112 / '
      .. '201 202 203 204 205 206 207 208 209 210 211 212'
    check(expected, (testing.streams(lists, function(s, ssc) return ssc:union(three(s)) end)))
    check(expected, (testing.streams(lists, function(s, ssc)
      return ssc:transform(three(s), function(list) return list[1]:union(list[2], list[3]) end)
    end)))
  end)

  it('T29: a transform that returns nil, and a parent without dataset, fail the batch', function()
    local function failure(lists, operation)
      local ok, message = pcall(testing.streams, lists, operation)
      assert.is_false(ok)
      return message
    end
    assert.matches('operations_spec.lua:%d+: transform: the function must return a dataset, got nil',
      failure(A, function(s) return s:transform(function() return nil end) end))
    assert.matches('transform: stream input_stream%-1 has no dataset at 1000 ms',
      failure({ false }, function(s) return s:transform(function(rdd) return rdd end) end))
    assert.matches('transform_with: stream input_stream%-1 has no dataset',
      failure({ false }, function(s) return s:transform_with(s, function(rdd) return rdd end) end))
    assert.matches('transform: stream input_stream%-1 has no dataset',
      failure({ false }, function(s, ssc) return ssc:transform({ s }, function(l) return l[1] end) end))
    assert.matches('union: stream input_stream%-1 has no dataset',
      failure({ false }, function(s) return s:union(s) end))
  end)

  it('transform_with gets both datasets and the time', function()
    local times = {}
    local out = testing.streams({ inputs = { { { 1 }, { 2 } }, { { 10 }, { 20 } } } }, function(a, b)
      return a:transform_with(b, function(x, y, time)
        times[#times + 1] = time
        return x:union(y)
      end)
    end)
    check('1 10 / 2 20', out)
    assert.same({ 1000, 2000 }, times)
  end)

  it('a batch without dataset has none downstream', function()
    local out = testing.streams({ { 1 }, false, { 3 } }, function(s)
      return s:map(function(x) return x end)
    end)
    assert.same({ 1000, 3000 }, out.times)
  end)
end)

describe('two streams', function()
  local L = helper.batches('a,b / a,"" / "" / {}')
  local R = helper.batches('a,b / b,"" / {} / ""')
  local function pair_with_x(word) return { word, 'x' } end

  local function joined(name, left, right)
    return (testing.streams({ inputs = { left or L, right or R } }, function(a, b)
      return a:map(pair_with_one)[name](a:map(pair_with_one), b:map(pair_with_x))
    end))
  end

  it('T30: join, also inside transform_with', function()
    check('a:[1,x] b:[1,x] / "":[1,x] / {} / {}', joined('join'))
    check('a:[1,x] b:[1,x] / "":[1,x] / {} / {}', (testing.streams({ inputs = { L, R } }, function(a, b)
      return a:map(pair_with_one):transform_with(b:map(pair_with_x), function(x, y) return x:join(y) end)
    end)))
  end)

  it('T31: left_outer_join', function()
    check('a:[1,x] b:[1,x] / "":[1,x] a:[1,nil] / "":[1,nil] / {}', joined('left_outer_join'))
  end)

  it('right_outer_join', function()
    check('a:[1,x] b:[1,x] / "":[1,x] b:[nil,x] / {} / "":[nil,x]', joined('right_outer_join'))
  end)

  it('T33: full_outer_join', function()
    check('a:[1,x] b:[1,x] / "":[1,x] a:[1,nil] b:[nil,x] / "":[1,nil] / "":[nil,x]',
      joined('full_outer_join'))
  end)

  it('T34: cogroup has every key of either side', function()
    check('a:[[1,1],[x,x]] b:[[1],[x]] / a:[[1],[]] b:[[],[x]] "":[[1],[x]] / "":[[1],[]] / {}',
      joined('cogroup', helper.batches('a,a,b / a,"" / "" / {}'), helper.batches('a,a,b / b,"" / {} / {}')))
  end)

  it('a join gives the cross product of the values of a key', function()
    local out = testing.streams({ inputs = { { { { 'k', 1 }, { 'k', 2 } } }, { { { 'k', 3 }, { 'k', 4 } } } } },
      function(a, b) return a:join(b) end)
    check('k:[1,3] k:[1,4] k:[2,3] k:[2,4]', out)
  end)
end)

describe('keys', function()
  it('numbers are compared by value, tables by content, nil and booleans are keys', function()
    local records = { { 1, 'a' }, { 1LL, 'b' }, { 1.0, 'c' }, { { 1, 'x' }, 'd' }, { { 1, 'x' }, 'e' },
      { true, 'f' }, { true, 'g' }, { nil, 'h' }, { 0 / 0, 'i' }, { 0 / 0, 'j' }, { -0.0, 'k' }, { 0, 'l' } }
    local out = testing.streams({ records }, function(s) return s:group_by_key(3) end)
    local sizes = {}
    for _, pair in ipairs(out[1]) do sizes[#sizes + 1] = #pair[2] end
    table.sort(sizes)
    assert.same({ 1, 2, 2, 2, 2, 3 }, sizes)
  end)

  it('records that are no pairs, keys that are none and bad lists are errors with their place', function()
    local function failure(operation, records)
      local ok, message = pcall(testing.streams, { records }, operation)
      assert.is_false(ok)
      return message
    end
    assert.matches('reduce_by_key %(.-operations_spec.lua:%d+%): records must be pairs {key, value}, got number',
      failure(function(s) return s:reduce_by_key(add) end, { 1 }))
    assert.matches('flat_map %(.-operations_spec.lua:%d+%): the function must return a list, got nil',
      failure(function(s) return s:flat_map(function() end) end, { 1 }))
    assert.matches('function value can not be a key',
      failure(function(s) return s:map(function() return { print, 1 } end):group_by_key() end, { 1 }))
    assert.matches('operations_spec.lua:%d+: boom',
      failure(function(s) return s:map(function() error('boom') end) end, { 1 }))
  end)
end)

describe('declarations', function()
  local function context() return streaming.context { name = 'd', batch = '1s', clock = streaming.manual_clock(0) } end

  it('streams are named after their operation and position, or as told', function()
    local ssc = context()
    local source = ssc:queue_stream({})
    local mapped = source:flat_map(tostring):map(tostring)
    assert.equal('queue_stream-1', source.node_name)
    assert.equal('map-3', mapped.node_name)
    assert.equal('counts', mapped:count():name('counts').node_name)
    assert.has_error(function() source:name('counts') end)
  end)

  it('mistakes name the line and what is wrong', function()
    local ssc = context()
    local source = ssc:queue_stream({})
    local function message(fn)
      local ok, text = pcall(fn)
      assert.is_false(ok)
      return text
    end
    assert.matches('operations_spec.lua:%d+: map: expected a function, got nil',
      message(function() source:map() end))
    assert.matches('union: expected a stream, got number', message(function() source:union(1) end))
    assert.matches('union: the stream belongs to another context',
      message(function() source:union(context():queue_stream({})) end))
    assert.matches('reduce_by_key: the number of partitions', message(function() source:reduce_by_key(add, 0) end))
    assert.matches('print: expected a number of records', message(function() source:print('x') end))
    assert.matches('persist: tape is no level', message(function() source:persist('tape') end))
    assert.matches("context: there is no option 'bach'",
      message(function() streaming.context { name = 'x', bach = 1 } end))
    assert.matches('context: batch is missing', message(function() streaming.context { name = 'x' } end))
    assert.matches('context: batch: .* is not a duration',
      message(function() streaming.context { name = 'x', batch = 'soon' } end))
  end)

  it('calls no function of the records when a batch is generated, and each once when the job runs', function()
    local ssc = context()
    local calls, seen = 0, nil
    local source = ssc:input_stream(function() return { 1, 2, 3 } end)
    local mapped = source:map(function(x)
      calls = calls + 1
      return x
    end)
    local transforms = 0
    mapped:transform(function(rdd)
      transforms = transforms + 1
      seen = seen or calls
      return rdd
    end):foreach_rdd(function(rdd) rdd:collect() end)
    ssc:add_listener { batch_submitted = function() assert.equal(0, calls) end }
    ssc:start()
    ssc:advance('1s')
    assert.equal(0, seen)
    assert.equal(3, calls)
    assert.equal(1, transforms)
    ssc:stop()
  end)
end)
