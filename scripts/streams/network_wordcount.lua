-- Counts the words that a TCP server sends, second by second.
--
--     nc -lk 9999                                     # in one terminal: type lines
--     streamlua run scripts/streams/network_wordcount.lua
--     streamlua run scripts/streams/network_wordcount.lua --set host=example.org --set port=7000
--
-- When the server goes away the receiver connects again two seconds later.

local streaming = require 'streamlua.streaming'

local ssc = streaming.context {
  name = 'network_wordcount',
  batch = '1s',
  config = { host = '127.0.0.1', port = 9999 },
}

local function words_of(line)
  local words = {}
  for word in line:gmatch('%S+') do words[#words + 1] = word end
  return words
end

ssc:socket_text_stream(ssc.config.host, ssc.config.port):name('lines')
  :flat_map(words_of)
  :map(function(word) return { word, 1 } end)
  :reduce_by_key(function(a, b) return a + b end):name('counts')
  :print()

return ssc
