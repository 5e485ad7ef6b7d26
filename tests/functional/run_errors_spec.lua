-- labels: short
-- timeout: 300
-- What goes wrong in user code while a topology runs: one clear line with its place, and everything
-- else goes on.
local files = require 'support.files'
local json = require 'streamlua.json'
local process = require 'support.process'

-- A spout of the numbers 1 to 5 and two bolts that read it; `work` is the one that goes wrong, `other`
-- must not be harmed. The spout's further functions are on line 10, the code of `work` begins on line 13.
local TEXT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('numbers', streamlua.spout {
  streams = { default = { 'n' }, ctl = { fields = { 'x' }, direct = true }, odd = { 'n', 'm' } },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > 5 then return streamlua.DONE end
    collector:emit({ self.n }, { id = self.n })
  end,
%s })
t:bolt('work', streamlua.bolt {
fields = { 'a', 'b' },
%s
}):shuffle('numbers')
t:bolt('other', streamlua.bolt { execute = function() end }):shuffle('numbers')
t:bolt('tail', streamlua.bolt { execute = function() end }):shuffle('work')
return t
]]

local function run_script(path, ...)
  local summary = files.folder() .. '/s.json'
  local r = process.run({ 'run', path, '--summary', summary, ... })
  return r, r.code == 0 and json.decode(process.read_file(summary)) or nil
end

local function run(work, spout, ...)
  local path = files.write('topo.lua', TEXT:format(spout or '', work))
  local r, summary = run_script(path, ...)
  return r, summary, path
end

-- `execute` of `work` on line 13, given what it does with tuple 3.
local function execute(code)
  return "execute = function(self, tuple, collector) if tuple.n == 3 then "
    .. code .. ' end end'
end

