local files = require 'support.files'
local memory = require 'support.memory'
local streamlua = require 'streamlua'
local testing = require 'streamlua.testing'

local function empty_spout(extra)
  local definition = { fields = { 'value' }, next_tuple = function() return false end }
  for key, value in pairs(extra or {}) do definition[key] = value end
  return streamlua.spout(definition)
end

local function echo(extra)
  local definition = {
    fields = { 'value' },
    execute = function(_, tuple, collector) collector:emit(tuple) end,
  }
  for key, value in pairs(extra or {}) do definition[key] = value end
  return streamlua.bolt(definition)
end

-- source -> echo
local function simple(spout, bolt, config)
  local t = streamlua.topology('simple', config)
  t:spout('source', spout or empty_spout())
  t:bolt('echo', bolt or echo()):shuffle('source')
  return t
end

local function values(...)
  local list = {}
  for i, item in ipairs({ ... }) do list[i] = { item } end
  return list
end

describe('a test cluster', function()
  local clusters

  before_each(function() clusters = {} end)
  after_each(function()
    for _, cluster in ipairs(clusters) do cluster:kill() end
    files.clean()
  end)

  local function new(options)
    local cluster = testing.cluster(options)
    clusters[#clusters + 1] = cluster
    return cluster
  end

  describe('with mocked spouts', function()
    it('emits each item of the list once, with its position as id', function()
      local cluster = new():run(simple(), { mock = { source = values('a', 'b') } }):wait()
      assert.same(values('a', 'b'), cluster:outputs('source'))
      assert.same(values('a', 'b'), cluster:outputs('echo'))
      assert.same({ 1, 2 }, cluster:acked('source'))
      assert.same({}, cluster:failed('source'))
    end)

    it('takes ids, streams and no id at all from items that have values', function()
      local spout = streamlua.spout {
        streams = { default = { 'value' }, late = { 'a', 'b' } },
        next_tuple = function() error('mocked spouts are not called') end,
      }
      local cluster = new():run(simple(spout), { mock = { source = {
        { values = { 'x' }, id = 'one' },
        { values = { 'y' }, id = false },
        { values = { 1, 2 }, id = 3, stream = 'late' },
        { 'z' },
      } } }):wait()
      assert.same({ 'one', 3, 4 }, (function()
        local ids = cluster:acked('source')
        table.sort(ids, function(a, b) return tostring(a) > tostring(b) end)
        return { ids[1], ids[3], ids[2] }
      end)())
      assert.same(values('x', 'y', 'z'), cluster:outputs('echo'))
      assert.same({ { 1, 2 } }, cluster:outputs('source', 'late'))
    end)

    it('calls none of the functions of the spout it stands for', function()
      local called = {}
      local function note(name) return function() called[#called + 1] = name end end
      local spout = streamlua.spout { fields = { 'value' }, open = note('open'),
        next_tuple = note('next_tuple'), ack = note('ack'), close = note('close') }
      new():run(simple(spout), { mock = { source = values(1) } }):wait():kill()
      assert.same({}, called)
    end)

    it('shares one list among the tasks of the spout', function()
      local t = streamlua.topology('parallel')
      t:spout('source', empty_spout(), { parallelism = 3 })
      t:bolt('echo', echo()):global('source')
      local cluster = new({ executors = 2 }):run(t, { mock = { source = values(1, 2, 3, 4, 5) } })
      cluster:wait()
      assert.equal(5, #cluster:outputs('source'))
      assert.equal(5, #cluster:acked('source'))
    end)

    it('makes bolts finish at wait, and only then', function()
      local bolt = echo { finish = function(_, collector) collector:emit({ 'end' }) end }
      local cluster = new():run(simple(nil, bolt), { mock = { source = values('a') } })
      assert.same(values('a'), cluster:outputs('echo'))
      cluster:advance('1h')
      assert.same(values('a'), cluster:outputs('echo'))
      cluster:wait()
      assert.same(values('a', 'end'), cluster:outputs('echo'))
      cluster:wait()
      assert.same(values('a', 'end'), cluster:outputs('echo'))
    end)

    it('replays what the spout asks to be replayed', function()
      local attempts = 0
      local bolt = echo { execute = function(_, tuple, collector)
        attempts = attempts + 1
        if attempts < 3 then error('not yet') end
        collector:emit(tuple)
      end }
      local cluster = new():run(simple(empty_spout { replay = true }, bolt),
        { mock = { source = values('a') } }):wait()
      assert.same(values('a'), cluster:outputs('echo'))
      assert.same({ 1 }, cluster:acked('source'))
      assert.same({}, cluster:failed('source'))
      assert.equal(2, #cluster:errors())
    end)

    it('tells what is wrong with a mock', function()
      local cluster = new()
      assert.has_error(function() cluster:run(simple(), { mock = { sauce = {} } }) end,
        "run: mock: there is no spout 'sauce'")
      assert.has_error(function() cluster:run(simple(), { mock = { echo = {} } }) end,
        "run: mock: there is no spout 'echo'")
      assert.has_error(function() cluster:run(simple(), { mock = { source = { 'a' } } }) end,
        "mock 'source': item 1 must be a list of values, got string")
      local ok, message = pcall(function()
        cluster:run(simple(), { mock = { source = { { 1, 2 } } } })
      end)
      assert.is_false(ok)
      assert.matches("spout 'source' can not emit what it was given: .*more values than", message)
    end)
  end)

  describe('feeding', function()
    it('emits at once and tracks what has an id', function()
      local cluster = new():run(simple(), { mock = { source = {} } })
      cluster:feed('source', { 'a' }, 'id'):feed('source', { 'b' })
      assert.same(values('a', 'b'), cluster:outputs('echo'))
      assert.same({ 'id' }, cluster:acked('source'))
    end)

    it('works for a spout that is not mocked, and tells it of the ack', function()
      local told = {}
      local cluster = new():run(simple(empty_spout {
        ack = function(_, id) told[#told + 1] = id end,
      }))
      cluster:feed('source', { 'a' }, 7)
      assert.same({ 7 }, told)
      assert.same({ 7 }, cluster:acked('source'))
    end)

    it('works for a spout that is DONE, also when its bolts have finished', function()
      local finished = 0
      local cluster = new():run(
        simple(empty_spout { next_tuple = function() return streamlua.DONE end },
          echo { finish = function() finished = finished + 1 end })):wait()
      assert.equal(1, finished)
      cluster:feed('source', { 'a' }, 1):wait()
      assert.same(values('a'), cluster:outputs('echo'))
      assert.same({ 1 }, cluster:acked('source'))
      assert.equal(1, finished)
    end)

    it('adds to the list of a mock, which is DONE when it is told so', function()
      local finished = 0
      local cluster = new():run(simple(nil, echo { finish = function() finished = finished + 1 end }),
        { mock = { source = values('a') } })
      cluster:feed('source', { 'b' }, 'b'):wait()
      assert.same(values('a', 'b'), cluster:outputs('echo'))
      assert.equal(0, finished)
      cluster:done('source')
      assert.equal(1, finished)
    end)

    it('needs a spout and a list of values', function()
      local cluster = new():run(simple())
      assert.error_matches(function() cluster:feed('echo', {}) end, "feed: there is no spout 'echo'")
      assert.error_matches(function() cluster:feed('source', 'a') end, 'must be a list, got string')
    end)
  end)

  describe('time', function()
    it('moves only by advance', function()
      local cluster = new({ start_ms = 1700000000000 }):run(simple())
      assert.equal(1700000000000, cluster:now())
      cluster:wait():feed('source', { 1 })
      assert.equal(1700000000000, cluster:now())
      cluster:advance('1.5s'):advance(0.25)
      assert.equal(1700000001750, cluster:now())
      cluster:kill()
      assert.equal(1700000001750, cluster:now())
    end)

    it('stops at the moment of every tick', function()
      local ticks = {}
      local t = streamlua.topology('ticks')
      t:spout('source', empty_spout())
      local function ticker(every, name)
        return echo {
          tick_every = every,
          prepare = function(self, context) self.context = context end,
          tick = function(self, _, now)
            ticks[#ticks + 1] = name .. now
            assert(now == self.context:now())
          end,
        }
      end
      t:bolt('three', ticker('3s', 'a')):shuffle('source')
      t:bolt('two', ticker('2s', 'b')):shuffle('source')
      local cluster = new({ executors = 2 }):run(t):advance('7s')
      assert.same({ 'b2000', 'a3000', 'b4000', 'a6000', 'b6000' }, (function()
        table.sort(ticks, function(a, b)
          local x, y = tonumber(a:sub(2)), tonumber(b:sub(2))
          if x ~= y then return x < y end
          return a < b
        end)
        return ticks
      end)())
      assert.same({}, cluster:errors())
    end)

    it('calls a spout that emitted nothing again while time moves, at round times', function()
      local calls = {}
      local spout = empty_spout {
        open = function(self, context) self.context = context end,
        next_tuple = function(self) calls[#calls + 1] = self.context:now() end,
      }
      new({ poll = '100ms', start_ms = 50 }):run(simple(spout)):advance('300ms')
      assert.same({ 50, 50, 100, 200, 300 }, calls)
    end)

    it('need not move for a spout that raises to be called again, but not for ever', function()
      local calls = 0
      local spout = empty_spout { next_tuple = function(_, collector)
        calls = calls + 1
        if calls % 2 == 1 then error('odd') end
        if calls > 10 then return streamlua.DONE end
        collector:emit({ calls })
      end }
      local cluster = new():run(simple(spout)):wait()
      assert.same(values(2, 4, 6, 8, 10), cluster:outputs('echo'))
      assert.equal(6, #cluster:errors())
      calls = 0
      spout = empty_spout { next_tuple = function()
        calls = calls + 1
        error('always')
      end }
      new():run(simple(spout))
      assert.is_true(calls > 10 and calls < 1000)
    end)

    it('goes on when a spout has something at every moment', function()
      local spout = empty_spout {
        next_tuple = function(_, collector) collector:emit({ 1 }) end,
      }
      local cluster = new({ poll = '1s' }):run(simple(spout), { capture = false })
      local before = cluster:stats().source.emitted
      cluster:advance('2s')
      assert.is_true(cluster:stats().source.emitted > before)
      assert.equal(cluster:stats().source.emitted, cluster:stats().echo.executed)
      assert.equal(2000, cluster:now())
    end)

    it('is not waited for: a tuple that is not acked stays pending', function()
      local cluster = new():run(simple(nil, echo { manual_ack = true }, { message_timeout = '10s' }),
        { mock = { source = values('a') } }):wait()
      assert.equal(0, cluster:now())
      assert.same({}, cluster:failed('source'))
      assert.equal(1, cluster:stats().source.pending)
      cluster:advance('15s')
      assert.same({ 1 }, cluster:failed('source'))
    end)

    it('can be the real one', function()
      local cluster = new({ clock = 'real' })
      cluster:run(simple(nil, echo { tick_every = '5ms', tick = function(_, collector)
        collector:emit({ 'tick' })
      end }), { mock = { source = values('a') } })
      cluster:wait()
      assert.same({ 1 }, cluster:acked('source'))
      -- Ticks come by themselves, on a busy machine late.
      repeat cluster:advance('20ms') until #cluster:outputs('echo') >= 3
      local before, now = os.time(), cluster:now() / 1000
      assert.is_true(now >= before and now <= os.time() + 1)
    end)

    it('by the real clock waits for what is pending', function()
      local cluster = new({ clock = 'real' })
      cluster:run(simple(nil, echo { manual_ack = true }, { message_timeout = '40ms' }),
        { mock = { source = values('a') } }):wait()
      assert.same({ 1 }, cluster:failed('source'))
    end)
  end)

  describe('life', function()
    it('activates, deactivates and kills, and calls what belongs to it', function()
      local calls = {}
      local function note(name) return function() calls[#calls + 1] = name end end
      local cluster = new():run(simple(
        empty_spout { open = note('open'), activate = note('activate'),
          deactivate = note('deactivate'), close = note('close') },
        echo { prepare = note('prepare'), cleanup = note('cleanup') }))
      cluster:deactivate()
      cluster:feed('source', { 'a' }, 1):advance('1s')
      assert.same({}, cluster:outputs('echo'))
      cluster:activate()
      assert.same(values('a'), cluster:outputs('echo'))
      cluster:kill()
      table.sort(calls)
      assert.same({ 'activate', 'activate', 'cleanup', 'close', 'deactivate', 'open', 'prepare' }, calls)
    end)

    it('starts inactive when it was deactivated before', function()
      local opened = false
      local cluster = new():deactivate()
      cluster:run(simple(empty_spout { open = function() opened = true end }))
      assert.is_false(opened)
      cluster:activate()
      assert.is_true(opened)
    end)

    it('keeps what was seen after kill, and then runs the next topology', function()
      local cluster = new():run(simple(), { mock = { source = values('a') } }):wait():kill()
      assert.same(values('a'), cluster:outputs('echo'))
      assert.same({ 1 }, cluster:acked('source'))
      assert.equal(1, cluster:stats().echo.executed)
      assert.error_matches(function() cluster:advance('1s') end, 'nothing runs')
      cluster:run(simple(), { mock = { source = values('b') } })
      assert.same(values('b'), cluster:outputs('echo'))
      cluster:run(simple(), { mock = { source = values('c') } })
      assert.same(values('c'), cluster:outputs('echo'))
    end)

    it('goes beside other clusters, each with a clock of its own', function()
      local one, two = new(), new()
      one:run(simple(), { mock = { source = {} } })
      two:run(simple(), { mock = { source = {} } })
      one:feed('source', { 'one' }, 1):advance('1s')
      two:feed('source', { 'two' }, 2)
      assert.same(values('one'), one:outputs('echo'))
      assert.same(values('two'), two:outputs('echo'))
      assert.equal(1000, one:now())
      assert.equal(0, two:now())
      one:kill()
      two:feed('source', { 'more' }, 3)
      assert.same({ 2, 3 }, two:acked('source'))
    end)

    it('gives the memory of a forgotten cluster back', function()
      if not memory.is_measurable then
        return pending('a sanitizer keeps freed memory for a while')
      end
      local mocks = values()
      for i = 1, 200 do mocks[i] = { ('x'):rep(1000) } end
      local function forget(count)
        for _ = 1, count do
          testing.cluster():run(simple(), { mock = { source = mocks }, capture = false }):wait()
          collectgarbage()
          collectgarbage()
        end
      end
      -- The machine code of loops is kept by the JIT for a while; it is not what is measured here.
      jit.off()
      forget(20)
      local grown = memory.watch()
      forget(60)
      jit.on()
      -- One worker with its batches and roots takes more than 200 KiB.
      memory.assert_grown_less(grown, 60 * 50)
    end)

    it('is the same run for the same seed', function()
      local function run(seed)
        local t = streamlua.topology('seeded')
        t:spout('source', empty_spout())
        t:bolt('echo', streamlua.bolt {
          fields = { 'value', 'task' },
          prepare = function(self, context) self.task = context.task end,
          execute = function(self, tuple, collector)
            collector:emit({ tuple.value, self.task })
          end,
        }, { parallelism = 16 }):shuffle('source')
        local mocks = {}
        for i = 1, 16 do mocks[i] = { i } end
        local cluster = new({ seed = seed }):run(t, { mock = { source = mocks } })
        local order = {}
        for _, item in ipairs(cluster:outputs('echo')) do order[item[1]] = item[2] end
        return table.concat(order, ' ')
      end
      assert.equal(run(1), run(1))
      assert.equal(run(2), run(2))
      assert.not_equal(run(1), run(2))
    end)
  end)

  describe('topologies', function()
    it('A7: are validated: an unknown component, field or stream is refused', function()
      local function word_count(source, field, stream)
        local t = streamlua.topology('words')
        t:spout('words', streamlua.spout { fields = { 'word' }, next_tuple = function() end },
          { parallelism = 3 })
        t:bolt('counter', echo(), { parallelism = 4 }):fields(source, { field }, stream)
        return t
      end
      local cluster = new({ executors = 3 })
      assert.equal(cluster, cluster:run(word_count('words', 'word')))
      assert.error_matches(function() cluster:run(word_count('sentences', 'word')) end, 'sentences')
      assert.error_matches(function() cluster:run(word_count('words', 'sentence')) end, 'sentence')
      assert.error_matches(function() cluster:run(word_count('words', 'word', 'side')) end, 'side')
    end)

    it('come from scripts too', function()
      local path = files.write('topo.lua', [[
        local streamlua = require 'streamlua'
        local t = streamlua.topology('scripted', { word = 'default' })
        t:spout('source', streamlua.spout {
          fields = { 'value' },
          open = function(self, context) self.word = context.config.word end,
          next_tuple = function(self, collector)
            if self.word then collector:emit({ self.word }) end
            self.word = nil
            return streamlua.DONE
          end,
        })
        return t
      ]])
      local cluster = new():run(path):wait()
      assert.same(values('default'), cluster:outputs('source'))
      cluster:run(path, { set = { word = 'set' } }):wait()
      assert.same(values('set'), cluster:outputs('source'))
    end)

    it('can get other config for one run', function()
      local t = simple(empty_spout {
        open = function(self, context) self.word = context.config.word end,
        next_tuple = function(self, collector)
          collector:emit({ self.word })
          return streamlua.DONE
        end,
      }, nil, { word = 'own', other = 1 })
      local cluster = new():run(t, { config = { word = 'changed' } })
      assert.same(values('changed'), cluster:outputs('source'))
      assert.equal('own', t.config.word)
      cluster:run(t)
      assert.same(values('own'), cluster:outputs('source'))
    end)

    it('raise from run when a task can not be opened', function()
      local cluster = new()
      local function failure(...)
        local ok, message = pcall(cluster.run, cluster, ...)
        return not ok and message
      end
      assert.matches('^source%[0%]: .*testing_spec.lua:%d+: no file$',
        failure(simple(empty_spout { open = function() error('no file') end })))
      assert.matches('^echo%[0%]: .*testing_spec.lua:%d+: no table$',
        failure(simple(nil, echo { prepare = function() error('no table') end })))
      assert.error_matches(function() cluster:wait() end, 'nothing runs')
    end)

    it('must be topologies', function()
      local cluster = new()
      assert.error_matches(function() cluster:run({}) end, 'it takes a topology')
      assert.error_matches(function() cluster:run('missing.lua') end, '^missing.lua: no such file$')
    end)
  end)

  describe('looking', function()
    it('has what every component emitted, read or not, by stream and as it was then', function()
      local bolt = streamlua.bolt {
        streams = { default = { 'a', 'b' }, unread = { 'table' } },
        execute = function(_, tuple, collector)
          local shared = { n = tuple.value }
          collector:emit({ tuple.value })
          collector:emit({ shared }, { stream = 'unread' })
          shared.n = 'changed'
        end,
      }
      local cluster = new():run(simple(nil, bolt), { mock = { source = values(1, 2) } })
      assert.same({ { 1 }, { 2 } }, cluster:outputs('echo'))
      assert.same({ { { n = 1 } }, { { n = 2 } } }, cluster:outputs('echo', 'unread'))
      assert.same({}, new():run(simple()):outputs('echo'))
      local mute = streamlua.bolt { execute = function() end }
      assert.same({}, new():run(simple(nil, mute)):outputs('echo'))
    end)

    it('names components and streams that do not exist', function()
      local cluster = new():run(simple())
      assert.error_matches(function() cluster:outputs('eco') end, "no component 'eco'")
      assert.error_matches(function() cluster:outputs('echo', 'x') end, "no stream 'x'")
      assert.error_matches(function() cluster:acked('x') end, "no component 'x'")
      assert.error_matches(function() cluster:failed('x') end, "no component 'x'")
    end)

    it('captures only what it is asked to', function()
      local cluster = new({ capture = { 'echo' } }):run(simple(), { mock = { source = values(1) } })
      assert.same(values(1), cluster:outputs('echo'))
      assert.error_matches(function() cluster:outputs('source') end, 'not captured')
    end)

    it('collects errors, log lines, counters and metrics', function()
      local bolt = echo {
        prepare = function(self, context)
          self.seen = context:counter('seen')
          self.context = context
        end,
        execute = function(self, tuple)
          self.seen:inc()
          self.context.log:warn('got %s', tuple.value)
          error('bad ' .. tuple.value, 0)
        end,
      }
      local cluster = new():run(simple(nil, bolt), { mock = { source = values('a', 'b') } })
      local errors = cluster:errors()
      assert.equal(2, #errors)
      assert.matches('testing_spec.lua:%d+: bad a$', errors[1].message)
      assert.matches('testing_spec.lua:%d+: bad b$', errors[2].message)
      assert.equal('echo', cluster:errors()[1].component)
      assert.equal(0, cluster:errors()[1].index)
      assert.same({ component = 'echo', index = 0, level = 'warn', text = 'got a' }, cluster:logs()[1])
      assert.equal(2, cluster:stats().source.failed)
      assert.same({ seen = 2 }, cluster:metrics('echo'))
      assert.equal(2, cluster:task('echo').seen:value())
      cluster:kill()
      assert.same({ seen = 2 }, cluster:metrics('echo'))
      assert.is_nil(cluster:task('echo'))
    end)

    it('raises errors when it is asked to', function()
      local bolt = echo { execute = function() error('broken', 0) end }
      local cluster = new({ raise_errors = true }):run(simple(nil, bolt), { mock = { source = {} } })
      local ok, message = pcall(cluster.feed, cluster, 'source', { 'a' })
      assert.is_false(ok)
      assert.matches('^echo%[0%]: .*: broken$', message)
      cluster:advance('1s')
      assert.equal(1, #cluster:errors())
    end)
  end)

  it('tells when a topology does not come to rest', function()
    local spout = empty_spout { next_tuple = function(_, collector) collector:emit({ 1 }) end }
    local cluster = new({ turns = 100 })
    assert.error_matches(function() cluster:run(simple(spout), { capture = false }) end,
      'does not come to rest')
  end)

  it('lets others run while an emit waits, also inside a callback of C and a coroutine', function()
    for _, emit_all in ipairs {
      function(collector) for i = 1, 5000 do collector:emit({ ('x'):rep(500) .. i }) end end,
      function(collector)
        local i = 0
        ;(('.'):rep(5000)):gsub('.', function()
          i = i + 1
          collector:emit({ ('x'):rep(500) .. i })
        end)
      end,
      function(collector)
        local co = coroutine.wrap(function()
          for i = 1, 5000 do collector:emit({ ('x'):rep(500) .. i }) end
          return true
        end)
        assert(co())
      end,
    } do
      local bolt = streamlua.bolt {
        fields = { 'text' },
        execute = function(_, _, collector) emit_all(collector) end,
      }
      local t = simple(nil, bolt)
      t:bolt('sink', echo { fields = nil, streams = {}, execute = function() end },
        { parallelism = 2 }):shuffle('echo')
      local cluster = new({ executors = 3 }):run(t, { capture = false,
        mock = { source = values(1) } }):wait()
      assert.same({}, cluster:errors())
      assert.equal(5000, cluster:stats().sink.executed)
      assert.same({ 1 }, cluster:acked('source'))
    end
  end)

  it('refuses options that it does not know', function()
    assert.error_matches(function() testing.cluster({ clocks = 1 }) end, "unknown option 'clocks'")
    assert.error_matches(function() testing.cluster({ clock = 'sun' }) end, "'manual' or 'real'")
    assert.error_matches(function() new():run(simple(), { mocks = {} }) end, "unknown option 'mocks'")
  end)
end)
