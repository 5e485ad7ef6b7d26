-- Scheduling: which tasks form a worker and which slot each worker gets, as plain documents.
--
--   local scheduling = require 'streamlua.scheduling'
--   local request = assert(scheduling.request_from_topology(t, { supervisors = 3, slots = 4 }))
--   local assignment = assert(scheduling.assign(request, 'balanced'))
--   print(scheduling.render(assignment, { request = request }))
--   print(scheduling.evaluate(assignment, request).cross_node_edges)
--
-- Documents are those of docs/schedulers.md. A function that fails returns nil and an error of
-- streamlua.err: EINVAL (a faulty document, with `faults`), EUNSATISFIABLE (no such assignment),
-- ECONFLICT (nothing to do), EUSER (a custom scheduler). Custom schedulers run in this process here
-- and in a child with limits when `options.limits` is given.

local custom = require 'streamlua.scheduling.custom'
local diff = require 'streamlua.scheduling.diff'
local document = require 'streamlua.scheduling.document'
local evaluate = require 'streamlua.scheduling.evaluate'
local from_topology = require 'streamlua.scheduling.topology'
local native = require 'streamlua.scheduling.native'
local render = require 'streamlua.scheduling.render'

local M = {}

--- The scheduler that `schedule` uses when nothing names another.
M.DEFAULT = 'balanced'

--- Names of the built-in schedulers.
M.names = native.names

--- Modes of assigning.
M.modes = document.MODES

--- Checks a request and returns its normal form; every fault is in the error.
---@param request any
---@return table? request
---@return streamlua.Error?
function M.validate_request(request) return document.request(request) end

--- Checks an assignment and returns its normal form; with a request, also against that.
---@param assignment any
---@param request table? document
---@return table? assignment
---@return streamlua.Error?
function M.validate_assignment(assignment, request)
  if request then
    local fault
    request, fault = document.request(request)
    if not request then return nil, fault end
  end
  return document.assignment(assignment, { request = request })
end

--- Checks a cluster document, in full or { supervisors = 3, slots = 4 }, and returns it in full.
---@param cluster any
---@return table? cluster
---@return streamlua.Error?
function M.cluster(cluster) return document.cluster(cluster) end

--- The request of a topology for a cluster (streamlua.scheduling.topology.request).
---@param topology table
---@param cluster table
---@param options table? {scheduler=, parallelism=, previous=, mode=, dead=}
---@return table? request
---@return streamlua.Error?
function M.request_from_topology(topology, cluster, options)
  return from_topology.request(topology, cluster, options)
end

--- A scheduler by name or path: a built-in {name=, builtin=true} or a custom one {name=, assign=,
--- path=}; `:reload()` reads the file again.
---@param text string
---@param options table? {folder= of the topology's script}
---@return table? scheduler
---@return streamlua.Error?
function M.scheduler(text, options)
  if native.schedulers[text] then
    return { name = text, builtin = true, reload = function(self) return self end }
  end
  local path, fault = custom.find(text, options)
  if not path then return nil, fault end
  local scheduler
  scheduler, fault = custom.load(path)
  if not scheduler then return nil, fault end
  function scheduler.reload(self)
    local again, why = custom.load(self.path)
    if not again then error(why, 2) end
    self.name, self.assign = again.name, again.assign
    return self
  end
  return scheduler
end

local function is_builtin(scheduler)
  return type(scheduler) == 'string' and native.schedulers[scheduler] ~= nil
    or type(scheduler) == 'table' and scheduler.builtin
end

--- Assigns a request. The scheduler is a name, a path or one of M.scheduler; default M.DEFAULT.
--- options: `limits` = {seconds=, memory=} runs a custom scheduler in a child, `folder` of the
--- topology's script.
---@param request table document
---@param scheduler string|table|nil
---@param options table?
---@return table? assignment
---@return streamlua.Error?
function M.assign(request, scheduler, options)
  options = options or {}
  local normal, fault = document.request(request)
  if not normal then return nil, fault end
  scheduler = scheduler or M.DEFAULT
  if is_builtin(scheduler) then
    return native.assign(normal, type(scheduler) == 'string' and scheduler or scheduler.name)
  end
  if options.limits then
    local text = type(scheduler) == 'table' and scheduler.path or scheduler
    local path
    path, fault = custom.find(text, options)
    if not path then return nil, fault end
    return custom.run(path, normal, options.limits)
  end
  if type(scheduler) == 'string' then
    scheduler, fault = M.scheduler(scheduler, options)
    if not scheduler then return nil, fault end
  end
  return custom.call(scheduler, normal)
end

--- What lies between two assignments (streamlua.scheduling.diff).
---@param before table document
---@param after table document
---@return table? delta
---@return streamlua.Error?
function M.diff(before, after) return diff.diff(before, after) end

--- Figures of an assignment (streamlua.scheduling.evaluate).
---@param assignment table document
---@param request table? document
---@return table? figures
---@return streamlua.Error?
function M.evaluate(assignment, request)
  local normal, fault = document.assignment(assignment)
  if not normal then return nil, fault end
  if request then
    request, fault = document.request(request)
    if not request then return nil, fault end
  end
  return evaluate.figures(normal, request)
end

--- An assignment as tables for people. options: `request`, `color`.
---@param assignment table
---@param options table?
---@return string
function M.render(assignment, options) return render.assignment(assignment, options) end

--- A difference as tables for people. options: `color`.
---@param delta table
---@param options table?
---@return string
function M.render_diff(delta, options) return diff.render(delta, options) end

--- Figures as a table for people.
---@param figures table
---@param options table?
---@return string
function M.render_figures(figures, options) return render.figures(figures, options) end

return M
