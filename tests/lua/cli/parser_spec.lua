local parser = require 'streamlua.cli.parser'

describe('finding the command', function()
  local function find(...)
    local position, name = parser.find_command({ ... })
    return position and position .. ' ' .. name
  end

  it('skips global options and their values', function()
    assert.equal('1 run', find('run', 'x.lua'))
    assert.equal('3 run', find('-o', 'json', 'run'))
    assert.equal('2 run', find('-ojson', 'run'))
    assert.equal('3 run', find('-vo', 'json', 'run'))
    assert.equal('2 run', find('--output=json', 'run'))
    assert.equal('2 run', find('-vv', 'run'))
    assert.equal('5 run', find('--set', 'a=1', '--cluster', 'list', 'run'))
    assert.equal('2 run', find('--', 'run'))
  end)

  it('finds none where there are only options', function()
    assert.is_nil(find('-v'))
    assert.is_nil(find('--cluster', 'run'))
    assert.is_nil(find('--'))
    assert.is_nil(find())
  end)
end)

describe('the rest of the line', function()
  local function protect(...)
    local words = { ... }
    return table.concat(parser.protect_rest(words, (parser.find_command(words))), ' ')
  end

  it('belongs to the script, options before the script do not', function()
    assert.equal('exec -- s.lua -v', protect('exec', 's.lua', '-v'))
    assert.equal('-v exec -o json -- s.lua --help',
      protect('-v', 'exec', '-o', 'json', 's.lua', '--help'))
    assert.equal('exec --help', protect('exec', '--help'))
    assert.equal('exec -- s.lua -- x', protect('exec', '--', 's.lua', '--', 'x'))
    assert.equal('exec -- - a', protect('exec', '-', 'a'))
  end)
end)

describe('converters', function()
  it('read whole numbers within limits', function()
    local convert = parser.integer(1, 10)
    assert.equal(10, (convert('10')))
    for _, text in ipairs({ '0', '11', '1.5', '', 'x', '1e1', '0x1' }) do
      local value, message = convert(text)
      assert.is_nil(value, text)
      assert.equal('string', type(message))
    end
  end)

  it('read durations and sizes', function()
    assert.equal(0.5, parser.duration('500ms'))
    assert.equal(1024, parser.size('1KiB'))
    assert.is_nil((parser.duration('soon')))
    assert.is_nil((parser.size('big')))
  end)
end)

describe('a value that does not parse', function()
  local function failure(...)
    local argv = { ... }
    local _, name = parser.find_command(argv)
    local ok, err = pcall(parser.parse, parser.build({ name }), argv)
    assert.is_false(ok)
    assert.equal(2, err.exit)
    return err.message
  end

  it('is told with its option', function()
    assert.matches("^%-%-ttl: '1x' is not a duration", failure('run', 'a.lua', '--ttl', '1x'))
    assert.matches("^%-%-timeout: 'soon' is not", failure('list', '--timeout', 'soon'))
    assert.matches("^%-%-ram: '1XB' is not a size", failure('supervisor', '--ram=1XB'))
    assert.equal("--set: 'novalue': expected KEY=VALUE", failure('list', '--set', 'novalue'))
    assert.equal('--port: 70000 is not within 0..65535', failure('master', '--port', '70000'))
  end)

  it('may be a negative number', function()
    assert.matches("^%-%-executors: '%-1' is no", failure('run', 'a.lua', '--executors', '-1'))
    assert.matches("^%-%-tail: %-5 is not within", failure('logs', 'wc', '--tail', '-5'))
    assert.matches("^%-%-drain%-timeout: '%-.5s' is not", failure('update', 'wc', '--drain-timeout', '-.5s'))
    assert.equal("unknown option '-1'", failure('list', '-1'))
    assert.equal("unknown option '-1'", failure('list', '-q', '-1'))
    local args = parser.parse(parser.build({ 'exec' }), { 'exec', '--', 'a.lua', '--ttl', '-1' })
    assert.same({ '--ttl', '-1' }, args.rest)
  end)

  it('is a second number of containers', function()
    for _, command in ipairs({ 'plan', 'update' }) do
      assert.matches("option '%-%-containers' must be used at most 1 time",
        failure(command, 'wc', '--containers', '2', '--containers', '3'))
    end
  end)
end)
