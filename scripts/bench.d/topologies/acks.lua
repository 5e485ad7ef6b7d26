-- A thousand roots a second through two worker processes. The spout writes a line for each tenth of a
-- second: the time in ms and how many were acked since it began.

local streamlua = require 'streamlua'

local RATE, EVERY_MS = 1, 100

local source = streamlua.spout {
  fields = { 'n' }, replay = true,
  open = function(self, context)
    self.context, self.n, self.acked = context, 0, 0
    self.began, self.told = context:now(), context:now()
    self.file = assert(io.open(context.config.out, 'a'))
    self.file:setvbuf('line')
  end,
  next_tuple = function(self, collector)
    local now = self.context:now()
    if now - self.told >= EVERY_MS then
      self.told = now
      self.file:write(('%.0f %d\n'):format(now, self.acked))
    end
    if self.n >= (now - self.began) * RATE then return end
    self.n = self.n + 1
    collector:emit({ self.n }, { id = self.n })
  end,
  ack = function(self) self.acked = self.acked + 1 end,
}
local sink = streamlua.bolt { execute = function() end }

local t = streamlua.topology('acks', { containers = 2, executors = 1, max_spout_pending = 1024 })
t:spout('source', source)
t:bolt('sink', sink, { parallelism = 2 }):shuffle('source')
return t
