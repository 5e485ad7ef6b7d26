-- Why Lua's memory lies below 4 GiB is told in core/main/low_memory.h.

describe('the memory of Lua', function()
  local build = os.getenv('SL_TEST_BUILD')

  local function high_addresses(count)
    local high = 0
    local kept = {}
    for i = 1, count do
      local item = { i, kept[i % 1000] and i or 0 }
      kept[i % 1000] = item
      if tonumber(('%p'):format(item):sub(3), 16) >= 2 ^ 32 then high = high + 1 end
    end
    assert.is_true(#kept <= 1000)
    return high
  end

  it('lies below 4 GiB, also after large blocks came and went', function()
    if build == 'asan' or build == 'tsan' or jit.arch ~= 'x64' then
      return pending('sanitizers have their own memory')
    end
    assert.equal(0, high_addresses(20000))
    for _ = 1, 40 do
      assert.equal(4e6, #('x'):rep(4e6))
      collectgarbage()
    end
    local list = {}
    for i = 1, 1e6 do list[i] = i end
    assert.equal(1e6, #list)
    assert.is_true(tonumber(('%p'):format(list):sub(3), 16) < 2 ^ 32)
    assert.equal(0, high_addresses(20000))
  end)

  it('still leaves the compiler room for its code', function()
    local before = select('#', jit.status())
    local traces = 0
    local function count(what) if what == 'stop' then traces = traces + 1 end end
    jit.attach(count, 'trace')
    local sum = 0
    for i = 1, 1000 do sum = sum + i % 7 end
    jit.attach(count)
    assert.is_true(before > 0 and sum > 0)
    assert.is_true(traces > 0)
  end)
end)
