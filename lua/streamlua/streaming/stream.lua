--- DStreams: a stream is a recipe for one dataset a batch. Operations make new streams and run nothing;
--- output operations make jobs.
--
--     local counts = lines:flat_map(words):map(function(w) return { w, 1 } end):reduce_by_key(add)
--     counts:print()
--
-- C decides which dataset exists at which time (core/batch); here is what it contains. A composed
-- operation (count, reduce, the windows) is made of streams of its own that the user does not see; they
-- are named after it.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local units = require 'streamlua.units'

local C, ffi = abi.C, abi.ffi

local M = {}

---@class streamlua.DStream
---@field context table
---@field node integer its number in C
---@field op string
---@field slide_ms integer
---@field call_site string "file:line"
---@field join fun(self: streamlua.DStream, other: streamlua.DStream, n?: integer): streamlua.DStream
---@field left_outer_join fun(self: streamlua.DStream, other: streamlua.DStream, n?: integer): streamlua.DStream
---@field right_outer_join fun(self: streamlua.DStream, other: streamlua.DStream, n?: integer): streamlua.DStream
---@field full_outer_join fun(self: streamlua.DStream, other: streamlua.DStream, n?: integer): streamlua.DStream
local Stream = {}
Stream.__index = Stream
M.Stream = Stream

--- Whether a value is a stream.
---@param item any
---@return boolean
function M.is(item) return getmetatable(item) == Stream end

---------------------------------------------------------------------------------------------------
-- checks

local function check_function(what, fn)
  if type(fn) ~= 'function' then site.raise('%s: expected a function, got %s', what, type(fn)) end
  return fn
end
M.check_function = check_function

local function check_stream(what, other, context)
  if not M.is(other) then site.raise('%s: expected a stream, got %s', what, type(other)) end
  if context and other.context ~= context then
    site.raise('%s: the stream belongs to another context', what)
  end
  return other
end

--- Milliseconds of a duration, whole and above 0.
---@param what string
---@param duration any
---@return integer
function M.duration_ms(what, duration)
  local seconds, message = units.parse_duration(duration)
  if not seconds then site.raise('%s: %s', what, message) end
  local ms = math.floor(seconds * 1000 + 0.5)
  if ms < 1 then site.raise('%s: %s is too short, the least is 1 ms', what, tostring(duration)) end
  return ms
end

local function check_partitions(self, what, n)
  if n == nil then return self.context.default_partitions end
  if type(n) ~= 'number' or n < 1 or n ~= math.floor(n) then
    site.raise('%s: the number of partitions must be a whole number from 1 on, got %s', what, tostring(n))
  end
  return n
end
M.check_partitions = check_partitions

-- Raises the last failure of C at the user's line.
local function check_c(what, rc)
  if rc < 0 then
    local _, failure = err.last()
    site.raise('%s: %s', what, tostring(failure))
  end
  return rc
end
M.check_c = check_c

---------------------------------------------------------------------------------------------------
-- making streams

local NODE = ffi.typeof('struct sl_streaming_node')
local INTS = ffi.typeof('int32_t[?]')

---@class streamlua.StreamFields
---@field op string
---@field parents? streamlua.DStream[]
---@field slide_ms? integer that of the first parent when missing
---@field window_ms? integer
---@field flags? integer enum sl_streaming_node_flag
---@field compute? fun(self: streamlua.DStream, time: integer): streamlua.Rdd?
---@field run_job? fun(self: streamlua.DStream, rdd: streamlua.Rdd, time: integer)

