-- The examples in virtual time, where what depends on the clock has one right answer.
-- luacheck: globals io.stdout
local testing = require 'streamlua.testing'

-- The globals of scripts; a spec has its own.
local globals = getfenv(0)
local stdout, print_before = io.stdout, globals.print

local function path_of(name) return 'scripts/topologies/' .. name .. '.lua' end

-- The rows of `outputs` as a list of texts.
local function texts(rows)
  local list = {}
  for i, row in ipairs(rows) do
    local values = {}
    for k, value in ipairs(row) do values[k] = tostring(value) end
    list[i] = table.concat(values, ' ')
  end
  return list
end

for _, executors in ipairs({ 1, 3 }) do
  describe(('the examples on %d executors'):format(executors), function()
    local cluster

    before_each(function()
      cluster = testing.cluster({ executors = executors, raise_errors = true })
      -- What the examples print is of no interest here.
      io.stdout = assert(io.open('/dev/null', 'w'))
      globals.print = function() end
    end)
    after_each(function()
      cluster:kill()
      io.stdout:close()
      io.stdout, globals.print = stdout, print_before
    end)

    it('rate_limit releases as many events of a client as its rate at each tick', function()
      cluster:run(path_of('rate_limit'), { mock = { events = {} }, set = { rate = 2, every = '1s' } })
      for n = 1, 5 do cluster:feed('events', { 'ada', n }, n) end
      cluster:feed('events', { 'bob', 6 }, 6)
      assert.same({}, cluster:outputs('limit'))
      assert.same({}, cluster:acked('events'))
      cluster:advance('1s')
      assert.equal(3, #cluster:outputs('limit'))
      assert.same({ 1, 2, 6 }, (function()
        local ids = cluster:acked('events')
        table.sort(ids)
        return ids
      end)())
      cluster:advance('1s')
      assert.equal(5, #cluster:outputs('limit'))
      cluster:advance('1s')
      local rows = texts(cluster:outputs('limit'))
      table.sort(rows)
      assert.same({ '1 ada 1', '1 ada 2', '1 bob 6', '2 ada 3', '2 ada 4', '3 ada 5' }, rows)
      assert.same({}, cluster:failed('events'))
    end)

    it('rate_limit knows an event for one to two windows', function()
      cluster:run(path_of('rate_limit'), { mock = { events = {} }, set = { window = '10s' } })
      cluster:feed('events', { 'ada', 1 }, 'first')
      cluster:advance('9s'):feed('events', { 'ada', 1 }, 'in the window')
      -- The rotation at 10 s keeps it, the one at 20 s drops it.
      cluster:advance('10s'):feed('events', { 'ada', 1 }, 'still known')
      assert.equal(1, #cluster:outputs('unique'))
      cluster:advance('1s'):feed('events', { 'ada', 1 }, 'forgotten')
      assert.equal(2, #cluster:outputs('unique'))
      cluster:advance('1s')
      assert.same({ 'first', 'in the window', 'still known', 'forgotten' }, cluster:acked('events'))
    end)

    it('diamond acks every number, those that got lost after their time', function()
      cluster:kill()
      cluster = testing.cluster({ executors = executors })
      cluster:run(path_of('diamond'), { set = { numbers = 100 } })
      assert.equal(98, #cluster:acked('numbers'))
      local failures = #cluster:failed('numbers')
      -- 50 and 100 are neither acked nor failed by anybody.
      cluster:advance('2s')
      assert.equal(failures, #cluster:failed('numbers'))
      cluster:advance('1s')
      assert.equal(100, #cluster:acked('numbers'))
      assert.equal(failures + 2, #cluster:failed('numbers'))
    end)

    it('access_log ends a session after a pause', function()
      local function line(client, time)
        return { ('%s - - [10/Oct/2023:%s +0000] "GET / HTTP/1.1" 200 1'):format(client, time) }
      end
      cluster:run(path_of('access_log'), { mock = { lines = {
        line('a', '10:00:00'), line('b', '10:00:01'), line('a', '10:30:00'), line('a', '11:00:00'),
        line('a', '11:30:01'), line('b', '10:00:05'),
      } } })
      assert.same({ 'a 1696932000 1696935600 3' }, texts(cluster:outputs('sessions')))
      cluster:wait()
      local rows = texts(cluster:outputs('sessions'))
      table.sort(rows)
      assert.same({ 'a 1696932000 1696935600 3', 'a 1696937401 1696937401 1',
        'b 1696932001 1696932005 2' }, rows)
    end)

    it('join matches what comes in any order', function()
      cluster:run(path_of('join'), { mock = {
        orders = { { 1, 'ada', 10 }, { 3, 'bob', 30 } },
        payments = { { 2, 20 }, { 1, 4 } },
      } })
      cluster:feed('payments', { 1, 6 }):feed('orders', { 2, 'cleo', 20 })
      local rows = texts(cluster:outputs('join'))
      table.sort(rows)
      assert.same({ '1 ada 10 4', '1 ada 10 6', '2 cleo 20 20' }, rows)
      cluster:done():wait()
      assert.same({ '3 payment' }, texts(cluster:outputs('join', 'unmatched')))
    end)

    it('exclamation and wordcount give what goes in, changed', function()
      cluster:run(path_of('exclamation'), { mock = { words = { { 'a' }, { 'b' } } } }):wait()
      local rows = texts(cluster:outputs('exclaim2'))
      table.sort(rows)
      assert.same({ 'a!!!!!!', 'b!!!!!!' }, rows)
      cluster:run(path_of('wordcount'), { mock = { lines = { { 'to be' }, { 'or not to be' } } } }):wait()
      rows = texts(cluster:outputs('count'))
      table.sort(rows)
      assert.same({ 'be 1', 'be 2', 'not 1', 'or 1', 'to 1', 'to 2' }, rows)
    end)
  end)
end
