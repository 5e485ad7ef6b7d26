local stdlib = require 'posix.stdlib'
local unistd = require 'posix.unistd'
local conf = require 'streamlua.conf'
local data = require 'streamlua.conf.data'
local errors = require 'streamlua.cli.error'
local files = require 'support.files'
local schema = require 'streamlua.conf.schema'
local stat = require 'posix.sys.stat'

describe('data in Lua syntax', function()
  local function load(text)
    return data.load_text(text, 'x.lua')
  end

  it('is the table that the text returns, with helpers for units', function()
    assert.same({ a = 1, b = { 'x', { c = true } }, ram = 2147483648, disk = 65536, t = 0.25, u = 90 },
      (load("return { a = 1, b = { 'x', { c = true } }, ram = GB(2), disk = KB(64), t = ms(250), "
        .. 'u = sec(90) }')))
  end)

  it('reads variables of the environment with a default', function()
    stdlib.setenv('SL_SPEC_VALUE', 'here')
    assert.same({ a = 'here', b = 'other' },
      (load("return { a = env('SL_SPEC_VALUE', 'x'), b = env('SL_SPEC_NOTHING', 'other') }")))
    stdlib.setenv('SL_SPEC_VALUE', nil)
  end)

  it('refuses what is no data, with the path of the key and its line', function()
    for text, wanted in pairs({
      ['return {\n a = { b = function() end } }'] = { 'a.b: a function is no data', 2 },
      ['local t = {} t.t = t return t'] = { 't: the table contains itself' },
      ['return { list = { 1, { x = print or function() end } } }'] = { 'list.[2].x: a function' },
      ['return 5'] = { 'must return a table, it returned a number' },
      ['return'] = { 'must return a table, it returned nothing' },
      ['return { [{}] = 1 }'] = { 'a table is no key' },
    }) do
      local values, err = load(text)
      assert.is_nil(values, text)
      assert.truthy(err.message:find(wanted[1], 1, true), err.message)
      assert.equal(wanted[2], err.line)
    end
  end)

  it('reports syntax errors and raised errors with their line', function()
    local values, err = load('return {\n a = \n}')
    assert.is_nil(values)
    assert.equal(3, err.line)
    values, err = load('local x\nreturn { a = x.y }')
    assert.is_nil(values)
    assert.equal(2, err.line)
  end)

  it('has an empty environment', function()
    for _, name in ipairs({ 'print', 'os', 'io', 'require', 'getmetatable', 'setmetatable', 'load',
        'string', 'pcall', '_G', 'loadstring', 'jit', 'package' }) do
      local values = load(('return { known = %s ~= nil }'):format(name))
      assert.same({ known = false }, values, name)
    end
    -- Methods of strings would reach beyond the environment.
    assert.is_nil((load("return { a = ('x'):rep(10) }")))
    assert.equal('xx', ('x'):rep(2))
  end)

  it('refuses compiled Lua', function()
    local values, err = load(string.dump(function() return {} end))
    assert.is_nil(values)
    assert.truthy(err.message:find('only text', 1, true))
  end)

  it('stops a text that loops for ever, and leaves the JIT as it was', function()
    local before = jit.status()
    local most = data.MAX_INSTRUCTIONS
    data.MAX_INSTRUCTIONS = 100000
    local values, err = load('while true do end')
    assert.is_nil(values)
    assert.truthy(err.message:find('runs too long', 1, true))
    values = load('local function f() while true do end end f()')
    assert.is_nil(values)
    data.MAX_INSTRUCTIONS = most
    assert.equal(before, jit.status())
  end)

  it('knows the lines of keys', function()
    local lines = data.key_lines([[
-- comment with { key = 1 }
return {
  a = 1, ['b'] = 2,
  --[=[ c = 3,
  ]=]
  d = {
    e = "x = 1, { f = 2 }",
    [ "g" ] = { h = [==[ i = 4 }]==], j = 5 },
  },
  k = (2 == 2),
}]])
    assert.same({ a = 3, b = 3, d = 6, ['d.e'] = 7, ['d.g'] = 8, ['d.g.h'] = 8, ['d.g.j'] = 8,
      k = 10 }, lines)
  end)
end)