--- Adds a stream to a context.
---@param context table
---@param fields streamlua.StreamFields
---@return streamlua.DStream
function M.new(context, fields)
  local self = setmetatable(fields, Stream)
  self.context = context
  self.parents = self.parents or {}
  self.slide_ms = self.slide_ms or self.parents[1].slide_ms
  self.call_site = site.text()
  local parents = INTS(#self.parents + 1)
  for i, parent in ipairs(self.parents) do parents[i - 1] = parent.node end
  context.made = context.made + 1
  local scope = context.scope
  self.node_name = scope and ('%s/%s-%d'):format(scope.name, self.op, #scope.streams + 1)
    or ('%s-%d'):format(self.op, context.position)
  local rc = C.sl_abi_streaming_node_add(context.handle, NODE({
    name = self.node_name,
    call_site = self.call_site,
    slide_ms = self.slide_ms,
    window_ms = self.window_ms or 0,
    parents = parents,
    parent_count = #self.parents,
    flags = self.flags or 0,
  }))
  self.node = check_c(self.op, rc)
  context.streams[self.node] = self
  if scope then
    self.is_hidden = true
    scope.streams[#scope.streams + 1] = self
  end
  return self
end

local function rename(self, name)
  check_c('name', C.sl_abi_streaming_node_name(self.context.handle, self.node, name))
  self.node_name = name
end

--- Runs fn, which makes streams, as one operation of the user: the stream it returns gets the
--- operation's name and position, the others are named after it.
---@param context table
---@param op string
---@param fn fun(): streamlua.DStream
---@return streamlua.DStream
function M.compose(context, op, fn)
  context:check_open(op)
  if context.scope then return fn() end
  context.position = context.position + 1
  local name = ('%s-%d'):format(op, context.position)
  local scope = { name = name, streams = {} }
  context.scope = scope
  local ok, result = pcall(fn)
  context.scope = nil
  if not ok then error(result, 0) end
  local hidden = {}
  for _, stream in ipairs(scope.streams) do
    if stream ~= result then hidden[#hidden + 1] = stream end
  end
  result.hidden = hidden
  result.is_hidden = nil
  result.op = op
  rename(result, name)
  return result
end
local compose = M.compose

--- Registers a function of the program, so that executors find it by its number: each evaluates the
--- same script. Returns a descriptor {op, fn, site, ref}.
local function describe(self, fields)
  local context = self.context
  fields.ref = #context.descriptors + 1
  local place = site.text()
  fields.site = place ~= '' and ('%s (%s)'):format(fields.site or fields.op, place)
    or fields.site or fields.op
  context.descriptors[fields.ref] = fields
  return fields
end
M.describe = describe

--- The dataset of a batch, nil when there is none: made once, then remembered as long as needed.
---@param time integer ms
---@return streamlua.Rdd?
function Stream:get_or_compute(time) return self.context:dataset(self, time) end

local function derive(self, op, fields)
  fields.op = op
  fields.parents = fields.parents or { self }
  return M.new(self.context, fields)
end
M.derive = derive

---------------------------------------------------------------------------------------------------
-- stateless operations

local function narrow(self, op, fn)
  check_function(op, fn)
  return compose(self.context, op, function()
    local step = describe(self, { op = op, fn = fn })
    return derive(self, op, {
      compute = function(_, time)
        local parent = self:get_or_compute(time)
        return parent and parent[op](parent, step)
      end,
    })
  end)
end

--- f(record) for each record.
---@param f fun(record: any): any
---@return streamlua.DStream
function Stream:map(f) return narrow(self, 'map', f) end

--- The records of the lists that f(record) returns.
---@param f fun(record: any): any[]
---@return streamlua.DStream
function Stream:flat_map(f) return narrow(self, 'flat_map', f) end

--- The records for which f(record) is true.
---@param f fun(record: any): any
---@return streamlua.DStream
function Stream:filter(f) return narrow(self, 'filter', f) end

--- f(list of a partition's records) returns the list of its new ones.
---@param f fun(records: any[]): any[]
---@return streamlua.DStream
function Stream:map_partitions(f) return narrow(self, 'map_partitions', f) end

--- Pairs {key, f(value)}.
---@param f fun(value: any): any
---@return streamlua.DStream
function Stream:map_values(f) return narrow(self, 'map_values', f) end

--- A pair {key, element} for each element of the list that f(value) returns.
---@param f fun(value: any): any[]
---@return streamlua.DStream
function Stream:flat_map_values(f) return narrow(self, 'flat_map_values', f) end

--- One list a partition.
---@return streamlua.DStream
function Stream:glom()
  return compose(self.context, 'glom', function()
    return derive(self, 'glom', {
      compute = function(_, time)
        local parent = self:get_or_compute(time)
        return parent and parent:glom()
      end,
    })
  end)
end

-- A shuffle of every batch. The number of partitions of a stream may change between batches.
local function shuffled(self, op, partitions, write, read)
  return derive(self, op, {
    partitions = partitions,
    compute = function(made, time)
      local parent = self:get_or_compute(time)
      return parent and rdds.wide(parent, { parent }, made.partitions, write, read)
    end,
  })
end

--- The same records in exactly n partitions.
---@param n integer
---@return streamlua.DStream
function Stream:repartition(n)
  if n == nil then site.raise('repartition: expected the number of partitions') end
  local count = check_partitions(self, 'repartition', n)
  local spread = { kind = 'spread', site = 'repartition' }
  return compose(self.context, 'repartition', function()
    return shuffled(self, 'repartition', count, spread, spread)
  end)
end

--- The values of each key reduced by f(a, b).
---@param f fun(a: any, b: any): any
---@param partitions? integer
---@return streamlua.DStream
function Stream:reduce_by_key(f, partitions)
  check_function('reduce_by_key', f)
  local count = check_partitions(self, 'reduce_by_key', partitions)
  return compose(self.context, 'reduce_by_key', function()
    local sink = describe(self, { kind = 'reduce', merge = f, site = 'reduce_by_key' })
    return shuffled(self, 'reduce_by_key', count, sink, sink)
  end)
end

local DEAL = { kind = 'deal', site = 'pairs' }

--- Pairs {key, list of its values}.
---@param partitions? integer
---@return streamlua.DStream
function Stream:group_by_key(partitions)
  local count = check_partitions(self, 'group_by_key', partitions)
  return compose(self.context, 'group_by_key', function()
    local write = { kind = 'deal', site = 'group_by_key (' .. site.text() .. ')' }
    return shuffled(self, 'group_by_key', count, write, { kind = 'group', site = 'group_by_key' })
  end)
end

--- The values of each key combined: create(value), merge_value(combined, value),
--- merge_combiners(combined, combined).
---@param create fun(value: any): any
---@param merge_value fun(combined: any, value: any): any
---@param merge_combiners fun(a: any, b: any): any
---@param partitions? integer
---@param map_side? boolean false: combine after the shuffle only
---@return streamlua.DStream
function Stream:combine_by_key(create, merge_value, merge_combiners, partitions, map_side)
  check_function('combine_by_key', create)
  check_function('combine_by_key', merge_value)
  check_function('combine_by_key', merge_combiners)
  local count = check_partitions(self, 'combine_by_key', partitions)
  return compose(self.context, 'combine_by_key', function()
    local combine = describe(self,
      { kind = 'combine', create = create, merge = merge_value, site = 'combine_by_key' })
    local merge = describe(self, { kind = 'reduce', merge = merge_combiners, site = 'combine_by_key' })
    if map_side == false then
      return shuffled(self, 'combine_by_key', count, { kind = 'deal', site = combine.site }, combine)
    end
    return shuffled(self, 'combine_by_key', count, combine, merge)
  end)
end

-- What a builtin of the library does for every record; found by name, so that any executor has it.
local function builtin(name)
  local fn = M.builtins[name]
  return { op = fn.op, fn = fn.fn, site = name, builtin = name }
end

M.builtins = {
  under_nil = { op = 'map', fn = function(record) return { 0, record } end },
  second = { op = 'map', fn = function(pair) return pair[2] end },
  with_one = { op = 'map', fn = function(record) return { record, 1 } end },
  one = { op = 'map', fn = function() return 1 end },
  zero_one = { op = 'map', fn = function() return { 0, 1 } end },
}
for name, step in pairs(rdds.JOINS) do M.builtins[name] = step end

local function add(a, b) return a + b end
local function subtract(a, b) return a - b end

--- Sinks and functions of the library itself, by name.
M.ADD = { kind = 'reduce', merge = add, fn = add, site = 'count', builtin = 'add' }
M.SUBTRACT = { op = 'count', fn = subtract, site = 'count', builtin = 'subtract' }
M.NOT_ZERO = { op = 'filter', fn = function(pair) return pair[2] ~= 0 end, site = 'count',
  builtin = 'not_zero' }

--- All of them by name.
M.library = { add = M.ADD, subtract = M.SUBTRACT, not_zero = M.NOT_ZERO, glom = rdds.GLOM }
for name in pairs(M.builtins) do M.library[name] = builtin(name) end

local function mapped(self, name)
  local step = M.library[name]
  return derive(self, 'map', {
    compute = function(_, time)
      local parent = self:get_or_compute(time)
      return parent and parent:map(step)
    end,
  })
end

--- One record a batch: all records reduced by f(a, b). A batch without records gives none.
---@param f fun(a: any, b: any): any
---@return streamlua.DStream
function Stream:reduce(f)
  check_function('reduce', f)
  return compose(self.context, 'reduce', function()
    return mapped(mapped(self, 'under_nil'):reduce_by_key(f, 1), 'second')
  end)
end

--- One record a batch: the number of its records, also 0.
---@return streamlua.DStream
function Stream:count()
  return compose(self.context, 'count', function()
    local step = M.library.zero_one
    local counted = derive(self, 'sum', {
      compute = function(_, time)
        local parent = self:get_or_compute(time)
        if not parent then return nil end
        local zero = rdds.of_parts(parent.env, { { n = 1, items = { { 0, 0 } } } })
        local all = rdds.union(parent.env, { parent:map(step), zero })
        return rdds.wide(all, { all }, 1, M.ADD, M.ADD)
      end,
    })
    return mapped(counted, 'second')
  end)
end

--- Pairs {value, how often the batch has it}.
---@param partitions? integer
---@return streamlua.DStream
function Stream:count_by_value(partitions)
  local count = check_partitions(self, 'count_by_value', partitions)
  return compose(self.context, 'count_by_value', function()
    return shuffled(mapped(self, 'with_one'), 'count_by_value', count, M.ADD, M.ADD)
  end)
end

---------------------------------------------------------------------------------------------------
-- several streams

local function check_siblings(what, streams)
  local first = streams[1]
  for _, other in ipairs(streams) do
    check_stream(what, other, first.context)
    if other.slide_ms ~= first.slide_ms then
      site.raise('%s: the streams produce at different intervals, %d ms and %d ms', what, first.slide_ms,
        other.slide_ms)
    end
  end
  return first
end

-- The datasets of a batch; a stream that has none fails the batch.
local function all_datasets(what, place, streams, time)
  local list = {}
  for i, stream in ipairs(streams) do
    list[i] = stream:get_or_compute(time)
    if not list[i] then
      error(('%s%s: stream %s has no dataset at %d ms'):format(place ~= '' and place .. ': ' or '', what,
        stream.node_name, time), 0)
    end
  end
  return list
end

--- The union of a list of streams (at least one).
---@param streams streamlua.DStream[]
---@return streamlua.DStream
function M.union(streams)
  local first = check_siblings('union', streams)
  return compose(first.context, 'union', function()
    return derive(first, 'union', {
      parents = streams,
      compute = function(self, time)
        local list = all_datasets('union', self.call_site, streams, time)
        return rdds.union(list[1].env, list)
      end,
    })
  end)
end

--- All records of this stream and of others.
---@param ... streamlua.DStream
---@return streamlua.DStream
function Stream:union(...)
  local streams = { self, ... }
  if #streams < 2 then site.raise('union: expected another stream') end
  return M.union(streams)
end

--- A stream whose dataset f makes from those of several streams: f(list of datasets, time) for a list
--- of the context's, f(a, b, time) when is_spread.
---@param what string name of the operation
---@param streams streamlua.DStream[]
---@param f function
---@param is_spread boolean
---@return streamlua.DStream
function M.transform(what, streams, f, is_spread)
  check_function(what, f)
  local first = check_siblings(what, streams)
  return compose(first.context, what, function()
    return derive(first, what, {
      parents = streams,
      compute = function(self, time)
        local list = all_datasets(what, self.call_site, streams, time)
        local result
        if is_spread then
          list[#list + 1] = time
          result = f(unpack(list))
        else
          result = f(list, time)
        end
        if not rdds.is(result) then
          error(('%s: %s: the function must return a dataset, got %s'):format(self.call_site, what,
            type(result)), 0)
        end
        -- The dataset may be another stream's; this one has a life of its own.
        return rdds.union(result.env, { result })
      end,
    })
  end)
end

--- f(dataset, time) runs when the batch is generated and returns this stream's dataset.
---@param f fun(rdd: streamlua.Rdd, time: integer): streamlua.Rdd
---@return streamlua.DStream
function Stream:transform(f) return M.transform('transform', { self }, f, true) end

--- f(dataset, other's dataset, time), likewise.
---@param other streamlua.DStream
---@param f fun(rdd: streamlua.Rdd, other: streamlua.Rdd, time: integer): streamlua.Rdd
---@return streamlua.DStream
function Stream:transform_with(other, f)
  check_stream('transform_with', other, self.context)
  return M.transform('transform_with', { self, other }, f, true)
end

local COGROUP = { kind = 'cogroup', site = 'cogroup' }

local function cogrouped(self, op, other, count)
  check_siblings(op, { self, other })
  return derive(self, 'cogroup', {
    parents = { self, other },
    partitions = count,
    compute = function(made, time)
      local list = all_datasets(op, made.call_site, made.parents, time)
      return rdds.wide(list[1], list, made.partitions, DEAL, COGROUP)
    end,
  })
end

--- Pairs {key, {values here, values there}} for every key of either side.
---@param other streamlua.DStream
---@param partitions? integer
---@return streamlua.DStream
function Stream:cogroup(other, partitions)
  check_stream('cogroup', other, self.context)
  local count = check_partitions(self, 'cogroup', partitions)
  return compose(self.context, 'cogroup', function() return cogrouped(self, 'cogroup', other, count) end)
end

for name, step in pairs(rdds.JOINS) do
  --- Joins by key within the batch: pairs {key, {a, b}}; NONE stands for a missing side.
  Stream[name] = function(self, other, partitions)
    check_stream(name, other, self.context)
    local count = check_partitions(self, name, partitions)
    return compose(self.context, name, function()
      local groups = cogrouped(self, name, other, count)
      return derive(groups, name, {
        partitions = count,
        compute = function(_, time)
          local parent = groups:get_or_compute(time)
          return parent and parent:flat_map_values(step)
        end,
      })
    end)
  end
end

---------------------------------------------------------------------------------------------------
-- output operations

-- Adds an output operation; run(self, rdd, time) is its job.
local function output(self, op, fields)
  return compose(self.context, op, function()
    fields.flags = C.SL_STREAMING_OUTPUT
    fields.is_output = true
    return derive(self, op, fields)
  end)
end
M.output = output

--- Calls f(dataset, time) for every batch, in the job.
---@param f fun(rdd: streamlua.Rdd, time: integer)
function Stream:foreach_rdd(f)
  check_function('foreach_rdd', f)
  output(self, 'foreach_rdd', {
    run_job = function(_, rdd, time) f(rdd, time) end,
  })
end

--- Prints the first n records of every batch (10).
---@param n? integer
function Stream:print(n)
  n = n == nil and 10 or n
  if type(n) ~= 'number' or n < 0 or n ~= math.floor(n) then
    site.raise('print: expected a number of records, got %s', tostring(n))
  end
  output(self, 'print', {
    -- It needs a few records only.
    runs_in_driver = true,
    run_job = function(made, rdd, time)
      local show = require 'streamlua.streaming.show'
      made.context:write(show.batch(time, rdd:take(n + 1), n))
    end,
  })
end

--- Saves every batch as text, one record a line, in a folder "prefix-<ms>.suffix" with a file for each
--- partition. What the same batch wrote before is replaced.
---@param prefix? string
---@param suffix? string
function Stream:save_as_text_files(prefix, suffix)
  for _, text in pairs({ prefix, suffix }) do
    if type(text) ~= 'string' then
      site.raise('save_as_text_files: expected a text, got %s', type(text))
    end
  end
  output(self, 'save_as_text_files', {
    run_job = function(_, rdd, time)
      require('streamlua.streaming.save').text(prefix, suffix, rdd, time)
    end,
  })
end

---------------------------------------------------------------------------------------------------
-- settings of a stream

local LEVELS = { memory = true, memory_serialized = true, disk = true }

--- Keeps the records of each batch as long as they are remembered. Levels: memory, memory_serialized,
--- disk. A window hands it to what it reads.
---@param level? string 'memory_serialized' when missing
function Stream:persist(level)
  level = level or 'memory_serialized'
  if not LEVELS[level] then
    site.raise('persist: %s is no level; levels are memory, memory_serialized, disk', tostring(level))
  end
  self.context:check_open('persist')
  -- A state has one version, unless its datasets are kept as well.
  if self.task_of then self.keeps_history = true end
  if self.persists_parent then
    self.parents[1]:persist(level)
    return self
  end
  check_c('persist', C.sl_abi_streaming_node_persist(self.context.handle, self.node, 1))
  self.storage_level = level
  return self
end

--- The same as persist('memory').
function Stream:cache() return self:persist('memory') end

--- Saves datasets at multiples of this interval.
---@param interval number|string
function Stream:checkpoint(interval)
  local ms = M.duration_ms('checkpoint', interval)
  self.context:check_open('checkpoint')
  local target = self.checkpointed or self
  check_c('checkpoint', C.sl_abi_streaming_node_checkpoint(self.context.handle, target.node, ms))
  target.storage_level = target.storage_level or 'memory_serialized'
  return self
end

--- Gives the stream a name, by which its state is found again.
---@param text string
function Stream:name(text)
  if type(text) ~= 'string' or text == '' then
    site.raise('name: expected a text, got %s', text == '' and "''" or type(text))
  end
  local before = self.node_name
  rename(self, text)
  for _, hidden in ipairs(self.hidden or {}) do
    if hidden.node_name:sub(1, #before + 1) == before .. '/' then
      rename(hidden, text .. hidden.node_name:sub(#before + 1))
    end
  end
  return self
end

--- Gives the batches of a stream from now on another number of partitions, while none is under way. Only
--- for streams that have one of their own (`partitions`).
---@param self streamlua.DStream
---@param n integer
function M.resize(self, n)
  local list = { self, unpack(self.hidden or {}) }
  for _, stream in ipairs(list) do
    if stream.partitions and stream.partitions ~= n then
      if stream.task_of then
        require('streamlua.streaming.state').resize(stream, n)
      else
        stream.partitions = n
      end
    end
  end
end

local node_out = NODE()

--- How long datasets are remembered, in ms; 0 before start unless it was set.
---@return integer
function Stream:remember_ms()
  check_c('remember', C.sl_abi_streaming_node_get(self.context.handle, self.node, node_out))
  return tonumber(node_out.remember_ms)
end

--- The checkpoint interval in ms, nil when there is none.
---@return integer?
function Stream:checkpoint_ms()
  check_c('checkpoint', C.sl_abi_streaming_node_get(self.context.handle, self.node, node_out))
  local ms = tonumber(node_out.checkpoint_ms)
  return ms > 0 and ms or nil
end

--- The number among the inputs, from 0; -1 for other streams.
---@return integer
function Stream:input_id()
  check_c('input_id', C.sl_abi_streaming_node_get(self.context.handle, self.node, node_out))
  return node_out.input_id
end

--- Raises how long datasets are remembered.
---@param duration number|string
function Stream:remember(duration)
  local ms = M.duration_ms('remember', duration)
  check_c('remember', C.sl_abi_streaming_node_remember(self.context.handle, self.node, ms))
  return self
end

--- The times of the datasets that are remembered now.
---@return integer[]
function Stream:remembered()
  local handle = self.context.handle
  local n = C.sl_abi_streaming_datasets(handle, self.node, nil, 0)
  local out = ffi.new('struct sl_streaming_dataset[?]', n + 1)
  C.sl_abi_streaming_datasets(handle, self.node, out, n)
  local times = {}
  for i = 0, n - 1 do times[i + 1] = tonumber(out[i].time) end
  return times
end

--- The datasets of all batches from `from` to `to` (ms, both included, moved down to the grid), oldest
--- first; those that are neither remembered nor can be made are left out.
---@param from integer
---@param to integer
---@return streamlua.Rdd[]
function Stream:slice(from, to)
  if type(from) ~= 'number' or type(to) ~= 'number' then
    site.raise('slice: expected two times in ms')
  end
  local handle = self.context.handle
  local zero = C.sl_abi_streaming_zero_time(handle)
  if zero == C.SL_STREAMING_UNKNOWN then
    site.raise('slice: stream %s was never initialised: its context has not been started', self.node_name)
  end
  local out = {}
  local first = C.sl_abi_time_floor(from, self.slide_ms, zero)
  for time = first, C.sl_abi_time_floor(to, self.slide_ms, zero), self.slide_ms do
    if time >= zero then out[#out + 1] = self:get_or_compute(time) end
  end
  return out
end

M.shuffled, M.mapped = shuffled, mapped

return M
