--- Windows: the union of the datasets of the last batches, and what is reduced over them.

local abi = require 'streamlua.abi'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local states = require 'streamlua.streaming.state'
local streams = require 'streamlua.streaming.stream'

local C = abi.C
local Stream = streams.Stream

-- Window and slide in ms; the slide is the parent's when missing.
local function lengths(self, op, window, slide)
  local window_ms = streams.duration_ms(op .. ': window', window)
  local slide_ms = slide == nil and self.slide_ms or streams.duration_ms(op .. ': slide', slide)
  if window_ms % self.slide_ms ~= 0 then
    site.raise('%s: the window of %d ms is no multiple of %d ms, the interval of the stream', op, window_ms,
      self.slide_ms)
  elseif slide_ms % self.slide_ms ~= 0 then
    site.raise('%s: the slide of %d ms is no multiple of %d ms, the interval of the stream', op, slide_ms,
      self.slide_ms)
  end
  return window_ms, slide_ms
end

-- Keeps the datasets of a stream; one that is kept already keeps its level.
local function persist_parent(parent, op)
  if parent.persists_parent then return persist_parent(parent.parents[1], op) end
  streams.check_c(op, C.sl_abi_streaming_node_persist(parent.context.handle, parent.node, 1))
  parent.storage_level = parent.storage_level or 'memory_serialized'
end

local function windowed(self, op, window_ms, slide_ms)
  persist_parent(self, op)
  states.keep_history(self)
  return streams.derive(self, op, {
    slide_ms = slide_ms,
    window_ms = window_ms,
    persists_parent = true,
    compute = function(_, time)
      local list = {}
      local first = math.max(time - window_ms + self.slide_ms, 0)
      for at = first, time, self.slide_ms do list[#list + 1] = self:get_or_compute(at) end
      return #list > 0 and rdds.union(list[1].env, list) or rdds.empty(self.context.env)
    end,
  })
end

--- All records of the last batches: a window of this length, every `slide` (that of this stream when
--- missing). Both must be multiples of the stream's interval.
---@param window number|string
---@param slide? number|string
---@return streamlua.DStream
function Stream:window(window, slide)
  local window_ms, slide_ms = lengths(self, 'window', window, slide)
  return streams.compose(self.context, 'window', function()
    return windowed(self, 'window', window_ms, slide_ms)
  end)
end

-- (f, window, slide) or (f, inverse, window, slide).
local function split_arguments(op, f, ...)
  streams.check_function(op, f)
  local first = ...
  if type(first) == 'function' then return f, ... end
  return f, nil, ...
end

local FILTER_OPTIONS = { filter = true, drop_empty = true, partitions = true }

local function check_window_options(self, op, options)
  options = options or {}
  if type(options) ~= 'table' then site.raise('%s: expected a table of options, got %s', op, type(options)) end
  for name in pairs(options) do
    if not FILTER_OPTIONS[name] then site.raise("%s: there is no option '%s'", op, tostring(name)) end
  end
  if options.filter ~= nil then streams.check_function(op .. ': filter', options.filter) end
  return options, streams.check_partitions(self, op, options.partitions)
end

-- Reduced windows of pairs in either form.
local function reduced(self, op, f, inverse, window_ms, slide_ms, options, count)
  local sink = type(f) == 'table' and f
    or streams.describe(self, { kind = 'reduce', merge = f, fn = f, site = op })
  if not inverse then
    local per_batch = streams.shuffled(self, 'reduce_by_key', count, sink, sink)
    return streams.shuffled(windowed(per_batch, 'window', window_ms, slide_ms), op, count, sink, sink)
  end
  local inverse_of = type(inverse) == 'table' and inverse
    or streams.describe(self, { op = op, fn = inverse })
  local filter = options.filter
    and (type(options.filter) == 'table' and options.filter
      or streams.describe(self, { op = op, fn = options.filter }))
  return states.incremental(self, op, { f = sink, inverse = inverse_of, filter = filter,
    drops_empty = filter ~= nil or options.drop_empty == true, window_ms = window_ms,
    slide_ms = slide_ms, partitions = count })
end

--- The values of each key in the window reduced by f. With an inverse, inverse(value, left) takes the
--- values that leave the window out again; `filter` = f({key, value}) tells which results are kept.
---@param f fun(a: any, b: any): any
---@param ... any [inverse,] window [, slide [, options: filter, drop_empty, partitions]]
---@return streamlua.DStream
function Stream:reduce_by_key_and_window(f, ...)
  local op = 'reduce_by_key_and_window'
  local reduce, inverse, window, slide, options = split_arguments(op, f, ...)
  local count
  options, count = check_window_options(self, op, options)
  if not inverse and options.filter then
    site.raise('%s: a filter goes with an inverse function', op)
  end
  local window_ms, slide_ms = lengths(self, op, window, slide)
  return streams.compose(self.context, op, function()
    return reduced(self, op, reduce, inverse, window_ms, slide_ms, options, count)
  end)
end

--- Pairs {key, list of its values in the window}.
---@param window number|string a duration
---@param slide? number|string that of the stream when missing
---@param partitions? integer
---@return streamlua.DStream
function Stream:group_by_key_and_window(window, slide, partitions)
  local op = 'group_by_key_and_window'
  local count = streams.check_partitions(self, op, partitions)
  local window_ms, slide_ms = lengths(self, op, window, slide)
  return streams.compose(self.context, op, function()
    local deal = { kind = 'deal', site = op }
    local grouped = streams.shuffled(self, 'group_by_key', count, deal, { kind = 'group', site = op })
    return streams.shuffled(windowed(grouped, 'window', window_ms, slide_ms), op, count, deal,
      { kind = 'merge_lists', site = op })
  end)
end

--- One record a window: all its records reduced by f. With an inverse, the incremental form.
---@param f fun(a: any, b: any): any
---@param ... any [inverse,] window [, slide]
---@return streamlua.DStream
function Stream:reduce_by_window(f, ...)
  local op = 'reduce_by_window'
  local reduce, inverse, window, slide = split_arguments(op, f, ...)
  local window_ms, slide_ms = lengths(self, op, window, slide)
  return streams.compose(self.context, op, function()
    local keyed = streams.mapped(self, 'under_nil')
    return streams.mapped(reduced(keyed, op, reduce, inverse, window_ms, slide_ms, {}, 1), 'second')
  end)
end

--- One record a window: the number of its records.
---@param window number|string a duration
---@param slide? number|string that of the stream when missing
---@return streamlua.DStream
function Stream:count_by_window(window, slide)
  local op = 'count_by_window'
  local window_ms, slide_ms = lengths(self, op, window, slide)
  return streams.compose(self.context, op, function()
    local keyed = streams.mapped(self, 'zero_one')
    return streams.mapped(reduced(keyed, op, streams.ADD, streams.SUBTRACT, window_ms, slide_ms, {}, 1),
      'second')
  end)
end

--- Pairs {value, how often the window has it}.
---@param window number|string a duration
---@param slide? number|string that of the stream when missing
---@param partitions? integer
---@return streamlua.DStream
function Stream:count_by_value_and_window(window, slide, partitions)
  local op = 'count_by_value_and_window'
  local count = streams.check_partitions(self, op, partitions)
  local window_ms, slide_ms = lengths(self, op, window, slide)
  return streams.compose(self.context, op, function()
    return reduced(streams.mapped(self, 'with_one'), op, streams.ADD, streams.SUBTRACT, window_ms, slide_ms,
      { filter = streams.NOT_ZERO }, count)
  end)
end
