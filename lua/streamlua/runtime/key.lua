--- Keys: the stable hash that decides which key group a value belongs to.
--
--     local key = require 'streamlua.runtime.key'
--     local group = key.key_group('word', 128)
--     assert(group >= 0 and group < 128)
--     assert(key.key_group(1, 128) == key.key_group(1LL, 128))
--
-- The hash is the same in every process. Numbers are one key when they are equal by value, strings
-- by bytes, tables by content; nil, booleans and null are keys.

local abi = require 'streamlua.abi'
local value = require 'streamlua.runtime.value'

local C, ffi = abi.C, abi.ffi
local floor = math.floor
local type = type

local M = {}

local result = ffi.new('uint64_t[1]')

--- The hash of a value as a key, or nil and what is wrong with it ('function value' and so on).
--- In hot code numbers and strings are better hashed with C.sl_keyhash_number and _string.
---@param key any
---@return ffi.cdata*? hash uint64
---@return string? problem
function M.hash(key)
  local kind = type(key)
  if kind == 'number' then
    return C.sl_keyhash_number(key)
  elseif kind == 'string' then
    return C.sl_keyhash_string(key, #key)
  end
  local bytes, length = value.encode_key(key)
  if not bytes then return nil, length end
  C.sl_keyhash_encoded(bytes, length, result)
  return result[0]
end

--- The hash of a key of several fields, folded from the first on; one field alone has its own hash.
---@param hash ffi.cdata* uint64 of the fields so far
---@param following ffi.cdata* uint64 of the next field
---@return ffi.cdata* hash uint64
function M.combine(hash, following) return C.sl_keyhash_combine(hash, following) end

--- The key group of a value, from 0 to group_count - 1. Raises on a value that is no key and on a
--- count that is no whole number from 1 on.
---@param key any
---@param group_count integer
---@return integer group
function M.key_group(key, group_count)
  if type(group_count) ~= 'number' or group_count < 1 or group_count > 0x7fffffff
    or group_count ~= floor(group_count) then
    error('key_group: the number of groups must be a whole number from 1 on, got '
      .. tostring(group_count), 2)
  end
  if type(key) == 'number' then return C.sl_keyhash_group_of_number(key, group_count) end
  if type(key) == 'string' then
    return C.sl_keyhash_group_of_string(key, #key, group_count)
  end
  local hash, problem = M.hash(key)
  if not hash then error('key_group: ' .. problem .. ' can not be a key', 2) end
  return C.sl_keyhash_group(hash, group_count)
end

return M
