-- Children with limits: results, prints, errors, endless loops, memory, forks. labels: short
local fcntl = require 'posix.fcntl'
local files = require 'support.files'
local poll = require('posix.poll').poll
local process = require 'support.process'
local sandbox = require 'streamlua.sandbox'
local unistd = require 'posix.unistd'

-- Runs a chunk as the work of a child; it gets the child's standard input as `input`.
local function serve_as_is(chunk, options)
  local answer = process.with_folder(function(folder)
    local path = folder .. '/work.lua'
    process.write_file(path, ([[
local sandbox = require 'streamlua.sandbox'
local input = io.read('*a')
sandbox.serve(function()
%s
end, %s)
]]):format(chunk, options and options.filter == false and '{ filter = false }' or 'nil'))
    options = options or {}
    options.what, options.argv = 'the code', { 'exec', path }
    options.seconds = options.seconds or process.patience
    local result, fault = sandbox.run(options)
    return { result = result, fault = fault }
  end)
  return answer.result, answer.fault
end

-- The same, with a child that is quick to start also when the specs are under GC stress.
local function serve(...)
  local result, fault
  local given = { ... }
  process.without_stress(function() result, fault = serve_as_is(given[1], given[2]) end)
  return result, fault
end

local function slow(seconds) return seconds * process.slowness end

