-- labels: short
-- timeout: 300
-- The examples of scripts/topologies give exactly what can be worked out by hand or by other tools.
local process = require 'support.process'
local topologies = require 'support.topologies'

local run, sorted = topologies.run, topologies.sorted

describe('wordcount', function()
  it('counts an empty file, a file of one word and a small one', function()
    process.with_folder(function(folder)
      local path = folder .. '/text'
      process.write_file(path, '')
      local lines, summary = run('wordcount', { '--set', 'input=' .. path })
      assert.same({}, lines)
      assert.equal(0, summary.components.lines.emitted)
      process.write_file(path, 'once')
      lines, summary = run('wordcount', { '--set', 'input=' .. path })
      assert.same({ '      1 once' }, lines)
      assert.equal(1, summary.components.lines.acked)
      local text = 'to be or\n\nnot\tto be  \n'
      process.write_file(path, text)
      lines, summary = run('wordcount', { '--set', 'input=' .. path, '--set', 'top=3' })
      assert.same(topologies.ranking_of(text, 3), lines)
      assert.same({ emitted = 3, executed = 0, acked = 3, failed = 0 }, summary.components.lines)
      assert.same({ emitted = 6, executed = 6 }, summary.components.count)
    end)
  end)
end)

describe('exclamation', function()
  it('adds its marks to every word', function()
    for _, options in ipairs({ {}, { '--executors', '3' }, { '--set', 'ackers=1' } }) do
      local lines, summary = run('exclamation', options)
      assert.same({
        'bertels!!!!!!', 'bertels!!!!!!', 'golda!!!!!!', 'golda!!!!!!', 'jackson!!!!!!',
        'jackson!!!!!!', 'mike!!!!!!', 'mike!!!!!!', 'nathan!!!!!!', 'nathan!!!!!!',
      }, sorted(lines))
      assert.same({ emitted = 10, executed = 0, acked = 10, failed = 0 }, summary.components.words)
      assert.same({ emitted = 10, executed = 10 }, summary.components.exclaim1)
      assert.same({ emitted = 10, executed = 10 }, summary.components.exclaim2)
    end
  end)
end)

describe('access_log', function()
  -- Worked out from data/access.log by awk and by hand.
  it('ranks the paths and finds the sessions of each client', function()
    for _, options in ipairs({ {}, { '--executors', '2' } }) do
      assert.same({
        'requests  path',
        '      35  /',
        '      23  /search',
        '      19  /docs/',
        '      17  /download',
        '      16  /news',
        'sessions  requests  seconds  client',
        '       6        35     6475  192.0.2.1',
        '       5        43     8324  192.0.2.17',
        '       5        41     6378  192.0.2.40',
        '       6        13      570  198.51.100.3',
        '       4         6      553  198.51.100.77',
        '       4        11     3769  2001:db8::5',
        '       7         9      666  203.0.113.9',
        'lines that are no requests: 2',
      }, (run('access_log', options)))
    end
  end)

  it('reads any log, sees time zones, leap days and its options', function()
    process.with_folder(function(folder)
      local path = folder .. '/log'
      process.write_file(path, table.concat({
        'a - - [28/Feb/2024:23:59:50 +0000] "GET /x HTTP/1.1" 200 1',
        'a - - [29/Feb/2024:00:00:20 +0000] "GET /x?q=1 HTTP/1.1" 200 1',
        'a - - [29/Feb/2024:02:01:20 +0200] "GET /y HTTP/1.1" 200 1',
        'a - - [29/Feb/2024:23:59:50 -0030] "POST /z HTTP/1.1" 200 1',
        'a - - [01/Mar/2024:00:30:00 +0000] "GET /z HTTP/1.1" 200 1',
        'nonsense',
      }, '\n'))
      assert.same({
        'requests  path',
        '       2  /x',
        'sessions  requests  seconds  client',
        '       2         5      100  a',
        'lines that are no requests: 1',
      }, (run('access_log', { '--set', 'input=' .. path, '--set', 'top=1', '--set', 'gap=1m' })))
    end)
  end)
end)

describe('join', function()
  it('joins what belongs together and tells what has no partner', function()
    assert.same(topologies.joined(20), sorted((run('join'))))
    assert.same(topologies.joined(20), sorted((run('join', { '--executors', '3' }))))
  end)
end)

describe('rate_limit', function()
  it('lets each event pass once and no more than the rate per tick and client', function()
    local lines, summary = run('rate_limit', { '--set', 'every=20ms', '--executors', '2' })
    local seen, per_tick = {}, {}
    for _, line in ipairs(lines) do
      local tick, client, event = line:match('^(%d+)\t(%a+)\t(%d+)$')
      assert.is_nil(seen[event], line)
      seen[event] = client
      per_tick[tick .. client] = (per_tick[tick .. client] or 0) + 1
      assert.is_true(per_tick[tick .. client] <= 5, line)
    end
    local names = { 'ada', 'bob', 'cleo' }
    for n = 1, 60 do assert.equal(names[n % 3 + 1], seen[tostring(n)]) end
    assert.equal(60, #lines)
    assert.same({ emitted = 75, executed = 0, acked = 75, failed = 0 }, summary.components.events)
    assert.same({ emitted = 60, executed = 75 }, summary.components.unique)
    assert.same({ emitted = 60, executed = 60 }, summary.components.limit)
    -- 20 events of each client, 5 a tick: the last ones leave in the fourth tick or later.
    assert.is_true(summary.seconds >= 0.08)
  end)
end)

describe('diamond', function()
  it('emits what failed again until every number is acked', function()
    local expected, failures = topologies.diamond(100)
    local lines, summary = run('diamond', { '--set', 'numbers=100' })
    assert.same(expected, sorted(lines))
    assert.same({ emitted = 100 + failures, executed = 0, acked = 100, failed = failures },
      summary.components.numbers)
  end)
end)
