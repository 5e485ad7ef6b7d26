-- The limit of B1: a loop of LuaJIT over a batch of records in C memory that reads three fields and
-- writes three. Prints records in a second.
--
--     streamlua exec batch_loop.lua RECORDS

package.path = arg[0]:match('^(.*/)') .. '?.lua;' .. package.path

local ffi = require 'ffi'
local clock = require 'clock'

ffi.cdef 'struct sl_bench_record { int32_t len, tag; double key; double value; };'

local SIZE, COUNT = ffi.sizeof('struct sl_bench_record'), 1024
local record_p, bytes_p = ffi.typeof('struct sl_bench_record *'), ffi.typeof('uint8_t *')

local from = ffi.new('struct sl_bench_record[?]', COUNT)
local to = ffi.new('struct sl_bench_record[?]', COUNT)
for i = 0, COUNT - 1 do from[i].len, from[i].tag, from[i].key = SIZE, 1, i end

local function run()
  local at, out = ffi.cast(bytes_p, from), ffi.cast(bytes_p, to)
  for _ = 1, COUNT do
    local record, copy = ffi.cast(record_p, at), ffi.cast(record_p, out)
    if record.tag == 1 then
      copy.len, copy.key, copy.value = record.len, record.key, record.value + 1
    end
    at, out = at + record.len, out + SIZE
  end
end

local rounds = math.ceil(tonumber(arg[1]) / COUNT)
for _ = 1, 100 do run() end
local before = clock.mono()
for _ = 1, rounds do run() end
print('rate', rounds * COUNT / (clock.mono() - before))
