local streaming = require 'streamlua.streaming'
local testing = require 'streamlua.testing'
local helper = require 'lua.streaming.helper'

local S = helper.batches('a / a,b / a,b,c / a,b / a / {}')

local function check(expected, out)
  assert.same(helper.expected(expected), helper.texts(out))
end

local function sum(values, old)
  local total = old or 0
  for _, value in ipairs(values) do total = total + value end
  return total
end

describe('streams with state', function()
  local folder
  before_each(function() folder = helper.folder() end)
  after_each(helper.clean)

  local function run(lists, operation, batches, more)
    local options = { checkpoint = folder .. '/c' }
    for name, value in pairs(more or {}) do options[name] = value end
    return testing.streams(lists, operation, { batches = batches, context = options })
  end

  it('T56: update_state_by_key keeps sums', function()
    check('a:1 / a:2 b:1 / a:3 b:2 c:1 / a:4 b:3 c:1 / a:5 b:3 c:1 / a:5 b:3 c:1',
      (run(S, function(s) return s:map(helper.pair_with_one):update_state_by_key(sum) end)))
  end)

  it('T57: an initial state, in both forms of the function', function()
    local expected = 'a:2 c:2 / a:3 b:1 c:2 / a:4 b:2 c:3 / a:5 b:3 c:3 / a:6 b:3 c:3 / a:6 b:3 c:3'
    local initial = { { 'a', 1 }, { 'c', 2 } }
    check(expected, (run(S, function(s)
      return s:map(helper.pair_with_one):update_state_by_key(sum, { initial = initial })
    end)))
    local seen = {}
    check(expected, (run(S, function(s)
      return s:map(helper.pair_with_one):update_state_by_key(function(time, key, values, old)
        seen[time .. key] = true
        return sum(values, old)
      end, { initial = initial, with_time_key = true })
    end)))
    assert.is_true(seen['1000a'] and seen['6000c'])
  end)

  it('T59: a state of several fields that goes when it is idle', function()
    local lists = helper.batches('a,b / nil / a,c,a / c / nil / nil')
    check('a:1 b:1 / a:1 b:1 / a:3 c:1 / a:3 c:2 / c:2 / {}', (run(lists, function(s)
      return s:map(helper.pair_with_one):update_state_by_key(function(values, old)
        local state = old or { sum = 0, idle = 0 }
        if #values == 0 then
          state.idle = state.idle + 1
        else
          state.idle = 0
          for _, value in ipairs(values) do state.sum = state.sum + value end
        end
        if state.idle >= 2 then return nil end
        return state
      end):map_values(function(state) return state.sum end)
    end)))
  end)

  it('T60: a checkpoint interval decides how long is remembered', function()
    local lists, stream = {}, nil
    for i = 1, 10 do lists[i] = { 'a' } end
    run(lists, function(s)
      stream = s:map(helper.pair_with_one):update_state_by_key(sum):checkpoint('3s')
      return stream
    end)
    assert.equal(6000, stream:remember_ms())
    local times = stream:remembered()
    assert.equal(10000, times[#times])
    for _, time in ipairs(times) do assert.is_true(time > 4000) end
  end)

  local T62 = helper.batches('{} / a / a,b / a,b,c / a,b / a / {}')
  local SNAPSHOTS = '{} / a:1 / a:2 b:1 / a:3 b:2 c:1 / a:4 b:3 c:1 / a:5 b:3 c:1 / a:5 b:3 c:1'

  local function counting(result)
    return function(time, key, value, state)
      local total = (state:get_option() or 0) + value
      state:update(total)
      return result(key, total, time)
    end
  end

  it('T62: map_with_state gives the count, and snapshots', function()
    local out, snapshots = run(T62, function(s)
      local mapped = s:map(helper.pair_with_one)
        :map_with_state(streaming.state_spec(counting(function(_, total) return total end)))
      return mapped, mapped:state_snapshots()
    end)
    check('{} / 1 / 2 1 / 3 2 1 / 4 3 / 5 / {}', out)
    check(SNAPSHOTS, snapshots)
  end)

  it('T63: the function may return what it likes', function()
    local out, snapshots = run(T62, function(s)
      local mapped = s:map(helper.pair_with_one)
        :map_with_state(streaming.state_spec(counting(function(key) return key .. key end)))
      return mapped, mapped:state_snapshots()
    end)
    check('{} / aa / aa bb / aa bb cc / aa bb / aa / {}', out)
    check(SNAPSHOTS, snapshots)
  end)

  it('T64: pairs of key and sum', function()
    check('{} / a:1 / a:2 b:1 / a:3 b:2 c:1 / a:4 b:3 / a:5 / {}', (run(T62, function(s)
      return s:map(helper.pair_with_one)
        :map_with_state(streaming.state_spec(counting(function(key, total) return { key, total } end)))
    end)))
  end)

  it('T65: an initial state, and no output', function()
    local out, snapshots = run(T62, function(s)
      local mapped = s:map(helper.pair_with_one):map_with_state(
        streaming.state_spec(counting(function() end))
          :initial_state({ { 'a', 5 }, { 'b', 10 }, { 'c', -20 }, { 'd', 0 } }))
      return mapped, mapped:state_snapshots()
    end)
    check('{} / {} / {} / {} / {} / {} / {}', out)
    check('a:5 b:10 c:-20 d:0 / a:6 b:10 c:-20 d:0 / a:7 b:11 c:-20 d:0 / a:8 b:12 c:-19 d:0 / '
      .. 'a:9 b:13 c:-19 d:0 / a:10 b:13 c:-19 d:0 / a:10 b:13 c:-19 d:0', snapshots)
  end)

  it('T67, B14: time-outs are found within one batch', function()
    local lists = helper.batches('a,b,c / a,b / a / {} / {}')
    for i = 6, 20 do lists[i] = { 'a' } end
    local gone = {}
    local _, snapshots = run(lists, function(s)
      local mapped = s:map(helper.pair_with_one):map_with_state(
        streaming.state_spec(function(time, key, value, state)
          if state:is_timing_out() then
            assert(value == nil)
            gone[#gone + 1] = key .. time
          else
            state:update(value)
          end
        end):timeout('3s'))
      return mapped, mapped:state_snapshots()
    end)
    assert.same({ 'c5000', 'b6000' }, gone)
    check('a:1', { snapshots[20] })
  end)

  it('T68: the interval of the state is ten batches, one that is set goes to the state alone', function()
    local function intervals(batch, explicit)
      local ssc = streaming.context { name = 'i', batch = batch, clock = streaming.manual_clock(0),
        checkpoint = folder .. '/i' }
      local stream = ssc:input_stream(function() return {} end)
        :map_with_state(streaming.state_spec(function() end))
      if explicit then stream:checkpoint(explicit) end
      stream:print()
      ssc.printer = function() end
      ssc:start()
      local inner, outer = stream.state_stream:checkpoint_ms(), stream:checkpoint_ms()
      ssc:stop()
      assert.is_nil(outer)
      return inner
    end
    assert.equal(1000, intervals('100ms'))
    assert.equal(10000, intervals('1s'))
    assert.equal(100000, intervals('10s'))
    assert.equal(2000, intervals('100ms', '2s'))
    assert.equal(2000, intervals('1s', '2s'))
    assert.equal(20000, intervals('10s', '20s'))
  end)

  it('a function that raises leaves the state as it was; the batch is made up for with the next one', function()
    local ssc = streaming.context { name = 'f', batch = '1s', clock = streaming.manual_clock(0),
      checkpoint = folder .. '/f' }
    local fails = true
    local out = {}
    local lists = { { 'a' }, { 'a', 'b' }, { 'a' } }
    ssc:input_stream(function(_, index) return lists[index] or {} end)
      :map(helper.pair_with_one)
      :update_state_by_key(function(values, old)
        if #values == 1 and old == 1 and fails then
          fails = false
          error('once')
        end
        return sum(values, old)
      end)
      :foreach_rdd(function(rdd) out[#out + 1] = rdd:collect() end)
    local failures = {}
    ssc:add_listener { batch_completed = function(batch)
      failures[#failures + 1] = batch.output_operations[1].failure_reason or 'ok'
    end }
    ssc:start()
    ssc:advance('3s')
    assert.matches('once', failures[2])
    assert.equal('ok', failures[3])
    check('a:1 / a:3 b:1', out)
    ssc:stop()
  end)

  it('a function that keeps raising is left out with a warning, and later batches go on', function()
    local ssc = streaming.context { name = 'f', batch = '1s', clock = streaming.manual_clock(0),
      checkpoint = folder .. '/f' }
    local warnings, out = {}, {}
    ssc.warner = function(text) warnings[#warnings + 1] = text end
    local lists = { { 'a' }, { 'bad' }, { 'a' } }
    ssc:input_stream(function(_, index) return lists[index] or {} end)
      :map(helper.pair_with_one)
      :update_state_by_key(function(_, key, values, old)
        if key == 'bad' then error('poison') end
        return sum(values, old)
      end, { with_time_key = true })
      :foreach_rdd(function(rdd) out[#out + 1] = rdd:collect() end)
    ssc:start()
    ssc:advance('3s')
    check('a:1 / a:2', out)
    assert.matches('batch 2000 is left out of the state of update_state_by_key%-3: .*poison',
      table.concat(warnings, '\n'))
    ssc:stop()
  end)

  it('a value that can not be stored names stream and key', function()
    local ok, message = pcall(run, { { 'a' } }, function(s)
      return s:map(helper.pair_with_one):update_state_by_key(function() return print end):name('sums')
    end)
    assert.is_false(ok)
    assert.matches("sums: the state of key 'a' holds a function value", message)
  end)

  it('older states are there when the stream is persisted, and an error says so when it is not', function()
    local function look(persist)
      local stream, seen
      run({ { 'a' }, { 'a' } }, function(s, context)
        stream = s:map(helper.pair_with_one):update_state_by_key(sum)
        if persist then stream:persist('memory') end
        context:add_listener { batch_completed = function(batch)
          if batch.time == 2000 then
            seen = { pcall(function() return stream:slice(1000, 1000)[1]:collect() end) }
          end
        end }
        return stream
      end)
      return unpack(seen)
    end
    local ok, records = look(true)
    assert.is_true(ok, tostring(records))
    check('a:1', { records })
    local is_there, message = look(false)
    assert.is_false(is_there)
    assert.matches('the state of 1000 ms is not held any more; persist the stream', message)
    -- Also one that was dropped long ago, and nothing is disturbed by asking.
    local lists, stream, problem = {}, nil, nil
    for i = 1, 40 do lists[i] = { 'a' } end
    local out = run(lists, function(s, context)
      stream = s:map(helper.pair_with_one):update_state_by_key(sum)
      context:add_listener { batch_completed = function(batch)
        if batch.time == 38000 then
          problem = select(2, pcall(function() return stream:slice(2000, 2000)[1]:collect() end))
        end
      end }
      return stream
    end)
    assert.matches('the state of 2000 ms is not held any more', problem)
    check('a:40', { out[40] })
  end)
end)

describe('the state of a key (T69)', function()
  local State = require('streamlua.streaming.state').State

  it('new and wrapped nil do not exist, and get raises', function()
    for _, state in ipairs({ State.new(), State.new():wrap(nil) }) do
      assert.is_false(state:exists() == true)
      assert.is_nil(state:get_option())
      assert.has_error(function() state:get() end)
    end
  end)

  it('wraps, updates and removes', function()
    local state = State.new():wrap(1)
    assert.is_true(state:exists())
    assert.equal(1, state:get())
    state:update(2)
    assert.equal(2, state:get())
    assert.is_true(state.is_updated)
    state:remove()
    assert.is_true(state.is_removed)
    assert.is_false(state:exists())
    assert.has_error(function() state:update(3) end)
    assert.has_error(function() state:remove() end)
  end)

  it('can be read only while it times out', function()
    local state = State.new():wrap_timing_out(3)
    assert.is_true(state:is_timing_out())
    assert.equal(3, state:get())
    assert.has_error(function() state:update(4) end)
    assert.has_error(function() state:remove() end)
  end)
end)

describe('the update of a key (T70, T72, T73)', function()
  local maps = require 'streamlua.streaming.state_map'
  local tasks = require 'streamlua.streaming.task'
  local rdds = require 'streamlua.streaming.rdd'

  -- Runs one batch at 2000 ms over a table; records are values of the key 'k'.
  local function run(map, fn, values, timeout)
    local env = rdds.inline()
    local keys = {}
    for i = 1, #values do keys[i] = 'k' end
    tasks.run(env, { tree = {}, sink = { kind = 'map_state', map = map.address, time = 2000, name = 's',
      fn = { fn = fn }, timeout = timeout,
      blocks = { env.store({ n = #values, keys = keys, vals = values }) } } })
    return { map:get('k') }
  end

  local function state_of(value, time)
    local map = maps.new('s')
    if value ~= nil then map:put('k', value, time) end
    return map
  end

  it('T70: kept at the threshold, timed out above it', function()
    local timed_out = false
    local function fn(_, _, _, state) timed_out = timed_out or state:is_timing_out() end
    assert.same({ 123, 1000 }, run(state_of(123, 1000), fn, {}, 1000))
    assert.is_false(timed_out)
    assert.same({}, run(state_of(123, 1000), fn, {}, 999))
    assert.is_true(timed_out)
  end)

  it('T72: data without an update and without a state stores nothing', function()
    assert.same({}, run(state_of(nil), function() end, { 1 }, 999))
  end)

  it('T73: the time of the update is that of the batch', function()
    local function update(value) return function(_, _, _, state) state:update(value) end end
    assert.same({ 0, 1000 }, run(state_of(0, 1000), function() end, { 1 }))
    assert.same({ 0, 2000 }, run(state_of(0, 1000), update(0), { 1 }))
    assert.same({ 0, 2000 }, run(state_of(nil), update(0), { 1 }))
    assert.same({}, run(state_of(345, 1000), function(_, _, _, state) state:remove() end, { 1 }))
  end)

  it('with a time-out data keeps a key alive also without an update', function()
    assert.same({ 7, 2000 }, run(state_of(7, 500), function() end, { 1 }, 1000))
  end)
end)
