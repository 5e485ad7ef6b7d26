local streaming = require 'streamlua.streaming'

describe('times', function()
  local time = streaming.time

  it('T5: floor', function()
    assert.equal(1200, time.floor(1350, 200))
    assert.equal(1200, time.floor(1200, 200))
    assert.equal(0, time.floor(199, 200))
    assert.equal(1, time.floor(1, 1))
    assert.equal(1250, time.floor(1350, 200, 50))
  end)

  it('T7: until_', function()
    assert.same({ 1000 }, time.until_(1000, 1100, 100))
    assert.same({}, time.until_(1000, 1000, 100))
    assert.same({ 1000, 1030, 1060, 1090 }, time.until_(1000, 1100, 30))
  end)

  it('T8: to', function()
    assert.same({ 1000, 1100 }, time.to(1000, 1100, 100))
    assert.same({ 1000 }, time.to(1000, 1000, 100))
    assert.same({ 1000, 1030, 1060, 1090 }, time.to(1000, 1100, 30))
  end)

  it('T9: is_multiple_of', function()
    assert.is_true(time.is_multiple_of(1000, 5))
    assert.is_true(time.is_multiple_of(1000, 1000))
    assert.is_true(time.is_multiple_of(1000, 1))
    assert.is_false(time.is_multiple_of(1000, 6))
  end)
end)

describe('the recurring timer', function()
  local function timer_of(clock, period)
    local ticks = {}
    return streaming.recurring_timer { clock = clock, period = period,
      callback = function(ms) ticks[#ticks + 1] = ms end }, ticks
  end

  it('T1: starts strictly after now, on the grid', function()
    for now, expected in pairs({ [0] = 1000, [1] = 1000, [999] = 1000, [1000] = 2000, [1001] = 2000 }) do
      assert.equal(expected, (timer_of(streaming.manual_clock(now), '1s')):start_time())
    end
    assert.equal(2300, (timer_of(streaming.manual_clock(1300), '1s')):restart_time(300))
  end)

  it('T3: fires missed ticks at once, and an interrupting stop gives the last one', function()
    local clock = streaming.manual_clock(0)
    local timer, ticks = timer_of(clock, '100ms')
    timer:start(0)
    assert.same({ 0 }, ticks)
    clock:advance(100)
    assert.same({ 0, 100 }, ticks)
    clock:advance(200)
    assert.same({ 0, 100, 200, 300 }, ticks)
    assert.equal(300, timer:stop { interrupt = true })
    clock:advance(1000)
    assert.same({ 0, 100, 200, 300 }, ticks)
  end)

  it('T4: a stop without interrupt lets the tick that is waited for happen, and one more', function()
    local clock = streaming.manual_clock(0)
    local timer, ticks = timer_of(clock, '100ms')
    timer:start(0)
    assert.is_nil(timer:stop { interrupt = false })
    assert.is_nil(timer:stopped())
    clock:advance(200)
    assert.same({ 0, 100, 200 }, ticks)
    assert.equal(200, timer:stopped())
  end)

  it('a clock that moves back brings silence until it has caught up', function()
    local clock = streaming.manual_clock(1000)
    local timer, ticks = timer_of(clock, '100ms')
    timer:start(1100)
    clock:set(1100)
    clock:set(500)
    clock:set(1199)
    assert.same({ 1100 }, ticks)
    clock:set(1200)
    assert.same({ 1100, 1200 }, ticks)
  end)

  it('mistakes are errors', function()
    assert.has_error(function() streaming.recurring_timer { period = '0s', callback = print } end)
    assert.has_error(function() streaming.recurring_timer { period = '1s' } end)
    local timer = timer_of(streaming.manual_clock(0), '1s')
    timer:start()
    assert.has_error(function() timer:start() end)
  end)
end)

describe('the rate estimator', function()
  local function pid(p, i, d, least)
    return streaming.pid_rate_estimator { batch_ms = 20, proportional = p, integral = i, derived = d,
      min_rate = least }
  end

  it('T135: says nothing for the first sample, nor for one that holds nothing', function()
    local estimator = pid(1, 0, 0, 10)
    assert.is_nil(estimator:compute(0, 10, 10, 0))
    assert.equal(1000, estimator:compute(10, 10, 10, 0))
    assert.is_nil(estimator:compute(10, 10, 10, 0))
    assert.is_nil(estimator:compute(30, 0, 10, 0))
  end)

  it('T137: never falls below the least rate', function()
    local estimator = pid(1, 1, 0, 5)
    assert.is_nil(estimator:compute(0, 1, 20, 100))
    for i = 1, 49 do assert.equal(5, estimator:compute(20 * i, 1, 20, 100)) end
  end)

  it('T138, T139: follows the processing rate up and down', function()
    local up, down = pid(1, 1, 0, 10), pid(1, 1, 0, 10)
    for i = 0, 10 do
      local expected = i > 0 and (i + 1) * 1000 or nil
      assert.equal(expected, up:compute(20 * i, 20 * (i + 1), 20, 0))
      expected = i > 0 and (50 - i) * 1000 or nil
      assert.equal(expected, down:compute(20 * i, 20 * (50 - i), 20, 0))
    end
  end)

  it('T141: bad arguments are errors', function()
    for _, bad in ipairs({ { batch_ms = 0 }, { batch_ms = 20, proportional = -1 }, { batch_ms = 20, integral = -1 },
      { batch_ms = 20, derived = -1 }, { batch_ms = 20, min_rate = 0 }, { batch_ms = 20, min_rate = -10 } }) do
      assert.has_error(function() streaming.pid_rate_estimator(bad) end)
    end
  end)
end)
