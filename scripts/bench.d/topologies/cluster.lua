-- A keyed word count for the figures of running topologies: as fast as it can, tracked, in two worker
-- processes. Every process of the sink writes when its first tuple came.

local streamlua = require 'streamlua'

local WORDS = 512

local source = streamlua.spout {
  fields = { 'word' }, replay = true,
  open = function(self) self.n = 0 end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ 'word' .. self.n % WORDS }, { id = self.n })
  end,
}
local count = streamlua.bolt {
  fields = { 'word', 'count' },
  prepare = function(self, context) self.counts = context:state('counts') end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.word, self.counts:add(tuple.word, 1) })
  end,
}
local sink = streamlua.bolt {
  prepare = function(self, context) self.path, self.context = context.config.out, context end,
  execute = function(self)
    if self.is_told then return end
    self.is_told = true
    local file = assert(io.open(self.path, 'a'))
    file:write(('%.3f\n'):format(self.context:now()))
    file:close()
  end,
}

local t = streamlua.topology('bench', { containers = 2, executors = 1, max_spout_pending = 1024,
  message_timeout = '5s' })
t:spout('source', source)
t:bolt('count', count, { parallelism = 2 }):fields('source', { 'word' })
t:bolt('sink', sink):global('count')
return t
