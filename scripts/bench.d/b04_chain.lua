-- B4: constant spout, two tasks that pass on, two that do nothing: what a grouping costs. Tuples of the
-- spout a second, on one executor; with `all` each becomes six.

local engine = require 'engine'

local SIZES = { ['local'] = 1e7, shuffle = 1e7, fields = 1e7, all = 2e6 }

return {
  id = 'B4',
  name = 'const to id to null, one executor',
  run = function(bench)
    local limit = engine.limit(bench, 'batch_loop')
    for _, via in ipairs({ 'local', 'shuffle', 'fields', 'all' }) do
      local n = SIZES[via] * (bench.quick and 0.25 or 2)
      local warm = n / 10
      local rounds = engine.rounds(bench, function()
        local out = engine.run('const', { n = n, warm = warm, via = via }, 1)
        return (n - warm) / engine.seconds(out)
      end)
      engine.report_rounds(bench, rounds, { variant = via, unit = 'tuples/s', limit = limit })
    end
  end,
}
