--- Fused passes: the narrow operations between two materialised partitions become one generated loop.
--
--     local pass = require 'streamlua.streaming.pass'
--     local part = pass.run({ n = 2, items = { 1, 2 } },
--       { { op = 'map', fn = function(x) return x + 1 end } })
--     assert(part.items[2] == 3)
--
-- A *part* holds the records of a partition, n of them: either `items`, or columns `keys` and `vals`
-- when all records are pairs. A *step* is {op, fn, site}. The steps `map_partitions` and `glom` need a
-- whole partition and end a loop; all others run inside it. What ends the last loop is the *sink*: a
-- new part, a table of combined values by key, or pairs dealt into buckets.
--
-- The text of a loop is made once for each sequence of operations and places of their functions, so
-- that every program gets traces of its own, and batches after the first find them compiled.

local abi = require 'streamlua.abi'
local site = require 'streamlua.streaming.site'
local table_new = require 'table.new'
local value = require 'streamlua.runtime.value'

local C, ffi = abi.C, abi.ffi
local concat = table.concat
local type = type

local M = {}

---------------------------------------------------------------------------------------------------
-- keys that Lua's tables do not compare as API.md says: int64, NaN, booleans, nil, tables

-- Where an index keeps its other keys: by the bytes of their key form.
local OTHERS = {}

local pointer_t = ffi.typeof('const uint8_t *')

-- The place of a key that is neither string nor proper number: a table and the key in it.
local function other_place(index, key)
  local bytes, length = value.encode_key(key)
  if not bytes then error(('%s can not be a key'):format(length), 0) end
  -- An integer that is a number is that number's key.
  if bytes[0] == C.SL_VALUE_NUMBER then
    local number = value.decode_trusted(ffi.cast(pointer_t, bytes))
    if number == number then return index, number end
  end
  local others = index[OTHERS]
  if not others then
    others = {}
    index[OTHERS] = others
  end
  return others, ffi.string(bytes, length)
end

--- The place of any key in an index: a table and the key in it.
---@param index table
---@param key any
---@return table
---@return string|number
function M.place(index, key)
  if type(key) == 'string' or (type(key) == 'number' and key == key) then return index, key end
  return other_place(index, key)
end

local hash_out = ffi.new('uint64_t[1]')

local function other_bucket(key, count)
  local bytes, length = value.encode_key(key)
  if not bytes then error(('%s can not be a key'):format(length), 0) end
  C.sl_keyhash_encoded(bytes, length, hash_out)
  return C.sl_keyhash_group(hash_out[0], count)
end

