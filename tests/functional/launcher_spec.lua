-- timeout: 300
-- Launchers written in Lua, with real processes.

local commands = require 'support.commands'
local files = require 'support.files'
local json = require 'streamlua.json'
local posix = { poll = require 'posix.poll', signal = require 'posix.signal' }
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
t:bolt('count', streamlua.bolt { execute = function() end }, { parallelism = 2 }):fields('source', { 'n' })
return t
]]

-- The shipped launcher with something changed: `own` has its functions in `shell`.
local function launcher_text(own)
  return ("local shell = dofile('%s/scripts/launchers/shell.lua')\n%s\nreturn shell\n"):format(
    process.root, own)
end

-- New containers get the number that was asked for and ten more.
local REMAPPING = [[
local add = shell.add_containers
function shell.add_containers(context, containers)
  local ids = {}
  for i, container in ipairs(containers) do
    ids[i] = container.id + 10
    container.id = ids[i]
  end
  add(context, containers)
  return ids
end
function shell.on_update(context, before, after)
  if #after > 3 then return nil, 'there are three machines' end
  assert(#before > 0 and after[1].cpu > 0 and context.topology == 'counts')
end
]]

local run, ok, until_described = commands.run, commands.ok, commands.until_described

local folder, script, launcher, env

local function describe_it() return commands.document('describe', 'counts', '-o', 'json') end

local function ids(described)
  local list = {}
  for i, container in ipairs(described.containers) do list[i] = container.id end
  return list
end

describe('a launcher written in Lua', function()
  before_each(function()
    folder, env = commands.open('counts', { env = { STREAMLUA_LAUNCHER = 'my_launcher.lua' } })
    script = files.write('counts.lua', SCRIPT)
    launcher = files.write('my_launcher.lua', launcher_text(REMAPPING))
  end)

  after_each(function()
    run('kill', 'counts', '-q')
    commands.close()
  end)

  it('starts, adds under numbers of its own, restarts and ends containers', function()
    ok('submit', script)
    assert.equal('packed', describe_it().scheduler)
    ok('update', 'counts', '--containers', '3')
    local described = describe_it()
    -- PR 2582: the published plan has the numbers that containers really have.
    assert.same({ 1, 12, 13 }, ids(described))
    local result = run('update', 'counts', '--parallelism', 'count=3', '--containers', '4')
    assert.equal(8, result.code)
    assert.matches('there are three machines', result.stderr)
    assert.same({ 1, 12, 13 }, ids(describe_it()))
    ok('restart', 'counts', '--container', '12')
    -- Its own check finds what ended; the next topology master finds what runs.
    local pid = describe_it().containers[3].pid
    posix.signal.kill(pid, posix.signal.SIGKILL)
    described = until_described(function(now)
      return now.containers[3].state == 'RUNNING' and now.containers[3].pid ~= pid
    end)
    local log = process.read_file(folder .. '/state/logs/counts/topology-master.log')
    -- On a busy machine its missing signs of life may be noticed first.
    assert.is_true((log:find('container 13 ended (its job has ended)', 1, true)
      or log:find('container 13 gives no sign of life', 1, true)) ~= nil, log)
    posix.signal.kill(commands.pid_of('topology-master'), posix.signal.SIGKILL)
    local after = until_described(function(now)
      return now.containers[3].state == 'RUNNING' and #now.events < 5
    end)
    for i, container in ipairs(described.containers) do
      assert.equal(container.pid, after.containers[i].pid)
    end
    ok('update', 'counts', '--containers', '1')
    assert.equal(1, #describe_it().containers)
    ok('kill', 'counts')
    assert.same({}, commands.processes())
  end)

  it('that can not scale is not asked to, and nothing is touched', function()
    process.write_file(launcher, launcher_text('shell.add_containers, shell.remove_containers = nil, nil\n'))
    ok('submit', script)
    local before = describe_it()
    local result = run('update', 'counts', '--containers', '2')
    assert.equal(7, result.code)
    assert.matches('its launcher can neither add nor remove containers', result.stderr)
    ok('update', 'counts', '--parallelism', 'count=3')
    local after = describe_it()
    assert.same({ 1, 2 }, { before.plan_version, after.plan_version })
    assert.equal(before.containers[1].pid, after.containers[1].pid)
  end)

  it('that can not start anything is told to who submits, and nothing is left', function()
    process.write_file(launcher, launcher_text("function shell.on_schedule() return nil, 'no partition' end"))
    local result = run('submit', script)
    assert.equal(1, result.code)
    assert.matches('no partition', result.stderr)
    assert.same({ topologies = {} }, json.decode(ok('list', '-o', 'json').stdout))
  end)

  it('that can not begin is told at once with file and line, starts nothing, and nothing is left', function()
    process.write_file(launcher, launcher_text(([[
function shell.initialize()
  error('there is no account')
end
function shell.on_schedule() io.open('%s/scheduled', 'w'):close() end]]):format(folder)))
    local result = run('submit', script)
    assert.equal(1, result.code)
    assert.matches("it can not start: the launcher's initialize: .*my_launcher.lua:3: there is no account",
      result.stderr)
    assert.is_nil(io.open(folder .. '/scheduled'))
    assert.same({ topologies = {} }, json.decode(ok('list', '-o', 'json').stdout))
    assert.same({}, commands.processes())
    -- A reason that is returned is one, too.
    process.write_file(launcher, launcher_text("function shell.initialize() return nil, 'no account' end"))
    result = run('submit', script)
    assert.equal(1, result.code)
    assert.matches("the launcher's initialize: no account", result.stderr)
  end)

  it('that is none is refused before anything is stored', function()
    for text, message in pairs({ ['return 7'] = 'it must return a table', ['x ='] = 'my_launcher.lua:1:',
      ['return { on_schedule = print }'] = "it has no function 'on_kill'",
      ['return { on_schedule = print, on_kill = print, add_containers = print }'] = 'both',
      ['return { on_schedule = print, on_kill = 3 }'] = "'on_kill' must be a function",
      ['return { on_schedule = print, on_kill = print, on_kil = print }'] = "'on_kil' is no function" }) do
      process.write_file(launcher, text)
      local result = run('submit', script)
      assert.equal(7, result.code)
      assert.matches(message, result.stderr, 1, true)
    end
    env.STREAMLUA_LAUNCHER = 'missing.lua'
    assert.equal(3, run('submit', script).code)
    assert.same({ topologies = {} }, json.decode(ok('list', '-o', 'json').stdout))
  end)
end)
