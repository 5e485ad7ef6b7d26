--- What the bytecode of a bolt's `execute` says before it has ever run.

local jit_util = require 'jit.util'
local vmdef = require 'jit.vmdef'

local band, rshift = bit.band, bit.rshift

local M = {}

-- Names of bytecodes by number.
local NAMES = {}
for at = 1, #vmdef.bcnames, 6 do NAMES[(at - 1) / 6] = vmdef.bcnames:sub(at, at + 5):match('^%S*') end

local function set(list)
  local out = {}
  for _, name in ipairs(list) do out[name] = true end
  return out
end

-- Bytecodes that end a loop; those that begin with J or I are the same after compilation or its failure.
local LOOPS = set { 'FORL', 'IFORL', 'JFORL', 'LOOP', 'ILOOP', 'JLOOP', 'ITERL', 'IITERL', 'JITERL' }

-- Bytecodes whose A is a slot but names no value that they use.
local NO_VALUE = set { 'JMP', 'LOOP', 'ILOOP', 'JLOOP', 'UCLO' }

-- Bytecodes that use all slots from A on.
local RANGES = set { 'RET', 'RETM' }

-- Reads of a field of the table in slot B.
local FIELD_READS = set { 'TGETS', 'TGETB', 'TGETV' }

-- Kinds of operands, as jit.util.funcbc tells them: slots that are written, read, or begin a range.
local DST, BASE, VAR, RBASE = 1, 2, 3, 4
local IS_SLOT = { [DST] = true, [BASE] = true, [VAR] = true, [RBASE] = true }

-- Calls visit(name, instruction, mode) for each instruction until it returns something true; returns that.
-- Functions of C have no instructions.
local function walk(fn, visit)
  if not jit_util.funcinfo(fn).bytecodes then return nil end
  for pc = 1, 65536 do
    local instruction, mode = jit_util.funcbc(fn, pc)
    if not instruction then return nil end
    local found = visit(NAMES[band(instruction, 0xff)], instruction, mode)
    if found then return found end
  end
  return true
end

--- Whether a function has a loop in its own code.
---@param fn function
---@return boolean
function M.has_loop(fn)
  return walk(fn, function(name) return LOOPS[name] end) or false
end

-- The slot of the second parameter.
local SECOND = 1

-- Whether an instruction may do anything with the second parameter but read its fields.
local function uses_second(name, instruction, mode)
  -- A closure may hold it.
  if name == 'FNEW' then return true end
  local kind_a, kind_b, kind_c = band(mode, 7), band(rshift(mode, 3), 15), band(rshift(mode, 7), 15)
  local a, b = band(rshift(instruction, 8), 0xff), rshift(instruction, 24)
  local c = band(rshift(instruction, 16), kind_b == 0 and 0xffff or 0xff)
  return IS_SLOT[kind_a] and a == SECOND and not NO_VALUE[name]
    or RANGES[name] and a <= SECOND
    or IS_SLOT[kind_b] and b == SECOND and not FIELD_READS[name]
    or IS_SLOT[kind_c] and c == SECOND
end

--- Whether a function lets nobody else see its second argument: it only reads fields of it. Then the
--- caller may use the table again for its next call.
---@param fn function
---@return boolean
function M.only_reads_second(fn)
  local info = jit_util.funcinfo(fn)
  if not info.params or info.isvararg then return false end
  return not walk(fn, uses_second)
end

return M
