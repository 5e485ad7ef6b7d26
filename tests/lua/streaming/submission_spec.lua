-- labels: short
-- A program as a topology, and what a change of partitions does to its batches.
local streaming = require 'streamlua.streaming'
local streams = require 'streamlua.streaming.stream'
local submission = require 'streamlua.streaming.submission'
local helper = require 'lua.streaming.helper'

local function add(a, b) return a + b end
local function subtract(a, b) return a - b end

local function records(_, index)
  local list = {}
  for i = 1, 20 do list[i] = { 'k' .. (i * i + index) % 9, i + index } end
  return list
end

-- Every kind of stream with partitions; out gets what each says of a batch.
local function program(name, out)
  local ssc = streaming.context { name = name, batch = '1s', checkpoint = helper.folder() .. '/' .. name,
    clock = streaming.manual_clock(0), config = { containers = 3, mine = true } }
  local words = ssc:input_stream(records):name('words')
  local sums = words:update_state_by_key(function(values, old)
    local sum = old or 0
    for _, value in ipairs(values) do sum = sum + value end
    return sum
  end):name('sums')
  local counts = words:reduce_by_key_and_window(add, subtract, '4s', '1s'):name('counts')
  local sizes = words:group_by_key_and_window('3s', '1s'):map_values(function(list) return #list end)
  local seen = words:map_with_state(streaming.state_spec(function(_, key, value, state)
    local total = (state:get_option() or 0) + value
    state:update(total)
    return { key, total }
  end):timeout('3s')):name('seen')
  local joined = words:reduce_by_key(add):name('reduced'):join(counts):name('joined')
    :map_values(function(pair) return pair[1] * 1000 + pair[2] end)
  local all = words:count()
  local kinds = { sums = sums, counts = counts, sizes = sizes, joined = joined, seen = seen, all = all,
    total = sums:window('2s') }
  for kind, stream in pairs(kinds) do
    stream:foreach_rdd(function(rdd, time)
      local at = time / 1000
      out[at] = out[at] or {}
      out[at][kind] = helper.texts({ rdd:collect() })[1]
    end)
  end
  return ssc, kinds
end

local function components_of(t)
  local list = {}
  for i, entry in ipairs(t.components) do
    local sources = {}
    for k, input in ipairs(entry.inputs) do sources[k] = input.source end
    list[i] = ('%s %s %d (%s)'):format(entry.kind, entry.name, entry.parallelism, table.concat(sources, ' '))
  end
  return list
end

describe('a stream program that is submitted', function()
  after_each(helper.clean)

  it('is a topology of its driver and of the streams whose partitions can be chosen', function()
    local ssc = program('shape', {})
    local t = submission.topology(ssc, {})
    assert.same({ 'spout driver 1 ()', 'bolt words 2 (driver)', 'bolt sums 2 (words)', 'bolt counts 2 (words)',
      'bolt group_by_key_and_window-4 2 (words)', 'bolt seen 2 (words)', 'bolt reduced 2 (words)',
      'bolt joined 2 (reduced counts)' }, components_of(t))
    assert.same({}, t:validate())
    assert.equal(3, t.config.containers)
    assert.is_nil(t.config.mine)
    assert.is_true(submission.is_program(t.config))
    assert.matches('submission_spec.lua$', t.components[3].file)
    assert.equal('a program has one driver', submission.fixed(t.config, 'driver'))
    assert.is_nil(submission.fixed(t.config, 'words'))
    assert.is_nil(submission.fixed({}, 'driver'))
  end)

  it('says what is wrong with the names of streams', function()
    local ssc = streaming.context { name = 'names', batch = '1s' }
    ssc:input_stream(records):name('no name'):print()
    local problems = submission.topology(ssc, {}):validate()
    assert.equal(1, #problems)
    assert.matches('no name', problems[1].message)
    assert.matches('submission_spec.lua$', problems[1].file)
  end)

  it('gives the driver a container of its own', function()
    local function instance(component, task) return { component = component, task = task, index = 0, cpu = 1,
      ram = 10, disk = 5 } end
    local plan = submission.set_apart { containers = {
      { id = 1, cpu = 1, ram = 10, disk = 5, instances = { instance('driver', 1) } },
      { id = 2, cpu = 2, ram = 25, disk = 10, instances = { instance('a', 2), instance('b', 3) } } } }
    assert.same({ 1, 2 }, { plan.containers[1].id, plan.containers[2].id })
    assert.equal('a', plan.containers[1].instances[1].component)
    assert.same({ { component = 'driver', task = 1, index = 0, cpu = 1, ram = 10, disk = 5 } },
      plan.containers[2].instances)
    plan = submission.set_apart { containers = {
      { id = 1, cpu = 2, ram = 25, disk = 10, instances = { instance('driver', 1), instance('a', 2) } } } }
    assert.same({ 1, 15, 5 }, { plan.containers[1].cpu, plan.containers[1].ram, plan.containers[1].disk })
    assert.equal('driver', plan.containers[2].instances[1].component)
  end)

  it('says the same whatever its partitions are, and when they change between batches', function()
    local expected, out = {}, {}
    local ssc = program('fixed', expected)
    ssc:start()
    ssc:advance('12s')
    ssc:stop()
    local kinds
    ssc, kinds = program('resized', out)
    ssc:start()
    local turn = 0
    for batch = 1, 12 do
      ssc:advance('1s')
      assert.is_true(ssc:is_at_rest())
      if batch % 2 == 0 then
        turn = turn + 1
        for i, stream in ipairs(submission.resizable(ssc)) do streams.resize(stream, 1 + (i + turn) % 4) end
      end
    end
    ssc:stop()
    assert.equal(12, #expected)
    for time = 1, 12 do assert.same(expected[time], out[time], time) end
    assert.is_true(kinds.sums.partitions ~= kinds.counts.partitions)
  end)

  it('makes up for what was due while it was held', function()
    local out = {}
    local ssc = program('held', out)
    ssc:start()
    ssc:advance('2s')
    ssc:pause()
    ssc.clock:set(5000)
    assert.equal(2, #out)
    ssc:resume()
    ssc:work_to_rest()
    assert.equal(5, #out)
    ssc:pause()
    ssc:resume()
    ssc:advance('1s')
    assert.equal(6, #out)
    ssc:stop()
  end)
end)
