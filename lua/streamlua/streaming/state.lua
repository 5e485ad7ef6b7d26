--- Streams with state: update_state_by_key, map_with_state and the incremental windows.
--
-- The state of a stream is one table of C for each partition, off the Lua heap; a dataset of the stream
-- is a *version* of it. There is one version at a time: batch t takes the one of the batch before and
-- makes its own in place. A partition first computes all its changes and then writes them, so that a
-- function that raises leaves it as it was. Such a batch is tried once more with the next one, and left
-- out of the state with a warning when it fails again.
--
-- A dataset can be read as long as its version is the newest. Streams whose older datasets are needed
-- (a window over them, persist) keep copies of them as blocks.

local pass = require 'streamlua.streaming.pass'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local state_maps = require 'streamlua.streaming.state_map'
local streams = require 'streamlua.streaming.stream'
local tasks = require 'streamlua.streaming.task'
local abi = require 'streamlua.abi'

local C = abi.C
local type = type

local M = {}

---------------------------------------------------------------------------------------------------
-- changes of a partition, written when all of them are known

local REMOVED = {}

local function write_changes(map, keys, vals, n, time)
  for i = 1, n do
    local item = vals[i]
    if item == REMOVED then
      map:remove(keys[i])
    else
      map:put(keys[i], item, time)
    end
  end
end

-- Values that can not be stored are found before anything is written.
local function check_storable(stream, key, item)
  local problem = state_maps.problem(item)
  if problem then
    error(('%s: the state of key %s holds a %s'):format(stream, state_maps.shown(key), problem), 0)
  end
end

local SIMPLE = { number = true, string = true, boolean = true }

---------------------------------------------------------------------------------------------------
-- update_state_by_key

-- The loops call the user's function; each place of a function gets loops of its own, see pass.lua.
local UPDATE = [[
local f, with_time_key, REMOVED, SIMPLE, place_in, check = ...
local type = type
return function(acc, map, time, name)
  local index, keys, vals = acc.index, acc.keys, acc.vals
  local news, changed, n = {}, {}, 0
  local found = 0
  -- Keys of the batch.
  for i = 1, acc.n do
    local key = keys[i]
    local old = map:get(key)
    if old ~= nil then found = found + 1 end
    local new
    if with_time_key then new = f(time, key, vals[i], old) else new = f(vals[i], old) end
    if new == nil then
      if old ~= nil then
        n = n + 1
        changed[n], news[n] = key, REMOVED
      end
    else
      if not SIMPLE[type(new)] then check(name, key, new) end
      n = n + 1
      changed[n], news[n] = key, new
    end
  end
  if found == map:size() then return changed, news, n end
  -- Keys of the state that the batch does not have.
  local none = {}
  for key, old in map:each() do
    local place, inner = place_in(index, key)
    if place[inner] == nil then
      local new
      if with_time_key then new = f(time, key, none, old) else new = f(none, old) end
      -- The function owns a list that it has put something in.
      if none[1] ~= nil then none = {} end
      if new == nil then
        n = n + 1
        changed[n], news[n] = key, REMOVED
      elseif new ~= old or type(new) == 'table' then
        if not SIMPLE[type(new)] then check(name, key, new) end
        n = n + 1
        changed[n], news[n] = key, new
      end
    end
  end
  return changed, news, n
end]]

local compiled = {}

-- A loop made from a text for one function of the program.
local function loop_for(text, fn, ...)
  local id = text .. site.of_function(fn)
  local factory = compiled[id]
  if not factory then
    factory = assert(loadstring(text, '=state'))
    compiled[id] = factory
  end
  return factory(fn, ...)
end

local function grouped(env, blocks, name)
  local acc = pass.combiner(name)
  for _, block in ipairs(blocks) do pass.run(env.fetch(block), {}, { kind = 'group', site = 'state' }, acc) end
  pass.combined(name, acc)
  return acc
end

-- The version as a part of pairs.
local function read_map(map, filter)
  local keys, vals, n = {}, {}, 0
  for key, item in map:each() do
    if not filter or filter({ key, item }) then
      n = n + 1
      keys[n], vals[n] = key, item
    end
  end
  return { n = n, keys = keys, vals = vals }
end

