-- What a topology costs that has nothing to do.
--
--     streamlua run idle.lua --set mode=polling --set seconds=2
--
-- `mode` is polling (a spout that is asked and has nothing) or waiting (a spout that is not asked,
-- since its only tuple is not acked). It prints the share of a core after a warm-up.

local streamlua = require 'streamlua'
local clock = require 'clock'

local t = streamlua.topology('idle', { mode = 'polling', seconds = 2, warm_seconds = 0.5,
  max_spout_pending = 1 })
local is_waiting = t.config.mode == 'waiting'
local seconds, warm = t.config.seconds, t.config.warm_seconds

local source = streamlua.spout {
  fields = { 'x' },
  next_tuple = function(self, collector)
    if is_waiting and not self.has_emitted then
      self.has_emitted = true
      collector:emit({ 1 }, { id = 1 })
    end
    if not self.finish_at then self.finish_at = clock.mono() + seconds + 3 * warm end
    if self.is_done or clock.mono() > self.finish_at then return streamlua.DONE end
    return false
  end,
  ack = function(self) self.is_done = true end,
}

local holder = streamlua.bolt {
  manual_ack = true,
  tick_every = warm,
  prepare = function(self) self.ticks = 0 end,
  execute = function(self, tuple) self.held = tuple end,
  tick = function(self, collector)
    self.ticks = self.ticks + 1
    if self.ticks == 1 then
      self.cpu, self.mono = clock.cpu(), clock.mono()
    elseif self.cpu and clock.mono() - self.mono >= seconds then
      print('share', (clock.cpu() - self.cpu) / (clock.mono() - self.mono))
      self.cpu = nil
      if self.held then collector:ack(self.held) end
    end
  end,
}

t:spout('source', source)
t:bolt('holder', holder):shuffle('source')
return t
