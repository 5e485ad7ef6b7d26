-- B5: sentences of ten words -> split -> count by word.
--
--     streamlua run word_count.lua --set n=1e6 --set ack=true
--
-- Config: `n` sentences, of which the first `warm` are not timed; `ack` tracks each of them; `words`
-- says how they are split: `split` (streamlua.split) or `find` (a loop of string.find and string.sub);
-- `counts` says where the counts are: `state` (context:state) or `table` (a Lua table); `splits` and
-- `counters` are the numbers of tasks. It prints `start_ms`, each counter's `end_ms` and `counted`.

local streamlua = require 'streamlua'
local clock = require 'clock'
local sentences = require 'sentences'

local t = streamlua.topology('word-count', { n = 1e6, warm = 1e5, ack = false, words = 'split',
  counts = 'state', splits = 1, counters = 1 })
local n, warm = t.config.n, t.config.warm
local list = sentences.list()
local find, sub = string.find, string.sub
local DONE = streamlua.DONE

local function emit_plain(collector, text) collector:emit({ text }) end
local function emit_acked(collector, text, i) collector:emit({ text }, { id = i }) end
local emit = t.config.ack and emit_acked or emit_plain

local source = streamlua.spout {
  fields = { 'line' },
  open = function(self) self.i = 0 end,
  next_tuple = function(self, collector)
    local i = self.i + 1
    if i > n then return DONE end
    if i == warm then print('start_ms', clock.mono() * 1000) end
    self.i = i
    emit(collector, list[1 + i % #list], i)
  end,
}

local by_split = streamlua.bolt {
  fields = { 'word' },
  execute = function(_, tuple, collector)
    for word in streamlua.split(tuple.line) do collector:emit({ word }) end
  end,
}

local by_find = streamlua.bolt {
  fields = { 'word' },
  execute = function(_, tuple, collector)
    local line = tuple.line
    local from = 1
    local stop = find(line, ' ', 1, true)
    while stop do
      collector:emit({ sub(line, from, stop - 1) })
      from = stop + 1
      stop = find(line, ' ', from, true)
    end
    collector:emit({ sub(line, from) })
  end,
}

local in_state = streamlua.bolt {
  prepare = function(self, context)
    self.counts = context:state('counts')
  end,
  execute = function(self, tuple) self.counts:add(tuple.word, 1) end,
  finish = function(self)
    print('end_ms', clock.mono() * 1000)
    local sum = 0
    for _, count in self.counts:each() do sum = sum + count end
    print('counted', sum)
  end,
}

local in_table = streamlua.bolt {
  prepare = function(self) self.counts = {} end,
  execute = function(self, tuple)
    local counts, word = self.counts, tuple.word
    counts[word] = (counts[word] or 0) + 1
  end,
  finish = function(self)
    print('end_ms', clock.mono() * 1000)
    local sum = 0
    for _, count in pairs(self.counts) do sum = sum + count end
    print('counted', sum)
  end,
}

t:spout('source', source)
t:bolt('split', t.config.words == 'find' and by_find or by_split, { parallelism = t.config.splits })
  :shuffle('source')
t:bolt('count', t.config.counts == 'table' and in_table or in_state,
  { parallelism = t.config.counters }):fields('split', { 'word' })
return t
