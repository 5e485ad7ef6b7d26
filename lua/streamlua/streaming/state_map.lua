--- The table of one partition of a state: keys with a value and a time (or any other whole number), in C
--- memory, off the Lua heap. Its address may be handed to another thread's Lua state, which wraps it.
--
--     local maps = require 'streamlua.streaming.state_map'
--     local map = maps.new('counts')
--     map:put('a', 1, 1000)
--     assert(map:get('a') == 1 and select(2, map:get('a')) == 1000)

local abi = require 'streamlua.abi'
local states = require 'streamlua.runtime.state'
local value = require 'streamlua.runtime.value'

local ffi = abi.ffi

local M = {}

local Map = {}
Map.__index = Map

local GROUPS = 16

--- An empty table.
---@param name string
function M.new(name)
  local items = assert(states.new({ name = name, key_groups = GROUPS }))
  local times = assert(states.new({ name = name, key_groups = GROUPS }))
  return setmetatable({
    items = items,
    times = times,
    address = {
      tonumber(ffi.cast('uintptr_t', items.handle)),
      tonumber(ffi.cast('uintptr_t', times.handle)),
      name,
    },
  }, Map)
end

--- The table at an address that another Lua state, or this one, keeps alive.
function M.wrap(address)
  return setmetatable({
    items = states.wrap(ffi.cast('struct sl_keyed *', address[1]), address[3]),
    times = states.wrap(ffi.cast('struct sl_keyed *', address[2]), address[3]),
    address = address,
  }, Map)
end

--- The value of a key and its time; nil when there is none.
function Map:get(key)
  local item = self.items:get(key)
  if item == nil then return nil end
  return item, self.times:get(key)
end

--- Sets both.
function Map:put(key, item, time)
  self.items:put(key, item)
  self.times:put(key, time)
end

--- Removes a key; true when it was there.
function Map:remove(key)
  self.times:remove(key)
  return self.items:remove(key)
end

--- The number of keys, and the bytes they take.
function Map:size() return self.items:size() end
function Map:memory() return self.items:memory() + self.times:memory() end

--- Removes all keys.
function Map:clear()
  self.items:clear()
  self.times:clear()
end

--- Iterates over keys and values.
function Map:each() return self.items:each() end

--- Iterates over keys and values whose time is below a threshold.
function Map:expired(threshold)
  local keys = {}
  for key, time in self.times:each() do
    if time < threshold then keys[#keys + 1] = key end
  end
  local i = 0
  return function()
    i = i + 1
    local key = keys[i]
    if key ~= nil then return key, self.items:get(key) end
  end
end

local MAGIC = 'SLSTATE1'

-- Sections of a file: a length of 16 digits and the bytes; the first one is a table of both tables' keys.
local function write_section(file, bytes)
  assert(file:write(('%016d'):format(#bytes)))
  assert(file:write(bytes))
end

--- Writes tables into one file, which appears complete or not at all. Raises when it can not.
---@param addresses table[]
---@param path string
function M.save(addresses, path)
  local temporary = path .. '.new'
  local file = assert(io.open(temporary, 'wb'))
  local ok, problem = pcall(function()
    assert(file:write(MAGIC))
    for _, address in ipairs(addresses) do
      local map = M.wrap(address)
      for group = 0, GROUPS - 1 do
        write_section(file, (assert(map.items:export_group(group))))
        write_section(file, (assert(map.times:export_group(group))))
      end
    end
    write_section(file, MAGIC)
  end)
  local closed, why = file:close()
  if ok and not closed then ok, problem = false, why end
  if ok then ok, problem = os.rename(temporary, path) end
  if not ok then
    os.remove(temporary)
    error(("state file '%s': %s"):format(path, tostring(problem)), 0)
  end
end

local function read_section(file)
  local digits = file:read(16)
  local length = tonumber(digits)
  if not length then return nil end
  local bytes = length == 0 and '' or file:read(length)
  if not bytes or #bytes ~= length then return nil end
  return bytes
end

--- Reads such a file into tables, `place(key)` says into which; what they held is gone. Raises when the
--- file is damaged.
---@param maps table[]
---@param path string
---@param place fun(key: any): integer
function M.load(maps, path, place)
  local file = assert(io.open(path, 'rb'))
  local parts = {}
  local is_whole = file:read(#MAGIC) == MAGIC
  while is_whole do
    local bytes = read_section(file)
    if bytes == MAGIC then break end
    is_whole = bytes ~= nil
    parts[#parts + 1] = bytes
  end
  file:close()
  if not is_whole or #parts % 2 ~= 0 then error(("state file '%s' is damaged"):format(path), 0) end
  for _, map in ipairs(maps) do map:clear() end
  local read = M.new('restored')
  for i = 1, #parts, 2 do
    assert(read.items:import(parts[i]))
    assert(read.times:import(parts[i + 1]))
  end
  for key, item in read.items:each() do maps[place(key)]:put(key, item, read.times:get(key)) end
end

--- What is wrong with a value that can not be stored ('function value' and so on), or nil.
function M.problem(item)
  if type(item) == 'number' or type(item) == 'string' or type(item) == 'boolean' then return nil end
  local bytes, problem = value.encode_scratch(item)
  if bytes then return nil end
  return problem
end

--- A key as messages show it.
function M.shown(key)
  return type(key) == 'string' and ("'%s'"):format(key) or tostring(key)
end

return M
