-- The life of tasks: ticks, finish, replay, errors of user code, context, metrics.

local streamlua = require 'streamlua'
local ways = require 'support.ways'

local function feeder(extra)
  local definition = { fields = { 'value' }, next_tuple = function() return false end }
  for key, value in pairs(extra or {}) do definition[key] = value end
  return streamlua.spout(definition)
end

local function bolt(extra)
  local definition = {
    fields = { 'value' },
    execute = function(_, tuple, collector) collector:emit({ tuple.value }) end,
  }
  for key, value in pairs(extra or {}) do definition[key] = value end
  return streamlua.bolt(definition)
end

local function values(...)
  local list = {}
  for i, item in ipairs({ ... }) do list[i] = { item } end
  return list
end

local function line(source, sink, config, options)
  local t = streamlua.topology('line', config)
  t:spout('source', source or feeder(), options and options.source)
  t:bolt('sink', sink or bolt(), options and options.sink):shuffle('source')
  return t
end

ways.describe('ticks', function(way)
  it('come every tick_every from the start on, at their nominal time', function()
    local seen = {}
    local cluster = way.cluster({ start_ms = 1234 }):run(line(nil, bolt {
      tick_every = '500ms',
      prepare = function(self, context) self.context = context end,
      tick = function(self, _, now)
        seen[#seen + 1] = now
        assert(self.context:now() == now)
      end,
    }), way.options())
    cluster:advance('2.2s')
    assert.same({ 1734, 2234, 2734, 3234 }, seen)
    assert.same({}, cluster:errors())
  end)

  it('are on multiples of the period when they are aligned', function()
    local seen = {}
    way.cluster({ start_ms = 1700000001234 }):run(line(nil, bolt {
      tick_every = '10s',
      tick_aligned = true,
      tick = function(_, _, now) seen[#seen + 1] = now end,
    }), way.options()):advance('25s')
    assert.same({ 1700000010000, 1700000020000 }, seen)
  end)

  it('come for each task, between tuples, and may emit', function()
    local t = streamlua.topology('rate')
    t:spout('source', feeder())
    t:bolt('count', streamlua.bolt {
      fields = { 'index', 'count' },
      tick_every = 1,
      prepare = function(self, context) self.index, self.n = context.index, 0 end,
      execute = function(self) self.n = self.n + 1 end,
      tick = function(self, collector)
        collector:emit({ self.index, self.n })
        self.n = 0
      end,
    }, { parallelism = 2 }):shuffle('source')
    local cluster = way.run(t, { mock = { source = values(1, 2, 3, 4) } }):advance('1s')
    cluster:feed('source', { 5 }):feed('source', { 6 }):advance('1s')
    local rows = {}
    for i, row in ipairs(cluster:outputs('count')) do rows[i] = row[1] .. ':' .. row[2] end
    assert.same({ '0:1', '0:2', '1:1', '1:2' }, ways.sorted(rows))
  end)

  it('emit unanchored tuples', function()
    local held = {}
    local t = streamlua.topology('unanchored', { message_timeout = '10s' })
    t:spout('source', feeder())
    t:bolt('ticker', bolt {
      tick_every = 1,
      tick = function(_, collector) collector:emit({ 'tick' }) end,
      execute = function() end,
    }):shuffle('source')
    t:bolt('fails', streamlua.bolt {
      execute = function(_, tuple) held[#held + 1] = tuple; error('fails') end,
    }):shuffle('ticker')
    local cluster = way.run(t, { mock = { source = values('a') } }):advance('3s')
    assert.equal(3, #held)
    assert.same({ 1 }, cluster:acked('source'))
    assert.same({}, cluster:failed('source'))
  end)

  it('go on after one of them raised', function()
    local n = 0
    local cluster = way.run(line(nil, bolt {
      tick_every = 1,
      tick = function()
        n = n + 1
        if n == 2 then error('second tick') end
      end,
    })):advance('4s')
    assert.equal(4, n)
    assert.equal(1, #cluster:errors())
    assert.matches('task_spec.lua:%d+: second tick$', cluster:errors()[1].message)
  end)

  it('do not come before the topology is active', function()
    local n = 0
    local cluster = way.run(line(nil, bolt { tick_every = 1, tick = function() n = n + 1 end }),
      { deactivated = true }):advance('5s')
    assert.equal(0, n)
    cluster:activate():advance('2s')
    assert.equal(2, n)
  end)
end)

ways.describe('finish', function(way)
  it('comes once, when everything that is read has finished, and may emit', function()
    local order = {}
    local t = streamlua.topology('finish')
    t:spout('a', feeder { next_tuple = function(self, collector)
      self.n = (self.n or 0) + 1
      if self.n > 50 then return streamlua.DONE end
      collector:emit({ self.n }, { id = self.n })
    end })
    t:spout('b', feeder(), { parallelism = 2 })
    t:bolt('sum', bolt {
      execute = function(self, tuple) self.sum = (self.sum or 0) + tuple.value end,
      finish = function(self, collector)
        order[#order + 1] = 'sum'
        collector:emit({ self.sum or 0 })
      end,
    }, { parallelism = 3 }):shuffle('a'):shuffle('b')
    t:bolt('total', bolt {
      execute = function(self, tuple) self.sum = (self.sum or 0) + tuple.value end,
      finish = function(self, collector)
        order[#order + 1] = 'total'
        collector:emit({ self.sum })
      end,
    }):global('sum')
    local cluster = way.run(t, { mock = { b = {} } }):wait()
    assert.same({}, order)
    cluster:feed('b', { 100 }):done('b')
    assert.same({ 'sum', 'sum', 'sum', 'total' }, order)
    assert.same({ { 1375 } }, cluster:outputs('total'))
    cluster:wait():advance('1h')
    assert.equal(4, #order)
  end)

  it('waits for the last root: a tuple that fails may come again', function()
    local finished, attempts = 0, 0
    local cluster = way.run(line(feeder { replay = { delay = '5s' } }, bolt {
      execute = function()
        attempts = attempts + 1
        if attempts == 1 then error('again') end
      end,
      finish = function() finished = finished + 1 end,
    }), { mock = { source = values('a') } }):wait()
    assert.equal(0, finished)
    cluster:advance('5s')
    assert.same({ 2, 1 }, { attempts, finished })
  end)

  it('ends a topology with a cycle of bolts', function()
    local finished = {}
    local t = streamlua.topology('cycle')
    t:spout('source', feeder())
    local function hop(name, other)
      return t:bolt(name, bolt {
        execute = function(_, tuple, collector)
          if tuple.value > 0 then collector:emit({ tuple.value - 1 }) end
        end,
        finish = function() finished[#finished + 1] = name end,
      }, { parallelism = 2 }):shuffle(other)
    end
    hop('ping', 'pong'):shuffle('source')
    hop('pong', 'ping')
    t:bolt('after', bolt { finish = function() finished[#finished + 1] = 'after' end })
      :shuffle('pong')
    local cluster = way.run(t, { mock = { source = values(10, 7) } }):wait()
    assert.same({ 1, 2 }, ways.sorted(cluster:acked('source')))
    assert.same({ 'after', 'ping', 'ping', 'pong', 'pong' }, ways.sorted(finished))
    local pongs = 0
    for _, name in ipairs(finished) do
      if name == 'pong' then pongs = pongs + 1 end
      if name == 'after' then assert.equal(2, pongs) end
    end
  end)

  it('reports an error and ends all the same', function()
    local after = 0
    local t = line(nil, bolt { finish = function() error('no end') end })
    t:bolt('after', bolt { finish = function() after = after + 1 end }):shuffle('sink')
    local cluster = way.run(t, { mock = { source = values(1) } }):wait()
    assert.matches('no end', cluster:errors()[1].message)
    assert.equal(1, after)
  end)
end)

ways.describe('replay', function(way)
  local function failing(times, seen)
    return bolt { execute = function(_, tuple, collector)
      seen[#seen + 1] = tuple.value
      local count = 0
      for _, value in ipairs(seen) do
        if value == tuple.value then count = count + 1 end
      end
      if count <= times then error('attempt ' .. count) end
      collector:emit({ tuple.value })
    end }
  end

  it('emits a failed tuple again until it is acked, as it was', function()
    local seen = {}
    local shared = { 'x' }
    local source = feeder {
      replay = true,
      fields = { 'value', 'list' },
      next_tuple = function(self, collector)
        if self.is_done then return streamlua.DONE end
        self.is_done = true
        collector:emit({ 'a', shared }, { id = 'A' })
        shared[1] = 'changed'
      end,
    }
    local lists = {}
    local attempts = 0
    local cluster = way.run(line(source, bolt { execute = function(_, tuple)
      attempts = attempts + 1
      lists[attempts] = tuple.list[1]
      seen[attempts] = tuple.value
      if attempts < 4 then error('again') end
    end })):wait()
    assert.same({ 'a', 'a', 'a', 'a' }, seen)
    assert.same({ 'x', 'x', 'x', 'x' }, lists)
    assert.same({ 'A' }, cluster:acked('source'))
    assert.same({}, cluster:failed('source'))
    assert.equal(0, cluster:stats().source.pending)
  end)

  it('stops at its limit and calls fail then', function()
    local failed, seen = {}, {}
    local cluster = way.run(line(feeder {
      replay = { limit = 2 },
      next_tuple = function(self, collector)
        self.n = (self.n or 0) + 1
        if self.n > 3 then return streamlua.DONE end
        collector:emit({ self.n }, { id = self.n })
      end,
      fail = function(_, id) failed[#failed + 1] = id end,
    }, failing(100, seen))):wait()
    assert.equal(9, #seen)
    assert.same({ 1, 2, 3 }, ways.sorted(failed))
    assert.same({ 1, 2, 3 }, ways.sorted(cluster:failed('source')))
  end)

  it('waits its delay each time', function()
    local seen = {}
    local cluster = way.run(line(feeder { replay = { delay = '2s' } }, failing(2, seen)),
      { mock = { source = values('a') } }):wait()
    assert.equal(1, #seen)
    cluster:advance('1999ms')
    assert.equal(1, #seen)
    cluster:advance('1ms')
    assert.equal(2, #seen)
    cluster:advance('2s')
    assert.equal(3, #seen)
    assert.same({ 1 }, cluster:acked('source'))
  end)

  it('follows a time-out too, and keeps stream and order', function()
    local seen = {}
    local t = streamlua.topology('late', { message_timeout = '4s' })
    t:spout('source', streamlua.spout {
      streams = { side = { 'value' } },
      replay = true,
      next_tuple = function() return false end,
    })
    t:bolt('sink', streamlua.bolt {
      manual_ack = true,
      execute = function(_, tuple, collector)
        seen[#seen + 1] = tuple.value
        if #seen > 3 then collector:ack(tuple) end
      end,
    }):shuffle('source', 'side')
    local mocks = {}
    for i = 1, 3 do mocks[i] = { values = { i }, stream = 'side', id = i } end
    local cluster = way.run(t, { mock = { source = mocks } }):advance('6s')
    assert.same({ 1, 2, 3, 1, 2, 3 }, seen)
    assert.same({ 1, 2, 3 }, cluster:acked('source'))
  end)

  it('counts emits once and leaves untracked tuples alone', function()
    local seen = {}
    local cluster = way.run(line(feeder { replay = true }, failing(1, seen)),
      { mock = { source = { { 'a' }, { values = { 'b' }, id = false } } } }):wait()
    assert.equal(3, #seen)
    assert.equal(2, cluster:stats().source.emitted)
    assert.equal(2, #cluster:outputs('source'))
  end)
end)

ways.describe('errors', function(way)
  it('in open or prepare name the task and end the run', function()
    for _, t in ipairs {
      line(feeder { open = function() error('no file') end }),
      line(nil, bolt { prepare = function() error({ message = 'no file' }) end }),
    } do
      local cluster = way.cluster()
      local ok, message = pcall(cluster.run, cluster, t, way.options())
      assert.is_false(ok)
      assert.matches('^s[%a]+%[0%]: .*no file$', message)
    end
  end)

  it('in next_tuple are reported, and the spout is called again', function()
    local n = 0
    local cluster = way.run(line(feeder { next_tuple = function(_, collector)
      n = n + 1
      if n == 2 then error('second call') end
      if n > 4 then return streamlua.DONE end
      collector:emit({ n }, { id = n })
    end })):wait()
    assert.matches('task_spec.lua:%d+: second call$', cluster:errors()[1].message)
    assert.equal('source', cluster:errors()[1].component)
    assert.same({ 1, 3, 4 }, ways.sorted(cluster:acked('source')))
  end)

  it('in next_tuple leave what was emitted before', function()
    local n = 0
    local cluster = way.run(line(feeder { next_tuple = function(_, collector)
      n = n + 1
      if n > 1 then return streamlua.DONE end
      collector:emit({ 'before' }, { id = 'before' })
      error('after')
    end })):wait()
    assert.same({ 'before' }, cluster:acked('source'))
    assert.same(values('before'), cluster:outputs('sink'))
  end)

  it('in ack and fail are reported, and the others are told', function()
    local told = {}
    local function tell(_, id)
      told[#told + 1] = id
      if id == 2 then error('told of ' .. id) end
    end
    local cluster = way.run(line(
      feeder { ack = tell, fail = tell },
      bolt { execute = function(_, tuple) if tuple.value == 2 then error('fails') end end }))
    for i = 1, 4 do cluster:feed('source', { i }, i) end
    assert.same({ 1, 2, 3, 4 }, told)
    assert.equal(0, cluster:stats().source.pending)
    local texts = {}
    for i, problem in ipairs(cluster:errors()) do texts[i] = problem.message end
    assert.equal(2, #texts)
    assert.matches('told of 2', texts[2])
  end)

  it('in cleanup and close are reported, and the others are cleaned up', function()
    local cleaned = 0
    local t = line(feeder { close = function() error('close') end },
      bolt { cleanup = function() error('cleanup') end })
    t:bolt('other', bolt { cleanup = function() cleaned = cleaned + 1 end }, { parallelism = 3 })
      :shuffle('sink')
    local cluster = way.run(t):kill()
    assert.equal(3, cleaned)
    assert.equal(2, #cluster:errors())
  end)

  it('in activate and deactivate are reported', function()
    local cluster = way.run(line(feeder {
      activate = function() error('activate') end,
      deactivate = function() error('deactivate') end,
    }), { mock = nil }):deactivate()
    assert.matches('activate', cluster:errors()[1].message)
    assert.matches('deactivate', cluster:errors()[2].message)
  end)

  it('in execute cost one tuple; tuples before and after it run once', function()
    local runs = {}
    local mocks = {}
    for i = 1, 200 do mocks[i] = { i } end
    local cluster = way.run(line(nil, bolt { execute = function(_, tuple)
      runs[tuple.value] = (runs[tuple.value] or 0) + 1
      if tuple.value % 10 == 0 then error('ten') end
    end }), { mock = { source = mocks } }):wait()
    assert.equal(200, #runs)
    for _, n in ipairs(runs) do assert.equal(1, n) end
    assert.equal(20, #cluster:failed('source'))
    assert.equal(180, #cluster:acked('source'))
    assert.equal(20, cluster:stats().sink.errors)
    assert.equal(200, cluster:stats().sink.executed)
  end)

  it('in execute of a bolt with manual acks fail the tuple too', function()
    local cluster = way.run(line(nil, bolt {
      manual_ack = true,
      execute = function(_, tuple, collector)
        if tuple.value == 1 then error('before') end
        collector:ack(tuple)
        if tuple.value == 2 then error('after') end
      end,
    }), { mock = { source = values(1, 2, 3) } }):wait()
    assert.same({ 1 }, cluster:failed('source'))
    assert.same({ 2, 3 }, ways.sorted(cluster:acked('source')))
  end)

  it('that are no texts are told as well as can be', function()
    local raised = { nil, false, {}, { message = 'a message' },
      setmetatable({}, { __tostring = function() return 'own text' end }), print }
    local cluster = way.run(line(nil, bolt { execute = function(_, tuple)
      error(raised[tuple.value])
    end }), { mock = { source = values(1, 2, 3, 4, 5, 6) } }):wait()
    assert.equal(6, #cluster:failed('source'))
    local texts = {}
    for i, problem in ipairs(cluster:errors()) do texts[i] = problem.message end
    assert.matches('a message', texts[4])
    assert.matches('own text', texts[5])
  end)

  it('can be reported without failing', function()
    local cluster = way.run(line(nil, bolt { execute = function(_, tuple, collector)
      collector:report_error('value ' .. tuple.value)
    end }), { mock = { source = values(1) } }):wait()
    assert.same({ 1 }, cluster:acked('source'))
    assert.matches('value 1', cluster:errors()[1].message)
    assert.equal(1, cluster:stats().sink.errors)
  end)
end)

ways.describe('the context', function(way)
  it('says who the task is and whom it talks to', function()
    local contexts = {}
    local t = streamlua.topology('who', { own = 'value', nested = { list = { 1, 2 } } })
    t:spout('source', feeder { open = function(_, context) contexts.source = context end },
      { config = { mine = 1 } })
    t:bolt('sink', bolt { prepare = function(_, context)
      contexts[#contexts + 1] = context
    end }, { parallelism = 3 }):shuffle('source')
    t:bolt('other', bolt(), { parallelism = 2 }):all('source')
    local cluster = way.run(t)
    local source = contexts.source
    local plan = cluster.plan.by_name
    assert.equal('who', source.topology)
    assert.equal('source', source.component)
    assert.equal(plan.source.tasks[1], source.task)
    assert.equal(0, source.index)
    assert.equal(1, source.parallelism)
    assert.same(plan.sink.tasks, source:tasks('sink'))
    assert.same({ sink = plan.sink.tasks, other = plan.other.tasks }, source:readers('default'))
    assert.error_matches(function() source:tasks('none') end, 'none')
    assert.error_matches(function() source:readers('none') end, 'none')
    local indexes = {}
    for _, context in ipairs(contexts) do
      indexes[#indexes + 1] = context.index
      assert.equal(plan.sink.tasks[context.index + 1], context.task)
      assert.equal(3, context.parallelism)
    end
    assert.same({ 0, 1, 2 }, ways.sorted(indexes))
    cluster:advance('1.5s')
    assert.equal(1500, source:now())
  end)

  it('has config that can be read and not written', function()
    local context
    local t = streamlua.topology('config', { own = 'value', nested = { list = { 1, 2 } } })
    t:spout('source', feeder { open = function(_, given) context = given end },
      { config = { mine = 1, own = 'component' } })
    way.run(t)
    assert.equal(1, context.config.mine)
    assert.equal('component', context.config.own)
    assert.equal(2, context.config.nested.list[2])
    assert.is_nil(context.config.missing)
    assert.error_matches(function() context.config.own = 1 end, 'read%-only')
    assert.error_matches(function() context.config.new = 1 end, 'read%-only')
    assert.error_matches(function() context.config.nested.list[1] = 5 end, 'read%-only')
    assert.equal('value', t.config.own)
  end)

  it('has metrics of each task', function()
    local t = line(nil, bolt {
      prepare = function(self, context)
        self.counter = context:counter('seen')
        self.gauge = context:gauge('last')
        self.histogram = context:histogram('sizes')
        assert(context:counter('seen') == self.counter)
      end,
      execute = function(self, tuple)
        self.counter:inc()
        self.counter:inc(2)
        self.gauge:set(tuple.value)
        self.histogram:record(tuple.value)
      end,
    }, nil, { sink = { parallelism = 2 } })
    local mocks = {}
    for i = 1, 20 do mocks[i] = { i } end
    local cluster = way.run(t, { mock = { source = mocks } }):wait()
    for index = 0, 1 do
      local metrics = cluster:metrics('sink', index)
      assert.equal(30, metrics.seen)
      assert.equal(10, metrics.sizes.count)
      assert.is_true(metrics.last >= 19)
      assert.is_true(metrics.sizes.p50 >= 8 and metrics.sizes.p50 <= 12)
    end
  end)

  it('takes numbers only for its metrics, and shows null for those that no document holds', function()
    local problems = {}
    local t = line(nil, bolt {
      prepare = function(_, context)
        local gauge, counter = context:gauge('ratio'), context:counter('seen')
        local histogram = context:histogram('sizes')
        gauge:set(0 / 0)
        counter:inc(math.huge)
        for i, fn in ipairs {
          function() gauge:set('1') end, function() counter:inc({}) end,
          function() histogram:record('x') end, function() histogram:quantile() end,
          function() context.log:info('%d', 'x') end,
        } do
          local _, problem = pcall(fn)
          problems[i] = problem
        end
      end,
      execute = function() end,
    })
    local metrics = way.run(t, { mock = { source = {} } }):metrics('sink', 0)
    assert.equal(streamlua.null, metrics.ratio)
    assert.equal(streamlua.null, metrics.seen)
    for i, what in ipairs { 'gauge:set: expected a number, got string',
      'counter:inc: expected a number, got table', 'histogram:record: expected a number, got string',
      'histogram:quantile: expected a number, got nil', 'log:info: bad argument #2' } do
      assert.matches('task_spec.lua:%d+: ' .. what, problems[i])
    end
  end)

  it('has keyed state by name that each task has for itself', function()
    local t = streamlua.topology('state')
    t:spout('source', feeder())
    t:bolt('count', streamlua.bolt {
      fields = { 'value', 'n' },
      prepare = function(self, context)
        self.counts, self.other = context:state('counts'), context:state('other')
      end,
      execute = function(self, tuple, collector)
        assert(self.other:get(tuple.value) == nil)
        collector:emit({ tuple.value, self.counts:add(tuple.value, 1) })
      end,
    }, { parallelism = 3 }):fields('source', { 'value' })
    local cluster = way.run(t, { mock = { source = values('a', 'b', 'a', 'c', 'a') } }):wait()
    local last = {}
    for _, row in ipairs(cluster:outputs('count')) do last[row[1]] = row[2] end
    assert.same({ a = 3, b = 1, c = 1 }, last)
    assert.same({}, cluster:errors())
  end)

  it('logs by level', function()
    local cluster = way.run(line(feeder { open = function(_, context)
      context.log:error('e')
      context.log:warn('w %d', 1)
      context.log:info('i %s', 'x')
      context.log:debug('100%')
    end }))
    local lines = {}
    for i, entry in ipairs(cluster:logs()) do lines[i] = entry.level .. ' ' .. entry.text end
    assert.same({ 'error e', 'warn w 1', 'info i x', 'debug 100%' }, lines)
  end)
end)

ways.describe('self', function(way)
  it('is a new table for each task with the functions of the definition', function()
    local selves = {}
    local t = streamlua.topology('self')
    t:spout('source', feeder())
    t:bolt('sink', bolt {
      helper = function(self) return self.mine end,
      shared = { 1 },
      prepare = function(self, context)
        selves[#selves + 1] = self
        self.mine = context.index
      end,
    }, { parallelism = 3 }):shuffle('source')
    way.run(t)
    local seen = {}
    for _, self in ipairs(selves) do
      seen[#seen + 1] = self:helper()
      assert.equal(selves[1].shared, self.shared)
    end
    assert.same({ 0, 1, 2 }, ways.sorted(seen))
  end)
end)
