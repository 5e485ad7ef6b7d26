-- timeout: 300
-- A run ends, and names who held it up, whatever user code does.
local files = require 'support.files'
local process = require 'support.process'

-- A topology whose function `where` of config never comes back; the JIT has compiled its loop.
local TEXT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('stuck')
local function at(name)
  if t.config.where ~= name then return end
  io.stdout:write('there\n')
  io.stdout:flush()
  local i = 0
  while true do i = i + 1 end
end
t:spout('source', streamlua.spout {
  fields = { 'n' },
  open = function() at('open') end,
  next_tuple = function(self, collector)
    at('next_tuple')
    self.n = (self.n or 0) + 1
    if self.n > 10 then return streamlua.DONE end
    collector:emit({ self.n }, { id = self.n })
  end,
  ack = function() at('ack') end,
  close = function() at('close') end,
})
t:bolt('sink', streamlua.bolt {
  tick_every = '10ms',
  prepare = function() at('prepare') end,
  execute = function() at('execute') end,
  finish = function() at('finish') end,
  cleanup = function() at('cleanup') end,
}):shuffle('source')
return t
]]

local TASK = { open = 'source', next_tuple = 'source', ack = 'source', close = 'source',
  prepare = 'sink', execute = 'sink', finish = 'sink', cleanup = 'sink' }

local function start(where, ...)
  -- One file each: others may be reading theirs.
  local path = files.write(where .. '/topo.lua', TEXT)
  return process.start({ 'run', path, '--set', 'where=' .. where, ... })
end

local function assert_named(where, r)
  local pattern = ('error: run: still in user code: %s%%[0%%] for [%%d.]+ s\n'):format(TASK[where])
  assert.truthy(r.stderr:find(pattern), where .. ': ' .. r.stderr)
end

describe('a task that does not come back from user code', function()
  after_each(files.clean)

  it('does not outlive the time to live, wherever it is', function()
    local running = {}
    for _, where in ipairs({ 'open', 'next_tuple', 'ack', 'prepare', 'execute', 'finish' }) do
      running[where] = start(where, '--ttl', '10s', '--executors', '2')
    end
    for where, p in pairs(running) do
      local r = p:wait()
      assert.equal(0, r.code, where .. ': ' .. r.stderr)
      assert_named(where, r)
    end
  end)

  it('does not outlive the end of the run, and makes it fail', function()
    local running = { close = start('close'), cleanup = start('cleanup') }
    for where, p in pairs(running) do
      local r = p:wait()
      assert.equal(1, r.code, where .. ': ' .. r.stderr)
      assert_named(where, r)
    end
  end)

  it('does not outlive the limit of the drain', function()
    local p = start('execute', '--set', 'message_timeout=2s')
    p:expect('stdout', 'there\n')
    p:signal('INT')
    local r = p:wait()
    assert.equal(130, r.code)
    assert_named('execute', r)
    assert.truthy(r.stderr:find('ended with %d+ tuples in flight'), r.stderr)
  end)

  it('does not hold up the end by waiting for somebody to read its output', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('loud')
t:spout('source', streamlua.spout {
  fields = { 'n' },
  next_tuple = function(self, collector)
    collector:emit({ 1 })
  end,
})
t:bolt('sink', streamlua.bolt {
  execute = function()
    while true do io.stdout:write(('x'):rep(1000), '\n') end
  end,
}):shuffle('source')
return t
]])
    -- The shell holds both ends of the pipe and reads nothing.
    local r = process.run({ '-c', ("mkfifo '%s/out' && exec 5<>'%s/out' && '%s' run '%s' --ttl 10s >&5")
      :format(files.folder(), files.folder(), process.binary, path) }, { program = 'bash' })
    assert.equal(0, r.code, r.stderr)
    assert.truthy(r.stderr:find('still in user code: sink[0]', 1, true), r.stderr)
  end)
end)

describe('progress', function()
  after_each(files.clean)

  it('is a plain line a component where there is no terminal', function()
    local path = files.write('topo.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('slow')
t:spout('source', streamlua.spout {
  fields = { 'n' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n <= 10 then collector:emit({ self.n }, { id = self.n }) end
  end,
})
t:bolt('sink', streamlua.bolt { execute = function() end }):shuffle('source')
return t
]])
    local p = process.start({ 'run', path })
    p:expect('stderr', 'source: [%d.]+ tuples/s, latency [%d.]+ms, queue 0, failed 0\n')
    p:expect('stderr', 'sink: [%d.]+ tuples/s, latency [%d.e-]+ms, queue 0, failed 0\n')
    p:signal('TERM')
    local r = p:wait()
    assert.equal(143, r.code)
    assert.falsy(r.stderr:find('\27', 1, true))
  end)
end)
