local advisor = require 'streamlua.runtime.advisor'
local files = require 'support.files'

-- Runs a script with the advisor on; returns what it found as { what = 'file:line' }.
local function findings(text)
  local path = files.write('hot.lua', text)
  local chunk = assert(loadfile(path))
  advisor.start()
  jit.flush()
  local ok, message = pcall(chunk)
  local report = advisor.report()
  advisor.stop()
  assert(ok, message)
  local found = {}
  for _, entry in ipairs(report.findings) do
    found[entry.what] = entry.place:sub(#path - #'hot.lua' + 1)
    assert.equal(path, entry.place:match('^(.*):%d+$'))
  end
  return found
end

describe('the JIT advisor', function()
  after_each(files.clean)

  it('names the function that a hot loop calls and the compiler does not know', function()
    assert.same({ ['string.gmatch'] = 'hot.lua:4' }, findings([[
      local n = 0
      for _ = 1, 500 do
        -- Three words.
        for _ in ('a b c'):gmatch('%S+') do n = n + 1 end
      end
      return n]]))
    assert.same({ ['string.match'] = 'hot.lua:2' }, findings([[
      local function digits(s)
        return s:match('^%d+') ~= nil
      end
      local n = 0
      for _ = 1, 500 do if digits('12') then n = n + 1 end end
      return n]]))
  end)

  it('names the instruction that the compiler does not know', function()
    assert.same({ ['bytecode FNEW'] = 'hot.lua:3' }, findings([[
      local last
      for i = 1, 500 do
        last = function() return i end
      end
      return last]]))
  end)

  it('is silent about code that compiles, and about how the compiler finds its traces', function()
    assert.same({}, findings([[
      local split = require 'streamlua.split'
      local n = 0
      local function add(k) n = n + k end
      for i = 1, 1000 do
        for word in split('a b c') do add(#word) end
        if i % 7 == 0 then add(1) end
      end
      return n]]))
  end)

  it('forgets what it found when it stops', function()
    findings("for _ = 1, 500 do ('a'):match('a') end")
    assert.same({ findings = {}, flushes = 0 }, advisor.report())
  end)
end)
