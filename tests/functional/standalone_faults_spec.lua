-- labels: zookeeper
-- timeout: 700
-- Faults against a whole standalone cluster on three ZooKeeper servers: each kind that scripts/chaos draws at
-- random once, in a fixed order, with its oracles. The deaths of processes alone are in
-- standalone_zookeeper_spec.lua.

local chaos = require 'support.chaos'

-- Longer than the session of scripts/chaos (3 s): leaders are dead for ZooKeeper when it comes back.
local OUTAGE_S = 5

local function harm(...)
  local missing = chaos.run({ '--zookeeper', '3', '--outage', OUTAGE_S }, { ... })
  if missing then return pending(missing) end
end

describe('a standalone cluster on three ZooKeeper servers', function()
  after_each(chaos.clean)

  it('goes on without members, without any, and without those of its own that stop', function()
    harm('kill a ZooKeeper member', 'kill the leading ZooKeeper member', 'stop all of ZooKeeper',
      'kill all of ZooKeeper', 'stop the leading master', 'stop a worker for long',
      'stop the topology master for long', 'stop a supervisor for long')
  end)

  it('goes on when its networks are parted, and when they are joined', function()
    harm('unplug the leading ZooKeeper member', 'cut the leading master off from ZooKeeper',
      'cut a supervisor off from masters and ZooKeeper', 'cut two supervisors off from each other')
  end)
end)
