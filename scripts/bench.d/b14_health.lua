-- B14: what the compiler and the collector do during a word count, once it is warm.

local engine = require 'engine'

return {
  id = 'B14',
  name = 'scripting health during the word count',
  run = function(bench)
    local n = bench.quick and 2e5 or 2e6
    local out = engine.run('health', { n = n, warm = n / 4 }, 1)
    local function figure(variant, name, unit, target)
      bench:report { variant = variant, name = name, value = out[variant], unit = unit,
        target = target, better = 'less' }
    end
    figure('aborts', 'traces given up after the warm-up', 'traces')
    figure('traces', 'traces made after the warm-up', 'traces')
    figure('flushes', 'flushes of all traces', 'flushes', 0)
    figure('blacklisted', 'driver loops that are not compiled', 'loops', 0)
    figure('collection_ms', 'one full collection, the bound of a pause', 'ms')
  end,
}
