-- luacheck: globals io.stdout
local files = require 'support.files'

local write = require 'streamlua.runtime.print'

-- What a function writes to standard output.
local function output_of(fn)
  local path = files.write('out', '')
  local before = io.stdout
  io.stdout = assert(io.open(path, 'w'))
  local ok, message = pcall(fn)
  io.stdout:close()
  io.stdout = before
  assert(ok, message)
  local file = io.open(path)
  local text = file:read('*a')
  file:close()
  return text
end

describe('print of executors', function()
  after_each(files.clean)

  it('writes what the usual print writes', function()
    local shown = setmetatable({}, { __tostring = function() return 'shown' end })
    assert.equal('a\t1\tnil\ttrue\tshown\n\n\nnil\n\tx\n', output_of(function()
      write('a', 1, nil, true, shown)
      write()
      write('')
      write(nil)
      write('', 'x')
    end))
  end)

  it('refuses values that do not read as a string', function()
    assert.has_error(function()
      write(setmetatable({}, { __tostring = function() return 5 end }))
    end)
  end)

  it('writes each line as a whole', function()
    local writes = 0
    local before = io.stdout
    io.stdout = { write = function(_, ...) writes = writes + select('#', ...) end }
    write('a', 'b', 'c')
    io.stdout = before
    assert.equal(1, writes)
  end)
end)