--- The bucket of a key among `count`, from 0: its key group, the same in every process.
---@param key any
---@param count integer
---@return integer
function M.bucket(key, count)
  if type(key) == 'string' then return C.sl_keyhash_group_of_string(key, #key, count) end
  if type(key) == 'number' then return C.sl_keyhash_group_of_number(key, count) end
  return other_bucket(key, count)
end

---------------------------------------------------------------------------------------------------
-- generated text

local function bad_list(step, got)
  error(('%s: the function must return a list, got %s'):format(step, type(got)), 0)
end

local function bad_pair(step, got)
  error(('%s: records must be pairs {key, value}, got %s'):format(step, type(got)), 0)
end

local STEPS = {
  map = 'local v = f#(v)\n',
  filter = 'if f#(v) then\n',
  flat_map = [[
local l = f#(v)
if type(l) ~= 'table' then bad_list(site#, l) end
for j = 1, LEN(l) do
local v = l[j]
]],
  map_values = [[
if type(v) ~= 'table' then bad_pair(site#, v) end
local v = { v[1], f#(v[2]) }
]],
  flat_map_values = [[
if type(v) ~= 'table' then bad_pair(site#, v) end
local k, l = v[1], f#(v[2])
if type(l) ~= 'table' then bad_list(site#, l) end
for j = 1, LEN(l) do
local v = { k, l[j] }
]],
}

local CLOSERS = { filter = 'end\n', flat_map = 'end\n', flat_map_values = 'end\n' }

-- What the sinks need before the loop, for each record, and after the loop. A combining sink knows
-- the value of a new key (CREATE) and how a further one joins (MERGE).
local COMBINE = {
  before = [[
local index, keys, vals, m = acc.index, acc.keys, acc.vals, acc.n
]],
  record = [[
if type(v) ~= 'table' then bad_pair(sink_site, v) end
local k, x = v[1], v[2]
local at = index[k]
if at ~= nil then
  MERGE
elseif type(k) == 'string' or (type(k) == 'number' and k == k) then
  m = m + 1
  index[k] = m
  keys[m] = k
  CREATE
else
  local place, name = other_place(index, k)
  at = place[name]
  if at ~= nil then
    MERGE
  else
    m = m + 1
    place[name] = m
    keys[m] = k
    CREATE
  end
end
]],
  after = 'acc.n = m\n',
}

local COMBINES = {
  reduce = { create = 'vals[m] = x', merge = 'vals[at] = merge(vals[at], x)' },
  combine = { create = 'vals[m] = create(x)', merge = 'vals[at] = merge(vals[at], x)' },
  group = {
    create = 'vals[m] = { x }',
    merge = 'local list = vals[at] list[LEN(list) + 1] = x',
  },
  -- Values are lists already; those of others are not changed.
  merge_lists = { create = 'vals[m] = append({}, x)', merge = 'append(vals[at], x)' },
  -- Side `side` of `sides`; values are one list a side.
  cogroup = {
    create = 'local lists = new_lists(sides) lists[side][1] = x vals[m] = lists',
    merge = 'local list = vals[at][side] list[LEN(list) + 1] = x',
  },
}

local SINKS = {
  list = {
    before = 'local out, m = acc.items, acc.n\n',
    record = 'm = m + 1\nout[m] = v\n',
    after = 'acc.n = m\n',
  },
  count = { before = 'local m = acc.n\n', record = 'm = m + 1\n', after = 'acc.n = m\n' },
  -- Pairs into buckets by key.
  deal = {
    before = 'local buckets, count = acc.buckets, acc.count\n',
    record = [[
if type(v) ~= 'table' then bad_pair(sink_site, v) end
local k = v[1]
local b
if type(k) == 'string' then
  b = C.sl_keyhash_group_of_string(k, LEN(k), count)
elseif type(k) == 'number' then
  b = C.sl_keyhash_group_of_number(k, count)
else
  b = other_bucket(k, count)
end
local bucket = buckets[b + 1]
local m = bucket.n + 1
bucket.n = m
bucket.keys[m] = k
bucket.vals[m] = v[2]
]],
    after = '',
  },
  -- Records into buckets in turn.
  spread = {
    before = 'local buckets, count, turn = acc.buckets, acc.count, acc.turn\n',
    record = [[
local bucket = buckets[turn + 1]
turn = (turn + 1) % count
local m = bucket.n + 1
bucket.n = m
bucket.items[m] = v
]],
    after = 'acc.turn = turn\n',
  },
}

for name, way in pairs(COMBINES) do
  SINKS[name] = {
    before = COMBINE.before,
    record = COMBINE.record:gsub('MERGE', way.merge):gsub('CREATE', way.create),
    after = COMBINE.after,
  }
end

local PREFIX = [[
local fns, sites, sink, h = ...
local type, C = type, h.C
local bad_list, bad_pair, other_place, other_bucket = h.bad_list, h.bad_pair, h.other_place, h.other_bucket
local append, new_lists = h.append, h.new_lists
local create, merge, sink_site, side, sides = sink.create, sink.merge, sink.site, sink.side, sink.sides
]]

local SOURCES = {
  items = { arguments = 'items', read = 'local v = items[i]\n' },
  pairs = { arguments = 'from_keys, from_vals', read = 'local v = { from_keys[i], from_vals[i] }\n' },
}

local function text_of(source, steps, first, last, sink)
  local parts = { PREFIX }
  for i = first, last do
    parts[#parts + 1] = ('local f%d, site%d = fns[%d], sites[%d]\n'):format(i, i, i, i)
  end
  local from, to = SOURCES[source], SINKS[sink]
  parts[#parts + 1] = ('return function(acc, %s, n)\n'):format(from.arguments)
  parts[#parts + 1] = to.before
  parts[#parts + 1] = 'for i = 1, n do\n'
  parts[#parts + 1] = from.read
  local closers = {}
  for i = first, last do
    local op = steps[i].op
    parts[#parts + 1] = (STEPS[op]:gsub('#', tostring(i)))
    if CLOSERS[op] then table.insert(closers, 1, CLOSERS[op]) end
  end
  parts[#parts + 1] = to.record
  parts[#parts + 1] = concat(closers)
  parts[#parts + 1] = 'end\n'
  parts[#parts + 1] = to.after
  parts[#parts + 1] = 'end\n'
  return (concat(parts):gsub('LEN%((%w+)%)', '#%1'))
end

local function append(list, more)
  local n = #list
  for i = 1, #more do list[n + i] = more[i] end
  return list
end

local function new_lists(count)
  local lists = {}
  for i = 1, count do lists[i] = {} end
  return lists
end

local HELPERS = {
  C = C,
  bad_list = bad_list,
  bad_pair = bad_pair,
  other_place = other_place,
  other_bucket = other_bucket,
  append = append,
  new_lists = new_lists,
}

---------------------------------------------------------------------------------------------------
-- compiled loops

local factories = {}
local places = setmetatable({}, { __mode = 'k' })

-- What tells functions of different places in programs apart; closures of one place share loops.
local function place_of(fn)
  local place = places[fn]
  if not place then
    place = site.of_function(fn)
    places[fn] = place
  end
  return place
end

local function loop(source, steps, first, last, sink)
  local id = { source, sink.kind }
  local fns, sites = {}, {}
  for i = first, last do
    local step = steps[i]
    fns[i], sites[i] = step.fn, step.site or step.op
    id[#id + 1] = step.op
    id[#id + 1] = place_of(step.fn)
  end
  if sink.create then id[#id + 1] = 'create ' .. place_of(sink.create) end
  if sink.merge then id[#id + 1] = 'merge ' .. place_of(sink.merge) end
  local key = concat(id, ' ')
  local factory = factories[key]
  if not factory then
    factory = assert(loadstring(text_of(source, steps, first, last, sink.kind), '=pass'))
    factories[key] = factory
  end
  return factory(fns, sites, sink, HELPERS)
end

local BARRIERS = { map_partitions = true, glom = true }

-- The records of a part as a list that may be given away.
local function items_of(part)
  if part.items then return part.items end
  local items = table_new(part.n, 0)
  local keys, vals = part.keys, part.vals
  for i = 1, part.n do items[i] = { keys[i], vals[i] } end
  return items
end
M.items_of = items_of

local function through(part, steps, first, last, sink, acc)
  if part.items then
    loop('items', steps, first, last, sink)(acc, part.items, part.n)
  else
    loop('pairs', steps, first, last, sink)(acc, part.keys, part.vals, part.n)
  end
  return acc
end

local function copy_of(items, n)
  local copy = table_new(n, 0)
  for i = 1, n do copy[i] = items[i] end
  return copy
end

-- A step that takes a whole partition; the function gets a list of its own.
local function run_barrier(part, step)
  local list = items_of(part)
  if list == part.items then list = copy_of(list, part.n) end
  if step.op == 'glom' then return { n = 1, items = { list } } end
  local result = step.fn(list)
  if type(result) ~= 'table' then bad_list(step.site or step.op, result) end
  return { n = #result, items = result }
end

local LIST = { kind = 'list' }

--- Runs steps over a part. Without a sink the result is a new part (the part itself when there are no
--- steps). A sink is {kind, site, create, merge, side, sides} and goes with an accumulator of
--- `M.combiner` or `M.dealer`, which is returned.
---@param part table
---@param steps table[]
---@param sink? table
---@param acc? table
---@return table
function M.run(part, steps, sink, acc)
  local first = 1
  for i = 1, #steps do
    if BARRIERS[steps[i].op] then
      if i > first then part = through(part, steps, first, i - 1, LIST, { n = 0, items = {} }) end
      part = run_barrier(part, steps[i])
      first = i + 1
    end
  end
  if sink then return through(part, steps, first, #steps, sink, acc) end
  if first > #steps then return part end
  return through(part, steps, first, #steps, LIST, { n = 0, items = table_new(part.n, 0) })
end

-- How many keys the last tables for a place of the program had: the next one has about as many.
local sizes = {}

--- An empty table of values by key, for the combining sinks; it is a part of pairs. `place` names what it
--- is for: it gets room for as many keys as the last one of that name had (see `M.combined`).
---@param place? string
---@return table
function M.combiner(place)
  local hint = place and sizes[place] or 0
  return { n = 0, index = table_new(0, hint), keys = table_new(hint, 0), vals = table_new(hint, 0) }
end

--- Notes how many keys such a table got.
---@param place string
---@param acc table
function M.combined(place, acc) sizes[place] = acc.n end

--- Empty buckets for the sinks `deal` and `spread`.
---@param count integer
---@param kind 'deal'|'spread'
---@param turn? integer bucket that gets the first record of a spread, from 0
---@return table
function M.dealer(count, kind, turn)
  local buckets = {}
  for i = 1, count do
    buckets[i] = kind == 'deal' and { n = 0, keys = {}, vals = {} } or { n = 0, items = {} }
  end
  return { buckets = buckets, count = count, turn = (turn or 0) % count }
end

--- Splits a part of pairs by key.
---@param part table
---@param count integer
---@return table[] parts
function M.split(part, count)
  if count == 1 then return { { n = part.n, keys = part.keys, vals = part.vals } } end
  return through(part, {}, 1, 0, { kind = 'deal' }, M.dealer(count, 'deal')).buckets
end

--- Forgets all generated loops; for tests.
function M.reset() factories = {} end

return M
