-- The hashtags that were used most in the last minute, every ten seconds.
--
--     nc -lk 9999                                     # in one terminal: type "I like #lua and #streams"
--     streamlua run scripts/streams/hashtags.lua
--     streamlua run scripts/streams/hashtags.lua --set window=10m --set slide=1m --set top=3
--
-- The window is incremental: what leaves it is subtracted, so a slide costs what came and what left and
-- not the whole window. Its counts are checkpointed, and a run that was killed goes on with them.

local streaming = require 'streamlua.streaming'

local ssc = streaming.context {
  name = 'hashtags',
  batch = '1s',
  checkpoint = 'state/hashtags',
  config = { host = '127.0.0.1', port = 9999, window = '60s', slide = '10s', top = 10 },
}

local function hashtags_of(line)
  local tags = {}
  for tag in line:gmatch('#(%w+)') do tags[#tags + 1] = tag:lower() end
  return tags
end

ssc:socket_text_stream(ssc.config.host, ssc.config.port):name('posts')
  :flat_map(hashtags_of)
  :map(function(tag) return { tag, 1 } end)
  :reduce_by_key_and_window(
    function(a, b) return a + b end,
    function(a, b) return a - b end,
    ssc.config.window, ssc.config.slide,
    { filter = function(pair) return pair[2] > 0 end }):name('counts')
  -- The most frequent first, and in order of the alphabet where they are equal.
  :transform(function(rdd)
    return rdd:sort_by(function(pair) return { -pair[2], pair[1] } end)
  end)
  :print(ssc.config.top)

return ssc
