-- Joins two streams: views of advertisements and the clicks that follow, by advertisement.
--
--     nc -lk 9998                                     # views: type "ad1 sports"
--     nc -lk 9999                                     # clicks: type "ad1 ada"
--     streamlua run scripts/streams/join.lua
--
-- A click is joined with the views of the last ten seconds. Printed is (ad,(page,user)), and for views
-- that nobody has clicked in the batch in which they came (ad,(page,None)).

local streaming = require 'streamlua.streaming'

local ssc = streaming.context {
  name = 'join',
  batch = '1s',
  config = { host = '127.0.0.1', views = 9998, clicks = 9999, window = '10s' },
}

local function pair_of(line)
  local ad, value = line:match('^(%S+)%s+(%S+)')
  return ad and { { ad, value } } or {}
end

local views = ssc:socket_text_stream(ssc.config.host, ssc.config.views):name('views'):flat_map(pair_of)
local clicks = ssc:socket_text_stream(ssc.config.host, ssc.config.clicks):name('clicks'):flat_map(pair_of)

local function sorted(rdd) return rdd:sort_by(function(pair) return { pair[1], tostring(pair[2][2]) } end) end

views:window(ssc.config.window):join(clicks):name('clicked'):transform(sorted):print()
views:left_outer_join(clicks)
  :filter(function(pair) return pair[2][2] == streaming.NONE end):name('unclicked')
  :transform(sorted):print()

return ssc
