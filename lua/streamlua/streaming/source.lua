--- Sources of streams: queues, functions, and what starts and stops with the context.

local abi = require 'streamlua.abi'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local streams = require 'streamlua.streaming.stream'

local C = abi.C

local M = {}

--- Methods of the context.
M.METHODS = {}

local function make(context, op, fields)
  return streams.compose(context, op, function()
    fields.op = op
    fields.slide_ms = context.batch_ms
    fields.flags = bit.bor(C.SL_STREAMING_INPUT, fields.flags or 0)
    fields.is_input = true
    return streams.new(context, fields)
  end)
end
M.make = make

--- A stream whose batches come out of a list of lists: one a batch, or all there are. `default` is the
--- list of a batch when the queue is empty.
---@param queue any[][]
---@param options? { one_at_a_time?: boolean, default?: any[] }
function M.METHODS.queue_stream(context, queue, options)
  if type(queue) ~= 'table' then site.raise('queue_stream: expected a list of lists, got %s', type(queue)) end
  options = options or {}
  return make(context, 'queue_stream', {
    is_queue = true,
    partitions = context.default_partitions,
    compute = function(self, time)
      local taken, n = {}, 0
      if #queue > 0 then
        local count = options.one_at_a_time == false and #queue or 1
        for _ = 1, count do
          local list = table.remove(queue, 1)
          for i = 1, #list do taken[n + i] = list[i] end
          n = n + #list
        end
      elseif options.default then
        taken, n = options.default, #options.default
      end
      context:report_input(self, time, n)
      return rdds.of_list(context.env, taken, self.partitions)
    end,
  })
end

--- A stream whose batches are lists that f(time, index) returns; index counts batches from 1. nil = the
--- batch has no dataset.
---@param f fun(time: integer, index: integer): any[]?
---@param options? { partitions?: integer }
function M.METHODS.input_stream(context, f, options)
  streams.check_function('input_stream', f)
  local stand_in = { context = context }
  local partitions = streams.check_partitions(stand_in, 'input_stream', options and options.partitions)
  return make(context, 'input_stream', {
    partitions = partitions,
    compute = function(self, time)
      local zero = C.sl_abi_streaming_zero_time(context.handle)
      local list = f(time, (time - zero) / self.slide_ms)
      if list == nil then return nil end
      if type(list) ~= 'table' then
        error(('%s: input_stream: the function must return a list or nil, got %s'):format(self.call_site,
          type(list)), 0)
      end
      context:report_input(self, time, #list)
      return rdds.of_list(context.env, list, self.partitions)
    end,
  })
end

--- What keeps a source from being started, nil when nothing does.
---@param stream streamlua.DStream
---@return string?
function M.problem(stream)
  if stream.is_queue and stream.context.checkpoint_dir then
    return 'queue_stream: a queue can not be checkpointed, its records are lost at a restart; '
      .. 'turn checkpoints off or use another source'
  end
end

local function each_input(context, name, ...)
  for node = 0, context.made - 1 do
    local stream = context.streams[node]
    if stream and stream[name] then stream[name](stream, ...) end
  end
end

--- Starts the inputs that have no receiver.
function M.start(context, time) each_input(context, 'on_start', time) end

--- Stops them.
function M.stop(context) each_input(context, 'on_stop') end

return M
