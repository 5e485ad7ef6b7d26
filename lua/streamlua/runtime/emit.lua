--- Generates the emit function of one stream of one task.
--
-- The text is specialised on the number of fields and on the routes, so that in a compiled trace the
-- values go from the user's table straight into the batch: the table, its options and every cdata
-- pointer are sunk. There are two ways:
--
--   direct   one reader that gets each tuple once (shuffle, fields, global, ...), at most one anchor:
--            the record is written into the receiver's outbox
--   general  everything else (several readers, `all`, direct streams, custom groupings, several
--            anchors): the record is written once into the task's scratch and copied to each receiver
--
-- A string for a receiver on the same executor is not copied: it goes into the list of texts of the
-- batch, a Lua table, and the record holds its index. Such a list is written again together with its
-- batch.
--
-- What is done for each field is written out, or stands in a loop over the fields: see
-- streamlua.runtime.wide. Record layout: core/stream/types.abi.h.

local abi = require 'streamlua.abi'
local value = require 'streamlua.runtime.value'
local wide = require 'streamlua.runtime.wide'

local C, ffi = abi.C, abi.ffi
local concat, format = table.concat, string.format

local M = {}

local HEADER = ffi.sizeof('struct sl_record')
local SLOT = ffi.sizeof('struct sl_slot')

-- Readers that give each tuple to exactly one task, without asking the user.
local SINGLE = {
  [C.SL_GROUPING_SHUFFLE] = 'next',
  [C.SL_GROUPING_NONE] = 'next',
  [C.SL_GROUPING_LOCAL_OR_SHUFFLE] = 'next',
  [C.SL_GROUPING_GLOBAL] = 'first',
  [C.SL_GROUPING_FIELDS] = 'key',
  [C.SL_GROUPING_PARTIAL_KEY] = 'key',
}

---------------------------------------------------------------------------------------------------
-- pieces of the generated text

-- LEN(x) stands for #x: '#' is a place holder in these texts.
local function lengths(text) return (text:gsub('LEN(%b())', '#%1')) end

