--- The JIT advisor: what in user code keeps a hot loop from being compiled, at which line, and why.
--
-- It listens to the compiler's events. What costs speed for good is told: a trace that had to stop at
-- a function the compiler does not know (it is stitched to the next one through the interpreter), and a
-- trace that was given up for a reason that no later try changes. Aborts that are part of how the
-- compiler finds its traces are not told.

local jit_util = require 'jit.util'
local raised = require 'streamlua.runtime.raised'
local vmdef = require 'jit.vmdef'

local M = {}

local findings = {}
local flushes = 0

-- Functions that take far longer themselves than what calling them from compiled code would save.
local ACCEPTED = { ['table.sort'] = true, print = true, collectgarbage = true }

-- The end of the trace being recorded: the last function or bytecode, and the one before.
local last, previous = nil, nil

-- Place of a point in user code as 'file:line', nil when it is none.
local function place_of(fn, pc)
  local info = jit_util.funcinfo(fn, pc)
  if not info.source or not raised.is_user_code(info.source) then return nil end
  return ('%s:%d'):format(info.source:sub(2), info.currentline or info.linedefined or 0)
end

-- Name of a function that is none of Lua's: 'string.gmatch', or 'a C function'.
local function c_function_name(fn)
  local info = jit_util.funcinfo(fn)
  if info.source then return nil end
  if not info.ffid then return 'a C function' end
  -- An iterator is known by the function that makes it, a method by its object.
  return (vmdef.ffnames[info.ffid]:gsub('_aux$', ''):gsub('^io%.method%.', 'file:'))
end

local HINTS = {
  ['string.gmatch'] = 'streamlua.split finds words, string.find and string.sub other parts',
  ['string.match'] = 'string.find with a plain text, string.byte and string.sub are compiled',
  ['string.find'] = 'string.find is compiled with a plain text (fourth argument true)',
  ['string.gsub'] = 'string.find with a plain text and string.sub are compiled',
  ['bytecode FNEW'] = 'it makes a function each time: make it once, outside of the loop',
  ['bytecode UCLO'] = 'a function made in the loop keeps a local: make it once, outside',
  ['bytecode VARG'] = 'pass a table or a fixed number of arguments',
  ['file:read'] = 'streamlua.io.lines reads the lines of files',
  ['next'] = 'walk a list with ipairs or a number instead of pairs',
}

local function note(what, place, reason)
  local id = what .. ' ' .. place
  local found = findings[id]
  if not found then
    found = { what = what, place = place, reason = reason, hint = HINTS[what], count = 0 }
    findings[id] = found
  end
  found.count = found.count + 1
end

-- Aborts that come once or twice on the way to a good trace, and consequences of other ones.
local PASSING = {}
for _, text in ipairs({ 'error thrown or hook called during recording', 'trace too short',
  'blacklisted', 'retry recording', 'leaving loop in root trace', 'inner loop in root trace',
  'loop unroll limit reached', 'call unroll limit reached', 'down-recursion, restarting',
  'NYI: return to lower frame', 'JIT compilation disabled for function', 'guard would always fail',
  'hit mcode limit (retrying)', 'persistent type instability' }) do
  PASSING[text] = true
end

-- What a trace was given up for, and why that matters.
local function cause_of(text, detail)
  if text == 'NYI: bytecode %d' and type(detail) == 'number' then
    local name = vmdef.bcnames:sub(detail * 6 + 1, detail * 6 + 6):gsub(' ', '')
    return 'bytecode ' .. name, 'the compiler does not know this instruction'
  end
  if type(detail) == 'function' then detail = c_function_name(detail) or 'a function' end
  if text == 'NYI: unsupported variant of FastFunc %s' then
    return tostring(detail), 'the compiler does not know it with these arguments'
  end
  return 'a loop', (text:gsub('%%[sd]', function() return tostring(detail) end))
end

local function on_abort(fn, pc, code, detail)
  local text = vmdef.traceerr[code] or ('reason ' .. tostring(code))
  if PASSING[text] then return end
  local place = place_of(fn, pc)
  if place then
    local what, reason = cause_of(text, detail)
    note(what, place, reason)
  end
end

local function on_stop(trace)
  local info = jit_util.traceinfo(trace)
  if not info or info.linktype ~= 'stitch' or not last or not previous then return end
  local name = c_function_name(last.fn)
  local place = name and place_of(previous.fn, previous.pc)
  if place and not ACCEPTED[name] then
    note(name, place, 'the compiler does not know this function')
  end
end

local function on_record(_, fn, pc)
  previous, last = last, { fn = fn, pc = pc }
end

local function on_trace(what, trace, fn, pc, code, detail)
  if what == 'start' then
    last, previous = nil, nil
  elseif what == 'stop' then
    on_stop(trace)
  elseif what == 'abort' then
    on_abort(fn, pc, code, detail)
  elseif what == 'flush' then
    flushes = flushes + 1
  end
end

--- Begins to listen, in this Lua state.
function M.start()
  jit.attach(on_trace, 'trace')
  jit.attach(on_record, 'record')
end

--- Ends listening and forgets what was found.
function M.stop()
  jit.attach(on_trace)
  jit.attach(on_record)
  findings, flushes, last, previous = {}, 0, nil, nil
end

--- What it has found: { findings = { { what, place, reason, hint, count } }, flushes = n }, most
--- frequent first.
---@return table
function M.report()
  local list = {}
  for _, found in pairs(findings) do list[#list + 1] = found end
  table.sort(list, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    if a.place ~= b.place then return a.place < b.place end
    return a.what < b.what
  end)
  return { findings = list, flushes = flushes }
end

return M
