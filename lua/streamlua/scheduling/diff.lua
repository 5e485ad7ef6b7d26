-- What lies between two assignments.
--
--   local diff = require 'streamlua.scheduling.diff'
--   local delta = assert(diff.diff(before, after))     -- delta.same, delta.moves ...
--   io.write(diff.render(delta, { color = true }))

local document = require 'streamlua.scheduling.document'
local evaluate = require 'streamlua.scheduling.evaluate'
local output = require 'streamlua.cli.output'
local render = require 'streamlua.scheduling.render'

local M = {}

local owners, slot_text = evaluate.owners, document.slot_text

local function sorted(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- Workers of both, by (supervisor, port).
local function union(before, after)
  local list, seen = {}, {}
  for _, assignment in ipairs({ before, after }) do
    for _, worker in ipairs(assignment.workers) do
      local slot = slot_text(worker)
      if not seen[slot] then
        seen[slot] = true
        list[#list + 1] = { supervisor = worker.supervisor, host = worker.host, port = worker.port }
      end
    end
  end
  table.sort(list, function(a, b)
    if a.supervisor ~= b.supervisor then return a.supervisor < b.supervisor end
    return a.port < b.port
  end)
  return list
end

local function only_in(worker, other)
  local has, tasks = {}, {}
  for _, task in ipairs(other and other.tasks or {}) do has[task] = true end
  for _, task in ipairs(worker and worker.tasks or {}) do
    if not has[task] then tasks[#tasks + 1] = task end
  end
  return tasks
end

local function compare(before, after)
  local old_owner, old_slots = owners(before)
  local new_owner, new_slots = owners(after)
  local delta = { kind = 'assignment', topology = after.topology, moves = {}, added = {},
    removed = {}, kept = 0, workers = {} }
  for _, task in ipairs(sorted(new_owner)) do
    if not old_owner[task] then
      table.insert(delta.added, task)
    elseif old_owner[task] ~= new_owner[task] then
      table.insert(delta.moves, { task = task, from = old_owner[task], to = new_owner[task] })
    else
      delta.kept = delta.kept + 1
    end
  end
  for _, task in ipairs(sorted(old_owner)) do
    if not new_owner[task] then table.insert(delta.removed, task) end
  end
  for i, worker in ipairs(union(before, after)) do
    local old, new = old_slots[slot_text(worker)], new_slots[slot_text(worker)]
    worker.added, worker.removed = only_in(new, old), only_in(old, new)
    local is_changed = #worker.added + #worker.removed > 0
    worker.state = not old and 'NEW' or not new and 'REMOVED'
      or is_changed and 'MODIFIED' or 'UNCHANGED'
    delta.workers[i] = worker
  end
  delta.moved, delta.started, delta.stopped = #delta.moves, #delta.added, #delta.removed
  delta.same = delta.moved + delta.started + delta.stopped == 0
  return delta
end

--- Compares two assignments: {kind='assignment', topology=, same=, moves={{task=, from=, to=}},
--- kept=n, moved=n, started=n, stopped=n, added={tasks}, removed={tasks}, workers={{supervisor=, host=, port=, state=,
--- added={tasks}, removed={tasks}}}} with the states UNCHANGED, MODIFIED, NEW and REMOVED.
---@param before table document
---@param after table document
---@param options table? {names={what the first is called, the second}}
---@return table? delta
---@return streamlua.Error?
function M.diff(before, after, options)
  local names = options and options.names or {}
  local function read(given, name, what)
    return document.assignment(given, { what = name and ("assignment '%s'"):format(name) or what })
  end
  local old, new, fault
  old, fault = read(before, names[1], 'old assignment')
  if not old then return nil, fault end
  new, fault = read(after, names[2], 'new assignment')
  if not new then return nil, fault end
  return compare(old, new)
end

local colours = { NEW = 'green', REMOVED = 'red', MODIFIED = 'yellow' }

--- A difference as tables for people. options: `color`.
---@param delta table
---@param options table?
---@return string
function M.render(delta, options)
  options = options or {}
  local rows = {}
  local counts = { UNCHANGED = 0, MODIFIED = 0, NEW = 0, REMOVED = 0 }
  for i, worker in ipairs(delta.workers) do
    counts[worker.state] = counts[worker.state] + 1
    local function listed(sign, colour, tasks)
      if #tasks == 0 then return '' end
      return output.paint(options.color, colour, sign .. render.ranges(tasks))
    end
    rows[i] = { worker.supervisor, worker.host, ('%d'):format(worker.port),
      output.paint(options.color and colours[worker.state] ~= nil, colours[worker.state] or 'bold',
        worker.state), listed('+', 'green', worker.added), listed('-', 'red', worker.removed) }
  end
  local text = output.table_text({ 'SUPERVISOR', 'HOST', { title = 'PORT', align = 'right' }, 'STATE',
    'ADDED', 'REMOVED' }, rows, { color = options.color })
  if #delta.moves > 0 then
    local moves = {}
    for i, move in ipairs(delta.moves) do moves[i] = { move.task, move.from, move.to } end
    text = text .. '\n' .. output.table_text({ { title = 'TASK', align = 'right' }, 'FROM', 'TO' },
      moves, { color = options.color })
  end
  return ('%s\n%s kept, %d moved, %d started, %d stopped; workers: %d unchanged, %d modified, %d new, '
    .. '%d removed\n'):format(text, render.plural(delta.kept, 'task'), delta.moved, delta.started,
    delta.stopped, counts.UNCHANGED, counts.MODIFIED, counts.NEW, counts.REMOVED)
end

return M
