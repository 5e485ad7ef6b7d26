--- How tasks and records pass between the Lua states of a run.
--
-- Records lie in blocks of C memory: {n, addr, len, form}. The form `part` is one encoded part; `values`
-- are n encoded values, one after the other, as receivers make them. To and from another process a block
-- carries its `bytes` instead. A task refers to functions of the program by number (ref) or to the
-- library's own by name (builtin).

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

--- The same as a block that carries its bytes.
---@param part table
---@return table
function M.store_inline(part)
  local pointer, len = encoded({ n = part.n, items = part.items, keys = part.keys, vals = part.vals })
  return { n = part.n, bytes = ffi.string(pointer, len), form = 'part' }
end

-- The bytes of a block that lies in a file, in memory of the caller's.
local function read_file(block)
  local file, problem = io.open(block.path, 'rb')
  local text = file and file:read(block.len)
  if file then file:close() end
  if not text or #text ~= block.len then
    error(("file '%s' of a dataset: %s"):format(block.path, problem or 'it is too short'), 0)
  end
  return text
end

local last_file = 0

--- Moves a block's records to a file in a folder.
---@param block table
---@param folder string
---@return table block
function M.to_disk(block, folder)
  local pointer, len
  if block.addr then
    pointer, len = ffi.cast(bytes_p, block.addr), block.len
  else
    pointer, len = encoded({ n = block.n, items = block.part.items, keys = block.part.keys,
      vals = block.part.vals })
  end
  last_file = last_file + 1
  local path = ('%s/%d-%d'):format(folder, C.getpid(), last_file)
  local file = assert(io.open(path, 'wb'))
  local ok, problem = file:write(ffi.string(pointer, len))
  if ok then ok, problem = file:close() else file:close() end
  if not ok then
    os.remove(path)
    error(("file '%s' of a dataset: %s"):format(path, problem), 0)
  end
  M.free(block)
  return { n = block.n, path = path, len = tonumber(len), form = block.form or 'part' }
end

--- The part of a block.
---@param block table
---@return table
function M.fetch(block)
  if block.part then return block.part end
  if block.path then return buffer.decode(read_file(block)) end
  if block.bytes then
    reader:set(block.bytes)
  elseif block.addr then
    reader:set(ffi.cast(bytes_p, block.addr), block.len)
  else
    error('the records of this dataset are not held any more', 0)
  end
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

local free_memory = C.free

--- Takes a block's memory over: it is freed by `free`, at the latest with the block's table.
---@param block table
---@return table block
function M.own(block)
  block.memory = ffi.gc(ffi.cast('void *', block.addr), free_memory)
  return block
end

--- Moves the bytes that a block carries to memory of its own.
---@param block table
---@return table block
function M.land(block)
  local bytes = block.bytes
  block.addr, block.len, block.bytes = M.keep(bytes, #bytes), #bytes, nil
  return M.own(block)
end

--- Frees a block's memory.
---@param block table
function M.free(block)
  if block.path then
    os.remove(block.path)
    block.path = nil
  end
  if block.columns then
    M.free(block.columns)
    block.columns = nil
  end
  if block.addr then
    if block.memory then ffi.gc(block.memory, nil) end
    C.free(ffi.cast('void *', block.addr))
    block.addr, block.memory = nil, nil
  end
end

-- The records of a list of pairs as two columns, nil when one of them is no table. Columns are a third
-- of the work to write and to read.
local function columns_of(part)
  local items, keys, vals = part.items, {}, {}
  for i = 1, part.n do
    local item = items[i]
    if type(item) ~= 'table' then return nil end
    keys[i], vals[i] = item[1], item[2]
  end
  return { n = part.n, keys = keys, vals = vals }
end

local PAIR_STEPS = { map_values = true, flat_map_values = true }

-- Whether a task looks at the first two fields of its input's records only.
local function takes_pairs(task)
  local tree = task.tree
  local steps = tree.op == 'pass' and tree.steps or {}
  if steps[1] then return PAIR_STEPS[steps[1].op] or false end
  local sink = task.sink
  return sink.kind == 'shuffle' and sink.combine.kind ~= 'spread'
end

local function input_block(task)
  local tree = task.tree
  if tree.op == 'pass' then tree = tree.input end
  return tree and tree.op == 'block' and tree.block or nil
end

-- Gives the input of a task that was made here its memory, as columns where they will do.
local function place_input(task)
  local block = input_block(task)
  if not block or block.addr or not block.part or not block.part.items
    or not takes_pairs(task) then return end
  local columns = columns_of(block.part)
  if not columns then return end
  local stored = block.columns
  if not stored then
    stored = M.own(M.store(columns))
    block.columns = stored
  end
  return { n = stored.n, addr = stored.addr, len = stored.len, form = stored.form }
end

local function is_block(item) return item.addr ~= nil or item.part ~= nil or item.path ~= nil end

-- A block with its bytes.
local function inlined(block)
  if block.path then return { n = block.n, bytes = read_file(block), form = block.form } end
  if block.addr then
    return { n = block.n, bytes = ffi.string(ffi.cast(bytes_p, block.addr), block.len), form = block.form }
  end
  return M.store_inline(block.part)
end

local function portable(item, is_inline)
  if type(item) ~= 'table' then return item end
  if item.ref then return { ref = item.ref } end
  if item.builtin then return { builtin = item.builtin } end
  if is_block(item) and item.n then
    if is_inline then return inlined(item) end
    if item.path then return { n = item.n, path = item.path, len = item.len, form = item.form } end
    -- Records that were made here get a copy for the others, once.
    if not item.addr then
      local stored = M.store(item.part)
      item.addr, item.len, item.form = stored.addr, stored.len, stored.form
      M.own(item)
    end
    return { n = item.n, addr = item.addr, len = item.len, form = item.form }
  end
  local copy = {}
  for key, inner in pairs(item) do copy[key] = portable(inner, is_inline) end
  return copy
end

--- What holds descriptors and blocks as bytes; `task` in it is a task. is_inline: for another process.
---@param spec table
---@param is_inline? boolean
---@return string
function M.pack(spec, is_inline)
  local task = spec.task
  local columns = task and place_input(task)
  if columns then
    -- The same task with the columns in place of the block.
    local tree = { op = 'block', block = columns }
    if task.tree.op == 'pass' then tree = { op = 'pass', steps = task.tree.steps, input = tree } end
    task = { tree = tree, sink = task.sink }
    local copy = {}
    for key, item in pairs(spec) do copy[key] = item end
    copy.task = task
    spec = copy
  end
  return buffer.encode(portable(spec, is_inline))
end

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
