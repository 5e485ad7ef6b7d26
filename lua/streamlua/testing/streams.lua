--- DStreams in virtual time: feeds lists to a stream, one a batch, and collects what an operation makes
--- of them.
--
--     local testing = require 'streamlua.testing'
--     local out = testing.streams({ { 1, 2 }, { 3 } }, function(numbers)
--       return numbers:map(function(n) return n + 1 end)
--     end)
--     assert(out[1][2] == 3 and out[2][1] == 4)

local streaming = require 'streamlua.streaming'

local M = {}

--- A stream of a context that gives the lists one a batch, by the batch's number, so that a batch that
--- runs again gets the same; `false` in the list = no dataset, past the end: empty lists.
---@param ssc table
---@param lists any[][]
---@param partitions? integer
function M.source(ssc, lists, partitions)
  return ssc:input_stream(function(_, index)
    local list = lists[index]
    if list == false then return nil end
    return list or {}
  end, { partitions = partitions or 2 })
end

--- Collects what a stream gives: `out[i]` is the list of the i-th batch that had a dataset, `out.times`
--- their times.
---@param stream table
---@return table out
function M.collect(stream)
  local out = { times = {} }
  stream:foreach_rdd(function(rdd, time)
    out[#out + 1] = rdd:collect()
    out.times[#out] = time
  end)
  return out
end

---@class streamlua.TestStreamOptions
---@field batches? integer how many batches run; as many as the longest input when missing
---@field batch? number|string '1s' when missing
---@field partitions? integer of the inputs
---@field context? table more options of the context

local function is_list_of_inputs(inputs) return inputs.inputs ~= nil end

--- Runs an operation over an input (a list of lists), or over several ({ inputs = { ... } }), by a manual
--- clock that starts at 0. operation(stream, ..., ssc) returns the stream to look at, or several. Returns
--- for each what M.collect gives, and the context, which is stopped.
---@param inputs table
---@param operation function
---@param options? streamlua.TestStreamOptions
function M.run(inputs, operation, options)
  options = options or {}
  local settings = { name = 'test', batch = options.batch or '1s', clock = streaming.manual_clock(0) }
  for name, value in pairs(options.context or {}) do settings[name] = value end
  local ssc = streaming.context(settings)
  local streams, longest = {}, 0
  for i, lists in ipairs(is_list_of_inputs(inputs) and inputs.inputs or { inputs }) do
    streams[i] = M.source(ssc, lists, options.partitions)
    longest = math.max(longest, #lists)
  end
  streams[#streams + 1] = ssc
  local results = { operation(unpack(streams)) }
  for i, stream in ipairs(results) do results[i] = M.collect(stream) end
  ssc:start()
  local step = require('streamlua.units').parse_duration(settings.batch)
  for _ = 1, options.batches or longest do ssc:advance(step) end
  local failure = ssc.failure
  ssc:stop()
  if failure then error(failure, 0) end
  results[#results + 1] = ssc
  return unpack(results)
end

return M
