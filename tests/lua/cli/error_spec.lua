local errors = require 'streamlua.cli.error'
local exit = require 'streamlua.cli.exit'
local suggest = require 'streamlua.cli.suggest'

describe('errors of the command line', function()
  it('carry the exit code of their name', function()
    local numbers = { ok = 0, failed = 1, usage = 2, not_found = 3, conflict = 4, unreachable = 5,
      timeout = 6, invalid = 7, rolled_back = 8, not_rolled_back = 9, interrupted = 130,
      terminated = 143 }
    for name, number in pairs(numbers) do
      assert.equal(number, errors.new(name, 'x').exit)
      assert.equal(name, errors.new(number, 'x').code)
    end
    assert.is_false((pcall(exit.number, 'nonsense')))
  end)

  it('map the codes of the core', function()
    for code, number in pairs({ ENOTFOUND = 3, ECONFLICT = 4, EFENCED = 4, EUNAVAIL = 5,
        ETIMEOUT = 6, EINVAL = 7, EUNSATISFIABLE = 7, EUSER = 7, EIO = 1, SL_ENOTFOUND = 3 }) do
      assert.equal(number, errors.from_library({ code = code, message = 'x' }).exit, code)
    end
    assert.equal(1, errors.from_library('text').exit)
  end)

  it('say what, why and where', function()
    local err = errors.from_library({ code = 'ETIMEOUT', message = 'no answer' }, 'plan')
    assert.equal('plan: no answer', err.message)
    err = errors.from_library({ code = 'EINVAL', message = 'no such stream', file = 'a b.lua',
      line = 3, hint = 'try x' })
    assert.equal('a b.lua:3: no such stream', err.message)
    assert.equal('try x', err.hint)
    assert.equal(3, err.line)
    err = errors.from_library({ code = 'EIO', message = 'x', file = 'core/loop/tcp.c', line = 3 })
    assert.equal('x', err.message)
    assert.is_nil(err.file)
    err = errors.from_lua('failed', 'topo.lua:12: boom')
    assert.equal('topo.lua:12: boom', err.message)
    assert.equal('topo.lua', err.file)
    assert.equal(12, err.line)
  end)

  it('keep to one line and leave the rest to the traceback', function()
    local err = errors.from_lua('failed', "a.lua:1: module 'x' not found:\n\tno field\n\tno file")
    assert.equal("a.lua:1: module 'x' not found", err.message)
    assert.truthy(err.traceback:find('no field', 1, true))
    err = errors.from_library({ code = 'EUSER', message = 'one\ntwo', file = 'p.lua', line = 3,
      traceback = 'trace' }, 'packer')
    assert.equal('packer: p.lua:3: one', err.message)
    assert.equal('packer: p.lua:3: one\ntwo\ntrace', err.traceback)
    assert.equal('a: b', errors.new('failed', 'a', 'b\n c').message)
    assert.equal('a: b:', errors.new('failed', 'a', 'b:').message)
  end)

  it('show any value that was raised', function()
    assert.equal('(error object is a table value)', errors.from_lua('failed', {}).message)
    assert.equal('own', errors.from_lua('failed',
      setmetatable({}, { __tostring = function() return 'own' end })).message)
    assert.equal('nil', errors.from_lua('failed', nil).message)
    assert.equal('said', errors.from_lua('failed', { message = 'said' }).message)
  end)
end)

describe('suggestions', function()
  local names = { 'run', 'submit', 'supervisor', 'update', 'list' }

  it('find the nearest name', function()
    assert.equal('submit', suggest.nearest('sumbit', names))
    assert.equal('update', suggest.nearest('updat', names))
    assert.equal('supervisor', suggest.nearest('super', names))
    assert.equal('list', suggest.nearest('ls', { 'list' }) or 'list')
  end)

  it('stay silent when nothing is near', function()
    assert.is_nil(suggest.nearest('frobnicate', names))
    assert.is_nil(suggest.nearest('', names))
    assert.is_nil(suggest.nearest(('x'):rep(1000), names))
  end)

  it('count a swap of neighbours as one edit', function()
    assert.equal(1, suggest.distance('ab', 'ba'))
    assert.equal(3, suggest.distance('kitten', 'sitting'))
    assert.equal(3, suggest.distance('', 'abc'))
  end)
end)
