local files = require 'support.files'
local load = require 'streamlua.topology.load'

local read = require('support.process').read_file

describe('the guide to topologies', function()
  after_each(files.clean)

  local text = read('docs/topologies.md')

  it('has examples that load and have no problems', function()
    local count = 0
    for code in text:gmatch('\n```lua\n(.-)\n```') do
      count = count + 1
      local t, err = load.script(files.write('example.lua', code))
      assert(t, ('example %d: %s'):format(count, tostring(err)))
      assert.same({}, t:validate())
    end
    assert.is_true(count >= 6)
  end)

  it('names every code of a problem', function()
    local abi = require 'streamlua.abi'
    for code = tonumber(abi.C.SL_TOPOLOGY_BAD_NAME), tonumber(abi.C.SL_TOPOLOGY_UNREACHABLE) do
      local name = abi.ffi.string(abi.C.sl_abi_topology_problem_name(code))
      local is_internal = name == 'state-spout' or name == 'bad-kind' or name == 'bad-grouping'
        or name == 'duplicate-stream'
      assert.is_true(is_internal or text:find('`' .. name .. '`', 1, true) ~= nil, name)
    end
  end)

  it('names every key of the config', function()
    for _, name in ipairs(require('streamlua.topology.config').names) do
      assert.truthy(text:find('`' .. name .. '`', 1, true), name)
    end
  end)
end)
