-- labels: short
local process = require 'support.process'
local signal = require 'posix.signal'

describe('support.process', function()
  it('returns output and exit code', function()
    local r = process.run({ '-c', 'cat; echo no >&2; exit 3' }, { program = 'sh', stdin = 'yes' })
    assert.same({ 3, 'yes', 'no\n' }, { r.code, r.stdout, r.stderr })
  end)

  it('counts a signal as 128 + its number', function()
    local p = process.start({ '-c', 'echo up; exec cat' }, { program = 'sh', keep_stdin = true })
    assert.equal('up', p:expect('stdout', '(%a+)\n'))
    p:signal('TERM')
    assert.equal(143, p:wait().code)
  end)

  it('starts what hears an interrupt, also where its parent was started to hear none', function()
    local before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    local r = process.run({ '-c', 'kill -INT $$; echo ignored' }, { program = 'sh' })
    signal.signal(signal.SIGINT, before)
    assert.same({ 130, '' }, { r.code, r.stdout })
  end)

  it('fails a program that is late, with what it had said', function()
    local p = process.start({ '-c', 'echo busy; exec cat' }, { program = 'sh', keep_stdin = true })
    p:expect('stdout', 'busy\n')
    p.timeout = 0.05
    local ok, message = pcall(p.expect, p, 'stdout', 'never')
    assert.is_false(ok)
    assert.truthy(message:find('busy', 1, true))
  end)

  it('reads more than a pipe holds', function()
    local r = process.run({ '-c', 'head -c 300000 /dev/zero' }, { program = 'sh' })
    assert.equal(300000, #r.stdout)
  end)

  it('sets and unsets variables, and removes its folders', function()
    local kept
    process.with_folder(function(folder)
      kept = folder
      local r = process.run({ '-c', 'echo $A-$HOME; pwd' },
        { program = 'sh', cwd = folder, env = { A = 'x', HOME = false } })
      assert.equal('x-\n' .. folder .. '\n', r.stdout)
    end)
    assert.is_nil(io.open(kept))
  end)
end)
