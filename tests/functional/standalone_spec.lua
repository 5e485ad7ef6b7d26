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
    assert.equal('standalone', described.scheduler)
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