tasks.register('state', function(env, tree)
  return read_map(state_maps.wrap(tree.map), tree.filter and tree.filter.fn)
end, function(_, tree)
  return not tree.filter and state_maps.wrap(tree.map):size() or nil
end)

local function result_of(env, spec, map)
  local result = { size = map:size() }
  if spec.keeps then result.kept = env.store(read_map(map, spec.filter and spec.filter.fn)) end
  return result
end

tasks.register_sink('update_state', function(env, _, spec)
  local map = state_maps.wrap(spec.map)
  local run = loop_for(UPDATE, spec.fn.fn, spec.fn.with_time_key, REMOVED, SIMPLE, pass.place,
    check_storable)
  local keys, news, n = run(grouped(env, spec.blocks, spec.name), map, spec.time, spec.name)
  write_changes(map, keys, news, n, spec.time)
  return result_of(env, spec, map)
end)

---------------------------------------------------------------------------------------------------
-- map_with_state

---@class streamlua.KeyState
local State = {}
State.__index = State

--- The state of a key as the user's function sees it.
function State.new() return setmetatable({}, State) end

--- Takes over what is known of a key; nil = it has no state.
---@param item any
function State:wrap(item)
  self.item = item
  self.is_there = item ~= nil
  self.is_updated, self.is_removed, self.is_leaving = false, false, false
  return self
end

--- The same for a key whose time has run out.
---@param item any
function State:wrap_timing_out(item)
  self:wrap(item)
  self.is_leaving = true
  return self
end

--- Whether the key has a state.
---@return boolean
function State:exists() return self.is_there end

--- The state; raises when there is none.
---@return any
function State:get()
  if not self.is_there then error('state:get: the key has no state', 2) end
  return self.item
end

--- The state, nil when there is none.
---@return any
function State:get_option() return self.item end

--- Whether the key is being dropped because its time has run out.
---@return boolean
function State:is_timing_out() return self.is_leaving end

--- Sets the state.
---@param item any not nil
function State:update(item)
  if self.is_leaving then error('state:update: the key is timing out', 2) end
  if self.is_removed then error('state:update: the state has been removed', 2) end
  if item == nil then error('state:update: the state can not be nil; remove it instead', 2) end
  self.item = item
  self.is_there, self.is_updated = true, true
end

--- Removes the state.
function State:remove()
  if self.is_leaving then error('state:remove: the key is timing out', 2) end
  if self.is_removed then error('state:remove: the state has been removed already', 2) end
  self.item = nil
  self.is_there, self.is_removed, self.is_updated = false, true, false
end

M.State = State

-- Every record of the batch, then every key whose time has run out.
local MAP = [[
local f, state, place_in, check, SIMPLE = ...
local type = type
return function(part_keys, part_vals, part_n, map, time, name, touch, overlay, out)
  local index, keys, items, changed, n = overlay.index, overlay.keys, overlay.items, overlay.changed, overlay.n
  local m = out.n
  local mapped = out.items
  for i = 1, part_n do
    local key = part_keys[i]
    local place, inner = place_in(index, key)
    local at = place[inner]
    if at == nil then
      n = n + 1
      at = n
      place[inner] = n
      keys[n] = key
      items[n] = map:get(key)
      changed[n] = 0
    end
    state:wrap(items[at])
    local result = f(time, key, part_vals[i], state)
    if state.is_removed then
      items[at], changed[at] = nil, 2
    elseif state.is_updated then
      local item = state.item
      if not SIMPLE[type(item)] then check(name, key, item) end
      items[at], changed[at] = item, 1
    elseif touch and changed[at] == 0 and state.is_there then
      changed[at] = 1
    end
    if result ~= nil then
      m = m + 1
      mapped[m] = result
    end
  end
  overlay.n, out.n = n, m
end]]

-- Calls the function for every key whose time has run out, once its changes of this batch are written: data
-- in the batch keeps a key. Returns the keys, which are still there, and the error that ended it.
local function run_timeouts(map, fn, state, threshold, time, out)
  local gone, n = {}, 0
  local ok, raised = pcall(function()
    while true do
      local key, item, last = map:expired(threshold)
      if key == nil then return end
      n = n + 1
      gone[n] = { key, item, last }
      -- Out of the way of the next one; an error puts it back.
      map:remove(key)
      local result = fn(time, key, nil, state:wrap_timing_out(item))
      if result ~= nil then
        out.n = out.n + 1
        out.items[out.n] = result
      end
    end
  end)
  if ok then return end
  for _, entry in ipairs(gone) do map:put(entry[1], entry[2], entry[3]) end
  error(raised, 0)
