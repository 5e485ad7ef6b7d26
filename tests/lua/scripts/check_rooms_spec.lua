local process = require 'support.process'

local ROOMS = '2 abi base state\n1 state base\n1 loop base\n0 base\n'

-- Lays out files (path -> text) as a source tree and returns what scripts/check-rooms prints.
local function check(files, rooms)
  return process.with_folder(function(folder)
    for _, room in ipairs { 'abi', 'state', 'loop', 'base', 'attic' } do
      process.run({ '-p', folder .. '/core/' .. room }, { program = 'mkdir' })
    end
    process.write_file(folder .. '/core/rooms.txt', rooms or ROOMS)
    for path, text in pairs(files) do process.write_file(folder .. '/' .. path, text) end
    local r = process.run({ folder }, { program = process.root .. '/scripts/check-rooms' })
    return r.stdout, r.code
  end)
end

local function breach(path, text, rooms)
  local out, code = check({ [path] = text }, rooms)
  assert.equal(1, code)
  return out
end

describe('scripts/check-rooms', function()
  it('accepts what the table allows', function()
    local out, code = check {
      ['core/state/a.c'] = '#include "state/a.h"\n#include "base/err.h"\n#include <stdio.h>\n',
      ['core/state/zookeeper.c'] = '#include <zookeeper/zookeeper.h>\n',
      ['core/loop/l.c'] = '#include <uv.h>\n',
    }
    assert.same({ '', 0 }, { out, code })
  end)

  it('names file and line of a use that the table does not allow', function()
    assert.equal('core/base/a.c:2: room base may not use room state\n',
      breach('core/base/a.c', '\n# include "state/a.h"\n'))
  end)

  it('wants every include to name its room', function()
    assert.truthy(breach('core/base/a.c', '#include "err.h"\n'):find('an include names its room'))
  end)

  it('keeps private headers in their room', function()
    assert.truthy(breach('core/state/a.c', '#include "base/map_priv.h"\n'):find('is private to'))
  end)

  it('keeps foreign headers behind their door', function()
    assert.truthy(breach('core/base/a.c', '#include <uv.h>\n'):find('room loop only'))
    assert.truthy(breach('core/base/a.c', '#include <zookeeper/zookeeper.h>\n'):find('only'))
    assert.truthy(breach('core/state/a.c', '#include <zookeeper/zookeeper.h>\n'):find('only'))
    assert.truthy(breach('core/base/a.c', '#include "x.pb-c.h"\n'):find('codec'))
    assert.truthy(breach('core/base/a.c', '#include <lua.h>\n'):find('room main only'))
  end)

  it('allows no preprocessor line in a bare header', function()
    assert.truthy(breach('core/abi/a.abi.h', '#pragma once\n'):find('bare header'))
  end)

  it('refuses files in no room, and a table that points upwards', function()
    assert.truthy(breach('core/attic/a.c', '\n'):find('lies in no room'))
    assert.truthy(breach('core/base/a.c', '\n', '1 state\n0 base state\n'):find('higher floor'))
    assert.truthy(breach('core/base/a.c', '\n', '0 base cellar\n'):find('unknown room'))
  end)
end)
