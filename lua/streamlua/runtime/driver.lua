--- Generates the loops that run user code: one for each (task, stream) of a bolt, one for a spout.
--
-- A bolt's loop walks the records of a batch, makes a plain table of each, calls `execute`, and acks.
-- While the table does not escape the JIT never makes it. Records are found by adding their lengths to
-- a pointer: a chain of integer additions, where an offset kept as a Lua number would convert twice a
-- tuple. The loop returns when the task should yield; an error leaves through the caller's pcall with
-- task.record still at the tuple that failed.

local abi = require 'streamlua.abi'
local bytecode = require 'streamlua.runtime.bytecode'
local constants = require 'streamlua.runtime.constants'
local err = require 'streamlua.err'
local value = require 'streamlua.runtime.value'
local wide = require 'streamlua.runtime.wide'

local C, ffi = abi.C, abi.ffi
local concat, format = table.concat, string.format

local M = {}

local int64_t, uint64_t = ffi.typeof('int64_t'), ffi.typeof('uint64_t')
local bytes_p = ffi.typeof('const uint8_t *')

--- The value of a slot that is neither a number nor a string.
---@param record ffi.cdata* struct sl_record *
---@param slot ffi.cdata* struct sl_slot &
function M.read_other(record, slot)
  local tag = slot.tag
  if tag == C.SL_VALUE_NIL then
    return nil
  elseif tag == C.SL_VALUE_TRUE then
    return true
  elseif tag == C.SL_VALUE_FALSE then
    return false
  elseif tag == C.SL_VALUE_INT64 then
    return int64_t(slot.i64)
  elseif tag == C.SL_VALUE_UINT64 then
    return uint64_t(slot.u64)
  elseif tag == C.SL_VALUE_NULL then
    return value.null
  end
  return value.decode(ffi.cast(bytes_p, record) + slot.offset, slot.len)
end

local size_out = ffi.new('size_t[1]')

--- A key that the records of a turn name by its number, the first time that this task reads it.
---@param keys table the keys read before, by number; `keys.turn` is the turn that runs
---@param number integer
---@return string
function M.read_key(keys, number)
  local text = C.sl_abi_turn_key(keys.turn, number, size_out)
  if text == nil then error(select(2, err.last()), 0) end
  local key = ffi.string(text, size_out[0])
  keys[number] = key
  return key
end

-- Reads a field of record r, the one of slot AT, into V.
local READ = [[
local S = r.slots[AT]
if S.tag == NUMBER then
  V = S.number
elseif S.tag == KEY then
  V = keys[S.len] or read_key(keys, S.len)
elseif S.tag == TEXT then
  V = texts[S.len]
elseif S.tag == STRING then
  V = text(cast(chars_p, r) + S.offset, S.len)
else
  V = read_other(r, S)
end]]

local function read_field(at, slot_name, value_name)
  return (READ:gsub('%f[%w]%u+%f[^%w]', { AT = at, S = slot_name, V = value_name }))
end

