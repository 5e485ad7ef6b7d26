-- The order in which documents show their keys, for streamlua.json.encode.
--
--   local order = require 'streamlua.cli.order'
--   context:print_json(assignment, order.assignment)

local M = {}

local instances = { 'component', 'task', 'index', 'cpu', 'ram', 'disk' }
local containers = { 'id', 'cpu', 'ram', 'disk', 'supervisor', 'host', 'port', 'instances',
  instances = instances }

--- A packing plan.
M.plan = { 'topology', 'version', 'packing', 'containers', 'key_groups', containers = containers }

--- A packing request.
M.packing_request = {
  'topology', 'config', 'components', 'current', 'changes', 'containers',
  components = { 'name', 'kind', 'parallelism', 'cpu', 'ram', 'disk' }, current = M.plan,
}

local changed = { 'id', 'state', 'added', 'removed', added = instances, removed = instances }

local moves = { 'component', 'task', 'from', 'to' }

--- What lies between two plans.
M.plan_diff = {
  'kind', 'same', 'topology', 'from_version', 'to_version', 'containers', 'kept', 'moved', 'started',
  'stopped', 'moves', containers = changed, moves = moves,
}

--- What an update would do.
M.update = {
  'topology', 'repacking', 'from_version', 'old', 'new', 'changes', 'containers', 'kept', 'started',
  'stopped', 'moved', 'moves', 'groups_moved', 'bytes_moved', old = M.plan, new = M.plan,
  containers = changed, moves = moves,
}

local workers = { 'supervisor', 'host', 'port', 'tasks', 'cpu', 'ram' }

--- An assignment.
M.assignment = { 'topology', 'scheduler', 'workers', 'components', workers = workers,
  components = { 'name', 'tasks' } }

--- A cluster.
M.cluster = { 'supervisors',
  supervisors = { 'id', 'host', 'rack', 'ports', 'used', 'cpu', 'ram', 'load' } }

--- A scheduling request.
M.scheduling_request = {
  'topology', 'mode', 'workers', 'master_alone', 'reserve_workers', 'components', 'isolation',
  'user_workers', 'on_different_nodes', 'use_old_assignment', 'cluster', 'previous', 'dead_tasks',
  'unstopped_tasks', 'plan', 'container_cpu', 'container_ram', 'rates',
  components = { 'name', 'kind', 'inputs', 'tasks', 'cpu', 'ram' },
  user_workers = { 'host', 'port', 'cpu', 'ram', 'components' },
  cluster = M.cluster, previous = M.assignment, plan = M.plan, rates = { 'from', 'to', 'rate' },
}

--- What lies between two assignments.
M.assignment_diff = {
  'kind', 'same', 'topology', 'kept', 'moved', 'started', 'stopped', 'added', 'removed', 'moves',
  'workers', moves = { 'task', 'from', 'to' },
  workers = { 'supervisor', 'host', 'port', 'state', 'added', 'removed' },
}

--- Figures of an assignment.
M.figures = { 'workers', 'min_tasks', 'max_tasks', 'cross_worker_edges', 'cross_node_edges', 'moved' }

--- The summary of a run of a topology; its components stand as they are declared.
---@param topology table
---@return table
function M.summary(topology)
  local components = { ['*'] = { 'emitted', 'acked', 'failed', 'executed' } }
  for i, component in ipairs(topology.components) do components[i] = component.name end
  return { 'topology', 'seconds', 'components', 'complete_latency_ms', components = components }
end

--- An error.
M.error = { error = { 'code', 'message', 'hint', 'file', 'line' } }

return M
