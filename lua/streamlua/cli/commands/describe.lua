-- `streamlua describe`: one running topology.

local running = require 'streamlua.cli.running'

local KEYS = {
  'topology', 'state', 'plan_version', 'scheduler', 'components', 'containers', 'events',
  components = { 'name', 'kind', 'parallelism', 'executed', 'emitted', 'acked', 'failed', 'pending',
    'errors' },
  containers = { 'id', 'supervisor', 'host', 'port', 'pid', 'state', 'restarts', 'tasks',
    tasks = { 'task', 'component', 'index' } },
  events = { 'time', 'text' },
}

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

local function document_of(topology, status)
  return {
    topology = topology.name, state = status and status.state or topology.execution.state,
    plan_version = topology.plan.version, scheduler = topology.execution.scheduler,
    components = components_of(topology, status), containers = containers_of(topology, status),
    events = events_of(status),
  }
end

local function print_components(context, document)
  local right, rows = 'right', {}
  for i, item in ipairs(document.components) do
    rows[i] = { item.name, item.kind, item.parallelism, item.executed or '-', item.emitted or '-',
      item.acked or '-', item.failed or '-', item.pending or '-' }
  end
  local columns = { 'COMPONENT', 'KIND' }
  for _, title in ipairs({ 'TASKS', 'EXECUTED', 'EMITTED', 'ACKED', 'FAILED', 'PENDING' }) do
    columns[#columns + 1] = { title = title, align = right }
  end
  context:print_table(columns, rows)
end

local function print_containers(context, document)
  local right, rows = 'right', {}
  for i, item in ipairs(document.containers) do
    local tasks = {}
    for k, task in ipairs(item.tasks) do
      tasks[k] = ('%s[%d]'):format(task.component, task.index)
    end
    rows[i] = { item.id, item.state, item.pid or '-', item.restarts, table.concat(tasks, ' ') }
  end
  context:print_table({ { title = 'CONTAINER', align = right }, 'STATE',
    { title = 'PID', align = right }, { title = 'RESTARTS', align = right }, 'TASKS' }, rows)
end

local function print_text(context, document)
  context:print(('%s: %s, plan %d, scheduler %s'):format(document.topology, document.state,
    document.plan_version, document.scheduler))
  context:print('')
  print_components(context, document)
  context:print('')
  print_containers(context, document)
  if #document.events > 0 then context:print('') end
  for _, event in ipairs(document.events) do
    context:print(os.date('%H:%M:%S', math.floor(event.time / 1000)), '  ', event.text)
  end
end

return {
  name = 'describe',
  summary = 'Show a running topology: its components, containers and events.',
  declare = running.declare_target,
  run = function(context, args)
    local name = running.target(context, args.target)
    local document = running.with_client(context, function(client)
      local topology = running.check(context, name, client:load(name))
      if not (topology.plan and topology.execution) then
        context:fail('failed', running.label(name), 'what is stored of it is not whole',
          ("'streamlua kill %s' removes it"):format(name))
      end
      local status, failure = client:status(name)
      if not status then context:warn(tostring(failure)) end
      return document_of(topology, status)
    end, { reader = true })
    if context.output == 'json' then
      context:print_json(document, KEYS)
    else
      print_text(context, document)
    end
  end,
}
