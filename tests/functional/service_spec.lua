-- timeout: 300
-- The HTTP API with real processes: commands give the same with --service-url as without it.

local cluster = require 'support.standalone'
local commands = require 'support.commands'
local curl = require 'streamlua.service.curl'
local files = require 'support.files'
local json = require 'streamlua.json'
local process = require 'support.process'

local SCRIPT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('counts', { containers = 1, executors = 1, max_spout_pending = 20 })
t:spout('source', streamlua.spout { fields = { 'n' },
  open = function(self) self.n = 0 end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ self.n % 8 }, { id = self.n })
  end })
t:bolt('count', streamlua.bolt { execute = function() end, prepare = function() print('here I am') end,
  }, { parallelism = 2 }):fields('source', { 'n' })
return t
]]

local folder, script, env, api, url

local run = commands.run

-- A command by the HTTP API, which is all that it knows of the cluster.
local function remote(...)
  return process.run({ '--service-url', url, ... }, { cwd = folder,
    env = { STREAMLUA_STATE = 'localfs:' .. folder .. '/nowhere', STREAMLUA_SECRET = env.STREAMLUA_SECRET } })
end

local function document(result)
  assert.equal(0, result.code, result.stderr)
  return assert(json.decode(result.stdout))
end

local function http(method, path, body)
  local answer = assert(curl.request({ method = method, url = url .. path, body = body,
    headers = { 'Content-Type: application/x-www-form-urlencoded' }, timeout_ms = 60000 }))
  return answer.status, json.decode(answer.body)
end

local function start_api(...)
  api = process.start({ 'api', '--listen', '127.0.0.1:0', ... }, { env = env, cwd = folder })
  url = api:expect('stderr', 'api: (http://%S+)')
end

local function stop_api()
  api:signal('TERM')
  assert.equal(143, api:wait().code)
  api = nil
end

