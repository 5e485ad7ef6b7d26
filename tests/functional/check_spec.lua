-- labels: short
local files = require 'support.files'
local json = require 'streamlua.json'
local process = require 'support.process'

local head = [[
local streamlua = require 'streamlua'
local function nothing() end
local function spout() return streamlua.spout { fields = { 'word' }, next_tuple = nothing } end
local function bolt() return streamlua.bolt { fields = { 'word' }, execute = nothing } end
local t = streamlua.topology('t')
]]
local HEAD_LINES = 5

-- Runs check on a script of this text, by a relative path, as users do.
local function check(text, args, options)
  files.write('topo.lua', text)
  local line = { 'check', 'topo.lua' }
  for _, word in ipairs(args or {}) do line[#line + 1] = word end
  options = options or {}
  options.cwd = files.folder()
  return process.run(line, options)
end

-- Asserts that a declaration behind `head` gives exactly this problem at this line behind it.
local function assert_problem(body, line, text, severity)
  local r = check(head .. body .. '\nreturn t\n')
  local lines = {}
  for one in r.stdout:gmatch('[^\n]+') do lines[#lines + 1] = one end
  assert.equal(1, #lines, r.stdout .. r.stderr)
  local prefix = ('topo.lua:%d: %s: '):format(HEAD_LINES + line, severity or 'error')
  assert.equal(prefix, lines[1]:sub(1, #prefix))
  assert.truthy(lines[1]:find(text, 1, true), lines[1])
  assert.equal(severity == 'warning' and 0 or 7, r.code)
end

describe('streamlua check', function()
  after_each(files.clean)

  it('says nothing on standard output about a good script and exits 0', function()
    local r = check(head .. "t:spout('s', spout())\nt:bolt('b', bolt()):shuffle('s')\nreturn t")
    assert.equal('', r.stdout)
    assert.equal("topology 't': ok\n", r.stderr)
    assert.equal(0, r.code)
  end)

  it('A7 refuses an unknown component, field or stream in a grouping', function()
    local s = "t:spout('1', spout(), { parallelism = 3 })\n"
    local b = "t:bolt('2', bolt(), { parallelism = 4 }):fields("
    local valid = check(head .. s .. b .. "'1', { 'word' })\nreturn t")
    assert.equal(0, valid.code)
    assert_problem(s .. b .. "'3', { 'word' })", 2, "'3', which is no component")
    assert_problem(s .. b .. "'1', { 'non-exists-field' })", 2, "no field 'non-exists-field'")
    assert_problem(s .. b .. "'1', { 'word' }, 'non-exists-stream')", 2,
      "no stream 'non-exists-stream'")
  end)

  it('refuses duplicate names, fields and inputs', function()
    assert_problem("t:spout('s', spout())\nt:spout('s', spout())", 2, "'s' is declared twice")
    assert_problem("t:spout('s', streamlua.spout { fields = { 'a', 'a' }, next_tuple = nothing })", 1,
      "names the field 'a' twice")
    assert_problem("t:spout('s', spout())\nt:bolt('b', bolt()):shuffle('s')\n  :all('s')", 3,
      "reads stream 'default' of 's' twice")
  end)

  it('refuses topologies without spouts, spouts with inputs and bolts without', function()
    assert_problem('', 0, "topology 't' has no spout")
    assert_problem("t:spout('s', spout())\nt:spout('x', spout()):shuffle('s')", 2, "'x' has inputs")
    assert_problem("t:spout('s', spout())\nt:bolt('b', bolt())", 2, "'b' has no inputs")
  end)

  it('refuses parallelism 0, -1, 1.5, 1e9 and NaN', function()
    for text, shown in pairs { ['0'] = '0', ['-1'] = '-1', ['1.5'] = '1.5', ['1e9'] = '1000000000',
      ['0/0'] = 'nan' } do
      assert_problem(("t:spout('s', spout(), { parallelism = %s })"):format(text), 1,
        "parallelism of 's' is " .. shown)
    end
  end)

  it('refuses names with /, control characters, 300 characters and __x', function()
    for _, name in ipairs { "'a/b'", "'a\\nb'", "'a\\0b'", "('x'):rep(300)", "'__x'" } do
      assert_problem(("t:spout(%s, spout())"):format(name), 1, 'component name')
      assert_problem(("t:spout('s', streamlua.spout { next_tuple = nothing, streams = { [%s] = {} } })")
        :format(name), 1, 'stream name')
    end
    local r = check("return require('streamlua').topology('a/b')")
    assert.equal(7, r.code)
    assert.truthy(r.stdout:find("topo.lua:1: error: topology name 'a/b'", 1, true))
  end)

  it('refuses direct groupings without direct streams', function()
    assert_problem("t:spout('s', spout())\nt:bolt('b', bolt()):direct('s', 'default')", 2,
      'declared direct')
  end)

  it('tells every problem of a script, in the order of the lines', function()
    local r = check(head .. "t:spout('s', spout(), { parallelism = 0 })\n"
      .. "t:bolt('b', bolt(), { ram = 'lots' }):shuffle('x')\nreturn t")
    assert.equal(7, r.code)
    local lines = {}
    for line in r.stdout:gmatch('topo.lua:(%d+): error: ') do lines[#lines + 1] = tonumber(line) end
    assert.same({ 6, 7, 7 }, lines)
    assert.truthy(r.stderr:find('3 errors', 1, true))
  end)

  it('warns of cycles, unreachable bolts and misspelt keys, and exits 0', function()
    assert_problem("t:spout('s', spout())\nt:bolt('a', bolt()):shuffle('s'):shuffle('a')", 2,
      "'a' -> 'a'", 'warning')
    local r = check("local s = require 'streamlua'\n"
      .. "local t = s.topology('t', { contaners = 2 })\n"
      .. "t:spout('s', s.spout { next_tuple = function() end })\nreturn t")
    assert.equal(0, r.code)
    assert.truthy(r.stdout:find("^topo.lua:2: warning: config key 'contaners' looks like 'containers'"))
    assert_problem("t:spout('s', spout())\nlocal b = streamlua.bolt { execute = nothing, ack = 'manual' }\n"
      .. "t:bolt('b', b):shuffle('s')", 2, "'b': bolt key 'ack' is your own; did you mean 'manual_ack'?",
      'warning')
  end)

  it('checks the config with the overrides of --set', function()
    local text = head .. "t:spout('s', spout())\nt:bolt('b', bolt(), { parallelism = 4 })"
      .. ":fields('s', { 'word' })\nreturn t"
    assert.equal(0, check(text).code)
    local r = check(text, { '--set', 'key_groups=3' })
    assert.equal(7, r.code)
    assert.truthy(r.stdout:find('topo.lua:7: error: ', 1, true))
    assert.equal(7, check(text, { '--set', 'message_timeout=soon' }).code)
  end)

  it('tells the line of a syntax error and of an error that is raised', function()
    local r = check('local x\nlocal = 1\n')
    assert.equal(7, r.code)
    assert.truthy(r.stdout:find('^topo.lua:2: error: .*near'))
    r = check('\n\nlocal x = nil + 1')
    assert.equal(7, r.code)
    assert.truthy(r.stdout:find('^topo.lua:3: error: attempt to perform arithmetic'))
    assert.is_nil(r.stderr:find('traceback'))
    r = check('\n\nlocal x = nil + 1', { '-v' })
    assert.truthy(r.stderr:find('traceback'))
    r = check(head .. "t:bolt('b', bolt(), { paralelism = 2 })")
    assert.truthy(r.stdout:find("^topo.lua:6: error: bolt 'b': unknown option 'paralelism'"))
  end)

  it('tells of scripts that return nothing or something else', function()
    for text, what in pairs { [''] = 'nothing', ['return 1'] = 'a number', ['return {}'] = 'a table' } do
      local r = check(text)
      assert.equal(7, r.code)
      assert.truthy(r.stdout:find('^topo.lua:1: error: it returned ' .. what), r.stdout)
    end
  end)

  it('ends a script that loads for ever, also a loop that the JIT compiled', function()
    for _, loop in ipairs { 'while true do end', 'local n = 0 while true do n = n + 1 end',
      'while true do pcall(error) end' } do
      local r = check('\n' .. loop, { '--timeout', '300ms' })
      assert.equal(7, r.code)
      assert.truthy(r.stdout:find('^topo.lua:1: error: still loading after 300ms'))
    end
  end)

  it('tells of a script that ends the process', function()
    local r = check('os.exit(0)')
    assert.equal(7, r.code)
    assert.truthy(r.stdout:find('^topo.lua:1: error: it ended the process'))
  end)

  it('keeps what the script prints away from its own output', function()
    local r = check("print('hello')\n" .. head .. "t:spout('s', spout())\nreturn t", { '-o', 'json' })
    assert.equal(0, r.code)
    assert.truthy(r.stderr:find('hello', 1, true))
    assert.is_true(assert(json.decode(r.stdout)).valid)
  end)

  it('prints one JSON document with -o json', function()
    local r = check(head .. "t:spout('s', spout(), { parallelism = 0 })\nreturn t", { '-o', 'json' })
    assert.equal(7, r.code)
    local document = assert(json.decode(r.stdout))
    assert.equal('t', document.topology)
    assert.is_false(document.valid)
    assert.equal(1, #document.problems)
    local problem = document.problems[1]
    assert.equal('topo.lua', problem.file)
    assert.equal(6, problem.line)
    assert.equal('error', problem.severity)
    assert.equal('bad-parallelism', problem.code)
    assert.equal('invalid', assert(json.decode(r.stderr)).error.code)
  end)

  it('exits 3 for a missing script and 2 for a wrong option', function()
    local r = process.run({ 'check', 'none.lua' }, { cwd = files.folder() })
    assert.equal(3, r.code)
    assert.equal("error: script 'none.lua': no such file\nhint: check the path of the script\n",
      r.stderr)
    assert.equal(2, process.run({ 'check' }).code)
    assert.equal(2, check('return 1', { '--timeout', 'soon' }).code)
    assert.equal(2, check('return 1', { '--nonsense' }).code)
  end)
end)
