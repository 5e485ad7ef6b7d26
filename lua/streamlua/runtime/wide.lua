--- Streams with so many fields that a text for each of them would be too long for a Lua function: their
--- emit and the reading of their tuples, with loops over the fields in the place of generated text. Also
--- the emit of streams that are grouped by many fields. Same records, same errors as those of emit.lua
--- and driver.lua, only slower a field.

local abi = require 'streamlua.abi'

local C, ffi = abi.C, abi.ffi
local band = bit.band
local cast, copy, text_of = ffi.cast, ffi.copy, ffi.string
local type = type

local HEADER, SLOT = ffi.sizeof('struct sl_record'), ffi.sizeof('struct sl_slot')
local NUMBER, STRING, TEXT = C.SL_VALUE_NUMBER, C.SL_VALUE_STRING, C.SL_SLOT_TEXT
local NIL, TRUE, FALSE = C.SL_VALUE_NIL, C.SL_VALUE_TRUE, C.SL_VALUE_FALSE
local record_p, bytes_p = ffi.typeof('struct sl_record *'), ffi.typeof('uint8_t *')
local chars_p = ffi.typeof('const char *')

local M = {}

--- The most fields of a stream, and of a grouping, for which emit and the reader are generated.
M.FIELDS_MOST, M.KEYS_MOST = 64, 8

--- Whether a stream is emitted by `emit`.
---@param emitter ffi.cdata* struct sl_emitter *
---@return boolean
function M.is_wide(emitter)
  if emitter.field_count > M.FIELDS_MOST then return true end
  for i = 0, emitter.route_count - 1 do
    if C.sl_abi_emitter_route(emitter, i).key_count > M.KEYS_MOST then return true end
  end
  return false
end

-- The values as they are now, with the bytes of those that have to be encoded, and the size of their
-- record. What runs before they are written may change the user's table.
local function measure(values, n, h)
  local items, encoded, need = {}, {}, HEADER + SLOT * n
  for i = 1, n do
    local item = values[i]
    local kind = type(item)
    items[i] = item
    if kind == 'string' then
      need = need + band(#item + 7, -8)
    elseif kind ~= 'number' and kind ~= 'nil' and kind ~= 'boolean' then
      encoded[i] = h.other(item, i)
      need = need + band(#encoded[i] + 7, -8)
    end
  end
  return items, encoded, need
end

local function write(record, items, encoded, n, h)
  local at = HEADER + SLOT * n
  for i = 1, n do
    local item, slot = items[i], record.slots[i - 1]
    local kind = type(item)
    if kind == 'number' then
      slot.tag = NUMBER
      slot.number = item
    elseif kind == 'string' then
      slot.tag, slot.len, slot.offset = STRING, #item, at
      copy(cast(bytes_p, record) + at, item, #item)
      at = at + band(#item + 7, -8)
    elseif kind == 'nil' then
      slot.tag = NIL
    elseif kind == 'boolean' then
      slot.tag = item and TRUE or FALSE
    else
      at = h.put_other(record, i - 1, item, encoded[i], at)
    end
  end
end

local function hash_of(route, items, h)
  local hash
  for k = 0, route.key_count - 1 do
    local field = route.keys[k] + 1
    local one = h.hash(items[field], field)
    hash = hash and C.sl_keyhash_combine(hash, one) or one
  end
  return hash
end

local function choose(emitter, values, items, options, h)
  C.sl_abi_emitter_clear(emitter)
  for i = 0, emitter.route_count - 1 do
    local route = C.sl_abi_emitter_route(emitter, i)
    if route.key_count > 0 then
      C.sl_abi_emitter_add_key(emitter, i, hash_of(route, items, h))
    elseif route.grouping == C.SL_GROUPING_CUSTOM then
      h.choose_custom(emitter, i, values)
    elseif route.grouping ~= C.SL_GROUPING_DIRECT then
      C.sl_abi_emitter_add(emitter, i)
    end
  end
  if emitter.is_direct ~= 0 then h.choose_task(emitter, options) end
end

-- Begins the root of a spout's tuple and returns its slot, or lists what a bolt's tuple is anchored on.
local function anchor(task, kind, id, values, options, h)
  if kind == 'bolt' then
    C.sl_abi_anchors_clear(task)
    h.add_anchors(options)
  elseif id == nil then
    C.sl_abi_anchors_clear(task)
  else
    if type(id) ~= 'string' and type(id) ~= 'number' then h.bad_id(id) end
    if task.is_full ~= 0 then h.await_root() end
    local slot = C.sl_abi_root_begin(task)
    if h.ids then h.ids[slot] = id end
    if h.keep then h.keep(slot, id, values, options) end
    return slot
  end
end

--- The emit function of a wide stream: function(values, options); the arguments are those of
--- streamlua.runtime.emit.generate.
---@param task ffi.cdata* struct sl_task *
---@param emitter ffi.cdata* struct sl_emitter *
---@param kind 'spout'|'bolt'
---@param h table
---@return fun(values: table, options?: table)
function M.emit(task, emitter, kind, h)
  local n = emitter.field_count
  return function(values, options)
    if type(values) ~= 'table' then h.bad_values(values) end
    if values[n + 1] ~= nil then h.too_many(values) end
    if options ~= nil and type(options) ~= 'table' then h.bad_options(options) end
    local items, encoded, need = measure(values, n, h)
    h.too_large(need)
    local p = C.sl_abi_task_scratch(task, need)
    if p == nil then h.no_memory() end
    local record = cast(record_p, p)
    write(record, items, encoded, n, h)
    record.len = need
    choose(emitter, values, items, options, h)
    local slot = anchor(task, kind, options and options.id, items, options, h)
    for i = 0, emitter.target_count - 1 do
      local lack = C.sl_abi_emitter_copy(task, emitter, i, need)
      while lack ~= 0 do
        h.flush(emitter.targets[i], lack)
        lack = C.sl_abi_emitter_copy(task, emitter, i, need)
      end
    end
    task.emits = task.emits + 1
    if slot then C.sl_abi_root_end(task, slot) end
  end
end

--- Reads tuples of a wide stream: function(record, texts) -> a new tuple.
---@param fields string[]
---@param read_other fun(record: ffi.cdata*, slot: ffi.cdata*): any
---@return fun(record: ffi.cdata*, texts: table): table
function M.reader(fields, read_other)
  return function(record, texts)
    local tuple = {}
    for i = 1, #fields do
      local slot = record.slots[i - 1]
      local item
      if slot.tag == NUMBER then
        item = slot.number
      elseif slot.tag == STRING then
        item = text_of(cast(chars_p, record) + slot.offset, slot.len)
      elseif slot.tag == TEXT then
        item = texts[slot.len]
      else
        item = read_other(record, slot)
      end
      tuple[i], tuple[fields[i]] = item, item
    end
    return tuple
  end
end

return M
