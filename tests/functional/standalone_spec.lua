-- timeout: 300
-- A standalone cluster from the command line: two masters, three supervisors, a state folder.

local cluster = require 'support.standalone'
local posix = { signal = require 'posix.signal' }

local run, ok, document = cluster.run, cluster.ok, cluster.document
local all_run, by_id, until_described = cluster.all_run, cluster.by_id, cluster.until_described
local script

describe('a standalone cluster', function()
  before_each(function() script = cluster.open() end)
  after_each(cluster.close)

  it('runs a topology across the death of its leading master, and ends it without a trace', function()
    local first = cluster.master()
    first:expect('stderr', 'leads in term')
    cluster.master()
    for number = 1, 3 do cluster.supervisor(number, 2) end
    assert.same({ topology = 'counts', action = 'submit', state = 'RUNNING' },
      document('submit', script, '-o', 'json'))
    local described = until_described(all_run)
    assert.equal('balanced', described.scheduler)
    local places = {}
    for _, place in pairs(by_id(described, 'supervisor')) do places[#places + 1] = place end
    table.sort(places)
    assert.same({ 's1', 's2', 's3' }, places)
    assert.equal(4, run('submit', script).code)
    ok('deactivate', 'counts')
    assert.equal('PAUSED', document('describe', 'counts', '-o', 'json').state)
    ok('activate', 'counts')
    local before = by_id(until_described(all_run), 'pid')
    first:signal('KILL')
    local grown = document('update', 'counts', '--parallelism', 'count=4', '-o', 'json')
    assert.same({ from_version = 1, to_version = 2, kept = 4, started = 2, moved = 0 },
      { from_version = grown.from_version, to_version = grown.to_version, kept = grown.kept,
        started = grown.started, moved = grown.moved })
    ok('update', 'counts', '--parallelism', 'count=-2')
    -- Neither the leader's death nor the changes cost a process.
    assert.same(before, by_id(until_described(all_run), 'pid'))
    ok('kill', 'counts', '--wait', '30s')
    cluster.check_outcome()
    assert.same({}, cluster.processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.equal(3, run('kill', 'counts').code)
    assert.equal(3, run('update', 'counts', '--parallelism', 'count=3').code)
  end)

  it('moves what dies with its supervisor, and leaves the rest alone', function()
    cluster.master()
    local supervisors = {}
    for number = 1, 3 do supervisors['s' .. number] = cluster.supervisor(number, 2) end
    ok('submit', script)
    local described = until_described(all_run)
    local before, places = by_id(described, 'pid'), by_id(described, 'supervisor')
    -- The supervisor of a container, with that container, and the topology master if it is there.
    local lost = places[2]
    supervisors[lost]:signal('KILL')
    for _, item in ipairs(cluster.processes()) do
      if item.pid == before[2] or item.text:find('--supervisor%z' .. lost .. '%z')
        and item.text:find('topology%-master') then
        posix.signal.kill(item.pid, posix.signal.SIGKILL)
      end
    end
    local after = until_described(function(now)
      return all_run(now) and now.plan_version > described.plan_version
    end)
    for id, place in pairs(by_id(after, 'supervisor')) do
      assert.not_equal(lost, place)
      if places[id] ~= lost then
        assert.equal(places[id], place)
        assert.equal(before[id], by_id(after, 'pid')[id])
      end
    end
    ok('kill', 'counts')
    assert.same({}, cluster.processes())
  end)

  -- "s1 s2": the supervisors of all containers, sorted.
  local function places_of(described)
    local list = {}
    for _, container in ipairs(described.containers) do list[#list + 1] = container.supervisor end
    table.sort(list)
    return table.concat(list, ' ')
  end

  local function plan_version() return document('describe', 'counts', '-o', 'json').plan_version end

  it('keeps the rules of a topology, also when it changes', function()
    cluster.master()
    local supervisors = { cluster.supervisor(1, 3), cluster.supervisor(2, 3),
      cluster.supervisor(3, 3) }
    local placed = document('submit', script, '--dry-run', '-o', 'json')
    assert.equal(3, #placed.containers)
    assert.equal('s1 s2 s3', places_of(placed))
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    -- Ackers are tasks like others, and a lone topology master takes a slot.
    ok('submit', script, '--set', 'containers=4', '--set', 'ackers=2', '--set', 'master_alone=true')
    local described = until_described(all_run)
    assert.equal(4, #described.containers)
    local tasks = 0
    for _, container in ipairs(described.containers) do tasks = tasks + #container.tasks end
    assert.equal(6, tasks)
    ok('kill', 'counts')
    ok('submit', script)
    assert.equal('s1 s2 s3', places_of(until_described(all_run)))
    for _, mode in ipairs({ 'keep', 'minimal' }) do
      local refused = run('update', 'counts', '--mode', mode)
      assert.equal(4, refused.code)
      assert.matches('there is nothing to do', refused.stderr, 1, true)
    end
    local refused = run('update', 'counts', '--packing', 'nope')
    assert.equal(7, refused.code)
    assert.matches("packer 'nope'", refused.stderr, 1, true)
    assert.equal(1, plan_version())
    -- A supervisor is drained: it comes back as one that takes nothing new, and all moves away.
    supervisors[1]:signal('TERM')
    supervisors[1]:wait()
    cluster.supervisor(1, 3, '--drained')
    local dry = document('update', 'counts', '--mode', 'keep', '--dry-run', '-o', 'json')
    assert.is_true(#dry.moves > 0)
    assert.equal(1, plan_version())
    ok('update', 'counts', '--mode', 'keep')
    described = until_described(all_run)
    assert.is_nil(places_of(described):find('s1', 1, true))
    -- What moved away is told to end, and may take a moment.
    cluster.eventually('nothing runs at s1', function()
      for _, item in ipairs(cluster.processes()) do
        if item.text:find('--supervisor%zs1%z') then return false end
      end
      return true
    end)
    -- The scheduler's endpoint carries out what masters planned.
    ok('update', 'counts', '--parallelism', 'count=5', '--set', 'scheduler_service=true')
    assert.equal(5, document('describe', 'counts', '-o', 'json').components[2].parallelism)
    ok('kill', 'counts', '--set', 'scheduler_service=true')
    assert.same({}, cluster.processes())
  end)

  it('says which mode would do it where nothing moves, and does nothing', function()
    cluster.master()
    cluster.supervisor(1, 3)
    cluster.supervisor(2, 3)
    ok('submit', script, '--set', 'containers=2', '--parallelism', 'count=4')
    local refused = run('update', 'counts', '--containers', '3')
    assert.equal(4, refused.code)
    local moves = refused.stderr:match('hint: %-%-mode minimal makes it 3 containers and moves (%d+) of its tasks')
    assert.equal(1, plan_version())
    local done = document('update', 'counts', '--containers', '3', '--mode', 'minimal', '-o', 'json')
    assert.equal(tonumber(moves), done.moved)
    assert.equal(3, #until_described(all_run).containers)
    -- What is there already needs no mode.
    refused = run('update', 'counts', '--containers', '3')
    assert.equal(4, refused.code)
    assert.is_nil(refused.stderr:find('hint', 1, true))
    ok('kill', 'counts')
  end)

  it('packs and repacks where a packer makes the containers', function()
    cluster.master()
    cluster.supervisor(1, 3)
    cluster.supervisor(2, 3)
    ok('submit', script, '--set', 'scheduler=packed', '--set', 'containers=2')
    local described = until_described(all_run)
    local before = by_id(described, 'pid')
    assert.equal('packed', described.scheduler)
    assert.equal(0, document('update', 'counts', '--parallelism', 'count=+3', '-o', 'json').moved)
    assert.same(before, by_id(until_described(all_run), 'pid'))
    ok('update', 'counts', '--containers', '3')
    assert.equal(3, #until_described(all_run).containers)
    ok('kill', 'counts', '--wait', '30s')
    cluster.check_outcome()
    assert.same({}, cluster.processes())
  end)

  it('refuses what can not be placed, and leaves nothing of it', function()
    assert.equal(5, run('submit', script, '--timeout', '1s').code)
    cluster.master()
    cluster.supervisor(1, 2)
    local refused = run('submit', script)
    assert.equal(7, refused.code)
    assert.matches('not enough slots: need 3, free 2', refused.stderr, 1, true)
    refused = run('submit', script, '--set', 'scheduler=./own.lua')
    assert.equal(7, refused.code)
    assert.matches('masters never load user code', refused.stderr, 1, true)
    refused = run('submit', script, '--set', 'containers=2', '--set', 'isolation=["elsewhere"]')
    assert.equal(7, refused.code)
    refused = run('submit', script, '--set', 'containers=1', '--set', 'broken=true')
    assert.equal(1, refused.code)
    assert.matches('no such table', refused.stderr, 1, true)
    assert.same({}, cluster.processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    assert.equal(3, run('kill', 'counts').code)
    ok('submit', script, '--set', 'containers=1')
    ok('kill', 'counts')
  end)
end)