describe('streamlua.sandbox', function()
  after_each(files.clean)

  it('returns what the work returns', function()
    local result, fault = serve_as_is('return { a = { 1, 2.5, "x" }, b = input }',
      { input = 'hello' })
    assert.is_nil(fault)
    assert.same({ a = { 1, 2.5, 'x' }, b = 'hello' }, result)
  end)

  it('gives back nothing when the work returns nothing', function()
    local result, fault = serve('')
    assert.is_nil(result)
    assert.is_nil(fault)
  end)

  it('carries input and results of megabytes', function()
    local input = ('x'):rep(3e6)
    local result, fault = serve('return { text = input .. input }', { input = input })
    assert.is_nil(fault)
    assert.equal(6e6, #result.text)
  end)

  it('refuses code that prints, with the line, also when the code catches that', function()
    for _, chunk in ipairs { 'print "{}"', 'io.write "{}"', 'io.stdout:write "{}"',
      'pcall(print, "{}")' } do
      local result, fault = serve(chunk .. ' return { 7 }')
      assert.is_nil(result)
      assert.equal('EUSER', fault.code)
      assert.matches('work%.lua:4: it prints to standard output', fault.message)
    end
  end)

  it('refuses what is printed past Lua', function()
    for _, chunk in ipairs { 'ffi.C.puts("mine\\nyours")', 'ffi.C.write(1, "mine", 4)',
      'local f = io.open("/dev/stdout", "w") f:write "mine" f:close()',
      'ffi.C.puts("mine") io.stdout:flush() ffi.C._exit(3)', 'while true do ffi.C.write(1, "mine\\n", 5) end' } do
      local result, fault = serve('local ffi = require "ffi" ffi.cdef "int puts(const char *);" '
        .. chunk .. ' return { 7 }')
      assert.is_nil(result)
      assert.equal('printed', fault.kind)
      assert.matches('^the code printed to standard output %("mine"%); ', fault.message)
    end
  end)

  it('takes the result of code that closes standard output', function()
    assert.same({ 7 }, (serve('io.stdout:close() io.stdout = nil return { 7 }')))
  end)

  it('leaves standard error, other files and reading alone', function()
    assert.same({ 7, 'abc' }, (serve([[
  io.stderr:write ''
  local file = io.tmpfile()
  file:write('abc')
  file:seek('set')
  local text = file:read('*a')
  io.output(file)
  io.write('more')
  return { 7, text }]])))
  end)

  it('tells file and line of an error', function()
    local result, fault = serve('error("boom")')
    assert.is_nil(result)
    assert.equal('EUSER', fault.code)
    assert.equal('raised', fault.kind)
    assert.matches('work%.lua:4: boom$', fault.message)
    assert.matches('traceback', fault.traceback)
  end)

  it('finds the line of an error without a position', function()
    local _, fault = serve('error({})')
    assert.matches('work%.lua:4: %(error object is a table value%)$', fault.message)
    _, fault = serve('error("plain", 0)')
    assert.matches('work%.lua:4: plain$', fault.message)
  end)

  it('refuses results that are no documents', function()
    for chunk, text in pairs {
      ['local t = {} t.a = { t } return t'] = 'a%[1%] contains itself',
      ['return { a = print }'] = 'a is a function',
      ['return { [print] = 1 }'] = 'has a function as key',
      ['return { a = { b = 0/0 } }'] = 'a%.b is the number %-?nan',
      ['local t = {} for _ = 1, 200 do t = { t } end return t'] = 'more than 64 levels deep',
    } do
      local _, fault = serve(chunk)
      assert.equal('result', fault.kind)
      assert.matches(text, fault.message)
    end
  end)

  it('takes the same table twice, which is no cycle', function()
    assert.same({ a = { 1 }, b = { 1 } }, (serve('local t = { 1 } return { a = t, b = t }')))
  end)

  it('kills an endless loop at its time limit', function()
    local _, fault = serve('while true do end', { seconds = slow(0.3) })
    assert.equal('time', fault.kind)
    assert.matches('^the code ran longer than its limit of [%d.]+ s and was killed$', fault.message)
  end)

  it('tells of code that needs too much memory', function()
    if process.build == 'asan' or process.build == 'tsan' then
      pending('a sanitizer reserves more address space than any limit allows')
      return
    end
    local _, fault = serve('local t = {} while true do t[#t + 1] = ("x"):rep(1e6) .. #t end',
      { memory = 200 * 2 ^ 20, seconds = 30 })
    assert.equal('memory', fault.kind)
    assert.matches('needed more memory than its limit of 200 MiB', fault.message)
    _, fault = serve('local t while true do t = { t } end', { memory = 2 ^ 28, seconds = 30 })
    assert.equal('memory', fault.kind)
  end)

  it('tells how a process ended that gave no result', function()
    local _, fault = serve('require("streamlua.connectors.libc").exit(3)')
    assert.equal('ended', fault.kind)
    assert.matches('exit code 3', fault.message)
    _, fault = serve('local libc = require "streamlua.connectors.libc" libc.C.raise(9)')
    assert.equal('ended', fault.kind)
    assert.matches('signal 9', fault.message)
  end)

  it('tells of a stack that is full', function()
    local _, fault = serve('local function f() return 1 + f() end return f()')
    assert.equal('raised', fault.kind)
    assert.matches('stack overflow$', fault.message)
  end)

  it('tells of code that closes everything', function()
    local _, fault = serve('local ffi = require "ffi" for fd = 0, 9 do ffi.C.close(fd) end while true do end',
      { seconds = slow(20) })
    assert.equal('ended', fault.kind)
    assert.equal('the code closed the way of its answer', fault.message)
  end)

  it('kills code that leaves its process group', function()
    local _, fault = serve([[
local ffi = require 'ffi'
ffi.cdef 'int setpgid(int, int); int getpgid(int); int getppid(void); int pause(void);'
ffi.C.setpgid(0, ffi.C.getpgid(ffi.C.getppid()))
ffi.C.pause()]], { seconds = slow(0.3) })
    assert.equal('time', fault.kind)
  end)

  local CDEF = [[
local ffi = require 'ffi'
pcall(ffi.cdef, 'int fork(void); int pause(void); int setsid(void); int wait(int *); void exit(int);')
]]
  local FORKS = {
    'ffi.C.fork()', 'while true do ffi.C.fork() end',
    'if ffi.C.fork() == 0 then while true do ffi.C.pause() end end',
    'if ffi.C.fork() == 0 then ffi.C.setsid() while true do ffi.C.pause() end end',
    'if ffi.C.fork() == 0 then ffi.C.exit(0) end ffi.C.wait(nil)',
    'require("posix.unistd").fork()',
  }

  local function has_filter()
    local status = process.read_file('/proc/self/status')
    return status:find('\nSeccomp:') ~= nil
  end

  it('ends code that forks, before there is another process', function()
    if not has_filter() then
      pending('this kernel has no system call filters')
      return
    end
    for _, chunk in ipairs(FORKS) do
      local result, fault = serve(CDEF .. chunk .. ' return { 7 }', { seconds = slow(20) })
      assert.is_nil(result)
      assert.equal('forked', fault.kind)
      assert.matches('^the code started another process %(a fork%)', fault.message)
    end
  end)

  it('refuses code that starts programs, with the line', function()
    for _, chunk in ipairs { 'os.execute "true"', 'io.popen("true"):close()',
      'pcall(os.execute, "true")' } do
      local result, fault = serve(chunk .. ' return { 7 }')
      assert.is_nil(result)
      assert.matches('work%.lua:4: it starts another process', fault.message)
    end
  end)

  it('tells of forks without the filter, too', function()
    for i, chunk in ipairs(FORKS) do
      -- A fork bomb can only be stopped by the filter, and who leaves the group is not found.
      if i ~= 2 and i ~= 4 then
        local result, fault = serve(CDEF .. chunk .. ' return { 7 }',
          { filter = false, seconds = slow(20) })
        assert.is_nil(result)
        assert.matches('it starts another process %(a fork%)', fault.message)
      end
    end
  end)

  it('kills what was forked with the group, without the filter', function()
    -- The fork holds the writing end for as long as it lives.
    local gate = files.gate('forked').path
    local reader = assert(fcntl.open(gate, fcntl.O_RDONLY + fcntl.O_NONBLOCK))
    local _, fault = serve(CDEF .. ([[
local file = io.open(%q, 'w')
local pid = ffi.C.fork()
if pid == 0 then while true do ffi.C.pause() end end
file:write(pid)
file:close()]]):format(gate), { filter = false, seconds = slow(20) })
    assert.matches('it starts another process', fault.message)
    local fds = { [reader] = { events = { IN = true } } }
    local text = ''
    repeat
      assert.equal(1, poll(fds, slow(20000)))
      local part = unistd.read(reader, 64)
      text = text .. part
    until part == ''
    unistd.close(reader)
    assert.matches('^%d+$', text)
  end)

  it('refuses an answer that is not its own', function()
    for _, text in ipairs { 'no number at all', '0000000000000002{}', 'ffffffffffff' } do
      local result, fault = serve(('local ffi = require "ffi" ffi.C.write(3, %q, %d)'):format(text,
        #text))
      assert.is_nil(result)
      assert.equal('result', fault.kind)
      assert.matches('^the code gave an answer that can not be read$', fault.message)
    end
  end)

  it('is not inside in the parent', function() assert.is_false(sandbox.inside()) end)
end)
