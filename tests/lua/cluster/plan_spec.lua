local native = require 'streamlua.topology.native'
local packing = require 'streamlua.packing'
local plans = require 'streamlua.cluster.plan'

-- A word count whose `count` is read by key.
local function described()
  local streamlua = require 'streamlua'
  local t = streamlua.topology('words')
  t:spout('lines', streamlua.spout { fields = { 'line' }, next_tuple = function() end })
  t:bolt('split', streamlua.bolt { fields = { 'word' }, execute = function() end },
    { parallelism = 2 }):shuffle('lines')
  t:bolt('count', streamlua.bolt { execute = function() end }, { parallelism = 2 })
    :fields('split', { 'word' })
  return assert(native.describe(assert(native.decode(assert(t:encode())))))
end

local function packed(from, changes, current)
  local request = packing.request_from_topology(from,
    { current = current, changes = changes, config = { containers = 2 } })
  return (assert(packing.plan(request)))
end

describe('plans of running topologies', function()
  local NAMES = { 'lines', 'split', 'count' }

  it('give the key groups of keyed components to their tasks', function()
    local from = described()
    local plan = plans.with_key_groups(packed(from), from, 8)
    assert.equal('count', next(plan.key_groups))
    assert.is_nil(next(plan.key_groups, 'count'))
    local tasks = plans.tasks(plan).count
    assert.equal(2, #tasks)
    assert.same({ tasks[1], tasks[1], tasks[1], tasks[1], tasks[2], tasks[2], tasks[2], tasks[2] },
      plan.key_groups.count)
  end)

  it('come back from the structs of the core as they were', function()
    local from = described()
    local plan = plans.with_key_groups(packed(from), from, 8)
    plan.containers[1].supervisor, plan.containers[1].host = 's1', 'h1'
    plan.containers[1].port = 6700
    local struct, keep = plans.to_struct(plan, NAMES)
    local back, names = plans.from_struct(struct)
    assert.same(plan, back)
    assert.same(NAMES, names)
    assert.truthy(keep)
  end)

  it('move as few key groups as possible when they change', function()
    local from = described()
    local plan = plans.with_key_groups(packed(from), from, 8)
    local grown, moved = plans.rebalance(packed(from, { count = 2 }, plans.shown(plan)), plan)
    assert.equal(4, moved)
    assert.equal(2, grown.version)
    local counts = {}
    for _, task in ipairs(grown.key_groups.count) do counts[task] = (counts[task] or 0) + 1 end
    for _, task in ipairs(plans.tasks(grown).count) do assert.equal(2, counts[task]) end
  end)

  it('are shown without their key groups', function()
    local from = described()
    local plan = plans.with_key_groups(packed(from), from, 8)
    assert.is_nil(plans.shown(plan).key_groups)
    assert.truthy(plan.key_groups)
  end)
end)
