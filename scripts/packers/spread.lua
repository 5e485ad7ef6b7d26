-- A packer that spreads: losing any one container loses as few instances of each component as can be.
--
--     streamlua plan scripts/topologies/wordcount.lua --packing scripts/packers/spread.lua
--
-- Each instance goes to the container that has the fewest of its component, then to the one with the
-- most CPU left, then to the lowest id. There are `containers` containers (of the request, else of
-- the config), but no fewer than container_cpu and container_ram ask for. A change takes instances
-- from the containers that have most of the component, highest index first, and moves nothing else.

local GIB = 2 ^ 30
local DEFAULTS = { cpu = 1, ram = GIB, disk = GIB }
local PADDING = { cpu = 1, ram = GIB, disk = GIB }
local DIMENSIONS = { 'cpu', 'ram', 'disk' }

local function needs_of(component)
  local need = {}
  for _, dimension in ipairs(DIMENSIONS) do
    need[dimension] = component[dimension] or DEFAULTS[dimension]
  end
  return need
end

-- What a container keeps free, and what it may hold beside that: no limit where the config sets none.
local function limits_of(config)
  local padding, room = {}, {}
  for _, dimension in ipairs(DIMENSIONS) do
    local capacity = config['container_' .. dimension]
    padding[dimension] = config['container_' .. dimension .. '_padding'] or PADDING[dimension]
    room[dimension] = capacity and capacity - padding[dimension] or math.huge
  end
  return padding, room
end

local function new_container(id)
  return { id = id, instances = {}, counts = {}, used = { cpu = 0, ram = 0, disk = 0 } }
end

local function put(container, instance)
  local list = container.instances
  list[#list + 1] = instance
  container.counts[instance.component] = (container.counts[instance.component] or 0) + 1
  for _, dimension in ipairs(DIMENSIONS) do
    container.used[dimension] = container.used[dimension] + instance[dimension]
  end
end

local function take(container, at)
  local instance = table.remove(container.instances, at)
  container.counts[instance.component] = container.counts[instance.component] - 1
  for _, dimension in ipairs(DIMENSIONS) do
    container.used[dimension] = container.used[dimension] - instance[dimension]
  end
end

local function fits(container, need, room)
  for _, dimension in ipairs(DIMENSIONS) do
    if container.used[dimension] + need[dimension] > room[dimension] then return false end
  end
  return true
end

-- The best container with room, or nil.
local function choose(containers, name, need, room)
  local best
  for _, container in ipairs(containers) do
    if fits(container, need, room) then
      local count, most = container.counts[name] or 0, best and best.counts[name] or 0
      if not best or count < most
        or (count == most and container.used.cpu < best.used.cpu) then
        best = container
      end
    end
  end
  return best
end

local function highest_id(containers)
  local highest = 0
  for _, container in ipairs(containers) do highest = math.max(highest, container.id) end
  return highest
end

-- Adds `count` instances of a component; a container is opened only where nothing has room.
local function grow(containers, component, count, ids, room, is_fixed)
  local need = needs_of(component)
  for _ = 1, count do
    local container = choose(containers, component.name, need, room)
    if not container then
      assert(not is_fixed, ("no room for '%s' in %d containers"):format(component.name,
        #containers))
      container = new_container(highest_id(containers) + 1)
      assert(fits(container, need, room), ("'%s' needs more than a container has"):format(
        component.name))
      containers[#containers + 1] = container
    end
    ids.task = ids.task + 1
    ids.index[component.name] = (ids.index[component.name] or -1) + 1
    put(container, { component = component.name, task = ids.task,
      index = ids.index[component.name], cpu = need.cpu, ram = need.ram, disk = need.disk })
  end
end

local function shrink(containers, name, count)
  for _ = 1, count do
    local fullest, at
    for _, container in ipairs(containers) do
      local own = container.counts[name] or 0
      if own > 0 and (not fullest or own >= fullest.counts[name]) then fullest = container end
    end
    assert(fullest, ("'%s' has no instance left to remove"):format(name))
    for i, instance in ipairs(fullest.instances) do
      if instance.component == name
        and (not at or instance.index > fullest.instances[at].index) then
        at = i
      end
    end
    take(fullest, at)
  end
end

-- Containers with what they need, those that are empty left out.
local function finish(containers, padding)
  local list = {}
  for _, container in ipairs(containers) do
    if #container.instances > 0 then
      local used = container.used
      list[#list + 1] = { id = container.id, instances = container.instances,
        cpu = used.cpu + padding.cpu, ram = used.ram + padding.ram,
        disk = used.disk + padding.disk }
    end
  end
  return { containers = list }
end

local function total_of(components)
  local total = 0
  for _, component in ipairs(components) do total = total + component.parallelism end
  return total
end

local function pack(request)
  local padding, room = limits_of(request.config)
  local asked = request.containers or request.config.containers or 1
  local containers = {}
  for id = 1, math.min(asked, total_of(request.components)) do containers[id] = new_container(id) end
  local ids = { task = 0, index = {} }
  for _, component in ipairs(request.components) do
    grow(containers, component, component.parallelism, ids, room, request.containers ~= nil)
  end
  return finish(containers, padding)
end

local function repack(request)
  local padding, room = limits_of(request.config)
  local containers = {}
  for i, old in ipairs(request.current.containers) do
    containers[i] = new_container(old.id)
    for _, instance in ipairs(old.instances) do put(containers[i], instance) end
  end
  for _, component in ipairs(request.components) do
    local change = (request.changes or {})[component.name] or 0
    if change < 0 then shrink(containers, component.name, -change) end
  end
  local ids = { task = 0, index = {} }
  for _, container in ipairs(containers) do
    for _, instance in ipairs(container.instances) do
      ids.task = math.max(ids.task, instance.task)
      ids.index[instance.component] = math.max(ids.index[instance.component] or -1,
        instance.index)
    end
  end
  for _ = #containers + 1, request.containers or 0 do
    containers[#containers + 1] = new_container(highest_id(containers) + 1)
  end
  for _, component in ipairs(request.components) do
    local change = (request.changes or {})[component.name] or 0
    if change > 0 then
      grow(containers, component, change, ids, room, request.containers ~= nil)
    end
  end
  return finish(containers, padding)
end

return { name = 'spread', pack = pack, repack = repack }
