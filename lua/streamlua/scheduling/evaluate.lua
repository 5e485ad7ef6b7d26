-- Figures by which one assignment is better than another.
--
--   local evaluate = require 'streamlua.scheduling.evaluate'
--   local figures = evaluate.figures(assignment, request)   -- figures.cross_node_edges ...

local M = {}

local function slot_text(worker) return ('%s:%d'):format(worker.supervisor, worker.port) end

--- The slot of each task, and the workers by slot.
---@param assignment table
---@return table<integer, string> owner
---@return table<string, table> slots
local function owners(assignment)
  local owner, slots = {}, {}
  for _, worker in ipairs(assignment.workers) do
    slots[slot_text(worker)] = worker
    for _, task in ipairs(worker.tasks) do owner[task] = slot_text(worker) end
  end
  return owner, slots
end
M.owners = owners

--- Tasks that exist in both and have another slot now.
---@param before table assignment
---@param after table assignment
---@return integer
function M.moved(before, after)
  local old_owner, count = owners(before), 0
  for task, slot in pairs((owners(after))) do
    if old_owner[task] and old_owner[task] ~= slot then count = count + 1 end
  end
  return count
end

-- Tasks of each component by what `key_of` says of their worker.
local function counts_by(assignment, component_of, key_of)
  local counts = {}
  for _, worker in ipairs(assignment.workers) do
    local key = key_of(worker)
    for _, task in ipairs(worker.tasks) do
      local name = component_of[task]
      if name then
        counts[name] = counts[name] or {}
        counts[name][key] = (counts[name][key] or 0) + 1
      end
    end
  end
  return counts
end

-- Pairs (sending task, receiving task) that are not at the same key.
local function crossing(request, counts)
  local total = {}
  for _, component in ipairs(request.components) do total[component.name] = #component.tasks end
  local sum = 0
  for _, component in ipairs(request.components) do
    for _, input in ipairs(component.inputs) do
      local here, there = counts[component.name] or {}, counts[input] or {}
      local together = 0
      for key, n in pairs(here) do together = together + n * (there[key] or 0) end
      sum = sum + total[component.name] * total[input] - together
    end
  end
  return sum
end

--- Figures of an assignment: {workers=, min_tasks=, max_tasks=, cross_worker_edges=,
--- cross_node_edges=, moved=}. An edge is a pair of tasks of which one reads the other's component;
--- without the request edges are unknown and absent, and `moved` needs its previous assignment.
---@param assignment table
---@param request table? normal form
---@return table
function M.figures(assignment, request)
  local figures = { workers = #assignment.workers, min_tasks = 0, max_tasks = 0 }
  for i, worker in ipairs(assignment.workers) do
    local n = #worker.tasks
    figures.min_tasks = i == 1 and n or math.min(figures.min_tasks, n)
    figures.max_tasks = math.max(figures.max_tasks, n)
  end
  if not request then return figures end
  local component_of = {}
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do component_of[task] = component.name end
  end
  figures.cross_worker_edges = crossing(request,
    counts_by(assignment, component_of, slot_text))
  figures.cross_node_edges = crossing(request,
    counts_by(assignment, component_of, function(worker) return worker.supervisor end))
  figures.moved = request.previous and M.moved(request.previous, assignment) or 0
  return figures
end

return M
