-- JSON for topologies and for the command line, over cjson where cjson is right and by our own code
-- where it is not: integers beyond 2^53 (int64/uint64 cdata), empty arrays, exact depth limits.
-- `null` is `streamlua.null` both ways.
--
--   local json = require 'streamlua.json'
--   local value = assert(json.decode('{"id":9007199254740993,"tags":[]}'))
--   assert(json.encode(value.id) == '9007199254740993')
--   assert(json.encode(value.tags) == '[]')

local ffi = require 'ffi'
local cjson = require 'cjson'
local null = require 'streamlua.runtime.value'.null

local byte, char, find, format, gsub, sub = string.byte, string.char, string.find, string.format,
  string.gsub, string.sub
local concat, sort = table.concat, table.sort
local floor = math.floor

local M = { null = null }

--- Levels of nesting that `decode` and `encode` accept unless told otherwise.
M.MAX_DEPTH = 128

local Array = { __name = 'json array' }
local Object = { __name = 'json object' }

--- Marks a table as an array, so that it is written `[]` when it is empty.
---@param list table?
---@return table the same table
function M.array(list)
  return setmetatable(list or {}, Array)
end

--- Marks a table as an object: integer keys become texts, empty is `{}`.
function M.object(map)
  return setmetatable(map or {}, Object)
end

--- True for a table that `array` marked or that `decode` made from an empty array.
function M.is_array(value)
  return getmetatable(value) == Array
end

---------------------------------------------------------------------------------------------------
-- decode

local fast = cjson.new()
fast.decode_invalid_numbers(false)
fast.decode_max_depth(M.MAX_DEPTH)

-- Our decoder: one function a kind of value, each taking the position of its first byte and
-- returning the value and the position behind it. Failures are raised as {message, position} and
-- caught by decode_exact.
local value_at

local function fail(position, text)
  error({ message = text, position = position }, 0)
end

local function skip_blanks(text, position)
  return find(text, '[^ \t\r\n]', position) or #text + 1
end

local escapes = { ['"'] = '"', ['\\'] = '\\', ['/'] = '/', b = '\b', f = '\f', n = '\n', r = '\r',
  t = '\t' }

