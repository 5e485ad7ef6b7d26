-- timeout: 300
-- The examples of scripts/topologies on more data than the short specs give them.
local process = require 'support.process'
local topologies = require 'support.topologies'

local run, sorted = topologies.run, topologies.sorted

describe('the examples', function()
  it('wordcount prints the most frequent words of a file', function()
    local lines = run('wordcount', { '--set', 'input=LICENSE', '--set', 'top=25' })
    assert.same(topologies.ranking_of(process.read_file('LICENSE'), 25), lines)
  end)

  it('join joins many orders', function()
    local lines = run('join', { '--set', 'orders=5000', '--executors', '2' })
    assert.same(topologies.joined(5000), sorted(lines))
  end)

  it('diamond acks every number, with acks tracked both ways', function()
    local expected, failures = topologies.diamond(500)
    for _, options in ipairs({ {}, { '--set', 'ackers=2', '--executors', '2' } }) do
      local lines, summary = run('diamond', options)
      assert.same(expected, sorted(lines))
      assert.same({ emitted = 500 + failures, executed = 0, acked = 500, failed = failures },
        summary.components.numbers)
      assert.equal(45, summary.components.square.errors)
    end
  end)

  it('have loops that the JIT compiles', function()
    process.with_folder(function(folder)
      local log = process.read_file('scripts/topologies/data/access.log')
      process.write_file(folder .. '/log', log:rep(100))
      process.write_file(folder .. '/text', process.read_file('LICENSE'):rep(20))
      for name, option in pairs({ exclamation = 'words=50000', join = 'orders=2000',
        access_log = 'input=' .. folder .. '/log', wordcount = 'input=' .. folder .. '/text' }) do
        local _, summary = run(name, { '--set', option })
        assert.same({}, summary.advice or {}, name)
      end
    end)
  end)

  it('pass the check without a warning', function()
    local pipe = assert(io.popen('ls scripts/topologies/*.lua'))
    local count = 0
    for path in pipe:lines() do
      local r = process.run({ 'check', path })
      assert.equal(0, r.code, r.stderr)
      assert.truthy(r.stderr:find("^topology '[%w_]+': ok\n$"), r.stderr)
      count = count + 1
    end
    pipe:close()
    assert.is_true(count >= 6)
  end)
end)
