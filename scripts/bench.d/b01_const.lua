-- B1: constant spout to null bolt on one executor: what the engine itself costs a tuple.

local engine = require 'engine'

local VARIANTS = {
  { 'plain', 2e7, {}, 100e6 },
  { 'ack', 6e6, { ack = true }, 30e6 },
  { 'text', 5e6, { text = true } },
}

return {
  id = 'B1',
  name = 'const spout to null bolt, one executor',
  run = function(bench)
    local limit = engine.limit(bench, 'batch_loop')
    for _, variant in ipairs(VARIANTS) do
      local n = variant[2] * (bench.quick and 1 or 5)
      local warm = n / 10
      local settings = { n = n, warm = warm }
      for key, value in pairs(variant[3]) do settings[key] = value end
      local cpu = math.huge
      local rounds = engine.rounds(bench, function()
        local out = engine.run('const', settings, 1)
        cpu = math.min(cpu, out.cpu / n)
        return (n - warm) / engine.seconds(out)
      end)
      engine.report_rounds(bench, rounds, { variant = variant[1], unit = 'tuples/s', limit = limit,
        target = variant[4], cpu_ns = cpu * 1e9 })
    end
  end,
}
