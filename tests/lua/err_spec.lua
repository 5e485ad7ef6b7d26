local abi = require 'streamlua.abi'
local err = require 'streamlua.err'

describe('streamlua.err', function()
  it('prints the message and its causes as one line', function()
    local root = err.new('EIO', 'connection refused')
    assert.equal('connect to n1: connection refused',
      tostring(err.new('EUNAVAIL', 'connect to n1', root)))
  end)

  it('tells its values from other tables', function()
    assert.is_true(err.is(err.new('EIO', 'x')))
    assert.is_false(err.is({ code = 'EIO', message = 'x' }))
    assert.is_false(err.is('x'))
  end)

  it("tells the system's reason, once", function()
    local C = abi.C
    local wal = abi.ffi.gc(C.sl_abi_wal_new('/proc/no/such/place', 10), C.sl_abi_wal_free)
    local segment = abi.ffi.new('struct sl_wal_segment')
    assert.is_true(C.sl_abi_wal_write(wal, nil, 0, 0, segment) < 0)
    local _, failure = err.last()
    assert.equal('ESYS', failure.code)
    assert.equal(2, failure.errno)
    assert.equal('make the directory /proc/no: No such file or directory', tostring(failure))
    -- A message that has it already.
    local client = assert(require('streamlua.cluster').open({ state = 'localfs:/proc/no/state', logs = '/tmp',
      program = '/bin/true' }))
    _, failure = client:names()
    client:close()
    local _, count = tostring(failure):gsub('No such file or directory', '')
    assert.equal(1, count, tostring(failure))
  end)

  it('reports no failure as OK', function()
    abi.C.sl_error_clear()
    local value, failure = err.last()
    assert.is_nil(value)
    assert.equal('OK', failure.code)
  end)

  it('maps every code to a name and back', function()
    for code = -1, -60, -1 do
      local name = abi.ffi.string(abi.C.sl_error_name(code))
      if name == 'EUNKNOWN' then return assert.is_true(code < -10) end
      assert.equal(code, abi.C.sl_error_from_name(name))
    end
    error('the list of codes has no end')
  end)
end)
