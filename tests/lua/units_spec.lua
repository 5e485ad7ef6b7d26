local units = require 'streamlua.units'

describe('streamlua.units', function()
  it('reads durations in seconds', function()
    for text, seconds in pairs({ ['500ms'] = 0.5, ['10s'] = 10, ['5m'] = 300, ['1h'] = 3600,
        ['1.5s'] = 1.5, ['0'] = 0, ['30'] = 30, ['250us'] = 0.00025, ['1d'] = 86400,
        [' 2 s '] = 2, ['.5s'] = 0.5 }) do
      assert.equal(seconds, (units.parse_duration(text)), text)
    end
    assert.equal(1.25, (units.parse_duration(1.25)))
    assert.equal(0.1, (units.parse_duration('100ms')))
  end)

  it('reads sizes in bytes', function()
    for text, bytes in pairs({ ['512MiB'] = 536870912, ['1GiB'] = 1073741824, ['10'] = 10,
        ['1KB'] = 1024, ['2k'] = 2048, ['1.5KiB'] = 1536, ['7B'] = 7, ['1tib'] = 2 ^ 40 }) do
      assert.equal(bytes, (units.parse_size(text)), text)
    end
    assert.equal(10, (units.parse_size(10.9)))
  end)

  it('refuses everything else with the text that was given', function()
    for _, value in ipairs({ '', 'x', '-1s', '1 fortnight', '1e3s', 's', '1S', 'nan', -1, 0 / 0,
        math.huge, true, {}, '1.2.3s' }) do
      local seconds, message = units.parse_duration(value)
      assert.is_nil(seconds, tostring(value))
      assert.truthy(message:find('is not a duration', 1, true))
    end
    for _, value in ipairs({ '', 'GiB', '-1GiB', '1XB', -5, 0 / 0, {}, ('9'):rep(400) }) do
      local bytes, message = units.parse_size(value)
      assert.is_nil(bytes, tostring(value))
      assert.truthy(message:find('is not a size', 1, true))
    end
    assert.truthy(select(2, units.parse_duration('soon')):find("'soon'", 1, true))
  end)

  it('writes short texts', function()
    assert.equal('12.3ms', units.duration_text(0.0123))
    assert.equal('1m15s', units.duration_text(75))
    assert.equal('2h05m', units.duration_text(7500))
    assert.equal('1.5GiB', units.size_text(1610612736))
    assert.equal('7B', units.size_text(7))
  end)
end)
