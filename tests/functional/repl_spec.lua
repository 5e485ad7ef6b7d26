-- The REPL at a terminal, and with chunks, scripts and pipes. timeout: 240
local process = require 'support.process'
local terminal = require 'support.terminal'

local SCRIPT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('wc', { workers = 3, ackers = 1 })
local n = 0
local spout = streamlua.spout { fields = { 'line' }, next_tuple = function(_, collector)
  n = n + 1
  if n > 10 then return streamlua.DONE end
  collector:emit({ 'a b' })
end }
local bolt = streamlua.bolt { fields = { 'word' }, execute = function() end }
t:spout('spout', spout, { parallelism = 2 })
t:bolt('split', bolt, { parallelism = 3 }):shuffle('spout')
t:bolt('count', bolt, { parallelism = 3 }):fields('split', { 'word' })
return t
]]

local SCHEDULER = [[
return { name = 'mine', assign = function(request)
  local tasks = {}
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do tasks[#tasks + 1] = task end
  end
  return { workers = { { supervisor = 'SUPERVISOR', port = 6800, tasks = tasks } } }
end }
]]

local PROMPT = 'streamlua> '

local function environment(folder)
  return { HOME = folder, XDG_STATE_HOME = folder .. '/state', XDG_CONFIG_HOME = folder,
    STREAMLUA_OUTPUT = false, NO_COLOR = '1' }
end

local function in_folder(fn)
  process.with_folder(function(folder)
    process.write_file(folder .. '/topo.lua', SCRIPT)
    process.write_file(folder .. '/mine.lua', (SCHEDULER:gsub('SUPERVISOR', 's1')))
    fn(folder)
  end)
end

-- Calls fn(t, folder) with a REPL at its first prompt, and ends it.
local function at_prompt(fn)
  in_folder(function(folder)
    local t = terminal.start({ 'repl' }, { cwd = folder, env = environment(folder) })
    t:expect(PROMPT)
    fn(t, folder)
    assert.equal(0, t:finish())
  end)
end

-- Types a line and gives what is shown before the next prompt.
local function enter(t, line)
  t:type(line .. '\n')
  local shown = t:expect(PROMPT)
  return (shown:gsub('^[^\n]*\n', ''))
end

describe('the REPL at a terminal', function()
  it('schedules with a file that is edited and loaded again', function()
    at_prompt(function(t, folder)
      enter(t, "t = load_topology 'topo.lua'")
      enter(t, 'c = cluster { supervisors = 3, slots = 4 }')
      enter(t, "s = scheduler 'mine.lua'")
      local first = enter(t, 'a = schedule(t, c, { scheduler = s }) return a')
      assert.truthy(first:find('s1          h1    6800     10', 1, true), first)
      process.write_file(folder .. '/mine.lua', (SCHEDULER:gsub('SUPERVISOR', 's2')))
      assert.truthy(enter(t, 's:reload()'):find('scheduler mine (mine.lua)', 1, true))
      enter(t, 'b = schedule(t, c, { scheduler = s })')
      local shown = enter(t, 'diff(a, b)')
      assert.truthy(shown:find('s1          h1    6800  REMOVED         -1-10', 1, true), shown)
      assert.truthy(shown:find('s2          h2    6800  NEW      +1-10', 1, true), shown)
      assert.truthy(shown:find('0 tasks kept, 10 moved', 1, true), shown)
      assert.truthy(enter(t, 'evaluate(b)'):find('max_tasks%s+10'))
    end)
  end)

  it('survives errors and remembers values', function()
    at_prompt(function(t)
      assert.truthy(enter(t, 'error("no luck")'):find('no luck', 1, true))
      assert.truthy(enter(t, '_err'):find('no luck', 1, true))
      assert.truthy(enter(t, 'x = = 1'):find('error: ', 1, true))
      assert.truthy(enter(t, 'nothing.there'):find('error: repl:1:', 1, true))
      assert.truthy(enter(t, "load_topology 'none.lua'"):find('error: ', 1, true))
      assert.truthy(enter(t, '20 + 22'):find('42', 1, true))
      assert.truthy(enter(t, '_ + 1'):find('43', 1, true))
      enter(t, 'local kept = 7')
      assert.truthy(enter(t, 'kept, kept + 1'):find('7\n8', 1, true))
      assert.truthy(enter(t, '_1 * 100'):find('700', 1, true))
    end)
  end)

  it('asks for more lines until a chunk is complete', function()
    at_prompt(function(t)
      t:type('for i = 1, 2 do\n')
      t:expect('>> ')
      t:type('print("line " .. i)\n')
      t:expect('>> ')
      local shown = enter(t, 'end')
      assert.truthy(shown:find('line 1\nline 2', 1, true), shown)
      t:type('40 +\n')
      t:expect('>> ')
      assert.truthy(enter(t, '2'):find('42', 1, true))
      assert.truthy(enter(t, 'end'):find("error: repl:1: '<eof>' expected near 'end'", 1, true))
    end)
  end)

  it('stops a running chunk on Ctrl-C, a tight loop and one that catches errors, too', function()
    at_prompt(function(t)
      for _, loop in ipairs({ 'while true do end', 'repeat until false',
        'while true do pcall(error) end', 'local function f() return f() end f()',
        'while true do pcall(function() while true do end end) end',
        'coroutine.wrap(function() while true do end end)()' }) do
        t:type('print("star" .. "ted") ' .. loop .. '\n')
        t:expect('started')
        t:type('\3')
        t:expect('error: interrupted')
        t:expect(PROMPT)
      end
      assert.truthy(enter(t, '1 + 1'):find('2', 1, true))
    end)
  end)

  it('stops a scheduler that loops for ever', function()
    at_prompt(function(t, folder)
      process.write_file(folder .. '/loop.lua', 'return { assign = function() print("in" .. "side") '
        .. 'while true do end end }')
      enter(t, "t = load_topology 'topo.lua'")
      t:type("schedule(t, cluster { supervisors = 3, slots = 4 }, { scheduler = 'loop.lua' })\n")
      t:expect('inside')
      t:type('\3')
      t:expect('interrupted')
      t:expect(PROMPT)
    end)
  end)

  it('drops the line being typed on Ctrl-C', function()
    at_prompt(function(t)
      t:type('this is no lua')
      t:expect('no lua')
      t:type('\3')
      t:expect('^C')
      t:expect(PROMPT)
      assert.truthy(enter(t, '1 + 2'):find('3', 1, true))
      t:type('for i = 1, 2 do\n')
      t:expect('>> ')
      t:type('\3')
      t:expect(PROMPT)
      assert.truthy(enter(t, '2 + 2'):find('4', 1, true))
    end)
  end)

  it('takes pasted lines as if they were typed', function()
    in_folder(function(folder)
      local env = environment(folder)
      env.TERM = 'xterm'
      local t = terminal.start({ 'repl' }, { cwd = folder, env = env })
      t:expect(PROMPT)
      t:type('\27[200~x = 40\nfor i = 1, 2 do\n  x = x + 1\nend\nx + 100\27[201~\n')
      t:expect('\n142\n')
      t:expect(PROMPT)
      assert.equal(0, t:finish())
    end)
  end)

  it('lets go of a terminal that it has set up, too, on Ctrl-C', function()
    in_folder(function(folder)
      local env = environment(folder)
      env.TERM = 'xterm'
      local t = terminal.start({ 'repl' }, { cwd = folder, env = env })
      t:expect(PROMPT)
      for _ = 1, 3 do
        t:type('some words')
        t:expect('some words')
        t:type('\3')
        t:expect(PROMPT)
      end
      assert.truthy(enter(t, '1 + 2'):find('3', 1, true))
      assert.equal(0, t:finish())
    end)
  end)

  it('leaves at the second Ctrl-C of an empty prompt, and with .quit', function()
    in_folder(function(folder)
      local t = terminal.start({ 'repl' }, { cwd = folder, env = environment(folder) })
      t:expect(PROMPT)
      t:type('\3')
      t:expect('(Ctrl-C again or Ctrl-D leaves)')
      t:expect(PROMPT)
      assert.equal(0, t:finish('\3'))
      t = terminal.start({ 'repl' }, { cwd = folder, env = environment(folder) })
      t:expect(PROMPT)
      assert.equal(0, t:finish('.quit\n'))
    end)
  end)

  it('completes names, fields, methods and files', function()
    at_prompt(function(t)
      enter(t, "t = load_topology 'topo.lua'")
      local function completed(typed, whole)
        t:type(typed .. '\t')
        t:expect(whole)
        t:type('\3')
        t:expect(PROMPT)
      end
      completed('load_top', 'load_topology')
      completed('streamlua.top', 'streamlua.topology')
      completed('streamlua.sp', 'streamlua.sp')
      completed('streamlua.key_g', 'streamlua.key_group')
      completed('t:valid', 't:validate')
      completed("load_topology 'top", "load_topology 'topo.lua")
      completed('.rel', '.reload')
    end)
  end)

  it('shows help and source of a name', function()
    at_prompt(function(t)
      local shown = enter(t, 'schedule?')
      assert.truthy(shown:find('schedule(t, cluster, opts)', 1, true), shown)
      assert.truthy(shown:find('Assigns the tasks of a topology', 1, true), shown)
      assert.truthy(enter(t, 'evaluate??'):find('scheduling.evaluate', 1, true))
      assert.truthy(enter(t, 'nonsense?'):find('there is no nonsense', 1, true))
      assert.truthy(enter(t, '.help'):find('.load FILE', 1, true))
    end)
  end)

  it('keeps its history in a file', function()
    in_folder(function(folder)
      local function session(fn)
        local t = terminal.start({ 'repl' }, { cwd = folder, env = environment(folder) })
        t:expect(PROMPT)
        fn(t)
        assert.equal(0, t:finish())
      end
      session(function(t) enter(t, '6 * 7 -- remembered') end)
      assert.truthy(process.read_file(folder .. '/state/streamlua/history')
        :find('6 * 7 -- remembered', 1, true))
      session(function(t)
        t:type('\16')
        t:expect('6 * 7 -- remembered')
        t:type('\n')
        t:expect('42')
        t:expect(PROMPT)
      end)
    end)
  end)

  it('goes on without a history where none can be written', function()
    in_folder(function(folder)
      process.write_file(folder .. '/state', 'a file, no folder')
      local t = terminal.start({ 'repl' }, { cwd = folder, env = environment(folder) })
      t:expect(PROMPT)
      assert.equal('42\n', enter(t, '6 * 7'))
      assert.equal('43\n', enter(t, '6 * 7 + 1'))
      assert.equal(0, t:finish())
    end)
  end)

  it('runs a topology and goes on', function()
    at_prompt(function(t)
      enter(t, "t = load_topology 'topo.lua'")
      local shown = enter(t, "r = run(t, { ttl = '20s' }) return r.components.split.executed")
      assert.truthy(shown:find('20', 1, true), shown)
      assert.truthy(enter(t, '1 + 1'):find('2', 1, true))
    end)
  end)

  it('drains a running topology on Ctrl-C and goes on', function()
    at_prompt(function(t, folder)
      process.write_file(folder .. '/endless.lua', (SCRIPT:gsub('if n > 10 then return streamlua.DONE end',
        "if n == 1 then io.stderr:write('is under way\\n') end")))
      enter(t, "t = load_topology 'endless.lua'")
      for _ = 1, 2 do
        t:type('r = run(t)\n')
        t:expect('is under way')
        t:type('\3')
        t:expect(PROMPT)
        assert.truthy(enter(t, 'r.components.spout.emitted > 0'):find('true', 1, true))
      end
      -- Ctrl-C is the session's again.
      t:type('print("star" .. "ted") while true do end\n')
      t:expect('started')
      t:type('\3')
      t:expect('error: interrupted')
      t:expect(PROMPT)
    end)
  end)

  it('connects to a cluster that is there and not to another', function()
    at_prompt(function(t)
      assert.truthy(enter(t, "connect 'prod'"):find("cluster 'prod': no conf/prod.lua", 1, true))
      assert.truthy(enter(t, 'connect()'):find("cluster 'local'", 1, true))
      assert.truthy(enter(t, '#connect():list()'):find('%d'))
      assert.truthy(enter(t, "connect():plan 'nix'"):find("topology 'nix': no topology", 1, true))
    end)
  end)

  it('reads plain lines where lua-readline is missing', function()
    in_folder(function(folder)
      process.write_file(folder .. '/readline.lua', 'error("not installed")')
      local t = terminal.start({ 'repl' }, { cwd = folder, env = (function()
        local env = environment(folder)
        env.LUA_PATH = folder .. '/?.lua;;'
        return env
      end)() })
      t:expect(PROMPT)
      t:type('20 + 22\n')
      t:expect('42')
      t:expect(PROMPT)
      assert.equal(0, t:finish())
    end)
  end)
end)

describe('the REPL without a terminal', function()
  local function run(folder, args, input)
    local words = { 'repl' }
    for _, word in ipairs(args) do words[#words + 1] = word end
    return process.run(words, { cwd = folder, env = environment(folder), stdin = input })
  end

  it('ends with 1 at an error of piped input, with its line', function()
    in_folder(function(folder)
      local r = run(folder, {}, 'error("x")\n')
      assert.equal(1, r.code)
      assert.equal('', r.stdout)
      assert.truthy(r.stderr:find('error: stdin:1: x', 1, true), r.stderr)
      r = run(folder, {}, 'print(1)\nfor i = 1, 2 do\n  print(i)\nend\n\nerror("late")\nprint(9)\n')
      assert.equal(1, r.code)
      assert.equal('1\n1\n2\n', r.stdout)
      assert.truthy(r.stderr:find('stdin:6: late', 1, true), r.stderr)
      r = run(folder, {}, 'for i = 1, 2 do\n')
      assert.equal(1, r.code)
      assert.truthy(r.stderr:find("'end' expected near '<eof>'", 1, true), r.stderr)
    end)
  end)

  it('prints the values of piped lines', function()
    in_folder(function(folder)
      local r = run(folder, {}, 'x = 20\nx + 22\n{ a = 1, "b" }\n')
      assert.equal(0, r.code, r.stderr)
      assert.equal('42\n{ "b", a = 1 }\n', r.stdout)
    end)
  end)

  it('prints documents as tables with print, too', function()
    in_folder(function(folder)
      local r = run(folder, { '-e', "t = load_topology 'topo.lua' "
        .. "print(schedule(t, cluster { supervisors = 3, slots = 4 })) print('a', nil, 1, { 2 })" })
      assert.equal(0, r.code, r.stderr)
      assert.truthy(r.stdout:find('SUPERVISOR  HOST  PORT  TASKS  WHICH\n', 1, true), r.stdout)
      assert.truthy(r.stdout:find('\na\tnil\t1\t{ 2 }\n$'), r.stdout)
    end)
  end)

  it('shows each error of a run once', function()
    in_folder(function(folder)
      process.write_file(folder .. '/fails.lua', [[
local streamlua = require 'streamlua'
local t = streamlua.topology('fails')
t:spout('s', streamlua.spout { fields = { 'n' }, next_tuple = function(self, collector)
  self.n = (self.n or 0) + 1
  if self.n > 50 then return streamlua.DONE end
  collector:emit { self.n }
end })
t:bolt('b', streamlua.bolt { execute = function() error('no') end }):shuffle('s')
return t
]])
      local r = run(folder, { '-e', "run(load_topology 'fails.lua').components.b.errors" })
      assert.same({ 0, '50\n' }, { r.code, r.stdout }, r.stderr)
      assert.truthy(r.stderr:find('^error: b%[0%]: [^\n]*:8: no\n[^\n]*are counted only\n$'), r.stderr)
    end)
  end)

  it('evaluates -e and scripts', function()
    in_folder(function(folder)
      local r = run(folder, { '-e', '1 + 1' })
      assert.equal(0, r.code, r.stderr)
      assert.equal('2\n', r.stdout)
      r = run(folder, { '-e', 'x = 20', '-e', 'x + 22' })
      assert.equal('42\n', r.stdout, r.stderr)
      assert.equal(1, run(folder, { '-e', 'error("x")' }).code)
      assert.equal(1, run(folder, { '-e', 'x = =' }).code)
      process.write_file(folder .. '/play.lua', "local t = load_topology 'topo.lua'\n"
        .. "print(#schedule(t, cluster { supervisors = 3, slots = 4 }).workers)\n")
      r = run(folder, { 'play.lua' })
      assert.equal(0, r.code, r.stderr)
      assert.equal('3\n', r.stdout)
      process.write_file(folder .. '/bad.lua', '\nerror("in the file")')
      r = run(folder, { 'bad.lua' })
      assert.equal(1, r.code)
      assert.truthy(r.stderr:find('bad.lua:2: in the file', 1, true), r.stderr)
      assert.equal(3, run(folder, { 'none.lua' }).code)
    end)
  end)

  it('ends with 5 when a script needs a cluster that is not there', function()
    in_folder(function(folder)
      local r = run(folder, { '-e', 'connect()', '--timeout', '300ms', '--state',
        'zookeeper://127.0.0.1:1/none' })
      assert.equal(5, r.code, r.stderr)
    end)
  end)

  it('prints documents as JSON with -o json', function()
    in_folder(function(folder)
      local r = run(folder, { '-o', 'json', '-e', "schedule(load_topology 'topo.lua', cluster { "
        .. "supervisors = 3, slots = 4 })" })
      assert.equal(0, r.code, r.stderr)
      assert.equal(3, #require('streamlua.json').decode(r.stdout).workers)
    end)
  end)

  it('prints one document with -o json, the last value', function()
    in_folder(function(folder)
      local function document(args, stdin)
        local r = process.run({ 'repl', '-o', 'json', unpack(args) }, { cwd = folder, stdin = stdin })
        assert.equal(0, r.code, r.stderr)
        return r.stdout, r.stderr
      end
      assert.equal('2\n', document { '-e', '1', '-e', '2' })
      assert.equal('2\n', document { '-e', '1, 2' })
      assert.matches('^{"kind":"plan","same":false,"topology":"t",.*"started":1,', document { '-e',
        "p = pack { topology = 't', components = { { name = 's', kind = 'spout', parallelism = 2 } } }",
        '-e', 'diff(p, repack(p, { s = 1 }))' })
      assert.equal('null\n', document { '-e', 'x = 1' })
      assert.equal('{"a":[1]}\n', document({}, '7\n{ a = { 1 } }\n'))
      local text, log = document { '-e', 'print "p" io.write "w" return 3' }
      assert.equal('3\n', text)
      assert.matches('p', log)
      assert.matches('w', log)
      process.write_file(folder .. '/value.lua', 'return { 4 }')
      assert.equal('[4]\n', document { '-e', '5', 'value.lua' })
      for _, chunk in ipairs { 'error "x"', 'print', '{ function() end }' } do
        local r = process.run({ 'repl', '-o', 'json', '-e', '1', '-e', chunk }, { cwd = folder })
        assert.equal(1, r.code)
        assert.equal('', r.stdout)
      end
    end)
  end)
end)
