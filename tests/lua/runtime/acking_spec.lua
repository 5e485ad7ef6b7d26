-- Acknowledgement by the rows of Storm's integration tests and what follows from its rules; every
-- test runs in each way of support/ways.lua, in virtual time.

local streamlua = require 'streamlua'
local ways = require 'support.ways'

local sorted = ways.sorted

local function feeder(fields)
  return streamlua.spout { fields = fields or { 'value' }, next_tuple = function() return false end }
end

-- Emits `count` anchored tuples for each one, then acks it.
local function branch(count)
  return streamlua.bolt {
    fields = { 'value' },
    execute = function(_, tuple, collector)
      for _ = 1, count do collector:emit({ tuple.value }) end
    end,
  }
end

-- Collects n tuples, emits one anchored on all of them and acks them.
local function aggregate(n)
  return streamlua.bolt {
    fields = { 'value' },
    manual_ack = true,
    execute = function(self, tuple, collector)
      self.kept = self.kept or {}
      self.kept[#self.kept + 1] = tuple
      if #self.kept == n then
        collector:emit({ n }, { anchors = self.kept })
        for _, kept in ipairs(self.kept) do collector:ack(kept) end
        self.kept = {}
      end
    end,
  }
end

local sink = streamlua.bolt { execute = function() end }

-- A bolt with manual acks that keeps its tuples in the list `held`, and does what the test tells it
-- by way of the spout 'control': held.perform(cluster, function(collector) ... end).
local function add_holder(t, name, held)
  if not t:component('control') then t:spout('control', feeder({ 'holder', 'op' })) end
  local ops = {}
  function held.perform(cluster, op)
    ops[#ops + 1] = op
    cluster:feed('control', { name, #ops }):wait()
  end
  return t:bolt(name, streamlua.bolt {
    fields = { 'value' },
    manual_ack = true,
    execute = function(_, tuple, collector)
      if streamlua.tuple.component(tuple) ~= 'control' then
        held[#held + 1] = tuple
      elseif tuple.holder == name then
        ops[tuple.op](collector)
      end
    end,
  }):global('control')
end

ways.describe('acking', function(way)
  -- How many more ids a spout has been told as acked since the last question.
  local function tracker(cluster, spout)
    local seen = 0
    return function()
      local now = #cluster:acked(spout)
      local more = now - seen
      seen = now
      return more
    end
  end

  it('A1: fails what is not acked between T and 1.5 T, and nothing else', function()
    local t = streamlua.topology('timeout', { message_timeout = '10s' })
    t:spout('1', feeder())
    t:bolt('2', streamlua.bolt {
      manual_ack = true,
      execute = function(self, tuple, collector)
        self.n = (self.n or 0) + 1
        if self.n % 2 == 1 then collector:ack(tuple) end
      end,
    }):global('1')
    local cluster = way.run(t, { mock = { ['1'] = {} } })
    cluster:advance('11s')
    cluster:feed('1', { 'a' }, 1):feed('1', { 'b' }, 2):feed('1', { 'c' }, 3)
    cluster:advance('9s')
    assert.same({ 1, 3 }, cluster:acked('1'))
    assert.same({}, cluster:failed('1'))
    cluster:advance('12s')
    assert.same({ 1, 3 }, cluster:acked('1'))
    assert.same({ 2 }, cluster:failed('1'))
    cluster:advance('60s')
    assert.same({ 2 }, cluster:failed('1'))
  end)

  it('A3: acks a tree when its last leaf is acked, however it branches', function()
    local t = streamlua.topology('tree')
    for i, count in ipairs { 2, 4, 1 } do
      t:spout(tostring(i), feeder())
      t:bolt('branch' .. i, branch(count)):shuffle(tostring(i))
    end
    t:bolt('aggregate', aggregate(3)):shuffle('branch1'):shuffle('branch2'):shuffle('branch3')
    t:bolt('double', branch(2)):shuffle('aggregate')
    t:bolt('sink', sink):shuffle('double')
    local cluster = way.run(t, { mock = { ['1'] = {}, ['2'] = {}, ['3'] = {} } })
    local more = {}
    for i = 1, 3 do more[i] = tracker(cluster, tostring(i)) end
    local id = 0
    local function feed(spout)
      id = id + 1
      cluster:feed(spout, { id }, id):wait()
      return { more[1](), more[2](), more[3]() }
    end
    assert.same({ 0, 0, 0 }, feed('1'))
    assert.same({ 1, 1, 0 }, feed('2'))
    assert.same({ 0, 0, 0 }, feed('1'))
    assert.same({ 1, 0, 0 }, feed('1'))
    assert.same({ 0, 0, 0 }, feed('3'))
    assert.same({ 1, 1, 1 }, feed('2'))
  end)

  it('A4: acks both roots when one bolt collects what two branches made of them', function()
    local t = streamlua.topology('branching')
    t:spout('1', feeder())
    t:bolt('a', branch(1)):shuffle('1')
    t:bolt('b', branch(1)):shuffle('1')
    t:bolt('all', aggregate(4)):shuffle('a'):shuffle('b')
    local cluster = way.run(t, { mock = { ['1'] = {} } })
    local more = tracker(cluster, '1')
    cluster:feed('1', { 'x' }, 1):wait()
    assert.equal(0, more())
    cluster:feed('1', { 'y' }, 2):wait()
    assert.equal(2, more())
  end)

  it('A6: opens nothing before an inactive topology is activated', function()
    local opened, prepared = 0, 0
    local t = streamlua.topology('inactive', { message_timeout = '10s' })
    t:spout('1', streamlua.spout {
      fields = { 'value' },
      open = function() opened = opened + 1 end,
      next_tuple = function() return false end,
    })
    t:bolt('2', streamlua.bolt {
      prepare = function() prepared = prepared + 1 end,
      execute = function() end,
    }):global('1')
    local cluster = way.run(t, { deactivated = true })
    cluster:advance('11s'):feed('1', { 'a' }, 1):advance('9s')
    assert.same({ 0, 0 }, { opened, prepared })
    assert.same({}, cluster:outputs('1'))
    cluster:activate():advance('12s')
    assert.same({ 1, 1 }, { opened, prepared })
    assert.same({ 1 }, cluster:acked('1'))
    assert.same({}, cluster:failed('1'))
  end)

  it('A8: counts words by task and acks each of them', function()
    local function counter()
      return streamlua.bolt {
        fields = { 'word', 'count' },
        prepare = function(self) self.counts = {} end,
        execute = function(self, tuple, collector)
          local n = (self.counts[tuple.word] or 0) + 1
          self.counts[tuple.word] = n
          collector:emit({ tuple.word, n })
        end,
      }
    end
    local function total()
      return streamlua.bolt {
        fields = { 'n' },
        execute = function(self, _, collector)
          self.n = (self.n or 0) + 1
          collector:emit({ self.n })
        end,
      }
    end
    local t = streamlua.topology('words')
    t:spout('words', feeder({ 'word' }), { parallelism = 3 })
    t:bolt('counter', counter(), { parallelism = 4 }):fields('words', { 'word' })
    t:bolt('total', total()):global('words')
    t:bolt('aggregate', total()):global('total')
    local cluster = way.run(t, { mock = { words = { { 'nathan' }, { 'bob' }, { 'joey' },
      { 'nathan' } } } }):wait()
    local counts = {}
    for i, values in ipairs(cluster:outputs('counter')) do
      counts[i] = values[1] .. ' ' .. values[2]
    end
    assert.same({ 'bob 1', 'joey 1', 'nathan 1', 'nathan 2' }, sorted(counts))
    assert.same({ { 1 }, { 2 }, { 3 }, { 4 } }, cluster:outputs('total'))
    assert.same({ { 1 }, { 2 }, { 3 }, { 4 } }, cluster:outputs('aggregate'))
    assert.same({ 1, 2, 3, 4 }, sorted(cluster:acked('words')))
  end)

  it('A9: gives each of six tasks the tuple of an all grouping once', function()
    local t = streamlua.topology('tasks')
    t:spout('1', feeder())
    t:bolt('2', streamlua.bolt {
      fields = { 'index' },
      prepare = function(self, context) self.index = context.index end,
      execute = function(self, _, collector) collector:emit({ self.index }) end,
    }, { parallelism = 6 }):all('1')
    local cluster = way.run(t, { mock = { ['1'] = { { 'a' } } } }):wait()
    assert.same({ 0, 1, 2, 3, 4, 5 }, sorted(ways.firsts(cluster:outputs('2'))))
    assert.same({ 1 }, cluster:acked('1'))
  end)

  -- spout -> hold (manual), whose emits go to `leaf` (manual too)
  local function two_holders(config)
    local held, leaves = {}, {}
    local t = streamlua.topology('held', config)
    t:spout('spout', feeder())
    add_holder(t, 'hold', held):shuffle('spout')
    add_holder(t, 'leaf', leaves):shuffle('hold')
    local cluster = way.run(t, { mock = { spout = {}, control = {} } })
    return cluster, held, leaves
  end

  it('anchors one tuple on several, and fails all their roots when it fails', function()
    local cluster, held, leaves = two_holders()
    cluster:feed('spout', { 'a' }, 'a'):feed('spout', { 'b' }, 'b'):feed('spout', { 'c' }, 'c')
    held.perform(cluster, function(collector)
      collector:emit({ 'both' }, { anchors = { held[1], held[2] } })
      for i = 1, 3 do collector:ack(held[i]) end
    end)
    assert.same({ 'c' }, cluster:acked('spout'))
    assert.equal(1, #leaves)
    leaves.perform(cluster, function(collector) collector:fail(leaves[1]) end)
    assert.same({ 'a', 'b' }, sorted(cluster:failed('spout')))
  end)

  it('keeps a root until every tuple anchored on it is acked', function()
    local cluster, held, leaves = two_holders()
    cluster:feed('spout', { 'a' }, 1)
    held.perform(cluster, function(collector)
      for i = 1, 3 do collector:emit({ i }, { anchors = { held[1] } }) end
      collector:ack(held[1])
    end)
    for i = 1, 3 do
      assert.same({}, cluster:acked('spout'))
      leaves.perform(cluster, function(collector) collector:ack(leaves[i]) end)
    end
    assert.same({ 1 }, cluster:acked('spout'))
  end)

  it('takes the same tuple twice as two anchors', function()
    local cluster, held, leaves = two_holders()
    cluster:feed('spout', { 'a' }, 1)
    held.perform(cluster, function(collector)
      collector:emit({ 'x' }, { anchors = { held[1], held[1] } })
      collector:ack(held[1])
    end)
    assert.same({}, cluster:acked('spout'))
    leaves.perform(cluster, function(collector) collector:ack(leaves[1]) end)
    assert.same({ 1 }, cluster:acked('spout'))
  end)

  it('lets a bolt anchor on itself: it reads the stream that it emits', function()
    local t = streamlua.topology('self')
    t:spout('spout', feeder({ 'n' }))
    t:bolt('loop', streamlua.bolt {
      fields = { 'n' },
      execute = function(_, tuple, collector)
        if tuple.n > 0 then collector:emit({ tuple.n - 1 }) end
      end,
    }, { parallelism = 2 }):shuffle('spout'):shuffle('loop')
    local cluster = way.run(t, { mock = { spout = { { 5 }, { 0 }, { 3 } } } }):wait()
    assert.same({ 1, 2, 3 }, sorted(cluster:acked('spout')))
    assert.equal(8, #cluster:outputs('loop'))
  end)

  it('tracks nothing when the anchors are an empty list or the root has no id', function()
    local cluster, held, leaves = two_holders()
    cluster:feed('spout', { 'a' }, 1):feed('spout', { 'b' })
    held.perform(cluster, function(collector)
      collector:emit({ 'x' }, { anchors = {} })
      collector:emit({ 'y' }, { anchors = { held[2] } })
      collector:ack(held[1])
    end)
    assert.same({ 1 }, cluster:acked('spout'))
    assert.equal(2, #leaves)
    leaves.perform(cluster, function(collector)
      collector:fail(leaves[1])
      collector:fail(leaves[2])
    end)
    assert.same({}, cluster:failed('spout'))
  end)

  it('remembers a fail that comes before the tree is known', function()
    -- The emits wait for room in the middle of a tuple's copies; the first receiver executes and fails
    -- its copy while the others are not written yet.
    local t = streamlua.topology('early')
    t:spout('spout', streamlua.spout {
      fields = { 'text' },
      next_tuple = function(_, collector)
        for i = 1, 300 do collector:emit({ ('x'):rep(1000) }, { id = i }) end
        return streamlua.DONE
      end,
    })
    t:bolt('bad', streamlua.bolt {
      manual_ack = true,
      execute = function(_, tuple, collector) collector:fail(tuple) end,
    }):all('spout')
    t:bolt('good', sink, { parallelism = 150 }):all('spout')
    local cluster = way.run(t):wait()
    assert.equal(300, #cluster:failed('spout'))
    assert.same({}, cluster:acked('spout'))
    assert.equal(300 * 150, cluster:stats().good.executed)
  end)

  it('ignores what comes after the end of a tree, also when its slot is used again', function()
    local one, two = {}, {}
    local t = streamlua.topology('late')
    t:spout('spout', feeder())
    add_holder(t, 'one', one):shuffle('spout')
    add_holder(t, 'two', two):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = {}, control = {} } })
    cluster:feed('spout', { 'a' }, 'a')
    two.perform(cluster, function(collector) collector:fail(two[1]) end)
    assert.same({ 'a' }, cluster:failed('spout'))
    -- The next root has the slot of the first.
    cluster:feed('spout', { 'b' }, 'b')
    one.perform(cluster, function(collector)
      collector:ack(one[1])
      collector:fail(one[1])
      collector:ack(one[1])
    end)
    assert.same({ 'a' }, cluster:failed('spout'))
    assert.same({}, cluster:acked('spout'))
    one.perform(cluster, function(collector) collector:ack(one[2]) end)
    assert.same({}, cluster:acked('spout'))
    two.perform(cluster, function(collector)
      collector:ack(two[2])
      collector:ack(two[2])
      collector:fail(two[2])
    end)
    assert.same({ 'b' }, cluster:acked('spout'))
    assert.same({ 'a' }, cluster:failed('spout'))
  end)

  it('ignores the ack of a tuple whose root has timed out', function()
    local held = {}
    local t = streamlua.topology('late', { message_timeout = '4s' })
    t:spout('spout', feeder())
    add_holder(t, 'hold', held):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = {}, control = {} } })
    cluster:feed('spout', { 'a' }, 'a'):advance('6s')
    assert.same({ 'a' }, cluster:failed('spout'))
    held.perform(cluster, function(collector) collector:ack(held[1]) end)
    cluster:feed('spout', { 'b' }, 'b')
    held.perform(cluster, function(collector) collector:ack(held[1]) end)
    assert.same({}, cluster:acked('spout'))
    held.perform(cluster, function(collector) collector:ack(held[2]) end)
    assert.same({ 'b' }, cluster:acked('spout'))
    assert.same({ 'a' }, cluster:failed('spout'))
  end)

  it('starts the time-out again on reset_timeout, without acking or failing', function()
    local held = {}
    local t = streamlua.topology('reset', { message_timeout = '10s' })
    t:spout('spout', feeder())
    add_holder(t, 'hold', held):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = {}, control = {} } })
    cluster:feed('spout', { 'a' }, 'a'):feed('spout', { 'b' }, 'b')
    for _ = 1, 5 do
      cluster:advance('8s')
      held.perform(cluster, function(collector) collector:reset_timeout(held[1]) end)
    end
    assert.same({ 'b' }, cluster:failed('spout'))
    assert.same({}, cluster:acked('spout'))
    held.perform(cluster, function(collector) collector:ack(held[1]) end)
    assert.same({ 'a' }, cluster:acked('spout'))
    cluster:feed('spout', { 'c' }, 'c'):advance('8s')
    held.perform(cluster, function(collector) collector:reset_timeout(held[3]) end)
    cluster:advance('9s')
    assert.same({ 'b' }, cluster:failed('spout'))
    cluster:advance('7s')
    assert.same({ 'b', 'c' }, cluster:failed('spout'))
  end)

  it('resets the time-out of the tuple being executed in a bolt that acks automatically', function()
    local kept = {}
    local t = streamlua.topology('reset', { message_timeout = '10s' })
    t:spout('spout', feeder())
    t:bolt('slow', branch(1)):shuffle('spout')
    t:bolt('reset', streamlua.bolt {
      fields = { 'value' },
      execute = function(_, tuple, collector)
        collector:reset_timeout(tuple)
        collector:emit({ tuple.value })
      end,
    }):shuffle('slow')
    add_holder(t, 'hold', kept):shuffle('reset')
    local cluster = way.run(t, { mock = { spout = {}, control = {} } })
    cluster:feed('spout', { 'a' }, 'a'):advance('10s')
    assert.same({}, cluster:failed('spout'))
    kept.perform(cluster, function(collector) collector:ack(kept[1]) end)
    assert.same({ 'a' }, cluster:acked('spout'))
  end)

  it('acks a tuple of a stream that nobody reads at once', function()
    local t = streamlua.topology('unread')
    t:spout('spout', streamlua.spout {
      streams = { default = { 'value' }, aside = { 'value' } },
      next_tuple = function() return false end,
    })
    t:bolt('sink', streamlua.bolt {
      manual_ack = true, execute = function() end,
    }):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = {
      { values = { 'x' }, id = 'unread', stream = 'aside' },
      { values = { 'y' }, id = 'read' },
    } } }):wait()
    assert.same({ 'unread' }, cluster:acked('spout'))
    assert.same({ { 'x' } }, cluster:outputs('spout', 'aside'))
  end)

  it('acks a bolt tuple whose children nobody reads', function()
    local t = streamlua.topology('childless')
    t:spout('spout', feeder())
    t:bolt('branch', branch(3)):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = { { 'x' } } } }):wait()
    assert.same({ 1 }, cluster:acked('spout'))
    assert.equal(3, #cluster:outputs('branch'))
  end)

  it('acks at once when acking is off', function()
    local t = streamlua.topology('off', { acking = false, message_timeout = '1s' })
    t:spout('spout', feeder())
    t:bolt('sink', streamlua.bolt {
      fields = { 'value' },
      manual_ack = true,
      execute = function(_, tuple, collector)
        collector:emit({ tuple.value }, { anchors = { tuple } })
        collector:fail(tuple)
      end,
    }):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = { { 'x' }, { 'y' } } } }):wait():advance('10s')
    assert.same({ 1, 2 }, cluster:acked('spout'))
    assert.same({}, cluster:failed('spout'))
    assert.equal(2, #cluster:outputs('sink'))
  end)

  it('has no more than max_spout_pending roots open', function()
    local held = {}
    local t = streamlua.topology('pending', { max_spout_pending = 3 })
    t:spout('spout', feeder())
    add_holder(t, 'hold', held):shuffle('spout')
    local mocks = {}
    for i = 1, 10 do mocks[i] = { i } end
    local cluster = way.run(t, { mock = { spout = mocks, control = {} } })
    assert.equal(3, #held)
    held.perform(cluster, function(collector) collector:ack(held[2]) end)
    assert.equal(4, #held)
    held.perform(cluster, function(collector) collector:fail(held[1]) end)
    assert.equal(5, #held)
    for i = 1, 10 do held.perform(cluster, function(collector) collector:ack(held[i]) end) end
    assert.equal(9, #cluster:acked('spout'))
    assert.same({ 1 }, cluster:failed('spout'))
  end)

  it('fails every root after more than T and at most 1.5 T, whenever it began', function()
    local failed_at = {}
    local t = streamlua.topology('times', { message_timeout = '10s' })
    t:spout('spout', streamlua.spout {
      fields = { 'value' },
      open = function(self, context) self.context = context end,
      next_tuple = function() return false end,
      fail = function(self, id) failed_at[#failed_at + 1] = { id, self.context:now() } end,
    })
    t:bolt('never', streamlua.bolt { manual_ack = true, execute = function() end }):shuffle('spout')
    local cluster = way.run(t)
    for _ = 1, 40 do
      cluster:advance('700ms')
      local now = cluster:now()
      cluster:feed('spout', { now }, now)
    end
    cluster:advance('30s')
    assert.equal(40, #failed_at)
    for _, entry in ipairs(failed_at) do
      local age = entry[2] - entry[1]
      assert.is_true(age > 10000 and age <= 15000, 'failed after ' .. age)
    end
  end)

  it('fails the very first tuple in time too', function()
    local t = streamlua.topology('first', { message_timeout = '10s' })
    t:spout('spout', feeder())
    t:bolt('never', streamlua.bolt { manual_ack = true, execute = function() end }):shuffle('spout')
    local cluster = way.run(t, { mock = { spout = { { 1 } } } })
    cluster:advance('10s')
    assert.same({}, cluster:failed('spout'))
    cluster:advance('5s')
    assert.same({ 1 }, cluster:failed('spout'))
  end)

  it('acks two spouts by their own ids, and equal ids as roots of their own', function()
    local held = {}
    local t = streamlua.topology('two')
    t:spout('left', feeder())
    t:spout('right', feeder())
    add_holder(t, 'hold', held):shuffle('left'):shuffle('right')
    local cluster = way.run(t, { mock = { left = {}, right = {}, control = {} } })
    cluster:feed('left', { 'a' }, 'same'):feed('right', { 'b' }, 'same')
    cluster:feed('left', { 'c' }, 'same')
    held.perform(cluster, function(collector)
      collector:ack(held[1])
      collector:fail(held[2])
    end)
    assert.same({ 'same' }, cluster:acked('left'))
    assert.same({ 'same' }, cluster:failed('right'))
    held.perform(cluster, function(collector) collector:ack(held[3]) end)
    assert.same({ 'same', 'same' }, cluster:acked('left'))
    assert.same({}, cluster:acked('right'))
  end)

  it('calls next_tuple only while fewer than max_spout_pending roots are open', function()
    local calls = 0
    local t = streamlua.topology('pairs', { max_spout_pending = 5 })
    t:spout('spout', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(_, collector)
        calls = calls + 1
        collector:emit({ calls }, { id = calls })
        collector:emit({ -calls }, { id = -calls })
      end,
    })
    t:bolt('never', streamlua.bolt { manual_ack = true, execute = function() end }):shuffle('spout')
    local cluster = way.run(t):advance('1s')
    assert.equal(3, calls)
    assert.equal(6, cluster:stats().spout.pending)
  end)

  it('ticks bolts while a call of next_tuple waits for their acks', function()
    local t = streamlua.topology('batches', { max_spout_pending = 4, message_timeout = '1h' })
    t:spout('spout', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(_, collector)
        for i = 1, 20 do collector:emit({ i }, { id = i }) end
        return streamlua.DONE
      end,
    })
    t:bolt('batch', streamlua.bolt {
      manual_ack = true,
      tick_every = '1s',
      prepare = function(self) self.held = {} end,
      execute = function(self, tuple) self.held[#self.held + 1] = tuple end,
      tick = function(self, collector)
        for _, tuple in ipairs(self.held) do collector:ack(tuple) end
        self.held = {}
      end,
    }):shuffle('spout')
    local cluster = way.run(t):advance('10s')
    assert.equal(20, #cluster:acked('spout'))
  end)

  it('waits inside one call of next_tuple that emits more ids than may be pending', function()
    local acked = {}
    local t = streamlua.topology('many', { max_spout_pending = 4 })
    t:spout('spout', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(_, collector)
        for i = 1, 100 do collector:emit({ i }, { id = i }) end
        return streamlua.DONE
      end,
      ack = function(_, id) acked[#acked + 1] = id end,
    })
    t:bolt('echo', branch(1)):shuffle('spout')
    t:bolt('sink', sink, { parallelism = 3 }):shuffle('echo')
    local cluster = way.run(t):wait()
    assert.equal(100, #acked)
    assert.same(sorted(acked), sorted(cluster:acked('spout')))
    assert.equal(0, cluster:stats().spout.pending)
  end)

  it('never calls ack or fail inside an emit', function()
    local is_inside, wrong, told = false, 0, 0
    local function tell()
      told = told + 1
      if is_inside then wrong = wrong + 1 end
    end
    local t = streamlua.topology('outside', { max_spout_pending = 4 })
    t:spout('spout', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(self, collector)
        self.n = (self.n or 0) + 1
        if self.n > 5 then return streamlua.DONE end
        is_inside = true
        for i = 1, 50 do collector:emit({ i }, { id = i }) end
        is_inside = false
      end,
      ack = tell,
      fail = tell,
    })
    t:bolt('half', streamlua.bolt {
      manual_ack = true,
      execute = function(_, tuple, collector)
        if tuple.n % 2 == 0 then collector:ack(tuple) else collector:fail(tuple) end
      end,
    }):shuffle('spout')
    local cluster = way.run(t):wait()
    assert.equal(250, told)
    assert.equal(0, wrong)
    assert.equal(0, cluster:stats().spout.pending)
  end)

  it('lets ack and fail emit, also more than may be pending', function()
    local told = {}
    local t = streamlua.topology('again', { max_spout_pending = 2 })
    t:spout('spout', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(self, collector)
        self.collector = collector
        if self.has_begun then return streamlua.DONE end
        self.has_begun = true
        for i = 1, 4 do collector:emit({ 'first' }, { id = 'first ' .. i }) end
      end,
      ack = function(_, id) told[#told + 1] = 'acked ' .. id end,
      fail = function(self, id)
        told[#told + 1] = 'failed ' .. id
        for i = 1, 5 do self.collector:emit({ 'second' }, { id = id .. '.' .. i }) end
      end,
    })
    t:bolt('second', streamlua.bolt { execute = function(_, tuple)
      if tuple.n == 'first' then error('fails') end
    end }):shuffle('spout')
    local cluster = way.run(t):wait():advance('1s'):wait()
    local expected = {}
    for i = 1, 4 do
      expected[#expected + 1] = 'failed first ' .. i
      for k = 1, 5 do expected[#expected + 1] = ('acked first %d.%d'):format(i, k) end
    end
    assert.same(sorted(expected), sorted(told))
    assert.equal(4, #cluster:failed('spout'))
    assert.equal(20, #cluster:acked('spout'))
    assert.equal(0, cluster:stats().spout.pending)
  end)

  it('opens a spout that was DONE again when a tuple fails', function()
    local calls_after = 0
    local t = streamlua.topology('reopen')
    t:spout('spout', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(self, collector)
        if self.again then
          collector:emit({ 'again' }, { id = 2 })
          self.again = nil
          calls_after = calls_after + 1
        elseif not self.has_begun then
          self.has_begun = true
          collector:emit({ 'first' }, { id = 1 })
        end
        return streamlua.DONE
      end,
      fail = function(self) self.again = true end,
    })
    t:bolt('once', streamlua.bolt {
      execute = function(_, tuple)
        if tuple.n == 'first' then error('no') end
      end,
    }):shuffle('spout')
    local cluster = way.run(t):wait()
    assert.equal(1, calls_after)
    assert.same({ 1 }, cluster:failed('spout'))
    assert.same({ 2 }, cluster:acked('spout'))
  end)

  it('acks an error in execute as a failure of that tuple alone', function()
    local executed = {}
    local t = streamlua.topology('errors')
    t:spout('spout', feeder({ 'n' }))
    t:bolt('seventh', streamlua.bolt {
      fields = { 'n' },
      execute = function(_, tuple, collector)
        executed[#executed + 1] = tuple.n
        collector:emit({ tuple.n })
        if tuple.n % 7 == 0 then error('seven') end
      end,
    }):shuffle('spout')
    t:bolt('sink', sink):shuffle('seventh')
    local mocks = {}
    for i = 1, 100 do mocks[i] = { i } end
    local cluster = way.run(t, { mock = { spout = mocks } }):wait()
    assert.equal(100, #executed)
    assert.equal(14, #cluster:failed('spout'))
    assert.equal(86, #cluster:acked('spout'))
    assert.equal(100, cluster:stats().sink.executed)
    assert.equal(14, #cluster:errors())
  end)
end)
