-- docs/schedulers-compared.md shows what scripts/compare-schedulers.lua prints.
local process = require 'support.process'

describe('docs/schedulers-compared.md', function()
  it('has the tables of the script', function()
    local r = process.run({ 'exec', 'scripts/compare-schedulers.lua' })
    assert.equal(0, r.code, r.stderr)
    local text = process.read_file('docs/schedulers-compared.md')
    assert.truthy(text:find(r.stdout, 1, true), 'run scripts/compare-schedulers.lua')
  end)
end)
