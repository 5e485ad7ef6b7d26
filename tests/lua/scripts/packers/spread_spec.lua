-- The example packer that spreads the instances of a component. labels: short
local packing = require 'streamlua.packing'
local process = require 'support.process'

local PATH = 'scripts/packers/spread.lua'

local function request_of(config, counts)
  local components = {}
  for i, count in ipairs(counts) do
    components[i] = { name = ('abc'):sub(i, i), kind = i == 1 and 'spout' or 'bolt',
      parallelism = count }
  end
  return { topology = 't', config = config, components = components }
end

-- Per container "a2 b1", and the id in front.
local function layout(plan)
  local parts = {}
  for k, container in ipairs(plan.containers) do
    local counts = {}
    for _, instance in ipairs(container.instances) do
      counts[instance.component] = (counts[instance.component] or 0) + 1
    end
    local cells = {}
    for _, name in ipairs { 'a', 'b', 'c' } do
      if counts[name] then cells[#cells + 1] = name .. counts[name] end
    end
    parts[k] = container.id .. ':' .. table.concat(cells, '+')
  end
  return table.concat(parts, ' ')
end

describe('scripts/packers/spread.lua', function()
  it('gives every container its share of every component', function()
    local plan = assert(packing.pack(request_of({ containers = 3 }, { 3, 7, 2 }), PATH))
    assert.equal('spread', plan.packing)
    local most, least = 0, math.huge
    for _, container in ipairs(plan.containers) do
      most, least = math.max(most, #container.instances), math.min(least, #container.instances)
    end
    assert.is_true(most - least <= 1)
    for _, name in ipairs { 'a', 'b', 'c' } do
      local high, low = 0, math.huge
      for _, container in ipairs(plan.containers) do
        local own = 0
        for _, instance in ipairs(container.instances) do
          own = own + (instance.component == name and 1 or 0)
        end
        high, low = math.max(high, own), math.min(low, own)
      end
      assert.is_true(high - low <= 1)
    end
  end)

  it('opens more containers where the capacity asks for them', function()
    local plan = assert(packing.pack(request_of({ container_cpu = 4 }, { 4, 3 }), PATH))
    assert.equal(3, #plan.containers)
    for _, container in ipairs(plan.containers) do assert.is_true(container.cpu <= 4) end
  end)

  it('changes a plan without moving anything', function()
    local request = request_of({ containers = 3 }, { 3, 6 })
    local plan = assert(packing.pack(request, PATH))
    assert.equal('1:a1+b2 2:a1+b2 3:a1+b2', layout(plan))
    local changed = assert(packing.repack(plan, { a = 1, b = -2 },
      { request = request, repacker = PATH }))
    assert.equal('1:a1+b2 2:a2+b1 3:a1+b1', layout(changed))
    local delta = assert(packing.delta(plan, changed))
    assert.equal(0, delta.moved)
    assert.equal(1, delta.started)
    assert.equal(2, delta.stopped)
  end)

  it('says what has no room', function()
    local request = request_of({ container_cpu = 2 }, { 2 })
    request.components[1].cpu = 3
    local _, fault = packing.pack(request, PATH)
    assert.matches("spread%.lua:%d+: 'a' needs more than a container has", fault.message)
    request = request_of({ container_cpu = 2 }, { 3 })
    request.containers = 2
    _, fault = packing.pack(request, PATH, { limits = { seconds = process.patience } })
    assert.matches("no room for 'a' in 2 containers", fault.message)
  end)
end)
