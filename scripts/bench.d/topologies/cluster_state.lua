-- Keyed state to be moved: `entries` keys with a value of 88 bytes each, in two worker processes.

local streamlua = require 'streamlua'

local source = streamlua.spout {
  fields = { 'key' },
  open = function(self, context) self.n, self.entries = 0, context.config.entries end,
  next_tuple = function(self, collector)
    if self.n == self.entries then return end
    self.n = self.n + 1
    collector:emit({ self.n })
  end,
}
local keep = streamlua.bolt {
  prepare = function(self, context)
    self.values, self.text = context:state('values'), ('v'):rep(88)
  end,
  execute = function(self, tuple) self.values:put(tuple.key, self.text) end,
}

local t = streamlua.topology('moves', { containers = 2, executors = 1, entries = 1e6 })
t:spout('source', source)
t:bolt('keep', keep, { parallelism = 2 }):fields('source', { 'key' })
return t
