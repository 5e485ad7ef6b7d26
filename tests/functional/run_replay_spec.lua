-- labels: short
-- Check 3 of the issue: what fails is emitted again, by the spout or by the engine.
local topologies = require 'support.topologies'

-- 700 numbers; the bolt fails every 7th once and counts what it has not failed.
local TEXT = [[
local streamlua = require 'streamlua'

local t = streamlua.topology('replay', { how = 'fail' })

local numbers = {
  fields = { 'n' },
  open = function(self) self.n, self.acked, self.again = 0, {}, {} end,
  next_tuple = function(self, collector)
    local n = table.remove(self.again)
    if not n then
      if self.n == 700 then return streamlua.DONE end
      n = self.n + 1
      self.n = n
    end
    collector:emit({ n }, { id = n })
  end,
  ack = function(self, id) self.acked[id] = (self.acked[id] or 0) + 1 end,
  fail = function(self, id) self.again[#self.again + 1] = id end,
  close = function(self)
    local once = 0
    for n = 1, 700 do if self.acked[n] == 1 then once = once + 1 end end
    print('acked once', once)
  end,
}
if t.config.how ~= 'fail' then
  numbers.fail = nil
  numbers.replay = true
end

local count = streamlua.bolt {
  prepare = function(self) self.failed, self.sum, self.count = {}, 0, 0 end,
  execute = function(self, tuple)
    local n = tuple.n
    if n % 7 == 0 and not self.failed[n] then
      self.failed[n] = true
      error('not yet')
    end
    self.sum, self.count = self.sum + n, self.count + 1
  end,
  finish = function(self) print('counted', self.count, self.sum) end,
}

t:spout('numbers', streamlua.spout(numbers))
t:bolt('count', count, { parallelism = 1 }):shuffle('numbers')
return t
]]

describe('a bolt that fails every 7th tuple once', function()
  for _, options in ipairs({ {}, { '--executors', '1' }, { '--set', 'ackers=2' },
    { '--set', 'max_spout_pending=3' } }) do
    for _, how in ipairs({ 'fail', 'replay' }) do
      it(('gets them again by %s, with %s'):format(how, #options == 0 and 'defaults'
        or table.concat(options, ' ')), function()
        local args = { '--set', 'how=' .. how }
        for _, option in ipairs(options) do args[#args + 1] = option end
        local lines, summary = topologies.run_text(TEXT, args)
        assert.same({ 'acked once\t700', 'counted\t700\t245350' }, topologies.sorted(lines))
        assert.equal(700, summary.components.numbers.acked)
        assert.equal(100, summary.components.numbers.failed)
        assert.equal(800, summary.components.count.executed)
        assert.equal(100, summary.components.count.errors)
        assert.equal(how == 'fail' and 800 or 700, summary.components.numbers.emitted)
      end)
    end
  end
end)
