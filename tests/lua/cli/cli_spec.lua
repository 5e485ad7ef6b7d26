local cli = require 'streamlua.cli'

-- Runs the command line in this process and returns code, standard output, standard error.
local function run(argv, environment)
  local out, err = io.tmpfile(), io.tmpfile()
  local code = cli.main(argv, {
    stdout = out,
    stderr = err,
    getenv = function(name)
      return (environment or {})[name]
    end,
  })
  out:seek('set')
  err:seek('set')
  local texts = { out:read('*a'), err:read('*a') }
  out:close()
  err:close()
  return code, texts[1], texts[2]
end

local json = require 'streamlua.json'

describe('the command line', function()
  it('prints the help and succeeds without arguments', function()
    local code, out, err = run({})
    assert.equal(0, code)
    assert.truthy(out:find('Usage: streamlua', 1, true))
    assert.truthy(out:find('--cluster NAME', 1, true))
    assert.equal('', err)
  end)

  it('refuses an unknown command with exit 2 and the nearest name', function()
    local code, out, err = run({ 'verison' })
    assert.equal(2, code)
    assert.equal('', out)
    assert.equal("error: unknown command 'verison'\nhint: did you mean 'version'?\n", err)
  end)

  it('refuses an unknown option with exit 2 and the nearest name', function()
    local code, _, err = run({ 'version', '--otput', 'json' })
    assert.equal(2, code)
    assert.equal("error: unknown option '--otput'\nhint: did you mean '--output'?\n", err)
  end)

  it('refuses values that do not parse with exit 2', function()
    for _, argv in ipairs({ { '-o', 'xml', 'version' }, { '--timeout', 'soon', 'version' },
        { '--set', 'ackers', 'version' }, { '--color', 'maybe', 'version' },
        { 'completion', 'tcsh' }, { 'version', 'surplus' }, { '--cluster' } }) do
      local code, out, err = run(argv)
      assert.equal(2, code, table.concat(argv, ' '))
      assert.equal('', out)
      assert.truthy(err:find('^error: '), err)
    end
  end)

  it('takes global options before and after the command', function()
    local _, before = run({ '-o', 'json', 'version' })
    local _, after = run({ 'version', '--output=json' })
    assert.equal(before, after)
    assert.equal('string', type(json.decode(after).version))
  end)

  it('reads the twin of a global option, which the option itself overrides', function()
    local _, out = run({ 'version' }, { STREAMLUA_OUTPUT = 'json' })
    assert.equal('{', out:sub(1, 1))
    _, out = run({ 'version', '-o', 'table' }, { STREAMLUA_OUTPUT = 'json' })
    assert.equal('streamlua', out:sub(1, 9))
  end)

  it('refuses a twin that does not parse with exit 2 and names the variable', function()
    local code, _, err = run({ 'version' }, { STREAMLUA_TIMEOUT = 'soon' })
    assert.equal(2, code)
    assert.truthy(err:find("error: STREAMLUA_TIMEOUT 'soon'", 1, true))
  end)

  it('prints one JSON object on standard error when JSON is asked for', function()
    for _, argv in ipairs({ { '-o', 'json', 'nope' }, { 'nope', '-ojson' },
        { '--output=json', 'nope' }, { '--output', 'json', 'nope' }, { '-vojson', 'nope' } }) do
      local code, out, err = run(argv)
      assert.equal(2, code)
      assert.equal('', out)
      local document = assert(json.decode(err))
      assert.equal('usage', document.error.code)
      assert.equal("unknown command 'nope'", document.error.message)
      assert.equal('string', type(document.error.hint))
    end
  end)

  it('shows the help of every command with its options', function()
    for _, name in ipairs(require('streamlua.cli.commands').names()) do
      local code, out = run({ name, '--help' })
      assert.equal(0, code, name)
      assert.truthy(out:find('^Usage: streamlua ' .. name), name)
      local _, same = run({ 'help', name })
      assert.equal(out, same)
    end
  end)

  it('gives every command a summary of one line', function()
    for _, name in ipairs(require('streamlua.cli.commands').names()) do
      local module = require('streamlua.cli.commands').load(name)
      assert.equal(name, module.name)
      assert.equal('string', type(module.summary), name)
      assert.falsy(module.summary:find('\n'), name)
      assert.is_true(#module.summary < 75, name)
    end
  end)

  it('prints the version for --version, as JSON too', function()
    local code, out = run({ '--version' })
    assert.equal(0, code)
    assert.truthy(out:find('^streamlua %d+%.%d+%.%d+\n'))
    code, out = run({ '--version', '-o', 'json' })
    assert.equal(0, code)
    assert.equal('number', type(json.decode(out).abi))
  end)

  it('needs a command when there are only options', function()
    local code, _, err = run({ '-v' })
    assert.equal(2, code)
    assert.truthy(err:find('a command is required', 1, true))
  end)

  it('turns values of --set into numbers and booleans when they read like ones', function()
    assert.equal(2, cli.set_value('2'))
    assert.equal(-1.5, cli.set_value('-1.5'))
    assert.equal(1e9, cli.set_value('1e9'))
    assert.is_true(cli.set_value('true'))
    assert.is_false(cli.set_value('false'))
    assert.equal('10GiB', cli.set_value('10GiB'))
    assert.equal('', cli.set_value(''))
    assert.equal('0x10', cli.set_value('0x10'))
    assert.equal('nan', cli.set_value('nan'))
    assert.equal('1.2.3', cli.set_value('1.2.3'))
    assert.equal('12345678901234567890', cli.set_value('12345678901234567890'))
  end)
end)
