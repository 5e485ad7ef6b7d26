-- B11: keyed state of a task, on 10^4 and 10^7 keys. The limit is an add in a bare hash table in C.

local engine = require 'engine'

local function report(bench, variant, rounds, limit, target)
  engine.report_rounds(bench, rounds, { variant = variant, unit = 'op/s', limit = limit,
    target = target })
end

-- Runs the topology in several rounds; the rates of each operation by name.
local function measure(bench, settings, names)
  local out = {}
  for _, name in ipairs(names) do out[name] = { best = 0, least = math.huge, rounds = 0 } end
  local most = settings.keys > 1e6 and 1 or engine.round_count(bench)
  local entry_bytes
  for _ = 1, most do
    local result = engine.run('state', settings, 1)
    entry_bytes = result.entry_bytes
    for _, name in ipairs(names) do
      local found = out[name]
      -- The best pass of a process: the first one compiles.
      local rate = math.max(unpack(result.all[name]))
      found.best, found.least = math.max(found.best, rate), math.min(found.least, rate)
      found.rounds = found.rounds + 1
    end
  end
  return out, entry_bytes
end

return {
  id = 'B11',
  name = 'keyed state',
  run = function(bench)
    local times = bench.quick and 1e6 or 1e7
    local small = engine.limit(bench, 'probe_1e4')
    local names = { 'put', 'get', 'add' }
    local rates = measure(bench, { keys = 1e4, times = times }, names)
    for _, name in ipairs(names) do
      report(bench, name .. '-1e4', rates[name], small, name == 'add' and 20e6 or nil)
    end
    rates = measure(bench, { keys = 1e4, times = times, kind = 'string' }, { 'add_text' })
    report(bench, 'add-string-1e4', rates.add_text, small)
    local large = engine.limit(bench, 'probe_1e7')
    names = { 'put_new', 'put', 'get', 'add' }
    local bytes
    rates, bytes = measure(bench, { keys = 1e7, times = times / 2 }, names)
    for _, name in ipairs(names) do report(bench, name .. '-1e7', rates[name], large) end
    bench:report { variant = 'entry-1e7', name = 'memory of an entry with its key', value = bytes,
      unit = 'B', limit = 16, target = 72, better = 'less' }
  end,
}
