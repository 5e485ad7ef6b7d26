-- B0: what the machine does without the engine; the other workloads divide by these figures.

local engine = require 'engine'

local LIMITS = {
  { 'memory_copy', 'copy of 32 MiB', 'B/s' },
  { 'cache_copy', 'copy of 64 KiB', 'B/s' },
  { 'ring_8', 'ring between two threads, 8 bytes', 'items/s' },
  { 'ring_64', 'ring between two threads, 64 bytes', 'items/s' },
  { 'trip_spin', 'round trip between two threads, spinning', 's' },
  { 'trip_block', 'round trip between two threads, sleeping', 's' },
  { 'batch_loop', 'loop of LuaJIT over records', 'records/s' },
  { 'record', 'record written and read in C', 'records/s' },
  { 'system_call', 'system call', 's' },
  { 'clock_read', 'clock_gettime', 's' },
  { 'probe_1e4', 'add in a bare hash table, 10^4 keys', 'op/s' },
  { 'tcp_stream', 'a stream over loopback TCP between two threads', 'B/s' },
  { 'probe_1e7', 'add in a bare hash table, 10^7 keys', 'op/s' },
}

return {
  id = 'B0',
  name = 'limits of the machine',
  run = function(bench)
    for _, limit in ipairs(LIMITS) do
      bench:report { variant = limit[1], name = limit[2], value = engine.limit(bench, limit[1]),
        unit = limit[3] }
    end
  end,
}
