-- Words of a text: runs of bytes that are no blank (what the pattern '%S+' matches), as an iterator
-- that the JIT compiles, which `string.gmatch` never is.
--
--   local split = require 'streamlua.split'
--   for word in split('to be  or not') do io.write('[', word, ']') end   --> [to][be][or][not]
--
-- C finds many words at a time and looks each up in a dictionary of those seen lately (base/words.h).
-- The strings of its words are in a Lua table, so a word that comes again costs neither a search nor
-- an interned string. When too many words find no place in it, dictionary and table begin anew.
--
-- The position lives in a small state table instead of a closure. The table is used again by a
-- later call once its loop has run to the end, so a loop costs no allocation; loops may be nested,
-- left early, or run in turns. A loop that ended must not be stepped on by hand.
--
-- docs/benchmarks.md compares it with loops of `find` and `sub`.

local abi = require 'streamlua.abi'

local C, ffi = abi.C, abi.ffi
local new_table = require 'table.new'
local sub = string.sub

local run_t = ffi.typeof('struct sl_word_run')
local PLACES = tonumber(C.SL_WORDS_PLACES)

-- The dictionary and the strings by place; false for words without one. A run's places are those of
-- the strings that its state holds, whatever becomes of the dictionary in the meantime.
local dictionary, strings

local function begin_anew()
  dictionary = dictionary or ffi.new('struct sl_words')
  ffi.fill(dictionary, ffi.sizeof(dictionary))
  strings = new_table(PLACES, 0)
  strings[0] = false
end

-- A state table whose iteration has ended, or nil. One is enough: an inner loop takes and gives back
-- its own while the outer one is under way.
local spare

-- Makes the strings of words that are new in the dictionary.
local function make_strings(run, text)
  for i = 0, run.count - 1 do
    local place = run.place[i]
    if strings[place] == nil then strings[place] = sub(text, run.first[i], run.last[i]) end
  end
end

-- Finds the next words of a state's text.
local function find_words(state, run)
  local text = state.text
  if dictionary.is_stale ~= 0 then begin_anew() end
  C.sl_abi_words_split(dictionary, text, #text, run)
  state.strings = strings
  if run.has_new ~= 0 then make_strings(run, text) end
end

local next_word

-- The words of a run are used up.
local function next_run(state, run)
  if run.next >= 0 then
    find_words(state, run)
    return next_word(state)
  end
  state.text = ''
  spare = state
  return nil
end

function next_word(state)
  local run = state.run
  local at = run.at
  if at == run.count then return next_run(state, run) end
  run.at = at + 1
  return state.strings[run.place[at]] or sub(state.text, run.first[at], run.last[at])
end

--- Iterator over the words of a text.
---@param text string
---@return fun(state: table): string?
---@return table state
return function(text)
  if type(text) ~= 'string' then
    error('streamlua.split: expected a string, got ' .. type(text), 2)
  end
  if not dictionary then begin_anew() end
  local state = spare
  if state then
    spare = nil
    state.text = text
  else
    state = { text = text, run = run_t(), strings = strings }
  end
  local run = state.run
  run.next = 0
  find_words(state, run)
  return next_word, state
end
