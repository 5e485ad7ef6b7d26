-- Clocks of the operating system in seconds, finer than context:now().

local ffi = require 'ffi'

ffi.cdef 'int sl_bench_clock(int clock, int64_t *time) __asm__("clock_gettime");'

local time = ffi.new('int64_t[2]')

local function read(clock)
  ffi.C.sl_bench_clock(clock, time)
  return tonumber(time[0]) + tonumber(time[1]) * 1e-9
end

return {
  --- Time that only goes forward, the same in all processes.
  mono = function() return read(1) end,
  --- Processor time of this process, of all its threads.
  cpu = function() return read(2) end,
}
