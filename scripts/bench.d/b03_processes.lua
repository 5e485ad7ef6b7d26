-- B3: constant spout to null bolt in two worker processes: the way over TCP.

local engine = require 'engine'

local VARIANTS = { { 'plain', 1e7, false, 10e6 }, { 'ack', 3e6, true, 4e6 } }
local TASKS = { { 'source', 1 }, { 'sink', 2 } }
-- A record with two numbers, as tests/bench/limits.c has it.
local RECORD_BYTES = 56

return {
  id = 'B3',
  name = 'const spout to null bolt, two processes',
  run = function(bench)
    local limit = engine.limit(bench, 'tcp_stream') / RECORD_BYTES
    for _, variant in ipairs(VARIANTS) do
      local n = variant[2] * (bench.quick and 1 or 5)
      local warm = n / 10
      local settings = { n = n, warm = warm, ack = variant[3] }
      local cpu = math.huge
      local rounds = engine.rounds(bench, function()
        local out = engine.run_apart('const', settings, TASKS)
        cpu = math.min(cpu, out.cpu / n)
        return (n - warm) / engine.seconds(out)
      end)
      engine.report_rounds(bench, rounds, { variant = variant[1], unit = 'tuples/s', limit = limit,
        target = variant[4], cpu_ns = cpu * 1e9 })
    end
  end,
}
