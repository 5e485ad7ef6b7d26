-- B9: update_state_by_key of a hundred thousand keys, all of them in every batch.
local streaming = require 'streamlua.streaming'

local ssc = streaming.context { name = 'b9-update', batch = '300ms', checkpoint = 'set me', catch_up = 1000 }

local list = {}
for i = 1, 100000 do list[i] = { 'key' .. i, 1 } end

ssc:input_stream(function() return list end, { partitions = 4 })
  :update_state_by_key(function(values, old)
    local sum = old or 0
    for i = 1, #values do sum = sum + values[i] end
    return sum
  end)
  :foreach_rdd(function(rdd) rdd:count() end)

return ssc