describe('settings', function()
  local directory, old_directory, old = nil, nil, {}

  local function write(name, text)
    local file = assert(io.open(directory .. '/' .. name, 'wb'))
    file:write(text)
    file:close()
    return directory .. '/' .. name
  end

  local function failure(options)
    local ok, err = pcall(conf.load, options)
    assert.is_false(ok)
    assert.is_true(errors.is(err), tostring(err))
    return err
  end

  local function getenv(values)
    return function(name)
      return values[name]
    end
  end

  before_each(function()
    directory = files.folder()
    for _, name in ipairs { '/home', '/home/streamlua', '/home/streamlua/conf', '/conf' } do
      assert(stat.mkdir(directory .. name))
    end
    old_directory = unistd.getcwd()
    unistd.chdir(directory)
    for _, name in ipairs({ 'XDG_CONFIG_HOME', 'XDG_STATE_HOME' }) do
      old[name] = os.getenv(name) or false
    end
    stdlib.setenv('XDG_CONFIG_HOME', directory .. '/home')
    stdlib.setenv('XDG_STATE_HOME', directory .. '/state')
  end)

  after_each(function()
    unistd.chdir(old_directory)
    for name, value in pairs(old) do
      stdlib.setenv(name, value or nil)
    end
    files.clean()
  end)

  it('have built-in values and those of conf/local.lua', function()
    local config = conf.load()
    assert.equal('local', config.values.cluster)
    assert.equal('packed', config.values.scheduler)
    assert.is_true(config.values.scheduler_service)
    assert.equal('localfs:' .. directory .. '/state/streamlua', config.values.state)
    assert.equal('built in', config.source.state.text)
    assert.truthy(config.source.scheduler.text:find('^conf/local%.lua:%d+$'))
  end)

  it('come from conf/standalone.lua for that cluster', function()
    local config = conf.load({ globals = { cluster = { value = 'standalone', origin = 'flag' } } })
    assert.equal('balanced', config.values.scheduler)
    assert.is_false(config.values.scheduler_service)
    assert.equal('--cluster', config.source.cluster.text)
  end)

  it('are taken from the highest layer that names them', function()
    write('home/streamlua/config.lua', "return { state_timeout = '1s' }")
    local function timeout(options)
      local config = conf.load(options)
      return config.values.state_timeout, config.source.state_timeout.text
    end
    local value, source = timeout()
    assert.equal('1s', value)
    assert.equal(directory .. '/home/streamlua/config.lua:1', source)
    write('streamlua.conf.lua', "return {\n  state_timeout = '2s' }")
    value, source = timeout()
    assert.equal('2s', value)
    assert.equal('./streamlua.conf.lua:2', source)
    local environment = getenv({ STREAMLUA_STATE_TIMEOUT = '3s' })
    value, source = timeout({ getenv = environment })
    assert.equal('3s', value)
    assert.equal('STREAMLUA_STATE_TIMEOUT', source)
    value, source = timeout({ getenv = environment, set = { state_timeout = '4s' } })
    assert.equal('4s', value)
    assert.equal('--set', source)
  end)

  it('are merged key by key', function()
    write('home/streamlua/config.lua', 'return { config = { a = 1, b = { c = 1, d = 1 } } }')
    write('streamlua.conf.lua', 'return { config = { b = { c = 2 } } }')
    local config = conf.load({ set = { ['config.e'] = 5 } })
    assert.same({ a = 1, b = { c = 2, d = 1 }, e = 5 }, config.values.config)
    assert.equal('./streamlua.conf.lua:1', config.source['config.b.c'].text)
    assert.equal(directory .. '/home/streamlua/config.lua:1', config.source['config.b.d'].text)
    assert.equal('--set', config.source['config.e'].text)
  end)

  it('of lists are replaced, not merged', function()
    write('home/streamlua/config.lua', "return { isolation = { 'h1', 'h2' } }")
    write('streamlua.conf.lua', "return { isolation = { 'h3' } }")
    assert.same({ 'h3' }, conf.load().values.isolation)
  end)

  it('are read from --config instead of the usual files', function()
    write('streamlua.conf.lua', "return { state_timeout = '2s', packing = 'first_fit_decreasing' }")
    local path = write('other.lua', "return { state_timeout = '7s' }")
    local config = conf.load({ globals = { config = { value = path, origin = 'flag' } } })
    assert.equal('7s', config.values.state_timeout)
    assert.equal('round_robin', config.values.packing)
    write('own.lua', "return { config = { input = 'x' } }")
    config = conf.load({ globals = { config = { value = 'own.lua', origin = 'flag' } } })
    assert.same({ input = 'x' }, config.values.config)
    local err = failure({ globals = { config = { value = 'nope.lua', origin = 'flag' } } })
    assert.equal(3, err.exit)
    assert.equal('nope.lua', err.file)
  end)

  it('may name the cluster in a file, and clusters of one\'s own', function()
    write('streamlua.conf.lua', "return { cluster = 'mine' }")
    write('conf/mine.lua', "return { state = 'zookeeper://a:2181/x' }")
    assert.equal('zookeeper://a:2181/x', conf.load().values.state)
    write('home/streamlua/conf/mine.lua', "return { state = 'zookeeper://b:2181/x' }")
    assert.equal('zookeeper://b:2181/x', conf.load().values.state)
  end)

  it('of an unknown cluster are not found, with the nearest name', function()
    local err = failure({ globals = { cluster = { value = 'standalon', origin = 'flag' } } })
    assert.equal(3, err.exit)
    assert.equal("did you mean 'standalone'?", err.hint)
    err = failure({ globals = { cluster = { value = '../x', origin = 'flag' } } })
    assert.equal(2, err.exit)
  end)

  it('that are unknown or wrong name the key, the file and the line', function()
    write('streamlua.conf.lua', "return {\n  state_timeuot = '2s',\n}")
    local err = failure()
    assert.equal(7, err.exit)
    assert.equal('./streamlua.conf.lua:2', (err.message:match('^(%S+:%d+):')) and
      './' .. err.message:match('^(%S+:%d+):'))
    assert.equal(2, err.line)
    assert.equal("did you mean 'state_timeout'?", err.hint)
    for text, why in pairs({
      ["return { state_timeout = 'soon' }"] = 'expected a duration',
      ['return { max_spout_pending = 0 }'] = 'at least 1',
      ['return { max_spout_pending = 1.5 }'] = 'a whole number',
      ['return { key_groups = 32769 }'] = 'within 1..32768',
      ["return { acking = 'yes' }"] = 'expected true or false',
      ["return { container_ram = 'big' }"] = 'expected a size',
      ["return { color = 'red' }"] = 'one of auto, always, never',
      ['return { isolation = { a = 1 } }'] = 'expected a list',
      ["return { 'x' }"] = 'settings have names',
    }) do
      write('streamlua.conf.lua', text)
      err = failure()
      assert.equal(7, err.exit, text)
      assert.truthy(err.message:find(why, 1, true), err.message)
      assert.truthy(err.message:find('streamlua.conf.lua', 1, true), err.message)
    end
    assert.equal(7, failure({ set = { state_timeout = 'x' } }).exit)
    write('streamlua.conf.lua', 'return {}')
    assert.equal(7, failure({ getenv = getenv({ STREAMLUA_STATE_TIMEOUT = 'x' }) }).exit)
  end)

  it('of the control plane come from the table in C, with defaults and limits', function()
    local values = conf.load({}).values
    -- The first one is of conf/local.lua.
    assert.same({ '2s', '50s', 2, '100ms', '5m', false },
      { values.heartbeat_interval, values.heartbeat_timeout, values.heartbeat_threshold,
        values.registration_initial_timeout, values.registration_timeout, values.spread_slots })
    values = conf.load({ getenv = getenv({ STREAMLUA_SPREAD_SLOTS = 'true',
      STREAMLUA_HEARTBEAT_THRESHOLD = '-1' }), set = { heartbeat_interval = 1 } }).values
    assert.same({ 1, -1, true },
      { values.heartbeat_interval, values.heartbeat_threshold, values.spread_slots })
    for name, value in pairs({ heartbeat_interval = '0s', rpc_timeout = '0.4ms', slots_max = -1,
        heartbeat_threshold = -2, slot_timeout = 'soon' }) do
      assert.equal(7, failure({ set = { [name] = value } }).exit, name)
    end
  end)

  it('that contradict each other name both and where they come from', function()
    write('streamlua.conf.lua', "return {\n  heartbeat_interval = '1m',\n}")
    local err = failure()
    assert.equal(7, err.exit)
    assert.truthy(err.message:find('heartbeat_interval (60000 ms)', 1, true), err.message)
    assert.truthy(err.message:find('heartbeat_timeout (50000 ms)', 1, true), err.message)
    assert.equal('heartbeat_interval: ./streamlua.conf.lua:2, heartbeat_timeout: built in', err.hint)
    assert.equal('2m', conf.load({ set = { heartbeat_timeout = '2m' } }).values.heartbeat_timeout)
  end)

  it('in a file that does not compile or raises name the file and the line', function()
    for text, message in pairs({
      ['return {\n  a = ,\n}'] = "streamlua.conf.lua:2: unexpected symbol near ','",
      ['\nlocal x = nil + 1'] = 'streamlua.conf.lua:2: attempt to perform arithmetic',
      ['return 5'] = "configuration file 'streamlua.conf.lua': the file must return a table",
    }) do
      write('streamlua.conf.lua', text)
      local err = failure()
      assert.equal(7, err.exit)
      assert.equal(message, err.message:sub(1, #message))
    end
  end)

  it('that have two names are decided by the highest layer, by whichever name', function()
    write('streamlua.conf.lua', 'return { workers = 5 }')
    local function names(options)
      local values = conf.load(options).values
      return { values.containers or 0, values.workers or 0 }
    end
    assert.same({ 0, 5 }, names())
    assert.same({ 4, 0 }, names({ getenv = getenv({ STREAMLUA_CONTAINERS = '4' }) }))
    assert.same({ 2, 0 }, names({ set = { containers = 2 } }))
    write('streamlua.conf.lua', 'return { containers = 5 }')
    assert.same({ 0, 4 }, names({ getenv = getenv({ STREAMLUA_WORKERS = '4' }) }))
    assert.same({ 0, 2 }, names({ set = { workers = 2 },
      getenv = getenv({ STREAMLUA_CONTAINERS = '4' }) }))
    write('streamlua.conf.lua', 'return {\n  containers = 5,\n  workers = 4,\n}')
    assert.equal('streamlua.conf.lua:3: setting workers: it is another name of containers, which differs',
      failure().message)
    write('streamlua.conf.lua', 'return {}')
    assert.matches('^STREAMLUA_WORKERS: ', failure({
      getenv = getenv({ STREAMLUA_CONTAINERS = '4', STREAMLUA_WORKERS = '3' }) }).message)
  end)

  it('leave keys of topologies in --set alone', function()
    local config = conf.load({ set = { input = 'x', ['my.key'] = 1, ackers = 2 } })
    assert.is_nil(config.values.input)
    assert.equal(2, config.values.ackers)
  end)

  it('give the cluster\'s defaults of the topology config', function()
    write('streamlua.conf.lua',
      "return { max_spout_pending = 10, state_timeout = '2s', config = { input = 'x' } }")
    assert.same({ max_spout_pending = 10, input = 'x' }, conf.topology_defaults(conf.load()))
    write('streamlua.conf.lua', "return { scheduler = 'even' }")
    assert.same({ scheduler = 'even' }, conf.topology_defaults(conf.load()))
  end)

  it('include other files', function()
    write('conf/10-a.lua', "return { state_timeout = '1s', packing = 'first_fit_decreasing' }")
    write('conf/20-b.lua', "return { state_timeout = '2s' }")
    write('streamlua.conf.lua', "return include('conf/*.lua')")
    local config = conf.load()
    assert.equal('2s', config.values.state_timeout)
    assert.equal('first_fit_decreasing', config.values.packing)
    write('streamlua.conf.lua', "return include('streamlua.conf.lua')")
    assert.truthy(failure().message:find('nested too deeply', 1, true))
    write('streamlua.conf.lua', "return include('nothing.lua')")
    assert.truthy(failure().message:find('no file', 1, true))
    write('conf/30-c.lua', 'return { config = { f = print or function() end } }')
    write('streamlua.conf.lua', "return include('conf/*.lua')")
    assert.truthy(failure().message:find('30-c.lua:1: config.f: a function is no data', 1, true))
    assert(os.remove('conf/30-c.lua'))
    assert(unistd.link('nowhere', 'conf/30-c.lua', true))
    write('streamlua.conf.lua', "return include('conf/*.lua')")
    assert.truthy(failure().message:find('30-c.lua: No such file', 1, true))
  end)

  it('have a sentence each', function()
    for _, entry in ipairs(schema) do
      assert.truthy(entry.text and entry.text:find('%.$'), entry.name)
    end
  end)
end)
