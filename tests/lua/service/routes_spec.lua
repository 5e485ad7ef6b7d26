-- labels: short
-- The routes of the HTTP API against a client that notes what it is asked: heron 1.3 and 1.7.

local errors = require 'streamlua.err'
local form = require 'streamlua.service.form'
local json = require 'streamlua.json'
local routes = require 'streamlua.service.routes'

-- Calls of the client and command lines, as texts.
local calls, cli_result

local function note(...)
  local words = {}
  for i = 1, select('#', ...) do words[i] = tostring((select(i, ...))) end
  calls[#calls + 1] = table.concat(words, ' ')
end

local client = {
  names = function() return { 'words' } end,
  list = function() return { { name = 'words' } } end,
  load = function(_, name)
    if name ~= 'words' then return nil, errors.new('ENOTFOUND', 'no topology of that name is running') end
    return { name = name, execution = { state = 'RUNNING' } }
  end,
  set_active = function(self, name, active, timeout_ms)
    note('set_active', name, active, timeout_ms)
    local found, failure = self:load(name)
    if not found then return nil, failure end
    return true
  end,
  restart = function(_, name, container, timeout_ms)
    note('restart', name, container, timeout_ms)
    if container == 9 then return nil, errors.new('ENOTFOUND', 'words has no container 9') end
    return true
  end,
  kill = function(self, name, wait_ms, timeout_ms, purge)
    note('kill', name, wait_ms, timeout_ms, purge and 'purge' or nil)
    return self:load(name)
  end,
  logs = function(_, name, options)
    note('logs', name, options.container, options.tail, options.after[1], options.wait_ms)
    return options.container == 9 and {} or { { container = 1, lines = {}, at = 0 } }
  end,
}

local environment = {
  cluster = 'local', launcher = 'local', scheduler = 'packed',
  with_client = function(fn) return fn(client) end,
  cli = function(argv)
    note('cli', unpack(argv))
    return unpack(cli_result)
  end,
}

local function ask(method, target, body, content_type)
  return routes.answer({ method = method, target = target, body = body or '',
    type = content_type or (body and 'application/x-www-form-urlencoded' or '') }, environment)
end

-- Rows {status, method, target, body or nil, type or nil; calls=, message=}.
local function check(rows)
  for _, row in ipairs(rows) do
    calls = {}
    local status, document = ask(row[2], row[3], row[4], row[5])
    local shown = ('%s %s: %s'):format(row[2], row[3], tostring(json.encode(document)))
    assert.equal(row[1], status, shown)
    if row.calls then assert.same(row.calls, calls, shown) end
    if status >= 400 then
      assert.is_string(document.message)
      assert.is_string(document.error.code)
      assert.matches(row.message or '', document.message, 1, true)
    end
  end
end

local TOPOLOGY = '/api/v1/topologies/words'

describe('the HTTP API', function()
  before_each(function() cli_result = { 0, '{"ok":true}', '' } end)

  it('carries out actions by name, also in the long form', function()
    check({
      { 200, 'GET', '/api/v1/topologies' }, { 200, 'GET', '/api/v1/cluster' },
      { 200, 'POST', TOPOLOGY .. '/activate', calls = { 'set_active words true 60000' } },
      { 200, 'POST', TOPOLOGY .. '/deactivate', 'timeout=5s',
        calls = { 'set_active words false 5000' } },
      { 200, 'POST', TOPOLOGY .. '/restart', 'container=2', calls = { 'restart words 2 60000' } },
      { 200, 'POST', TOPOLOGY .. '/restart', 'container_id=2', calls = { 'restart words 2 60000' } },
      { 200, 'DELETE', TOPOLOGY .. '?wait=2s&timeout=9s', calls = { 'kill words 2000 9000 nil' } },
      { 200, 'DELETE', TOPOLOGY .. '?purge=true', calls = { 'kill words 0 30000 purge' } },
      { 200, 'POST', '/api/v1/topologies/LOCAL/me/default/words/activate',
        calls = { 'set_active words true 60000' } },
      { 200, 'DELETE', '/api/v1/topologies/local/me/default/words' },
      { 200, 'GET', TOPOLOGY .. '/logs?container=1&tail=3&after=1:77&wait=5s',
        calls = { 'logs words 1 3 77 5000' } },
    })
  end)

  it('tells an unknown topology by its code, whatever is said of it: 404', function()
    check({
      { 404, 'DELETE', '/api/v1/topologies/other' },
      { 404, 'POST', '/api/v1/topologies/other/activate' },
      { 404, 'GET', '/api/v1/topologies/other' },
      { 404, 'POST', TOPOLOGY .. '/restart', 'container=9', message = 'has no container 9' },
      { 404, 'GET', TOPOLOGY .. '/logs?container=9' },
      { 404, 'POST', '/kill', '{"topology":"other"}', 'application/json' },
    })
  end)

  it('refuses what it does not know or can not read: 422', function()
    check({
      { 422, 'POST', '/api/v1/topologies/elsewhere/me/default/words/activate', calls = {},
        message = "unknown cluster 'elsewhere'" },
      { 422, 'POST', TOPOLOGY .. '/activate', 'timeot=5s', calls = {}, message = "'timeot'" },
      { 422, 'POST', TOPOLOGY .. '/activate', 'timeout=soon', calls = {} },
      { 422, 'POST', TOPOLOGY .. '/activate', '{}', 'application/json', calls = {} },
      { 422, 'POST', TOPOLOGY .. '/restart', 'container=1.5', calls = {} },
      { 422, 'POST', TOPOLOGY .. '/restart', 'container=-1', calls = {} },
      { 422, 'POST', TOPOLOGY .. '/restart', 'container=1&container_id=2', calls = {} },
      { 422, 'POST', TOPOLOGY .. '/restart', 'container=1&container=2', calls = {},
        message = 'exactly one' },
      { 422, 'POST', '/api/v1/topologies/a%20b/activate', calls = {} },
      { 422, 'POST', '/api/v1/topologies/__system/activate', calls = {} },
      { 422, 'GET', TOPOLOGY .. '/logs?after=1', calls = {} },
    })
  end)

  it('has no other paths and methods', function()
    check({
      { 404, 'GET', '/' }, { 404, 'GET', '/api' }, { 404, 'GET', '/api/v1' },
      { 404, 'GET', '/api/v2/topologies' }, { 404, 'GET', '/api/v1/other' },
      { 404, 'POST', TOPOLOGY .. '/explode' }, { 404, 'GET', TOPOLOGY .. '/version' },
      { 404, 'GET', TOPOLOGY .. '/NAME' }, { 404, 'GET', '/api/v1/topologies/a/b/c' },
      { 405, 'POST', TOPOLOGY }, { 405, 'GET', TOPOLOGY .. '/activate' },
      { 405, 'PUT', '/api/v1/topologies' }, { 405, 'GET', '/update' },
      { 400, 'GET', '/api/%zz' },
    })
  end)

  describe('update', function()
    local UPDATE = TOPOLOGY .. '/update'

    it('takes parallelism and a number of containers together', function()
      check({
        { 200, 'POST', UPDATE, 'component_parallelism=a:2&component_parallelism=b%3D3'
          .. '&container_number=4&if_version=2&force=true',
          calls = { 'cli update words --parallelism a:2 --parallelism b=3 --containers 4 '
            .. '--if-version 2 --force -o json' } },
        { 200, 'POST', UPDATE, 'mode=reassign&drain_timeout=5s',
          calls = { 'cli update words --mode reassign --drain-timeout 5s -o json' } },
      })
    end)

    it('refuses runtime_config, several container_number, and nothing at all', function()
      check({
        { 422, 'POST', UPDATE, 'runtime_config=a:b', calls = {}, message = 'runtime_config' },
        { 422, 'POST', UPDATE, 'component_parallelism=a:2&runtime_config=a:b', calls = {} },
        { 422, 'POST', UPDATE, 'container_number=1&container_number=2', calls = {} },
        { 422, 'POST', UPDATE, 'container_number=0', calls = {} },
        { 422, 'POST', UPDATE, nil, calls = {}, message = 'is needed' },
        { 422, 'POST', UPDATE, 'dry_run=true', calls = {} },
        { 422, 'POST', UPDATE, 'packing=my.lua', calls = {}, message = 'built in' },
        { 422, 'POST', UPDATE, 'mode=other', calls = {} },
        { 422, 'POST', UPDATE, 'component_parallelism=a:2&force=perhaps', calls = {} },
      })
    end)

    it('answers a dry run with its text, in a format of any case', function()
      for format, argv in pairs({ ['json'] = '-o json --color never', JSON = '-o json --color never',
        Table = '-o table --color never', colored_table = '-o table --color always',
        COLORED_TABLE = '-o table --color always' }) do
        calls = {}
        local status, document = ask('POST', UPDATE,
          'component_parallelism=a:2&dry_run=true&dry_run_format=' .. format)
        assert.equal(200, status)
        assert.same({ response = '{"ok":true}' }, document)
        assert.same({ 'cli update words --parallelism a:2 --dry-run ' .. argv }, calls)
      end
      check({ { 422, 'POST', UPDATE,
        'component_parallelism=a:2&dry_run=true&dry_run_format=yaml', calls = {},
        message = 'dry_run_format' } })
    end)

    it('fails as the command does', function()
      for code, status in pairs({ [1] = 500, [2] = 422, [3] = 404, [4] = 409, [5] = 503, [6] = 504,
        [7] = 422, [8] = 500, [9] = 500 }) do
        cli_result = { code, '', '{"error":{"code":"x","message":"why"}}\n' }
        local answered, document = ask('POST', UPDATE, 'component_parallelism=a:2')
        assert.equal(status, answered)
        assert.same({ message = 'why', error = { code = 'x', message = 'why' } }, document)
      end
      -- Also where the result would be a text, with colours or without.
      for _, told in ipairs({ 'warning: w\nerror: why: so\nhint: do\n',
          '\27[31merror:\27[0m why: so\n\27[36mhint:\27[0m do\n' }) do
        cli_result = { 4, '', told }
        local answered, document = ask('POST', UPDATE, 'component_parallelism=a:2&dry_run=true')
        assert.equal(409, answered)
        assert.same({ message = 'why: so', error = { code = 'conflict', message = 'why: so',
          hint = 'do' } }, document)
      end
    end)
  end)

  it('takes documents as a scheduler does, and refuses those that can not be', function()
    local plan = { topology = 'words', version = 1, packing = 'round_robin', containers = {
      { id = 1, cpu = 1, ram = 1024, disk = 1024, instances = { { component = 'a', task = 1,
        index = 0, cpu = 1, ram = 1024, disk = 1024 } } } } }
    local empty = { topology = 'words', version = 1, packing = 'round_robin', containers = {} }
    local function update(document)
      return ask('POST', '/update', assert(json.encode(document)), 'application/json')
    end
    function client.update(_, current, proposed, components, options)
      note('update', current.topology, #proposed.containers, components[1], options.lock_ms)
      return { outcome = 'done', from_version = 1, to_version = 2 }
    end
    calls = {}
    assert.equal(200, (update({ current = plan, proposed = plan, components = { 'a' } })))
    assert.same({ 'update words 1 a 5000' }, calls)
    for _, document in ipairs({ {}, { current = plan, proposed = empty, components = { 'a' } },
      { current = plan, components = { 'a' } }, { current = plan, proposed = plan },
      { current = plan, proposed = plan, components = { 'b' } },
      { current = plan, proposed = plan, components = { 7 } },
      { current = plan, proposed = plan, components = { 'a' }, options = { lock_ms = -1 } },
      { current = plan, proposed = plan, components = { 'a' }, options = { mode = 'other' } },
      { current = plan, proposed = plan, components = { 'a' },
        options = { schedule = { scheduler = 'mine.lua', request = {} } } },
      { current = plan, proposed = plan, components = { 'a' },
        options = { schedule = { scheduler = 'even', request = {} } } },
      { current = plan, proposed = plan, components = { 'a' }, options = 'x' } }) do
      assert.equal(422, (update(document)))
    end
    client.update = function() return { outcome = 'rolled_back', reason = 'why' } end
    local status, document = update({ current = plan, proposed = plan, components = { 'a' } })
    assert.equal(500, status)
    assert.equal('rolled_back', document.error.code)
    check({
      { 200, 'POST', '/kill', '{"topology":"words","wait_ms":5}', 'application/json',
        calls = { 'kill words 5 30000 nil' } },
      { 200, 'POST', '/restart', '{"topology":"words","container":2}', 'application/json',
        calls = { 'restart words 2 60000' } },
      { 422, 'POST', '/kill', '{"topology":7}', 'application/json' },
      { 422, 'POST', '/kill', '{"topology":"a b"}', 'application/json' },
      { 422, 'POST', '/kill', '{', 'application/json' }, { 422, 'POST', '/kill', 'a=b' },
      { 422, 'POST', '/restart', '{"topology":"words","container":0.5}', 'application/json' },
      { 422, 'POST', '/restart', '{"topology":"words","timeout_ms":1e99}', 'application/json' },
    })
  end)

  it('refuses submissions that are not whole', function()
    local function submit(parts)
      local body, content_type = form.multipart_text(parts, 'mark')
      return ask('POST', '/api/v1/topologies', body, content_type)
    end
    assert.equal(422, (submit({})))
    assert.equal(422, (submit({ { name = 'name', content = 'words' } })))
    assert.equal(422, (submit({ { name = 'other', content = 'words' } })))
    local whole = { { name = 'name', content = 'words' }, { name = 'definition', content = 'no' },
      { name = 'plan', content = '{}' }, { name = 'components', content = '[]' },
      { name = 'script', content = 'words.lua' } }
    local status, document = submit(whole)
    assert.equal(422, status)
    assert.matches('the definition can not be read', document.message)
    check({ { 422, 'POST', '/api/v1/topologies', '{}', 'application/json' } })
  end)
end)
