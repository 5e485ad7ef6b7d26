-- Bytes in JSON documents: base 64 (RFC 4648, with padding).
--
--   local base64 = require 'streamlua.service.base64'
--   assert(base64.encode('words') == 'd29yZHM=' and base64.decode('d29yZHM=') == 'words')

local bit = require 'bit'

local M = {}

local DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
local digit_of, value_of = {}, {}
for i = 1, 64 do
  digit_of[i - 1], value_of[DIGITS:byte(i)] = DIGITS:sub(i, i), i - 1
end

--- Bytes as text.
---@param bytes string
---@return string
function M.encode(bytes)
  local parts = {}
  for at = 1, #bytes, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local number = bit.bor(bit.lshift(a, 16), bit.lshift(b or 0, 8), c or 0)
    parts[#parts + 1] = digit_of[bit.rshift(number, 18)]
      .. digit_of[bit.band(bit.rshift(number, 12), 63)]
      .. (b and digit_of[bit.band(bit.rshift(number, 6), 63)] or '=')
      .. (c and digit_of[bit.band(number, 63)] or '=')
  end
  return table.concat(parts)
end

--- Text as bytes; nil for what is no such text.
---@param text string
---@return string?
function M.decode(text)
  local body, padding = text:match('^([%w+/]*)(=*)$')
  if not body or #text % 4 ~= 0 or #padding > 2 then return nil end
  local parts = {}
  for at = 1, #body, 4 do
    local number, count = 0, 0
    for k = at, at + 3 do
      local value = value_of[body:byte(k)]
      number = number * 64 + (value or 0)
      count = count + (value and 1 or 0)
    end
    local bytes = string.char(math.floor(number / 65536), math.floor(number / 256) % 256,
      number % 256)
    parts[#parts + 1] = bytes:sub(1, count - 1)
  end
  return table.concat(parts)
end

return M
