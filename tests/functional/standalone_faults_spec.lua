-- labels: zookeeper
-- timeout: 700
-- Faults against a whole standalone cluster on three ZooKeeper servers: each kind that scripts/chaos draws at
-- random once, in a fixed order, with its oracles. The deaths of processes alone are in
-- standalone_zookeeper_spec.lua.

local files = require 'support.files'
local posix = { signal = require 'posix.signal' }
local process = require 'support.process'
local processes = require 'support.processes'

-- Longer than the session of scripts/chaos (3 s): leaders are dead for ZooKeeper when it comes back.
local OUTAGE_S = 5

-- Does this harm; pending, with the reason, where it is impossible.
local function chaos(...)
  local result = process.run({ 'exec', 'scripts/lib/chaos.lua', '--seed', '1', '--zookeeper', '3', '--outage',
    OUTAGE_S, '--faults', table.concat({ ... }, ',') }, { timeout = 320, env = { TMPDIR = files.folder() } })
  local reason = result.stderr:match('skipped: ([^\n]+)')
  assert.equal(0, result.code, result.stderr)
  if reason then return pending(reason) end
  assert.matches(('%d rounds, [^\n]+: no violation'):format(select('#', ...)), result.stderr)
end

describe('a standalone cluster on three ZooKeeper servers', function()
  after_each(function()
    for _, item in ipairs(processes.of(files.folder())) do
      posix.signal.kill(item.pid, posix.signal.SIGKILL)
    end
    files.clean()
  end)

  it('goes on without members, without any, and without those of its own that stop', function()
    chaos('kill a ZooKeeper member', 'kill the leading ZooKeeper member', 'stop all of ZooKeeper',
      'kill all of ZooKeeper', 'stop the leading master', 'stop a worker for long',
      'stop the topology master for long', 'stop a supervisor for long')
  end)

  it('goes on when its networks are parted, and when they are joined', function()
    chaos('unplug the leading ZooKeeper member', 'cut the leading master off from ZooKeeper',
      'cut a supervisor off from masters and ZooKeeper', 'cut two supervisors off from each other')
  end)
end)
