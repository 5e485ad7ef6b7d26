-- Counts the words of a file and prints the most frequent ones at the end.
--
--     streamlua run scripts/topologies/wordcount.lua
--     streamlua run scripts/topologies/wordcount.lua --set input=LICENSE --set top=20
--
--     lines ──shuffle──> split ──fields(word)──> count ──global──> top
--     1 task             2 tasks                 4 tasks           1 task
--
-- streamlua.io.lines emits each line with an id, so every line is tracked: `acked` of `lines` in the
-- summary is the number of lines whose words are all counted. Words are runs of bytes that are no blank.

local streamlua = require 'streamlua'

local t = streamlua.topology('wordcount', {
  input = '/usr/share/common-licenses/GPL-3',
  top = 10,
})

-- streamlua.split is compiled by the JIT; string.gmatch, which finds the same words, is not.
local split = streamlua.bolt {
  fields = { 'word' },
  execute = function(_, tuple, collector)
    for word in streamlua.split(tuple.line) do collector:emit({ word }) end
  end,
}

-- Fields grouping brings equal words to one task, so each counter is in one place.
local count = streamlua.bolt {
  fields = { 'word', 'count' },
  prepare = function(self, context) self.counts = context:state('counts') end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.word, self.counts:add(tuple.word, 1) })
  end,
}

local function is_before(a, b)
  if a.count ~= b.count then return a.count > b.count end
  return a.word < b.word
end

-- Counts only grow, so the largest one seen of a word is its count.
local top = streamlua.bolt {
  prepare = function(self, context)
    self.counts, self.size = {}, context.config.top
  end,
  execute = function(self, tuple)
    local known = self.counts[tuple.word]
    if not known or known < tuple.count then self.counts[tuple.word] = tuple.count end
  end,
  finish = function(self)
    local ranking = {}
    for word, n in pairs(self.counts) do ranking[#ranking + 1] = { word = word, count = n } end
    table.sort(ranking, is_before)
    for i = 1, math.min(self.size, #ranking) do
      print(('%7d %s'):format(ranking[i].count, ranking[i].word))
    end
  end,
}

t:spout('lines', streamlua.io.lines { path = t.config.input }, { parallelism = 1 })
t:bolt('split', split, { parallelism = 2 }):shuffle('lines')
t:bolt('count', count, { parallelism = 4 }):fields('split', { 'word' })
t:bolt('top', top):global('count')
return t