local LENGTH = [[
if type(v#) == 'string' then
  need = need + band(LEN(v#) + 7, -8)
]]

-- The field by which a route chooses the receiver: a string that was sent before has a way, and to a
-- receiver that knows it goes as a number. Sets `o` and `number`.
local KEY_LENGTH = [[
local o, number = nil, 0
if type(v#) == 'string' then
  local way = keys.way[v#] or keys.look_up(v#)
  o, number = route.targets[rshift(way, WAY_BITS)], band(way, WAY_MASK)
  if number == 0 then need = need + band(LEN(v#) + 7, -8) end
]]

local OTHER_LENGTH = [[
elseif type(v#) ~= 'number' and type(v#) ~= 'nil' and type(v#) ~= 'boolean' then
  b# = other(v#, #)
  need = need + band(LEN(b#) + 7, -8)
end]]

-- Reads the n values and finds the size of the record: sets v#, b# (bytes of other values), need; `key`
-- is the field whose ways are kept, if there is one.
local function read_text(shape, n, key)
  return lengths(concat({
    "if type(values) ~= 'table' then bad_values(values) end",
    shape.declare(n),
    format('if values[%d] ~= nil then too_many(values) end', n + 1),
    format('local need = %d', HEADER + SLOT * n),
    shape.each(n, LENGTH .. OTHER_LENGTH, key, KEY_LENGTH .. OTHER_LENGTH),
  }, '\n'))
end

local COPY = [[
  s[@].tag = STRING
  s[@].len = LEN(v#)
  s[@].offset = at
  copy(p + at, v#, LEN(v#))]]

-- Where the outbox `o` has a list of texts.
local REFER = [[
  local list = lists[o.texts]
  if list then
    local k = o.text_count
    s[@].tag = TEXT
    s[@].len = k
    list[k] = v#
    o.text_count = k + 1
  else
]] .. COPY .. [[

  end]]

-- Writes one value; STORE is how it does a string.
local STORE_ONE = [[
if type(v#) == 'number' then
  s[@].tag = NUMBER
  s[@].number = v#
elseif type(v#) == 'string' then
STORE
elseif type(v#) == 'nil' then
  s[@].tag = NIL
elseif type(v#) == 'boolean' then
  s[@].tag = v# and TRUE or FALSE
else
  at = put_other(r, @, v#, b#, at)
end]]

-- Writes the n values at `p`; the variables are those of read_text.
local function write_text(shape, n, store_string, key)
  local store = store_string .. [[

  at = at + band(LEN(v#) + 7, -8)]]
  local store_key = [[
  if number ~= 0 then
    s[@].tag = KEY
    s[@].len = number
  else
  ]] .. store .. [[

  end]]
  return lengths(concat({
    'local r = cast(record_p, p)',
    'local s = r.slots',
    format('local at = %d', HEADER + SLOT * n),
    shape.each(n, (STORE_ONE:gsub('STORE', store)), key, (STORE_ONE:gsub('STORE', store_key))),
    'r.len = need',
  }, '\n'))
end

-- An expression for the hash of the key fields of a route, which the text calls `name`.
local function hash_text(shape, route, name)
  if route.key_count > wide.KEYS_MOST then return format('hash_all(%s, v)', name) end
  local text
  for i = 0, route.key_count - 1 do
    local field = route.keys[i] + 1
    local one = format('hash(%s, %d)', shape.value(field), field)
    text = text and format('C.sl_keyhash_combine(%s, %s)', text, one) or one
  end
  return text
end

-- The field whose ways are kept; nil when the receiver is found without it, or more is needed.
local function way_field(route)
  if route.grouping ~= C.SL_GROUPING_FIELDS or route.key_count > 1 then return nil end
  local first = route.targets[0]
  if route.target_count == 1 and (first.is_near ~= 0 or first.is_remote ~= 0) then return nil end
  return route.keys[0] + 1
end

-- Sets `o` to the outbox of the only receiver.
local function pick_text(shape, route)
  local way = SINGLE[route.grouping]
  if way_field(route) then
    -- KEY_LENGTH has done it for strings.
    return (([[
if type(V) == 'number' then
  o = C.sl_abi_route_number(route, V)
elseif type(V) ~= 'string' then
  o = C.sl_abi_route_key(route, hash(V, I))
end]]):gsub('V', shape.value(way_field(route))):gsub('I', tostring(way_field(route))))
  elseif way == 'first' or route.target_count == 1 then
    return 'local o = outbox'
  elseif way == 'next' then
    return 'local o = C.sl_abi_route_next(route)'
  elseif route.key_count > 1 then
    return format('local o = C.sl_abi_route_key(route, %s)', hash_text(shape, route, 'route'))
  end
  local name = shape.value(route.keys[0] + 1)
  return (([[
local o
if type(V) == 'string' then
  o = C.sl_abi_route_string(route, V, #V)
elseif type(V) == 'number' then
  o = C.sl_abi_route_number(route, V)
else
  o = C.sl_abi_route_key(route, hash(V, I))
end]]):gsub('V', name):gsub('I', tostring(route.keys[0] + 1)))
end

-- Chooses the receivers of all routes in the general way.
local function choose_text(shape, emitter)
  local out = { 'C.sl_abi_emitter_clear(emitter)' }
  for i = 0, emitter.route_count - 1 do
    local route = C.sl_abi_emitter_route(emitter, i)
    local way = SINGLE[route.grouping]
    if way == 'key' then
      out[#out + 1] = format('C.sl_abi_emitter_add_key(emitter, %d, %s)', i,
        hash_text(shape, route, format('C.sl_abi_emitter_route(emitter, %d)', i)))
    elseif route.grouping == C.SL_GROUPING_CUSTOM then
      out[#out + 1] = format('choose_custom(emitter, %d, values)', i)
    elseif route.grouping ~= C.SL_GROUPING_DIRECT then
      out[#out + 1] = format('C.sl_abi_emitter_add(emitter, %d)', i)
    end
  end
  if emitter.is_direct ~= 0 then out[#out + 1] = 'choose_task(emitter, options)' end
  return concat(out, '\n')
end

local PREFIX = [[
local ffi, C, task, emitter, route, outbox, keys, h = ...
local cast, copy, type, band, rshift = ffi.cast, ffi.copy, type, bit.band, bit.rshift
local new_table = require 'table.new'
local record_p, bytes_p = ffi.typeof('struct sl_record *'), ffi.typeof('uint8_t *')
local NIL, NUMBER, STRING = C.SL_VALUE_NIL, C.SL_VALUE_NUMBER, C.SL_VALUE_STRING
local TRUE, FALSE = C.SL_VALUE_TRUE, C.SL_VALUE_FALSE
local TEXT, KEY = C.SL_SLOT_TEXT, C.SL_SLOT_KEY
local WAY_BITS, WAY_MASK = C.SL_WAY_BITS, bit.lshift(1, C.SL_WAY_BITS) - 1
local lists = h.texts
local bad_values, too_many, other, put_other = h.bad_values, h.too_many, h.other, h.put_other
local bad_id, bad_options = h.bad_id, h.bad_options
local hash, choose_custom, choose_task = h.hash, h.choose_custom, h.choose_task
local flush, await_root, ids, keep = h.flush, h.await_root, h.ids, h.keep
local add_anchors, too_large, no_memory = h.add_anchors, h.too_large, h.no_memory
local function hash_all(route, v)
  local all
  for k = 0, route.key_count - 1 do
    local field = route.keys[k] + 1
    local one = hash(v[field], field)
    all = all and C.sl_keyhash_combine(all, one) or one
  end
  return all
end
local function general(values, options)
READ
local id
if options ~= nil then
  if type(options) ~= 'table' then bad_options(options) end
  id = options.id
end
if need > 1073741824 then too_large(need) end
local p = cast(bytes_p, C.sl_abi_task_scratch(task, need))
if p == nil then no_memory() end
COPYING
CHOOSE
ANCHOR
for i = 0, emitter.target_count - 1 do
  local lack = C.sl_abi_emitter_copy(task, emitter, i, need)
  while lack ~= 0 do
    flush(emitter.targets[i], lack)
    lack = C.sl_abi_emitter_copy(task, emitter, i, need)
  end
end
task.emits = task.emits + 1
END
end
]]

-- How a copy is anchored in the general way, and what follows the last copy.
local ANCHOR = {
  spout = [[
local slot
if id ~= nil then
  if type(id) ~= 'string' and type(id) ~= 'number' then bad_id(id) end
  if task.is_full ~= 0 then await_root() end
  slot = C.sl_abi_root_begin(task)
  if ids then ids[slot] = id end
  if keep then keep(slot, id, values, options) end
else
  C.sl_abi_anchors_clear(task)
end]],
  bolt = 'C.sl_abi_anchors_clear(task)\nadd_anchors(options)',
}
local AFTER = { spout = 'if slot ~= nil then C.sl_abi_root_end(task, slot) end', bolt = '' }

-- The direct way. Spouts: `options` may hold an id. Bolts: only without explicit anchors.
local DIRECT = {
  spout = [[
return function(values, options)
SIZE
local id
if options ~= nil then
  if type(options) ~= 'table' then bad_options(options) end
  id = options.id
  if id ~= nil then
    if type(id) ~= 'string' and type(id) ~= 'number' then bad_id(id) end
    if task.is_full ~= 0 then await_root() end
  end
end
PICK
local p = o.pos
if p + need > o.limit then
  flush(o, need)
  p = o.pos
end
WRITE
if id ~= nil then
  local slot = C.sl_abi_root_open(task, r)
  if ids then ids[slot] = id end
  if keep then keep(slot, id, values, options) end
else
  r.anchors = 0
end
o.pos = p + need
o.count = o.count + 1
task.emits = task.emits + 1
end]],
  bolt = [[
return function(values, options)
if task.record.anchors > MOST or options ~= nil
  and (type(options) ~= 'table' or options.anchors ~= nil) then
  return general(values, options)
end
SIZE
PICK
local p = o.pos
if p + need > o.limit then
  flush(o, need)
  p = o.pos
end
WRITE
if task.record.anchors ~= 0 then
  C.sl_abi_task_anchor(task, r)
else
  r.anchors = 0
end
o.pos = p + need
o.count = o.count + 1
task.emits = task.emits + 1
end]],
}

local KEYS_MOST, KEY_BYTES_MOST = tonumber(C.SL_WAY_KEYS_MOST), tonumber(C.SL_WAY_KEY_BYTES_MOST)
-- How often keys are looked up that can not be kept any more until all are forgotten, so that keys which
-- never come again cost little.
local WAIT_WHEN_FULL = 65536

-- The ways of string keys by a route: `way` has those that are kept, `look_up` finds that of another.
local function keys_of(route)
  local keys = { way = {} }
  local count, wait = 0, WAIT_WHEN_FULL
  C.sl_abi_route_forget(route)
  function keys.look_up(key)
    local is_kept = count < KEYS_MOST and #key <= KEY_BYTES_MOST
    local way = C.sl_abi_route_way(route, key, #key, is_kept and 1 or 0)
    if is_kept then
      keys.way[key], count = way, count + 1
    elseif count == KEYS_MOST then
      wait = wait - 1
      if wait == 0 then
        keys.way, count, wait = {}, 0, WAIT_WHEN_FULL
        C.sl_abi_route_forget(route)
      end
    end
    return way
  end
  return keys
end

local function is_single(emitter)
  if emitter.route_count ~= 1 or emitter.is_direct ~= 0 then return false end
  local route = C.sl_abi_emitter_route(emitter, 0)
  return SINGLE[route.grouping] ~= nil and route.target_count > 0
end

-- Whether any receiver of a route may be given strings without copying them.
local function is_near(route)
  for i = 0, route.target_count - 1 do
    if route.targets[i].is_near ~= 0 then return true end
  end
  return false
end

--- The emit function of a stream: function(values, options).
---@param task ffi.cdata* struct sl_task *
---@param emitter ffi.cdata* struct sl_emitter *
---@param kind 'spout'|'bolt'
---@param helpers table functions that the text calls; see streamlua.runtime.collector
---@return fun(values: table, options?: table)
function M.generate(task, emitter, kind, helpers)
  local shape = wide.is_wide(emitter) and wide.looped or wide.written_out
  local n = emitter.field_count
  local single = is_single(emitter)
  local route = single and C.sl_abi_emitter_route(emitter, 0) or nil
  local key = single and way_field(route) or nil
  local text = PREFIX .. (single and DIRECT[kind] or 'return general')
  local parts = {
    READ = read_text(shape, n),
    SIZE = read_text(shape, n, key),
    WRITE = write_text(shape, n, single and is_near(route) and REFER or COPY, key),
    COPYING = write_text(shape, n, COPY),
    CHOOSE = choose_text(shape, emitter),
    ANCHOR = ANCHOR[kind],
    END = AFTER[kind],
    PICK = single and pick_text(shape, route) or '',
    MOST = task.manual_ack ~= 0 and '0' or '1',
  }
  text = text:gsub('%f[%w](%u+)%f[^%w]', parts)
  local chunk = assert(loadstring(text, '=emit'))
  return chunk(ffi, C, task, emitter, route, single and route.targets[0] or nil,
    key and keys_of(route) or nil, helpers)
end

---------------------------------------------------------------------------------------------------
-- values that are neither nil, boolean, number nor string

local int64_t, uint64_t = ffi.typeof('int64_t'), ffi.typeof('uint64_t')
local bytes_p = ffi.typeof('uint8_t *')

--- The bytes of such a value, '' when it fits into its slot; or nil and what is wrong with it.
---@param item any
---@return string? bytes
---@return string? problem
function M.other_bytes(item)
  if item == value.null then return '' end
  if type(item) == 'cdata' and (ffi.istype(int64_t, item) or ffi.istype(uint64_t, item)) then
    return ''
  end
  return value.encode(item)
end

--- Writes such a value into a slot; the new end of the record's bytes.
function M.put_other(record, index, item, bytes, at)
  local slot = record.slots[index]
  if #bytes > 0 then
    slot.tag = C.SL_VALUE_TABLE
    slot.len = #bytes
    slot.offset = at
    ffi.copy(ffi.cast(bytes_p, record) + at, bytes, #bytes)
    return at + bit.band(#bytes + 7, -8)
  elseif item == value.null then
    slot.tag = C.SL_VALUE_NULL
  elseif ffi.istype(int64_t, item) then
    slot.tag = C.SL_VALUE_INT64
    slot.i64 = item
  else
    slot.tag = C.SL_VALUE_UINT64
    slot.u64 = item
  end
  return at
end

return M
