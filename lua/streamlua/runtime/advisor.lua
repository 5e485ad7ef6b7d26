--- The JIT advisor: which loops of user code did not compile, where, and why.
--
-- It listens to the compiler's events. An abort is told when it keeps a place in user code from being
-- compiled: several times at the same line, or for a reason that no later try will change.

local jit_util = require 'jit.util'
local vmdef = require 'jit.vmdef'

local M = {}

local aborts = {}
local flushes = 0

-- Places of the runtime itself and of generated text are not the user's to change.
local function is_user_code(source)
  return source:sub(1, 1) == '@' and not source:find('/streamlua/', 1, true)
end

local function reason_of(code, detail)
  local text = vmdef.traceerr[code] or ('reason ' .. tostring(code))
  if type(detail) == 'function' then
    local info = jit_util.funcinfo(detail)
    if info.ffid then
      detail = vmdef.ffnames[info.ffid]
    else
      detail = info.loc or 'a C function'
    end
  elseif type(detail) == 'number' and text:find('bytecode', 1, true) then
    detail = vmdef.bcnames:sub(detail * 6 + 1, detail * 6 + 6):gsub(' ', '')
  end
  return (text:gsub('%%[sd]', function() return tostring(detail) end))
end

local function on_abort(fn, pc, code, detail)
  local info = jit_util.funcinfo(fn, pc)
  local source = info.source or ''
  if not is_user_code(source) then return end
  local reason = reason_of(code, detail)
  local place = ('%s:%d'):format(source:sub(2), info.currentline or 0)
  local id = place .. ' ' .. reason
  local entry = aborts[id]
  if not entry then
    entry = { place = place, reason = reason, count = 0 }
    aborts[id] = entry
  end
  entry.count = entry.count + 1
end

local function on_trace(what, _, fn, pc, code, detail)
  if what == 'abort' then
    on_abort(fn, pc, code, detail)
  elseif what == 'flush' then
    flushes = flushes + 1
  end
end

--- Begins to listen, in this Lua state.
function M.start() jit.attach(on_trace, 'trace') end

-- Aborts that the compiler recovers from by recording something else.
local PASSING = { 'leaving loop in root trace', 'inner loop in root trace', 'retry recording',
  'loop unroll limit reached', 'call unroll limit reached', 'down%-recursion' }

local function is_passing(reason)
  for _, pattern in ipairs(PASSING) do
    if reason:find(pattern) then return true end
  end
  return false
end

--- What it has found: { aborts = { { place, reason, count } }, flushes = n }, most frequent first.
---@return table
function M.report()
  local list = {}
  for _, entry in pairs(aborts) do
    if not is_passing(entry.reason) then list[#list + 1] = entry end
  end
  table.sort(list, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    return a.place < b.place
  end)
  return { aborts = list, flushes = flushes }
end

return M
