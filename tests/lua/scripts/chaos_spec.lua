-- labels: short
-- The oracles of scripts/chaos: what they let pass, and what not.

package.path = 'scripts/lib/?.lua;' .. package.path

local files = require 'support.files'
local process = require 'support.process'
local testing = require 'streamlua.testing'
local topology = require 'chaos.topology'
local transactions = require 'chaos.transactions'

after_each(files.clean)

describe('the oracle of roots', function()
  local written

  before_each(function()
    written = { acked = { '1-1', '1-2', '1-3' }, seen = { '1-1', '1-2', '1-2', '1-3' }, failed = { '1-2' },
      closed = { '1 3 3' } }
  end)

  local function check()
    for name, lines in pairs(written) do files.write(name, table.concat(lines, '\n') .. '\n') end
    return topology.check(files.folder())
  end

  it('counts what was acked and seen, and lets pass what was seen again after a failure', function()
    assert.same({ 3, 4 }, { check() })
  end)

  it('finds a root that was acked and never seen', function()
    written.seen = { '1-1', '1-3' }
    assert.error_matches(check, 'root 1%-2 was acked and not seen')
  end)

  it('finds a root that was seen again without a failure', function()
    written.failed = {}
    assert.error_matches(check, 'root 1%-2 was emitted 1 times and seen 2 times')
  end)

  it('finds a root of the last source that was never acked', function()
    written.acked = { '1-1', '1-3' }
    written.closed = { '1 3 2' }
    assert.error_matches(check, '3 roots emitted, 2 acked')
    written.closed = { '1 2 2' }
    assert.error_matches(check, '1 roots of source 1 were never acked')
  end)

  it('lets a source that died take with it what was under way, and no more', function()
    written.acked = { '0-101', '1-1', '1-2', '1-3' }
    table.insert(written.seen, '0-101')
    assert.equal(4, (check()))
    written.acked[1] = '0-102'
    table.insert(written.seen, '0-102')
    assert.error_matches(check, '101 roots of source 0 were never acked')
  end)

  it('finds a root that was open while later ones ended', function()
    written.waits = { '1-2' }
    assert.error_matches(check, '1 roots had no end when %d+ later ones had, one of them 1%-2')
  end)

  it('does not read a line that its writer did not end', function()
    files.write('seen', '1-1\n1-2\n1-3\n1-')
    written.seen = nil
    assert.equal(3, (check()))
  end)
end)

describe('the topology of scripts/chaos', function()
  local RELAY = [[
local relay = streamlua.bolt {
  fields = { 'root' },
  manual_ack = true,
  execute = function(self, tuple, collector)
    if tuple.root:find('%%-5$') and not self.is_harmed then
      self.is_harmed = true
      HARM
    else
      collector:ack(tuple)
    end
  end,
}
]]

  -- What it writes down of roots that wait, when this happens to one of them and 1,000 later ones are acked.
  local function waits_after(harm)
    local text, count = topology.script('chaos', 1):gsub(tostring(topology.LATER), '500')
    assert.equal(1, count)
    text, count = text:gsub('local relay = .-\n}\n', (RELAY:gsub('HARM', harm)))
    assert.equal(1, count)
    local cluster = testing.cluster()
    cluster:run(files.write('chaos.lua', text), { set = { folder = files.folder() }, deactivated = true })
    cluster:activate():kill()
    assert.matches('\n0%-900\n', process.read_file(files.folder() .. '/acked'))
    return process.read_file(files.folder() .. '/waits')
  end

  it('writes down a root of which nobody is told', function()
    assert.equal('0-5\n', waits_after(''))
  end)

  it('writes down none that fails and is emitted again', function()
    assert.equal('', waits_after('collector:fail(tuple)'))
  end)
end)

-- ZooKeeper's encoding.
local function int(value)
  if value < 0 then value = value + 2 ^ 32 end
  return string.char(math.floor(value / 2 ^ 24) % 256, math.floor(value / 2 ^ 16) % 256,
    math.floor(value / 256) % 256, value % 256)
end

local function buffer(text) return int(#text) .. text end

local function create(path, is_ephemeral)
  return 1, buffer('/root' .. path) .. buffer('value') .. int(1) .. int(31) .. buffer('world')
    .. buffer('anyone') .. (is_ephemeral and '\1' or '\0') .. int(1)
end

local function set(path) return 5, buffer('/root' .. path) .. int(-1) .. int(3) end
local function delete(path) return 2, buffer('/root' .. path) end
local function close() return -11, int(0) end

local function multi(list)
  local parts = { int(#list) }
  for _, item in ipairs(list) do parts[#parts + 1] = int(item[1]) .. buffer(item[2]) end
  return 14, table.concat(parts)
end

local function record(id, session, kind, body)
  local text = int(0) .. int(session) .. int(1) .. int(0) .. int(id) .. int(0) .. int(0) .. int(kind) .. body
  return int(0) .. int(0) .. buffer(text) .. 'B'
end

describe('the oracle of ZooKeeper', function()
  local LOCK = '/leaders/master/lock'

  -- The files of members that wrote these records down.
  local function members(...)
    local list = {}
    for i, records in ipairs({ ... }) do
      list[i] = { files.write('log.' .. i, ('ZKLG' .. int(2) .. int(0) .. int(0))
        .. table.concat(records) .. ('\0'):rep(100)) }
    end
    return list
  end

  local function replay(...) return transactions.replay(transactions.read(members(...)), '/root') end

  local one = record(1, 1, create(LOCK .. '/a-0000000000', true))
  local two = record(2, 2, create(LOCK .. '/b-0000000001', true))
  local write = { set '/plans/chaos' }

  it('lets the leader write, and knows what is left', function()
    assert.same({ [LOCK .. '/b-0000000001'] = int(0) .. int(2), ['/plans/chaos'] = '' },
      replay { one, two, record(3, 1, create '/plans/chaos'), record(4, 1, multi { write }), record(5, 1, close()),
        record(6, 2, set '/plans/chaos'), record(7, 2, create '/backups/chaos'),
        record(8, 2, delete '/backups/chaos') })
  end)

  it('finds a write of one who waits, and of one who led before', function()
    assert.error_matches(function() replay { one, two, record(3, 2, multi { write }) } end,
      'session 0000000000000002 changed /plans/chaos %(set%) and does not hold /leaders/master/lock')
    assert.error_matches(function()
      replay { one, two, record(3, 1, delete(LOCK .. '/a-0000000000')), record(4, 1, multi { write }) }
    end, 'session 0000000000000001 changed /plans/chaos')
  end)

  it('finds a write of a topology master that another one followed', function()
    local lock = '/leaders/topology/chaos/lock'
    local records = { record(1, 1, create(lock .. '/a-0000000000', true)),
      record(2, 2, create(lock .. '/b-0000000001', true)), record(3, 1, set '/physicalplans/chaos') }
    replay(records)
    records[4] = record(4, 2, set '/physicalplans/chaos')
    assert.error_matches(function() replay(records) end, 'does not hold ' .. lock)
  end)

  it('passes over what most members did not write down', function()
    local stale = record(3, 2, set '/plans/chaos')
    replay({ one, two, stale }, { one, two }, { one, two })
    assert.error(function() replay({ one, two, stale }, { one, two, stale }, { one, two }) end)
  end)

  it('reads up to a record that is not whole', function()
    local paths = members { one, two }
    local text = process.read_file(paths[1][1])
    process.write_file(paths[1][1], text:sub(1, #text - 105))
    assert.equal(1, #transactions.read(paths))
  end)
end)
