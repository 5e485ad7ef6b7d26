--- A stream program as something that can be submitted: a topology of its driver and of the streams
--- whose number of partitions can be chosen, so that plans, launchers and commands know it.
--
--     local t = submission.topology(context, defaults)
--     assert(t.components[1].name == submission.DRIVER)
--
-- The driver is a spout with one task. A stream is a bolt that reads the ones it is made from, or the
-- driver; its tasks stand for its partitions.

local bolts = require 'streamlua.topology.component'
local config = require 'streamlua.topology.config'
local topology = require 'streamlua.topology'

local M = {}

--- The name of the driver's component.
M.DRIVER = 'driver'

-- The key of a config that says what it belongs to.
local MARK = 'stream_program'

--- Whether a topology's config is that of a stream program.
---@param of table
---@return boolean
function M.is_program(of) return of[MARK] == true end

--- Why the parallelism of a component can not change, nil when it can.
---@param of table the topology's config
---@param name string
---@return string?
function M.fixed(of, name)
  if M.is_program(of) and name == M.DRIVER then return 'a program has one driver' end
end

-- What the components are made of; the engine of topologies never runs them.
local function nothing() end

local function place_of(call_site)
  local file, line = call_site:match('^(.*):(%d+)$')
  return file, tonumber(line)
end

-- Keys of a topology's config among the program's own settings.
local function known_config(context)
  local known = {}
  for _, name in ipairs(config.names) do known[name] = context.config[name] end
  known.workers = context.config.workers
  known[MARK] = true
  return known
end

--- Streams with a number of partitions of their own, in order of declaration.
---@param context table
---@return streamlua.DStream[]
function M.resizable(context)
  local list = {}
  for node = 0, context.made - 1 do
    local stream = context.streams[node]
    if stream and stream.partitions and not stream.is_hidden and not stream.is_output then
      list[#list + 1] = stream
    end
  end
  return list
end

-- The components that a stream is made from, by name, in order.
local function sources_of(stream, owner)
  local names, seen = {}, {}
  local function visit(one)
    for _, parent in ipairs(one.parents) do
      local name = owner[parent.node]
      if name == stream.node_name or not name then
        if not seen[parent] then
          seen[parent] = true
          visit(parent)
        end
      elseif not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  visit(stream)
  return #names > 0 and names or { M.DRIVER }
end

--- The topology of a program that was loaded from a script; `defaults` = config of the cluster.
---@param context table
---@param defaults? table
---@return streamlua.Topology
function M.topology(context, defaults)
  local _, t = topology.with_config(nil, defaults, function()
    return topology.new(context.name, known_config(context))
  end)
  if type(t) ~= 'table' then error(t, 0) end
  t.script = context.script
  t.file, t.line = place_of(context.call_site)
  local list, owner = M.resizable(context), {}
  for _, stream in ipairs(list) do
    owner[stream.node] = stream.node_name
    for _, hidden in ipairs(stream.hidden or {}) do owner[hidden.node] = stream.node_name end
  end
  local function place(name, call_site)
    local entry = t:component(name)
    entry.file, entry.line = place_of(call_site)
  end
  t:spout(M.DRIVER, bolts.spout { fields = { 'record' }, next_tuple = nothing })
  place(M.DRIVER, context.call_site)
  for _, stream in ipairs(list) do
    local declared = t:bolt(stream.node_name, bolts.bolt { fields = { 'record' }, execute = nothing },
      { parallelism = stream.partitions })
    for _, source in ipairs(sources_of(stream, owner)) do declared:shuffle(source) end
    place(stream.node_name, stream.call_site)
  end
  return t
end

--- Gives the driver a container of its own behind the others, so that a process of tasks may end
--- without it.
---@param plan table a first plan
---@return table plan
function M.set_apart(plan)
  local others, driver, last = {}, nil, 0
  for _, container in ipairs(plan.containers) do
    for i, instance in ipairs(container.instances) do
      if instance.component == M.DRIVER then
        driver = instance
        table.remove(container.instances, i)
        for _, key in ipairs({ 'cpu', 'ram', 'disk' }) do
          container[key] = math.max(0, container[key] - instance[key])
        end
        break
      end
    end
    if #container.instances > 0 then
      others[#others + 1] = container
      container.id = #others
      last = container.id
    end
  end
  others[#others + 1] = { id = last + 1, cpu = driver.cpu, ram = driver.ram, disk = driver.disk,
    instances = { driver } }
  plan.containers = others
  return plan
end

return M
