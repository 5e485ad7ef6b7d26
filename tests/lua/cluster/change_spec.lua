-- The plans that an update proposes. labels: short

local change = require 'streamlua.cluster.change'
local packing = require 'streamlua.packing'

local function described(config)
  config = config or {}
  config.containers = config.containers or 2
  return { name = 't', config = config, components = {
    { name = 's', kind = 'spout', parallelism = 1 },
    { name = 'b', kind = 'bolt', parallelism = 6, inputs = { { source = 's' } } },
    { name = 'c', kind = 'bolt', parallelism = 2, inputs = { { source = 'b' } } },
  } }
end

local function packed(topology)
  return assert(packing.pack(packing.request_from_topology(topology)))
end

-- "1: s1 b3 | 2: b2", and the plan is one.
local function layout(plan)
  local blocks = {}
  for k, container in ipairs(assert(packing.validate_plan(plan)).containers) do
    local names = {}
    for i, instance in ipairs(container.instances) do
      names[i] = instance.component .. instance.task
    end
    blocks[k] = ('%d: %s'):format(container.id, table.concat(names, ' '))
  end
  return table.concat(blocks, ' | ')
end

local function propose(current, options, topology)
  return assert(change.propose(topology or described(), current, options))
end

describe('a proposed plan', function()
  local start
  before_each(function()
    start = packed(described())
    assert.equal('1: s1 b3 b5 b7 c9 | 2: b2 b4 b6 c8', layout(start))
  end)

  it('loses the highest task ids where a component shrinks (jstorm 7.1), whoever packs', function()
    assert.equal('1: s1 b3 c9 | 2: b2 b4 c8', layout(propose(start, { changes = { b = -3 } })))
    for _, options in ipairs({ { packing = 'round_robin' }, { packing = 'resource_compliant_rr' },
      { packing = 'first_fit_decreasing' }, { mode = 'minimal' }, { mode = 'reassign' } }) do
      options.changes = { b = -3, c = -1, s = 1 }
      local tasks = {}
      for _, container in ipairs(propose(start, options).containers) do
        for _, instance in ipairs(container.instances) do
          tasks[instance.task] = instance.component .. instance.index
        end
      end
      assert.same({ 's0', 'b0', 'b1', 'b2', nil, nil, nil, 'c0', nil, 's1' }, tasks)
    end
  end)

  it('moves nothing in mode keep, as little as makes it even in mode minimal', function()
    local shrunk = propose(start, { changes = { b = -3 } })
    local grown = propose(shrunk, { changes = { s = 6 } })
    assert.equal('1: s1 b3 c9 s10 s11 s12 s13 s14 s15 | 2: b2 b4 c8', layout(grown))
    assert.equal(layout(grown), layout(propose(grown, { mode = 'keep' })))
    local even = propose(grown, { mode = 'minimal' })
    local delta = assert(packing.delta(grown, even))
    assert.equal(3, #even.containers[2].instances - 3)
    assert.same({ 3, 9 }, { delta.moved, delta.kept })
    assert.same({ 3, 1, 2 }, { #change.moves(delta), change.moves(delta)[1].from,
      change.moves(delta)[1].to })
    assert.equal(layout(even), layout(propose(even, { mode = 'minimal' })))
    local anew = propose(grown, { mode = 'reassign' })
    assert.is_true(assert(packing.delta(grown, anew)).moved > delta.moved)
  end)

  it('has the containers that are asked for in every mode', function()
    for _, mode in ipairs({ 'keep', 'minimal', 'reassign' }) do
      for containers = 2, 9 do
        local plan = propose(start, { mode = mode, containers = containers })
        assert.equal(containers, #plan.containers, mode)
        for _, container in ipairs(plan.containers) do
          assert.is_true(mode == 'keep'
            or math.abs(#container.instances - 9 / containers) < 1, mode)
        end
      end
      local plan, failure = change.propose(described(), start, { mode = mode, containers = 10 })
      assert.is_nil(plan)
      assert.matches('10', failure.message)
    end
  end)

  it('that does not fit is refused with its numbers', function()
    local topology = described({ container_ram = 10 * 2 ^ 30 })
    local plan, failure = change.propose(topology, packed(topology), { mode = 'minimal',
      containers = 1 })
    assert.is_nil(plan)
    assert.equal('EUNSATISFIABLE', failure.code)
    assert.matches('container 1: ram: need %d+, room 10737418240', failure.message)
  end)

  it('leaves the plan that it was made from alone', function()
    local before = layout(start)
    for _, mode in ipairs({ 'keep', 'minimal', 'reassign' }) do
      propose(start, { mode = mode, changes = { b = -3, c = 2 }, containers = 3 })
      assert.equal(before, layout(start))
    end
  end)
end)
