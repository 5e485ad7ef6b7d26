local files = require 'support.files'
local raised = require 'streamlua.runtime.raised'

-- What is said of a script that raises.
local function text_of(script, options, name)
  local chunk = assert(loadfile(files.write(name or 'topo.lua', script)))
  local ok, value = xpcall(chunk, raised.handler(options))
  assert.is_false(ok)
  return (raised.text(value):gsub('^' .. files.folder():gsub('%p', '%%%0') .. '/', ''))
end

describe('what user code raised', function()
  after_each(files.clean)

  it('begins with its file and line, once', function()
    assert.equal('topo.lua:2: boom', text_of("\nerror('boom')"))
    assert.equal('topo.lua:2: boom', text_of("\nerror('boom', 0)"))
    assert.equal('topo.lua:1: b: c', text_of("error('b: c')"))
    assert.equal("topo.lua:2: attempt to index local 'x' (a nil value)", text_of("local x\nx.y = 1"))
  end)

  it("names the user's line of a call that failed inside the library", function()
    local text = text_of("\nrequire('streamlua.runtime.metrics').new():counter('seen').inc(5)")
    assert.matches('^topo.lua:2: attempt to ', text)
    assert.falsy(text:find('metrics.lua', 1, true))
  end)

  it('says something of any value', function()
    assert.equal('topo.lua:1: raised nil', text_of('error()'))
    assert.equal('topo.lua:1: raised true', text_of('error(true)'))
    assert.equal('topo.lua:1: raised a table without a message', text_of('error({})'))
    assert.equal('topo.lua:1: in it', text_of("error({ message = 'in it' })"))
    assert.equal('topo.lua:1: shown',
      text_of("error(setmetatable({}, { __tostring = function() return 'shown' end }))"))
    assert.equal('plain', raised.text('plain'))
  end)

  it('is one line, with more of it when it is verbose', function()
    assert.equal('topo.lua:1: first', text_of("error('first\\nsecond')"))
    assert.equal("topo.lua:1: module 'no.such' not found", text_of("require('no.such') return 1"))
    assert.equal('first', raised.text('first\nsecond'))
    local broken = files.write('broken/mod.lua', 'local x = = 1')
    local script = ("package.path = '%s/?.lua' require('mod') return 1"):format(broken:match('^(.*)/'))
    local old = package.path
    local text = text_of(script)
    package.path = old
    assert.matches("^error loading module 'mod' from file '.*/mod.lua': .*/mod.lua:1: unexpected", text)
    text = text_of("require('no.such') return 1", { verbose = true })
    assert.truthy(text:find("no field package.preload['no.such']", 1, true))
  end)

  it('names a file by its whole path however long', function()
    local name = ('d'):rep(80) .. '/topo.lua'
    assert.equal(name .. ':1: boom', text_of("error('boom')", nil, name))
  end)

  it("shows how the user's functions got there when it is verbose", function()
    local text = text_of("local function inner() error('boom') end\nlocal function outer() inner() end\n"
      .. 'outer() return 1', { verbose = true })
    assert.truthy(text:find('^topo.lua:1: boom\nstack traceback:\n'))
    assert.truthy(text:find("topo.lua:1: in function 'inner'", 1, true))
    assert.truthy(text:find('topo.lua:3: in ', 1, true))
    assert.falsy(text:find('runtime/raised.lua', 1, true))
    assert.falsy(text_of("error('boom')"):find('\n', 1, true))
  end)

  it('describes a stack that overflows', function()
    assert.truthy(text_of('local function f(n) return f(n) + 1 end\nreturn f(1)')
      :find('stack overflow', 1, true))
  end)
end)
