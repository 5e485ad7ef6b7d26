--- Documents about running topologies, for commands and the REPL.
--
--     local list = assert(documents.list(client))
--     local document = documents.describe(assert(client:load(name)), client:status(name))

local M = {}

local function entry_of(topology, now_ms)
  local execution, plan, tasks = topology.execution, topology.plan, 0
  for _, container in ipairs(plan and plan.containers or {}) do
    tasks = tasks + #container.instances
  end
  return {
    name = topology.name, state = execution and execution.state or 'STARTING',
    plan_version = plan and plan.version or 0, containers = plan and #plan.containers or 0,
    tasks = tasks,
    uptime_s = execution and math.max(0, math.floor((now_ms - execution.submitted_ms) / 1000)) or 0,
  }
end

--- What `streamlua list` says of each topology, sorted by name.
---@param client streamlua.Cluster
---@return table[]? list
---@return streamlua.Error?
function M.list(client)
  -- A client of an HTTP API gets it in one piece.
  if client.list then return client:list() end
  local names, failure = client:names()
  if not names then return nil, failure end
  local list, now_ms = {}, os.time() * 1000
  for _, name in ipairs(names) do
    local topology
    topology, failure = client:load(name)
    -- One that was killed meanwhile is not there any more.
    if topology then
      list[#list + 1] = entry_of(topology, now_ms)
    elseif failure.code ~= 'ENOTFOUND' then
      failure.message = ("topology '%s': %s"):format(name, failure.message)
      return nil, failure
    end
  end
  return list
end

-- Components in order of declaration with what runs of them, engine's own behind.
local function components_of(topology, status)
  local counts, counters, kinds, list = {}, {}, {}, {}
  for _, container in ipairs(topology.plan.containers) do
    for _, instance in ipairs(container.instances) do
      counts[instance.component] = (counts[instance.component] or 0) + 1
    end
  end
  for _, item in ipairs(status and status.counters or {}) do counters[item.component] = item end
  for _, component in ipairs(topology.described.components) do
    kinds[component.name] = component.kind
  end
  for i, name in ipairs(topology.components) do
    local entry = { name = name, kind = kinds[name] or 'system', parallelism = counts[name] or 0 }
    local found = counters[name] or {}
    for _, key in ipairs({ 'executed', 'emitted', 'acked', 'failed', 'pending', 'errors' }) do
      entry[key] = found[key]
    end
    list[i] = entry
  end
  return list
end

local function containers_of(topology, status)
  local by_id, list = {}, {}
  for _, item in ipairs(status and status.containers or {}) do by_id[item.id] = item end
  for i, container in ipairs(topology.plan.containers) do
    local live = by_id[container.id] or {}
    local entry = { id = container.id, supervisor = container.supervisor or 'local',
      host = container.host or topology.execution.host, port = container.port or live.port or 0,
      pid = live.pid, state = live.state or 'UNKNOWN', restarts = live.restarts or 0, tasks = {} }
    for k, instance in ipairs(container.instances) do
      entry.tasks[k] = { task = instance.task, component = instance.component,
        index = instance.index }
    end
    list[i] = entry
  end
  return list
end

local function events_of(status)
  local list = {}
  for i, event in ipairs(status and status.events or {}) do
    list[i] = { time = event.time_ms, text = event.text }
  end
  return list
end

--- Everything of a running topology: the document of `streamlua describe` (API, part 7).
---@param topology table of client:load, with plan and execution
---@param status table? of client:status; without it the document has what is stored
---@return table
function M.describe(topology, status)
  local placement = require 'streamlua.cluster.placement'
  return {
    topology = topology.name, state = status and status.state or topology.execution.state,
    plan_version = topology.plan.version,
    scheduler = placement.scheduler_of(topology.plan) or 'packed',
    components = components_of(topology, status), containers = containers_of(topology, status),
    events = events_of(status),
  }
end

return M
