--- Datasets: the records of one stream for one batch, in partitions, as a recipe that is followed when
--- an action needs them.
--
--     local rdd = require 'streamlua.streaming.rdd'
--     local numbers = rdd.of_list(rdd.inline(), { 1, 2, 3, 4 }, 2)
--     assert(numbers:map(function(x) return 2 * x end):reduce(function(a, b) return a + b end) == 20)
--
-- An operation makes a new dataset and runs nothing. An action (collect, count, take, ...) runs the
-- stages that are missing: one for each shuffle and one for itself, with a task for each partition.
-- Narrow operations in a row become one pass of a task. What a shuffle wrote, and what a persisted
-- dataset holds, is kept until the dataset is released.
--
-- The *env* runs tasks: `env:run(tasks)` gives their results or raises (and hands each to a second
-- argument, a function, as soon as it is there), `env.fetch(block)` the records
-- of a block.

local pass = require 'streamlua.streaming.pass'
local site = require 'streamlua.streaming.site'
local tasks = require 'streamlua.streaming.task'

local M = {}

--- The missing side of an outer join.
M.NONE = setmetatable({}, {
  __tostring = function() return 'NONE' end,
  __newindex = function() error('NONE can not be changed', 2) end,
})
local NONE = M.NONE

---@class streamlua.Rdd
---@field env table
---@field count_of_partitions integer
---@field is_local boolean made with functions that only this Lua state has
---@field map fun(self: streamlua.Rdd, f: function): streamlua.Rdd
---@field filter fun(self: streamlua.Rdd, f: function): streamlua.Rdd
---@field flat_map fun(self: streamlua.Rdd, f: function): streamlua.Rdd
---@field map_values fun(self: streamlua.Rdd, f: function): streamlua.Rdd
---@field flat_map_values fun(self: streamlua.Rdd, f: function): streamlua.Rdd
---@field map_partitions fun(self: streamlua.Rdd, f: function): streamlua.Rdd
---@field join fun(self: streamlua.Rdd, other: streamlua.Rdd, partitions?: integer): streamlua.Rdd
---@field left_outer_join fun(self: streamlua.Rdd, other: streamlua.Rdd, partitions?: integer): streamlua.Rdd
---@field right_outer_join fun(self: streamlua.Rdd, other: streamlua.Rdd, partitions?: integer): streamlua.Rdd
---@field full_outer_join fun(self: streamlua.Rdd, other: streamlua.Rdd, partitions?: integer): streamlua.Rdd
local Rdd = {}
Rdd.__index = Rdd
M.Rdd = Rdd

local function new(env, op, partitions, fields)
  fields.env, fields.op, fields.count_of_partitions = env, op, partitions
  return setmetatable(fields, Rdd)
end

--- Whether a value is a dataset.
---@param item any
---@return boolean
function M.is(item) return getmetatable(item) == Rdd end

---------------------------------------------------------------------------------------------------
-- making

