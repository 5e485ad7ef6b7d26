-- labels: serial
-- Check 5 of the issue: what is never acked fails once, between one and one and a half time-outs.
local topologies = require 'support.topologies'

local TEXT = [[
local streamlua = require 'streamlua'

local numbers = streamlua.spout {
  fields = { 'n' },
  open = function(self, context)
    self.n, self.emitted, self.failures, self.context = 0, {}, {}, context
  end,
  next_tuple = function(self, collector)
    if self.n == 200 then return streamlua.DONE end
    self.n = self.n + 1
    self.emitted[self.n] = self.context:now()
    collector:emit({ self.n }, { id = self.n })
  end,
  ack = function(_, id) print('acked', id) end,
  fail = function(self, id) print(id, self.context:now() - self.emitted[id]) end,
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
    it('fails every id once within its time, with ' .. (table.concat(options, ' ')), function()
      local lines, summary = topologies.run_text(TEXT, options)
      local seen = {}
      for _, line in ipairs(lines) do
        local id, ms = line:match('^(%d+)\t(%d+)$')
        assert.truthy(id, line)
        assert.is_nil(seen[id], line)
        seen[id] = true
        ms = tonumber(ms)
        assert.is_true(ms >= 1000 and ms <= 1500, line)
      end
      assert.equal(200, #lines)
      assert.same({ emitted = 200, executed = 0, acked = 0, failed = 200 },
        summary.components.numbers)
    end)
  end
end)
