-- labels: short
local files = require 'support.files'
local json = require 'streamlua.json'
local process = require 'support.process'

local function run(args, options)
  options = options or {}
  options.env = options.env or {}
  -- The settings of whoever runs the specs must not matter.
  for _, name in ipairs({ 'STREAMLUA_STATE', 'STREAMLUA_OUTPUT', 'STREAMLUA_COLOR', 'NO_COLOR' }) do
    if options.env[name] == nil then
      options.env[name] = false
    end
  end
  return process.run(args, options)
end

local function shell(script, options)
  options = options or {}
  options.program = 'bash'
  return process.run({ '-c', script }, options)
end

describe('streamlua', function()
  it('shows its help without arguments and for --help', function()
    local bare, asked = run({}), run({ '--help' })
    assert.equal(0, bare.code)
    assert.equal(bare.stdout, asked.stdout)
    assert.truthy(bare.stdout:find('Usage: streamlua', 1, true))
    assert.equal('', bare.stderr)
  end)

  it('fails with 2 for an unknown command and offers the nearest', function()
    local r = run({ 'versoin' })
    assert.equal(2, r.code)
    assert.equal('', r.stdout)
    assert.equal("error: unknown command 'versoin'\nhint: did you mean 'version'?\n", r.stderr)
    r = run({ 'versoin', '-o', 'json' })
    assert.equal(2, r.code)
    assert.same({ error = { code = 'usage', message = "unknown command 'versoin'",
      hint = "did you mean 'version'?" } }, json.decode(r.stderr))
  end)

  it('names the versions of its libraries', function()
    local document = json.decode(run({ 'version', '-o', 'json' }).stdout)
    for _, field in ipairs({ 'version', 'abi', 'luajit' }) do
      assert.truthy(document[field], field)
    end
  end)

  it('explains the settings and honours the twin of every option', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/streamlua.conf.lua', "return {\n  state_timeout = '9s',\n}\n")
      local r = run({ 'config', 'view', '--explain', '-o', 'json', '--set', 'ackers=2' },
        { cwd = folder, env = { STREAMLUA_STATE = 'localfs:elsewhere', XDG_CONFIG_HOME = folder } })
      assert.equal(0, r.code, r.stderr)
      local found = {}
      for _, row in ipairs(json.decode(r.stdout).settings) do
        found[row.key] = row
      end
      assert.equal('localfs:elsewhere', found.state.value)
      assert.equal('STREAMLUA_STATE', found.state.source)
      assert.equal('9s', found.state_timeout.value)
      assert.equal('./streamlua.conf.lua:2', found.state_timeout.source)
      assert.equal(2, found.state_timeout.line)
      assert.equal(2, found.ackers.value)
      assert.equal('--set', found.ackers.source)
      assert.equal('built in', found.acking.source)
      assert.equal('packed', found.scheduler.value)
    end)
  end)

  it('hides secrets', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/c.lua', "return { secret = 'hunter2' }")
      for _, more in ipairs({ {}, { '--explain' }, { '-o', 'json' } }) do
        local r = run({ '--config', folder .. '/c.lua', 'config', 'view', unpack(more) })
        assert.equal(0, r.code)
        assert.falsy(r.stdout:find('hunter2', 1, true))
      end
    end)
  end)

  it('still works with a broken configuration where that is not needed', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/streamlua.conf.lua', 'return {')
      assert.equal(0, run({ 'version' }, { cwd = folder }).code)
      local r = run({ 'config', 'view' }, { cwd = folder })
      assert.equal(7, r.code)
      assert.truthy(r.stderr:find('streamlua.conf.lua', 1, true))
    end)
  end)

  it('runs programs with their arguments', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/beside.lua', "return 'found'")
      process.write_file(folder .. '/p.lua', [[
        local name = ...
        print(arg[0]:match('[^/]+$'), name, arg[2], #arg, require('beside'),
          type(require('streamlua.json').encode))]])
      local r = run({ 'exec', folder .. '/p.lua', '-o', '--help' })
      assert.equal('p.lua\t-o\t--help\t2\tfound\tfunction\n', r.stdout)
      assert.equal(0, r.code)
      r = run({ 'exec', '-' }, { stdin = 'io.write(1 + 1)' })
      assert.equal('2', r.stdout)
      process.write_file(folder .. '/q.lua', 'os.exit(5, true)')
      assert.equal(5, run({ 'exec', folder .. '/q.lua' }).code)
    end)
  end)

  it('reports the error of a program in one line with exit 1', function()
    process.with_folder(function(folder)
      local path = folder .. '/e.lua'
      for text, message in pairs({
        ["local x\nx.y = 1"] = path .. ":2: attempt to index local 'x' (a nil value)",
        ['local ='] = path .. ":1: '<name>' expected near '='",
        ["require 'no.such.thing'"] = path .. ":1: module 'no.such.thing' not found",
        ["error({})"] = '(error object is a table value)',
      }) do
        process.write_file(path, text)
        local r = run({ 'exec', path })
        assert.equal(1, r.code)
        assert.equal('error: ' .. message .. '\n', r.stderr)
        local verbose = run({ '-v', 'exec', path })
        assert.equal(r.stderr, verbose.stderr:match('^[^\n]*\n'))
      end
      process.write_file(path, "error('x')")
      assert.truthy(run({ '-v', 'exec', path }).stderr:find('stack traceback', 1, true))
      local document = json.decode(run({ '-o', 'json', 'exec', path }).stderr)
      assert.equal(1, document.error.line)
      assert.equal(path, document.error.file)
      local r = run({ 'exec', folder .. '/missing.lua' })
      assert.equal(3, r.code)
      assert.truthy(r.stderr:find('missing.lua', 1, true))
    end)
  end)

  it('runs specs and tells by the exit code how they went', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/good_spec.lua',
        "it('counts', function() assert.equal(2, 1 + 1) assert.truthy(require('ffi').C) end)")
      process.write_file(folder .. '/bad_spec.lua', "it('fails', function() assert.equal(1, 2) end)")
      assert.equal(0, run({ 'test', folder .. '/good_spec.lua' }).code)
      local r = run({ 'test', folder })
      assert.equal(1, r.code)
      assert.truthy(r.stdout:find('1 success / 1 failure', 1, true))
      r = run({ 'test', folder, '-o', 'json' })
      assert.equal(1, r.code)
      local document = json.decode(r.stdout)
      assert.equal(1, document.passed)
      assert.equal(1, document.failed)
      assert.equal(2, #document.tests)
      assert.equal(0, run({ 'test', '--filter', 'counts', folder }).code)
      assert.equal(3, run({ 'test', folder .. '/none' }).code)
    end)
  end)

  it('checks the machine', function()
    process.with_folder(function(folder)
      local r = run({ 'doctor', '-o', 'json', '--state', 'localfs:' .. folder .. '/state' })
      assert.equal(0, r.code, r.stdout)
      assert.is_true(json.decode(r.stdout).ok)
      r = run({ 'doctor', '--state', 'nonsense' })
      assert.equal(1, r.code)
      assert.truthy(r.stdout:find('✗ state', 1, true))
    end)
  end)

  it('ends quietly when the reader of its output goes away', function()
    local r = shell(([[set -o pipefail; '%s' --help | head -c 1; echo " ${PIPESTATUS[0]}"]])
      :format(process.binary))
    assert.equal('', r.stderr)
    local code = tonumber(r.stdout:match('^U (%d+)\n$'))
    assert.is_true(code == 0 or code == 141, r.stdout)
    -- With the signal ignored by a parent the write fails instead.
    r = shell(([[trap '' PIPE; ('%s' completion bash; echo "end $?" >&2) | true]])
      :format(process.binary))
    assert.truthy(r.stderr:find('^end %d+\n$'), r.stderr)
  end)

  it('reports output that can not be written', function()
    local r = shell(("'%s' --help > /dev/full"):format(process.binary))
    assert.equal(1, r.code)
    assert.truthy(r.stderr:find('No space left', 1, true), r.stderr)
  end)

  it('refuses a state that is nowhere, and makes no files', function()
    local folder = files.folder()
    for url, why in pairs({ ['localfs:'] = 'has no directory', ['memory:'] = 'ends with the process' }) do
      local r = run({ 'list', '--state', url }, { cwd = folder })
      assert.equal(7, r.code)
      assert.truthy(r.stderr:find(("^error: state URL '%s'.*%s"):format(url, why)), r.stderr)
    end
    assert.equal('', shell('ls ' .. folder).stdout)
    -- One that can not be reached is told as such, without the node that was wanted.
    local path = files.write('plain', '')
    for _, words in ipairs({ { 'list' }, { 'kill', 'wc' }, { 'submit', 'scripts/topologies/exclamation.lua' } }) do
      words[#words + 1], words[#words + 2] = '--state', 'localfs:' .. path
      local r = run(words)
      assert.equal(5, r.code)
      assert.truthy(r.stderr:find(('state manager: open the state directory %s: Not a directory\n')
        :format(path), 1, true), r.stderr)
    end
    files.clean()
  end)

  it('takes the last of two overrides of one key, by whichever of its names', function()
    local script = 'scripts/topologies/exclamation.lua'
    for _, case in ipairs({ { 'workers=2', 'containers=3', 3 }, { 'containers=3', 'workers=2', 2 } }) do
      local r = run({ 'plan', script, '-o', 'json', '--set', case[1], '--set', case[2] })
      assert.equal(case[3], #json.decode(r.stdout).containers, r.stderr)
    end
  end)

  it('colours only when asked or on a terminal', function()
    assert.falsy(run({ 'nope' }).stderr:find('\27', 1, true))
    assert.truthy(run({ 'doctor', '--color', 'always' }).stdout:find('\27[32m', 1, true))
  end)
end)

describe('completion', function()
  -- What bash would offer for a line whose last word is being typed.
  local function complete(...)
    local words = { ... }
    local quoted = {}
    for i, word in ipairs(words) do
      quoted[i] = "'" .. word .. "'"
    end
    local r = shell(([[
      source <('%s' completion bash)
      COMP_WORDS=(%s) COMP_CWORD=%d
      _streamlua
      printf '%%s\n' "${COMPREPLY[@]}"]]):format(process.binary, table.concat(quoted, ' '),
      #words - 1))
    assert.equal(0, r.code, r.stderr)
    assert.equal('', r.stderr)
    local found = {}
    for word in r.stdout:gmatch('%S+') do
      found[word] = true
      found[#found + 1] = word
    end
    return found
  end

  it('offers the commands', function()
    local found = complete('streamlua', 'ver')
    assert.same({ 'version' }, { unpack(found) })
    found = complete('streamlua', '')
    for _, name in ipairs({ 'exec', 'config', 'doctor', 'test' }) do
      assert.is_true(found[name], name)
    end
  end)

  it('offers global options and those of the command', function()
    assert.same({ '--cluster' }, { unpack(complete('streamlua', '--clu')) })
    local found = complete('streamlua', 'test', '--')
    assert.is_true(found['--filter'])
    assert.is_true(found['--output'])
    assert.is_nil(complete('streamlua', 'exec', '--')['--filter'])
  end)

  it('offers the values of an option, and subcommands', function()
    assert.same({ 'table', 'json' }, { unpack(complete('streamlua', '--output', '')) })
    assert.same({ 'never' }, { unpack(complete('streamlua', '--color', 'n')) })
    assert.is_true(complete('streamlua', 'config', 'v')['view'])
  end)

  it('is registered for the command and falls back to files', function()
    local r = shell(("source <('%s' completion bash); complete -p streamlua"):format(process.binary))
    assert.equal(0, r.code)
    assert.truthy(r.stdout:find('-F _streamlua', 1, true))
    assert.truthy(r.stdout:find('default', 1, true))
  end)

  it('exists for zsh and fish', function()
    local zsh = run({ 'completion', 'zsh' })
    assert.equal(0, zsh.code)
    assert.truthy(zsh.stdout:find('^#compdef streamlua'))
    local fish = run({ 'completion', 'fish' })
    assert.equal(0, fish.code)
    assert.truthy(fish.stdout:find('complete -c streamlua', 1, true))
    assert.equal(2, run({ 'completion', 'tcsh' }).code)
  end)
end)
