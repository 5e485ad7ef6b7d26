-- B5, by hand: the same text split and counted by a loop without any engine.
--
--     streamlua exec word_count_hand.lua SENTENCES WARM

package.path = arg[0]:match('^(.*/)') .. '?.lua;' .. package.path

local clock = require 'clock'
local sentences = require 'sentences'

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

local n, warm = tonumber(arg[1]), tonumber(arg[2])
for i = 1, n do
  if i == warm then print('start_ms', clock.mono() * 1000) end
  count_words(list[1 + i % #list])
end
print('end_ms', clock.mono() * 1000)
local sum = 0
for _, count in pairs(counts) do sum = sum + count end
print('counted', sum)
