-- Dry-run tables, against the reference's golden example A. labels: short
local packing = require 'streamlua.packing'

local MIB = 2 ^ 20

-- "exclaim1 1 0" a row; 1.5 cores, 2048 MB and no disk each, the padding 1.5 and 1024 MB.
local function container(id, rows)
  local instances = {}
  for i, row in ipairs(rows) do
    local name, task, index = row:match('^(%S+) (%d+) (%d+)$')
    instances[i] = { component = name, task = tonumber(task), index = tonumber(index), cpu = 1.5,
      ram = 2048 * MIB, disk = 3 }
  end
  local ram = (2048 * #rows + 1024) * MIB
  return { id = id, cpu = 1.5 * #rows + 1.5, ram = ram, disk = ram, instances = instances }
end

local function plan(packer, containers)
  return assert(packing.validate_plan { topology = 't', version = 1, packing = packer,
    containers = containers })
end

local first = { 'exclaim1 1 0', 'exclaim1 3 2', 'word 5 0' }
local old = plan('round_robin', { container(1, first),
  container(2, { 'exclaim1 2 1', 'exclaim1 4 3', 'word 6 1' }) })
local new = plan('first_fit_decreasing', { container(1, first),
  container(2, { 'exclaim1 2 1', 'exclaim1 4 3', 'exclaim1 6 4' }),
  container(3, { 'exclaim1 7 5', 'exclaim1 8 6', 'exclaim1 9 7' }),
  container(4, { 'exclaim1 10 8' }) })

local TABLE = [[
Total number of containers: 4
Using repacking class: first_fit_decreasing
Container 1 UNAFFECTED
CPU: 6.0, RAM: 7168 MB, Disk: 7168 MB
====================================================
| component | task ID | CPU | RAM (MB) | disk (MB) |
----------------------------------------------------
|  exclaim1 |       1 | 1.5 |     2048 |         0 |
|  exclaim1 |       3 | 1.5 |     2048 |         0 |
|      word |       5 | 1.5 |     2048 |         0 |
====================================================

Container 2 MODIFIED
CPU: 6.0, RAM: 7168 MB, Disk: 7168 MB
========================================================
|   | component | task ID | CPU | RAM (MB) | disk (MB) |
--------------------------------------------------------
|   |  exclaim1 |       2 | 1.5 |     2048 |         0 |
|   |  exclaim1 |       4 | 1.5 |     2048 |         0 |
| + |  exclaim1 |       6 | 1.5 |     2048 |         0 |
| - |      word |       6 | 1.5 |     2048 |         0 |
========================================================

Container 3 NEW
CPU: 6.0, RAM: 7168 MB, Disk: 7168 MB
====================================================
| component | task ID | CPU | RAM (MB) | disk (MB) |
----------------------------------------------------
|  exclaim1 |       7 | 1.5 |     2048 |         0 |
|  exclaim1 |       8 | 1.5 |     2048 |         0 |
|  exclaim1 |       9 | 1.5 |     2048 |         0 |
====================================================

Container 4 NEW
CPU: 3.0, RAM: 3072 MB, Disk: 3072 MB
====================================================
| component | task ID | CPU | RAM (MB) | disk (MB) |
----------------------------------------------------
|  exclaim1 |      10 | 1.5 |     2048 |         0 |
====================================================
]]

-- Text without escapes and without the stroke of removed rows.
local function plain(text) return (text:gsub('\27%[%d+m', ''):gsub('\204\182', '')) end

describe('the tables of a dry run', function()
  it('are those of the golden example A', function()
    assert.equal(TABLE, packing.render_update(old, new))
  end)

  it('have the same text in colour', function()
    local text = packing.render_update(old, new, { color = true })
    assert.equal(TABLE, plain(text))
    assert.is_truthy(text:find('\27[1mContainer 3\27[0m \27[32mNEW\27[0m', 1, true))
    assert.is_truthy(text:find('| \27[32m      10\27[0m', 1, true) == nil)
    assert.is_truthy(text:find('\27[32m     10\27[0m', 1, true))
    assert.is_truthy(text:find('\27[1mcomponent\27[0m', 1, true))
    -- Every character of a removed cell is struck through, blanks too.
    local cell = ('     word'):gsub('.', '%0\204\182')
    assert.is_truthy(text:find('\27[31m' .. cell .. '\27[0m', 1, true))
  end)

  it('show a removed container with its old values', function()
    local text = packing.render_update(new, plan('round_robin', { container(1, first) }),
      { color = true })
    assert.is_truthy(text:find('Container 4\27[0m \27[31mREMOVED\27[0m\nCPU: 3.0, RAM: 3072 MB', 1,
      true))
  end)

  it('state the change of a resource in percent of the old value', function()
    local grown = plan('x', { container(1, { 'exclaim1 1 0' }) })
    local text = packing.render_update(old, grown)
    assert.is_truthy(text:find('CPU: 3.0 (-50.00%), RAM: 3072 MB (-57.14%), Disk: 3072 MB (-57.14%)',
      1, true))
    text = packing.render_update(grown, old, { color = true })
    assert.is_truthy(text:find('CPU: 6.0\27[32m (+100.00%)\27[0m', 1, true))
    local free = plan('x', { container(1, { 'exclaim1 1 0' }) })
    free.containers[1].disk = 0
    assert.is_truthy(packing.render_update(free, grown):find('Disk: 3072 MB\n', 1, true))
  end)

  it('show a plan', function()
    local text = packing.render(plan('round_robin', { container(1, { 'word 1 0' }) }))
    assert.equal([[
Total number of containers: 1
Using packing class: round_robin
Container 1
CPU: 3.0, RAM: 3072 MB, Disk: 3072 MB
====================================================
| component | task ID | CPU | RAM (MB) | disk (MB) |
----------------------------------------------------
|      word |       1 | 1.5 |     2048 |         0 |
====================================================
]], text)
  end)
end)

describe('a plan as JSON', function()
  it('has its keys in the documented order', function()
    local one = plan('round_robin', { container(1, { 'word 1 0' }) })
    one.containers[1].supervisor, one.containers[1].port = 's1', 6800
    assert.equal('{"topology":"t","version":1,"packing":"round_robin","containers":[{"id":1,'
      .. '"cpu":3.0,"ram":3221225472,"disk":3221225472,"supervisor":"s1","port":6800,"instances":['
      .. '{"component":"word","task":1,"index":0,"cpu":1.5,"ram":2147483648,"disk":3}]}]}',
      packing.to_json(one))
  end)

  it('keeps every digit of a share of a core', function()
    local json = require 'streamlua.json'
    local one = plan('round_robin', { container(1, { 'word 1 0' }) })
    one.containers[1].instances[1].cpu = 4 / 3
    local back = assert(json.decode(packing.to_json(one)))
    assert.equal(4 / 3, back.containers[1].instances[1].cpu)
  end)
end)
