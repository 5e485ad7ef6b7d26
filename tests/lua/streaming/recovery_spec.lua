local streaming = require 'streamlua.streaming'
local helper = require 'lua.streaming.helper'
local streams = require 'streamlua.testing.streams'

local add, subtract, pair_with_one = helper.add, helper.subtract, helper.pair_with_one

local function check(expected, out)
  assert.same(helper.expected(expected), helper.texts(out))
end

local function sum(values, old)
  local total = old or 0
  for _, value in ipairs(values) do total = total + value end
  return total
end

-- A program over lists by batch number, made anew by every call; `declare(stream, ssc)` returns what is
-- collected. Runs `batches` batches from where the checkpoint ends, or from 0.
local function run(options)
  local folder = helper.folder() .. '/c'
  local clock = streaming.manual_clock(options.from or 0)
  local out
  local ssc = streaming.get_or_create(folder, function()
    local settings = { name = options.name or 'r', batch = options.batch or '500ms', checkpoint = folder,
      clock = clock }
    for name, value in pairs(options.context or {}) do settings[name] = value end
    local made = streaming.context(settings)
    made.warnings = {}
    made.warner = function(text) table.insert(made.warnings, text) end
    local source = streams.source(made, options.lists)
    local result = { options.declare(source, made) }
    out = {}
    for i, stream in ipairs(result) do out[i] = streams.collect(stream) end
    return made
  end, options.get)
  ssc:start()
  ssc:advance(options.batches * (options.batch and tonumber(options.batch) or 0.5))
  ssc:stop()
  out[#out + 1] = ssc
  return unpack(out)
end

describe('recovery', function()
  after_each(helper.clean)

  local W = helper.batches('a,a,b / "","" / {} / a,a,b / "","" / {}')

  it('T107: runs the batch of the checkpoint again and goes on', function()
    local function declare(s) return s:map(pair_with_one):reduce_by_key(add) end
    check('a:2 b:1 / "":2 / {}', (run { lists = W, declare = declare, batches = 3 }))
    check('{} / a:2 b:1 / "":2 / {}', (run { lists = W, declare = declare, batches = 3, from = 1500 }))
  end)

  it('a manual clock goes on where the checkpoint ends', function()
    local function declare(s) return s:map(pair_with_one):reduce_by_key(add) end
    run { lists = W, declare = declare, batches = 3 }
    check('{} / a:2 b:1 / "":2 / {}', (run { lists = W, declare = declare, batches = 3 }))
  end)

  it('T108: an incremental window goes on as if nothing had been', function()
    local lists = {}
    for i = 1, 10 do lists[i] = { { 'a', 1 } } end
    local function declare(s)
      return s:reduce_by_key_and_window(add, subtract, '2s', '500ms'):checkpoint('1s')
    end
    check('a:1 / a:2 / a:3 / a:4 / a:4 / a:4 / a:4', (run { lists = lists, declare = declare, batches = 7 }))
    check('a:4 / a:4 / a:4 / a:4', (run { lists = lists, declare = declare, batches = 3, from = 3500 }))
  end)

  it('T115: data files come and go, and the state is there after each of two restarts', function()
    local lists = {}
    for i = 1, 12 do lists[i] = { 'a' } end
    local function declare(s) return s:map(pair_with_one):update_state_by_key(sum):checkpoint('1s') end
    local function data_files()
      local names = {}
      for name in require('lfs').dir(helper.folder() .. '/c/state') do
        if name:sub(1, 1) ~= '.' then names[#names + 1] = name:match('%-(%d+)$') end
      end
      table.sort(names)
      return names
    end
    check('a:1 / a:2', (run { lists = lists, declare = declare, batches = 2 }))
    assert.same({ '1000' }, data_files())
    check('a:2 / a:3 / a:4', (run { lists = lists, declare = declare, batches = 2, from = 1000 }))
    check('a:4 / a:5', (run { lists = lists, declare = declare, batches = 1, from = 2000 }))
    assert.same({ '2000' }, data_files())
  end)

  it('T116: two states in a row are both saved in every batch', function()
    local function declare(s)
      return s:map(pair_with_one):update_state_by_key(sum):checkpoint('500ms')
        :update_state_by_key(sum):checkpoint('500ms')
    end
    local lists = { { 'a' }, { 'a' }, {}, {} }
    check('a:1 / a:3', (run { lists = lists, declare = declare, batches = 2 }))
    check('a:3 / a:5', (run { lists = lists, declare = declare, batches = 1, from = 1000 }))
  end)

  it('T76: map_with_state goes on identical to a run without a break', function()
    local lists = helper.batches('{} / a / a,b / a,b,c / a,b / a / {}')
    local function declare(s)
      local mapped = s:map(pair_with_one):map_with_state(streaming.state_spec(function(_, key, value, state)
        local total = (state:get_option() or 0) + value
        state:update(total)
        return { key, total }
      end)):checkpoint('1500ms')
      return mapped, mapped:state_snapshots()
    end
    local _, before = run { lists = lists, declare = declare, batches = 3 }
    check('{} / a:1 / a:2 b:1', before)
    local mapped, after = run { lists = lists, declare = declare, batches = 4, from = 1500 }
    check('a:2 b:1 / a:3 b:2 c:1 / a:4 b:3 c:1 / a:5 b:3 c:1 / a:5 b:3 c:1', after)
    -- What the function returned in the batch that was saved is not there again.
    check('a:3 b:2 c:1 / a:4 b:3 / a:5 / {}', { unpack(mapped, #mapped - 3) })
  end)

  it('state that was not saved comes about again from the inputs', function()
    local function declare(s) return s:map(pair_with_one):update_state_by_key(sum):checkpoint('2s') end
    local lists = { { 'a' }, { 'a' }, { 'a', 'b' }, { 'b' } }
    check('a:1 / a:2 / a:3 b:1', (run { lists = lists, declare = declare, batches = 3 }))
    check('a:3 b:1 / a:3 b:2', (run { lists = lists, declare = declare, batches = 1, from = 1500 }))
  end)

  it('a down-time runs the batches that were missed', function()
    local function declare(s) return s:map(pair_with_one):update_state_by_key(sum):checkpoint('500ms') end
    local lists = { { 'a' }, { 'a' }, { 'a' }, { 'a' }, { 'a' } }
    check('a:1', (run { lists = lists, declare = declare, batches = 1 }))
    local out = run { lists = lists, declare = declare, batches = 1, from = 2100 }
    check('a:1 / a:2 / a:3 / a:4 / a:5', out)
    assert.same({ 500, 1000, 1500, 2000, 2500 }, out.times)
  end)

  it('a graceful stop saves the states between their intervals (SPARK-13222)', function()
    local folder = helper.folder() .. '/c'
    local calls = {}
    local function program(clock)
      return streaming.get_or_create(folder, function()
        local ssc = streaming.context { name = 'g', batch = '1s', checkpoint = folder, clock = clock }
        streams.source(ssc, { { 'a' }, { 'a' }, { 'a' } }):map(pair_with_one)
          :update_state_by_key(function(values, old)
            calls[#calls + 1] = #values
            return sum(values, old)
          end):foreach_rdd(function(rdd) calls.last = rdd:collect() end)
        return ssc
      end)
    end
    local clock = streaming.manual_clock(0)
    local ssc = program(clock)
    ssc:start()
    ssc:advance('1s')
    ssc:stop { graceful = true }
    local sum_before = calls.last[1][2]
    local again = program(streaming.manual_clock(clock:now()))
    calls = {}
    again:start()
    again:advance('1s')
    again:stop()
    -- Nothing but the batches since then is computed.
    assert.is_true(#calls <= 2, #calls)
    assert.is_true(calls.last[1][2] >= sum_before)
  end)

  it('T118, B2: what differs from the checkpoint is said, and what is set now wins', function()
    local function declare(s) return s:map(pair_with_one):update_state_by_key(sum):name('sums') end
    run { lists = { { 'a' } }, declare = declare, batches = 1, context = { default_partitions = 3 } }
    local _, ssc = run { lists = { { 'a' }, { 'a' } }, declare = declare, batches = 1, from = 500 }
    assert.equal(3, ssc.default_partitions)
    local function other(s)
      return s:map(pair_with_one):filter(function() return true end):update_state_by_key(sum):name('sums')
    end
    local out
    out, ssc = run { lists = { { 'a' }, { 'a' }, { 'a' } }, declare = other, batches = 1, from = 1000,
      context = { default_partitions = 2 } }
    assert.equal(2, ssc.default_partitions)
    local text = table.concat(ssc.warnings, '\n')
    assert.matches('default_partitions was 3 and is 2', text)
    assert.matches('stream filter%-3 .* is new', text)
    assert.matches('stream sums had 3 partitions and has 2', text)
    check('a:2 / a:3', out)
  end)

  it('a state that no stream asks for is refused, or dropped where the program says so', function()
    local function declare(s) return s:map(pair_with_one):update_state_by_key(sum):name('sums') end
    run { lists = { { 'a' } }, declare = declare, batches = 1 }
    local function renamed(s) return s:map(pair_with_one):update_state_by_key(sum):name('totals') end
    local ok, message = pcall(run, { lists = { { 'a' } }, declare = renamed, batches = 1, from = 500 })
    assert.is_false(ok)
    assert.matches("can not be taken over: .*sums", message)
    run { lists = { { 'a' } }, declare = renamed, batches = 1, from = 500,
      context = { drop_missing_state = true } }
  end)

  it('a checkpoint of another program is refused', function()
    local function declare(s) return s end
    run { lists = { { 1 } }, declare = declare, batches = 1 }
    local ok, message = pcall(run, { name = 'other', lists = { { 1 } }, declare = declare, batches = 1 })
    assert.is_false(ok)
    assert.matches("belongs to program 'r', this is 'other'", message)
  end)

  it('B1: nothing is added to a recovered context outside of its function', function()
    local function declare(s) return s end
    run { lists = { { 1 } }, declare = declare, batches = 1 }
    local folder, source = helper.folder() .. '/c', nil
    streaming.get_or_create(folder, function()
      local ssc = streaming.context { name = 'r', batch = '500ms', checkpoint = folder,
        clock = streaming.manual_clock(500) }
      source = streams.source(ssc, {})
      streams.collect(source)
      return ssc
    end)
    local ok, message = pcall(function() source:foreach_rdd(print) end)
    assert.is_false(ok)
    assert.matches('recovery_spec.lua:%d+: foreach_rdd: .*checkpoint', message)
  end)

  it('no checkpoint: the function is called; unreadable ones: an error, or the function if told', function()
    local folder = helper.folder() .. '/c'
    local calls = 0
    local function create()
      calls = calls + 1
      return streaming.context { name = 'n', batch = '1s', clock = streaming.manual_clock(0) }
    end
    streaming.get_or_create(folder, create)
    assert.equal(1, calls)
    helper.write(folder, 'checkpoint-1000', 'garbage')
    local ok, message = pcall(streaming.get_or_create, folder, create)
    assert.is_false(ok)
    assert.matches('no checkpoint in .* can be read', message)
    streaming.get_or_create(folder, create, { create_on_error = true })
    assert.equal(2, calls)
    assert.has_error(function() streaming.get_or_create(folder .. 'x', function() return 5 end) end)
  end)

  it('a corrupted newest checkpoint falls back to an older one', function()
    local function declare(s) return s:map(pair_with_one):update_state_by_key(sum):checkpoint('500ms') end
    local lists = { { 'a' }, { 'a' }, { 'a' }, { 'a' } }
    run { lists = lists, declare = declare, batches = 3 }
    local newest
    for name in require('lfs').dir(helper.folder() .. '/c') do
      local time = tonumber(name:match('^checkpoint%-(%d+)$'))
      if time and (not newest or time > newest) then newest = time end
    end
    local file = io.open(('%s/c/checkpoint-%d'):format(helper.folder(), newest), 'r+b')
    file:write('xxxxxxxxxxxx')
    file:close()
    local out = run { lists = lists, declare = declare, batches = 1, from = 1500 }
    check('a:4', { out[#out] })
  end)
end)
