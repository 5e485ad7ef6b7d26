-- Adds three exclamation marks to every word, twice, and prints the words.
--
--     streamlua run scripts/topologies/exclamation.lua
--     streamlua run scripts/topologies/exclamation.lua --set words=1000 --executors 2
--
--     words ──shuffle──> exclaim1 ──shuffle──> exclaim2 ──global──> print
--
-- One component value serves under two names; each of its tasks has a `self` of its own.

local streamlua = require 'streamlua'

local NAMES = { 'nathan', 'mike', 'jackson', 'golda', 'bertels' }

local words = streamlua.spout {
  fields = { 'word' },
  open = function(self, context) self.n, self.last = 0, context.config.words end,
  next_tuple = function(self, collector)
    if self.n >= self.last then return streamlua.DONE end
    self.n = self.n + 1
    collector:emit({ NAMES[(self.n - 1) % #NAMES + 1] }, { id = self.n })
  end,
}

local exclaim = streamlua.bolt {
  fields = { 'word' },
  execute = function(_, tuple, collector) collector:emit({ tuple.word .. '!!!' }) end,
}

local t = streamlua.topology('exclamation', { words = 10 })
t:spout('words', words)
t:bolt('exclaim1', exclaim, { parallelism = 3 }):shuffle('words')
t:bolt('exclaim2', exclaim, { parallelism = 2 }):shuffle('exclaim1')
t:bolt('print', streamlua.io.print { format = 'text' }):global('exclaim2')
return t
