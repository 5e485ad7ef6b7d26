local streaming = require 'streamlua.streaming'
local helper = require 'lua.streaming.helper'
local testing = require 'streamlua.testing'

local function context(options)
  local all = { name = 'c', batch = '1s', clock = streaming.manual_clock(0) }
  for name, value in pairs(options or {}) do all[name] = value end
  local ssc = streaming.context(all)
  ssc.warnings = {}
  ssc.warner = function(text) table.insert(ssc.warnings, text) end
  ssc.printer = function() end
  return ssc
end

local function message_of(fn)
  local ok, raised = pcall(fn)
  assert.is_false(ok)
  return raised
end

describe('the life of a context', function()
  after_each(helper.clean)

  it('T98: INITIALIZED, ACTIVE, STOPPED, with warnings for what was done before', function()
    local ssc = context()
    ssc:queue_stream({}):print()
    assert.equal('INITIALIZED', ssc:state())
    ssc:start()
    assert.equal('ACTIVE', ssc:state())
    ssc:start()
    assert.equal('ACTIVE', ssc:state())
    assert.matches('active already', ssc.warnings[1])
    ssc:stop()
    assert.equal('STOPPED', ssc:state())
    ssc:stop()
    assert.matches('stopped already', ssc.warnings[2])
    assert.matches('context_spec.lua:%d+: start: .*stopped', message_of(function() ssc:start() end))
  end)

  it('can be stopped before it was started', function()
    local ssc = context()
    ssc:queue_stream({}):print()
    ssc:stop()
    assert.equal('STOPPED', ssc:state())
  end)

  it('T99: without an output operation it does not start', function()
    local ssc = context()
    ssc:queue_stream({}):map(tostring)
    assert.matches('context_spec.lua:%d+: start: the context has no output operation',
      message_of(function() ssc:start() end))
    assert.not_equal('ACTIVE', ssc:state())
    assert.is_nil(streaming.active())
  end)

  it('T99: a second context does not start, and the error tells of the first', function()
    local first, second = context(), context()
    first:queue_stream({}):print()
    second:queue_stream({}):print()
    first:start()
    assert.equal(first, streaming.active())
    assert.matches("another context is active: 'c', started at .*context_spec.lua:%d+",
      message_of(function() second:start() end))
    first:stop()
    assert.is_nil(streaming.active())
    second:start()
    second:stop()
  end)

  it('state needs a checkpoint folder, and the error names the operation', function()
    local ssc = context()
    ssc:queue_stream({}):update_state_by_key(function() end):print()
    assert.matches('context_spec.lua:%d+: start: update_state_by_key needs a checkpoint folder',
      message_of(function() ssc:start() end))
    local windows = context()
    windows:queue_stream({}):count_by_window('2s', '1s'):print()
    assert.matches('start: count_by_window needs a checkpoint folder',
      message_of(function() windows:start() end))
  end)

  it('T79, B18: a queue does not start with checkpoints', function()
    local ssc = context { checkpoint = helper.folder() .. '/c' }
    ssc:queue_stream({}):print()
    assert.matches('context_spec.lua:%d+: start: queue_stream: a queue can not be checkpointed',
      message_of(function() ssc:start() end))
  end)

  it('nothing is added after the start, nor after the stop', function()
    local ssc = context()
    local source = ssc:queue_stream({})
    source:print()
    ssc:start()
    assert.matches('context_spec.lua:%d+: map: nothing can be added .* has been started',
      message_of(function() source:map(tostring) end))
    assert.matches('queue_stream: .* has been started', message_of(function() ssc:queue_stream({}) end))
    assert.matches('persist: .* has been started', message_of(function() source:persist() end))
    ssc:stop()
    assert.matches('print: nothing can be added .* has been stopped',
      message_of(function() source:print() end))
  end)

  it('remember may be called once', function()
    local ssc = context()
    ssc:remember('5s')
    assert.has_error(function() ssc:remember('6s') end)
  end)

  it('T10: the first batch is one interval after the zero time', function()
    local ssc = context()
    local times = {}
    ssc:input_stream(function() return {} end):foreach_rdd(function(_, time) times[#times + 1] = time end)
    ssc:start()
    ssc:advance('2500ms')
    assert.same({ 1000, 2000 }, times)
    ssc:stop()
  end)

  it('checks its options', function()
    for _, bad in ipairs({ { default_partitions = 0 }, { concurrent_jobs = 0.5 }, { back_pressure = 1 },
      { max_rate = -1 }, { clock = 5 }, { batch = '0s' }, { name = '' }, { checkpoint = 5 } }) do
      assert.matches('context: ', message_of(function() context(bad) end))
    end
  end)
end)

describe('batches and listeners', function()
  it('T92: events of four batches', function()
    local ssc = context()
    local events = {}
    local function keep(name) return function(batch) events[#events + 1] = { name, batch } end end
    ssc:add_listener { streaming_started = keep('streaming'), batch_submitted = keep('submitted'),
      batch_started = keep('started'), batch_completed = keep('completed'),
      output_operation_started = keep('op started'), output_operation_completed = keep('op completed') }
    ssc:queue_stream({ { 1 }, { 2 }, { 3 }, { 4 } }):foreach_rdd(function() ssc.clock:advance(10) end)
    ssc:start()
    ssc:advance('4s')
    ssc:stop()
    local names = {}
    for i, event in ipairs(events) do names[i] = event[1] end
    local one = { 'submitted', 'started', 'op started', 'op completed', 'completed' }
    local expected = { 'streaming' }
    for _ = 1, 4 do
      for _, name in ipairs(one) do expected[#expected + 1] = name end
    end
    assert.same(expected, names)
    local last = 0
    for i = 0, 3 do
      local submitted, started = events[5 * i + 2][2], events[5 * i + 3][2]
      local op, completed = events[5 * i + 5][2], events[5 * i + 6][2]
      assert.is_nil(submitted.scheduling_delay_ms)
      assert.is_nil(submitted.processing_delay_ms)
      assert.equal(0, started.scheduling_delay_ms)
      assert.is_nil(started.processing_delay_ms)
      assert.equal(10, completed.processing_delay_ms)
      assert.equal(10, completed.total_delay_ms)
      assert.equal(1, completed.records)
      assert.same({ [0] = 1 }, completed.inputs)
      assert.is_true(submitted.submission_time > last)
      last = completed.processing_end
      assert.equal('foreach_rdd-2', op.name)
      assert.equal(0, op.id)
      assert.equal(completed.time, op.time)
      assert.matches('context_spec.lua:%d+', op.call_site)
      assert.equal(10, op.end_ - op.start)
    end
  end)

  it('T94: failures have their reasons, the waiter gets the first, later batches go on', function()
    local ssc = context()
    local completed, good = {}, 0
    ssc:add_listener { batch_completed = function(batch) completed[#completed + 1] = batch end }
    local source = ssc:queue_stream({ { 1 }, { 2 } })
    source:foreach_rdd(function(_, time) if time == 1000 then error('first') end end)
    source:map(function(x)
      if x == 1 then error('second') end
      return x
    end):foreach_rdd(function(rdd) good = good + rdd:count() end)
    ssc:start()
    ssc:advance('2s')
    local operations = completed[1].output_operations
    assert.matches('context_spec.lua:%d+: first', operations[1].failure_reason)
    assert.matches('context_spec.lua:%d+: second', operations[2].failure_reason)
    assert.is_nil(completed[2].output_operations[1].failure_reason)
    assert.equal(1, good)
    assert.equal('ACTIVE', ssc:state())
    assert.matches('first', message_of(function() ssc:await_termination('1s') end))
    ssc:stop()
  end)

  it('B5: a failed job does not hold up a graceful stop', function()
    local ssc = context()
    ssc:queue_stream({ { 1 } }):foreach_rdd(function() error('no') end)
    ssc:start()
    ssc:advance('1s')
    ssc:stop { graceful = true }
    assert.is_true(ssc.clock:now() <= 3000)
  end)

  it('B5: nor does a window between two slides', function()
    local ssc = context()
    ssc:queue_stream({ { 1 } }):window('5s', '5s'):print()
    ssc:start()
    ssc:advance('2s')
    ssc:stop { graceful = true }
    assert.is_true(ssc.clock:now() <= 4000)
  end)

  it('T102: a graceful stop with the clock at its end raises nothing', function()
    local ssc = context()
    ssc:queue_stream({}):print()
    ssc:start()
    ssc:advance('1s')
    ssc:stop { graceful = true }
    assert.is_nil(ssc.failure)
    assert.equal('STOPPED', ssc:state())
  end)

  it('T104: await_termination is false while it runs and true once it has stopped', function()
    local ssc = context()
    ssc:queue_stream({}):print()
    ssc:start()
    assert.is_false(ssc:await_termination('500ms'))
    ssc:stop()
    assert.is_true(ssc:await_termination('500ms'))
  end)

  it('T106: keeps as many completed batches as told', function()
    local ssc = context { retained_batches = 10 }
    ssc:queue_stream({}):print()
    ssc:start()
    ssc:advance('15s')
    local progress = ssc:progress()
    assert.equal(10, #progress.batches)
    assert.equal(15, progress.completed_batches)
    assert.equal(15000, progress.batches[1].time)
    ssc:stop()
  end)

  it('a long job delays no tick: batches are generated while it runs', function()
    local ssc = context()
    local submitted = {}
    ssc:add_listener { batch_submitted = function(batch)
      submitted[#submitted + 1] = { batch.time, batch.submission_time }
    end }
    local generated = {}
    ssc:input_stream(function(time)
      generated[#generated + 1] = time
      return {}
    end):foreach_rdd(function(_, time)
      if time == 1000 then
        for _ = 1, 5 do ssc.clock:advance(1000) end
        assert.same({ 1000, 2000, 3000, 4000, 5000, 6000 }, generated)
      end
    end)
    ssc:start()
    ssc:advance('1s')
    for _, pair in ipairs(submitted) do assert.equal(pair[1], pair[2]) end
    assert.equal(6, #submitted)
    ssc:stop()
  end)

  it('two outputs over a stream compute it once a batch', function()
    local calls = 0
    testing.streams({ { 1 }, { 2 } }, function(s)
      local transformed = s:transform(function(rdd)
        calls = calls + 1
        return rdd
      end)
      return transformed:map(tostring), transformed:map(tostring)
    end)
    assert.equal(2, calls)
  end)

  it('the loop goes on after a generation that failed, which the waiter hears of', function()
    local ssc = context()
    local seen = {}
    ssc:input_stream(function(_, index)
      if index == 2 then error('generation') end
      return { index }
    end):foreach_rdd(function(rdd) seen[#seen + 1] = rdd:first() end)
    ssc:start()
    ssc:advance('3s')
    assert.same({ 1, 3 }, seen)
    assert.matches('generation', message_of(function() ssc:await_termination('1s') end))
    ssc:stop()
  end)

  it('a stop in a job happens after it, a stop in a listener is an error', function()
    local ssc = context()
    local problem
    ssc:add_listener { batch_started = function() problem = message_of(function() ssc:stop() end) end }
    ssc:queue_stream({}):foreach_rdd(function() ssc:stop() end)
    ssc:start()
    ssc:advance('1s')
    assert.matches('a listener can not stop its context', problem)
    assert.is_true(ssc:await_termination('1s'))
  end)

  it('an error of a listener is a warning', function()
    local ssc = context()
    ssc:add_listener { batch_started = function() error('listening') end }
    ssc:queue_stream({}):print()
    ssc:start()
    ssc:advance('1s')
    assert.matches('listener: batch_started: .*listening', ssc.warnings[1])
    ssc:stop()
    assert.matches("there is no event 'batch_begun'",
      message_of(function() ssc:add_listener { batch_begun = print } end))
  end)

  it('memory stays flat over empty batches', function()
    local ssc = context()
    local counts = ssc:queue_stream({}):map(tostring):count()
    counts:print()
    ssc:start()
    ssc:advance('300s')
    collectgarbage()
    collectgarbage()
    local before = collectgarbage('count')
    ssc:advance('1000s')
    collectgarbage()
    collectgarbage()
    assert.is_true(collectgarbage('count') - before < 100)
    local datasets = 0
    for _ in pairs(ssc.datasets) do datasets = datasets + 1 end
    assert.is_true(datasets < 20)
    ssc:stop()
  end)
end)

describe('persist', function()
  after_each(helper.clean)

  for _, level in ipairs({ 'memory', 'memory_serialized', 'disk' }) do
    it(level .. ' keeps records for several jobs and later batches', function()
      local ssc = context()
      local calls, seen = 0, {}
      local mapped = ssc:queue_stream({ { 1, 'x', { 2, 'y' } }, { 3 } }):map(function(x)
        calls = calls + 1
        return x
      end):persist(level)
      mapped:foreach_rdd(function(rdd) rdd:collect() end)
      mapped:window('2s', '2s'):foreach_rdd(function(rdd) seen = rdd:collect() end)
      ssc:start()
      ssc:advance('2s')
      assert.equal(4, calls)
      assert.same({ 1, 'x', { 2, 'y' }, 3 }, seen)
      local folder = ssc.disk_dir
      assert.equal(level == 'disk', folder ~= nil)
      ssc:stop()
      if folder then assert.is_nil(require('lfs').attributes(folder, 'mode')) end
    end)
  end
end)

describe('several jobs at once', function()
  after_each(helper.clean)

  it('run the outputs of a batch, and batches complete in order', function()
    local ssc = context { concurrent_jobs = 3 }
    local order = {}
    local source = ssc:queue_stream({ { 1 }, { 2 }, { 3 } })
    for i = 1, 3 do source:foreach_rdd(function(rdd, time) order[#order + 1] = time + i + rdd:count() - 1 end) end
    local completed = {}
    ssc:add_listener { batch_completed = function(batch) completed[#completed + 1] = batch.time end }
    ssc:start()
    ssc:advance('3s')
    ssc:stop()
    table.sort(order)
    assert.same({ 1001, 1002, 1003, 2001, 2002, 2003, 3001, 3002, 3003 }, order)
    assert.same({ 1000, 2000, 3000 }, completed)
  end)
end)

describe('back pressure', function()
  after_each(helper.clean)

  it('lowers the rate of a receiver to what batches manage (B9)', function()
    local ssc = context { back_pressure = true, initial_rate = 1000, pid_min_rate = 10 }
    local counts = {}
    ssc:receiver_stream({ poll = function(_, r)
      r:store('x')
      return true
    end }):foreach_rdd(function(rdd)
      counts[#counts + 1] = rdd:count()
      -- A hundred records take a second.
      ssc.clock:advance(counts[#counts] * 10)
    end)
    ssc:start()
    ssc:advance('30s')
    ssc:stop()
    assert.is_true(counts[1] > 500)
    assert.is_true(counts[#counts] < 200, counts[#counts])
  end)
end)
