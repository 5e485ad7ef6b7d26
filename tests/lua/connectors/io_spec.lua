local lfs = require 'lfs'
local unistd = require 'posix.unistd'
local connectors = require 'streamlua.connectors.io'
local json = require 'streamlua.json'
local line_reader = require 'streamlua.connectors.line_reader'

-- The spout only needs the mark of an exhausted source from the library.
local has_library, library = pcall(require, 'streamlua')
local DONE = has_library and library.DONE or {}
package.loaded['streamlua'] = has_library and library or { DONE = DONE }

local directory

local function path_of(name)
  return directory .. '/' .. name
end

local function write(name, text, mode)
  local file = assert(io.open(path_of(name), mode or 'wb'))
  file:write(text)
  file:close()
  return path_of(name)
end

local function context(index, parallelism)
  local counters = {}
  return {
    index = index or 0,
    parallelism = parallelism or 1,
    counter = function(_, name)
      counters[name] = counters[name] or { n = 0 }
      return {
        inc = function(_, n) counters[name].n = counters[name].n + (n or 1) end,
        value = function() return counters[name].n end,
      }
    end,
  }
end

-- A running task of the spout: `step()` returns the line emitted, or what next_tuple returned.
local function start(options, index, parallelism)
  local definition = connectors.lines_definition(options)
  local self = setmetatable({}, { __index = definition })
  local task = { self = self, context = context(index, parallelism), ids = {} }
  local emitted
  local collector = {
    emit = function(_, values, emit_options)
      emitted = values[1]
      task.ids[#task.ids + 1] = emit_options.id
    end,
  }
  self:open(task.context)
  function task.step()
    emitted = nil
    local result = self:next_tuple(collector)
    return emitted, result
  end
  function task.all()
    local lines = {}
    while true do
      local line, result = task.step()
      if result == DONE then
        return lines
      end
      assert(line, 'the spout paused')
      lines[#lines + 1] = line
    end
  end
  function task.dropped()
    return task.context:counter('dropped_lines'):value()
  end
  return task
end

local function lines_of(options, index, parallelism)
  local task = start(options, index, parallelism)
  local lines = task.all()
  task.self:close()
  return lines, task
end

describe('streamlua.io.lines', function()
  before_each(function()
    directory = os.tmpname()
    os.remove(directory)
    assert(require('posix.sys.stat').mkdir(directory))
  end)

  after_each(function()
    for _, path in ipairs(require('streamlua.connectors.libc').glob(directory .. '/*')) do
      os.remove(path)
    end
    os.remove(directory)
  end)

  it('gives the lines of a file, the last one without a line end too', function()
    assert.same({ 'a', '', 'b c', 'last' }, (lines_of({ path = write('f', 'a\n\nb c\nlast') })))
    assert.same({ 'a' }, (lines_of({ path = write('f', 'a\n') })))
    assert.same({ '' }, (lines_of({ path = write('f', '\n') })))
    assert.same({}, (lines_of({ path = write('f', '') })))
  end)

  it('keeps any byte, NUL and carriage return too', function()
    assert.same({ 'a\0b\r', '\255\0' }, (lines_of({ path = write('f', 'a\0b\r\n\255\0\n') })))
  end)

  it('numbers the lines as ids', function()
    local _, task = lines_of({ path = write('f', 'a\nb\nc\n') })
    assert.same({ 1, 2, 3 }, task.ids)
  end)

  it('gives every line whatever the size of the block', function()
    local expected, parts = {}, {}
    for i = 1, 300 do
      expected[i] = ('x'):rep(i % 37) .. i
      parts[i] = expected[i] .. '\n'
    end
    local path = write('f', table.concat(parts))
    for _, block in ipairs({ 1, 2, 7, 64, 4096 }) do
      assert.same(expected, (lines_of({ path = path, block = block })))
    end
  end)

  it('drops and counts lines longer than max_line, and goes on behind them', function()
    local text = 'ok\n' .. ('x'):rep(11) .. '\n' .. ('y'):rep(10) .. '\n' .. ('z'):rep(500) .. '\nend'
    for _, block in ipairs({ 1, 16, 100000 }) do
      local lines, task = lines_of({ path = write('f', text), max_line = 10, block = block })
      assert.same({ 'ok', ('y'):rep(10), 'end' }, lines)
      assert.equal(2, task.dropped())
    end
    local lines, task = lines_of({ path = write('f', 'a\n' .. ('x'):rep(11)), max_line = 10 })
    assert.same({ 'a' }, lines)
    assert.equal(1, task.dropped())
  end)

  it('holds no more than the limit and two blocks of a line without an end', function()
    local pipe_read, pipe_write = unistd.pipe()
    local reader = line_reader.new(pipe_read, { max_line = 5000, block = 1000, poll = true })
    for _ = 1, 100 do
      unistd.write(pipe_write, ('x'):rep(4000))
      assert.is_nil((reader:next()))
    end
    assert.is_true(reader.capacity <= 5000 + 2 * 1000 + 5000)
    unistd.write(pipe_write, '\nnext\n')
    assert.equal('next', (reader:next()))
    assert.equal(1, reader.dropped)
    reader:close()
    unistd.close(pipe_read)
    unistd.close(pipe_write)
  end)

  it('reads a list and a pattern in order', function()
    local a, b = write('a.log', '1\n2'), write('b.log', '3\n')
    write('c.txt', 'no\n')
    assert.same({ '3', '1', '2' }, (lines_of({ path = { b, a } })))
    assert.same({ '1', '2', '3' }, (lines_of({ path = path_of('*.log') })))
  end)

  it('takes a name with pattern characters literally when there is such a file', function()
    write('a', 'wrong\n')
    assert.same({ 'right' }, (lines_of({ path = write('[a]', 'right\n') })))
  end)

  it('deals the files out to its tasks', function()
    local paths = {}
    for i = 1, 5 do
      paths[i] = write('f' .. i, i .. '\n')
    end
    assert.same({ '1', '3', '5' }, (lines_of({ path = paths }, 0, 2)))
    assert.same({ '2', '4' }, (lines_of({ path = path_of('f*') }, 1, 2)))
    assert.same({}, (lines_of({ path = paths[1] }, 3, 4)))
  end)

  it('names the path when it can not be opened', function()
    for path, why in pairs({
      [path_of('missing')] = "can not open '" .. path_of('missing') .. "': No such file",
      [directory] = 'it is a directory',
      [path_of('*.none')] = 'no file matches',
    }) do
      local ok, message = pcall(start, { path = path })
      assert.is_false(ok)
      assert.truthy(message:find(why, 1, true), message)
      assert.truthy(message:find(path, 1, true), message)
    end
  end)

  it('refuses options that make no sense', function()
    for _, options in ipairs({ {}, { path = 1 }, { path = {} }, { path = 'a', max_line = 'big' },
        { path = 'a', max_line = 0 }, { path = 'a', folow = true } }) do
      assert.is_false((pcall(connectors.lines_definition, options)))
    end
  end)

  it('pauses instead of waiting when a pipe is empty, and ends with it', function()
    local read_end, write_end = unistd.pipe()
    local saved = unistd.dup(0)
    unistd.dup2(read_end, 0)
    unistd.close(read_end)
    local task = start({ path = '-' })
    local line, result = task.step()
    assert.is_nil(line)
    assert.is_false(result)
    unistd.write(write_end, 'one\ntwo\npart')
    assert.equal('one', (task.step()))
    assert.equal('two', (task.step()))
    line, result = task.step()
    assert.is_nil(line)
    assert.is_false(result)
    unistd.write(write_end, 'ial\nend')
    assert.equal('partial', (task.step()))
    unistd.close(write_end)
    assert.equal('end', (task.step()))
    line, result = task.step()
    assert.is_nil(line)
    assert.equal(DONE, result)
    task.self:close()
    unistd.dup2(saved, 0)
    unistd.close(saved)
  end)

  describe('with follow', function()
    it('goes on at the end of the file, line by line', function()
      local path = write('f', 'a\nb')
      local task = start({ path = path, follow = true })
      assert.equal('a', (task.step()))
      local line, result = task.step()
      assert.is_nil(line)
      assert.is_false(result)
      write('f', 'c\nd\n', 'ab')
      assert.equal('bc', (task.step()))
      assert.equal('d', (task.step()))
      assert.is_nil((task.step()))
      task.self:close()
    end)

    it('starts again when the file was truncated', function()
      local path = write('f', 'a long line\n')
      local task = start({ path = path, follow = true })
      assert.equal('a long line', (task.step()))
      assert.is_nil((task.step()))
      write('f', 'new\n')
      assert.is_nil((task.step()))
      assert.equal('new', (task.step()))
      task.self:close()
    end)

    it('goes over to the new file when the old one was rotated away', function()
      local path = write('f', 'a\n')
      local task = start({ path = path, follow = true })
      assert.equal('a', (task.step()))
      write('f', 'b\nlast', 'ab')
      assert(os.rename(path, path_of('f.1')))
      assert.equal('b', (task.step()))
      -- Nothing under the name yet: the old file may still grow.
      assert.is_nil((task.step()))
      write('f', 'c\n')
      assert.equal('last', (task.step()))
      assert.equal('c', (task.step()))
      assert.is_nil((task.step()))
      task.self:close()
    end)

    it('stays with the old file while its name is a folder', function()
      local path = write('f', 'a\n')
      local task = start({ path = path, follow = true })
      assert.equal('a', (task.step()))
      assert(os.rename(path, path_of('f.1')))
      assert(lfs.mkdir(path))
      assert.is_nil((task.step()))
      write('f.1', 'b\n', 'ab')
      assert.equal('b', (task.step()))
      assert(os.remove(path))
      write('f', 'c\n')
      assert.is_nil((task.step()))
      assert.equal('c', (task.step()))
      task.self:close()
    end)

    it('takes turns over several files', function()
      local a, b = write('a', '1\n'), write('b', '')
      local task = start({ path = { a, b }, follow = true })
      assert.equal('1', (task.step()))
      assert.is_nil((task.step()))
      write('b', '2\n', 'ab')
      assert.equal('2', (task.step()))
      write('a', '3\n', 'ab')
      assert.equal('3', (task.step()))
      assert.is_nil((task.step()))
      task.self:close()
    end)
  end)
end)

describe('streamlua.io.print', function()
  local function print_all(options, tuples, names)
    local written = {}
    options.file = {
      write = function(_, text) written[#written + 1] = text return true end,
      flush = function() return true end,
    }
    options.fields_of = function() return names end
    local definition = connectors.print_definition(options)
    local self = setmetatable({}, { __index = definition })
    self:prepare()
    for _, tuple in ipairs(tuples) do
      self:execute(tuple)
    end
    local before = table.concat(written)
    self:finish()
    return table.concat(written), before
  end

  it('prints Lua by default', function()
    assert.equal('{word = "a\\n", count = 3}\n', (print_all({}, { { 'a\n', 3 } },
      { 'word', 'count' })))
    assert.equal('{["odd name"] = {1, 2, x = true}, id = 9007199254740993LL, none = null}\n',
      (print_all({ format = 'lua' }, { { { 1, 2, x = true }, 9007199254740993LL, json.null } },
        { 'odd name', 'id', 'none' })))
  end)

  it('prints JSON with the fields in order', function()
    assert.equal('{"word":"a\\n","count":3,"gone":null}\n', (print_all({ format = 'json' },
      { { 'a\n', 3 } }, { 'word', 'count', 'gone' })))
  end)

  it('prints text between tabs', function()
    assert.equal('a\t1000000000000000\t\tnull\t5\n', (print_all({ format = 'text' },
      { { 'a', 1e15, nil, json.null, 5ULL } }, { 'a', 'b', 'c', 'd', 'e' })))
  end)

  it('buffers, and writes when it is full, at a tick and at the end', function()
    local all, before = print_all({ format = 'text' }, { { 'a' }, { 'b' } }, { 'x' })
    assert.equal('', before)
    assert.equal('a\nb\n', all)
    local tuples = {}
    for i = 1, 3 do
      tuples[i] = { ('x'):rep(30000) }
    end
    local _, full = print_all({ format = 'text' }, tuples, { 'x' })
    assert.equal(90003, #full)
  end)

  it('refuses an unknown format', function()
    assert.is_false((pcall(connectors.print_definition, { format = 'xml' })))
  end)
end)
