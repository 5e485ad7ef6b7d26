-- How the binary finds its Lua files: build tree, installation, STREAMLUA_HOME, stock luajit.
local process = require 'support.process'

local PROBE = [[
local abi = require 'streamlua.abi'
print(abi.ffi.string(abi.C.sl_version()))
print(package.searchpath('streamlua.abi', package.path))
]]

-- Runs the probe with a binary from another folder; returns the place of the Lua files.
local function lua_place(folder, binary, env)
  local script = folder .. '/probe.lua'
  process.write_file(script, PROBE)
  local r = process.run({ 'exec', script }, { program = binary, env = env, cwd = folder })
  assert.equal('', r.stderr)
  assert.equal(0, r.code)
  return (r.stdout:match('\n(.+)/lua/streamlua/abi.lua\n$'))
end

local function install(prefix)
  local build = process.binary:match('^(.*)/[^/]*$')
  local r = process.run({ '--install', build, '--prefix', prefix }, { program = 'cmake' })
  assert.equal(0, r.code, r.stderr)
end

local function copy(from, to)
  assert.equal(0, process.run({ '-R', from, to }, { program = 'cp' }).code)
end

describe('the streamlua binary', function()
  it('finds its Lua files from the build tree', function()
    process.with_folder(function(folder)
      assert.equal(process.root, lua_place(folder, process.binary, { STREAMLUA_HOME = false }))
    end)
  end)

  it('works when it is installed', function()
    process.with_folder(function(folder)
      install(folder .. '/usr')
      assert.equal(folder .. '/usr/share/streamlua',
        lua_place(folder, folder .. '/usr/bin/streamlua', { STREAMLUA_HOME = false }))
    end)
  end)

  it('works when it is reached through a symbolic link', function()
    process.with_folder(function(folder)
      process.run({ '-s', process.binary, folder .. '/sl' }, { program = 'ln' })
      assert.equal(process.root, lua_place(folder, folder .. '/sl', { STREAMLUA_HOME = false }))
    end)
  end)

  it('prefers the place STREAMLUA_HOME names', function()
    process.with_folder(function(folder)
      process.run({ '-p', folder .. '/home/lua' }, { program = 'mkdir' })
      copy(process.root .. '/lua/streamlua', folder .. '/home/lua/streamlua')
      assert.equal(folder .. '/home',
        lua_place(folder, process.binary, { STREAMLUA_HOME = folder .. '/home' }))
    end)
  end)

  it('says in one line where it looked for its Lua files', function()
    process.with_folder(function(folder)
      copy(process.binary, folder .. '/alone')
      local r = process.run({ 'version' },
        { program = folder .. '/alone', env = { STREAMLUA_HOME = false } })
      assert.equal(1, r.code)
      assert.truthy(r.stderr:find('^error: Lua files not found: [^\n]+\nhint: [^\n]+\n$'))
      r = process.run({ 'version' }, { env = { STREAMLUA_HOME = folder } })
      assert.equal(1, r.code)
      assert.truthy(r.stderr:find('STREAMLUA_HOME is ' .. folder, 1, true))
    end)
  end)

  it('keeps the modules of the system when LUA_PATH is set', function()
    process.with_folder(function(folder)
      local script = folder .. '/probe.lua'
      process.write_file(script, "print(require('argparse') ~= nil, require('cjson') ~= nil)")
      local r = process.run({ 'exec', script },
        { env = { LUA_PATH = '/nowhere/?.lua', LUA_CPATH = '/nowhere/?.so' } })
      assert.equal('true\ttrue\n', r.stdout)
    end)
  end)
end)

describe('libstreamlua.so', function()
  it('serves a stock luajit', function()
    if process.build == 'asan' or process.build == 'tsan' then
      return pending('a sanitized library can not be loaded by a stock luajit')
    end
    local r = process.run({ '-e', PROBE }, { program = 'luajit', env = {
      LUA_PATH = process.root .. '/lua/?.lua;;',
      LD_LIBRARY_PATH = process.binary:match('^(.*)/[^/]*$'),
    } })
    assert.equal('', r.stderr)
    assert.truthy(r.stdout:find('^%d+%.%d+%.%d+\n'))
  end)
end)
