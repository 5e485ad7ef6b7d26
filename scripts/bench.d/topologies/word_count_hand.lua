-- B5, by hand: the same text split and counted by a loop without any engine.
--
--     streamlua exec word_count_hand.lua SENTENCES WARM [split]
--
-- It splits with string.find and string.sub, or with streamlua.split.

package.path = arg[0]:match('^(.*/)') .. '?.lua;' .. package.path

local clock = require 'clock'
local sentences = require 'sentences'
local split = require 'streamlua.split'

local find, sub = string.find, string.sub
local list = sentences.list()
local counts = {}

local function count_words(line)
  local from = 1
  local stop = find(line, ' ', 1, true)
  while stop do
    local word = sub(line, from, stop - 1)
    counts[word] = (counts[word] or 0) + 1
    from = stop + 1
    stop = find(line, ' ', from, true)
  end
  local word = sub(line, from)
  counts[word] = (counts[word] or 0) + 1
end

local function count_split(line)
  for word in split(line) do counts[word] = (counts[word] or 0) + 1 end
end

local count_line = arg[3] == 'split' and count_split or count_words
local n, warm = tonumber(arg[1]), tonumber(arg[2])
for i = 1, n do
  if i == warm then print('start_ms', clock.mono() * 1000) end
  count_line(list[1 + i % #list])
end
print('end_ms', clock.mono() * 1000)
local sum = 0
for _, count in pairs(counts) do sum = sum + count end
print('counted', sum)
