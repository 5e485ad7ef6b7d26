--- The table of one partition of a state: keys with a value and a time (or any other whole number), in C
--- memory, off the Lua heap. Its address may be handed to another thread's Lua state, which wraps it.
--
--     local maps = require 'streamlua.streaming.state_map'
--     local map = maps.new('counts')
--     map:put('a', 1, 1000)
--     assert(map:get('a') == 1 and select(2, map:get('a')) == 1000)

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local states = require 'streamlua.runtime.state'
local value = require 'streamlua.runtime.value'

local C, ffi = abi.C, abi.ffi
local from_c = states.from_c
local setmetatable, tonumber, type = setmetatable, tonumber, type
local NUMBER, STRING, ENCODED = C.SL_VALUE_NUMBER, C.SL_VALUE_STRING, C.SL_VALUE_TABLE

local null = value.null
local iter_t = ffi.typeof('struct sl_keyed_iter')

-- Results of the calls below; read before the next call.
local out, key_out = ffi.new('struct sl_value'), ffi.new('struct sl_value')
local time_out = ffi.new('int64_t[1]')

local M = {}

---@class streamlua.StateMap
local Map = {}
Map.__index = Map

local function fail(self, action)
  local _, failure = err.last()
  error(("state '%s': %s: %s"):format(self.name, action, tostring(failure)), 0)
end

--- An empty table.
---@param name string for messages
---@return streamlua.StateMap
function M.new(name)
  local handle = C.sl_abi_state_map_new()
  if handle == nil then fail({ name = name }, 'new') end
  return setmetatable({
    handle = ffi.gc(handle, C.sl_abi_state_map_free),
    name = name,
    address = { tonumber(ffi.cast('uintptr_t', handle)), name },
  }, Map)
end

--- The table at an address that another Lua state, or this one, keeps alive.
---@param address table
---@return streamlua.StateMap
function M.wrap(address)
  return setmetatable({ handle = ffi.cast('struct sl_state_map *', address[1]), name = address[2],
    address = address }, Map)
end

local function encode_key(self, key)
  local bytes, length = value.encode_key(key)
  if not bytes then error(("state '%s': %s can not be a key"):format(self.name, length), 0) end
  return bytes, length
end

local function get_other(self, key)
  local bytes, length = encode_key(self, key)
  return C.sl_abi_state_map_get_encoded(self.handle, bytes, length, out, time_out)
end

