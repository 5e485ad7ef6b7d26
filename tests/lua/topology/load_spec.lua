local unistd = require 'posix.unistd'
local files = require 'support.files'
local load = require 'streamlua.topology.load'
local streamlua = require 'streamlua'

local script = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('loaded', { input = 'a' })
t:spout('s', streamlua.spout { fields = { 'x' }, next_tuple = function() end })
return t
]]

-- Loads a script of this text that must fail.
local function failure(text, name)
  local path = files.write(name or 'topo.lua', text)
  local t, err = load.script(path)
  assert.is_nil(t)
  return err, path
end

describe('loading a script', function()
  after_each(files.clean)

  it('gives the topology it returns', function()
    local path = files.write('topo.lua', script)
    local t = assert(load.script(path))
    assert.equal('loaded', t.name)
    assert.equal(path, t.script)
    assert.equal('topology', load.kind(t))
    assert.equal(path, t.components[1].file)
    assert.equal(3, t.components[1].line)
  end)

  it('gives overrides and defaults to the config, also while it is loading', function()
    local path = files.write('topo.lua', [[
      local t = require('streamlua').topology('t', { a = 1, b = 1 })
      seen = { t.config.a, t.config.c }
      t.config.a = 'written later'
      return t]])
    local t = assert(load.script(path, { set = { a = 2 }, defaults = { b = 5, c = 6 } }))
    assert.same({ 2, 6 }, _G.seen)
    _G.seen = nil
    assert.same({ a = 2, b = 1, c = 6 }, t.config)
    assert.same({}, streamlua.topology('later').config)
  end)

  it('finds modules beside the script first, also those it requires later', function()
    files.write('util.lua', "return 'mine'")
    files.write('pack/init.lua', "return 'package'")
    files.write('pack/sub.lua', "return 'sub'")
    files.write('late.lua', "return 'late'")
    local path = files.write('topo.lua', "local u, p, s = require 'util', require 'pack', "
      .. "require 'pack.sub'\n" .. script:gsub("'loaded'", "u .. '-' .. p .. '-' .. s")
      :gsub('next_tuple = function%(%)', "next_tuple = function() return require 'late'"))
    local t = assert(load.script(path))
    assert.equal('mine-package-sub', t.name)
    assert.equal('late', t.components[1].definition.next_tuple())
    local modules = load.modules()
    assert.equal(files.folder() .. '/pack/init.lua', modules.pack)
    assert.equal(files.folder() .. '/late.lua', modules.late)
  end)

  it('gives the path of files beside the script, and remembers them', function()
    files.write('data/words.txt', 'a b')
    local path = files.write('topo.lua', "local path = require('streamlua').file('data/words.txt')\n"
      .. script:gsub("'loaded'", "path:match('[^/]+$')"))
    assert.equal('words.txt', assert(load.script(path)).name)
    assert.same({ ['data/words.txt'] = files.folder() .. '/data/words.txt' }, load.files())
    for given, message in pairs({ ["'../topo.lua'"] = 'below the script', ["'/etc/passwd'"] = 'below the script',
      ["'data/./words.txt'"] = 'below the script', ["''"] = 'below the script', ['7'] = 'below the script',
      ["'data'"] = 'there is none beside the script', ["'none.txt'"] = 'there is none beside the script' }) do
      local err = failure(("require('streamlua').file(%s)"):format(given))
      assert.equal('EUSER', err.code)
      assert.matches(message, err.message, 1, true)
      assert.equal(1, err.line)
    end
    assert.same({}, load.files())
  end)

  it('gives another script its own modules', function()
    files.write('a/util.lua', "return 'a'")
    files.write('b/util.lua', "return 'b'")
    local text = script:gsub("'loaded'", "require 'util'")
    local a, b = files.write('a/topo.lua', text), files.write('b/topo.lua', text)
    assert.equal('a', assert(load.script(a)).name)
    assert.equal('b', assert(load.script(b)).name)
    assert.equal('a', assert(load.script(a)).name)
  end)

  it('never takes modules of the library from beside a script', function()
    files.write('streamlua/split.lua', "return 'hijacked'")
    local split = package.loaded['streamlua.split']
    package.loaded['streamlua.split'] = nil
    local t = assert(load.script(files.write('topo.lua',
      "local split = require 'streamlua.split'\n" .. script:gsub("'loaded'", 'type(split)'))))
    package.loaded['streamlua.split'] = split
    assert.are_not.equal('string', t.name)
  end)

  it('follows a symbolic link to the folder of the real script', function()
    files.write('real/util.lua', "return 'real'")
    files.write('real/topo.lua', (script:gsub("'loaded'", "require 'util'")))
    files.write('links/placeholder', '')
    local link = files.folder() .. '/links/topo.lua'
    assert(unistd.link('../real/topo.lua', link, true))
    assert.equal('real', assert(load.script(link)).name)
    files.write('links/other.lua', "return 'beside the link'")
    files.write('real/topo.lua', (script:gsub("'loaded'", "require 'other'")))
    assert.equal('beside the link', assert(load.script(link)).name)
  end)

  it('takes a first line for the shell and a byte order mark', function()
    assert(load.script(files.write('topo.lua', '#!/usr/bin/env streamlua\n' .. script)))
    assert(load.script(files.write('topo.lua', '\239\187\191' .. script)))
    local err = failure('#!/bin/sh\nx = = 1')
    assert.equal(2, err.line)
  end)

  it('tells of a missing file and of a folder', function()
    local t, err = load.script(files.folder() .. '/none.lua')
    assert.is_nil(t)
    assert.equal('ENOTFOUND', err.code)
    t, err = load.script(files.folder())
    assert.is_nil(t)
    assert.equal('ENOTFOUND', err.code)
  end)

  it('tells the line of a syntax error', function()
    local err, path = failure('local x = 1\nlocal = 2\n')
    assert.equal('EINVAL', err.code)
    assert.equal(path, err.file)
    assert.equal(2, err.line)
    assert.is_nil(err.message:find(path, 1, true))
  end)

  it('tells the whole path of a file with a long one', function()
    local name = ('long/'):rep(20) .. 'topo.lua'
    local err, path = failure('x = = 1', name)
    assert.equal(path, err.file)
    assert.equal(1, err.line)
    err, path = failure('\n\nerror("late")', name)
    assert.equal(path, err.file)
    assert.equal(3, err.line)
    assert.equal('late', err.message)
  end)

  it('tells the line of an error that it raises', function()
    local err, path = failure('local t\nt.x = 1')
    assert.equal('EUSER', err.code)
    assert.equal(path, err.file)
    assert.equal(2, err.line)
    assert.truthy(err.message:find('attempt to index'))
    assert.truthy(err.traceback:find('topo.lua:2', 1, true))
  end)

  it('tells where errors without a position come from', function()
    for _, text in ipairs { '\nerror({})', '\nerror("plain", 0)', '\nerror()', '\nerror(42)',
      '\nlocal function f() error(setmetatable({}, { __tostring = function() return "t" end })) end f()' } do
      local err, path = failure(text)
      assert.equal('EUSER', err.code)
      assert.equal(path, err.file)
      assert.equal(2, err.line)
    end
    assert.equal('plain', failure('error("plain", 0)').message)
  end)

  it("blames the script for mistakes in the use of the library", function()
    local err, path = failure("local s = require 'streamlua'\n\nlocal x = s.bolt {}\n")
    assert.equal(path, err.file)
    assert.equal(3, err.line)
    assert.equal('bolt: it needs a function execute', err.message)
    for call, message in pairs({
      ["s.io.lines { path = '' }"] = 'streamlua.io.lines: path must be a file',
      ["s.io.lines {}"] = 'streamlua.io.lines: the option path is missing',
      ["s.io.print { format = 'xml' }"] = 'streamlua.io.print: ',
    }) do
      err, path = failure("local s = require 'streamlua'\n\nlocal x = " .. call .. '\nreturn x')
      assert.equal(path, err.file)
      assert.equal(3, err.line, err.message)
      assert.equal(message, err.message:sub(1, #message))
      assert.falsy(err.message:find('%.lua:%d'), err.message)
    end
  end)

  it('tells the file and line of a module that is broken', function()
    local module = files.write('util.lua', 'local x\n\nlocal = 1')
    local err = failure("require 'util'")
    assert.equal('EUSER', err.code)
    assert.equal(module, err.file)
    assert.equal(3, err.line)
  end)

  it('tells of a module that is missing', function()
    local err, path = failure("\nrequire 'no.such.module'")
    assert.equal(path, err.file)
    assert.equal(2, err.line)
    assert.equal("module 'no.such.module' not found", err.message)
    assert.truthy(err.traceback:find("no field package.preload['no.such.module']", 1, true))
  end)

  it('tells of scripts that return nothing or something else', function()
    for text, what in pairs { [''] = 'nothing', ['return nil'] = 'nothing', ['return 1'] = 'a number',
      ['return {}'] = 'a table that is no topology', ['return print'] = 'a function' } do
      local err, path = failure(text)
      assert.equal('EINVAL', err.code)
      assert.equal(path, err.file)
      assert.truthy(err.message:find('returned ' .. what, 1, true), err.message)
      assert.truthy(err.hint)
    end
  end)

  it('has a place for problems of a topology that is made in a tail call', function()
    local path = files.write('topo.lua', "return require('streamlua').topology('a/b')")
    for _, problem in ipairs(assert(load.script(path)):validate()) do
      assert.equal(path, problem.file)
      assert.equal(1, problem.line)
    end
  end)

  it('refuses bytecode', function()
    local err = failure(string.dump(function() end))
    assert.equal('EINVAL', err.code)
    assert.truthy(err.message:find('bytecode'))
  end)

  it('knows a streaming context by its mark', function()
    local path = files.write('stream.lua', "return setmetatable({}, { __streamlua = 'streaming' })")
    assert.equal('streaming', load.kind(assert(load.script(path))))
  end)
end)
