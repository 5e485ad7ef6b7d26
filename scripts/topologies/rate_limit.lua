-- Drops events that were delivered twice, and lets only some events of each client pass per tick.
--
--     streamlua run scripts/topologies/rate_limit.lua
--     streamlua run scripts/topologies/rate_limit.lua --set rate=2 --set every=50ms
--
--     events ──fields(event)──> unique ──fields(client)──> limit ──global──> print
--
-- `unique` remembers names of events for one to two windows: it keeps two sets, and every `window` the
-- older one is dropped. `limit` queues the tuples of a client and releases `rate` of them each tick; it
-- acks a tuple only when it releases it, so the queue is bounded by max_spout_pending and nothing in it
-- is lost sight of. Printed are the tick, the client and the event.

local streamlua = require 'streamlua'

local t = streamlua.topology('rate_limit', {
  events = 60,
  rate = 5,
  every = '100ms',
  window = '60s',
})

local CLIENTS = { 'ada', 'bob', 'cleo' }

-- Every fourth event is delivered twice, as a source does that did not hear of the first delivery.
local events = streamlua.spout {
  fields = { 'client', 'event' },
  open = function(self, context) self.n, self.last = 0, context.config.events end,
  next_tuple = function(self, collector)
    if self.n >= self.last then return streamlua.DONE end
    self.n = self.n + 1
    local n = self.n
    local values = { CLIENTS[n % #CLIENTS + 1], n }
    collector:emit(values, { id = n })
    if n % 4 == 0 then collector:emit(values, { id = n }) end
  end,
}

local unique = streamlua.bolt {
  fields = { 'client', 'event' },
  tick_every = t.config.window,
  prepare = function(self, context)
    self.young, self.old = context:state('young'), context:state('old')
  end,
  execute = function(self, tuple, collector)
    local event = tuple.event
    if self.young:get(event) or self.old:get(event) then return end
    self.young:put(event, true)
    collector:emit({ tuple.client, event })
  end,
  tick = function(self)
    self.old:clear()
    self.young, self.old = self.old, self.young
  end,
}

local limit = streamlua.bolt {
  fields = { 'tick', 'client', 'event' },
  manual_ack = true,
  tick_every = t.config.every,
  prepare = function(self, context)
    self.rate, self.ticks, self.queues = context.config.rate, 0, {}
  end,
  execute = function(self, tuple)
    local queue = self.queues[tuple.client]
    if not queue then
      queue = { first = 1, last = 0 }
      self.queues[tuple.client] = queue
    end
    queue.last = queue.last + 1
    queue[queue.last] = tuple
  end,
  release = function(self, queue, collector)
    local tuple = queue[queue.first]
    queue[queue.first] = nil
    queue.first = queue.first + 1
    collector:emit({ self.ticks, tuple.client, tuple.event }, { anchors = { tuple } })
    collector:ack(tuple)
  end,
  tick = function(self, collector)
    self.ticks = self.ticks + 1
    for _, queue in pairs(self.queues) do
      for _ = 1, math.min(self.rate, queue.last - queue.first + 1) do
        self:release(queue, collector)
      end
    end
  end,
  -- With acking the queues are empty by now; without it nobody waited for them.
  finish = function(self, collector)
    for _, queue in pairs(self.queues) do
      while queue.first <= queue.last do self:release(queue, collector) end
    end
  end,
}

t:spout('events', events)
t:bolt('unique', unique, { parallelism = 2 }):fields('events', { 'event' })
t:bolt('limit', limit, { parallelism = 2 }):fields('unique', { 'client' })
t:bolt('print', streamlua.io.print { format = 'text' }):global('limit')
return t