local function utf8_of(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xc0 + floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return char(0xe0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
  end
  return char(0xf0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64,
    0x80 + floor(code / 64) % 64, 0x80 + code % 64)
end

local function unicode_escape(text, position)
  local digits = text:match('^%x%x%x%x', position + 2)
  if not digits then
    fail(position, 'bad unicode escape')
  end
  local code = tonumber(digits, 16)
  if code >= 0xd800 and code < 0xdc00 then
    local low = text:match('^\\u(%x%x%x%x)', position + 6)
    local value = low and tonumber(low, 16)
    if not value or value < 0xdc00 or value > 0xdfff then
      fail(position, 'half of a surrogate pair')
    end
    return utf8_of(0x10000 + (code - 0xd800) * 1024 + (value - 0xdc00)), position + 12
  elseif code >= 0xdc00 and code < 0xe000 then
    fail(position, 'half of a surrogate pair')
  end
  return utf8_of(code), position + 6
end

local function string_at(text, position)
  local from, parts = position + 1, nil
  while true do
    local stop = find(text, '["\\]', from)
    if not stop then
      fail(position, 'string without an end')
    end
    local c = byte(text, stop)
    if c == 0x22 then
      local piece = sub(text, from, stop - 1)
      if not parts then
        return piece, stop + 1
      end
      parts[#parts + 1] = piece
      return concat(parts), stop + 1
    else
      parts = parts or {}
      parts[#parts + 1] = sub(text, from, stop - 1)
      local letter = sub(text, stop + 1, stop + 1)
      if letter == 'u' then
        parts[#parts + 1], from = unicode_escape(text, stop)
      elseif escapes[letter] then
        parts[#parts + 1], from = escapes[letter], stop + 2
      else
        fail(stop, 'unknown escape')
      end
    end
  end
end

-- Whole numbers that a double would round become int64, above that uint64, beyond both a double.
local function whole_number(digits, negative)
  local number = tonumber(digits)
  if #digits < 16 or (#digits == 16 and digits <= '9007199254740992') then
    return negative and -number or number
  end
  local limit = negative and '9223372036854775808' or '18446744073709551615'
  if #digits > #limit or (#digits == #limit and digits > limit) then
    return negative and -number or number
  end
  local value = 0ULL
  for i = 1, #digits do
    value = value * 10 + (byte(digits, i) - 48)
  end
  if negative then
    return -ffi.cast('int64_t', value)
  elseif value <= 0x7fffffffffffffffULL then
    return ffi.cast('int64_t', value)
  end
  return value
end

local function number_at(text, position)
  local sign, digits = text:match('^(%-?)(%d+)', position)
  if not digits or (#digits > 1 and byte(digits) == 48) then
    fail(position, 'bad number')
  end
  local stop = position + #sign + #digits
  local fraction = text:match('^%.%d+', stop) or ''
  local exponent = text:match('^[eE][+-]?%d+', stop + #fraction) or ''
  local last = stop + #fraction + #exponent
  if find(text, '^[%w.+-]', last) then
    fail(position, 'bad number')
  end
  if fraction == '' and exponent == '' then
    return whole_number(digits, sign == '-'), last
  end
  return tonumber(sub(text, position, last - 1)), last
end

local function array_at(text, position, depth)
  local list, n = {}, 0
  local at = skip_blanks(text, position + 1)
  if byte(text, at) == 0x5d then
    return M.array(list), at + 1
  end
  while true do
    n = n + 1
    list[n], at = value_at(text, at, depth)
    at = skip_blanks(text, at)
    local c = byte(text, at)
    if c == 0x5d then
      return list, at + 1
    elseif c ~= 0x2c then
      fail(at, "expected ',' or ']'")
    end
    at = at + 1
  end
end

local function object_at(text, position, depth)
  local map = {}
  local at = skip_blanks(text, position + 1)
  if byte(text, at) == 0x7d then
    return map, at + 1
  end
  while true do
    local key
    at = skip_blanks(text, at)
    if byte(text, at) ~= 0x22 then
      fail(at, 'expected a string as key')
    end
    key, at = string_at(text, at)
    at = skip_blanks(text, at)
    if byte(text, at) ~= 0x3a then
      fail(at, "expected ':'")
    end
    map[key], at = value_at(text, at + 1, depth)
    at = skip_blanks(text, at)
    local c = byte(text, at)
    if c == 0x7d then
      return map, at + 1
    elseif c ~= 0x2c then
      fail(at, "expected ',' or '}'")
    end
    at = at + 1
  end
end

local words = { t = { 'true', true }, f = { 'false', false }, n = { 'null', null } }

function value_at(text, position, depth)
  local at = skip_blanks(text, position)
  local c = sub(text, at, at)
  if c == '{' or c == '[' then
    if depth == 0 then
      fail(at, 'nested too deeply')
    end
    return (c == '{' and object_at or array_at)(text, at, depth - 1)
  elseif c == '"' then
    return string_at(text, at)
  elseif words[c] and sub(text, at, at + #words[c][1] - 1) == words[c][1] then
    return words[c][2], at + #words[c][1]
  elseif c == '' then
    fail(at, 'unexpected end of the text')
  elseif not find(c, '[%d-]') then
    fail(at, ("unexpected '%s'"):format(c))
  end
  return number_at(text, at)
end

local function line_of(text, position)
  local _, breaks = gsub(sub(text, 1, position - 1), '\n', '')
  return breaks + 1
end

local function decode_exact(text, depth)
  local ok, value, position = pcall(value_at, text, 1, depth)
  if ok then
    local rest = skip_blanks(text, position)
    if rest <= #text then
      ok, value = false, { message = 'text behind the document', position = rest }
    end
  end
  if ok then
    return value
  end
  if type(value) ~= 'table' then
    error(value, 0)
  end
  local line = line_of(text, value.position)
  return nil, format('invalid JSON: %s at character %d (line %d)', value.message, value.position,
    line), line
end

local LONG = 16

local function is_digit(b)
  return b ~= nil and b >= 48 and b <= 57
end

-- A run of LONG digits covers one of every LONG bytes, so only those are looked at first.
local function has_long_number(text)
  local size = #text
  for i = LONG, size, LONG do
    if is_digit(byte(text, i)) then
      local from, to = i, i
      while is_digit(byte(text, from - 1)) and from > 1 do
        from = from - 1
      end
      while is_digit(byte(text, to + 1)) do
        to = to + 1
      end
      if to - from + 1 >= LONG then
        return true
      end
    end
  end
  return false
end

-- Plain searches are many times faster than the pattern, which is tried only where it may match.
local function has_empty_array(text)
  if find(text, '[]', 1, true) then
    return true
  end
  return (find(text, '[ ', 1, true) or find(text, '[\n', 1, true) or find(text, '[\r', 1, true)
    or find(text, '[\t', 1, true)) and find(text, '%[%s+%]') ~= nil
end

-- What cjson would lose: integers of 16 digits and more, empty arrays.
local function needs_exact(text)
  return has_long_number(text) or has_empty_array(text)
end

--- Decodes one JSON document. As cjson does, it takes line ends and other control characters
--- inside strings as they are.
---@param text string
---@param options table? {max_depth=}
---@return any value `nil` only on failure; JSON null is `streamlua.null`
---@return string? message what is wrong and where
---@return integer? line
function M.decode(text, options)
  if type(text) ~= 'string' then
    return nil, 'invalid JSON: expected a string, got ' .. type(text)
  end
  local depth = options and options.max_depth or M.MAX_DEPTH
  if depth == M.MAX_DEPTH and not needs_exact(text) then
    local ok, value = pcall(fast.decode, text)
    if ok then
      return value
    end
  end
  -- Failures are decoded again by our code, so that there is one wording for all of them.
  return decode_exact(text, depth)
end

---------------------------------------------------------------------------------------------------
-- encode

local plain_escapes = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f',
  ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t' }

local function escape(c)
  return plain_escapes[c] or format('\\u%04x', byte(c))
end

-- Length of the valid UTF-8 sequence that starts at `i`, or nil.
local function utf8_length(text, i)
  local a, b = byte(text, i, i + 1)
  if a < 0x80 then
    return 1
  elseif a >= 0xc2 and a <= 0xdf then
    return find(text, '^[\128-\191]', i + 1) and 2
  elseif a >= 0xe0 and a <= 0xef then
    local fits = b and (a ~= 0xe0 or b >= 0xa0) and (a ~= 0xed or b < 0xa0)
    return fits and find(text, '^[\128-\191][\128-\191]', i + 1) and 3
  elseif a >= 0xf0 and a <= 0xf4 then
    local fits = b and (a ~= 0xf0 or b >= 0x90) and (a ~= 0xf4 or b < 0x90)
    return fits and find(text, '^[\128-\191][\128-\191][\128-\191]', i + 1) and 4
  end
end

-- JSON text is UTF-8: bytes that are not become U+FFFD, so that any string gives a valid document.
local function repair_utf8(text)
  local parts, n, from, i = {}, 0, 1, find(text, '[\128-\255]')
  while i do
    local length = utf8_length(text, i)
    if length then
      i = i + length
    else
      n = n + 1
      parts[n] = sub(text, from, i - 1) .. '\239\191\189'
      i = i + 1
      from = i
    end
    i = find(text, '[\128-\255]', i)
  end
  if n == 0 then
    return text
  end
  return concat(parts) .. sub(text, from)
end

local function encode_string(text)
  if find(text, '[\128-\255]') then
    text = repair_utf8(text)
  end
  if find(text, '[%c"\\]') then
    text = gsub(text, '[%z\1-\31"\\\127]', escape)
  end
  return '"' .. text .. '"'
end

local function encode_number(value)
  if value ~= value or value == math.huge or value == -math.huge then
    error(format('can not write the number %s as JSON', tostring(value)), 0)
  end
  if value == floor(value) and value > -1e15 and value < 1e15 then
    return format('%d', value)
  end
  local text = format('%.14g', value)
  return tonumber(text) == value and text or format('%.17g', value)
end

local function encode_cdata(value)
  if value == null then
    return 'null'
  elseif ffi.istype('int64_t', value) or ffi.istype('uint64_t', value) then
    return (gsub(tostring(value), '[UL]+$', ''))
  end
  error('can not write cdata as JSON: ' .. tostring(ffi.typeof(value)), 0)
end

-- Decides whether a table is an array; its length, or nil for an object.
local function array_length(value)
  local mark = getmetatable(value)
  if mark == Object then
    return nil
  end
  local n, count = 0, 0
  for key in pairs(value) do
    if type(key) ~= 'number' or key < 1 or key ~= floor(key) then
      return nil
    end
    count = count + 1
    n = key > n and key or n
  end
  if count == 0 then
    return mark == Array and 0 or nil
  end
  -- Holes become null as long as the array is not mostly holes.
  if n > 8 and n > count * 2 then
    error('can not write a sparse array as JSON', 0)
  end
  return n
end

local encode_value

local function encode_array(value, n, depth, out, k, order)
  out[k] = '['
  k = k + 1
  for i = 1, n do
    if i > 1 then
      out[k] = ','
      k = k + 1
    end
    k = encode_value(value[i], depth, out, k, order)
  end
  out[k] = ']'
  return k + 1
end

local function key_text(key)
  if type(key) == 'string' then
    return key
  elseif type(key) == 'number' then
    return encode_number(key)
  elseif type(key) == 'cdata' and key ~= null then
    return encode_cdata(key)
  end
  error('can not write a ' .. type(key) .. ' key as JSON', 0)
end

-- Keys in the order that is asked for, others in byte order behind them: the same value is always the
-- same text.
local function encode_object(value, depth, out, k, order)
  local keys, texts, listed = {}, {}, {}
  for _, key in ipairs(order or {}) do
    if value[key] ~= nil then
      keys[#keys + 1], texts[key], listed[key] = key, key, true
    end
  end
  local rest = {}
  for key in pairs(value) do
    if not listed[key] then
      local text = key_text(key)
      rest[#rest + 1] = text
      texts[text] = key
    end
  end
  sort(rest)
  for _, text in ipairs(rest) do
    keys[#keys + 1] = text
  end
  out[k] = '{'
  k = k + 1
  for i, text in ipairs(keys) do
    out[k] = (i > 1 and ',' or '') .. encode_string(text) .. ':'
    local inside = order and (order[texts[text]] or order['*'])
    k = encode_value(value[texts[text]], depth, out, k + 1, inside)
  end
  out[k] = '}'
  return k + 1
end

function encode_value(value, depth, out, k, order)
  local kind = type(value)
  if value == nil or value == null then
    out[k] = 'null'
  elseif kind == 'string' then
    out[k] = encode_string(value)
  elseif kind == 'number' then
    out[k] = encode_number(value)
  elseif kind == 'boolean' then
    out[k] = tostring(value)
  elseif kind == 'cdata' then
    out[k] = encode_cdata(value)
  elseif kind == 'table' then
    if depth == 0 then
      error('can not write a table nested too deeply as JSON', 0)
    end
    local n = array_length(value)
    if n then
      return encode_array(value, n, depth - 1, out, k, order)
    end
    return encode_object(value, depth - 1, out, k, order)
  else
    error('can not write a ' .. kind .. ' as JSON', 0)
  end
  return k + 1
end

--- Encodes a value as one line of JSON: int64 with all digits, bytes that are no UTF-8 as U+FFFD.
--- Tables with keys 1..n are arrays, an empty table is `{}` unless `array` marked it. Keys are
--- sorted, or stand as `order` says: { 'first', 'second', first = order of what is in it, ['*'] =
--- order in all other members }; items of an array have the order of the array.
---@param value any
---@param options table? {max_depth=, order=}
---@return string? text
---@return string? message
function M.encode(value, options)
  local out = {}
  local ok, err = pcall(encode_value, value, options and options.max_depth or M.MAX_DEPTH, out, 1,
    options and options.order)
  if not ok then
    return nil, err
  end
  return concat(out)
end

return M
