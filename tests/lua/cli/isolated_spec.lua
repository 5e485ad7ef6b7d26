local isolated = require 'streamlua.cli.isolated'

describe('a function in a child process', function()
  it('gives back its result as data', function()
    local result = isolated.run(function() return { list = { 1, 'a' }, yes = true } end,
      { timeout = 60 })
    assert.same({ value = { list = { 1, 'a' }, yes = true } }, result)
  end)

  it('gives back a large result whole', function()
    local text = ('x'):rep(1000000)
    assert.equal(text, isolated.run(function() return text end, { timeout = 60 }).value)
  end)

  it('changes nothing in this process', function()
    local n = 0
    isolated.run(function() n = n + 1 end, { timeout = 60 })
    assert.equal(0, n)
  end)

  it('gives back the text of an error', function()
    local result = isolated.run(function() error('broken', 0) end, { timeout = 60 })
    assert.same({ raised = 'broken' }, result)
  end)

  it('tells of results that are no data', function()
    assert.truthy(isolated.run(function() return print end, { timeout = 60 }).raised)
  end)

  it('is ended when its time is over', function()
    local result = isolated.run(function() while true do end end, { timeout = 0.05 })
    assert.same({ timed_out = true }, result)
  end)

  it('tells how the child ended the process itself', function()
    local libc = require 'streamlua.connectors.libc'
    assert.same({ ended = 'exited', code = 3 },
      isolated.run(function() libc.exit(3) end, { timeout = 60 }))
    assert.same({ ended = 'killed', code = 9 },
      isolated.run(function() libc.kill(libc.C.getpid(), 9) end, { timeout = 60 }))
  end)
end)
