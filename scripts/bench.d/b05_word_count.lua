-- B5: word count, beside loops written by hand that split and count the same text without any engine:
-- `hand` with string.find and string.sub, `hand-split` with streamlua.split, `hand-split-2` two of those
-- at once that share nothing. The limit of a figure is the loop that splits as it does, on as many cores,
-- so `ratio` is the share that the engine leaves, and the variant `overhead` the nanoseconds of processor
-- time that it adds to a word.

local engine = require 'engine'
package.path = package.path:gsub('^([^;]*)/%?%.lua', '%1/?.lua;%1/topologies/?.lua')
local sentences = require 'sentences'

local TARGET = 15e6

local VARIANTS = {
  { variant = 'engine', executors = 1, target = TARGET },
  { variant = 'engine-2', executors = 2, settings = { splits = 2, counters = 2 } },
  { variant = 'engine-ack', executors = 1, settings = { ack = true } },
  { variant = 'engine-table', executors = 1, settings = { counts = 'table' } },
  { variant = 'engine-find', executors = 1, settings = { words = 'find' } },
}

local function check(out, words)
  local sum = 0
  for _, count in ipairs(out.all.counted) do sum = sum + count end
  if sum ~= words then
    error(('word count: %d words were counted, %d were sent'):format(sum, words), 0)
  end
end

return {
  id = 'B5',
  name = 'word count',
  run = function(bench)
    local n = bench.quick and 2e5 or 2e6
    local warm = n / 4
    local words, timed = n * sentences.words, (n - warm) * sentences.words

    local function measure(run, copies)
      local cpu = math.huge
      local rounds = engine.rounds(bench, function()
        local out = run()
        check(out, words * copies)
        cpu = math.min(cpu, out.cpu / (words * copies))
        return timed * copies / engine.seconds(out)
      end)
      return rounds, cpu * 1e9
    end

    local function by_hand(variant, way, copies)
      local exec = copies == 2 and engine.exec_twice or engine.exec
      local rounds, cpu = measure(function() return exec('word_count_hand', n, warm, way) end, copies)
      engine.report_rounds(bench, rounds, { variant = variant, unit = 'words/s', cpu_ns = cpu })
      return { best = rounds.best, cpu = cpu }
    end
    local hand = { find = by_hand('hand', 'find', 1), split = by_hand('hand-split', 'split', 1) }
    local hand_twice = by_hand('hand-split-2', 'split', 2)
    local best, best_cpu
    for _, variant in ipairs(VARIANTS) do
      local settings = { n = n, warm = warm }
      for key, value in pairs(variant.settings or {}) do settings[key] = value end
      local rounds, cpu = measure(function()
        return engine.run('word_count', settings, variant.executors)
      end, 1)
      local limit, target = hand[settings.words or 'split'], variant.target
      if variant.executors == 2 then limit, target = hand_twice, best end
      engine.report_rounds(bench, rounds, { variant = variant.variant, unit = 'words/s',
        limit = limit.best, target = target, cpu_ns = cpu })
      if variant.variant == 'engine' then best, best_cpu = rounds.best, cpu end
    end
    bench:report { variant = 'overhead', name = 'word count, engine over hand',
      value = best_cpu - hand.split.cpu, unit = 'ns/word', limit = hand.split.cpu }
  end,
}
