-- labels: short
-- timeout: 300
-- How `streamlua run` ends, what it says, and with which exit code.
local files = require 'support.files'
local json = require 'streamlua.json'
local process = require 'support.process'

local HEAD = "local streamlua = require 'streamlua'\nlocal t = streamlua.topology('topo')\n"

-- A script with a spout of `count` numbers (ids are the numbers) and a bolt of the given text.
local function script(bolt, count, spout)
  return files.write('topo.lua', HEAD .. ([[
t:spout('numbers', streamlua.spout {
  fields = { 'n' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > %s then return streamlua.DONE end
    collector:emit({ self.n }, { id = self.n })
  end,
  %s
})
t:bolt('work', streamlua.bolt { %s }):shuffle('numbers')
return t
]]):format(count or 10, spout or '', bolt))
end

local function run(path, ...) return process.run({ 'run', path, ... }) end

local LOOP = 'local i = 0 while true do i = i + 1 end'
local SAY = "io.stdout:write('there\\n') io.stdout:flush()"

describe('run', function()
  after_each(files.clean)

  it('ends with 0 when the spouts are done and drained', function()
    local r = run(script("execute = function(_, tuple) print(tuple.n) end"))
    assert.equal(0, r.code)
    assert.equal('1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n', r.stdout)
  end)

  it('calls the functions of a component in their order', function()
    local function say(name) return ("%s = function() print('%s') end,"):format(name, name) end
    local r = run(script(say('prepare') .. say('execute') .. say('finish') .. say('cleanup'), 2,
      say('open') .. say('activate') .. say('deactivate') .. say('close') .. say('ack')),
      '--executors', '1')
    assert.equal(0, r.code, r.stderr)
    local at = {}
    local n = 0
    for name in r.stdout:gmatch('%a+') do
      n = n + 1
      at[name] = n
    end
    assert.is_true(at.open < at.activate and at.activate < at.execute, r.stdout)
    assert.is_true(at.prepare < at.execute and at.execute < at.finish, r.stdout)
    assert.is_true(at.ack < at.close and at.finish < at.cleanup, r.stdout)
    assert.is_nil(at.deactivate)
    assert.equal(2 + 2 + 6, n)
  end)

  it('ends with 1 when open or prepare raised, and says where', function()
    for name, text in pairs({
      open = script('execute = function() end', 1, "open = function() error('no source') end,"),
      prepare = nil,
    }) do
      local r = run(text)
      assert.equal(1, r.code)
      assert.equal(("error: numbers[0]: %s:10: no source\n"):format(text), r.stderr, name)
    end
    local path = script("prepare = function() error('no sink') end, execute = function() end")
    local r = run(path)
    assert.equal(1, r.code)
    assert.equal(('error: work[0]: %s:12: no sink\n'):format(path), r.stderr)
    r = run(path, '-v')
    assert.truthy(r.stderr:find('no sink\nstack traceback:\n', 1, true))
    local document = json.decode(run(path, '-o', 'json').stderr)
    assert.same({ code = 'failed', file = path, line = 12,
      message = ('work[0]: %s:12: no sink'):format(path) }, document.error)
  end)

  it('ends with 0 after errors in execute, each told once with its place', function()
    local path = script("execute = function(_, tuple) if tuple.n % 2 == 0 then error('odd ones only') "
      .. 'end end', 2000)
    local r = run(path)
    assert.equal(0, r.code)
    local _, count = r.stderr:gsub(path:gsub('%p', '%%%0') .. ':12: odd ones only', '')
    assert.equal(1, count)
    local _, lines = r.stderr:gsub('\n', '')
    assert.is_true(lines < 12, r.stderr)
    assert.falsy(r.stderr:find('traceback', 1, true))
    assert.truthy(r.stderr:find('work%s+0%s+2000%s+1000\n'), r.stderr)
    assert.truthy(r.stderr:find('numbers%s+2000%s+0%s+1000%s+1000%s*\n'), r.stderr)
    assert.truthy(run(path, '-v').stderr:find('stack traceback:\n', 1, true))
  end)

  it('shows at most ten different errors of a task', function()
    local r = run(script("execute = function(_, tuple) error('number ' .. tuple.n) end", 1000))
    assert.equal(0, r.code)
    local _, count = r.stderr:gsub('\nerror: work%[0%]: [^\n]*number', '')
    assert.equal(9, count)
    assert.truthy(r.stderr:find('error: work[0]: further errors are counted only\n', 1, true))
  end)

  it('knows scripts that are not there, do not compile, raise or return something else', function()
    local r = run(files.folder() .. '/none.lua')
    assert.equal(3, r.code)
    assert.truthy(r.stderr:find('^error: [^\n]*none.lua'))
    for text, message in pairs({
      ['local t ='] = ':1: unexpected symbol near',
      ["\nerror('at load')"] = ':2: at load',
      ['local x = 1'] = 'it returned nothing',
      ['return 5'] = 'it returned a number',
      [HEAD .. 'return t'] = 'no spout',
    }) do
      local path = files.write('bad.lua', text)
      r = run(path)
      assert.equal(7, r.code, text)
      assert.truthy(r.stderr:find(message, 1, true), r.stderr)
      assert.truthy(r.stderr:find(path, 1, true), r.stderr)
    end
  end)

  it('refuses options that do not parse', function()
    local path = script('execute = function() end')
    for _, options in ipairs({ { '--ttl', 'soon' }, { '--ttl', '-1' }, { '--executors', '0' },
      { '--executors', '1.5' }, { '--executors', 'two' }, { '--nope' }, { 'two' } }) do
      local r = run(path, unpack(options))
      assert.equal(2, r.code, table.concat(options, ' ') .. ': ' .. r.stderr)
      assert.equal('', r.stdout)
    end
    assert.equal(2, process.run({ 'run' }).code)
  end)

  it('tells first of keys that look misspelt, but not with -q or in JSON', function()
    local path = script("execute = function() end, ack = 'manual'")
    local told = ("%s:12: warning: 'work': bolt key 'ack' is your own; did you mean 'manual_ack'? [misspelt]\n")
      :format(path)
    assert.equal(told, run(path).stderr:sub(1, #told))
    assert.equal('', run(path, '-q').stderr)
    assert.equal('', run(path, '-o', 'json').stderr)
  end)

  it('ends with 0 at its time to live, also at once', function()
    local path = script('execute = function() end', 'math.huge')
    local r = run(path, '--ttl', '300ms')
    assert.equal(0, r.code, r.stderr)
    -- The summary counts until the last task has stopped, which a busy machine may delay.
    assert.is_true(tonumber(r.stderr:match('topology topo: ([%d.]+) s')) >= 0.3, r.stderr)
    r = run(path, '--ttl', '0')
    assert.equal(0, r.code, r.stderr)
  end)

  it('drains when it is interrupted or terminated, and says so by its exit code', function()
    for name, code in pairs({ INT = 130, TERM = 143 }) do
      local path = script(("execute = function(self, tuple) if tuple.n == 100 then %s end end, "
        .. "finish = function() print('finished') end"):format(SAY), 'math.huge')
      local summary = files.folder() .. '/s.json'
      local p = process.start({ 'run', path, '--summary', summary })
      p:expect('stdout', 'there')
      p:signal(name)
      local r = p:wait()
      assert.equal(code, r.code, r.stderr)
      assert.equal('there\nfinished\n', r.stdout)
      local numbers = json.decode(process.read_file(summary)).components.numbers
      assert.equal(numbers.emitted, numbers.acked)
      assert.is_true(numbers.acked >= 100)
      assert.equal(0, numbers.failed)
    end
  end)

  it('ends at once when it is interrupted twice', function()
    local path = script(('manual_ack = true, execute = function(_, tuple) if tuple.n == 5 then %s end '
      .. 'end'):format(SAY), 5)
    local p = process.start({ 'run', path })
    p:expect('stdout', 'there')
    p:signal('INT')
    p:expect('stderr', 'draining; interrupt again to end at once\n')
    p:signal('INT')
    local r = p:wait()
    assert.equal(130, r.code)
    assert.truthy(r.stderr:find('error: run: ended with 5 tuples in flight\n', 1, true), r.stderr)
  end)

  it('names the task that does not come back from user code at the second Ctrl-C', function()
    local path = script(('execute = function(_, tuple) if tuple.n == 5 then %s %s end end')
      :format(SAY, LOOP))
    local p = process.start({ 'run', path })
    p:expect('stdout', 'there')
    p:signal('INT')
    p:expect('stderr', 'draining; interrupt again to end at once\n')
    p:signal('INT')
    local r = p:wait()
    assert.equal(130, r.code)
    assert.truthy(r.stderr:find('error: run: still in user code: work%[0%] for [%d.]+ s\n'), r.stderr)
  end)

  it('writes the summary document', function()
    local path = script("execute = function() end", 50)
    local summary = files.folder() .. '/s.json'
    local r = run(path, '--summary', summary)
    assert.equal(0, r.code)
    local document = json.decode(process.read_file(summary))
    assert.is_true(document.seconds > 0)
    assert.is_true(document.complete_latency_ms.p50 > 0)
    document.seconds, document.complete_latency_ms = nil, nil
    assert.same({ topology = 'topo', components = {
      numbers = { emitted = 50, acked = 50, failed = 0, executed = 0 },
      work = { emitted = 0, executed = 50 },
    } }, document)
    r = run(path, '--summary', summary, '--set', 'acking=false')
    assert.equal(0, r.code)
    document = json.decode(process.read_file(summary))
    assert.is_nil(document.complete_latency_ms)
    assert.equal(50, document.components.numbers.acked)
    r = run(path, '--summary', files.folder() .. '/no/where.json')
    assert.equal(1, r.code)
    assert.truthy(r.stderr:find('no/where.json', 1, true), r.stderr)
    r = run(path, '--summary', '/dev/full')
    assert.equal(1, r.code)
    assert.truthy(r.stderr:find("summary '/dev/full': No space left on device", 1, true), r.stderr)
  end)

  it('prints the document on standard output with -o json, and nothing else', function()
    local r = run(script('execute = function() end', 5), '-o', 'json')
    assert.equal(0, r.code)
    assert.equal('', r.stderr)
    assert.equal(5, json.decode(r.stdout).components.work.executed)
  end)

  it('keeps the document of -o json apart from what components print', function()
    local r = run(script("execute = function(_, tuple) print(tuple.n) end", 3), '-o', 'json')
    assert.equal(0, r.code)
    assert.equal(3, json.decode(r.stdout).components.work.executed)
    assert.equal('1\n2\n3\n', r.stderr)
  end)

  it('ends with 7 when the script is still loading after --timeout', function()
    local path = files.write('topo.lua', LOOP)
    local r = run(path, '--timeout', '200ms')
    assert.equal(7, r.code)
    assert.equal(("error: script '%s': still loading after 200ms\n"):format(path)
      .. 'hint: is there a loop that never ends? --timeout allows more\n', r.stderr)
    r = run(path, '--timeout', '200ms', '-o', 'json')
    assert.equal(7, r.code)
    assert.equal('invalid', json.decode(r.stderr).error.code)
    r = run(script('execute = function() end', 3), '--timeout', '60s', '-q')
    assert.same({ 0, '' }, { r.code, r.stderr })
  end)

  it('shows the summary on standard error, with -q only errors', function()
    local path = script("execute = function(_, tuple) if tuple.n == 3 then error('three') end end", 5)
    local r = run(path)
    assert.truthy(r.stderr:find('COMPONENT +EMITTED +EXECUTED +ACKED +FAILED +ERRORS\n'), r.stderr)
    assert.truthy(r.stderr:find('topology topo: %d+%.%d+ s, complete latency p50 '), r.stderr)
    r = run(path, '-q')
    assert.equal(('error: work[0]: %s:12: three\n'):format(path), r.stderr)
  end)

  it('says which function the JIT can not compile, at which line', function()
    local path = files.write('topo.lua', HEAD .. [[
t:spout('lines', streamlua.spout {
  fields = { 'line' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > 3000 then return streamlua.DONE end
    collector:emit({ 'to be or not to be' })
  end,
})
t:bolt('split', streamlua.bolt {
  execute = function(self, tuple)
    for word in tuple.line:gmatch('%S+') do self.last = word end
  end,
}):shuffle('lines')
return t
]])
    local advice = ('advice: string.gmatch at %s:13 is not compiled'):format(path)
    local r = run(path)
    assert.equal(0, r.code)
    assert.truthy(r.stderr:find(advice, 1, true), r.stderr)
    r = run(path, '-v')
    assert.truthy(r.stderr:find(advice, 1, true), r.stderr)
    assert.truthy(r.stderr:find('  hint: streamlua.split', 1, true), r.stderr)
    local document = json.decode(run(path, '-o', 'json').stdout)
    assert.equal('string.gmatch', document.advice[1].what)
    assert.equal(path .. ':13', document.advice[1].place)
  end)

  it('reads standard input, so that it can follow a log', function()
    local path = files.write('topo.lua', HEAD .. [[
t:spout('lines', streamlua.io.lines { path = '-' })
t:bolt('show', streamlua.bolt {
  execute = function(_, tuple) io.stdout:write('<', tuple.line, '>\n') io.stdout:flush() end,
}):shuffle('lines')
return t
]])
    local p = process.start({ 'run', path }, { keep_stdin = true })
    p:write('one\nt')
    p:expect('stdout', '<one>\n')
    p:write('wo\n')
    p:expect('stdout', '<two>\n')
    p:write('last, without an end')
    p:close_stdin()
    local r = p:wait()
    assert.equal(0, r.code, r.stderr)
    assert.equal('<one>\n<two>\n<last, without an end>\n', r.stdout)
  end)

  it('follows the end of a file that grows', function()
    local log = files.write('log', 'one\n')
    local path = files.write('topo.lua', HEAD .. ([[
t:spout('lines', streamlua.io.lines { path = '%s', follow = true })
t:bolt('show', streamlua.bolt {
  execute = function(_, tuple) io.stdout:write('<', tuple.line, '>\n') io.stdout:flush() end,
}):shuffle('lines')
return t
]]):format(log))
    local p = process.start({ 'run', path })
    p:expect('stdout', '<one>\n')
    local file = io.open(log, 'a')
    file:write('two\n')
    file:close()
    p:expect('stdout', '<two>\n')
    p:signal('INT')
    assert.equal(130, p:wait().code)
  end)

  it('runs one worker whatever the config says of containers', function()
    local path = script("execute = function(_, tuple) end", 5)
    assert.equal(0, run(path, '--set', 'containers=7', '--set', 'executors=2').code)
  end)
end)
