--- DStreams in virtual time: feeds lists to a stream, one a batch, and collects what an operation makes
--- of them.
--
--     local testing = require 'streamlua.testing'
--     local out = testing.streams({ { 1, 2 }, { 3 } }, function(numbers)
--       return numbers:map(function(n) return n + 1 end)
--     end)
--     assert(out[1][2] == 3 and out[2][1] == 4)

local abi = require 'streamlua.abi'
local load = require 'streamlua.topology.load'
local mode = require 'streamlua.streaming.mode'
local rdds = require 'streamlua.streaming.rdd'
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

---------------------------------------------------------------------------------------------------
-- programs

local Program = {}
Program.__index = Program

-- Replaces an input: the i-th batch has the i-th list, later ones have none.
local function mock(stream, lists)
  local context = stream.context
  if stream.receiver then stream.receiver = { poll = function() return false end } end
  function stream:compute(time)
    local zero = abi.C.sl_abi_streaming_zero_time(context.handle)
    local list = lists[(time - zero) / self.slide_ms] or {}
    local rc = abi.C.sl_abi_streaming_input_report(context.handle, self.node, time, #list, nil)
    assert(rc == 0)
    return rdds.of_list(context.env, list, context.default_partitions)
  end
end

---@class streamlua.TestProgramOptions
---@field mock? table<string, any[][]> lists of batches by the name of an input
---@field set? table as --set
---@field start_ms? integer 0 when missing

--- Loads a script that returns a streaming context and starts it by a manual clock, in this process;
--- inputs that are named in `mock` give lists instead of what they read.
---@param path string
---@param options? streamlua.TestProgramOptions
---@return table program { ssc, :advance(duration), :printed() what it printed so far, :stop() }
function M.program(path, options)
  options = options or {}
  mode.clock = streaming.manual_clock(options.start_ms or 0)
  local ssc, failure = load.script(path, { set = options.set })
  mode.clock = false
  if not ssc then error(('%s:%s: %s'):format(failure.file, failure.line or '?', failure.message), 2) end
  local names = {}
  for _, stream in pairs(ssc.streams) do names[stream.node_name] = stream end
  for name, lists in pairs(options.mock or {}) do
    if not names[name] then error(("program: there is no input '%s'"):format(name), 2) end
    mock(names[name], lists)
  end
  local self = setmetatable({ ssc = ssc, texts = {} }, Program)
  ssc.printer = function(text) table.insert(self.texts, text) end
  ssc:start()
  return self
end

--- Moves the time on and runs what is due. Raises the error of a batch that failed.
---@param duration number|string
---@return table self
function Program:advance(duration)
  self.ssc:advance(duration)
  if self.ssc.failure then error(self.ssc.failure, 2) end
  return self
end

--- What `print` operations wrote so far: a list of { time =, records = { texts } }.
---@return { time: integer, records: string[] }[]
function Program:printed()
  local out = {}
  for _, text in ipairs(self.texts) do
    local time, body = text:match('Time: (%d+) ms\n%-+\n(.*)\n$')
    local records = {}
    for line in body:gmatch('([^\n]+)') do records[#records + 1] = line end
    out[#out + 1] = { time = tonumber(time), records = records }
  end
  return out
end

--- Stops it; what it printed and the number of its checkpoints stay.
---@param stop_options? table as ssc:stop's
function Program:stop(stop_options) self.ssc:stop(stop_options) end

return M
