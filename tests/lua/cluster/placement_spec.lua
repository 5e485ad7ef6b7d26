-- What masters are told of a topology. labels: short

local packing = require 'streamlua.packing'
local placement = require 'streamlua.cluster.placement'

local function topology(config)
  return { name = 't', config = config or {}, components = {
    { name = 's', kind = 'spout', parallelism = 2 },
    { name = 'b', kind = 'bolt', parallelism = 3, inputs = { { source = 's' } } },
  } }
end

local function packed(t) return assert(packing.pack(packing.request_from_topology(t))) end

local function tasks(plan, name)
  local list = {}
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do
      if instance.component == name then list[#list + 1] = instance.task end
    end
  end
  table.sort(list)
  return list
end

describe('placement', function()
  it('takes rules of the config into the schedule', function()
    local t = topology { containers = 2, isolation = { 'h1' }, master_alone = true, ackers = 1 }
    local schedule = assert(placement.schedule(t, 'balanced'))
    assert.equal('balanced', schedule.scheduler)
    assert.equal(2, schedule.request.workers)
    assert.is_true(schedule.request.master_alone)
    assert.same({ 'h1' }, schedule.request.isolation)
    assert.equal(5, assert(placement.schedule(t, 'even', { containers = 5 })).request.workers)
  end)

  it('refuses schedulers that masters do not have', function()
    local schedule, failure = placement.schedule(topology(), './own.lua')
    assert.is_nil(schedule)
    assert.equal('EINVAL', failure.code)
    assert.matches('balanced, even, round_robin, packed', tostring(failure), 1, true)
  end)

  it('gives a first plan the ids of the scheduler, and the topology master one of its own', function()
    local t = topology { ackers = 1 }
    local plan = placement.first_plan(packed(t), assert(placement.schedule(t, 'balanced')))
    -- Bolts, acker, topology master, spouts.
    assert.same({ 1, 2, 3 }, tasks(plan, 'b'))
    assert.same({ 4 }, tasks(plan, '__acker'))
    assert.equal(5, plan.master.task)
    assert.same({ 6, 7 }, tasks(plan, 's'))
    assert.equal('balanced', placement.scheduler_of(plan))
    assert.truthy(packing.validate_plan({ topology = plan.topology, version = 1,
      packing = plan.packing, containers = plan.containers }))
  end)

  it('leaves a packed plan as it is', function()
    local t = topology()
    local before = packed(t)
    local plan = placement.first_plan(packed(t), assert(placement.schedule(t, 'packed')))
    assert.same(before.containers, plan.containers)
    assert.is_nil(placement.scheduler_of(plan))
    -- Nobody who comes later gets the id of the topology master.
    assert.is_true(plan.master.task > 1000000)
  end)

  it('grows by max + 1 and drops the highest ids', function()
    local t = topology()
    local plan = placement.first_plan(packed(t), assert(placement.schedule(t, 'balanced')))
    plan.version = 4
    local larger = assert(placement.resize(plan, { b = 2 }))
    assert.equal(5, larger.version)
    assert.same({ 1, 2, 3, 7, 8 }, tasks(larger, 'b'))
    assert.same({ 5, 6 }, tasks(larger, 's'))
    larger.master = plan.master
    local smaller = assert(placement.resize(larger, { b = -3, s = -1 }))
    assert.same({ 1, 2 }, tasks(smaller, 'b'))
    assert.same({ 5 }, tasks(smaller, 's'))
    -- The plan that it was made from is as before.
    assert.same({ 1, 2, 3 }, tasks(plan, 'b'))
  end)
end)
