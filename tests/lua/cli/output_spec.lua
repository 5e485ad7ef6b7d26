local output = require 'streamlua.cli.output'
local json = require 'streamlua.json'

describe('tables', function()
  it('align columns, numbers to the right', function()
    assert.equal('NAME   TASKS  STATE\na          7  RUNNING\nlong1   1000  -\n',
      output.table_text({ 'NAME', 'TASKS', 'STATE' },
        { { 'a', 7, 'RUNNING' }, { 'long1', 1000, nil } }))
  end)

  it('count what a terminal shows, not bytes', function()
    assert.equal(4, output.width('\27[31mfarb\27[0m'))
    assert.equal(3, output.width('äöü'))
    assert.equal(2, output.width('a\204\182b\204\182'))
    assert.equal('A   B\nä   1\nab  2\n', output.table_text({ 'A', 'B' }, { { 'ä', 1 }, { 'ab', 2 } }))
  end)

  it('stay tables when a cell holds line ends', function()
    assert.equal('A\nx y\n', output.table_text({ 'A' }, { { 'x\ny' } }))
  end)

  it('can go without titles and with an indent', function()
    assert.equal('  a  1\n', output.table_text({ 'K', 'V' }, { { 'a', 1 } },
      { headers = false, indent = '  ' }))
    assert.equal('', output.table_text({ 'K' }, {}, { headers = false }))
  end)

  it('leave the lists they are given alone', function()
    local columns = { 'A', { title = 'B', align = 'right' } }
    output.table_text(columns, { { 1, 2 } })
    assert.same({ 'A', { title = 'B', align = 'right' } }, columns)
  end)
end)

describe('JSON documents', function()
  it('write lists of our documents as [] when they are empty', function()
    assert.equal('{"containers":[],"map":{},"plan":{"instances":[]}}\n',
      output.json_text({ containers = {}, map = {}, plan = { instances = {} } }))
  end)

  it('keep marks and contents', function()
    assert.equal('{"tasks":[1],"workers":{}}\n',
      output.json_text({ tasks = { 1 }, workers = json.object() }))
  end)

  it('raise for values that JSON can not say', function()
    assert.is_false((pcall(output.json_text, { x = 0 / 0 })))
  end)
end)

describe('colour', function()
  local function getenv(values)
    return function(name) return values[name] end
  end

  it('is forced or forbidden by --color', function()
    assert.is_true(output.use_color('always', 1, getenv({ NO_COLOR = '1' })))
    assert.is_false(output.use_color('never', 1, getenv({})))
  end)

  it('is off without a terminal and with NO_COLOR', function()
    local read_end = require('posix.unistd').pipe()
    assert.is_false(output.use_color('auto', read_end, getenv({})))
    require('posix.unistd').close(read_end)
    assert.is_false(output.use_color('auto', 1, getenv({ NO_COLOR = '1' })))
    assert.is_false(output.use_color('auto', 1, getenv({ TERM = 'dumb' })))
  end)
end)

describe('the writer', function()
  it('tells a reader that went away from other failures', function()
    local broken = output.writer({ write = function() return nil, 'Broken pipe', 32 end })
    local ok, raised = pcall(broken.write, broken, 'x')
    assert.is_false(ok)
    assert.equal(output.BROKEN_PIPE, raised)
    local full = output.writer({ write = function() return nil, 'No space left on device', 28 end })
    ok, raised = pcall(full.write, full, 'x')
    assert.is_false(ok)
    assert.truthy(raised:find('No space left', 1, true))
  end)
end)