describe('the HTTP API', function()
  before_each(function()
    folder, env = commands.open('counts')
    script = files.write('counts.lua', SCRIPT)
  end)

  after_each(function()
    if api then api:signal('KILL') end
    run('kill', 'counts', '-q')
    commands.close()
  end)

  it('serves every command with the same results and exit codes', function()
    start_api()
    assert.same({ topologies = {} }, document(remote('list', '-o', 'json')))
    assert.same({ topology = 'counts', action = 'submit', state = 'RUNNING' },
      document(remote('submit', script, '-o', 'json')))
    assert.equal('counts', document(run('list', '-o', 'json')).topologies[1].name)
    -- What user code prints is there at once.
    assert.matches('here I am', run('logs', 'counts').stdout, 1, true)
    for _, line in ipairs({ { 'list' }, { 'logs', 'counts', '--tail', '1', '-o', 'json' },
      { 'logs', 'counts', '--container', '7' },
      { 'update', 'counts', '--parallelism', 'count=3', '--dry-run' },
      { 'update', 'counts', '--parallelism', 'count=2' },
      { 'update', 'counts', '--parallelism', 'none=2', '-o', 'json' },
      { 'activate', 'other', '-o', 'json' }, { 'restart', 'counts', '--container', '9' },
      { 'submit', script } }) do
      local here, there = run(unpack(line)), remote(unpack(line))
      local shown = table.concat(line, ' ')
      assert.equal(here.code, there.code, shown .. there.stderr)
      -- Seconds pass between the two.
      assert.equal((here.stdout:gsub(' %d+s', '')), (there.stdout:gsub(' %d+s', '')), shown)
      -- Where the logs are is of no use to another machine.
      assert.equal((here.stderr:gsub('hint: logs are in [^\n]*\n', '')), there.stderr, shown)
    end
    assert.equal('PAUSED', document(remote('deactivate', 'counts', '-o', 'json')).state)
    assert.equal('PAUSED', document(remote('describe', 'counts', '-o', 'json')).state)
    assert.matches('was paused already', remote('deactivate', 'counts').stderr)
    assert.equal('RUNNING', document(remote('activate', 'counts', '-o', 'json')).state)
    local grown = document(remote('update', 'counts', '--parallelism', 'count=3', '-o', 'json'))
    assert.same({ 1, 2, { count = 1 } }, { grown.from_version, grown.to_version, grown.changes })
    assert.equal(4, remote('update', 'counts', '--parallelism', 'count=4', '--if-version', '1').code)
    assert.equal(0, remote('restart', 'counts').code)
    -- By parameters, as other programs ask.
    local status, answer = http('POST', '/api/v1/topologies/counts/update',
      'component_parallelism=count:2&container_number=1')
    assert.equal(200, status, answer.message)
    assert.same({ 2, 3 }, { answer.from_version, answer.to_version })
    status, answer = http('GET', '/api/v1/topologies/counts')
    assert.same({ 200, 3, 2 }, { status, answer.plan_version, answer.components[2].parallelism })
    status = http('POST', '/api/v1/topologies/counts/update', 'component_parallelism=count:2')
    assert.equal(409, status)
    assert.same({ topology = 'counts', action = 'kill', state = 'KILLED' },
      document(remote('kill', 'counts', '-o', 'json')))
    assert.same({ topologies = {} }, document(run('list', '-o', 'json')))
    stop_api()
    local result = remote('list')
    assert.equal(5, result.code)
    assert.matches('^error: http://127.0.0.1:%d+: ', result.stderr)
  end)

  it('tells the phases of an update while it is under way, and how it ended', function()
    start_api()
    -- What is in flight stays there until the file is there.
    process.write_file(script, (SCRIPT:gsub('execute = function%(%) end', function()
      return ([[manual_ack = true, tick_every = '10ms',
        execute = function(self, tuple) self.held = { next = self.held, tuple = tuple } end,
        tick = function(self, collector)
          while self.held and io.open('%s/gate') do
            collector:ack(self.held.tuple)
            self.held = self.held.next
          end
        end]]):format(folder)
    end)))
    assert.equal(0, run('submit', script).code)
    local update = process.start({ '--service-url', url, 'update', 'counts', '--parallelism', 'count=3' },
      { cwd = folder, env = { STREAMLUA_STATE = 'localfs:' .. folder .. '/nowhere' } })
    update:expect('stderr', 'update: pausing spouts\nupdate: draining\n')
    assert.is_nil(update.text.stderr:find('plan 2 is in force', 1, true))
    process.write_file(folder .. '/gate', '')
    local result = update:wait()
    assert.equal(0, result.code, result.stderr)
    assert.matches('^update: from plan 1, taking the lock\n.*update: plan 2 is in force\n', result.stderr)
    local _, count = result.stderr:gsub('update: draining\n', '')
    assert.equal(1, count)
    assert.equal('', remote('-q', 'update', 'counts', '--parallelism', 'count=2').stderr)
    assert.equal(0, run('kill', 'counts').code)
    stop_api()
  end)

  it('of a master serves its cluster, of which clients need to know nothing', function()
    script = cluster.open()
    url = cluster.master('--api', '127.0.0.1:0').text.stderr:match('api: (http://%S+)')
    cluster.supervisor(1, 5)
    assert.equal('RUNNING', document(remote('submit', script, '--set', 'folder=' .. folder,
      '-o', 'json')).state)
    local described = document(remote('describe', 'counts', '-o', 'json'))
    assert.equal('balanced', described.scheduler)
    assert.equal('s1', described.containers[1].supervisor)
    local dry = document(remote('update', 'counts', '--parallelism', 'count=3', '--dry-run',
      '-o', 'json'))
    assert.same({ 1, 'balanced' }, { dry.started, cluster.document('describe', 'counts', '-o',
      'json').scheduler })
    local grown = document(remote('update', 'counts', '--parallelism', 'count=3', '-o', 'json'))
    assert.same({ 1, 2, 1 }, { grown.from_version, grown.to_version, grown.started })
    assert.equal(4, remote('update', 'counts', '--mode', 'keep').code)
    local status, answer = http('POST', '/api/v1/topologies/counts/update',
      'component_parallelism=count:2')
    assert.equal(200, status, answer.message)
    assert.equal(0, remote('kill', 'counts', '--purge').code)
    assert.same({}, cluster.processes())
  end)

  it('tells why a submitted topology can not start, and leaves nothing of it', function()
    start_api()
    process.write_file(script, (SCRIPT:gsub("print%('here I am'%)", "error('no such table')")))
    local result = remote('submit', script)
    assert.equal(1, result.code)
    assert.matches('it can not start: .*counts.lua:9: no such table', result.stderr)
    assert.same({ topologies = {} }, document(run('list', '-o', 'json')))
    stop_api()
  end)

  it('wants the secret of the cluster when there is one', function()
    env.STREAMLUA_SECRET = 'sesame'
    start_api()
    assert.same({ topologies = {} }, document(remote('list', '-o', 'json')))
    assert.equal(401, (http('GET', '/api/v1/topologies')))
    assert.equal(0, run('submit', script).code)
    for _, secret in ipairs({ '', 'other' }) do
      env.STREAMLUA_SECRET = secret
      assert.equal(7, remote('list').code)
      local result = run('deactivate', 'counts')
      assert.equal(7, result.code)
      assert.matches('wrong secret', result.stderr, 1, true)
    end
    stop_api()
    -- A secret that is given on the line is not on the lines of what carries requests out.
    start_api('--set', 'secret=sesame')
    env.STREAMLUA_SECRET = 'sesame'
    assert.equal(0, remote('deactivate', 'counts').code)
    assert.equal(0, remote('kill', 'counts').code)
    stop_api()
    env.STREAMLUA_SECRET = nil
    assert.equal(7, run('api', '--listen', 'nowhere').code)
    local result = run('api', '--listen', '0.0.0.0:0')
    assert.equal(7, result.code)
    assert.matches('no cluster secret', result.stderr)
    assert.equal(7, process.run({ '--service-url', 'localhost', 'list' }, { cwd = folder }).code)
  end)

  it('ends with what kept it or a master from listening', function()
    local any = { ['--host'] = '0.0.0.0', ['--api'] = '0.0.0.0:0' }
    for option, address in pairs(any) do
      local result = run('master', option, address)
      assert.equal(7, result.code, result.stderr)
      assert.matches('^error: api: listen on 0.0.0.0:%d+: .*no cluster secret', result.stderr)
      assert.matches("\nhint: set 'secret' for the whole cluster", result.stderr)
    end
    -- An address of a network for documentation is on no machine.
    for _, words in ipairs({ { 'master', '--host', '192.0.2.1' }, { 'api', '--listen', '192.0.2.1:0' },
        { 'master', '--host', '192.0.2.1', '--api', 'off' } }) do
      words[#words + 1], words[#words + 2] = '--set', 'secret=sesame'
      local result = run(unpack(words))
      assert.equal(1, result.code, result.stderr)
      assert.matches('listen on 192.0.2.1:%d+: ', result.stderr)
    end
    start_api()
    local address = url:match('^http://(.*)$')
    for _, words in ipairs({ { 'api', '--listen', address }, { 'master', '--api', address } }) do
      assert.equal(4, run(unpack(words)).code)
    end
    stop_api()
  end)
end)
