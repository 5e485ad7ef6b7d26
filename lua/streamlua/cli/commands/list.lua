-- `streamlua list`: the running topologies.

local documents = require 'streamlua.cluster.documents'
local running = require 'streamlua.cli.running'

local function uptime_text(seconds)
  if seconds < 60 then return ('%ds'):format(seconds) end
  if seconds < 3600 then return ('%dm%02ds'):format(seconds / 60, seconds % 60) end
  if seconds < 86400 then return ('%dh%02dm'):format(seconds / 3600, seconds % 3600 / 60) end
  return ('%dd%02dh'):format(seconds / 86400, seconds % 86400 / 3600)
end

return {
  name = 'list',
  summary = 'List the running topologies.',
  declare = function() end,
  run = function(context)
    local list = running.with_client(context, function(client)
      return context:check(documents.list(client))
    end, { reader = true })
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