-- The table constructor of a tuple.
local function tuple_text(fields)
  local out = {}
  for i = 1, #fields do out[i] = 'v' .. i end
  for i, name in ipairs(fields) do out[#out + 1] = format('[%q] = v%d', name, i) end
  return '{ ' .. concat(out, ', ') .. ' }'
end

local PREFIX = [[
local ffi, C, task, execute, self, collector, read_other, read_key, hold = ...
local cast, text, setmetatable = ffi.cast, ffi.string, setmetatable
local record_p, chars_p = ffi.typeof('struct sl_record *'), ffi.typeof('const char *')
local bytes_p = ffi.typeof('uint8_t *')
local NUMBER, STRING = C.SL_VALUE_NUMBER, C.SL_VALUE_STRING
local TEXT, KEY = C.SL_SLOT_TEXT, C.SL_SLOT_KEY
]]

-- For an `execute` without loops of its own: it becomes part of this loop's trace. No pointer is in
-- sight where the loop begins: a branch of `execute` that got a trace of its own ends there, and
-- would have to make every pointer in sight on the Lua heap.
local STRAIGHT = [[
return function(p, n, meta, texts, keys)
  task.record = cast(record_p, p)
  for i = 1, n do
    DECLARE
    do
      local r = task.record
      FIELDS
    end
    execute(self, setmetatable(TUPLE, META), collector)
    do
      local r = task.record
      ACK
      task.record = cast(record_p, cast(bytes_p, r) + r.len)
    end
    if task.yield ~= 0 then return i, cast(bytes_p, task.record) end
  end
  return n, cast(bytes_p, task.record)
end]]

-- For an `execute` with loops: a trace ends where they begin, and every local that is in sight there
-- has to be made on the Lua heap. So no pointer is in sight: it is kept in task.record.
local ADVANCE = [[
local function advance()
  local r = task.record
  ACK
  task.record = cast(record_p, cast(bytes_p, r) + r.len)
  return task.yield ~= 0
end
]]

local LOOPING = ADVANCE .. [[
local function read(texts, keys)
  local r = task.record
  DECLARE
  FIELDS
  return VALUES
end
local function tuple(VALUES)
  return TUPLE
end
return function(p, n, meta, texts, keys)
  task.record = cast(record_p, p)
  for i = 1, n do
    execute(self, setmetatable(tuple(read(texts, keys)), META), collector)
    if advance() then return i, cast(bytes_p, task.record) end
  end
  return n, cast(bytes_p, task.record)
end]]

-- The same where nobody can get hold of the tuple: one table serves for all of them.
local LOOPING_SAME = ADVANCE .. [[
local tuple
do
  DECLARE
  tuple = TUPLE
end
local function read(texts, keys)
  local r = task.record
  DECLARE
  FIELDS
  STORE
end
return function(p, n, meta, texts, keys)
  task.record = cast(record_p, p)
  for i = 1, n do
    read(texts, keys)
    execute(self, tuple, collector)
    if advance() then return i, cast(bytes_p, task.record) end
  end
  return n, cast(bytes_p, task.record)
end]]

-- For tuples with so many fields that a loop reads them.
local WIDE = [[
local fields, new_table = select(-1, ...), require 'table.new'
local function read_all(r, texts, keys)
  local tuple = new_table(#fields, #fields)
  for i = 1, #fields do
    local v
    FIELD
    local name = fields[i]
    tuple[i], tuple[name] = v, v
  end
  return tuple
end
]] .. STRAIGHT

local function form_of(bolt)
  if not bytecode.has_loop(bolt.execute) then return STRAIGHT end
  return not bolt.hold and bytecode.only_reads_second(bolt.execute) and LOOPING_SAME or LOOPING
end

--- The loop of a bolt task over the records of one stream: function(head, n, meta, texts, keys) ->
--- executed, next; `texts` is the batch's list of texts, `keys` see M.read_key.
---@param task ffi.cdata* struct sl_task *
---@param fields string[]
---@param bolt { execute: function, self: table, collector: table, hold: function? }
function M.bolt(task, fields, bolt)
  local is_wide = #fields > wide.FIELDS_MOST
  local reads, values, stores = {}, {}, {}
  for i, name in ipairs(is_wide and {} or fields) do
    reads[i] = read_field(i - 1, 's' .. i, 'v' .. i)
    values[i] = 'v' .. i
    stores[i] = format('tuple[%d], tuple[%q] = v%d, v%d', i, name, i, i)
  end
  local parts = {
    FIELDS = concat(reads, '\n'),
    FIELD = read_field('i - 1', 's', 'v'),
    VALUES = concat(values, ', '),
    DECLARE = #values > 0 and 'local ' .. concat(values, ', ') or '',
    TUPLE = is_wide and 'read_all(task.record, texts, keys)' or tuple_text(fields),
    STORE = concat(stores, '\n'),
    META = bolt.hold and 'hold(meta)' or 'meta',
    ACK = bolt.hold and '' or 'if r.anchors ~= 0 then C.sl_abi_task_ack(task) end',
  }
  local text = (is_wide and WIDE or form_of(bolt)):gsub('%f[%w](%u+)%f[^%w]', parts)
  local chunk = assert(loadstring(PREFIX .. text, '=execute'))
  return chunk(ffi, C, task, bolt.execute, bolt.self, bolt.collector, M.read_other, M.read_key,
    bolt.hold, fields)
end

local SPOUT = [[
local task, next_tuple, self, collector, DONE, EMITTED, NOTHING, END = ...
return function(n)
  for i = 1, n do
    local before = task.emits
    if next_tuple(self, collector) == DONE then return i, END end
    if task.emits == before then return i, NOTHING end
    if task.yield ~= 0 then return i, EMITTED end
  end
  return n, EMITTED
end]]

--- The loop of a spout task: function(n) -> calls, result (enum sl_spout_result).
---@param task ffi.cdata* struct sl_task *
---@param spout { next_tuple: function, self: table, collector: table }
function M.spout(task, spout)
  local chunk = assert(loadstring(SPOUT, '=next_tuple'))
  return chunk(task, spout.next_tuple, spout.self, spout.collector, constants.DONE,
    tonumber(C.SL_SPOUT_EMITTED), tonumber(C.SL_SPOUT_NOTHING), tonumber(C.SL_SPOUT_DONE))
end

return M
