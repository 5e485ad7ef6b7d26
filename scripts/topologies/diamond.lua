-- A diamond with manual acks and injected failures: numbers that fail are emitted again until every one
-- is acked.
--
--     streamlua run scripts/topologies/diamond.lua
--     streamlua run scripts/topologies/diamond.lua --set numbers=10000 --executors 2
--
--                 ┌──shuffle──> double ──fields(n)──┐
--     numbers ────┤                                 ├──> join ──global──> sum
--                 └──shuffle──> square ──fields(n)──┘
--
-- `join` holds one half of a number until the other half comes, emits the result anchored to both, and
-- acks both. On the first attempt of a number
--
--     n % 7  == 0    double fails it (collector:fail)
--     n % 11 == 0    square raises an error, which fails it
--     n % 13 == 0    sum fails what join had already joined
--     n % 50 == 0    square neither acks nor fails it: it fails when its time has passed
--
-- so these numbers fail exactly once, however many of the reasons apply, and are acked at the second
-- attempt. A number that passed `sum` partly may come again: `sum` counts each number once.

local streamlua = require 'streamlua'

local t = streamlua.topology('diamond', { numbers = 500, message_timeout = '2s' })

local numbers = streamlua.spout {
  fields = { 'n', 'attempt' },
  open = function(self, context)
    self.n, self.last, self.acked, self.failed = 0, context.config.numbers, 0, 0
    self.attempts, self.again = {}, {}
  end,
  next_tuple = function(self, collector)
    local n = table.remove(self.again)
    if not n then
      if self.n >= self.last then return streamlua.DONE end
      n = self.n + 1
      self.n = n
    end
    local attempt = (self.attempts[n] or 0) + 1
    self.attempts[n] = attempt
    collector:emit({ n, attempt }, { id = n })
  end,
  ack = function(self, n)
    self.acked = self.acked + 1
    self.attempts[n] = nil
  end,
  fail = function(self, n)
    self.failed = self.failed + 1
    self.again[#self.again + 1] = n
  end,
  close = function(self)
    print(('acked %d of %d numbers, %d failures on the way'):format(self.acked, self.last, self.failed))
  end,
}

local double = streamlua.bolt {
  fields = { 'n', 'attempt', 'value' },
  manual_ack = true,
  execute = function(_, tuple, collector)
    if tuple.n % 7 == 0 and tuple.attempt == 1 then
      collector:fail(tuple)
    else
      collector:emit({ tuple.n, tuple.attempt, tuple.n * 2 })
      collector:ack(tuple)
    end
  end,
}

local square = streamlua.bolt {
  fields = { 'n', 'attempt', 'value' },
  manual_ack = true,
  execute = function(_, tuple, collector)
    local n, is_first = tuple.n, tuple.attempt == 1
    if n % 50 == 0 and is_first then return end
    if n % 11 == 0 and is_first then error(('no square of %d'):format(n)) end
    collector:emit({ n, tuple.attempt, n * n })
    collector:ack(tuple)
  end,
}

-- Of each number the half of the latest attempt is held; halves of earlier ones are let go.
local join = streamlua.bolt {
  fields = { 'n', 'attempt', 'value' },
  manual_ack = true,
  prepare = function(self) self.halves = {} end,
  execute = function(self, tuple, collector)
    local n = tuple.n
    local half = self.halves[n]
    if not half or half.attempt < tuple.attempt then
      if half then collector:fail(half) end
      self.halves[n] = tuple
    elseif half.attempt > tuple.attempt then
      collector:fail(tuple)
    else
      self.halves[n] = nil
      collector:emit({ n, tuple.attempt, half.value + tuple.value }, { anchors = { half, tuple } })
      collector:ack(half)
      collector:ack(tuple)
    end
  end,
}

local sum = streamlua.bolt {
  manual_ack = true,
  prepare = function(self)
    self.seen, self.total, self.count = {}, 0, 0
  end,
  execute = function(self, tuple, collector)
    local n = tuple.n
    if not self.seen[n] then
      self.seen[n] = true
      self.total, self.count = self.total + tuple.value, self.count + 1
    end
    if n % 13 == 0 and tuple.attempt == 1 then
      collector:fail(tuple)
    else
      collector:ack(tuple)
    end
  end,
  finish = function(self) print(('sum of %d numbers: %d'):format(self.count, self.total)) end,
}

t:spout('numbers', numbers)
t:bolt('double', double, { parallelism = 2 }):shuffle('numbers')
t:bolt('square', square, { parallelism = 2 }):shuffle('numbers')
t:bolt('join', join, { parallelism = 2 }):fields('double', { 'n' }):fields('square', { 'n' })
t:bolt('sum', sum):global('join')
return t
