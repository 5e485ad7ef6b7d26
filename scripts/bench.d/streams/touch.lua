-- B9: map_with_state over `keys` keys: ten batches fill it, then one in a hundred and one in a thousand are
-- touched in turn.
local streaming = require 'streamlua.streaming'

local ssc = streaming.context { name = 'b9-touch', batch = '500ms', checkpoint = 'set me', catch_up = 1000,
  config = { keys = 1e6 } }

local keys = ssc.config.keys

local function records(_, index)
  local list = {}
  if index <= 10 then
    for i = 1, keys / 10 do list[i] = { (index - 1) * keys / 10 + i, 1 } end
  else
    for i = 1, index % 2 == 0 and keys / 100 or keys / 1000 do list[i] = { (i * 97 + index) % keys + 1, 1 } end
  end
  return list
end

ssc:input_stream(records, { partitions = 4 })
  :map_with_state(streaming.state_spec(function(_, _, value, state)
    state:update((state:get_option() or 0) + value)
  end):timeout('1h'))
  :foreach_rdd(function(rdd) rdd:count() end)

return ssc
