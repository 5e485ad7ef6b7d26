local split = require 'streamlua.split'

local function words(text)
  local list = {}
  for word in split(text) do
    list[#list + 1] = word
  end
  return list
end

local function by_pattern(text)
  local list = {}
  for word in text:gmatch('%S+') do
    list[#list + 1] = word
  end
  return list
end

describe('streamlua.split', function()
  it('gives the runs of bytes that are no blank', function()
    assert.same({ 'to', 'be', 'or', 'not' }, words('to be or not'))
    assert.same({ 'a', 'b' }, words('  a   b  '))
    assert.same({ 'a', 'b', 'c', 'd', 'e', 'f' }, words('\ta\nb\vc\fd\re f\r'))
    assert.same({}, words(''))
    assert.same({}, words('   '))
    assert.same({}, words('\t\t'))
    assert.same({ 'x' }, words('x'))
  end)

  it('agrees with %S+ on random bytes', function()
    math.randomseed(7)
    local alphabet = { ' ', ' ', '\t', '\n', 'a', 'b', '\0', '\255', '\160', '\v', 'xyz' }
    for _ = 1, 2000 do
      local parts = {}
      for i = 1, math.random(0, 20) do
        parts[i] = alphabet[math.random(#alphabet)]
      end
      local text = table.concat(parts)
      assert.same(by_pattern(text), words(text))
    end
    for _ = 1, 500 do
      local parts = {}
      for i = 1, math.random(0, 12) do
        parts[i] = ({ ' ', '  ', 'q', '\0' })[math.random(4)]
      end
      local text = table.concat(parts)
      assert.same(by_pattern(text), words(text))
    end
  end)

  it('keeps nested loops apart', function()
    local seen = {}
    for outer in split('a b c') do
      for inner in split('1 2') do
        for last in split('x\ty') do
          seen[#seen + 1] = outer .. inner .. last
        end
      end
    end
    assert.equal('a1x a1y a2x a2y b1x b1y b2x b2y c1x c1y c2x c2y', table.concat(seen, ' '))
  end)

  it('keeps loops apart that run in turns', function()
    local function steps(text)
      return coroutine.wrap(function()
        for word in split(text) do
          coroutine.yield(word)
        end
      end)
    end
    local a, b, seen = steps('a b c d'), steps('1\t2\t3'), {}
    for _ = 1, 4 do
      seen[#seen + 1] = tostring((a())) .. tostring((b()))
    end
    assert.same({ 'a1', 'b2', 'c3', 'dnil' }, seen)
  end)

  it('keeps later loops right when one was left early or raised', function()
    for _ = 1, 3 do
      for word in split('a b c') do
        if word == 'b' then
          break
        end
      end
      pcall(function()
        for _ in split('d e') do
          error('stop')
        end
      end)
      assert.same({ 'x', 'y' }, words('x y'))
    end
  end)

  it('gives every word of texts with more words than it can know', function()
    local step, state = split('first second third')
    assert.equal('first', step(state))
    -- Twice through more words than there are places for, so that they are forgotten in between.
    for round = 1, 2 do
      for i = 1, 60 do
        local parts = {}
        for k = 1, 2000 do parts[k] = ('w%d.%d'):format(i, k * round) end
        assert.same(parts, words(table.concat(parts, i % 2 == 0 and ' ' or '\t')))
      end
      assert.same({ 'first', 'third' }, words('first third'))
    end
    assert.equal('second', step(state))
    assert.equal('third', step(state))
    assert.is_nil(step(state))
  end)

  it('gives words of any length', function()
    local list = {}
    for length = 1, 70 do list[length] = ('x'):rep(length) end
    list[#list + 1] = ('y'):rep(1e5)
    assert.same(list, words(table.concat(list, ' ')))
    assert.same(list, words('\n' .. table.concat(list, ' \n') .. '\t'))
  end)

  it('gives nothing more after the end', function()
    local step, state = split('a')
    assert.equal('a', step(state))
    assert.is_nil(step(state))
    assert.is_nil(step(state))
  end)

  it('refuses what is no string', function()
    for _, value in ipairs({ 12, true, {} }) do
      local ok, message = pcall(split, value)
      assert.is_false(ok)
      assert.truthy(message:find('expected a string, got ' .. type(value), 1, true))
    end
    assert.is_false((pcall(split, nil)))
  end)

  it('is compiled: no trace of a loop over it is given up', function()
    local aborted = {}
    local function watch(what, _, func, pc, code, reason)
      if what == 'abort' then
        aborted[#aborted + 1] = ('%s:%s %s %s'):format(tostring(func), tostring(pc), tostring(code),
          tostring(reason))
      end
    end
    local lines = { 'to be or not to be', 'tab\tseparated\twords', 'one', '' }
    local function count()
      local n = 0
      for i = 1, 20000 do
        for word in split(lines[i % #lines + 1]) do
          n = n + #word
        end
      end
      return n
    end
    local was_on = jit.status()
    jit.on()
    jit.flush()
    jit.attach(watch, 'trace')
    local n = count()
    jit.attach(watch)
    if not was_on then
      jit.off()
    end
    assert.equal(5000 * (13 + 17 + 3), n)
    -- A loop that is left while it is recorded is given up once and compiled the next time;
    -- "NYI" is the reason that never goes away.
    for _, text in ipairs(aborted) do
      assert.falsy(text:find('NYI', 1, true), text)
    end
    local traces = 0
    for i = 1, 1000 do
      traces = traces + (require('jit.util').traceinfo(i) and 1 or 0)
    end
    assert.is_true(traces > 0)
  end)
end)
