-- labels: short
-- timeout: 300
-- Check 2 of the issue: the word count of a licence, however many threads and ackers.
local topologies = require 'support.topologies'

local GPL = '/usr/share/common-licenses/GPL-3'

describe('the word count of GPL-3', function()
  local file = io.open(GPL)
  if not file then return pending(GPL .. ' is not there') end
  local text = file:read('*a')
  file:close()

  for _, options in ipairs({
    {}, { '--executors', '1' }, { '--executors', '2' }, { '--executors', '4' },
    { '--set', 'ackers=2' }, { '--set', 'ackers=2', '--executors', '4' },
    { '--set', 'acking=false' },
  }) do
    it('counts every line and word, with ' .. (#options == 0 and 'defaults'
      or table.concat(options, ' ')), function()
      local args = { '--set', 'input=' .. GPL }
      for _, option in ipairs(options) do args[#args + 1] = option end
      local lines, summary = topologies.run('wordcount', args)
      assert.same(topologies.ranking_of(text, 10), lines)
      local components = summary.components
      assert.same({ emitted = 674, executed = 0, acked = 674, failed = 0 }, components.lines)
      assert.same({ emitted = 5644, executed = 674 }, components.split)
      assert.same({ emitted = 5644, executed = 5644 }, components.count)
      assert.same({ emitted = 0, executed = 5644 }, components.top)
      assert.equal('wordcount', summary.topology)
      assert.is_true(summary.seconds > 0)
      local has_latency = options[2] ~= 'acking=false'
      assert.equal(has_latency, summary.complete_latency_ms ~= nil)
      if has_latency then
        assert.is_true(summary.complete_latency_ms.p50 <= summary.complete_latency_ms.p99)
      end
    end)
  end
end)
