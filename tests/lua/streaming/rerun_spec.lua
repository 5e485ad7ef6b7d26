-- labels: short
-- What runs again after a restart, and what checkpoints of it lie in the folder.
local lfs = require 'lfs'
local streaming = require 'streamlua.streaming'
local helper = require 'lua.streaming.helper'

local function sum(values, old)
  local total = old or 0
  for _, value in ipairs(values) do total = total + value end
  return total
end

-- A program that counts batches and their numbers; out gets "time count sum", a time in `failing` fails.
local function program(clock, out, failing)
  local folder = helper.folder() .. '/c'
  return streaming.get_or_create(folder, function()
    local ssc = streaming.context { name = 'rerun', batch = '1s', checkpoint = folder, clock = clock }
    ssc.warner = function() end
    ssc:input_stream(function(_, index) return { { 'count', 1 }, { 'sum', index } } end)
      :update_state_by_key(sum):checkpoint('2s'):name('state')
      :foreach_rdd(function(rdd, time)
        if failing[time] then error('not now') end
        local found = rdd:collect_as_map()
        out[#out + 1] = ('%d %d %d'):format(time, found.count, found.sum)
      end)
    return ssc
  end)
end

local function run(from, batches, failing)
  local out = {}
  local ssc = program(streaming.manual_clock(from), out, failing or {})
  ssc:start()
  ssc:advance(batches)
  ssc:stop()
  return out
end

describe('after a restart', function()
  after_each(helper.clean)

  it('a batch that failed runs again with the state it had', function()
    assert.same({ '1000 1 1', '2000 2 3', '4000 4 10', '5000 5 15' }, run(0, 5, { [3000] = true }))
    assert.same({ '3000 3 6', '5000 5 15', '6000 6 21' }, run(5000, 1))
    -- It has succeeded now.
    assert.same({ '6000 6 21', '7000 7 28' }, run(6000, 1))
  end)

  it('a batch that fails again stays pending', function()
    run(0, 3, { [2000] = true })
    assert.same({ '3000 3 6', '4000 4 10' }, run(3000, 1, { [2000] = true }))
    assert.same({ '2000 2 3', '4000 4 10', '5000 5 15' }, run(4000, 1))
  end)

  it('T113: a completed batch has a checkpoint and its backup', function()
    local folder = helper.folder() .. '/c'
    local ssc = program(streaming.manual_clock(0), {}, {})
    ssc:start()
    for time = 1000, 8000, 1000 do
      ssc:advance(1)
      local count = 0
      for name in lfs.dir(folder) do
        if name:find('^checkpoint%-') then count = count + 1 end
      end
      assert.equal(math.min(10, 2 * time / 1000), count)
      assert.equal('file', lfs.attributes(('%s/checkpoint-%d'):format(folder, time), 'mode'))
      assert.equal('file', lfs.attributes(('%s/checkpoint-%d.bk'):format(folder, time), 'mode'))
    end
    ssc:stop()
  end)

  it('T101: a graceful stop right after the start does not hang on a receiver', function()
    local clock = streaming.manual_clock(0)
    local ssc = streaming.context { name = 'stop', batch = '1s', clock = clock }
    ssc:receiver_stream({ poll = function() return false end }):foreach_rdd(function() end)
    ssc:start()
    ssc:stop { graceful = true }
    assert.equal('STOPPED', ssc:state())
    assert.is_true(clock:now() <= 30000)
  end)
end)
