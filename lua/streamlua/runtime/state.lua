--- Keyed state of a task: what `context:state(name)` returns. It lies in C memory by key group, so
--- millions of keys neither load the garbage collector nor get lost when key groups move.
--
--     local state = require('streamlua.runtime.state').new { name = 'counts', key_groups = 128 }
--     state:put('word', 1)
--     assert(state:add('word', 2) == 3 and state:get('word') == 3)
--     for key, value in state:each() do assert(key == 'word' and value == 3) end
--
-- Keys and values are values of API.md, section 1: numbers are one key when they are equal by
-- value, strings by bytes, tables by content. A value is copied in and out. Number and string keys
-- with numbers take the compiled path without an allocation.
--
-- String keys that are used over and over are found by the Lua string itself: `places` gives the index
-- of their entry, which spares the hash and the look-up in C. It is bounded, and stale as soon as any
-- entry has moved.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local value = require 'streamlua.runtime.value'

local C, ffi = abi.C, abi.ffi
local new_table = require 'table.new'
local setmetatable, tonumber, type = setmetatable, tonumber, type
local text_of, cast, istype = ffi.string, ffi.cast, ffi.istype
local null = value.null

local NIL, NUMBER, STRING = C.SL_VALUE_NIL, C.SL_VALUE_NUMBER, C.SL_VALUE_STRING
local TRUE, FALSE, NULL = C.SL_VALUE_TRUE, C.SL_VALUE_FALSE, C.SL_VALUE_NULL
local INT64, UINT64 = C.SL_VALUE_INT64, C.SL_VALUE_UINT64
local ENCODED = C.SL_VALUE_TABLE

local int64_t, uint64_t = ffi.typeof('int64_t'), ffi.typeof('uint64_t')
local iter_t = ffi.typeof('struct sl_keyed_iter')

-- Results of the calls below; read before the next call.
local out = ffi.new('struct sl_value')
local key_out = ffi.new('struct sl_value')

local M = {}

---@class streamlua.State
---@field name string
---@field handle ffi.cdata* `struct sl_keyed *`
---@field view ffi.cdata* `const struct sl_keyed_places *`
---@field places table<string, integer> indexes of entries in `view`
---@field moves number what view.moves was when `places` was begun
---@field wait integer look-ups in C until the next key is remembered
local State = {}
State.__index = State

-- Look-ups in C after entries have moved, and after all places have been taken, until keys are
-- remembered again: a state whose keys come and go does not fill its places in vain.
local WAIT_AFTER_MOVE, WAIT_WHEN_FULL = 1024, 65536
local PLACES_MAX = 8192

