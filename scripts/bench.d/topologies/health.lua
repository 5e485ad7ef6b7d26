-- B14: what the compiler and the collector did during a word count, after its warm-up.
--
--     streamlua run health.lua --set n=1e6
--
-- It is word_count.lua with a listener to the compiler's events. It prints traces, aborts and flushes
-- counted from the warm-up on, the driver loops of the engine that were blacklisted at any time, and
-- the milliseconds of one full collection, which no step of a collection exceeds.

local clock = require 'clock'
local jit_util = require 'jit.util'
local vmdef = require 'jit.vmdef'

local folder = debug.getinfo(1, 'S').source:match('^@(.*/)') or ''

local counts = { start = 0, stop = 0, abort = 0, flush = 0 }
local blacklisted = 0
local DRIVERS = { ['=execute'] = true, ['=next_tuple'] = true }

jit.attach(function(what, _, fn, _, code)
  counts[what] = counts[what] + 1
  if what == 'abort' and vmdef.traceerr[code] == 'blacklisted' then
    local info = jit_util.funcinfo(fn)
    if info.source and DRIVERS[info.source] then blacklisted = blacklisted + 1 end
  end
end, 'trace')

-- Lines are printed from here, so that the listener and the counting go with `start_ms` and `end_ms`.
local print_line = print
local function report()
  print_line('traces', counts.stop)
  print_line('aborts', counts.abort)
  print_line('flushes', counts.flush)
  print_line('blacklisted', blacklisted)
  local before = clock.mono()
  collectgarbage()
  print_line('collection_ms', (clock.mono() - before) * 1000)
end

local chunk = assert(loadfile(folder .. 'word_count.lua'))
setfenv(chunk, setmetatable({
  print = function(name, value)
    if name == 'start_ms' then
      for key in pairs(counts) do counts[key] = 0 end
    elseif name == 'end_ms' then
      report()
    end
    print_line(name, value)
  end,
}, { __index = _G }))
return chunk()
