-- B6: tuples offered at a fixed rate whatever happens to them, each stamped with the time at which it
-- was meant to leave, so that a stall counts for every tuple that it held up.
--
--     streamlua run latency.lua --set rate=1e5 --set seconds=2
--
-- It prints the quantiles of the time from the stamp to `execute` in microseconds. The first part of
-- the run is not counted.

local streamlua = require 'streamlua'
local clock = require 'clock'

local t = streamlua.topology('latency', { rate = 1e5, seconds = 2, warm_seconds = 0.3 })
local rate, warm = t.config.rate, t.config.warm_seconds
local last = (t.config.seconds + warm) * rate
local mono = clock.mono
local DONE = streamlua.DONE

local source = streamlua.spout {
  fields = { 'due' },
  open = function(self) self.sent = 0 end,
  activate = function(self) self.start = mono() end,
  next_tuple = function(self, collector)
    local sent = self.sent
    if sent >= last then return DONE end
    local due = self.start + sent / rate
    if due > mono() then return false end
    self.sent = sent + 1
    collector:emit({ due })
  end,
}

local sink = streamlua.bolt {
  prepare = function(self, context)
    self.latency, self.count_from = context:histogram('latency_us'), mono() + warm
  end,
  execute = function(self, tuple)
    local due = tuple.due
    if due > self.count_from then self.latency:record((mono() - due) * 1e6) end
  end,
  finish = function(self)
    local h = self.latency
    print('p50', h:quantile(0.5))
    print('p99', h:quantile(0.99))
    print('p99.9', h:quantile(0.999))
    print('max', h:quantile(1))
    print('count', h:count())
  end,
}

t:spout('source', source)
t:bolt('sink', sink):shuffle('source')
return t