describe('an error in execute', function()
  after_each(files.clean)

  local where = "emit: component 'work', stream 'default': "
  local cases = {
    { "error('boom')", 'boom' },
    { "error('boom', 0)", 'boom' },
    { 'return collector:emit({ print })', "field 'a': function value can not be emitted" },
    { "return error('boom', 0)", 'boom' },
    { 'error({})', 'raised a table without a message' },
    { "error({ message = 'inside' })", 'inside' },
    { 'error()', 'raised nil' },
    { 'local x; x.y = 1', "attempt to index local 'x' (a nil value)" },
    { 'collector:emit({ 1, 2, 3 })', where .. 'more values than fields (a, b)' },
    { 'collector:emit(7)', where .. 'values must be a table, got number' },
    { 'collector:emit()', where .. 'values must be a table, got nil' },
    { 'collector:emit({ 1, print })', where .. "field 'b': function value can not be emitted" },
    { 'collector:emit({ io.stdout })', where .. "field 'a': userdata value can not be emitted" },
    { 'collector:emit({ coroutine.create(print) })', "field 'a': thread value can not be emitted" },
    { 'collector:emit({ { { f = print } } })', "field 'a'" },
    { "collector:emit({ require('ffi').new('int[2]') })", "field 'a'" },
    { 'local v = 1 for _ = 1, 17 do v = { v } end collector:emit({ v })', "field 'a'" },
    { 'local v = {} v.v = v collector:emit({ v })', "field 'a'" },
    { "collector:emit({ 1 }, { stream = 'nope' })", "emit: component 'work' has no stream 'nope'" },
    { 'collector:emit({ 1 }, { stream = 5 })', "emit: component 'work' has no stream '5'" },
    { 'collector:emit({ 1 }, 5)', 'options must be a table, got number' },
    { 'collector:emit({ 1 }, { task = 1 })', 'its default stream is not direct' },
    { 'collector:emit({ 1 }, { anchors = 5 })', 'anchors must be a list of tuples' },
    { 'collector:emit({ 1 }, { anchors = { {} } })', 'an anchor must be a tuple that was executed' },
    { 'collector:ack(tuple)', "ack: component 'work' acks automatically" },
    { 'collector:fail(tuple)', "fail: component 'work' acks automatically" },
    { 'collector:reset_timeout({})', 'not a tuple that was executed' },
  }

  for _, case in ipairs(cases) do
    it('fails one tuple and names the place: ' .. case[1], function()
      local r, summary, path = run(execute(case[1]))
      assert.equal(0, r.code, r.stderr)
      local line = r.stderr:match('error: work%[0%]: ([^\n]*)\n')
      assert.equal(path .. ':13: ', line:sub(1, #path + 5))
      assert.truthy(line:find(case[2], 1, true), line)
      assert.falsy(r.stderr:find('traceback', 1, true))
      local _, count = r.stderr:gsub('%f[%w]error: ', '')
      assert.equal(1, count)
      assert.same({ emitted = 5, executed = 0, acked = 4, failed = 1 }, summary.components.numbers)
      assert.same({ emitted = 0, executed = 5, errors = 1 }, summary.components.work)
      assert.same({ emitted = 0, executed = 5 }, summary.components.other)
    end)
  end

  it('lets 16 levels of tables pass, and values of every kind', function()
    local r, summary = run(execute([[
      local v = 1 for _ = 1, 16 do v = { v } end
      collector:emit({ v, streamlua.null })
      collector:emit({ 2LL, 3ULL }) collector:emit({ 'a\0b', false }) collector:emit({}) ]]))
    assert.equal(0, r.code, r.stderr)
    assert.equal(4, summary.components.tail.executed)
    assert.equal(0, summary.components.numbers.failed)
  end)

  it('keeps what the tuple had emitted before', function()
    local _, summary = run(execute("collector:emit({ 1 }) collector:emit({ 2 }) error('after')"))
    assert.equal(2, summary.components.tail.executed)
    assert.equal(1, summary.components.numbers.failed)
  end)

  it('can be told without failing the tuple', function()
    local r, summary = run(execute("collector:report_error('disk is full')"))
    assert.equal(0, r.code)
    assert.truthy(r.stderr:find('error: work[0]: disk is full\n', 1, true), r.stderr)
    assert.equal(5, summary.components.numbers.acked)
    assert.equal(1, summary.components.work.errors)
  end)
end)

describe('an error elsewhere', function()
  after_each(files.clean)

  -- Each case: what goes into the spout and into the bolt, and the component and line that are told.
  local fine = 'execute = function() end'
  local cases = {
    ack = { "ack = function(self, id) if id == 2 then error('boom') end end", fine, 'numbers', 10 },
    close = { "close = function() error('boom') end", fine, 'numbers', 10 },
    activate = { "activate = function() error('boom') end", fine, 'numbers', 10 },
    finish = { '', fine .. ",\nfinish = function() error('boom') end", 'work', 14 },
    cleanup = { '', fine .. ",\ncleanup = function() error('boom') end", 'work', 14 },
    fail = { "fail = function(self, id) error('boom') end",
      "execute = function(_, tuple) if tuple.n == 3 then error('no') end end", 'numbers', 10 },
  }
  for name, case in pairs(cases) do
    it('in ' .. name .. ' is told with its place and the run goes on', function()
      local r, summary, path = run(case[2], case[1])
      assert.equal(0, r.code, r.stderr)
      local told = ('error: %s[0]: %s:%d: boom\n'):format(case[3], path, case[4])
      assert.truthy(r.stderr:find(told, 1, true), r.stderr)
      assert.equal(5, summary.components.numbers.acked + summary.components.numbers.failed)
      assert.equal(5, summary.components.other.executed)
      assert.is_true(summary.components[case[3]].errors >= 1)
    end)
  end

  it('in tick is told with its place and the ticks go on', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('idle', streamlua.spout { fields = { 'n' }, next_tuple = function() end })
t:bolt('work', streamlua.bolt {
  tick_every = '10ms',
  execute = function() end,
  tick = function(self)
    self.n = (self.n or 0) + 1
    if self.n == 1 then error('boom') end
    if self.n == 3 then io.stdout:write('third\n') io.stdout:flush() end
  end,
}):shuffle('idle')
return t
]])
    local p = process.start({ 'run', path })
    p:expect('stdout', 'third\n')
    p:signal('INT')
    local r = p:wait()
    assert.equal(130, r.code)
    assert.truthy(r.stderr:find(('error: work[0]: %s:9: boom\n'):format(path), 1, true), r.stderr)
  end)

  it('in next_tuple is told with its place and the spout goes on', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('numbers', streamlua.spout {
  streams = { default = { 'n' }, ctl = { fields = { 'x' }, direct = true } },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > 8 then return streamlua.DONE end
    if self.n == 2 then error('boom') end
    if self.n == 3 then collector:emit({ 1 }, { id = {} }) end
    if self.n == 4 then collector:emit({ 1 }, { stream = 'ctl' }) end
    if self.n == 5 then collector:emit({ 1 }, { stream = 'ctl', task = 999 }) end
    if self.n == 6 then collector:emit({ 1 }, { stream = 'ctl', task = self.tail }) end
    if self.n == 7 then collector:emit({ 1 }, { stream = 'ctl', task = self.work, id = 'ctl' }) end
    collector:emit({ self.n }, { id = self.n })
  end,
  open = function(self, context)
    self.tail, self.work = context:tasks('tail')[1], context:tasks('work')[1]
  end,
})
t:bolt('work', streamlua.bolt { execute = function() end }):shuffle('numbers'):direct('numbers', 'ctl')
t:bolt('tail', streamlua.bolt { execute = function() end }):shuffle('numbers')
return t
]])
    local r, summary = run_script(path)
    assert.equal(0, r.code, r.stderr)
    local stream = "emit: component 'numbers', stream 'ctl': "
    for line, message in pairs({ [8] = 'boom', [10] = stream .. 'a direct stream needs options.task',
      [9] = "emit: component 'numbers', stream 'default': id must be a string or a number, got table",
      [11] = stream .. 'task 999 does not read it', [12] = stream .. 'task 2 does not read it' }) do
      assert.truthy(r.stderr:find(('error: numbers[0]: %s:%d: %s\n'):format(path, line, message), 1,
        true), r.stderr)
    end
    assert.equal(4, summary.components.work.executed)
    assert.equal(3, summary.components.tail.executed)
    assert.same({ emitted = 4, executed = 0, acked = 4, failed = 0, errors = 5 },
      summary.components.numbers)
  end)

  it('in a custom grouping names the reader and what it chose', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('numbers', streamlua.spout {
  fields = { 'n' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > 5 then return streamlua.DONE end
    collector:emit({ self.n })
  end,
})
t:bolt('work', streamlua.bolt { execute = function() end }):custom('numbers', function(values, tasks)
  if values[1] == 2 then return 77 end
  if values[1] == 3 then error('no idea') end
  return tasks[1]
end)
return t
]])
    local r, summary = run_script(path)
    assert.equal(0, r.code, r.stderr)
    assert.truthy(r.stderr:find("the custom grouping of 'work' chose task 77, which is none of its", 1,
      true), r.stderr)
    assert.truthy(r.stderr:find(path .. ':13: no idea\n', 1, true), r.stderr)
    assert.equal(3, summary.components.work.executed)
  end)

  it('of input that is not there ends the run with 1', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('lines', streamlua.io.lines { path = t.config.input or 'none' })
t:bolt('work', streamlua.bolt { execute = function() end }):shuffle('lines')
return t
]])
    for input, message in pairs({ ['/no/such/file'] = 'No such file', ['/'] = 'it is a directory',
      ['/no/*/file'] = "no file matches '/no/*/file'" }) do
      local r = process.run({ 'run', path, '--set', 'input=' .. input })
      assert.equal(1, r.code)
      assert.truthy(r.stderr:find('^error: lines%[0%]: [^\n]+\n$'), r.stderr)
      assert.truthy(r.stderr:find(message, 1, true), r.stderr)
      assert.truthy(r.stderr:find(input, 1, true), r.stderr)
    end
  end)

  it('in a ready-made bolt is not blamed on the bolt in whose emit it runs', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('numbers', streamlua.spout {
  fields = { 'n' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > 50000 then return streamlua.DONE end
    collector:emit({ self.n })
  end,
})
t:bolt('print', streamlua.io.print()):shuffle('numbers')
return t
]])
    local r = process.run({ '-c', ("'%s' run '%s' --executors 1 > /dev/full"):format(process.binary, path) },
      { program = 'sh' })
    assert.truthy(r.stderr:find('error: print[0]: streamlua.io.print: can not write: No space', 1, true),
      r.stderr)
    assert.falsy(r.stderr:find(path, 1, true), r.stderr)
  end)

  it('of a field that can not be a key names the field', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('topo')
t:spout('numbers', streamlua.spout {
  fields = { 'key' },
  next_tuple = function(self, collector)
    if self.n then return streamlua.DONE end
    self.n = 1
    for _, key in ipairs({ 1, 'a', true, { 1 }, 2LL }) do collector:emit({ key }) end
    collector:emit({ nil })
    collector:emit({ print })
  end,
})
t:bolt('work', streamlua.bolt { execute = function() end }, { parallelism = 2 }):fields('numbers', { 'key' })
return t
]])
    local r, summary = run_script(path)
    assert.equal(0, r.code, r.stderr)
    assert.truthy(r.stderr:find(path .. ":10: emit: component 'numbers', stream 'default': field 'key': ",
      1, true), r.stderr)
    assert.equal(6, summary.components.work.executed)
  end)

  it('for which there is no memory in a queue costs that tuple alone', function()
    if process.build == 'asan' or process.build == 'tsan' then
      return pending('sanitizers need more address space than there is')
    end
    -- The record of 512 MiB is for the queue; its one string of 32 MiB is all that Lua holds.
    local path = files.write('topo.lua', TEXT:format('', [[
execute = function(self, tuple, collector)
  if tuple.n == 3 then
    local values, text = {}, ('x'):rep(32 * 1024 * 1024)
    for i = 1, 16 do values[i] = text end
    collector:emit(values)
  end
end]]):gsub("fields = { 'a', 'b' },", "fields = { 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', "
      .. "'m', 'n', 'o', 'p' },"))
    local summary = files.folder() .. '/s.json'
    local r = process.run({ '-c', ("ulimit -v 400000; exec '%s' run '%s' --executors 1 --summary '%s'"):format(
      process.binary, path, summary) }, { program = 'sh' })
    assert.equal(0, r.code, r.stderr)
    assert.truthy(r.stderr:find(('error: work[0]: %s:17: emit: out of memory for a record of '):format(path), 1,
      true), r.stderr)
    local s = json.decode(process.read_file(summary)).components
    assert.same({ 4, 1 }, { s.numbers.acked, s.numbers.failed })
    assert.same({ 5, 0, 1 }, { s.work.executed, s.work.emitted, s.work.errors })
    assert.equal(5, s.other.executed)
    assert.equal(0, s.tail.executed)
  end)

  it('that a script raises only when an executor loads it has its place', function()
    local path = files.write('topo.lua', TEXT:format('', 'execute = function() end'))
    local main = files.write('main.lua', ([[
local marker = '%s/loaded'
local first = io.open(marker) == nil
io.open(marker, 'w'):close()
if not first then error('here') end
return dofile('%s')
]]):format(files.folder(), path))
    local r = process.run({ 'run', main })
    assert.equal(1, r.code)
    assert.truthy(r.stderr:find(('error: run: %s:4: here'):format(main), 1, true), r.stderr)
  end)

  it('is none where a setting stands for no limit', function()
    local path = files.write('topo.lua', TEXT:format('', 'execute = function() end'))
    local r = process.run({ 'run', path, '--set', 'max_spout_pending=1e12', '--set', 'message_timeout=1e12' })
    assert.equal(0, r.code, r.stderr)
  end)
end)
