-- `streamlua describe`: one running topology.

local documents = require 'streamlua.cluster.documents'
local running = require 'streamlua.cli.running'

local KEYS = {
  'topology', 'state', 'plan_version', 'scheduler', 'components', 'containers', 'events',
  components = { 'name', 'kind', 'parallelism', 'executed', 'emitted', 'acked', 'failed', 'pending',
    'errors' },
  containers = { 'id', 'supervisor', 'host', 'port', 'pid', 'state', 'restarts', 'tasks',
    tasks = { 'task', 'component', 'index' } },
  events = { 'time', 'text' },
}

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
  local columns = { { title = 'CONTAINER', align = right }, 'STATE',
    { title = 'PID', align = right }, { title = 'RESTARTS', align = right } }
  local has_slots = false
  for _, item in ipairs(document.containers) do
    has_slots = has_slots or (item.supervisor or '') ~= ''
  end
  if has_slots then columns[#columns + 1] = 'SUPERVISOR' end
  columns[#columns + 1] = 'TASKS'
  for i, item in ipairs(document.containers) do
    local tasks = {}
    for k, task in ipairs(item.tasks) do
      tasks[k] = ('%s[%d]'):format(task.component, task.index)
    end
    rows[i] = { item.id, item.state, item.pid or '-', item.restarts }
    if has_slots then table.insert(rows[i], item.supervisor) end
    table.insert(rows[i], table.concat(tasks, ' '))
  end
  context:print_table(columns, rows)
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
      return documents.describe(topology, status)
    end, { reader = true })
    if context.output == 'json' then
      context:print_json(document, KEYS)
    else
      print_text(context, document)
    end
  end,
}
