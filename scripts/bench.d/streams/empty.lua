-- B9: what a batch without records costs.
local streaming = require 'streamlua.streaming'

local ssc = streaming.context { name = 'b9-empty', batch = '10ms', catch_up = 1000 }

ssc:input_stream(function() return {} end)
  :map(function(word) return { word, 1 } end)
  :reduce_by_key(function(a, b) return a + b end)
  :foreach_rdd(function(rdd) rdd:collect() end)

return ssc
