-- Emits that have to wait, and cycles of bolts: nothing dead-locks and memory stays bounded.

local memory = require 'support.memory'
local streamlua = require 'streamlua'
local ways = require 'support.ways'

local function feeder(fields)
  return streamlua.spout { fields = fields or { 'value' }, next_tuple = function() return false end }
end

local SLOW = not memory.is_measurable

ways.describe('back pressure', function(way)
  it('holds a call of next_tuple that emits without end, in bounded memory', function()
    local n = SLOW and 50000 or 400000
    local seen = 0
    local t = streamlua.topology('flood')
    t:spout('source', streamlua.spout {
      fields = { 'n', 'text' },
      next_tuple = function(_, collector)
        for i = 1, n do collector:emit({ i, 'some text to fill a record' }) end
        return streamlua.DONE
      end,
    }, { parallelism = 2 })
    t:bolt('relay', streamlua.bolt {
      fields = { 'n', 'text' },
      execute = function(_, tuple, collector) collector:emit(tuple) end,
    }, { parallelism = 2 }):shuffle('source')
    t:bolt('sink', streamlua.bolt {
      execute = function() seen = seen + 1 end,
    }, { parallelism = 3 }):fields('relay', { 'n' })
    local grown = memory.watch()
    way.cluster({ capture = false }):run(t, way.options()):wait()
    assert.equal(2 * n, seen)
    memory.assert_grown_less(grown, 96 * 1024)
  end)

  it('serves acks while an emit waits', function()
    local t = streamlua.topology('served', { max_spout_pending = 1000000 })
    t:spout('source', streamlua.spout {
      fields = { 'n', 'text' },
      next_tuple = function(_, collector)
        for i = 1, 30000 do collector:emit({ i, ('x'):rep(200) }, { id = i }) end
        return streamlua.DONE
      end,
    })
    t:bolt('branch', streamlua.bolt {
      fields = { 'n', 'text' },
      execute = function(_, tuple, collector)
        collector:emit(tuple)
        collector:emit(tuple)
      end,
    }):shuffle('source')
    t:bolt('sink', streamlua.bolt { execute = function() end }, { parallelism = 2 }):all('branch')
    local cluster = way.cluster({ capture = false }):run(t, way.options()):wait()
    assert.equal(30000, #cluster:acked('source'))
    assert.equal(120000, cluster:stats().sink.executed)
  end)

  it('lets siblings flow while one branch waits', function()
    -- The blocked spout waits for roots that only time ends; the other one does not notice.
    local t = streamlua.topology('siblings', { max_spout_pending = 2, message_timeout = '10s' })
    t:spout('blocked', streamlua.spout {
      fields = { 'value' },
      next_tuple = function(_, collector)
        for i = 1, 10 do collector:emit({ i }, { id = i }) end
        return streamlua.DONE
      end,
    })
    t:bolt('never', streamlua.bolt {
      manual_ack = true, execute = function() end,
    }):shuffle('blocked')
    t:spout('free', feeder())
    t:bolt('quick', streamlua.bolt {
      fields = { 'value' },
      execute = function(_, tuple, collector) collector:emit(tuple) end,
    }):shuffle('free')
    local cluster = way.run(t, { mock = { free = {} } })
    if way.executors > 1 then
      for i = 1, 5 do cluster:feed('free', { i }, i) end
      assert.equal(5, #cluster:acked('free'))
    end
    assert.same({}, cluster:failed('blocked'))
    cluster:advance('60s')
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, ways.sorted(cluster:failed('blocked')))
    cluster:feed('free', { 6 }, 6)
    assert.same({}, cluster:errors())
    assert.equal(way.executors > 1 and 6 or 1, #cluster:acked('free'))
  end)

  it('waits for room when more is on its way between two executors than a ring holds', function()
    local t = streamlua.topology('wide')
    local count = 30
    t:spout('source', streamlua.spout {
      fields = { 'n', 'text' },
      next_tuple = function(_, collector)
        for i = 1, count do collector:emit({ i, ('x'):rep(1000) }, { id = i }) end
        return streamlua.DONE
      end,
    })
    t:bolt('wide', streamlua.bolt { execute = function() end }, { parallelism = 1500 })
      :all('source')
    local cluster = way.cluster({ capture = false }):run(t, way.options()):wait()
    assert.equal(1500 * count, cluster:stats().wide.executed)
    assert.equal(count, #cluster:acked('source'))
  end)

  it('kills a topology whose emit waits', function()
    local cleaned = 0
    local t = streamlua.topology('killed', { max_spout_pending = 1 })
    t:spout('source', streamlua.spout {
      fields = { 'value' },
      next_tuple = function(_, collector)
        for i = 1, 10 do collector:emit({ i }, { id = i }) end
      end,
      close = function() cleaned = cleaned + 1 end,
    })
    t:bolt('never', streamlua.bolt { manual_ack = true, execute = function() end,
      cleanup = function() cleaned = cleaned + 1 end }):shuffle('source')
    way.run(t):kill()
    assert.equal(2, cleaned)
  end)
end)

ways.describe('a cycle of bolts', function(way)
  -- source -> ping <-> pong; `execute` of both is the same.
  local function cycle(execute, parallelism)
    local t = streamlua.topology('cycle')
    t:spout('source', feeder({ 'n', 'text' }))
    local function hop() return streamlua.bolt { fields = { 'n', 'text' }, execute = execute } end
    t:bolt('ping', hop(), { parallelism = parallelism }):shuffle('source'):shuffle('pong')
    t:bolt('pong', hop(), { parallelism = parallelism }):shuffle('ping')
    return t
  end

  it('with a gain of one never dead-locks, however much comes in', function()
    local hops = 0
    local t = cycle(function(_, tuple, collector)
      hops = hops + 1
      if tuple.n > 0 then collector:emit({ tuple.n - 1, tuple.text }) end
    end, 2)
    local count, length = SLOW and 2000 or 8000, 9
    local mocks = {}
    for i = 1, count do mocks[i] = { length, ('x'):rep(100) } end
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = mocks } })
    cluster:wait()
    assert.equal(count * (length + 1), hops)
    assert.equal(count, #cluster:acked('source'))
    assert.equal(0, cluster.worker:dropped_in_cycles())
  end)

  it('with a gain of one loses nothing where one of its tasks has to take all', function()
    local t = streamlua.topology('skewed')
    t:spout('source', feeder({ 'n', 'text' }))
    local function hop()
      return streamlua.bolt {
        fields = { 'n', 'text' },
        execute = function(_, tuple, collector)
          if tuple.n > 0 then collector:emit({ tuple.n - 1, tuple.text }) end
        end,
      }
    end
    t:bolt('ping', hop(), { parallelism = 3 }):global('pong')
      :custom('source', function(values, tasks) return tasks[2 + values[1] % 2] end)
    t:bolt('pong', hop(), { parallelism = 3 }):shuffle('ping')
    local count, length = SLOW and 3000 or 10000, 9
    local mocks = {}
    for i = 1, count do mocks[i] = { length, ('x'):rep(2000) } end
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = mocks } })
    cluster:wait()
    assert.equal(0, cluster.worker:dropped_in_cycles())
    assert.equal(count, #cluster:acked('source'))
  end)

  it('of one bolt that reads itself never dead-locks', function()
    local t = streamlua.topology('self')
    t:spout('source', feeder({ 'n' }))
    t:bolt('loop', streamlua.bolt {
      fields = { 'n' },
      execute = function(_, tuple, collector)
        if tuple.n > 0 then collector:emit({ tuple.n - 1 }) end
      end,
    }, { parallelism = 3 }):shuffle('source'):fields('loop', { 'n' })
    local mocks = {}
    for i = 1, 3000 do mocks[i] = { i % 20 } end
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = mocks } })
    cluster:wait()
    assert.equal(3000, #cluster:acked('source'))
    assert.equal(0, cluster.worker:dropped_in_cycles())
  end)

  it('executes each tuple once when a turn on input from outside sends the task its own', function()
    local hops = 0
    local t = streamlua.topology('self')
    t:spout('source', feeder({ 'n', 'text' }))
    t:bolt('loop', streamlua.bolt {
      fields = { 'n', 'text' },
      execute = function(_, tuple, collector)
        hops = hops + 1
        if tuple.n > 0 then collector:emit({ tuple.n - 1, tuple.text }) end
      end,
    }):shuffle('source'):all('loop')
    -- A turn takes 32 tuples or fewer, so that they must be large to fill a batch within one.
    local count, length = SLOW and 500 or 2000, 3
    local mocks = {}
    for i = 1, count do mocks[i] = { length, ('x'):rep(3000) } end
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = mocks } })
    cluster:wait()
    assert.equal(count * (length + 1), hops)
    assert.equal(count, #cluster:acked('source'))
  end)

  it('with a gain below one drains', function()
    local t = cycle(function(self, tuple, collector)
      self.i = (self.i or 0) + 1
      if self.i % 10 ~= 0 then collector:emit({ tuple.n, tuple.text }) end
    end, 1)
    local mocks = {}
    for i = 1, 2000 do mocks[i] = { i, 'x' } end
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = mocks } })
    cluster:wait()
    assert.equal(2000, #cluster:acked('source'))
  end)

  it('with a gain above one overflows within bounds and fails the roots', function()
    local t = cycle(function(_, tuple, collector)
      if tuple.n > 0 then
        for _ = 1, 4 do collector:emit({ tuple.n - 1, tuple.text }) end
      end
    end, 1)
    local grown = memory.watch()
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = {} } })
    -- 4^10 tuples and more if nothing were dropped.
    cluster:feed('source', { 10, ('x'):rep(100) }, 'explodes')
    assert.same({ 'explodes' }, cluster:failed('source'))
    assert.is_true(cluster.worker:dropped_in_cycles() > 0)
    memory.assert_grown_less(grown, 96 * 1024)
    -- What is small still goes through.
    cluster:feed('source', { 2, 'x' }, 'small')
    assert.same({ 'small' }, cluster:acked('source'))
  end)
end)
