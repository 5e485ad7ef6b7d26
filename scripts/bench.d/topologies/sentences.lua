-- The text of B5: the same sentences of ten random words in every process.

local M = {}

local VOCABULARY, SENTENCES, WORDS = 2000, 1024, 10

-- A generator of Lehmer, so that the text does not depend on the C library.
local function random(seed)
  local state = seed
  return function(below)
    state = state * 48271 % 2147483647
    return state % below
  end
end

local function words_of(next_random)
  local words, seen = {}, {}
  while #words < VOCABULARY do
    local letters = {}
    for i = 1, 3 + next_random(8) do letters[i] = string.char(97 + next_random(26)) end
    local word = table.concat(letters)
    if not seen[word] then
      seen[word] = true
      words[#words + 1] = word
    end
  end
  return words
end

--- Words in a sentence.
M.words = WORDS

--- A list of sentences: words between single spaces, none at the ends.
---@return string[]
function M.list()
  local next_random = random(20260101)
  local words = words_of(next_random)
  local list = {}
  for i = 1, SENTENCES do
    local sentence = {}
    for k = 1, WORDS do sentence[k] = words[1 + next_random(#words)] end
    list[i] = table.concat(sentence, ' ')
  end
  return list
end

return M
