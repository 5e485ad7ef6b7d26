-- Streams of more fields than functions are generated for, and groupings by many fields.

local abi = require 'streamlua.abi'
local streamlua = require 'streamlua'
local ways = require 'support.ways'
local wide = require 'streamlua.runtime.wide'

local function names(count)
  local out = {}
  for i = 1, count do out[i] = 'f' .. i end
  return out
end

-- A row with values of all kinds, the same for the same n.
local function row(n, count)
  local kinds = { n, 'text ' .. n, n % 2 == 0, { n, { text = n } }, streamlua.null, 5LL, -n / 3, '' }
  local values = {}
  for i = 1, count do
    if i % 9 ~= 0 then values[i] = kinds[i % 9] end
  end
  return values
end

local function spout(fields) return streamlua.spout { fields = fields, next_tuple = function() end } end

ways.describe('a stream of many fields', function(way)
  -- Rows go from `rows` to `relay` to `sink`; what arrives there, by f1.
  local function through(count, rows, declare, relay, capture)
    local fields = names(count)
    local t = streamlua.topology('wide')
    t:spout('rows', spout(fields))
    t:bolt('relay', relay or streamlua.bolt {
      fields = fields,
      execute = function(_, tuple, collector) collector:emit(tuple) end,
    }, { parallelism = 2 }):shuffle('rows')
    local got = {}
    declare(t:bolt('sink', streamlua.bolt {
      prepare = function(self, context) self.index = context.index end,
      execute = function(self, tuple) got[tuple.f1] = { tuple = tuple, index = self.index } end,
    }, { parallelism = 3 }))
    local cluster = way.cluster({ capture = capture or false })
    cluster:run(t, way.options { mock = { rows = rows } }):wait()
    return got, cluster
  end

  local groupings = {
    shuffle = function(bolt) bolt:shuffle('relay') end,
    ['a key'] = function(bolt) bolt:fields('relay', { 'f1' }) end,
    ['many keys'] = function(bolt) bolt:fields('relay', names(40)) end,
    custom = function(bolt)
      bolt:custom('relay', function(values, tasks) return tasks[values[1] % #tasks + 1] end)
    end,
    all = function(bolt) bolt:all('relay') end,
  }
  for name, declare in pairs(groupings) do
    it('arrives whole through ' .. name, function()
      for _, count in ipairs { wide.FIELDS_MOST, wide.FIELDS_MOST + 1, 300 } do
        local rows = {}
        for n = 1, 6 do rows[n] = row(n, count) end
        local got, cluster = through(count, rows, declare)
        assert.same({}, cluster:errors())
        assert.equal(6, #cluster:acked('rows'))
        for n = 1, 6 do
          local tuple = got[n].tuple
          for i, value in pairs(row(n, count)) do
            assert.same(value, tuple[i])
            assert.same(value, tuple['f' .. i])
          end
          assert.is_nil(tuple[9])
          assert.equal('relay', streamlua.tuple.component(tuple))
        end
      end
    end)
  end

  it('has equal keys of many fields executed by one task', function()
    local fields = names(30)
    local t = streamlua.topology('keys')
    t:spout('rows', spout(fields))
    local task_of, count = {}, 0
    t:bolt('sink', streamlua.bolt {
      prepare = function(self, context) self.task = context.task end,
      execute = function(self, tuple)
        assert((task_of[tuple.f1] or self.task) == self.task)
        task_of[tuple.f1], count = self.task, count + 1
      end,
    }, { parallelism = 4 }):fields('rows', names(20))
    local rows = {}
    for n = 1, 200 do rows[n] = row(n % 50, 30) end
    local cluster = way.run(t, { mock = { rows = rows } }):wait()
    assert.same({}, cluster:errors())
    assert.equal(200, count)
    local used = {}
    for _, task in pairs(task_of) do used[task] = true end
    assert.is_true(next(used, next(used)) ~= nil)
  end)

  it('has a key that comes again executed by one task, whole each time', function()
    local fields = names(80)
    local t = streamlua.topology('again')
    t:spout('rows', spout(fields))
    local task_of, seen = {}, {}
    t:bolt('sink', streamlua.bolt {
      prepare = function(self, context) self.task = context.task end,
      execute = function(self, tuple)
        local key = tuple.f70
        assert((task_of[key] or self.task) == self.task)
        assert(tuple[70] == key and tuple.f2 == 'text ' .. tuple.f1)
        task_of[key], seen[key] = self.task, (seen[key] or 0) + 1
      end,
    }, { parallelism = 4 }):fields('rows', { 'f70' })
    local rows, expected = {}, {}
    for n = 1, 200 do
      rows[n] = row(n, 80)
      rows[n][70] = 'key ' .. n % 20
      expected['key ' .. n % 20] = 10
    end
    local cluster = way.run(t, { mock = { rows = rows } }):wait()
    assert.same({}, cluster:errors())
    assert.same(expected, seen)
  end)

  it('refuses what other streams refuse, and names the field', function()
    local count = 100
    local fields = names(count)
    local bad = {
      function(values) values[77] = print return values, "field 'f77': function value" end,
      function(values) values[101] = 1 return values, 'more values than fields' end,
      function() return 'text', 'values must be a table, got string' end,
      function(values) return values, 'options must be a table, got number', 5 end,
    }
    local relay = streamlua.bolt {
      fields = fields,
      execute = function(_, tuple, collector)
        local values, _, options = bad[tuple.f1](row(1, count))
        collector:emit(values, options)
      end,
    }
    local rows = {}
    for n = 1, #bad do rows[n] = row(n, count) end
    local got, cluster = through(count, rows, groupings.shuffle, relay)
    assert.same({}, got)
    assert.equal(#bad, #cluster:failed('rows'))
    local messages = {}
    for i, failure in ipairs(cluster:errors()) do messages[i] = failure.message end
    local text = table.concat(messages, '\n')
    for _, fn in ipairs(bad) do
      assert.truthy(text:find(select(2, fn({})), 1, true), text)
    end
  end)

  it('is replayed, kept and acked by hand, and read by a direct grouping', function()
    local fields = names(90)
    local t = streamlua.topology('by-hand')
    t:spout('rows', streamlua.spout { fields = fields, replay = true, next_tuple = function() end })
    t:bolt('relay', streamlua.bolt {
      streams = { out = { fields = fields, direct = true } },
      manual_ack = true,
      prepare = function(self, context) self.kept, self.sinks = {}, context:tasks('sink') end,
      execute = function(self, tuple, collector)
        if not self.has_failed then
          self.has_failed = true
          return collector:fail(tuple)
        end
        self.kept[#self.kept + 1] = tuple
        if #self.kept < 3 then return nil end
        for i, kept in ipairs(self.kept) do
          collector:emit(kept, { stream = 'out', task = self.sinks[i], anchors = self.kept })
        end
        for _, kept in ipairs(self.kept) do collector:ack(kept) end
      end,
    }):shuffle('rows')
    local seen = {}
    t:bolt('sink', streamlua.bolt {
      execute = function(_, tuple) seen[#seen + 1] = tuple.f1 + #tuple.f2 end,
    }, { parallelism = 3 }):direct('relay', 'out')
    local rows = {}
    for n = 1, 3 do rows[n] = row(n, 90) end
    local cluster = way.run(t, { mock = { rows = rows } }):wait()
    assert.same({}, cluster:errors())
    table.sort(seen)
    assert.same({ 7, 8, 9 }, seen)
    assert.equal(3, #cluster:acked('rows'))
  end)
end)

describe('a form for one field', function()
  it('is written out for each of them, or stands in a loop', function()
    assert.equal('v1 = s[0]\nv2 = s[1]', wide.written_out.each(2, 'v# = s[@]'))
    assert.equal('for i = 1, 2 do\nv[i] = s[i - 1]\nend', wide.looped.each(2, 'v# = s[@]'))
  end)

  it('may be another one for one of them', function()
    for special = 1, 3 do
      local text = {}
      for i = 1, 3 do text[i] = ('%s(v%d, b%d)'):format(i == special and 'other' or 'one', i, i) end
      local written = wide.written_out.each(3, 'one(v#, b#)', special, 'other(v#, b#)')
      assert.equal(table.concat(text, '\n'), (written:gsub('^\n', ''):gsub('\n$', '')))
      local looped = wide.looped.each(3, 'one(v#, b#)', special, 'other(v#, b#)')
      local called = {}
      setfenv(assert(loadstring(looped)), {
        v = { 'a', 'b', 'c' },
        b = {},
        one = function(item) called[#called + 1] = item end,
        other = function(item) called[#called + 1] = item:upper() end,
      })()
      local expected = { 'a', 'b', 'c' }
      expected[special] = expected[special]:upper()
      assert.same(expected, called)
    end
  end)
end)

describe('a grouping by fields', function()
  it('may name so many and no more', function()
    local function problems(keys)
      local t = streamlua.topology('keys')
      t:spout('rows', spout(names(100)))
      t:bolt('sink', streamlua.bolt { execute = function() end }):fields('rows', names(keys))
      return t:validate()
    end
    local most = tonumber(abi.C.SL_TOPOLOGY_KEYS_MAX)
    assert.same({}, problems(most))
    local found = problems(most + 1)
    assert.equal('too-large', found[1].code)
    assert.matches('65 fields; the limit is 64', found[1].message)
  end)
end)
