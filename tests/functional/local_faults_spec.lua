-- timeout: 700
-- Faults against the workers of a local topology: kinds that scripts/chaos draws at random once each, with its
-- oracles. Above all no root may wait for its time-out.

local chaos = require 'support.chaos'

describe('a local topology', function()
  after_each(chaos.clean)

  it('leaves no root behind when workers die', function()
    chaos.run({ '--containers', '4', '--ackers', '0' }, { 'kill a worker', 'kill all workers',
      'kill a worker again and again', 'kill a worker and the topology master', 'kill a worker while paused',
      'kill a worker during an update' })
  end)

  it('leaves no root behind when workers die that have its ackers', function()
    chaos.run({ '--containers', '3', '--ackers', '2' }, { 'kill a worker', 'kill two workers',
      'restart a container during an update', 'update to other containers', 'update that moves tasks' })
  end)

  it('leaves no root behind when connections break', function()
    local missing = chaos.run({ '--containers', '3', '--ackers', '2' }, { 'break connections',
      'break connections during an update' })
    if missing then return pending(missing) end
  end)
end)
