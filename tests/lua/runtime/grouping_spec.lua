-- The nine groupings, streams by name and direct streams: who gets a tuple, exactly.

local native = require 'streamlua.topology.native'
local streamlua = require 'streamlua'
local ways = require 'support.ways'

local function spout(fields)
  return streamlua.spout { fields = fields, next_tuple = function() return false end }
end

-- Emits the key it got and the id of its task.
local function reporter()
  return streamlua.bolt {
    fields = { 'key', 'task' },
    prepare = function(self, context) self.task = context.task end,
    execute = function(self, tuple, collector) collector:emit({ tuple[1], self.task }) end,
  }
end

local function keys(count, key_of)
  local list = {}
  for i = 1, count do list[i] = { key_of and key_of(i) or i } end
  return list
end

-- How many tuples each task got.
local function shares(outputs)
  local counts = {}
  for _, values in ipairs(outputs) do counts[values[2]] = (counts[values[2]] or 0) + 1 end
  return counts
end

local function spread(counts, tasks)
  local least, most = math.huge, 0
  for _, task in ipairs(tasks) do
    least, most = math.min(least, counts[task] or 0), math.max(most, counts[task] or 0)
  end
  return least, most
end

ways.describe('groupings', function(way)
  -- source -> sink (parallelism 6) by the grouping that `declare` adds; returns the cluster and the
  -- ids of the sink's tasks.
  local function run(declare, mocks, options)
    options = options or {}
    local t = streamlua.topology('grouping', options.config)
    t:spout('source', options.spout or spout(options.fields or { 'key' }),
      { parallelism = options.spouts or 1 })
    declare(t:bolt('sink', reporter(), { parallelism = options.parallelism or 6 }))
    local cluster = way.run(t, { mock = { source = mocks } }):wait()
    assert.same({}, cluster:errors())
    return cluster, cluster.plan.by_name.sink.tasks, t
  end

  for _, name in ipairs { 'shuffle', 'none', 'local_or_shuffle' } do
    it(name .. ' is exactly even and begins anew with every round', function()
      local cluster, tasks = run(function(d) d[name](d, 'source') end, keys(606))
      local by_key = {}
      for _, values in ipairs(cluster:outputs('sink')) do by_key[values[1]] = values[2] end
      for round = 0, 100 do
        local seen = {}
        for i = 1, 6 do seen[by_key[round * 6 + i]] = true end
        for _, task in ipairs(tasks) do assert.is_true(seen[task]) end
      end
      assert.same({ 101, 101 }, { spread(shares(cluster:outputs('sink')), tasks) })
    end)
  end

  it('shuffle differs by at most one for a number that does not divide', function()
    local cluster, tasks = run(function(d) d:shuffle('source') end, keys(100))
    assert.same({ 16, 17 }, { spread(shares(cluster:outputs('sink')), tasks) })
    assert.equal(100, #cluster:acked('source'))
  end)

  it('shuffle is even in a bolt too, for anchored and unanchored emits', function()
    local t = streamlua.topology('bolt')
    t:spout('source', spout({ 'key' }))
    t:bolt('twice', streamlua.bolt {
      fields = { 'key' },
      execute = function(_, tuple, collector)
        collector:emit({ tuple.key })
        collector:emit({ tuple.key }, { anchors = {} })
        collector:emit({ tuple.key }, { anchors = { tuple } })
      end,
    }):shuffle('source')
    t:bolt('sink', reporter(), { parallelism = 5 }):shuffle('twice')
    local cluster = way.run(t, { mock = { source = keys(50) } }):wait()
    local tasks = cluster.plan.by_name.sink.tasks
    assert.same({ 30, 30 }, { spread(shares(cluster:outputs('sink')), tasks) })
    assert.equal(50, #cluster:acked('source'))
  end)

  it('fields gives a key to the task that owns its group', function()
    local cluster, tasks, t = run(function(d) d:fields('source', { 'key' }) end,
      keys(500, function(i) return i % 2 == 0 and i or 'key ' .. i end))
    local groups = t:key_groups()
    local owners = native.assign_key_groups(tasks, groups)
    local used = {}
    for _, values in ipairs(cluster:outputs('sink')) do
      assert.equal(owners[streamlua.key_group(values[1], groups) + 1], values[2])
      used[values[2]] = true
    end
    for _, task in ipairs(tasks) do assert.is_true(used[task]) end
  end)

  it('fields takes equal values for one key: 1 and 1LL, 0 and -0, tables by content', function()
    local nan = 0 / 0
    local cluster = run(function(d) d:fields('source', { 'key' }) end, {
      { 1 }, { 1LL }, { 1ULL }, { 0 }, { -0.0 }, { nan }, { -nan }, { { a = 1, b = { 2 } } },
      { { b = { 2LL }, a = 1 } }, { values = {}, id = 10 }, { values = {}, id = 11 }, { true },
      { true }, { 'x\0y' }, { 'x\0y' },
    }, { parallelism = 16 })
    local by_kind = {}
    for _, values in ipairs(cluster:outputs('sink')) do
      local key = values[1]
      local kind = key == nil and 'nil' or type(key) == 'table' and 'table'
        or key ~= key and 'nan' or (type(key) == 'cdata' or key == 1) and 'one'
        or key == 0 and 'zero' or tostring(key)
      by_kind[kind] = by_kind[kind] or values[2]
      assert.equal(by_kind[kind], values[2], kind)
    end
    assert.is_not_nil(by_kind['nil'])
  end)

  it('fields goes by all the named fields together', function()
    local mocks = {}
    for a = 1, 20 do
      for b = 1, 5 do
        for c = 1, 2 do mocks[#mocks + 1] = { a, c, 'b' .. b } end
      end
    end
    local t = streamlua.topology('two')
    t:spout('source', spout({ 'a', 'c', 'b' }))
    t:bolt('sink', streamlua.bolt {
      fields = { 'key', 'task' },
      prepare = function(self, context) self.task = context.task end,
      execute = function(self, tuple, collector)
        collector:emit({ tuple.a .. ' ' .. tuple.b, self.task })
      end,
    }, { parallelism = 7 }):fields('source', { 'a', 'b' })
    local cluster = way.run(t, { mock = { source = mocks } }):wait()
    local owner, used, count = {}, {}, 0
    for _, values in ipairs(cluster:outputs('sink')) do
      owner[values[1]] = owner[values[1]] or values[2]
      assert.equal(owner[values[1]], values[2])
      if not used[values[2]] then count = count + 1 end
      used[values[2]] = true
    end
    assert.equal(7, count)
  end)

  it('fields agrees for every emitting task and stream', function()
    local t = streamlua.topology('agree')
    t:spout('one', spout({ 'key' }), { parallelism = 3 })
    t:spout('two', spout({ 'x', 'key' }))
    t:bolt('sink', streamlua.bolt {
      fields = { 'key', 'task' },
      prepare = function(self, context) self.task = context.task end,
      execute = function(self, tuple, collector) collector:emit({ tuple.key, self.task }) end,
    }, { parallelism = 5 }):fields('one', { 'key' }):fields('two', { 'key' })
    local first, second = keys(60), {}
    for i = 1, 60 do second[i] = { 'x', i } end
    local cluster = way.run(t, { mock = { one = first, two = second } }):wait()
    local owner = {}
    assert.equal(120, #cluster:outputs('sink'))
    for _, values in ipairs(cluster:outputs('sink')) do
      owner[values[1]] = owner[values[1]] or values[2]
      assert.equal(owner[values[1]], values[2])
    end
  end)

  it('partial_key gives a key to two tasks at most, in equal shares when it is alone', function()
    local cluster, tasks = run(function(d) d:partial_key('source', { 'key' }) end,
      keys(1001, function() return 'hot' end))
    local counts = shares(cluster:outputs('sink'))
    local used = {}
    for _, task in ipairs(tasks) do used[#used + 1] = counts[task] end
    table.sort(used)
    assert.same({ 500, 501 }, used)
  end)

  it('partial_key spreads many keys over all tasks', function()
    local cluster, tasks = run(function(d) d:partial_key('source', { 'key' }) end,
      keys(3000, function(i) return 'key ' .. i % 100 end))
    local by_key, count = {}, {}
    for _, values in ipairs(cluster:outputs('sink')) do
      local of = by_key[values[1]] or {}
      by_key[values[1]] = of
      if not of[values[2]] then count[values[1]] = (count[values[1]] or 0) + 1 end
      of[values[2]] = true
    end
    for key, n in pairs(count) do assert.is_true(n <= 2, key) end
    local least, most = spread(shares(cluster:outputs('sink')), tasks)
    assert.is_true(least > 3000 / 6 * 0.8 and most < 3000 / 6 * 1.2, least .. ' ' .. most)
  end)

  it('global gives everything to the task with the lowest id', function()
    local cluster, tasks = run(function(d) d:global('source') end, keys(50), { spouts = 2 })
    table.sort(tasks)
    assert.same({ [tasks[1]] = 50 }, shares(cluster:outputs('sink')))
  end)

  it('all gives each tuple to every task once', function()
    local cluster, tasks = run(function(d) d:all('source') end, keys(20))
    assert.same({ 20, 20 }, { spread(shares(cluster:outputs('sink')), tasks) })
    assert.equal(20, #cluster:acked('source'))
  end)

  it('direct gives a tuple to the task that the emitter names', function()
    local t = streamlua.topology('direct')
    t:spout('source', streamlua.spout {
      streams = { default = { 'key' }, to = { fields = { 'key' }, direct = true } },
      open = function(self, context) self.tasks = context:tasks('sink') end,
      next_tuple = function(self, collector)
        for i, task in ipairs(self.tasks) do
          for k = 1, i do
            collector:emit({ task }, { stream = 'to', task = task, id = i * 10 + k })
          end
        end
        return streamlua.DONE
      end,
    })
    t:bolt('sink', reporter(), { parallelism = 4 }):direct('source', 'to')
    local cluster = way.run(t):wait()
    assert.equal(10, #cluster:outputs('sink'))
    for _, values in ipairs(cluster:outputs('sink')) do assert.equal(values[1], values[2]) end
    assert.equal(10, #cluster:acked('source'))
  end)

  it('direct reaches the tasks of every component that reads the stream', function()
    local t = streamlua.topology('direct')
    t:spout('source', streamlua.spout {
      streams = { to = { fields = { 'key' }, direct = true } },
      next_tuple = function() return false end,
    })
    t:bolt('sink', reporter(), { parallelism = 2 }):direct('source', 'to')
    t:bolt('other', reporter(), { parallelism = 2 }):direct('source', 'to')
    local cluster = way.run(t, { mock = { source = {} } })
    local mocks = {}
    for _, name in ipairs { 'sink', 'other' } do
      for _, task in ipairs(cluster.plan.by_name[name].tasks) do
        mocks[#mocks + 1] = { values = { task }, stream = 'to', task = task }
      end
    end
    cluster = way.run(t, { mock = { source = mocks } }):wait()
    for _, name in ipairs { 'sink', 'other' } do
      assert.equal(2, #cluster:outputs(name))
      for _, values in ipairs(cluster:outputs(name)) do assert.equal(values[1], values[2]) end
    end
    assert.equal(4, #cluster:acked('source'))
  end)

  it('direct refuses a missing task and one that does not read the stream', function()
    local t = streamlua.topology('direct')
    t:spout('source', streamlua.spout {
      streams = { default = { 'key' }, to = { fields = { 'key' }, direct = true } },
      next_tuple = function(self, collector)
        self.n = (self.n or 0) + 1
        if self.n == 1 then collector:emit({ 1 }, { stream = 'to' }) end
        if self.n == 2 then collector:emit({ 1 }, { stream = 'to', task = 999 }) end
        if self.n == 3 then collector:emit({ 1 }, { task = 1 }) end
        return streamlua.DONE
      end,
    })
    t:bolt('sink', reporter()):direct('source', 'to')
    local cluster = way.run(t)
    cluster:advance('1s')
    local texts = {}
    for i, problem in ipairs(cluster:errors()) do texts[i] = problem.message end
    assert.matches("grouping_spec.lua:%d+: .*component 'source', stream 'to'.*options.task", texts[1])
    assert.matches("stream 'to': task 999 does not read it", texts[2])
    assert.matches('default stream is not direct', texts[3])
    assert.same({}, cluster:outputs('sink'))
  end)

  it('custom gives a tuple to the task, or the list of tasks, that the function chooses', function()
    local given
    local cluster, tasks = run(function(d)
      d:custom('source', function(values, all)
        given = all
        local n = values[1]
        if n == 1 then return all[1] end
        if n == 2 then return { all[2], all[3] } end
        if n == 3 then return {} end
        return all
      end)
    end, keys(4))
    assert.same(tasks, given)
    local got = {}
    for _, values in ipairs(cluster:outputs('sink')) do
      got[values[1]] = got[values[1]] or {}
      table.insert(got[values[1]], values[2])
    end
    for _, list in pairs(got) do table.sort(list) end
    assert.same({ [1] = { tasks[1] }, [2] = { tasks[2], tasks[3] }, [4] = tasks }, got)
    -- The one that goes nowhere is acked like any tuple that nobody reads.
    assert.equal(4, #cluster:acked('source'))
  end)

  it('custom refuses nothing, and tasks that are not the readers', function()
    local answers = { 999, { 0 }, 'first', false }
    for i = 1, #answers + 1 do
      local answer = answers[i]
      local t = streamlua.topology('custom')
      t:spout('source', spout({ 'key' }))
      t:bolt('pass', streamlua.bolt {
        fields = { 'key' },
        execute = function(_, tuple, collector) collector:emit(tuple) end,
      }):shuffle('source')
      t:bolt('sink', reporter(), { parallelism = 2 }):custom('pass', function() return answer end)
      local cluster = way.run(t, { mock = { source = keys(1) } }):wait()
      assert.equal(1, #cluster:errors())
      assert.matches("component 'pass', stream 'default': the custom grouping of 'sink' "
        .. (i > #answers and 'returned nothing' or 'chose'),
        cluster:errors()[1].message)
      assert.same({ 1 }, cluster:failed('source'))
    end
  end)

  it('gives every reader of a stream its copy', function()
    local t = streamlua.topology('readers')
    t:spout('source', spout({ 'key' }))
    t:bolt('a', reporter(), { parallelism = 3 }):shuffle('source')
    t:bolt('b', reporter(), { parallelism = 2 }):all('source')
    t:bolt('c', reporter(), { parallelism = 2 }):fields('source', { 'key' })
    local cluster = way.run(t, { mock = { source = keys(30) } }):wait()
    assert.equal(30, #cluster:outputs('a'))
    assert.equal(60, #cluster:outputs('b'))
    assert.equal(30, #cluster:outputs('c'))
    assert.equal(30, #cluster:acked('source'))
  end)

  it('keeps named streams apart', function()
    local t = streamlua.topology('named')
    t:spout('source', spout({ 'n' }))
    t:bolt('sort', streamlua.bolt {
      streams = { default = { 'key' }, odd = { 'key' }, info = { 'a', 'b' } },
      execute = function(_, tuple, collector)
        collector:emit({ tuple.n }, tuple.n % 2 == 1 and { stream = 'odd' } or nil)
        collector:emit({ tuple.n, 'info' }, { stream = 'info' })
      end,
    }):shuffle('source')
    local function named(fields)
      return streamlua.bolt {
        fields = { 'stream', 'component', 'value' },
        execute = function(_, tuple, collector)
          assert(table.concat(streamlua.tuple.fields(tuple), ',') == fields)
          collector:emit({ streamlua.tuple.stream(tuple), streamlua.tuple.component(tuple), tuple[1] })
        end,
      }
    end
    t:bolt('even', named('key')):shuffle('sort')
    t:bolt('odd', named('key')):shuffle('sort', 'odd')
    t:bolt('info', named('a,b')):shuffle('sort', 'info')
    local cluster = way.run(t, { mock = { source = keys(4) } }):wait()
    assert.same({}, cluster:errors())
    assert.same({ { 'default', 'sort', 2 }, { 'default', 'sort', 4 } }, cluster:outputs('even'))
    assert.same({ { 'odd', 'sort', 1 }, { 'odd', 'sort', 3 } }, cluster:outputs('odd'))
    assert.equal(4, #cluster:outputs('info'))
    assert.equal(4, #cluster:acked('source'))
  end)

  it('keeps the order of a stream between two tasks, in whatever way it is emitted', function()
    local t = streamlua.topology('order')
    t:spout('source', streamlua.spout {
      streams = { default = { 'from', 'n', 'text' }, side = { 'from', 'n', 'text' } },
      open = function(self, context) self.index, self.n = context.index, 0 end,
      next_tuple = function(self, collector)
        for _ = 1, 7 do
          self.n = self.n + 1
          local text = ('x'):rep(self.n * 37 % 700)
          collector:emit({ self.index, self.n, text }, self.n % 3 == 0 and { id = self.n } or nil)
          collector:emit({ self.index, self.n, text }, { stream = 'side' })
        end
        if self.n > 1500 then return streamlua.DONE end
      end,
    }, { parallelism = 3 })
    t:bolt('relay', streamlua.bolt {
      fields = { 'from', 'n', 'text' },
      execute = function(_, tuple, collector)
        collector:emit(tuple, tuple.n % 5 == 0 and { anchors = { tuple, tuple } } or nil)
      end,
    }, { parallelism = 2 }):fields('source', { 'from' })
    local wrong, seen = {}, 0
    local function checker()
      return streamlua.bolt {
        prepare = function(self) self.last = {} end,
        execute = function(self, tuple)
          local source = streamlua.tuple.task(tuple) .. streamlua.tuple.stream(tuple) .. tuple.from
          if (self.last[source] or 0) >= tuple.n then wrong[#wrong + 1] = source end
          self.last[source] = tuple.n
          seen = seen + 1
        end,
      }
    end
    t:bolt('shuffled', checker(), { parallelism = 3 }):shuffle('relay'):all('source', 'side')
    t:bolt('all', checker(), { parallelism = 2 }):all('relay')
    local cluster = way.cluster({ capture = false }):run(t, way.options()):wait()
    assert.same({}, cluster:errors())
    assert.same({}, wrong)
    local emitted = cluster:stats().relay.emitted
    assert.is_true(emitted > 4000)
    assert.equal(emitted * 3 + emitted * 3, seen)
  end)
end)

describe('fields, of more keys than an emit remembers the way of', function()
  local way = ways.simple()
  after_each(way.clean)

  it('gives each to the task that owns its group', function()
    local counts, wrong, total = {}, 0, 0
    local groups = 128
    local t = streamlua.topology('many-keys', { key_groups = groups })
    t:spout('source', streamlua.spout {
      fields = { 'key' },
      next_tuple = function(self, collector)
        self.i = (self.i or 0) + 1
        if self.i > 200 then return streamlua.DONE end
        for k = 1, 500 do
          -- Some come again all the time, others once.
          collector:emit({ k % 5 == 0 and 'key' .. k or ('%d.%d'):format(self.i, k) })
        end
        collector:emit({ ('long'):rep(30) })
      end,
    })
    t:bolt('sink', streamlua.bolt {
      prepare = function(self, context) self.index = context.index end,
      execute = function(self, tuple)
        local group = streamlua.key_group(tuple.key, groups)
        if math.floor(group / (groups / 4)) ~= self.index then wrong = wrong + 1 end
        counts[self.index] = (counts[self.index] or 0) + 1
        total = total + 1
      end,
    }, { parallelism = 4 }):fields('source', { 'key' })
    local cluster = way.run(t):wait()
    assert.same({}, cluster:errors())
    assert.equal(0, wrong)
    assert.equal(200 * 501, total)
    for index = 0, 3 do assert.is_true(counts[index] > 20000) end
  end)
end)
