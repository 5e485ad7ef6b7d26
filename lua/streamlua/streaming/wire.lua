--- How tasks and records pass between the Lua states of a run.
--
-- Records lie in blocks of C memory: {n, addr, len, form}. The form `part` is one encoded part; `values`
-- are n encoded values, one after the other, as receivers make them. A task refers to functions of the
-- program by number (ref) or to the library's own by name (builtin).

local buffer = require 'string.buffer'
local ffi = require 'ffi'
local libc = require 'streamlua.connectors.libc'
local streams = require 'streamlua.streaming.stream'

local C = libc.C

local M = {}

local scratch = buffer.new()
local reader = buffer.new()
local bytes_p = ffi.typeof('uint8_t *')

--- Copies bytes into memory that any thread may read; its address.
---@param pointer ffi.cdata*
---@param len integer
---@return integer
function M.keep(pointer, len)
  local memory = C.malloc(math.max(1, len))
  if memory == nil then error('no memory for a block', 0) end
  ffi.copy(memory, pointer, len)
  return tonumber(ffi.cast('uintptr_t', memory))
end

local function encoded(item)
  scratch:reset()
  local ok, problem = pcall(scratch.encode, scratch, item)
  if not ok then
    error(('a record can not go to another executor: %s'):format(tostring(problem):gsub('^.-: ', '')), 0)
  end
  return scratch:ref()
end

--- Stores a part as a block.
---@param part table
---@return table
function M.store(part)
  local pointer, len = encoded({ n = part.n, items = part.items, keys = part.keys, vals = part.vals })
  return { n = part.n, addr = M.keep(pointer, len), len = len, form = 'part' }
end

--- The part of a block.
---@param block table
---@return table
function M.fetch(block)
  if block.part then return block.part end
  if not block.addr then error('the records of this dataset are not held any more', 0) end
  reader:set(ffi.cast(bytes_p, block.addr), block.len)
  local part
  if block.form == 'values' then
    local items = {}
    for i = 1, block.n do items[i] = reader:decode() end
    part = { n = block.n, items = items }
  else
    part = reader:decode()
  end
  reader:reset()
  return part
end

--- Frees a block's memory.
---@param block table
function M.free(block)
  if block.addr then
    if block.memory then ffi.gc(block.memory, nil) end
    C.free(ffi.cast('void *', block.addr))
    block.addr, block.memory = nil, nil
  end
end

local function is_block(item) return item.addr ~= nil or item.part ~= nil end

local function portable(item)
  if type(item) ~= 'table' then return item end
  if item.ref then return { ref = item.ref } end
  if item.builtin then return { builtin = item.builtin } end
  if is_block(item) then
    -- Records that were made here get a copy for the others, once.
    if not item.addr then
      local stored = M.store(item.part)
      item.addr, item.len, item.form = stored.addr, stored.len, stored.form
    end
    return { n = item.n, addr = item.addr, len = item.len, form = item.form }
  end
  local copy = {}
  for key, inner in pairs(item) do copy[key] = portable(inner) end
  return copy
end

--- A task, or what else holds descriptors and blocks, as bytes.
---@param spec table
---@return string
function M.pack(spec) return buffer.encode(portable(spec)) end

local function resolved(context, item)
  if type(item) ~= 'table' then return item end
  if item.ref then
    local descriptor = context.descriptors[item.ref]
    if not descriptor then error(('the script has no function %d here'):format(item.ref), 0) end
    return descriptor
  end
  if item.builtin then return streams.library[item.builtin] end
  for key, inner in pairs(item) do item[key] = resolved(context, inner) end
  return item
end

--- The task of such bytes, with the functions of this Lua state's program.
---@param context table
---@param bytes string
---@return table
function M.unpack(context, bytes) return resolved(context, buffer.decode(bytes)) end

M.encode, M.decode = buffer.encode, buffer.decode

return M
