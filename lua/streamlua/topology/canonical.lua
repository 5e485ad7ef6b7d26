--- Config values as text: the same value always gives the same bytes, whatever the order in which a
--- table was filled. It is how config travels in a topology's definition.
--
--     local canonical = require 'streamlua.topology.canonical'
--     local text = assert(canonical.encode { b = { 1, 2 }, a = 'x' })
--     assert(text == '{"a":"x","b":[1,2]}')
--     assert(canonical.decode(text).b[2] == 2)
--
-- JSON with four additions, because Lua has more values: strings are any bytes (control characters
-- are escaped, all others stand for themselves), nan, inf and -inf are numbers, 1LL and 1ULL are
-- 64-bit integers, and keys of objects may be numbers and booleans. A table that is a list 1..n is
-- [..], any other is {..}, and the empty table is {}.

local ffi = require 'ffi'

local M = {}

--- Levels of tables.
M.MAX_DEPTH = 16

local istype = ffi.istype
local int64_t, uint64_t = ffi.typeof('int64_t'), ffi.typeof('uint64_t')
local floor = math.floor

local function fail(path, what)
  error({ path = path == '' and 'the value' or path, what = what }, 0)
end

local function quote(text)
  return '"' .. text:gsub('[%z\1-\31"\\\127]', function(c)
    if c == '"' or c == '\\' then return '\\' .. c end
    return ('\\u%04x'):format(c:byte())
  end) .. '"'
end

local function number_text(value)
  if value ~= value then return 'nan' end
  if value == math.huge then return 'inf' end
  if value == -math.huge then return '-inf' end
  if value == floor(value) and value > -1e15 and value < 1e15 then
    return ('%d'):format(value)
  end
  local short = ('%.14g'):format(value)
  return tonumber(short) == value and short or ('%.17g'):format(value)
end

local function scalar_text(value, path)
  local kind = type(value)
  if kind == 'string' then return quote(value) end
  if kind == 'number' then return number_text(value) end
  if kind == 'boolean' then return tostring(value) end
  if kind == 'cdata' and (istype(int64_t, value) or istype(uint64_t, value)) then
    return tostring(value)
  end
  fail(path, ('a %s, which is no data'):format(kind))
end

local function is_list(value, count)
  for i = 1, count do
    if value[i] == nil then return false end
  end
  return count > 0
end

local function child_path(path, key)
  if type(key) == 'number' then return ('%s[%s]'):format(path, number_text(key)) end
  return path == '' and tostring(key) or path .. '.' .. tostring(key)
end

local put

local function put_table(value, path, depth, out)
  if depth > M.MAX_DEPTH then
    fail(path, ('tables in tables deeper than %d levels'):format(M.MAX_DEPTH))
  elseif getmetatable(value) ~= nil then
    fail(path, 'a table with a metatable, which is no plain data')
  end
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  if is_list(value, count) then
    for i = 1, count do
      out[#out + 1] = i == 1 and '[' or ','
      put(value[i], child_path(path, i), depth, out)
    end
    out[#out + 1] = ']'
    return
  end
  local keys = {}
  for key in pairs(value) do
    if type(key) == 'table' then fail(path, 'a table as a key') end
    keys[#keys + 1] = { text = scalar_text(key, child_path(path, key)), key = key }
  end
  table.sort(keys, function(a, b) return a.text < b.text end)
  out[#out + 1] = '{'
  for i, key in ipairs(keys) do
    out[#out + 1] = (i > 1 and ',' or '') .. key.text .. ':'
    put(value[key.key], child_path(path, key.key), depth, out)
  end
  out[#out + 1] = '}'
end

function put(value, path, depth, out)
  if type(value) == 'table' then return put_table(value, path, depth + 1, out) end
  if value == nil then
    out[#out + 1] = 'null'
    return
  end
  out[#out + 1] = scalar_text(value, path)
end

--- The canonical text of a value, or nil and what is wrong with it and where.
---@param value any
---@return string? text
---@return string? message such as "user.callback is a function, which is no data"
function M.encode(value)
  local out = {}
  local ok, problem = pcall(put, value, '', 0, out)
  if ok then return table.concat(out) end
  if type(problem) ~= 'table' then error(problem, 0) end
  return nil, ('%s is %s'):format(problem.path, problem.what)
end

local take

local function malformed(at, what) error({ at = at, what = what }, 0) end

local function take_string(text, at)
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('["\\]', from)
    if not stop then malformed(at, 'a text without an end') end
    parts[#parts + 1] = text:sub(from, stop - 1)
    if text:byte(stop) == 34 then return table.concat(parts), stop + 1 end
    local plain = text:match('^["\\]', stop + 1)
    local code = text:match('^u00(%x%x)', stop + 1)
    if plain then
      parts[#parts + 1], from = plain, stop + 2
    elseif code then
      parts[#parts + 1], from = string.char(tonumber(code, 16)), stop + 6
    else
      malformed(stop, 'an unknown escape')
    end
  end
end

local words = { ['true'] = true, ['false'] = false, nan = 0 / 0, inf = math.huge,
  ['-inf'] = -math.huge }

local function take_scalar(text, at)
  if text:byte(at) == 34 then return take_string(text, at) end
  local word = text:match('^[%w%.%+%-]+', at)
  if not word then malformed(at, 'no value') end
  local stop = at + #word
  if word == 'null' then return nil, stop end
  if words[word] ~= nil then return words[word], stop end
  local digits, suffix = word:match('^(%-?%d+)(U?LL)$')
  if digits and #digits <= 20 then
    local build = loadstring('return ' .. digits .. suffix)
    return build(), stop
  end
  local number = word:find('^%-?%d') and tonumber(word)
  if not number then malformed(at, 'no value') end
  return number, stop
end

local function take_list(text, at, depth)
  local list, count = {}, 0
  while true do
    count = count + 1
    list[count], at = take(text, at + 1, depth)
    local mark = text:sub(at, at)
    if mark == ']' then return list, at + 1 end
    if mark ~= ',' then malformed(at, 'a list without an end') end
  end
end

local function take_object(text, at, depth)
  local object = {}
  if text:sub(at + 1, at + 1) == '}' then return object, at + 2 end
  while true do
    local key
    key, at = take_scalar(text, at + 1)
    if key == nil or key ~= key then malformed(at, 'no key') end
    if text:sub(at, at) ~= ':' then malformed(at, 'a key without a value') end
    object[key], at = take(text, at + 1, depth)
    local mark = text:sub(at, at)
    if mark == '}' then return object, at + 1 end
    if mark ~= ',' then malformed(at, 'an object without an end') end
  end
end

function take(text, at, depth)
  local mark = text:sub(at, at)
  if mark ~= '[' and mark ~= '{' then return take_scalar(text, at) end
  if depth >= M.MAX_DEPTH then malformed(at, 'nesting that is too deep') end
  return (mark == '[' and take_list or take_object)(text, at, depth + 1)
end

--- The value of a canonical text, or nil and a message. The text of nil gives nil without a message.
---@param text string
---@return any value
---@return string? message
function M.decode(text)
  local ok, value, stop = pcall(take, text, 1, 0)
  if ok and stop == #text + 1 then return value end
  if not ok and type(value) ~= 'table' then error(value, 0) end
  local what = ok and 'something behind the value' or value.what
  return nil, ('malformed config text: %s at byte %d'):format(what, ok and stop or value.at)
end

return M
