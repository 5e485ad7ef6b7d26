-- What an emit takes and what arrives: types of values, their errors, copies, tuples that are kept.

local abi = require 'streamlua.abi'
local memory = require 'support.memory'
local streamlua = require 'streamlua'
local ways = require 'support.ways'
local ffi = abi.ffi

local function spout(fields)
  return streamlua.spout { fields = fields, next_tuple = function() return false end }
end

-- Each way of writing a record: to one receiver, to several, with several anchors, to nobody.
local routes = {
  ['one reader'] = function(t) t:bolt('sink', t.sink):shuffle('make') end,
  ['two readers'] = function(t)
    t:bolt('sink', t.sink):shuffle('make')
    t:bolt('other', streamlua.bolt { execute = function() end }):all('make')
  end,
  ['a key'] = function(t)
    t:bolt('sink', t.sink, { parallelism = 3 }):fields('make', { 'value' })
  end,
}

for route_name, declare in pairs(routes) do
  ways.describe('values through ' .. route_name, function(way)
    -- What `make` emits arrives at `sink`, which gives each tuple to `check`.
    local function pass(emit, check, fields)
      local t = streamlua.topology('values')
      t:spout('source', spout({ 'n' }))
      t:bolt('make', streamlua.bolt {
        fields = fields or { 'value' },
        execute = function(_, _, collector) emit(collector) end,
      }):shuffle('source')
      local got = {}
      rawset(t, 'sink', streamlua.bolt {
        execute = function(_, tuple)
          got[#got + 1] = tuple
          if check then check(tuple) end
        end,
      })
      declare(t)
      local cluster = way.run(t, { mock = { source = { { 1 } } } }):wait()
      return got, cluster
    end

    it('arrive as what they were', function()
      local list = { true, false, 0, -1.5, 1 / 0, 2 ^ 53, '', 'text', 'any\0byte\255', ('x'):rep(5000),
        streamlua.null, -5LL, 18446744073709551615ULL, {}, { 1, 2, { 3 } }, { a = { b = { c = 1 } } } }
      local got, cluster = pass(function(collector)
        for i = 1, #list do collector:emit({ list[i] }) end
      end)
      assert.same({}, cluster:errors())
      assert.equal(#list, #got)
      local by_text = {}
      local function text(v)
        return type(v) .. (type(v) == 'cdata' and tostring(ffi.typeof(v)) or '')
          .. (type(v) == 'table' and require('streamlua.runtime.value').encode(v) or tostring(v))
      end
      for _, tuple in ipairs(got) do by_text[text(tuple.value)] = true end
      for i = 1, #list do assert.is_true(by_text[text(list[i])], text(list[i])) end
    end)

    it('that are missing or nil are nil', function()
      local got = pass(function(collector)
        collector:emit({})
        collector:emit({ 1 })
        collector:emit({ nil, nil, 3 })
      end, nil, { 'value', 'b', 'c' })
      assert.equal(3, #got)
      local seen = {}
      for _, tuple in ipairs(got) do
        seen[tostring(tuple.value) .. tostring(tuple.b) .. tostring(tuple.c)] = true
        assert.equal(tuple[1], tuple.value)
        assert.equal(tuple[2], tuple.b)
        assert.equal(tuple[3], tuple.c)
      end
      assert.same({ ['nilnilnil'] = true, ['1nilnil'] = true, ['nilnil3'] = true }, seen)
    end)

    it('can be a tuple as it came', function()
      local t = streamlua.topology('pass-on')
      t:spout('source', spout({ 'a', 'value', 'b' }))
      t:bolt('make', streamlua.bolt {
        fields = { 'a', 'value', 'b' },
        execute = function(_, tuple, collector) collector:emit(tuple) end,
      }):shuffle('source')
      rawset(t, 'sink', streamlua.bolt {
        fields = { 'x', 'y', 'z' },
        execute = function(_, tuple, collector) collector:emit(tuple) end,
      })
      declare(t)
      local cluster = way.run(t, { mock = { source = { { 1, 'two', { 3 } } } } }):wait()
      assert.same({ { 1, 'two', { 3 } } }, cluster:outputs('sink'))
    end)

    it('are what they were when they were emitted', function()
      local got = pass(function(collector)
        local shared = { n = 1, list = { 1 } }
        collector:emit({ shared })
        shared.n = 2
        shared.list[1] = 'changed'
        local values = { shared }
        collector:emit(values)
        values[1] = 'other'
        shared.list = nil
      end, function(tuple) tuple.value.seen = true end)
      local by_n = {}
      for _, tuple in ipairs(got) do by_n[tuple.value.n] = tuple.value end
      assert.same({ { n = 1, list = { 1 }, seen = true }, { n = 2, list = { 'changed' }, seen = true } },
        by_n)
    end)

    it('are each tuple\'s own in a bolt with a loop, whether it keeps tuples or not', function()
      local fed = { { 1, 'x' }, { nil, { 2 } }, { 'three', nil }, { true, { 4 } } }
      local function seen_by(execute)
        local t = streamlua.topology('loops')
        t:spout('source', spout({ 'a', 'b' }))
        t:bolt('sink', streamlua.bolt { execute = execute }):shuffle('source')
        local cluster = way.run(t, { mock = { source = fed } }):wait()
        assert.same({}, cluster:errors())
      end
      local values, tuples, read = {}, {}, 0
      seen_by(function(_, tuple)
        for i, name in ipairs({ 'a', 'b' }) do values[#values + 1] = { tuple[i], tuple[name] } end
      end)
      seen_by(function(_, tuple)
        for _ in pairs(tuple) do read = read + 1 end
        tuples[#tuples + 1] = tuple
      end)
      assert.same({ { 1, 1 }, { 'x', 'x' }, {}, { { 2 }, { 2 } }, { 'three', 'three' }, {}, { true, true },
        { { 4 }, { 4 } } }, values)
      assert.equal(12, read)
      for i, tuple in ipairs(tuples) do
        assert.same({ fed[i][1], fed[i][2] }, { tuple[1], tuple[2] })
        assert.equal('source', streamlua.tuple.component(tuple))
      end
    end)

    it('of megabytes arrive', function()
      local big = ('0123456789'):rep(300000)
      local got = pass(function(collector)
        for i = 1, 5 do
          collector:emit({ 'small' .. i })
          collector:emit({ big })
        end
      end)
      assert.equal(10, #got)
      local count = 0
      for _, tuple in ipairs(got) do
        if tuple.value == big then count = count + 1 end
      end
      assert.equal(5, count)
    end)

    it('of other types are refused, by component, stream and field', function()
      local cycle = {}
      cycle.again = cycle
      local deep = {}
      for _ = 2, 17 do deep = { deep } end
      local problems = {}
      local _, cluster = pass(function(collector)
        for _, bad in ipairs { print, io.stdout, coroutine.create(print), ffi.new('int[2]'), cycle, deep,
          { { print } }, { [{}] = 1 } } do
          local ok, problem = pcall(collector.emit, collector, { 'fine', bad })
          assert(not ok)
          problems[#problems + 1] = tostring(problem)
        end
      end, nil, { 'value', 'second' })
      assert.same({}, cluster:errors())
      assert.same({}, cluster:outputs('make'))
      assert.equal(8, #problems)
      for i, what in ipairs { 'function', 'userdata', 'thread', 'cdata', 'cycle', 'deeper than 16',
        'function', 'table as a table key' } do
        assert.matches("emit_spec.lua:%d+: .*component 'make'.*stream 'default'.*field 'second'",
          problems[i])
        assert.matches(what, problems[i])
      end
    end)

    it('of 16 levels are taken', function()
      local deep = { 'bottom' }
      for _ = 2, 16 do deep = { deep } end
      local got = pass(function(collector) collector:emit({ deep }) end)
      assert.same(deep, got[1].value)
    end)

    it('that are too many, or no table, are refused', function()
      local problems = {}
      pass(function(collector)
        for _, bad in ipairs { { 1, 2, 3 }, 'text', 5 } do
          local ok, problem = pcall(collector.emit, collector, bad)
          assert(not ok)
          problems[#problems + 1] = tostring(problem)
        end
        local ok, problem = pcall(collector.emit, collector, nil)
        assert(not ok)
        problems[4] = tostring(problem)
      end, nil, { 'value', 'second' })
      assert.matches("component 'make', stream 'default': more values than", problems[1])
      assert.matches("must be a table, got string", problems[2])
      assert.matches("must be a table, got number", problems[3])
      assert.matches("must be a table, got nil", problems[4])
    end)
  end)
end

ways.describe('emits', function(way)
  it('of spouts and bolts refuse wrong streams, ids, options and anchors', function()
    local texts = {}
    local function try(...)
      local ok, problem = pcall(...)
      texts[#texts + 1] = ok and 'fine' or tostring(problem)
    end
    local t = streamlua.topology('wrong')
    t:spout('source', streamlua.spout {
      fields = { 'n' },
      next_tuple = function(_, collector)
        try(collector.emit, collector, { 1 }, { stream = 'none' })
        try(collector.emit, collector, { 1 }, { id = {} })
        try(collector.emit, collector, { 1 }, { id = true })
        try(collector.emit, collector, { 1 }, 'options')
        try(collector.emit, collector, { 1 }, { id = 'good' })
        return streamlua.DONE
      end,
    })
    t:bolt('bolt', streamlua.bolt {
      streams = { only = { 'n' } },
      execute = function(_, tuple, collector)
        try(collector.emit, collector, { 1 })
        try(collector.emit, collector, { 1 }, { stream = 'only', anchors = 'tuple' })
        try(collector.emit, collector, { 1 }, { stream = 'only', anchors = { {} } })
        try(collector.ack, collector, tuple)
        try(collector.fail, collector, tuple)
        try(collector.reset_timeout, collector, {})
      end,
    }):shuffle('source')
    local cluster = way.run(t):wait()
    assert.matches("component 'source' has no stream 'none'", texts[1])
    assert.matches("id must be a string or a number, got table", texts[2])
    assert.matches("id must be a string or a number, got boolean", texts[3])
    assert.matches("options must be a table, got string", texts[4])
    assert.equal('fine', texts[5])
    assert.matches("component 'bolt' declares no default stream", texts[6])
    assert.matches('anchors must be a list of tuples', texts[7])
    assert.matches('an anchor must be a tuple', texts[8])
    assert.matches("component 'bolt' acks automatically", texts[9])
    assert.matches("component 'bolt' acks automatically", texts[10])
    assert.matches('not a tuple', texts[11])
    assert.same({ 'good' }, cluster:acked('source'))
  end)

  it('leave nothing behind when they fail: the next ones arrive, the root is not lost', function()
    local t = streamlua.topology('failed-emit')
    t:spout('source', streamlua.spout {
      fields = { 'n', 'value' },
      next_tuple = function(self, collector)
        self.n = (self.n or 0) + 1
        if self.n > 100 then return streamlua.DONE end
        pcall(collector.emit, collector, { self.n, print }, { id = 'bad' .. self.n })
        pcall(collector.emit, collector, { self.n, 1, 2 }, { id = 'bad' .. self.n })
        collector:emit({ self.n, 'good' }, { id = self.n })
      end,
    })
    t:bolt('a', streamlua.bolt { execute = function() end }):shuffle('source')
    t:bolt('b', streamlua.bolt { execute = function() end }, { parallelism = 2 }):all('source')
    local cluster = way.run(t):wait()
    assert.equal(100, #cluster:acked('source'))
    assert.equal(0, cluster:stats().source.pending)
    assert.equal(100, cluster:stats().a.executed)
    assert.equal(200, cluster:stats().b.executed)
  end)

  it('give tuples that stay valid when they are kept', function()
    local kept = {}
    local t = streamlua.topology('kept')
    t:spout('source', spout({ 'n', 'text', 'list' }))
    t:bolt('keep', streamlua.bolt {
      execute = function(_, tuple) kept[#kept + 1] = tuple end,
    }):shuffle('source')
    local mocks = {}
    for i = 1, 3000 do mocks[i] = { i, 'text ' .. i, { i } } end
    way.run(t, { mock = { source = mocks } }):wait():kill()
    collectgarbage()
    assert.equal(3000, #kept)
    for i, tuple in ipairs(kept) do
      assert.equal(i, tuple.n)
      assert.equal('text ' .. i, tuple.text)
      assert.equal(i, tuple.list[1])
      assert.equal('source', streamlua.tuple.component(tuple))
      assert.equal('default', streamlua.tuple.stream(tuple))
    end
    assert.same({ 'n', 'text', 'list' }, streamlua.tuple.fields(kept[1]))
  end)

  it('tell the task that emitted a tuple', function()
    local t = streamlua.topology('origin')
    t:spout('source', streamlua.spout {
      fields = { 'task' },
      open = function(self, context) self.task = context.task end,
      next_tuple = function(self, collector)
        collector:emit({ self.task })
        return streamlua.DONE
      end,
    }, { parallelism = 3 })
    local wrong, count = 0, 0
    t:bolt('check', streamlua.bolt {
      execute = function(_, tuple)
        count = count + 1
        if streamlua.tuple.task(tuple) ~= tuple.task then wrong = wrong + 1 end
      end,
    }):shuffle('source')
    way.run(t):wait()
    assert.equal(3, count)
    assert.equal(0, wrong)
    assert.error_matches(function() streamlua.tuple.task({}) end, 'not a tuple')
  end)

  it('keep their texts through many batches, past errors, and when tuples are kept', function()
    local t = streamlua.topology('texts')
    t:spout('source', spout({ 'n' }))
    t:bolt('burst', streamlua.bolt {
      fields = { 'i', 'text', 'again' },
      execute = function(_, tuple, collector)
        for i = 1, tuple.n do
          local text = ('%d of %d'):format(i, tuple.n)
          -- Now and then one that takes a batch of its own.
          if i % 5000 == 0 then text = text .. (' '):rep(100000) end
          collector:emit({ i, text, i % 3 == 0 and text or i })
        end
      end,
    }):shuffle('source')
    local kept = {}
    t:bolt('sink', streamlua.bolt {
      execute = function(_, tuple)
        if tuple.i % 100 == 7 then error('not this one') end
        kept[#kept + 1] = tuple
      end,
    }, { parallelism = 2 }):fields('burst', { 'text' })
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = {} } })
    for _ = 1, 2 do cluster:feed('source', { 20000 }):wait() end
    local seen = {}
    for _, tuple in ipairs(kept) do
      local text = ('%d of 20000'):format(tuple.i)
      assert(tuple.text:gsub(' +$', '') == text, tuple.text)
      assert(tuple.again == (tuple.i % 3 == 0 and tuple.text or tuple.i))
      seen[tuple.i] = (seen[tuple.i] or 0) + 1
    end
    assert.equal(2 * (20000 - 200), #kept)
    for i = 1, 20000 do assert(seen[i] == (i % 100 ~= 7 and 2 or nil)) end
    assert.equal(2 * 200, #cluster:errors())
  end)

  it('go by number as keys, also past what a route keeps, each to the task that owns it', function()
    local t = streamlua.topology('keys')
    t:spout('source', spout({ 'from', 'to' }))
    t:bolt('burst', streamlua.bolt {
      fields = { 'i', 'key' },
      execute = function(_, tuple, collector)
        for i = tuple.from, tuple.to do
          -- Every fourth is one of a few that come all the time, or one that is too long to be kept.
          local key = i % 4 > 0 and 'key ' .. i or i % 8 > 0 and 'often ' .. i % 100
            or ('long '):rep(16) .. i % 10
          collector:emit({ i, key })
        end
      end,
    }):shuffle('source')
    local owner, wrong, count, sum = {}, 0, 0, 0
    t:bolt('sink', streamlua.bolt {
      prepare = function(self, context) self.task = context.task end,
      execute = function(self, tuple)
        local i, key = tuple.i, tuple.key
        if (owner[key] or self.task) ~= self.task then wrong = wrong + 1 end
        owner[key] = self.task
        if i % 4 > 0 and key ~= 'key ' .. i then wrong = wrong + 1 end
        if i % 4 == 0 and i % 8 > 0 and key ~= 'often ' .. i % 100 then wrong = wrong + 1 end
        count, sum = count + 1, sum + i
      end,
    }, { parallelism = 3 }):fields('burst', { 'key' })
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = {} } })
    -- 75,000 keys: 8,192 are kept, and after 65,536 others those are forgotten. Then some once more.
    cluster:feed('source', { 1, 100000 }):wait()
    cluster:feed('source', { 90001, 100000 }):wait()
    assert.same({}, cluster:errors())
    assert.equal(0, wrong)
    assert.equal(110000, count)
    assert.equal(100000 * 100001 / 2 + 10000 * 95000.5, sum)
  end)

  it('inside one execute can be a million, in bounded memory', function()
    local t = streamlua.topology('million')
    t:spout('source', spout({ 'n' }))
    t:bolt('burst', streamlua.bolt {
      fields = { 'i', 'text' },
      execute = function(_, tuple, collector)
        for i = 1, tuple.n do collector:emit({ i, 'some text to fill a record' }) end
      end,
    }):shuffle('source')
    local sum = 0
    t:bolt('sum', streamlua.bolt {
      execute = function(_, next_tuple) sum = sum + next_tuple.i end,
    }, { parallelism = 2 }):shuffle('burst')
    local n = memory.is_measurable and 1000000 or 100000
    local cluster = way.cluster({ capture = false }):run(t, way.options { mock = { source = {} } })
    local grown = memory.watch()
    cluster:feed('source', { n }, 1):wait()
    assert.equal(n * (n + 1) / 2, sum)
    assert.same({ 1 }, cluster:acked('source'))
    memory.assert_grown_less(grown, 64 * 1024)
  end)
end)