-- The key was looked up in C and has an entry; its next look-up may be shorter.
local function remember(self, key)
  local view = self.view
  if self.moves ~= view.moves then
    self.places, self.moves = {}, view.moves
    self.wait = WAIT_AFTER_MOVE
    return
  end
  if view.count == 0 then self.places = new_table(0, PLACES_MAX) end
  local place = C.sl_keyed_remember_string(self.handle, key, #key)
  if place >= 0 then
    self.places[key] = place
  elseif self.is_full then
    C.sl_keyed_forget_all(self.handle)
    self.is_full = false
  else
    self.wait = WAIT_WHEN_FULL
    self.is_full = true
  end
end

local function note_look_up(self, key)
  local wait = self.wait - 1
  self.wait = wait
  if wait < 0 then remember(self, key) end
end

-- Raises what went wrong in a call of C.
local function fail(self, action)
  local _, failure = err.last()
  error(("state '%s': %s: %s"):format(self.name, action, tostring(failure)), 3)
end

-- The Lua value of a struct sl_value that is no number.
local function from_c(item)
  local tag = item.tag
  if tag == STRING then
    return text_of(item.ptr, item.len)
  elseif tag == TRUE or tag == FALSE then
    return tag == TRUE
  elseif tag == NUMBER then
    return item.number
  elseif tag == NULL then
    return null
  elseif tag == INT64 then
    return item.integer
  elseif tag == UINT64 then
    return cast(uint64_t, item.integer)
  elseif tag == NIL then
    return nil
  end
  return value.decode_trusted(item.ptr)
end
M.from_c = from_c

-- The encoding of a key that is neither number nor string.
local function encode_key(self, key, action)
  local bytes, length = value.encode_key(key)
  if not bytes then
    error(("state '%s': %s: %s can not be a key"):format(self.name, action, length), 4)
  end
  return bytes, length
end

local function get_other(self, key)
  local bytes, length = encode_key(self, key, 'get')
  return C.sl_keyed_get_encoded(self.handle, bytes, length, out)
end

--- The value of a key, or nil.
---@param key any
---@return any
function State:get(key)
  local place = type(key) == 'string' and self.places[key]
  if place and self.view.moves == self.moves then
    local entry = self.view.entries[place]
    if entry.value_kind == NUMBER then return entry.number end
  end
  local rc
  if type(key) == 'number' then
    rc = C.sl_keyed_get_number(self.handle, key, out)
  elseif type(key) == 'string' then
    rc = C.sl_keyed_get_string(self.handle, key, #key, out)
  else
    rc = get_other(self, key)
  end
  if rc < 0 then fail(self, 'get') end
  if out.tag == NUMBER then
    if type(key) == 'string' then note_look_up(self, key) end
    return out.number
  end
  return from_c(out)
end

-- Puts a value that has to be encoded, or under a key that has to be.
local function put_other(self, key, item)
  local tag, bytes, length = ENCODED
  if type(item) == 'string' then
    tag, bytes, length = STRING, item, #item
  else
    bytes, length = value.encode_scratch(item)
    if not bytes then
      error(("state '%s': put: %s can not be stored"):format(self.name, length), 3)
    end
  end
  if type(key) == 'number' then
    return C.sl_keyed_put_number(self.handle, key, tag, bytes, length)
  elseif type(key) == 'string' then
    return C.sl_keyed_put_string(self.handle, key, #key, tag, bytes, length)
  end
  -- The key is going to be encoded into the buffer in which the value lies.
  if tag == ENCODED then bytes = text_of(bytes, length) end
  local key_bytes, key_length = encode_key(self, key, 'put')
  return C.sl_keyed_put_encoded(self.handle, key_bytes, key_length, tag, bytes, length)
end

--- Sets the value of a key; nil removes it. Raises when the value is of a kind that can not be
--- stored, and when the limit of the state is reached, which leaves the state as it was.
---@param key any
---@param item any
function State:put(key, item)
  local place = type(key) == 'string' and self.places[key]
  if place and type(item) == 'number' and self.view.moves == self.moves then
    local entry = self.view.entries[place]
    if entry.value_kind == NUMBER then
      entry.number = item
      return
    end
  end
  local rc
  if type(item) == 'number' and type(key) == 'number' then
    rc = C.sl_keyed_put_number_number(self.handle, key, item)
  elseif type(item) == 'number' and type(key) == 'string' then
    rc = C.sl_keyed_put_string_number(self.handle, key, #key, item)
    if rc == 0 then note_look_up(self, key) end
  elseif item == nil then
    self:remove(key)
    return
  else
    rc = put_other(self, key, item)
  end
  if rc < 0 then fail(self, 'put') end
end

-- What is to be added, as a number.
local function checked_delta(self, delta)
  if type(delta) == 'cdata' and (istype(int64_t, delta) or istype(uint64_t, delta)) then
    return tonumber(delta)
  end
  error(("state '%s': add: expected a number, got %s"):format(self.name, type(delta)), 3)
end

local function add_other(self, key, delta)
  local bytes, length = encode_key(self, key, 'add')
  return C.sl_keyed_add_encoded(self.handle, bytes, length, delta, out)
end

--- Adds to the number of a key, which counts as 0 when it is missing, and returns the sum. Raises
--- when the value is no number.
---@param key any
---@param delta number
---@return number sum
function State:add(key, delta)
  if type(delta) ~= 'number' then delta = checked_delta(self, delta) end
  local place = type(key) == 'string' and self.places[key]
  if place and self.view.moves == self.moves then
    local entry = self.view.entries[place]
    if entry.value_kind == NUMBER then
      local sum = entry.number + delta
      entry.number = sum
      return sum
    end
  end
  local rc
  if type(key) == 'number' then
    rc = C.sl_keyed_add_number(self.handle, key, delta, out)
  elseif type(key) == 'string' then
    rc = C.sl_keyed_add_string(self.handle, key, #key, delta, out)
    if rc == 0 then note_look_up(self, key) end
  else
    rc = add_other(self, key, delta)
  end
  if rc < 0 then fail(self, 'add') end
  if out.tag == NUMBER then return out.number end
  return from_c(out)
end

local function remove_other(self, key)
  local bytes, length = encode_key(self, key, 'remove')
  return C.sl_keyed_remove_encoded(self.handle, bytes, length)
end

--- Removes a key; true when it was there.
---@param key any
---@return boolean
function State:remove(key)
  local rc
  if type(key) == 'number' then
    rc = C.sl_keyed_remove_number(self.handle, key)
  elseif type(key) == 'string' then
    rc = C.sl_keyed_remove_string(self.handle, key, #key)
  else
    rc = remove_other(self, key)
  end
  if rc < 0 then fail(self, 'remove') end
  return rc == 1
end

--- How many keys there are.
---@return integer
function State:size() return C.sl_keyed_size(self.handle) end

--- Bytes that the state takes outside the Lua heap.
---@return integer
function State:memory() return C.sl_keyed_memory(self.handle) end

--- Removes all keys.
function State:clear() C.sl_keyed_remove_all(self.handle) end

--- Iterates over keys and values in no particular order. The key just given may be removed and
--- values may be put; whether keys added meanwhile are seen is open. A number key comes back as a
--- number, whatever type it went in as, unless only an int64 or uint64 holds it; the key nil comes
--- back as null, as a loop ends at nil.
---@return fun(): any, any
function State:each()
  local iter, handle = iter_t(), self.handle
  return function()
    if C.sl_keyed_walk(handle, iter, key_out, out) ~= 1 then return nil end
    local key = from_c(key_out)
    if key == nil then key = null end
    return key, from_c(out)
  end
end

local summary = ffi.new('struct sl_keyed_summary')
local length_out = ffi.new('size_t[1]')

-- A summary as a table; the checksum as a string of digits.
local function summary_table()
  return {
    entries = tonumber(summary.entries),
    bytes = tonumber(summary.bytes),
    checksum = ('%016x'):format(summary.checksum),
  }
end

--- The entries of a key group as bytes, for `import`. They stay in the state.
---@param group integer from 0
---@return string? bytes nil, err for a group that does not exist
---@return table summary {entries, bytes, checksum}
function State:export_group(group)
  local bytes = C.sl_keyed_export(self.handle, group, length_out, summary)
  if bytes == nil then return err.last() end
  return text_of(bytes, length_out[0]), summary_table()
end

--- How many bytes an export of a key group has.
---@param group integer from 0
---@return integer? bytes nil, err for a group that does not exist
---@return streamlua.Error?
function State:export_size(group)
  if C.sl_keyed_export(self.handle, group, length_out, summary) == nil then return err.last() end
  return tonumber(length_out[0])
end

--- Puts the entries of exported bytes, of one group or of several joined. Bytes that are malformed
--- change nothing.
---@param bytes string
---@return table? summary {entries, bytes, checksum}
---@return streamlua.Error? failure
function State:import(bytes)
  if C.sl_keyed_import_bytes(self.handle, bytes, #bytes, summary) < 0 then return err.last() end
  return summary_table()
end

--- Removes the entries of a key group.
---@param group integer from 0
function State:clear_group(group) C.sl_keyed_remove_group(self.handle, group) end

--- Makes an empty state. Options: `name` (for messages), `key_groups` (128), `limit_bytes` (none).
---@param options table?
---@return streamlua.State? state
---@return streamlua.Error? failure
function M.new(options)
  options = options or {}
  local handle = C.sl_keyed_new(options.key_groups or 128, options.limit_bytes or 0)
  if handle == nil then return err.last() end
  return M.wrap(ffi.gc(handle, C.sl_keyed_free), options.name)
end

--- The Lua object of a state that somebody else owns.
---@param handle ffi.cdata* `struct sl_keyed *`
---@param name string?
---@return streamlua.State
function M.wrap(handle, name)
  local view = C.sl_keyed_places(handle)
  return setmetatable({ handle = handle, name = name or '?', view = view, places = {},
    moves = view.moves, wait = WAIT_AFTER_MOVE, is_full = false }, State)
end

return M
