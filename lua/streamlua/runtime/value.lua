--- Values <-> bytes: what may travel in a tuple or lie in keyed state, outside the Lua heap.
--
--     local value = require 'streamlua.runtime.value'
--     local bytes = assert(value.encode({ 'a', n = 1 }))
--     assert(value.decode(bytes, #bytes).n == 1)
--     assert(select(2, value.encode(print)) == 'function value')
--
-- Values are nil, booleans, numbers, strings, int64/uint64 cdata, `null`, and tables of these, 16
-- levels deep. Equal content gives equal bytes, whatever the order in which a table was filled.
-- The layout is described in core/stream/value.abi.h.

local cjson = require 'cjson'
local abi = require 'streamlua.abi'
local table_new = require 'table.new'

local C, ffi = abi.C, abi.ffi
local cast, copy, istype, text_of = ffi.cast, ffi.copy, ffi.istype, ffi.string
local next, rawequal, rawget, tonumber, type = next, rawequal, rawget, tonumber, type
local sort = table.sort

local NIL, NUMBER, STRING = C.SL_VALUE_NIL, C.SL_VALUE_NUMBER, C.SL_VALUE_STRING
local FALSE, TRUE, NULL = C.SL_VALUE_FALSE, C.SL_VALUE_TRUE, C.SL_VALUE_NULL
local INT64, UINT64 = C.SL_VALUE_INT64, C.SL_VALUE_UINT64
local LIST, MAP = C.SL_VALUE_TABLE, C.SL_VALUE_MAP
local DEPTH_MAX = C.SL_VALUE_DEPTH_MAX

local int64_t, uint64_t = ffi.typeof('int64_t'), ffi.typeof('uint64_t')
local bytes_t = ffi.typeof('uint8_t[?]')
local pointer_t = ffi.typeof('const uint8_t *')
local double_p, int64_p = ffi.typeof('double *'), ffi.typeof('int64_t *')
local uint64_p, uint32_p = ffi.typeof('uint64_t *'), ffi.typeof('uint32_t *')
local void_p = ffi.typeof('void *')

local M = {}

--- JSON's null as a value: the null of cjson, so that documents pass unchanged. It is not nil, it
--- is true in a condition, and it prints as `null`.
M.null = cjson.null
local null = M.null

-- Light userdata share one metatable; it is only set where nobody else did.
if not debug.getmetatable(null) then
  debug.setmetatable(null, {
    __tostring = function(pointer)
      if rawequal(pointer, null) then return 'null' end
      return ('userdata: %p'):format(pointer)
    end,
  })
end

---------------------------------------------------------------------------------------------------
-- encode

-- The scratch buffer that encodings are built in; it grows and never shrinks below its start.
local SCRATCH_START, SCRATCH_KEPT = 1024, 1048576
local capacity = SCRATCH_START
local scratch = bytes_t(capacity)

-- Tables being written, outermost first, to find cycles.
local path = table_new(DEPTH_MAX, 0)

local function grow(position, extra)
  local wanted = capacity
  while wanted < position + extra do wanted = wanted * 2 end
  local grown = bytes_t(wanted)
  copy(grown, scratch, position)
  scratch, capacity = grown, wanted
end

-- All NaNs are written as this one.
local NAN_BITS = 0x7ff8000000000000ULL

local function put_number(position, number)
  if position + 9 > capacity then grow(position, 9) end
  scratch[position] = NUMBER
  if number == number then
    cast(double_p, scratch + position + 1)[0] = number
  else
    cast(uint64_p, scratch + position + 1)[0] = NAN_BITS
  end
  return position + 9
end

local function put_tag(position, tag)
  if position + 1 > capacity then grow(position, 1) end
  scratch[position] = tag
  return position + 1
end

local function put_count(position, tag, count)
  if position + 5 > capacity then grow(position, 5) end
  scratch[position] = tag
  cast(uint32_p, scratch + position + 1)[0] = count
  return position + 5
end

local function put_string(position, text)
  local length = #text
  if position + 5 + length > capacity then grow(position, 5 + length) end
  scratch[position] = STRING
  cast(uint32_p, scratch + position + 1)[0] = length
  copy(scratch + position + 5, text, length)
  return position + 5 + length
end

-- Magnitude up to which every int64 is a double.
local EXACT = 9007199254740992LL

-- In the key form an integer that a double holds exactly is that number.
local function put_integer(position, integer, as_key)
  local is_signed = istype(int64_t, integer)
  if as_key then
    local number = tonumber(integer)
    if is_signed then
      if (integer >= -EXACT and integer <= EXACT)
        or (number < 0x1p63 and cast(int64_t, number) == integer) then
        return put_number(position, number)
      end
    else
      -- A uint64 below 2^63 is the same key as that int64.
      if number < 0x1p63 and cast(int64_t, integer) >= 0 then
        return put_integer(position, cast(int64_t, integer), true)
      elseif number < 0x1p64 and cast(uint64_t, number) == integer then
        return put_number(position, number)
      elseif cast(int64_t, integer) >= 0 then
        integer, is_signed = cast(int64_t, integer), true
      end
    end
  end
  if position + 9 > capacity then grow(position, 9) end
  scratch[position] = is_signed and INT64 or UINT64
  cast(uint64_p, scratch + position + 1)[0] = cast(uint64_t, integer)
  return position + 9
end

local put_value

-- What is wrong with a key of a table, or nil.
local function key_problem(key, kind)
  if kind == 'string' or kind == 'number' or kind == 'boolean' or key == null then return nil end
  if kind == 'cdata' and (istype(int64_t, key) or istype(uint64_t, key)) then
    return 'int64 as a table key'
  end
  return kind .. ' as a table key'
end

-- Sorts strings and numbers of one kind; a list of one needs no work.
local function put_pairs(position, map, keys, count, depth, as_key)
  if count > 1 then sort(keys) end
  local problem
  for i = 1, count do
    local key = keys[i]
    if type(key) == 'string' then
      position = put_string(position, key)
    else
      position = put_number(position, key)
    end
    position, problem = put_value(position, map[key], depth, as_key)
    if not position then return nil, problem end
  end
  return position
end

local SPECIAL_KEYS = { false, true, null }
local SPECIAL_TAGS = { FALSE, TRUE, NULL }

local function put_map(position, map, count, depth, as_key)
  local numbers, strings, number_count, string_count = {}, {}, 0, 0
  for key in next, map do
    local kind = type(key)
    if kind == 'string' then
      string_count = string_count + 1
      strings[string_count] = key
    elseif kind == 'number' then
      number_count = number_count + 1
      numbers[number_count] = key
    else
      local problem = key_problem(key, kind)
      if problem then return nil, problem end
    end
  end
  position = put_count(position, MAP, count)
  local problem
  if number_count + string_count < count then
    for i = 1, 3 do
      local item = rawget(map, SPECIAL_KEYS[i])
      if item ~= nil then
        position = put_tag(position, SPECIAL_TAGS[i])
        position, problem = put_value(position, item, depth, as_key)
        if not position then return nil, problem end
      end
    end
  end
  position, problem = put_pairs(position, map, numbers, number_count, depth, as_key)
  if not position then return nil, problem end
  return put_pairs(position, map, strings, string_count, depth, as_key)
end

-- The items 1..count, or false when one of them is missing: then it is no list.
local function put_list(position, list, count, depth, as_key)
  position = put_count(position, LIST, count)
  local problem
  for i = 1, count do
    local item = rawget(list, i)
    if item == nil then return false end
    position, problem = put_value(position, item, depth, as_key)
    if not position then return nil, problem end
  end
  return position
end

local function put_table(position, value, depth, as_key)
  for i = 1, depth do
    if rawequal(path[i], value) then return nil, 'cycle' end
  end
  if depth == DEPTH_MAX then return nil, 'nesting deeper than 16' end
  path[depth + 1] = value
  local count = 0
  for _ in next, value do count = count + 1 end
  local stop, problem = false, nil
  if count > 0 and #value == count then
    stop, problem = put_list(position, value, count, depth + 1, as_key)
  end
  if stop == false then stop, problem = put_map(position, value, count, depth + 1, as_key) end
  path[depth + 1] = nil
  return stop, problem
end

-- Writes a value at a position of the scratch buffer; returns the position behind it, or nil and
-- what is wrong. `depth` tables are around it.
function put_value(position, value, depth, as_key)
  local kind = type(value)
  if kind == 'number' then
    if as_key and value == 0 then value = 0 end
    return put_number(position, value)
  elseif kind == 'string' then
    return put_string(position, value)
  elseif kind == 'table' then
    return put_table(position, value, depth, as_key)
  elseif kind == 'boolean' then
    return put_tag(position, value and TRUE or FALSE)
  elseif kind == 'nil' then
    return put_tag(position, NIL)
  elseif kind == 'cdata' then
    if istype(int64_t, value) or istype(uint64_t, value) then
      return put_integer(position, value, as_key)
    end
  elseif kind == 'userdata' and cast(void_p, value) == nil then
    return put_tag(position, NULL)
  end
  return nil, kind .. ' value'
end

local function encode(value, as_key)
  if capacity > SCRATCH_KEPT then
    capacity = SCRATCH_START
    scratch = bytes_t(capacity)
  end
  local stop, problem = put_value(0, value, 0, as_key)
  if not stop then
    for i = 1, DEPTH_MAX do path[i] = nil end
    return nil, problem
  end
  return scratch, stop
end

--- Encodes a value. On failure nil and what is wrong: 'function value', 'nesting deeper than 16',
--- 'cycle', 'table as a table key' and so on.
---@param value any
---@return string? bytes
---@return string? problem
function M.encode(value)
  local bytes, length = encode(value, false)
  if not bytes then return nil, length end
  return text_of(bytes, length)
end

--- Encodes into the module's own buffer, which the next call of this module overwrites.
---@param value any
---@return ffi.cdata*? bytes `uint8_t[]`
---@return integer|string length in bytes, or the problem
function M.encode_scratch(value) return encode(value, false) end

--- As `encode_scratch`, in the key form: equal keys have equal bytes, also 1, 1.0 and 1LL.
---@param key any
---@return ffi.cdata*? bytes
---@return integer|string length in bytes, or the problem
function M.encode_key(key) return encode(key, true) end

--- Encodes into the caller's memory.
---@param pointer ffi.cdata* where the bytes go
---@param room integer bytes there
---@param value any
---@return integer? length bytes written
---@return string? problem 'no room' when they do not fit
function M.encode_to(pointer, room, value)
  local bytes, length = encode(value, false)
  if not bytes then return nil, length end
  if length > room then return nil, 'no room' end
  copy(pointer, bytes, length)
  return length
end

---------------------------------------------------------------------------------------------------
-- decode

local take_value

local function take_list(pointer, position)
  local count = cast(uint32_p, pointer + position)[0]
  local list = table_new(count, 0)
  position = position + 4
  for i = 1, count do
    list[i], position = take_value(pointer, position)
  end
  return list, position
end

local function take_map(pointer, position)
  local count = cast(uint32_p, pointer + position)[0]
  local map = {}
  position = position + 4
  for _ = 1, count do
    local key
    key, position = take_value(pointer, position)
    map[key], position = take_value(pointer, position)
  end
  return map, position
end

-- Reads a well-formed value; returns it and the position behind it.
function take_value(pointer, position)
  local tag = pointer[position]
  position = position + 1
  if tag == NUMBER then
    return cast(double_p, pointer + position)[0], position + 8
  elseif tag == STRING then
    local length = cast(uint32_p, pointer + position)[0]
    return text_of(pointer + position + 4, length), position + 4 + length
  elseif tag == LIST then
    return take_list(pointer, position)
  elseif tag == MAP then
    return take_map(pointer, position)
  elseif tag == INT64 then
    return cast(int64_p, pointer + position)[0], position + 8
  elseif tag == UINT64 then
    return cast(uint64_p, pointer + position)[0], position + 8
  elseif tag == TRUE or tag == FALSE then
    return tag == TRUE, position
  elseif tag == NULL then
    return null, position
  end
  return nil, position
end

-- What `decode` reads from. A compiled trace does not hold a local that it uses no more, so the
-- collector could free a string while the address in it is still read.
local held

--- Decodes bytes that are exactly one value. Bytes that are not give nil and a problem; they may
--- come from anywhere.
---@param bytes string|ffi.cdata*
---@param length integer
---@return any value
---@return string? problem
function M.decode(bytes, length)
  held = bytes
  -- From here on the address comes out of a call: LuaJIT 2.1.0-beta3 miscompiles sums of a variable
  -- and an address that is a constant of the trace, as that of a constant string is.
  local pointer = C.sl_value_checked(cast(pointer_t, bytes), length)
  if pointer == nil then return nil, text_of(C.sl_error_message()) end
  local decoded = take_value(pointer, 0)
  if held and length > SCRATCH_KEPT then held = nil end
  return decoded
end

--- Decodes bytes that this process encoded, without checking them.
---@param pointer ffi.cdata* `const uint8_t *`
---@return any value
function M.decode_trusted(pointer) return (take_value(pointer, 0)) end

return M
