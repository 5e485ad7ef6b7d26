-- Check 5 of the issue: what is never acked fails once. That it does so between one time-out and one and a
-- quarter is what tests/unit/stream/test_executor.c sees in virtual time.
local topologies = require 'support.topologies'

local TEXT = [[
local streamlua = require 'streamlua'

local numbers = streamlua.spout {
  fields = { 'n' },
  open = function(self) self.n = 0 end,
  next_tuple = function(self, collector)
    if self.n == 200 then return streamlua.DONE end
    self.n = self.n + 1
    collector:emit({ self.n }, { id = self.n })
  end,
  ack = function(_, id) print('acked', id) end,
  fail = function(_, id) print('failed', id) end,
}

local t = streamlua.topology('timeout', { message_timeout = '1s' })
t:spout('numbers', numbers)
t:bolt('keep', streamlua.bolt {
  manual_ack = true,
  prepare = function(self) self.kept = {} end,
  execute = function(self, tuple) self.kept[#self.kept + 1] = tuple end,
}):shuffle('numbers')
return t
]]

describe('a bolt that never acks', function()
  for _, options in ipairs({ {}, { '--set', 'ackers=2' }, { '--executors', '1' } }) do
    it('fails every id once, with ' .. (table.concat(options, ' ')), function()
      local lines, summary = topologies.run_text(TEXT, options)
      local seen = {}
      for _, line in ipairs(lines) do
        local id = line:match('^failed\t(%d+)$')
        assert.truthy(id, line)
        assert.is_nil(seen[id], line)
        seen[id] = true
      end
      assert.equal(200, #lines)
      assert.same({ emitted = 200, executed = 0, acked = 0, failed = 200 },
        summary.components.numbers)
    end)
  end
end)
