-- B9: how long it takes to have the state of a million keys again. Arguments: a folder, the keys. Prints
-- "recover <seconds>".
local libc = require 'streamlua.connectors.libc'
local streaming = require 'streamlua.streaming'

local folder, keys = arg[1], tonumber(arg[2])

local function program(start_ms)
  return streaming.get_or_create(folder, function()
    local ssc = streaming.context { name = 'b9-recover', batch = '1s', checkpoint = folder,
      clock = streaming.manual_clock(start_ms) }
    ssc:input_stream(function(_, index)
      local list = {}
      if index == 1 then
        for i = 1, keys do list[i] = { 'key' .. i, 1 } end
      end
      return list
    end):map_with_state(streaming.state_spec(function(_, _, value, state) state:update(value) end))
      :checkpoint('1s'):foreach_rdd(function(rdd) rdd:count() end)
    return ssc
  end)
end

local ssc = program(0)
ssc:start()
ssc:advance('2s')
ssc:stop()
collectgarbage()
local began = libc.clock_s('mono')
ssc = program(2000)
ssc:start()
ssc:advance('1s')
print('recover', libc.clock_s('mono') - began)
ssc:stop()
