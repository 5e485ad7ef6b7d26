-- B2: constant spout to null bolt on two executors: the way through a ring.

local engine = require 'engine'

local VARIANTS = { { 'plain', 1e7, false, 30e6 }, { 'ack', 4e6, true, 10e6 } }

return {
  id = 'B2',
  name = 'const spout to null bolt, two executors',
  run = function(bench)
    local limit = engine.limit(bench, 'ring_64')
    for _, variant in ipairs(VARIANTS) do
      local n = variant[2] * (bench.quick and 1 or 5)
      local warm = n / 10
      local settings = { n = n, warm = warm, ack = variant[3] }
      local cpu = math.huge
      local rounds = engine.rounds(bench, function()
        local out = engine.run('const', settings, 2)
        cpu = math.min(cpu, out.cpu / n)
        return (n - warm) / engine.seconds(out)
      end)
      engine.report_rounds(bench, rounds, { variant = variant[1], unit = 'tuples/s', limit = limit,
        target = variant[4], cpu_ns = cpu * 1e9 })
    end
  end,
}
