-- B13: a bolt that takes a thousand tuples a second under a spout that could send tens of millions:
-- how much memory that takes, and what is left of a stream beside it.

local engine = require 'engine'

return {
  id = 'B13',
  name = 'back pressure',
  run = function(bench)
    local seconds = bench.quick and 0.4 or 5
    local function run(mode)
      return engine.run('pressure', { mode = mode, seconds = seconds }, 2)
    end
    local idle, memory, share = math.huge, math.huge, 0
    for _ = 1, engine.round_count(bench) do
      idle = math.min(idle, run('idle').resident_kib)
      local alone, both = run('sibling'), run('both')
      memory = math.min(memory, both.resident_kib)
      share = math.max(share, both.sibling / alone.sibling)
    end
    bench:report { variant = 'memory', name = 'peak memory above idle', unit = 'MiB',
      value = math.max(0, memory - idle) / 1024, target = 64, better = 'less' }
    bench:report { variant = 'sibling', name = 'rate of a sibling stream, share of its own',
      value = share, unit = 'share', target = 0.8 }
  end,
}
