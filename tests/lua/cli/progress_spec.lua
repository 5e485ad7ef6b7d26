local progress = require 'streamlua.cli.progress'

local function display(options)
  local written = {}
  local time = 0
  options.file = {
    write = function(_, ...)
      for _, text in ipairs({ ... }) do
        written[#written + 1] = text
      end
    end,
    flush = function() end,
  }
  options.clock = function() return time end
  local p = progress.new(options)
  return p, function()
    local text = table.concat(written)
    written = {}
    return text
  end, function(seconds)
    time = time + seconds
  end
end

local rows = { { name = 'split', rate = 1234567, latency_ms = 0.42, queue = 12, failed = 0 },
  { name = 'count', rate = 12.5, latency_ms = nil, queue = 0, failed = 3 } }

describe('progress', function()
  it('is plain lines without a terminal', function()
    local p, text = display({ terminal = false })
    assert.is_true(p:components(rows))
    assert.equal('split: 1.23M tuples/s, latency 0.42ms, queue 12, failed 0\n'
      .. 'count: 12.5 tuples/s, latency -, queue 0, failed 3\n', text())
    p:phase('[3/8] containers started', '1.10s  1/1 registered')
    assert.equal('[3/8] containers started       1.10s  1/1 registered\n', text())
    p:status('only for terminals')
    assert.equal('', text())
  end)

  it('keeps to its pace', function()
    local p, text, advance = display({ terminal = false, interval_s = 5 })
    assert.is_true(p:components(rows))
    text()
    advance(4.9)
    assert.is_false(p:components(rows))
    assert.equal('', text())
    assert.is_true(p:components(rows, { force = true }))
    advance(5)
    assert.is_true(p:components(rows))
  end)

  it('draws the block of a terminal again in its place', function()
    local p, text, advance = display({ terminal = true, columns = 80 })
    p:components(rows)
    local first = text()
    assert.falsy(first:find('\27[', 1, true))
    assert.equal(3, select(2, first:gsub('\n', '')))
    advance(1)
    p:components(rows)
    assert.truthy(text():find('^\27%[3A\27%[J'))
    p:phase('drained')
    assert.equal('\27[3A\27[Jdrained\n', text())
    p:phase('stopped')
    assert.equal('stopped\n', text())
  end)

  it('cuts lines that the terminal would wrap', function()
    local p, text = display({ terminal = true, columns = 20 })
    p:components({ { name = ('x'):rep(50), rate = 1 } })
    for line in text():gmatch('[^\n]+') do
      assert.is_true(#line <= 20)
    end
  end)

  it('is silent when quiet', function()
    local p, text = display({ terminal = true, quiet = true })
    p:components(rows)
    p:phase('x')
    p:status('y')
    p:close({ erase = true })
    assert.equal('', text())
  end)

  it('shortens numbers', function()
    for number, wanted in pairs({ [0] = '0', [999] = '999', [9999] = '9999', [12345] = '12.3k',
        [1.5e6] = '1.5M', [2e9] = '2G', [0.21] = '0.2' }) do
      assert.equal(wanted, progress.short(number))
    end
    assert.equal('-', progress.short(nil))
  end)
end)
