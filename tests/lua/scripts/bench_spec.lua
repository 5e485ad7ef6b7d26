local process = require 'support.process'

-- Runs scripts/lib/bench.lua with workloads of its own.
local function bench(args, workloads)
  return process.with_folder(function(folder)
    process.run({ '-p', folder .. '/lib', folder .. '/bench.d' }, { program = 'mkdir' })
    process.run({ process.root .. '/scripts/lib/bench.lua', folder .. '/lib/' }, { program = 'cp' })
    for name, text in pairs(workloads) do
      process.write_file(folder .. '/bench.d/' .. name .. '.lua', text)
    end
    return process.run({ 'exec', folder .. '/lib/bench.lua', unpack(args) })
  end)
end

local B2 = [[return { id = 'B2', name = 'two', run = function(bench)
  bench:report { variant = 'plain', value = bench:best(3, function(i) return i end), unit = 'x/s',
    limit = 6, target = 4 }
  bench:report { variant = 'late', value = 250, unit = 'us', target = 300, better = 'less' }
end }]]
local B10 = [[return { id = 'B10', name = 'ten', run = function(bench)
  bench:report { value = bench.quick and 1 or 2, unit = 'y' } end }]]

describe('scripts/bench', function()
  it('prints one JSON line a figure with ratio and verdict', function()
    local r = bench({ '--json' }, { two = B2 })
    assert.equal(0, r.code)
    assert.equal('{"id":"B2","variant":"plain","name":"two","value":3,"unit":"x/s","limit":6,'
      .. '"ratio":0.5,"target":4,"met":false}\n'
      .. '{"id":"B2","variant":"late","name":"two","value":250,"unit":"us","limit":null,'
      .. '"ratio":null,"target":300,"met":true}\n', r.stdout)
  end)

  it('runs the workloads in the order of their numbers, or those named', function()
    local r = bench({ '--json' }, { b10 = B10, two = B2 })
    assert.truthy(r.stdout:find('"B2".*"B2".*"B10".*"value":2'))
    r = bench({ '--json', '--quick', 'B10' }, { b10 = B10, two = B2 })
    assert.is_nil(r.stdout:find('B2'))
    assert.truthy(r.stdout:find('"value":1,', 1, true))
  end)

  it('goes on after a workload that raises, and exits 1', function()
    local r = bench({ '--json' }, { bad = "return { id = 'A', run = function() error('broken') end }",
      b10 = B10 })
    assert.equal(1, r.code)
    assert.truthy(r.stdout:find('B10', 1, true))
    assert.truthy(r.stderr:find('broken', 1, true))
  end)

  it('refuses unknown options and workloads', function()
    assert.equal(2, bench({ '--fast' }, { b10 = B10 }).code)
    assert.equal(2, bench({ 'B3' }, { b10 = B10 }).code)
  end)
end)
