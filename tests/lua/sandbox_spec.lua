-- Children with limits: results, prints, errors, endless loops, memory, forks. labels: short
local process = require 'support.process'
local sandbox = require 'streamlua.sandbox'
local stdlib = require 'posix.stdlib'

-- Runs a chunk as the work of a child; it gets the child's standard input as `input`.
local function serve(chunk, options)
  local answer = process.with_folder(function(folder)
    local path = folder .. '/work.lua'
    process.write_file(path, ([[
local sandbox = require 'streamlua.sandbox'
local input = io.read('*a')
sandbox.serve(function()
%s
end)
]]):format(chunk))
    options = options or {}
    options.what, options.argv = 'the code', { 'exec', path }
    local result, fault = sandbox.run(options)
    return { result = result, fault = fault }
  end)
  return answer.result, answer.fault
end

local function slow(seconds) return seconds * process.slowness end

-- Runs `body` with a child that collects as usual: one that must fill its memory would else only
-- collect, each time all of it, until its time is over.
local function without_stress(body)
  local value = os.getenv('SL_GC')
  stdlib.setenv('SL_GC', nil)
  local ok, fault = pcall(body)
  stdlib.setenv('SL_GC', value)
  if not ok then error(fault, 0) end
end

describe('streamlua.sandbox', function()
  it('returns what the work returns', function()
    local result, fault = serve('return { a = { 1, 2.5, "x" }, b = input }', { input = 'hello' })
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

  it('keeps what the code prints out of the result', function()
    local result, fault = serve('io.stdout:write("{}") io.stdout:flush() return { 7 }')
    assert.is_nil(fault)
    assert.same({ 7 }, result)
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
    without_stress(function()
      local _, fault = serve('local t = {} while true do t[#t + 1] = ("x"):rep(1e6) .. #t end',
        { memory = 200 * 2 ^ 20, seconds = 30 })
      assert.equal('memory', fault.kind)
      assert.matches('needed more memory than its limit of 200 MiB', fault.message)
      _, fault = serve('local t while true do t = { t } end', { memory = 2 ^ 28, seconds = 30 })
      assert.equal('memory', fault.kind)
    end)
  end)

  it('tells how a process ended that gave no result', function()
    local _, fault = serve('require("streamlua.connectors.libc").exit(3)')
    assert.equal('ended', fault.kind)
    assert.matches('exit code 3', fault.message)
    _, fault = serve('local libc = require "streamlua.connectors.libc" libc.C.raise(9)')
    assert.equal('ended', fault.kind)
    assert.matches('signal 9', fault.message)
  end)

  it('kills forks with the group, also those that hold the result open', function()
    local result, fault = serve([[
  local ffi = require 'ffi'
  ffi.cdef 'int fork(void); int pause(void);'
  local pid = ffi.C.fork()
  if pid == 0 then
    while true do ffi.C.pause() end
  end
  return { pid = pid }]])
    assert.is_nil(fault)
    -- A killed orphan is collected by init; until then it is a zombie, which runs no more.
    local file = io.open(('/proc/%d/stat'):format(result.pid), 'r')
    local state = file and file:read('*l'):match('%) (%u)')
    if file then file:close() end
    assert.is_truthy(state == nil or state == 'Z' or state == 'X', state)

    result, fault = serve([[
  local ffi = require 'ffi'
  ffi.cdef 'int fork(void); int pause(void);'
  if ffi.C.fork() == 0 then
    while true do ffi.C.pause() end
  end
  require('streamlua.connectors.libc').exit(5)]], { seconds = slow(20) })
    assert.is_nil(result)
    assert.equal('ended', fault.kind)
    assert.matches('exit code 5', fault.message)
  end)

  it('is not inside in the parent', function() assert.is_false(sandbox.inside()) end)
end)
