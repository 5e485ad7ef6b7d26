local canonical = require 'streamlua.topology.canonical'
local files = require 'support.files'
local packages = require 'streamlua.cluster.package'

describe('packages of code', function()
  after_each(files.clean)

  local function build(options)
    local script = files.write('topo.lua', 'return 1')
    local one = files.write('words.lua', 'return 2')
    local two = files.write('text/init.lua', 'return 3')
    return assert(packages.build(script, { words = one, text = two }, options or {}))
  end

  it('hold the script and its modules where they are found again', function()
    local code = build()
    assert.equal('topo.lua', code.script)
    assert.same({ { path = 'text/init.lua', content = 'return 3' },
      { path = 'topo.lua', content = 'return 1' }, { path = 'words.lua', content = 'return 2' } },
      code.files)
  end)

  it('come back from the structs of the core as they were', function()
    local code = build({ set = { input = 'a.txt', n = 2 }, defaults = { acking = false } })
    local struct, keep = packages.to_struct(code)
    assert.same(code, packages.from_struct(struct))
    assert.truthy(keep)
    assert.same({ input = 'a.txt', n = 2 }, canonical.decode(code.overrides))
    assert.same({ acking = false }, canonical.decode(code.defaults))
  end)

  it('are the same by their files, whatever the config', function()
    local code = build()
    local hash = assert(packages.hash(code))
    assert.matches('^' .. ('%x'):rep(64) .. '$', hash)
    assert.equal(hash, packages.hash(build({ set = { n = 1 } })))
    code.files[1].content = 'return 4'
    assert.not_equal(hash, packages.hash(code))
  end)

  it('are unpacked below a folder', function()
    local code = build()
    local folder = files.folder() .. '/unpacked'
    files.write('unpacked/old', '')
    local script = assert(packages.unpack(code, folder))
    assert.equal(folder .. '/topo.lua', script)
    local file = assert(io.open(folder .. '/text/init.lua'))
    assert.equal('return 3', file:read('*a'))
    file:close()
  end)

  it('are refused when a file leads out of its folder', function()
    local code = build()
    code.files[1].path = '../evil.lua'
    local hash, failure = packages.hash(code)
    assert.is_nil(hash)
    assert.equal('EINVAL', failure.code)
  end)

  it('say which file can not be read', function()
    local script = files.write('topo.lua', 'return 1')
    local code, failure = packages.build(script, { gone = files.folder() .. '/gone.lua' }, {})
    assert.is_nil(code)
    assert.matches('gone.lua', tostring(failure))
  end)
end)
