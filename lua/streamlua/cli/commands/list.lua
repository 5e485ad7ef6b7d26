-- `streamlua list`: the running topologies.

local running = require 'streamlua.cli.running'

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

local function uptime_text(seconds)
  if seconds < 60 then return ('%ds'):format(seconds) end
  if seconds < 3600 then return ('%dm%02ds'):format(seconds / 60, seconds % 60) end
  if seconds < 86400 then return ('%dh%02dm'):format(seconds / 3600, seconds % 3600 / 60) end
  return ('%dd%02dh'):format(seconds / 86400, seconds % 86400 / 3600)
end

local function entries(context, client)
  local list, now_ms = {}, os.time() * 1000
  for _, name in ipairs(context:check(client:names())) do
    local topology, failure = client:load(name)
    -- One that was killed meanwhile is not there any more.
    if topology then
      list[#list + 1] = entry_of(topology, now_ms)
    elseif failure.code ~= 'ENOTFOUND' then
      context:fail_with(failure, running.label(name))
    end
  end
  return list
end

return {
  name = 'list',
  summary = 'List the running topologies.',
  declare = function() end,
  run = function(context)
    local list = running.with_client(context, function(client) return entries(context, client) end,
      { reader = true })
    if context.output == 'json' then
      context:print_json({ topologies = list }, { 'topologies', topologies = { 'name', 'state',
        'plan_version', 'containers', 'tasks', 'uptime_s' } })
      return
    end
    local rows, right = {}, 'right'
    for i, item in ipairs(list) do
      rows[i] = { item.name, item.state, item.plan_version, item.containers, item.tasks,
        uptime_text(item.uptime_s) }
    end
    context:print_table({ 'NAME', 'STATE', { title = 'PLAN', align = right },
      { title = 'CONTAINERS', align = right }, { title = 'TASKS', align = right },
      { title = 'UPTIME', align = right } }, rows)
  end,
}
