--- What a task of a stage does: it makes one partition of a dataset from blocks and hands the result
--- to a sink.
--
-- A task is data: {tree, sink}. A tree is one of
--
--     { op = 'block', block }               records that are there already
--     { op = 'pass', steps, input }         narrow steps over another tree
--     { op = 'read', sink, sides }          a shuffle's output: sides = lists of blocks, one a side
--     { op = 'whole', fn, input }           a function from a part to a part
--
-- and a sink says what becomes of the part: `store` (a block), `count`, `take` (a list of at most
-- `limit` records), `shuffle` (a block for each of `count` buckets), `call` (fn(part) of the driver).
-- Blocks are opaque here: `env.fetch(block)` gives their part and `env.store(part)` makes one.

local pass = require 'streamlua.streaming.pass'

local M = {}

-- How many records a tree has, by operation: function(env, tree) -> number or nil.
local COUNTERS = {
  block = function(_, tree) return tree.block.n end,
}

local eval

local READERS = {}

-- One side: all blocks of the bucket into one table of values by key.
local function read_combined(env, tree)
  local place = 'read ' .. (tree.sink.site or tree.sink.kind)
  local acc = pass.combiner(place)
  for _, block in ipairs(tree.sides[1]) do
    pass.run(env.fetch(block), {}, tree.sink, acc)
  end
  pass.combined(place, acc)
  return { n = acc.n, keys = acc.keys, vals = acc.vals }
end

for _, kind in ipairs({ 'reduce', 'combine', 'group', 'merge_lists' }) do
  READERS[kind] = read_combined
end

function READERS.cogroup(env, tree)
  local acc = pass.combiner()
  for side, blocks in ipairs(tree.sides) do
    local sink = { kind = 'cogroup', side = side, sides = #tree.sides, site = tree.sink.site }
    for _, block in ipairs(blocks) do pass.run(env.fetch(block), {}, sink, acc) end
  end
  return { n = acc.n, keys = acc.keys, vals = acc.vals }
end

-- Records of all blocks, one after the other.
function READERS.spread(env, tree)
  local out = { n = 0, items = {} }
  for _, block in ipairs(tree.sides[1]) do
    pass.run(env.fetch(block), {}, { kind = 'list' }, out)
  end
  return out
end

local OPS = {
  block = function(env, tree) return env.fetch(tree.block) end,
  pass = function(env, tree) return pass.run(eval(env, tree.input), tree.steps) end,
  read = function(env, tree) return READERS[tree.sink.kind](env, tree) end,
  whole = function(env, tree) return tree.fn(eval(env, tree.input)) end,
}

function eval(env, tree) return OPS[tree.op](env, tree) end
M.eval = eval

--- Adds an operation for trees: function(env, tree) -> part, and perhaps one that counts its records
--- without making them: function(env, tree) -> number or nil.
---@param name string
---@param fn function
---@param counter? function
function M.register(name, fn, counter)
  OPS[name] = fn
  COUNTERS[name] = counter
end

-- The input of a tree's steps and those steps, so that a sink can become part of their loop.
local function open(env, tree)
  if tree.op == 'pass' then return eval(env, tree.input), tree.steps end
  return eval(env, tree), {}
end

-- Non-empty parts as blocks; an empty bucket is false.
local function store_buckets(env, buckets)
  local blocks = {}
  for i, bucket in ipairs(buckets) do blocks[i] = bucket.n > 0 and env.store(bucket) or false end
  return blocks
end

local WRITERS = {}

-- Values are combined by key before they are dealt out.
local function write_combined(env, part, steps, sink)
  local place = 'write ' .. (sink.combine.site or sink.combine.kind)
  local acc = pass.run(part, steps, sink.combine, pass.combiner(place))
  pass.combined(place, acc)
  return pass.split(acc, sink.count)
end

WRITERS.reduce, WRITERS.combine = write_combined, write_combined

function WRITERS.deal(env, part, steps, sink)
  return pass.run(part, steps, { kind = 'deal', site = sink.combine.site },
    pass.dealer(sink.count, 'deal')).buckets
end

function WRITERS.spread(env, part, steps, sink)
  return pass.run(part, steps, { kind = 'spread' }, pass.dealer(sink.count, 'spread', sink.turn)).buckets
end

local SINKS = {
  store = function(env, tree) return env.store(eval(env, tree)) end,
  count = function(env, tree)
    -- Some trees know without making the records.
    local counter = COUNTERS[tree.op]
    local known = counter and counter(env, tree)
    if known then return known end
    local part, steps = open(env, tree)
    if #steps == 0 then return part.n end
    return pass.run(part, steps, { kind = 'count' }, { n = 0 }).n
  end,
  take = function(env, tree, sink)
    local part = eval(env, tree)
    local items = pass.items_of(part)
    local out, n = {}, math.min(part.n, sink.limit)
    for i = 1, n do out[i] = items[i] end
    return { n = n, items = out }
  end,
  shuffle = function(env, tree, sink)
    local part, steps = open(env, tree)
    return store_buckets(env, WRITERS[sink.combine.kind](env, part, steps, sink))
  end,
  call = function(env, tree, sink) return sink.fn(eval(env, tree)) end,
}

--- Adds a sink: function(env, tree, sink) -> result.
---@param name string
---@param fn function
function M.register_sink(name, fn) SINKS[name] = fn end

--- Runs a task. Raises what user code raises.
---@param env table
---@param spec table
---@return any
function M.run(env, spec) return SINKS[spec.sink.kind](env, spec.tree, spec.sink) end

return M
