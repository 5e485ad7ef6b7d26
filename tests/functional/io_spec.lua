-- labels: short
-- The ready-made spouts and bolts inside a running topology.

local process = require 'support.process'

local CAT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('cat', { path = '-', follow = false, format = 'text' })
local config = %s
t:spout('lines', streamlua.io.lines {
  path = config.path, follow = config.follow, max_line = config.max_line,
}, { parallelism = config.tasks or 1 })
t:bolt('print', streamlua.io.print { format = config.format or 'text' }):shuffle('lines')
return t
]]

local function script(folder, config)
  local path = folder .. '/cat.lua'
  process.write_file(path, CAT:format(config))
  return path
end

describe('a topology of lines and print', function()
  it('copies a file byte by byte', function()
    process.with_folder(function(folder)
      local text = 'a\n\n b\0c\r\n\255\254\nlast\n'
      process.write_file(folder .. '/in', text)
      local r = process.run({ 'run', '-q', script(folder, "{ path = 'in' }") }, { cwd = folder })
      assert.equal(0, r.code, r.stderr)
      assert.equal(text, r.stdout)
    end)
  end)

  it('reads files of a pattern with several tasks, each line once', function()
    process.with_folder(function(folder)
      local expected = {}
      for i = 1, 5 do
        local parts = {}
        for k = 1, 200 do
          parts[k] = ('%d:%d'):format(i, k)
          expected[#expected + 1] = parts[k]
        end
        process.write_file(('%s/in%d.log'):format(folder, i), table.concat(parts, '\n'))
      end
      local r = process.run({ 'run', '-q', '--executors', '2',
        script(folder, "{ path = '*.log', tasks = 3 }") }, { cwd = folder })
      assert.equal(0, r.code, r.stderr)
      local found = {}
      for line in r.stdout:gmatch('[^\n]+') do
        found[#found + 1] = line
      end
      table.sort(found)
      table.sort(expected)
      assert.same(expected, found)
    end)
  end)

  it('gives the lines of a pipe as they come, and ends with it', function()
    process.with_folder(function(folder)
      local p = process.start({ 'run', '-q', script(folder, "{ path = '-', format = 'json' }") },
        { keep_stdin = true })
      p:write('one\n')
      p:expect('stdout', '{"line":"one"}\n')
      p:write('tw')
      p:write('o\nthree')
      p:expect('stdout', '{"line":"two"}\n')
      local r = p:wait()
      assert.equal(0, r.code, r.stderr)
      assert.equal('{"line":"one"}\n{"line":"two"}\n{"line":"three"}\n', r.stdout)
    end)
  end)

  it('follows a log through growth and rotation until it is interrupted', function()
    process.with_folder(function(folder)
      local log = folder .. '/x.log'
      process.write_file(log, 'first\n')
      local p = process.start({ 'run', '-q', script(folder, "{ path = 'x.log', follow = true }") },
        { cwd = folder })
      p:expect('stdout', 'first\n')
      local file = assert(io.open(log, 'ab'))
      file:write('second\n')
      file:close()
      p:expect('stdout', 'second\n')
      assert(os.rename(log, log .. '.1'))
      process.write_file(log, 'third\n')
      p:expect('stdout', 'third\n')
      p:signal('INT')
      local r = p:wait()
      assert.equal(130, r.code, r.stderr)
      assert.equal('first\nsecond\nthird\n', r.stdout)
    end)
  end)

  it('counts lines that it dropped for their length, and keeps the others', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/in', 'ok\n' .. ('x'):rep(100) .. '\nend\n')
      local r = process.run({ 'run', '-q', script(folder, "{ path = 'in', max_line = 10 }") },
        { cwd = folder })
      assert.equal(0, r.code, r.stderr)
      assert.equal('ok\nend\n', r.stdout)
    end)
  end)

  it('names a file that is missing and exits with 1', function()
    process.with_folder(function(folder)
      local r = process.run({ 'run', '-q', script(folder, "{ path = 'missing.log' }") },
        { cwd = folder })
      assert.equal(1, r.code)
      assert.truthy(r.stderr:find("can not open 'missing.log': No such file or directory", 1, true),
        r.stderr)
    end)
  end)

  it('says that standard input can not be read, and ends', function()
    process.with_folder(function(folder)
      local path = script(folder, "{ path = '-' }")
      local r = process.run({ '-c', ("'%s' run -q '%s' <&-"):format(process.binary, path) },
        { program = 'bash' })
      assert.equal(0, r.code)
      assert.truthy(r.stderr:find("can not read '-': Bad file descriptor", 1, true), r.stderr)
    end)
  end)

  it('gives the numbers of closed standard files to no other file', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/out.lua', [[
        local files = {}
        for i = 1, 3 do files[i] = assert(io.open(i .. '.txt', 'w')) end
        print('to nobody')
        io.stderr:write('to nobody\n')
        for i = 1, 3 do files[i]:close() end]])
      process.run({ '-c', ("'%s' exec out.lua <&- >&- 2>&-"):format(process.binary) },
        { program = 'bash', cwd = folder })
      for i = 1, 3 do assert.equal('', process.read_file(('%s/%d.txt'):format(folder, i))) end
    end)
  end)

  it('ends quietly when the reader of its output goes away', function()
    process.with_folder(function(folder)
      local path = script(folder, "{ path = '/dev/stdin' }")
      local r = process.run({ '-c', ([[yes | '%s' run -q '%s' | head -1]]):format(process.binary,
        path) }, { program = 'bash' })
      assert.equal('y\n', r.stdout)
      assert.equal('', r.stderr)
    end)
  end)
end)
