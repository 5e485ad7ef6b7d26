-- labels: zookeeper
-- timeout: 300
-- A standalone cluster on a real ZooKeeper: every process that may die does, and ZooKeeper itself
-- stops for a while; all commands succeed and no root is lost.

local cluster = require 'support.standalone'
local eventually = require 'support.eventually'
local files = require 'support.files'
local posix = { poll = require 'posix.poll', signal = require 'posix.signal' }
local process = require 'support.process'
local zookeeper = require 'support.zookeeper'

local ok, document = cluster.ok, cluster.document
local all_run, by_id, until_described = cluster.all_run, cluster.by_id, cluster.until_described

-- Roots that the sink has seen.
local function seen(folder)
  local roots, count = {}, 0
  for line in process.read_file(folder .. '/sink'):gmatch('[^\n]+\n') do
    local root = tonumber(line:match('(%d+)\n$'))
    if root and not roots[root] then
      roots[root] = true
      count = count + 1
    end
  end
  return roots, count
end

-- Containers without the source, which would begin anew.
local function without_source(described)
  local list = {}
  for _, container in ipairs(described.containers) do
    local has_source = false
    for _, task in ipairs(container.tasks) do
      has_source = has_source or task.component == 'source'
    end
    if not has_source then list[#list + 1] = container.id end
  end
  return list
end

-- Tuples go on reaching the sink.
local function check_flow(folder)
  local _, before = seen(folder)
  local is_flowing = eventually(function()
    local _, now = seen(folder)
    return now > before + 20
  end)
  if not is_flowing then error('nothing reaches the sink any more') end
end

describe('a standalone cluster on ZooKeeper', function()
  local server, script, folder

  before_each(function()
    server = zookeeper.start(files.folder())
    script, folder = cluster.open { state = server.url }
  end)

  after_each(function()
    server:resume()
    cluster.close()
    server:stop()
  end)

  it('survives its leading master, a supervisor, workers, and 8 seconds without ZooKeeper', function()
    local first = cluster.master()
    first:expect('stderr', 'leads in term')
    cluster.master()
    local supervisors = {}
    for number = 1, 3 do supervisors['s' .. number] = cluster.supervisor(number, 3) end
    ok('submit', script)
    check_flow(folder)
    -- A machine that has none of the logs gets them from the supervisors.
    local elsewhere = process.run({ 'logs', 'counts', '--container', '1' }, { env = {
      STREAMLUA_STATE = server.url, STREAMLUA_CLUSTER = 'standalone',
      XDG_STATE_HOME = folder .. '/elsewhere' } })
    assert.matches('^worker: container 1 listens on', elsewhere.stdout, nil, nil, elsewhere.stderr)
    local before = by_id(until_described(all_run), 'pid')
    first:signal('KILL')
    check_flow(folder)
    assert.equal(2, document('update', 'counts', '--parallelism', 'count=4', '-o', 'json').to_version)
    local described = until_described(all_run)
    assert.same(before, by_id(described, 'pid'))
    check_flow(folder)
    -- Nobody leads the topology until the session of its topology master is over: commands wait.
    for _, item in ipairs(cluster.processes()) do
      local is_leader = item.text:find('topology-master', 1, true)
      if is_leader then posix.signal.kill(item.pid, posix.signal.SIGKILL) end
    end
    ok('deactivate', 'counts')
    ok('activate', 'counts')
    check_flow(folder)
    -- A supervisor dies, and later a worker that it had started: that one runs elsewhere then.
    local victim, other = unpack(without_source(described))
    local lost = by_id(described, 'supervisor')[victim]
    supervisors[lost]:signal('KILL')
    check_flow(folder)
    posix.signal.kill(before[victim], posix.signal.SIGKILL)
    described = until_described(function(now)
      return all_run(now) and by_id(now, 'supervisor')[victim] ~= lost
    end)
    check_flow(folder)
    -- A worker of a supervisor that lives is restarted in its place.
    local place, pid = by_id(described, 'supervisor')[other], by_id(described, 'pid')[other]
    posix.signal.kill(pid, posix.signal.SIGKILL)
    described = until_described(function(now)
      return all_run(now) and by_id(now, 'pid')[other] ~= pid
    end)
    assert.equal(place, by_id(described, 'supervisor')[other])
    check_flow(folder)
    server:pause()
    posix.poll.poll({}, 8000)
    server:resume()
    check_flow(folder)
    until_described(all_run)
    ok('kill', 'counts', '--wait', '30s')
    assert.same({}, cluster.processes())
    assert.same({ topologies = {} }, document('list', '-o', 'json'))
    local roots = seen(folder)
    local emitted = tonumber(process.read_file(folder .. '/emitted'):match('^(%d+)'))
    for root = 1, emitted do assert.is_true(roots[root], 'root ' .. root .. ' is lost') end
  end)
end)
