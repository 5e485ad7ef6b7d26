-- B9: an incremental window of 10 s every second over `rate` records/s of a thousand keys, 100 ms batches.
local streaming = require 'streamlua.streaming'

local ssc = streaming.context { name = 'b9-window', batch = '100ms', checkpoint = 'set me',
  config = { rate = 2e6 } }

local list = {}
for i = 1, ssc.config.rate / 10 do list[i] = { 'key' .. (i * 7919) % 1000, 1 } end

ssc:input_stream(function() return list end, { partitions = 4 })
  :reduce_by_key_and_window(function(a, b) return a + b end, function(a, b) return a - b end, '10s', '1s')
  :foreach_rdd(function(rdd) rdd:collect() end)

return ssc
