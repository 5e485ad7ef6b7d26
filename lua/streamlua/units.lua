-- Durations and sizes as people write them: "500ms" "10s" "5m" "1h", "512MiB" "1GiB".
-- A plain number is seconds or bytes. Results are numbers; failures are `nil, message`.
--
--   local units = require 'streamlua.units'
--   assert(units.parse_duration('500ms') == 0.5)
--   assert(units.parse_size('1GiB') == 1073741824)

local M = {}

local seconds_of = { ns = 1e-9, us = 1e-6, ms = 1e-3, s = 1, sec = 1, m = 60, min = 60, h = 3600,
  d = 86400 }

-- K, KB and KiB are all 1024: memory is counted in powers of two here.
local bytes_of = { b = 1 }
for i, letter in ipairs({ 'k', 'm', 'g', 't', 'p' }) do
  local factor = 1024 ^ i
  bytes_of[letter], bytes_of[letter .. 'b'], bytes_of[letter .. 'ib'] = factor, factor, factor
end

local function is_usable(number)
  return number == number and number >= 0 and number < math.huge
end

local function shown(value)
  return type(value) == 'string' and ("'%s'"):format(value) or tostring(value)
end

local function parse(value, factors, fold, failure)
  if type(value) == 'number' then
    if is_usable(value) then
      return value
    end
    return nil, failure:format(shown(value))
  end
  if type(value) ~= 'string' then
    return nil, failure:format(shown(value))
  end
  local digits, unit = value:match('^%s*(%d+%.?%d*)%s*(%a*)%s*$')
  if not digits then
    digits, unit = value:match('^%s*(%.%d+)%s*(%a*)%s*$')
  end
  local number = tonumber(digits)
  local factor = unit == '' and 1 or unit and factors[fold and unit:lower() or unit]
  if not number or not factor or not is_usable(number * factor) then
    return nil, failure:format(shown(value))
  end
  return number * factor
end

--- Seconds of a duration: a number, or text with ns, us, ms, s, m, h or d. Never negative.
---@param value number|string
---@return number? seconds
---@return string? message
function M.parse_duration(value)
  -- Thousandths as a division: 100ms is 0.1 and not 0.1 and a bit.
  local thousandths = type(value) == 'string' and value:match('^%s*(%d+)%s*ms%s*$')
  if thousandths then
    return tonumber(thousandths) / 1000
  end
  return parse(value, seconds_of, false,
    '%s is not a duration (like "500ms", "10s", "5m", "1h" or a number of seconds)')
end

--- Bytes of a size: a number, or text with B, KiB, MiB, GiB, TiB (K and KB mean KiB). Whole bytes,
--- rounded down; never negative.
---@param value number|string
---@return number? bytes
---@return string? message
function M.parse_size(value)
  local bytes, message = parse(value, bytes_of, true,
    '%s is not a size (like "512MiB", "1GiB" or a number of bytes)')
  return bytes and math.floor(bytes), message
end

--- Short text of a number of seconds: 0.0123 -> "12.3ms", 75 -> "1m15s".
---@param seconds number
---@return string
function M.duration_text(seconds)
  if seconds < 1e-3 then
    return ('%.3gus'):format(seconds * 1e6)
  elseif seconds < 1 then
    return ('%.3gms'):format(seconds * 1e3)
  elseif seconds < 60 then
    return ('%.3gs'):format(seconds)
  elseif seconds < 3600 then
    return ('%dm%02ds'):format(seconds / 60, seconds % 60)
  elseif seconds < 86400 then
    return ('%dh%02dm'):format(seconds / 3600, seconds % 3600 / 60)
  end
  return ('%dd%02dh'):format(seconds / 86400, seconds % 86400 / 3600)
end

--- Short text of a number of bytes: 1610612736 -> "1.5GiB".
---@param bytes number
---@return string
function M.size_text(bytes)
  local names = { 'B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB' }
  local i = 1
  while bytes >= 1024 and i < #names do
    bytes, i = bytes / 1024, i + 1
  end
  return (i == 1 and '%d%s' or '%.4g%s'):format(bytes, names[i])
end

return M
