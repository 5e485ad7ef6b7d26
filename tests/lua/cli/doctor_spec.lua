local doctor = require 'streamlua.cli.doctor'

local function checks(settings)
  local result = {}
  for _, check in ipairs(doctor.checks({ config = {}, settings = settings })) do
    result[check.name] = check
  end
  return result
end

describe('doctor', function()
  it('finds the installation well', function()
    local found = checks({ cluster = 'local', state = 'localfs:' .. os.tmpname() .. '.d/x' })
    for _, name in ipairs({ 'lua', 'core', 'config', 'state', 'clock', 'cjson', 'argparse' }) do
      assert.is_true(found[name].ok, name .. ': ' .. found[name].detail)
      assert.is_true(found[name].essential)
    end
  end)

  it('sees a state directory that can not be made', function()
    local found = checks({ cluster = 'local', state = 'localfs:/proc/nowhere/x' })
    assert.is_false(found.state.ok)
    assert.truthy(found.state.hint)
    found = checks({ cluster = 'local', state = 'localfs:/dev/null/x' })
    assert.is_false(found.state.ok)
  end)

  it('sees a state URL of an unknown kind', function()
    assert.is_false(checks({ cluster = 'local', state = 'etcd://x' }).state.ok)
    assert.is_true(checks({ cluster = 'local', state = 'zookeeper://h:2181/r' }).state.ok)
  end)

  it('knows the release of the ZooKeeper client', function()
    local found = checks({ cluster = 'local', state = 'localfs:/tmp' }).zookeeper
    assert.is_true(found.ok)
    assert.matches('^%d+%.%d+%.%d+ %(libzookeeper_mt%.so%.', found.detail)
  end)

  it('goes on when a check breaks', function()
    local broken = setmetatable({}, { __index = function() error('no settings', 0) end })
    local results = doctor.checks(broken)
    assert.is_true(#results > 5)
    for _, check in ipairs(results) do
      if check.name == 'config' then
        assert.is_false(check.ok)
        assert.equal('no settings', check.detail)
      end
    end
  end)
end)