--- A dataset of blocks that are there.
---@param env table
---@param blocks table[]
---@return streamlua.Rdd
function M.of_blocks(env, blocks) return new(env, 'data', #blocks, { blocks = blocks }) end

-- Contiguous, nearly equal slices.
local function slices(list, n, count)
  local parts = {}
  for p = 0, count - 1 do
    local from, to = math.floor(p * n / count), math.floor((p + 1) * n / count)
    local items = {}
    for i = from + 1, to do items[i - from] = list[i] end
    parts[p + 1] = { n = to - from, items = items }
  end
  return parts
end
M.slices = slices

--- A dataset of parts.
---@param env table
---@param parts table[]
---@return streamlua.Rdd
function M.of_parts(env, parts)
  local blocks = {}
  for i, part in ipairs(parts) do blocks[i] = { n = part.n, part = part } end
  return M.of_blocks(env, blocks)
end

--- A dataset of a list, cut into contiguous, nearly equal partitions.
---@param env table
---@param list any[]
---@param partitions integer
---@return streamlua.Rdd
function M.of_list(env, list, partitions) return M.of_parts(env, slices(list, #list, partitions)) end

--- A dataset without records and without partitions.
---@param env table
---@return streamlua.Rdd
function M.empty(env) return M.of_blocks(env, {}) end

-- A step: descriptors of streams are shared by all batches, others are made here.
local function step_of(op, fn)
  if type(fn) == 'table' then return fn end
  if type(fn) ~= 'function' then site.raise('rdd:%s: expected a function, got %s', op, type(fn)) end
  return { op = op, fn = fn, site = op, is_local = true }
end

local function narrow(self, step)
  return new(self.env, 'narrow', self.count_of_partitions,
    { parent = self, step = step, is_local = self.is_local or step.is_local })
end

--- The narrow operations take a function, or a step of a stream.
for _, op in ipairs({ 'map', 'filter', 'flat_map', 'map_values', 'flat_map_values', 'map_partitions' }) do
  Rdd[op] = function(self, fn) return narrow(self, step_of(op, fn)) end
end

local function nothing(part) return part end

--- The step of `glom`.
M.GLOM = { op = 'glom', fn = nothing, site = 'glom', builtin = 'glom' }

--- Each partition becomes one record: the list of its records.
---@return streamlua.Rdd
function Rdd:glom() return narrow(self, M.GLOM) end

local function first_of(pair) return pair[1] end
local function second_of(pair) return pair[2] end

--- The keys of pairs, and their values.
---@return streamlua.Rdd
function Rdd:keys() return self:map(first_of) end
---@return streamlua.Rdd
function Rdd:values() return self:map(second_of) end

local function union_of(env, list)
  local count, is_local = 0, false
  for _, rdd in ipairs(list) do
    count = count + rdd.count_of_partitions
    is_local = is_local or rdd.is_local
  end
  return new(env, 'union', count, { parents = list, is_local = is_local })
end
M.union = union_of

local function check_rdd(what, other)
  if not M.is(other) then site.raise('rdd:%s: expected a dataset, got %s', what, type(other)) end
  return other
end

--- All records of this dataset and of others.
---@param ... streamlua.Rdd
---@return streamlua.Rdd
function Rdd:union(...)
  local list = { self }
  for i = 1, select('#', ...) do list[i + 1] = check_rdd('union', (select(i, ...))) end
  return union_of(self.env, list)
end

-- A shuffle: sides are datasets, `write` and `read` are descriptors of sinks.
local function wide(self, sides, count, write, read)
  local is_local = write.is_local or read.is_local or false
  local shuffles = {}
  for i, rdd in ipairs(sides) do
    shuffles[i] = { parent = rdd, write = write, count = count }
    is_local = is_local or rdd.is_local
  end
  return new(self.env, 'wide', count, { sides = shuffles, read = read, is_local = is_local })
end
M.wide = wide

local function partitions_of(self, what, n)
  if n == nil then return self.env.default_partitions or 2 end
  if type(n) ~= 'number' or n < 1 or n ~= math.floor(n) then
    site.raise('rdd:%s: the number of partitions must be a whole number from 1 on', what)
  end
  return n
end

local DEAL = { kind = 'deal', site = 'pairs' }

local function local_sink(kind, create, merge)
  return { kind = kind, create = create, merge = merge, site = kind .. '_by_key', is_local = true }
end

--- Pairs with the values of each key reduced by f(a, b).
---@param f function
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:reduce_by_key(f, partitions)
  local step = step_of('reduce_by_key', f)
  local sink = step.kind and step or local_sink('reduce', nil, step.fn)
  return wide(self, { self }, partitions_of(self, 'reduce_by_key', partitions), sink, sink)
end

--- Pairs with the values of each key combined: create(value), merge_value(combined, value) and
--- merge_combiners(combined, combined); map_side = false combines after the shuffle only.
---@param create fun(value: any): any
---@param merge_value fun(combined: any, value: any): any
---@param merge_combiners fun(a: any, b: any): any
---@param partitions? integer
---@param map_side? boolean true when missing
---@return streamlua.Rdd
function Rdd:combine_by_key(create, merge_value, merge_combiners, partitions, map_side)
  local count = partitions_of(self, 'combine_by_key', partitions)
  step_of('combine_by_key', create)
  step_of('combine_by_key', merge_value)
  local write = local_sink('combine', create, merge_value)
  if map_side == false then return wide(self, { self }, count, DEAL, write) end
  return wide(self, { self }, count, write,
    local_sink('reduce', nil, step_of('combine_by_key', merge_combiners).fn))
end

local GROUP = { kind = 'group', site = 'group_by_key' }
local COGROUP = { kind = 'cogroup', site = 'cogroup' }

--- Pairs {key, list of values}.
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:group_by_key(partitions)
  return wide(self, { self }, partitions_of(self, 'group_by_key', partitions), DEAL, GROUP)
end

--- Pairs {key, {list of this, list of other, ...}} for every key of any side.
---@param other streamlua.Rdd|streamlua.Rdd[]
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:cogroup(other, partitions)
  local sides = { self }
  for _, rdd in ipairs(M.is(other) and { other } or type(other) == 'table' and other or { other }) do
    sides[#sides + 1] = check_rdd('cogroup', rdd)
  end
  return wide(self, sides, partitions_of(self, 'cogroup', partitions), DEAL, COGROUP)
end

-- The cross product of the two lists of a key; an empty one of an outer side counts as {NONE}.
local NO_SIDE = { NONE }
local function joiner(keeps_left, keeps_right)
  return function(lists)
    local left, right = lists[1], lists[2]
    if keeps_left and #right == 0 then right = NO_SIDE end
    if keeps_right and #left == 0 then left = NO_SIDE end
    local out, n = {}, 0
    for i = 1, #left do
      for j = 1, #right do
        n = n + 1
        out[n] = { left[i], right[j] }
      end
    end
    return out
  end
end

--- Steps that turn a cogroup of two into a join.
M.JOINS = {}
for name, keeps in pairs({ join = { false, false }, left_outer_join = { true, false },
  right_outer_join = { false, true }, full_outer_join = { true, true } }) do
  M.JOINS[name] = { op = 'flat_map_values', fn = joiner(keeps[1], keeps[2]), site = name, builtin = name }
  --- Joins by key: pairs {key, {a, b}}; NONE stands for a missing side.
  Rdd[name] = function(self, other, partitions)
    return narrow(self:cogroup(check_rdd(name, other), partitions), M.JOINS[name])
  end
end

--- The pairs whose key the other dataset does not have.
---@param other streamlua.Rdd
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:subtract_by_key(other, partitions)
  return self:cogroup(check_rdd('subtract_by_key', other), partitions)
    :flat_map_values(function(lists) return #lists[2] == 0 and lists[1] or {} end)
end

local SPREAD = { kind = 'spread', site = 'repartition' }

--- The same records in exactly this many partitions.
---@param partitions integer
---@return streamlua.Rdd
function Rdd:repartition(partitions)
  return wide(self, { self }, partitions_of(self, 'repartition', partitions), SPREAD, SPREAD)
end

--- The distinct records.
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:distinct(partitions)
  return self:map(function(x) return { x, true } end)
    :reduce_by_key(function(a) return a end, partitions):keys()
end

-- How values of different types are ordered.
local RANKS = { ['nil'] = 1, boolean = 2, number = 3, cdata = 3, string = 4, table = 5, userdata = 6 }

local function less(a, b)
  local kind_a, kind_b = type(a), type(b)
  if kind_a ~= kind_b and not (RANKS[kind_a] == 3 and RANKS[kind_b] == 3) then
    return RANKS[kind_a] < RANKS[kind_b]
  elseif kind_a == 'boolean' then
    return b and not a
  elseif kind_a == 'table' then
    for i = 1, math.max(#a, #b) do
      if less(a[i], b[i]) then return true end
      if less(b[i], a[i]) then return false end
    end
    return false
  elseif kind_a == 'nil' or kind_a == 'userdata' then
    return false
  elseif a ~= a or b ~= b then
    -- What is no number comes behind all that are.
    return a == a
  end
  return a < b
end

--- All records in order of f(record) (the record itself without f); partitions are contiguous. Equal
--- ones keep their order.
---@param f? function
---@param is_ascending? boolean true when missing
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:sort_by(f, is_ascending, partitions)
  if f ~= nil then step_of('sort_by', f) end
  local count = partitions_of(self, 'sort_by', partitions or math.max(1, self.count_of_partitions))
  return new(self.env, 'gather', count, { parent = self, is_local = true, whole = function(items, n)
    local order, by = {}, {}
    for i = 1, n do
      order[i] = i
      by[i] = items[i]
      if f then by[i] = f(items[i]) end
    end
    table.sort(order, function(a, b)
      local x, y = by[a], by[b]
      if is_ascending == false then
        if less(y, x) then return true end
        if less(x, y) then return false end
      else
        if less(x, y) then return true end
        if less(y, x) then return false end
      end
      return a < b
    end)
    local out = {}
    for i = 1, n do out[i] = items[order[i]] end
    return out
  end })
end

--- Pairs in order of their keys.
---@param is_ascending? boolean true when missing
---@param partitions? integer
---@return streamlua.Rdd
function Rdd:sort_by_key(is_ascending, partitions) return self:sort_by(first_of, is_ascending, partitions) end

---------------------------------------------------------------------------------------------------
-- stages

local function union_place(self, p)
  for _, parent in ipairs(self.parents) do
    if p <= parent.count_of_partitions then return parent, p end
    p = p - parent.count_of_partitions
  end
end

local tree

local TREES = {
  data = function() error('the records of this dataset are not held any more', 0) end,
  narrow = function(self, p)
    local steps, rdd = {}, self
    while rdd.op == 'narrow' and not rdd.blocks do
      table.insert(steps, 1, rdd.step)
      rdd = rdd.parent
    end
    return { op = 'pass', steps = steps, input = tree(rdd, p) }
  end,
  union = function(self, p)
    local parent, place = union_place(self, p)
    return tree(parent, place)
  end,
  wide = function(self, p)
    local sides = {}
    for i, side in ipairs(self.sides) do
      local blocks = {}
      for _, buckets in ipairs(side.written) do blocks[#blocks + 1] = buckets[p] or nil end
      sides[i] = blocks
    end
    return { op = 'read', sink = self.read, sides = sides }
  end,
  custom = function(self, p) return self:make_tree(p) end,
}

function tree(self, p)
  if self.blocks then return { op = 'block', block = self.blocks[p] } end
  return TREES[self.op](self, p)
end
M.tree = tree

local prepare

local function run_tasks(self, sink, first, last)
  local list = {}
  for p = first or 1, last or self.count_of_partitions do
    list[#list + 1] = { tree = tree(self, p), sink = sink(p), is_local = self.is_local }
  end
  if #list == 0 then return {} end
  return self.env:run(list)
end

local function write_side(self, side)
  if side.written then return end
  local parent = side.parent
  prepare(parent)
  side.written = run_tasks(parent, function(p)
    return { kind = 'shuffle', combine = side.write, count = side.count, turn = p - 1 }
  end)
  return self
end

local function fetch_all(self)
  local parts = {}
  if self.blocks then
    for i, block in ipairs(self.blocks) do parts[i] = self.env.fetch(block) end
    return parts
  end
  for i, block in ipairs(run_tasks(self, function() return { kind = 'store' } end)) do
    parts[i] = self.env.fetch(block)
  end
  return parts
end

local PREPARE = {
  data = function() end,
  narrow = function(self) prepare(self.parent) end,
  union = function(self)
    for _, parent in ipairs(self.parents) do prepare(parent) end
  end,
  wide = function(self)
    for _, side in ipairs(self.sides) do write_side(self, side) end
  end,
  gather = function(self)
    prepare(self.parent)
    local items, n = {}, 0
    for _, part in ipairs(fetch_all(self.parent)) do
      local list = pass.items_of(part)
      for i = 1, part.n do items[n + i] = list[i] end
      n = n + part.n
    end
    self.blocks = M.of_parts(self.env, slices(self.whole(items, n), n, self.count_of_partitions)).blocks
  end,
  custom = function(self) self:make_ready() end,
}

-- Runs the stages before this dataset's own, and its own when it is persisted.
function prepare(self)
  if self.blocks then return end
  PREPARE[self.op](self)
  if self.is_persisted and not self.blocks then
    self.blocks = run_tasks(self, function() return { kind = 'store' } end)
    local keep = self.env.keep
    if keep then
      for i, block in ipairs(self.blocks) do self.blocks[i] = keep(block, self.is_persisted) end
    end
  end
end
M.prepare = prepare

--- A dataset whose partitions are made by trees of its own: fields make_ready(self) and
--- make_tree(self, p).
---@param env table
---@param partitions integer
---@param fields table
---@return streamlua.Rdd
function M.custom(env, partitions, fields) return new(env, 'custom', partitions, fields) end

---------------------------------------------------------------------------------------------------
-- actions

--- The partitions, as parts.
---@return table[]
function Rdd:parts()
  prepare(self)
  return fetch_all(self)
end

--- The blocks of all partitions; those of a dataset that is not persisted are the caller's.
---@return table[]
function Rdd:to_blocks()
  prepare(self)
  return self.blocks or run_tasks(self, function() return { kind = 'store' } end)
end

--- The partitions: a list of lists.
---@return any[][]
function Rdd:partitions()
  local out = {}
  for i, part in ipairs(self:parts()) do
    local items = {}
    for j, item in ipairs(pass.items_of(part)) do items[j] = item end
    out[i] = items
  end
  return out
end

--- All records.
---@return any[]
function Rdd:collect()
  local out, n = {}, 0
  for _, part in ipairs(self:parts()) do
    local items = pass.items_of(part)
    for i = 1, part.n do out[n + i] = items[i] end
    n = n + part.n
  end
  return out
end

--- The pairs as a table from keys to values.
---@return table
function Rdd:collect_as_map()
  local out = {}
  for _, pair in ipairs(self:collect()) do out[pair[1]] = pair[2] end
  return out
end

--- The number of records.
---@return integer
function Rdd:count()
  prepare(self)
  local total = 0
  for _, n in ipairs(run_tasks(self, function() return { kind = 'count' } end)) do total = total + n end
  return total
end

--- The number of partitions.
---@return integer
function Rdd:num_partitions() return self.count_of_partitions end

--- The first n records: of the first partition, and of the others if that is not enough.
---@param n integer
---@return any[]
function Rdd:take(n)
  if type(n) ~= 'number' or n < 0 then
    site.raise('rdd:take: expected a number of records, got %s', tostring(n))
  end
  prepare(self)
  local out = {}
  local function add(parts)
    for _, block in ipairs(parts) do
      for i = 1, block.n do
        if #out == n then return end
        out[#out + 1] = block.items[i]
      end
    end
  end
  local function limit() return { kind = 'take', limit = n - #out } end
  if n == 0 or self.count_of_partitions == 0 then return out end
  add(run_tasks(self, limit, 1, 1))
  if #out < n and self.count_of_partitions > 1 then add(run_tasks(self, limit, 2)) end
  return out
end

--- The first record, nil when there is none.
---@return any
function Rdd:first() return self:take(1)[1] end

--- Whether there is no record.
---@return boolean
function Rdd:is_empty() return #self:take(1) == 0 end

--- All records reduced by f(a, b); nil when there is none.
---@param f fun(a: any, b: any): any
---@return any
function Rdd:reduce(f)
  local fn = step_of('reduce', f).fn
  local items = self:collect()
  local result = items[1]
  for i = 2, #items do result = fn(result, items[i]) end
  return result
end

--- All records folded into a value: f(value, record).
---@param zero any
---@param f fun(value: any, record: any): any
---@return any
function Rdd:fold(zero, f)
  local fn = step_of('fold', f).fn
  for _, item in ipairs(self:collect()) do zero = fn(zero, item) end
  return zero
end

--- Calls f(record) for each record.
---@param f fun(record: any)
function Rdd:foreach(f)
  local fn = step_of('foreach', f).fn
  for _, item in ipairs(self:collect()) do fn(item) end
end

--- Calls f(list) for each partition.
---@param f fun(records: any[])
function Rdd:foreach_partition(f)
  local fn = step_of('foreach_partition', f).fn
  for _, items in ipairs(self:partitions()) do fn(items) end
end

---------------------------------------------------------------------------------------------------
-- keeping

--- Keeps the records once they are computed. Levels: memory, memory_serialized (off the Lua heap), disk.
---@param level? string 'memory' when missing
---@return streamlua.Rdd self
function Rdd:persist(level)
  self.is_persisted = level or 'memory'
  return self
end
Rdd.cache = Rdd.persist

local function free_blocks(env, blocks)
  if not env.free then return end
  for _, block in ipairs(blocks) do
    if block then env.free(block) end
  end
end

--- Gives back what was kept; a dataset that others still read is computed again.
---@return streamlua.Rdd self
function Rdd:unpersist()
  self.is_persisted = false
  if self.op ~= 'data' and self.blocks then
    free_blocks(self.env, self.blocks)
    self.blocks = nil
  end
  return self
end

local release

-- What this dataset was made from, unless a stream remembers it.
local function release_sources(self)
  for _, side in ipairs(self.sides or {}) do
    for _, buckets in ipairs(side.written or {}) do free_blocks(self.env, buckets) end
    side.written = nil
    if not side.parent.is_remembered then release(side.parent) end
  end
  for _, parent in ipairs(self.parents or {}) do
    if not parent.is_remembered then release(parent) end
  end
  if self.parent and not self.parent.is_remembered then release(self.parent) end
end

function release(self)
  if self.is_released then return end
  self.is_released = true
  if self.on_release then self:on_release() end
  if self.blocks and not self.is_borrowed then free_blocks(self.env, self.blocks) end
  self.blocks = nil
  release_sources(self)
end

--- Gives everything back, also what shuffles wrote and the records of a source.
function Rdd:release() release(self) end

---------------------------------------------------------------------------------------------------
-- an env in this Lua state

--- An env that runs tasks where they are made, one after the other.
---@param options? { default_partitions?: integer }
---@return table
function M.inline(options)
  local env = { default_partitions = options and options.default_partitions or 2 }
  env.fetch = function(block) return block.part end
  env.store = function(part)
    return { n = part.n, part = { n = part.n, items = part.items, keys = part.keys, vals = part.vals } }
  end
  function env:run(list, on_result)
    local results = {}
    for i, spec in ipairs(list) do
      results[i] = tasks.run(self, spec)
      if on_result then on_result(i, results[i]) end
    end
    return results
  end
  return env
end

return M
