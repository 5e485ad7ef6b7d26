-- Parts of the REPL that need no terminal: printing, completion, help, sessions, fuzzing.
local complete = require 'streamlua.repl.complete'
local files = require 'support.files'
local fuzz = require 'streamlua.repl.fuzz'
local help = require 'streamlua.repl.help'
local json = require 'streamlua.json'
local printer = require 'streamlua.repl.printer'
local sessions = require 'streamlua.repl.session'

-- A session whose output is collected in `out` and `err`.
local function session(options)
  local out, err = {}, {}
  local function sink(list)
    return { write = function(_, ...)
      for _, text in ipairs({ ... }) do list[#list + 1] = text end
    end, flush = function() end }
  end
  local self = sessions.new {
    is_interactive = not options or options.is_interactive ~= false,
    context = { output = 'table', verbose = 0, set = {}, settings = {}, stdout = sink(out),
      stderr = sink(err), getenv = os.getenv },
  }
  return self, function()
    local text, errors = table.concat(out), table.concat(err)
    for i = #out, 1, -1 do out[i] = nil end
    for i = #err, 1, -1 do err[i] = nil end
    return text, errors
  end
end

describe('printing values', function()
  it('shows scalars as Lua reads them', function()
    assert.equal('"a\\nb"', printer.text('a\nb'))
    assert.equal('12', printer.text(12))
    assert.equal('1.5', printer.text(1.5))
    assert.equal('nil', printer.text(nil))
    assert.equal('9007199254740993', printer.text(9007199254740993LL))
    assert.equal('null', printer.text(json.null))
  end)

  it('shows tables with positions first and keys sorted', function()
    assert.equal('{ 1, 2, a = "x", ["end"] = true }', printer.text({ 1, 2, ['end'] = true, a = 'x' }))
    assert.equal('{}', printer.text({}))
  end)

  it('cuts what is deep, long or cyclic', function()
    assert.equal('{ { { {...} } } }', printer.text({ { { { 1 } } } }))
    local cycle = {}
    cycle.me = cycle
    assert.equal('{ me = <cycle> }', printer.text(cycle))
    local long = {}
    for i = 1, 60 do long[i] = i end
    assert.truthy(printer.text(long):find('... 10 more', 1, true))
    assert.falsy(printer.text(long, { form = 'lua' }):find('more', 1, true))
    assert.truthy(printer.text({ { { { 1 } } } }, { form = 'lua' }):find('{ { { { 1 } } } }', 1, true))
  end)

  it('shows lists of records as tables', function()
    assert.equal('A  B\n1  x\n2', printer.text({ { a = 1, b = 'x' }, { a = 2 } }))
  end)

  it('shows documents as their commands do', function()
    local assignment = { topology = 't', scheduler = 'balanced',
      workers = { { supervisor = 's1', host = 'h1', port = 1, tasks = { 1, 2, 3 } } } }
    assert.truthy(printer.text(assignment):find('1 worker on 1 supervisor, 3 tasks each', 1, true))
    assert.truthy(printer.text({ workers = 1, min_tasks = 3, max_tasks = 3 }):find('max_tasks', 1,
      true))
    assert.equal('{"a":1}', printer.text({ a = 1 }, { form = 'json' }))
  end)
end)

describe('completion', function()
  local env = { schedule = print, scheduler = print, t = { name = 'x', nested = { deep = 1 },
    check = print } }
  setmetatable(env.t, { __index = { validate = print } })

  local function matches(line)
    local from = #line - #line:match('[^%s"\'(=,]*$') + 1
    return complete.matches(env, line, from, #line)
  end

  it('offers names, keywords and fields', function()
    assert.same({ 'schedule', 'scheduler' }, matches('schedul'))
    assert.same({ 'return' }, matches('retur'))
    assert.same({ 't.name', 't.nested' }, matches('x = t.n'))
    assert.same({ 't.nested.deep' }, matches('t.nested.'))
  end)

  it('offers only functions behind a colon, those of a metatable, too', function()
    assert.same({ 't:check', 't:validate' }, matches('t:'))
  end)

  it('offers methods of strings, dot commands and nothing for what is not there', function()
    env.text = 'abc'
    assert.same({ 'text:upper' }, matches('text:up'))
    assert.same({ '.load', }, matches('.lo'))
    assert.same({}, matches('nothing.there'))
  end)

  it('offers files in quotes and modules for require', function()
    files.write('topo.lua', '')
    files.write('folder/x', '')
    local folder = files.folder()
    assert.same({ folder .. '/topo.lua' }, matches("load_topology '" .. folder .. '/to'))
    assert.same({ folder .. '/folder/' }, matches('f("' .. folder .. '/fo'))
    local found = matches("require 'streamlua.uni")
    assert.same({ 'streamlua.units' }, found)
    files.clean()
  end)
end)

describe('help', function()
  local scheduling = require 'streamlua.scheduling'
  local env = { scheduling = scheduling, assign = scheduling.assign, number = 3 }

  it('shows signature and docstring of a function', function()
    local text = help.text(env, 'assign')
    assert.truthy(text:find('M.assign(request, scheduler, options)', 1, true), text)
    assert.truthy(text:find('Assigns a request.', 1, true), text)
    assert.equal(text, (help.text(env, 'scheduling.assign')))
  end)

  it('shows the source, members and other values', function()
    assert.truthy(help.text(env, 'assign', true):find('is_builtin', 1, true))
    assert.truthy(help.text(env, 'scheduling'):find('evaluate', 1, true))
    assert.equal('number is a number: 3', help.text(env, 'number'))
    assert.equal('there is no what.ever (what is nil)', help.text(env, 'what.ever'))
  end)
end)

describe('a session', function()
  it('tells incomplete chunks from wrong ones', function()
    local s, shown = session()
    assert.equal('incomplete', s:feed('for i = 1, 2 do'))
    assert.equal('incomplete', s:feed('  x = i'))
    assert.equal('ok', s:feed('end'))
    assert.equal('ok', s:feed('x'))
    assert.equal('2\n', (shown()))
    assert.equal('error', s:feed('x = )'))
    assert.equal('incomplete', s:feed('f('))
    s:drop()
    assert.equal('ok', s:feed('x + 1'))
    assert.equal('3\n', (shown()))
  end)

  it('keeps values, errors and what a line declares as local', function()
    local s, shown = session()
    s:feed('local a, b = 1, 2')
    s:feed('local function add(x, y) return x + y end')
    s:feed('add(a, b), "second"')
    assert.equal('3\n"second"\n', (shown()))
    s:feed('_1, _2, _')
    assert.equal('3\n"second"\n"second"\n', (shown()))
    assert.equal('error', s:feed('error({ message = "odd" })'))
    local _, errors = shown()
    assert.equal('error: odd\n', errors)
    s:feed('_err.message')
    assert.equal('"odd"\n', (shown()))
    assert.equal('ok', s:evaluate('local c\nd = c == nil'))
    s:feed('d')
    assert.equal('true\n', (shown()))
  end)

  it('does not touch the globals of the process', function()
    local s = session()
    s:feed('only_here = 1')
    assert.is_nil(rawget(_G, 'only_here'))
  end)

  it('runs dot commands', function()
    local s, shown = session()
    files.write('play.lua', 'counter = (counter or 0) + 1\nreturn counter')
    s:feed('.load ' .. files.folder() .. '/play.lua')
    s:feed('.reload')
    s:feed('counter')
    assert.equal('2\n', (shown()))
    files.clean()
    s:feed('.set output json')
    s:feed('{ a = 1 }')
    assert.equal('{"a":1}\n', (shown()))
    assert.equal('error', s:feed('.nonsense'))
    assert.equal('error', s:feed('.set output xml'))
    s:feed('.time 1')
    assert.truthy(shown():find('took ', 1, true))
    s:feed('.quit')
    assert.is_true(s.is_over)
  end)
end)

describe('fuzzing a scheduler', function()
  after_each(files.clean)

  it('finds nothing in the built-in one and something in a wrong one', function()
    assert.same({}, fuzz.run('balanced', { cases = 50 }))
    local path = files.write('wrong.lua', [[return { assign = function(request)
      return { workers = { { supervisor = request.cluster.supervisors[1].id, port = 6800,
        tasks = { 1 } } } } end }]])
    local findings = fuzz.run(path, { cases = 50 })
    assert.is_true(#findings > 0)
    assert.truthy(findings[1].fault:find('leave out task', 1, true))
  end)

  it('gives the same findings for the same seed', function()
    local path = files.write('wrong.lua', 'return { assign = function() error("no") end }')
    assert.same(fuzz.run(path, { seed = 5 }), fuzz.run(path, { seed = 5 }))
  end)
end)
