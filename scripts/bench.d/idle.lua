-- IDLE: processor time of a topology with nothing to do. START: how soon a run handles its first
-- tuple.

local engine = require 'engine'

local MODES = { { 'polling', 'a spout that has nothing', 0.01 }, { 'waiting', 'no spout to ask', 0.001 } }

return {
  id = 'IDLE',
  name = 'nothing to do, and the first tuple',
  run = function(bench)
    for _, mode in ipairs(MODES) do
      local share = math.huge
      for _ = 1, engine.round_count(bench) do
        local out = engine.run('idle', { mode = mode[1], seconds = bench.quick and 0.5 or 3 })
        share = math.min(share, out.share)
      end
      bench:report { variant = mode[1], name = 'idle: ' .. mode[2], value = share, unit = 'cores',
        target = mode[3], better = 'less' }
    end
    local first = math.huge
    for _ = 1, bench.quick and 5 or 15 do
      local out = engine.run('first')
      first = math.min(first, out.executed_at - out.spawned_at)
    end
    bench:report { variant = 'first-tuple', name = 'run: start to first tuple', value = first * 1e3,
      unit = 'ms', target = 50, better = 'less' }
  end,
}
