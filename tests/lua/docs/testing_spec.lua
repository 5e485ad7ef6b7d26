local files = require 'support.files'
local process = require 'support.process'

local read = process.read_file

describe('the guide to testing', function()
  after_each(files.clean)

  local text = read('docs/testing.md')

  it('has examples that pass as they are', function()
    local count = 0
    for code in text:gmatch('\n```lua\n(.-)\n```') do
      count = count + 1
      files.write(('example%d_spec.lua'):format(count), code)
    end
    assert.is_true(count >= 5)
    local result = process.run({ 'test', files.folder(), '--format', 'plain' },
      { cwd = files.folder() })
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.matches(('%d successes / 0 failures / 0 errors'):format(count), result.stdout)
  end)

  it('names every method and option of a cluster', function()
    local source = read('lua/streamlua/testing.lua')
    local count = 0
    for name in source:gmatch('\nfunction Cluster:([%w_]+)') do
      count = count + 1
      assert.truthy(text:find(':' .. name .. '(', 1, true), name)
    end
    for name in source:gmatch('\n%-%-%-@field ([%w_]+)%?') do
      count = count + 1
      assert.truthy(text:find('`' .. name .. '`', 1, true), name)
    end
    assert.is_true(count > 25)
  end)
end)
