-- timeout: 300
-- Check 4 of the issue: 200,000 lines through two executors, grouped by word.
local process = require 'support.process'
local topologies = require 'support.topologies'

-- Every counting task prints its words at the end, with its index in front.
local TEXT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('totals')
t:spout('lines', streamlua.io.lines { path = t.config.input }, { parallelism = 1 })
t:bolt('split', streamlua.bolt {
  fields = { 'word' },
  execute = function(_, tuple, collector)
    for word in streamlua.split(tuple.line) do collector:emit({ word }) end
  end,
}, { parallelism = 2 }):shuffle('lines')
t:bolt('count', streamlua.bolt {
  prepare = function(self, context)
    self.counts, self.index = context:state('counts'), context.index
  end,
  execute = function(self, tuple) self.counts:add(tuple.word, 1) end,
  finish = function(self)
    local lines = {}
    for word, n in self.counts:each() do
      lines[#lines + 1] = ('%d %d %s\n'):format(self.index, n, word)
    end
    io.write(table.concat(lines))
  end,
}, { parallelism = 4 }):fields('split', { 'word' })
return t
]]

-- Lines of 1 to 6 words out of about 5,000, some words far more frequent than others.
local function make_text(path)
  local file = assert(io.open(path, 'w'))
  local state = 42
  local function below(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % n
  end
  local words = 0
  for _ = 1, 200000 do
    local line = {}
    for i = 1, 1 + below(6) do line[i] = 'w' .. below(1 + below(5000)) end
    words = words + #line
    file:write(table.concat(line, ' '), '\n')
  end
  file:close()
  return words
end

describe('a large file', function()
  it('is counted by word as sort and uniq count it, each word by one task', function()
    process.with_folder(function(folder)
      local input = folder .. '/text'
      local words = make_text(input)
      local r = process.run({ '-c', ("tr -s ' ' '\\n' < '%s' | LC_ALL=C sort | uniq -c"):format(input) },
        { program = 'sh' })
      local expected, distinct = {}, 0
      for n, word in r.stdout:gmatch('(%d+) (%S+)\n') do
        expected[word] = tonumber(n)
        distinct = distinct + 1
      end
      local lines, summary = topologies.run_text(TEXT, { '--executors', '2', '--set',
        'input=' .. input })
      local counted, tasks = {}, {}
      for _, line in ipairs(lines) do
        local index, n, word = line:match('^(%d) (%d+) (%S+)$')
        assert.is_nil(counted[word], word)
        counted[word] = tonumber(n)
        tasks[index] = (tasks[index] or 0) + 1
      end
      assert.equal(distinct, #lines)
      assert.same(expected, counted)
      -- Every task has its share of the words.
      for index = 0, 3 do assert.is_true(tasks[tostring(index)] > distinct / 8) end
      assert.equal(200000, summary.components.lines.acked)
      assert.equal(words, summary.components.count.executed)
    end)
  end)
end)
