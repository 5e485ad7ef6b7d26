-- Assignments and their figures as text for people.
--
--   local render = require 'streamlua.scheduling.render'
--   io.write(render.assignment(assignment, { request = request, color = true }))

local output = require 'streamlua.cli.output'

local M = {}

-- "1-3,7" of ascending numbers.
local function ranges(numbers)
  local parts, i = {}, 1
  while i <= #numbers do
    local last = i
    while numbers[last + 1] == numbers[last] + 1 do last = last + 1 end
    if last > i + 1 then
      parts[#parts + 1] = ('%d-%d'):format(numbers[i], numbers[last])
    else
      for k = i, last do parts[#parts + 1] = ('%d'):format(numbers[k]) end
    end
    i = last + 1
  end
  return table.concat(parts, ',')
end
M.ranges = ranges

local function plural(n, word) return ('%d %s%s'):format(n, word, n == 1 and '' or 's') end
M.plural = plural

-- Position of the component of each task in the request.
local function positions_of(request)
  local position_of = {}
  for i, component in ipairs(request and request.components or {}) do
    for _, task in ipairs(component.tasks) do position_of[task] = i end
  end
  return position_of
end

-- "split 1,2  count 4": tasks of a worker by component, in the order of the request.
local function by_component(tasks, request, position_of)
  if not request then return ranges(tasks) end
  local lists, order = {}, {}
  for _, task in ipairs(tasks) do
    -- What no component has stands last.
    local position = position_of[task] or #request.components + 1
    if not lists[position] then
      lists[position] = {}
      order[#order + 1] = position
    end
    table.insert(lists[position], task)
  end
  table.sort(order)
  for i, position in ipairs(order) do
    local component = request.components[position]
    order[i] = (component and component.name or '?') .. ' ' .. ranges(lists[position])
  end
  return table.concat(order, '  ')
end

local function summary(assignment)
  local supervisors, count, least, most = {}, 0, nil, 0
  for _, worker in ipairs(assignment.workers) do
    if not supervisors[worker.supervisor] then count = count + 1 end
    supervisors[worker.supervisor] = true
    least = math.min(least or #worker.tasks, #worker.tasks)
    most = math.max(most, #worker.tasks)
  end
  least = least or 0
  return ('%s on %s, %s each'):format(plural(#assignment.workers, 'worker'),
    plural(count, 'supervisor'), least == most and plural(least, 'task')
      or ('%d to %d tasks'):format(least, most))
end

-- "WORKERS" of each supervisor, those of the cluster without any included.
local function supervisor_rows(assignment, request)
  local rows, at = {}, {}
  local function row_of(id, host)
    if not at[id] then
      rows[#rows + 1] = { id, host, 0, 0 }
      at[id] = rows[#rows]
    end
    return at[id]
  end
  for _, supervisor in ipairs(request and request.cluster.supervisors or {}) do
    row_of(supervisor.id, supervisor.host)
  end
  for _, worker in ipairs(assignment.workers) do
    local row = row_of(worker.supervisor, worker.host)
    row[3], row[4] = row[3] + 1, row[4] + #worker.tasks
  end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  return rows
end

-- Supervisors that a table lists; beyond that only the summary tells of them.
local MAX_SUPERVISORS = 64

--- An assignment: a table of workers, one of supervisors, and a summary. options: `request`, `color`.
---@param assignment table
---@param options table?
---@return string
function M.assignment(assignment, options)
  options = options or {}
  local rows, position_of = {}, positions_of(options.request)
  for i, worker in ipairs(assignment.workers) do
    rows[i] = { worker.supervisor, worker.host, ('%d'):format(worker.port),
      #worker.tasks, by_component(worker.tasks, options.request, position_of) }
  end
  local text = ("topology '%s', scheduler %s\n"):format(assignment.topology, assignment.scheduler)
    .. output.table_text({ 'SUPERVISOR', 'HOST', { title = 'PORT', align = 'right' },
      { title = 'TASKS', align = 'right' }, 'WHICH' }, rows, { color = options.color })
  local supervisors = supervisor_rows(assignment, options.request)
  if #supervisors <= MAX_SUPERVISORS then
    text = text .. '\n' .. output.table_text({ 'SUPERVISOR', 'HOST',
      { title = 'WORKERS', align = 'right' }, { title = 'TASKS', align = 'right' } }, supervisors,
      { color = options.color })
  end
  return text .. '\n' .. summary(assignment) .. '\n'
end

--- Figures of streamlua.scheduling.evaluate, one a line.
---@param figures table
---@param options table?
---@return string
function M.figures(figures, options)
  local rows = {}
  for _, name in ipairs({ 'workers', 'min_tasks', 'max_tasks', 'cross_worker_edges',
    'cross_node_edges', 'moved' }) do
    if figures[name] ~= nil then rows[#rows + 1] = { name, figures[name] } end
  end
  return output.table_text({ 'FIGURE', 'VALUE' }, rows, { color = options and options.color })
end

return M