--- The value of a key and its time; nil when there is none.
---@param key any
---@return any value
---@return integer? time
function Map:get(key)
  local rc
  if type(key) == 'string' then
    rc = C.sl_abi_state_map_get_string(self.handle, key, #key, out, time_out)
  elseif type(key) == 'number' then
    rc = C.sl_abi_state_map_get_number(self.handle, key, out, time_out)
  else
    rc = get_other(self, key)
  end
  if rc == 0 then return nil end
  if rc < 0 then fail(self, 'get') end
  if out.tag == NUMBER then return out.number, tonumber(time_out[0]) end
  return from_c(out), tonumber(time_out[0])
end

local function put_other(self, key, item, time)
  local handle = self.handle
  if type(item) == 'number' then
    local bytes, length = encode_key(self, key)
    return C.sl_abi_state_map_put_encoded_number(handle, bytes, length, item, time)
  end
  local tag, bytes, length = ENCODED
  if type(item) == 'string' then
    tag, bytes, length = STRING, item, #item
  else
    bytes, length = value.encode_scratch(item)
    if not bytes then error(("state '%s': %s can not be stored"):format(self.name, length), 0) end
  end
  if type(key) == 'string' then
    return C.sl_abi_state_map_put_string(handle, key, #key, tag, bytes, length, time)
  elseif type(key) == 'number' then
    return C.sl_abi_state_map_put_number(handle, key, tag, bytes, length, time)
  end
  -- The key is going to be encoded into the buffer in which the value lies.
  if tag == ENCODED then bytes = ffi.string(bytes, length) end
  local key_bytes, key_length = encode_key(self, key)
  return C.sl_abi_state_map_put_encoded(handle, key_bytes, key_length, tag, bytes, length, time)
end

--- Sets both.
---@param key any
---@param item any
---@param time integer
function Map:put(key, item, time)
  local rc
  if type(item) == 'number' and type(key) == 'string' then
    rc = C.sl_abi_state_map_put_string_number(self.handle, key, #key, item, time)
  elseif type(item) == 'number' and type(key) == 'number' then
    rc = C.sl_abi_state_map_put_number_number(self.handle, key, item, time)
  else
    rc = put_other(self, key, item, time)
  end
  if rc < 0 then fail(self, 'put') end
end

--- Removes a key; true when it was there.
---@param key any
---@return boolean
function Map:remove(key)
  local rc
  if type(key) == 'string' then
    rc = C.sl_abi_state_map_remove_string(self.handle, key, #key)
  elseif type(key) == 'number' then
    rc = C.sl_abi_state_map_remove_number(self.handle, key)
  else
    local bytes, length = encode_key(self, key)
    rc = C.sl_abi_state_map_remove_encoded(self.handle, bytes, length)
  end
  if rc < 0 then fail(self, 'remove') end
  return rc == 1
end

--- The number of keys, and the bytes they take.
---@return integer
function Map:size() return C.sl_abi_state_map_size(self.handle) end
---@return integer
function Map:memory() return C.sl_abi_state_map_memory(self.handle) end

--- Removes all keys.
function Map:clear() C.sl_abi_state_map_clear(self.handle) end

--- Iterates over keys, values and times. The key just given may be removed and values may be put. The key
--- nil comes back as null.
function Map:each()
  local iter, handle = iter_t(), self.handle
  return function()
    if C.sl_abi_state_map_walk(handle, iter, key_out, out, time_out) ~= 1 then return nil end
    local key = from_c(key_out)
    if key == nil then key = null end
    return key, from_c(out), tonumber(time_out[0])
  end
end

--- The key with the oldest time, its value and time, when that is below the threshold; it comes again until
--- it is removed or put anew.
---@param threshold integer
function Map:expired(threshold)
  if C.sl_abi_state_map_expired(self.handle, threshold, key_out, out, time_out) ~= 1 then return nil end
  local key = from_c(key_out)
  if key == nil then key = null end
  return key, from_c(out), tonumber(time_out[0])
end

---------------------------------------------------------------------------------------------------
-- files

-- The first table lies at the path itself, the others beside it. The first one is written last, so that it
-- is there only when all are.
local function path_of(path, p) return p == 1 and path or ('%s.part%d'):format(path, p) end

--- Writes tables to files at a path.
---@param addresses table[]
---@param path string
function M.save(addresses, path)
  for p = #addresses, 1, -1 do
    local map = M.wrap(addresses[p])
    if C.sl_abi_state_map_save(map.handle, path_of(path, p)) < 0 then fail(map, 'save') end
  end
end

local function load_one(map, path)
  if C.sl_abi_state_map_load(map.handle, path) < 0 then fail(map, 'load') end
end

local function exists(path)
  local file = io.open(path, 'rb')
  if file then file:close() end
  return file ~= nil
end

--- Reads such files into tables; `place(key)` says which table a key belongs to where their number has
--- changed. What the tables held is gone. Raises when a file is damaged.
---@param maps streamlua.StateMap[]
---@param path string
---@param place fun(key: any): integer
function M.load(maps, path, place)
  local count = 1
  while exists(path_of(path, count + 1)) do count = count + 1 end
  for _, map in ipairs(maps) do map:clear() end
  if count == #maps then
    for p, map in ipairs(maps) do load_one(map, path_of(path, p)) end
    return
  end
  for p = 1, count do
    local read = M.new(maps[1].name)
    load_one(read, path_of(path, p))
    for key, item, time in read:each() do maps[place(key)]:put(key, item, time) end
  end
end

--- Removes the files beside paths of a folder that are not there any more.
---@param folder string
function M.sweep(folder)
  local lfs = require 'lfs'
  for name in lfs.dir(folder) do
    local base = name:match('^(.*)%.part%d+$')
    if base and not exists(folder .. '/' .. base) then os.remove(folder .. '/' .. name) end
  end
end

---------------------------------------------------------------------------------------------------
-- values

--- What is wrong with a value that can not be stored ('function value' and so on), or nil.
---@param item any
---@return string?
function M.problem(item)
  if type(item) == 'number' or type(item) == 'string' or type(item) == 'boolean' then return nil end
  local bytes, problem = value.encode_scratch(item)
  if bytes then return nil end
  return problem
end

--- A key as messages show it.
---@param key any
---@return string
function M.shown(key) return type(key) == 'string' and ("'%s'"):format(key) or tostring(key) end

return M