end

-- Writes the changes of keys; what they were before is in `before`, so that they can be taken back.
local function write_overlay(map, overlay, time, before)
  local keys, items, changed = overlay.keys, overlay.items, overlay.changed
  for i = 1, overlay.n do
    if changed[i] ~= 0 then
      if before then
        local item, last = map:get(keys[i])
        before[#before + 1] = { keys[i], item, last }
      end
      if changed[i] == 2 then map:remove(keys[i]) else map:put(keys[i], items[i], time) end
    end
  end
end

local function take_back(map, before)
  for i = #before, 1, -1 do
    local entry = before[i]
    if entry[2] == nil then map:remove(entry[1]) else map:put(entry[1], entry[2], entry[3]) end
  end
end

tasks.register_sink('map_state', function(env, _, spec)
  local map = state_maps.wrap(spec.map)
  local state = State.new()
  local run = loop_for(MAP, spec.fn.fn, state, pass.place, check_storable, SIMPLE)
  local overlay = { index = {}, keys = {}, items = {}, changed = {}, n = 0 }
  local out = { n = 0, items = {} }
  for _, block in ipairs(spec.blocks) do
    local part = env.fetch(block)
    run(part.keys, part.vals, part.n, map, spec.time, spec.name, spec.timeout ~= nil, overlay, out)
  end
  -- A function that raises while keys time out must leave the table as it was.
  local before = spec.timeout and {} or nil
  write_overlay(map, overlay, spec.time, before)
  if spec.timeout then
    local ok, raised = pcall(run_timeouts, map, spec.fn.fn, state, spec.time - spec.timeout, spec.time, out)
    if not ok then
      take_back(map, before)
      error(raised, 0)
    end
  end
  local result = result_of(env, spec, map)
  result.mapped = env.store(out)
  return result
end)

---------------------------------------------------------------------------------------------------
-- incremental windows

-- The values of a key in some batches reduced to one, with the number of batches that have it.
local function reduced(env, blocks, f)
  local acc, counts = pass.combiner(), {}
  local sink = { kind = 'reduce', merge = f.fn, site = f.site }
  for _, block in ipairs(blocks) do
    local part = env.fetch(block)
    for i = 1, part.n do
      local place, inner = pass.place(acc.index, part.keys[i])
      local at = place[inner] or acc.n + 1
      -- The pass below gives new keys the next place in the same order.
      counts[at] = (counts[at] or 0) + 1
      if at > acc.n then
        acc.n = at
        place[inner] = at
        acc.keys[at], acc.vals[at] = part.keys[i], part.vals[i]
      else
        acc.vals[at] = sink.merge(acc.vals[at], part.vals[i])
      end
    end
  end
  return acc, counts
end

tasks.register_sink('slide_window', function(env, _, spec)
  local map = state_maps.wrap(spec.map)
  if spec.is_new then map:clear() end
  local f, g = spec.reduce, spec.inverse.fn
  local old, old_counts = reduced(env, spec.old, f)
  local new, new_counts = reduced(env, spec.new, f)
  local keys, vals, counts, n = {}, {}, {}, 0
  local place_of = {}
  for i = 1, old.n do
    local key = old.keys[i]
    local own, count = map:get(key)
    if own ~= nil then
      n = n + 1
      local place, inner = pass.place(place_of, key)
      place[inner] = n
      keys[n], vals[n], counts[n] = key, g(own, old.vals[i]), count - old_counts[i]
    end
  end
  for i = 1, new.n do
    local key = new.keys[i]
    local place, inner = pass.place(place_of, key)
    local at = place[inner]
    local own, count
    if at then
      own, count = vals[at], counts[at]
    else
      own, count = map:get(key)
      n = n + 1
      at = n
      keys[at] = key
    end
    if own ~= nil and not (count == 0 and spec.drops_empty) then
      vals[at], counts[at] = f.fn(own, new.vals[i]), count + new_counts[i]
    else
      vals[at], counts[at] = new.vals[i], new_counts[i]
    end
  end
  for i = 1, n do
    if not SIMPLE[type(vals[i])] then check_storable(spec.name, keys[i], vals[i]) end
  end
  for i = 1, n do
    if counts[i] == 0 and spec.drops_empty then
      map:remove(keys[i])
    else
      map:put(keys[i], vals[i], counts[i])
    end
  end
  return result_of(env, spec, map)
end)

---------------------------------------------------------------------------------------------------
-- versions

-- The tables of a stream, made when its first dataset is computed.
local function tables_of(stream)
  local tables = stream.tables
  if tables then return tables end
  tables = { maps = {}, applied = {}, sizes = {} }
  for p = 1, stream.partitions do
    tables.maps[p] = state_maps.new(stream.node_name)
    tables.applied[p] = 0
    tables.sizes[p] = 0
  end
  stream.tables = tables
  return tables
end
M.tables_of = tables_of

-- Puts pairs into the tables as the state before the first batch.
local function fill(stream, pairs_list, time)
  local tables = tables_of(stream)
  for _, pair in ipairs(pairs_list) do
    if type(pair) ~= 'table' then
      error(('%s: the initial state must be pairs {key, value}, got %s'):format(stream.call_site, type(pair)), 0)
    end
    check_storable(stream.node_name, pair[1], pair[2])
    tables.maps[pass.bucket(pair[1], stream.partitions) + 1]:put(pair[1], pair[2], time)
  end
end

local function spec_of(self, stream, p, buckets)
  local spec = stream.task_of(self, stream, p, buckets)
  spec.map, spec.time, spec.name = tables_of(stream).maps[p].address, self.time, stream.node_name
  spec.keeps = stream.keeps_history or false
  return { tree = { op = 'nothing' }, sink = spec, is_local = self.is_local, is_state = true }
end

local make_ready

-- Brings the version before this one about. Its second failure in a row leaves it out.
local function ready_before(self, stream)
  local before = self.before
  if not before or before.is_ready then return end
  local ok, raised = pcall(make_ready, before)
  if ok then return end
  before.is_ready = true
  stream.context:warn('%s: batch %d is left out of the state of %s: %s', stream.call_site, before.time,
    stream.node_name, site.raised(raised))
  if stream.on_left_out then stream.on_left_out(before) end
end

function make_ready(self)
  if self.is_ready then return end
  local stream = self.stream
  local tables = tables_of(stream)
  ready_before(self, stream)
  local buckets = self:read_input()
  local list, places = {}, {}
  for p = 1, stream.partitions do
    if tables.applied[p] < self.time then
      list[#list + 1] = spec_of(self, stream, p, buckets)
      places[#list] = p
    end
  end
  self.kept, self.mapped = self.kept or {}, self.mapped or {}
  stream.context.env:run(list, function(i, result)
    local p = places[i]
    tables.applied[p] = self.time
    tables.sizes[p] = result.size
    self.kept[p], self.mapped[p] = result.kept, result.mapped
  end)
  self.is_ready, self.before = true, nil
  if self.on_ready then self:on_ready() end
  if stream.keeps_history then
    self.blocks = {}
    for p = 1, stream.partitions do self.blocks[p] = self.kept[p] end
  end
end

-- The buckets of the records of a batch by partition; none when the parent has no dataset.
local function read_records(self)
  if not self.parent then return nil end
  if not self.input then
    self.input = rdds.wide(self.parent, { self.parent }, self.stream.partitions,
      { kind = 'deal', site = self.stream.op }, { kind = 'group', site = self.stream.op })
  end
  rdds.prepare(self.input)
  return self.input
end

local function blocks_for(input, p) return input and rdds.tree(input, p).sides[1] or {} end

local function version(stream, time, before, fields)
  local self = rdds.custom(stream.context.env, stream.partitions, fields)
  self.stream, self.time, self.before = stream, time, before
  self.make_ready = make_ready
  self.make_tree = function(made, p)
    local tables = tables_of(stream)
    if tables.applied[p] ~= time then
      error(('%s: the state of %d ms is not held any more; persist the stream to keep its datasets')
        :format(stream.node_name, time), 0)
    end
    return { op = 'state', map = tables.maps[p].address, filter = stream.output_filter }
  end
  self.on_release = function(made)
    if made.input then made.input:release() end
    for _, block in pairs(made.mapped or {}) do
      if stream.context.env.free then stream.context.env.free(block) end
    end
    made.mapped, made.input, made.parent, made.before = nil, nil, nil, nil
  end
  -- The tables hold the records; there is nothing to keep beside them.
  self.persist = function(made) return made end
  -- A slice may ask for what has been dropped long ago: that is no version to bring about or to save.
  if stream.newest and stream.newest.time > time then return self end
  stream.newest = self
  local context = stream.context
  context.versions[time] = context.versions[time] or {}
  table.insert(context.versions[time], self)
  return self
end

--- The version that a file of a checkpoint holds, as the newest one of a stream.
---@param stream streamlua.DStream
---@param time integer
---@param path string
function M.restore(stream, time, path)
  local tables = tables_of(stream)
  state_maps.load(tables.maps, path, function(key) return pass.bucket(key, stream.partitions) + 1 end)
  for p = 1, stream.partitions do
    tables.applied[p] = time
    tables.sizes[p] = tables.maps[p]:size()
  end
  stream.is_filled = true
  local made = version(stream, time, nil, {})
  made.is_ready = true
  stream.context.versions[time] = nil
  if stream.keeps_history then
    made.blocks = {}
    for p = 1, stream.partitions do
      made.blocks[p] = stream.context.env.store(read_map(tables.maps[p], nil))
    end
  end
  return made
end

--- Deals the state of a stream out to another number of tables, while no batch is under way.
---@param stream streamlua.DStream
---@param count integer
function M.resize(stream, count)
  local newest = stream.newest
  if newest then ready_before({ before = newest }, stream) end
  local old = stream.tables
  stream.tables, stream.partitions = nil, count
  if not old then return end
  local tables = tables_of(stream)
  for _, map in ipairs(old.maps) do
    for key, item, time in map:each() do
      tables.maps[pass.bucket(key, count) + 1]:put(key, item, time)
    end
  end
  for p = 1, count do
    tables.applied[p] = newest and newest.time or 0
    tables.sizes[p] = tables.maps[p]:size()
  end
  -- What is asked of the newest version from now on is asked of these tables.
  if newest and not newest.blocks then newest.count_of_partitions = count end
end

-- Whether a state has gone past a time: what it was then is not held any more.
local function is_past(stream, time) return stream.newest ~= nil and time < stream.newest.time end

local function past_version(stream, time)
  local made = version(stream, time, nil, {})
  made.is_ready = true
  return made
end

local STATE_FLAGS = bit.bor(C.SL_STREAMING_MUST_CHECKPOINT, C.SL_STREAMING_STATEFUL,
  C.SL_STREAMING_PERSIST, C.SL_STREAMING_OWNS_FILES)

-- Whether a time is the first one of a stream's grid.
local function is_first(stream, time)
  return time - stream.slide_ms <= C.sl_abi_streaming_zero_time(stream.context.handle)
end

--- The stream that holds the state of update_state_by_key or map_with_state.
---@param parent streamlua.DStream
---@param fields table op, partitions, initial, task_of
local function stateful(parent, fields)
  fields.flags = STATE_FLAGS
  fields.storage_level = 'memory_serialized'
  fields.compute = function(self, time)
    local before
    if is_past(self, time) then return past_version(self, time) end
    if is_first(self, time) then
      if self.initial and not self.is_filled then
        local initial = self.initial
        fill(self, rdds.is(initial) and initial:collect() or initial, time - self.slide_ms)
      end
      self.is_filled = true
    else
      before = self:get_or_compute(time - self.slide_ms)
    end
    local records = parent:get_or_compute(time)
    if not records and not before and not self.initial and not self.tables then return nil end
    local made = version(self, time, before, { parent = records, read_input = read_records })
    made.is_local = (records and records.is_local or false) or self.is_local_fn
    return made
  end
  return streams.derive(parent, fields.op, fields)
end

--- Keeps a state for each key, updated in every batch: f(values, old) or, with with_time_key, f(time,
--- key, values, old) gives the new state, nil removes it. `initial` = pairs before the first batch.
---@param f function
---@param options? { initial?: any, with_time_key?: boolean, partitions?: integer }
---@return streamlua.DStream
function streams.Stream:update_state_by_key(f, options)
  streams.check_function('update_state_by_key', f)
  options = options or {}
  local count = streams.check_partitions(self, 'update_state_by_key', options.partitions)
  return streams.compose(self.context, 'update_state_by_key', function()
    local fn = streams.describe(self, { op = 'update_state_by_key', fn = f,
      with_time_key = options.with_time_key or false })
    return stateful(self, {
      op = 'update_state_by_key',
      partitions = count,
      initial = options.initial,
      task_of = function(_, _, p, input)
        return { kind = 'update_state', fn = fn, blocks = blocks_for(input, p) }
      end,
    })
  end)
end

---------------------------------------------------------------------------------------------------
-- map_with_state

---@class streamlua.StateSpec
local Spec = {}
Spec.__index = Spec

--- What map_with_state does: f(time, key, value, state) for every record returns a record or nil.
---@param f function
---@return streamlua.StateSpec
function M.state_spec(f)
  streams.check_function('state_spec', f)
  return setmetatable({ f = f }, Spec)
end

--- Pairs that are the state before the first batch: a list or a dataset.
---@param list any[][]|streamlua.Rdd
---@return streamlua.StateSpec self
function Spec:initial_state(list)
  if type(list) ~= 'table' then site.raise('initial_state: expected pairs, got %s', type(list)) end
  self.initial = list
  return self
end

--- Keys without data for longer than this are dropped; f is called once more with value nil.
---@param duration number|string
---@return streamlua.StateSpec self
function Spec:timeout(duration)
  self.timeout_ms = streams.duration_ms('timeout', duration)
  return self
end

--- Partitions of the state.
---@param n integer
---@return streamlua.StateSpec self
function Spec:num_partitions(n)
  self.partitions = streams.check_partitions({ context = {} }, 'num_partitions', n)
  return self
end

--- Calls the function of a spec for every record of pairs, with the state of its key.
---@param spec table of streaming.state_spec
---@return streamlua.DStream
function streams.Stream:map_with_state(spec)
  if getmetatable(spec) ~= Spec then
    site.raise('map_with_state: expected streaming.state_spec(f), got %s', type(spec))
  end
  return streams.compose(self.context, 'map_with_state', function()
    local fn = streams.describe(self, { op = 'map_with_state', fn = spec.f })
    local inner = stateful(self, {
      op = 'state',
      partitions = spec.partitions or self.context.default_partitions,
      initial = spec.initial,
      task_of = function(_, _, p, input)
        return { kind = 'map_state', fn = fn, blocks = blocks_for(input, p), timeout = spec.timeout_ms }
      end,
    })
    -- The state alone is saved, every ten batches unless the user says otherwise.
    streams.check_c('map_with_state',
      C.sl_abi_streaming_node_checkpoint(self.context.handle, inner.node, 10 * inner.slide_ms))
    local mapped = streams.derive(inner, 'map_with_state', {
      state_stream = inner,
      partitions = inner.partitions,
      checkpointed = inner,
      compute = function(_, time)
        local made = inner:get_or_compute(time)
        if not made then return nil end
        return rdds.custom(inner.context.env, inner.partitions, {
          is_local = made.is_local,
          make_ready = function() make_ready(made) end,
          make_tree = function(_, p)
            if not made.mapped or not made.mapped[p] then
              error(('%s: the records of %d ms are not held any more'):format(inner.node_name, time), 0)
            end
            return { op = 'block', block = made.mapped[p] }
          end,
        })
      end,
    })
    return mapped
  end)
end

--- All keys with their states, every batch; for streams of map_with_state.
function streams.Stream:state_snapshots()
  local inner = self.state_stream
  if not inner then site.raise('state_snapshots: only streams of map_with_state have them') end
  return streams.compose(self.context, 'state_snapshots', function()
    return streams.derive(inner, 'state_snapshots', {
      compute = function(_, time)
        local made = inner:get_or_compute(time)
        return made and rdds.union(made.env, { made })
      end,
    })
  end)
end

---------------------------------------------------------------------------------------------------
-- incremental windows

-- The blocks of partition p of the datasets of a stream at some times; all are made already.
local function blocks_at(datasets, p)
  local blocks = {}
  for _, dataset in ipairs(datasets) do
    local block = dataset.blocks[p]
    if block then blocks[#blocks + 1] = block end
  end
  return blocks
end

-- Datasets from before the stream got another number of partitions are dealt out anew.
local function prepare_all(datasets, count, reducing)
  for i, dataset in ipairs(datasets) do
    dataset:persist()
    rdds.prepare(dataset)
    if dataset.count_of_partitions ~= count then
      local dealt = rdds.wide(dataset, { dataset }, count, reducing, reducing):persist()
      rdds.prepare(dealt)
      datasets[i] = dealt
    end
  end
end

local function datasets_in(stream, from, to)
  local out = {}
  for time = from, to, stream.slide_ms do out[#out + 1] = stream:get_or_compute(time) end
  return out
end

-- Keys of a window without filter from which on the user is told that they stay.
local MANY_KEYS = 10000

-- Says that keys stay, again each time there are twice as many.
local function warn_of_growth(stream, drops_empty)
  if drops_empty then return end
  local total = 0
  for _, size in ipairs(stream.tables.sizes) do total = total + size end
  if total < (stream.warns_at or MANY_KEYS) then return end
  stream.warns_at = 2 * total
  stream.context:warn('%s: %s keeps %d keys, also those without records in the window; a filter or drop_empty '
    .. 'lets them go', stream.call_site, stream.node_name, total)
end

--- The incremental form of a reduced window: values that leave are taken out with `inverse`.
---@param self streamlua.DStream pairs
---@param options table f, inverse, filter (descriptors), window_ms, slide_ms, partitions, drops_empty
function M.incremental(self, op, options)
  local reducing = options.f
  local per_batch = streams.shuffled(self, 'reduce_by_key', options.partitions, reducing, reducing)
  streams.check_c(op, C.sl_abi_streaming_node_persist(self.context.handle, per_batch.node, 1))
  local window, slide, step = options.window_ms, options.slide_ms, self.slide_ms
  local first = C.sl_abi_streaming_zero_time
  return streams.derive(per_batch, op, {
    slide_ms = slide,
    window_ms = window,
    flags = STATE_FLAGS,
    storage_level = 'memory_serialized',
    partitions = options.partitions,
    output_filter = options.filter,
    is_window_state = true,
    on_left_out = function(before) before.stream.must_rebuild = true end,
    task_of = function(made, stream, p)
      local is_new = made.is_new or stream.must_rebuild or false
      return {
        kind = 'slide_window',
        reduce = reducing,
        inverse = options.inverse,
        filter = options.filter,
        drops_empty = options.drops_empty,
        is_new = is_new,
        old = is_new and {} or blocks_at(made.old, p),
        new = blocks_at(is_new and made.whole or made.new, p),
      }
    end,
    compute = function(stream, time)
      if is_past(stream, time) then return past_version(stream, time) end
      local begin = time - window + step
      local before
      if not is_first(stream, time) then before = stream:get_or_compute(time - slide) end
      local zero = first(stream.context.handle)
      local is_new = before == nil
      local prev_end, prev_begin = time - slide, begin - slide
      local made = version(stream, time, before, { read_input = function(made)
        if made.is_new or stream.must_rebuild then
          prepare_all(made.whole, stream.partitions, reducing)
        else
          prepare_all(made.old, stream.partitions, reducing)
          prepare_all(made.new, stream.partitions, reducing)
        end
        return nil
      end })
      -- Batches that left the window, and those that came; a gap between two windows is in neither.
      made.old = datasets_in(per_batch, math.max(prev_begin, zero), math.min(prev_end, begin - step))
      made.new = datasets_in(per_batch, math.max(prev_end + step, begin), time)
      made.whole = datasets_in(per_batch, math.max(begin, zero), time)
      made.is_new = is_new
      for _, dataset in ipairs(made.whole) do made.is_local = made.is_local or dataset.is_local end
      made.on_ready = function()
        stream.must_rebuild = false
        warn_of_growth(stream, options.drops_empty)
        made.old, made.new, made.whole = nil, nil, nil
      end
      return made
    end,
  })
end

--- Marks the streams of state that a stream is made from: older datasets of theirs are going to be read.
---@param stream streamlua.DStream
function M.keep_history(stream)
  if stream.tables or stream.task_of then stream.keeps_history = true end
  for _, parent in ipairs(stream.parents) do M.keep_history(parent) end
end

return M
