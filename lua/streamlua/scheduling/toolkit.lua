-- What custom schedulers have in common, so that a scheduler says only how it chooses.
--
--   local toolkit = require 'streamlua.scheduling.toolkit'
--   return { name = 'first-free', assign = function(request)
--     local state = toolkit.start(request)
--     while state.workers_to_open > 0 do state:open(state:node_with_room()) end
--     for i, task in ipairs(state.tasks) do
--       state:put(state.workers[(i - 1) % #state.workers + 1], task)
--     end
--     return state:finish()
--   end }
--
-- `start` reads the request: who stays by its mode, which nodes and ports may be used, which user
-- workers there are, how many workers may be opened, and whether the topology master has one of its
-- own. `finish` places that and gives the assignment. What a request asks and nobody can give is
-- raised as an error.

local M = {}

local MASTER = '__topology_master'

local State = {}
State.__index = State

local function as_set(list)
  local map = {}
  for _, item in ipairs(list) do map[item] = true end
  return map
end

--- Tasks of a request in order of ids: {id=, component=, kind=, cpu=, ram=}.
---@param request table
---@return table[]
function M.tasks(request)
  local list = {}
  for _, component in ipairs(request.components) do
    for _, id in ipairs(component.tasks) do
      list[#list + 1] = { id = id, component = component.name, kind = component.kind,
        cpu = component.cpu, ram = component.ram }
    end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

--- How many workers a request wants, without the topology master's own, and whether it has one.
---@param request table
---@return integer workers
---@return boolean is_master_alone
function M.worker_count(request)
  local tasks, has_master = 0, false
  for _, component in ipairs(request.components) do
    if component.name == MASTER then
      has_master = true
    else
      tasks = tasks + #component.tasks
    end
  end
  local count = math.max(math.min(request.workers or tasks, tasks), 1)
  local alone = request.master_alone
  if alone == nil then alone = count >= 10 end
  return count, alone and has_master and tasks > 0
end

--- Traffic between components: {from=, to=, rate=}; measured rates where the request has them, else
--- one unit for each pair of tasks.
---@param request table
---@return table[]
function M.edges(request)
  local size, measured, edges = {}, {}, {}
  for _, component in ipairs(request.components) do size[component.name] = #component.tasks end
  for _, rate in ipairs(request.rates or {}) do
    measured[rate.from .. '\0' .. rate.to] = rate.rate
  end
  for _, component in ipairs(request.components) do
    for _, input in ipairs(component.inputs) do
      local rate = measured[input .. '\0' .. component.name]
      if not rate and not request.rates then rate = size[input] * size[component.name] end
      edges[#edges + 1] = { from = input, to = component.name, rate = rate or 0 }
    end
  end
  return edges
end

local Queue = {}
Queue.__index = Queue

local function is_before(a, b)
  local left, right = a.key, b.key
  for i = 1, #left do
    if left[i] ~= right[i] then return left[i] < right[i] end
  end
  return a.position < b.position
end

local function sift_down(heap, at)
  local entry = heap[at]
  while true do
    local child = 2 * at
    if not heap[child] then break end
    if heap[child + 1] and is_before(heap[child + 1], heap[child]) then child = child + 1 end
    if not is_before(heap[child], entry) then break end
    heap[at], at = heap[child], child
  end
  heap[at] = entry
end

--- A queue that finds the best of many items without looking at all of them each time. `key(item)`
--- is a list of numbers, the least is best, then the item that comes first. `accept(item)` says
--- whether an item may be chosen; one that may not is dropped. Between two calls of `queue:best()`
--- the keys of all items but the one it gave must stay or get worse.
---@param items table[]
---@param key fun(item: table): number[]
---@param accept (fun(item: table): boolean)?
---@return table queue
function M.queue(items, key, accept)
  local heap = {}
  for i, item in ipairs(items) do heap[i] = { item = item, position = i, key = key(item) } end
  for at = math.floor(#heap / 2), 1, -1 do sift_down(heap, at) end
  return setmetatable({ heap = heap, key = key, accept = accept }, Queue)
end

--- The best item as things are now; it stays in the queue. Nil when there is none.
---@return table?
function Queue:best()
  local heap = self.heap
  while heap[1] do
    local top = heap[1]
    if self.accept and not self.accept(top.item) then
      local last = table.remove(heap)
      if heap[1] then
        heap[1] = last
        sift_down(heap, 1)
      end
    else
      -- Its key may have changed since it came to the top: it is the best if it still is with that.
      top.key = self.key(top.item)
      sift_down(heap, 1)
      if heap[1] == top then return top.item end
    end
  end
end

-- Usable supervisors by id, with their free ports ascending.
local function nodes_of(request)
  local list, isolation = {}, as_set(request.isolation)
  for _, supervisor in ipairs(request.cluster.supervisors) do
    if #request.isolation == 0 or isolation[supervisor.host] then
      local used, free = as_set(supervisor.used), {}
      for _, port in ipairs(supervisor.ports) do
        if not used[port] then free[#free + 1] = port end
      end
      table.sort(free)
      list[#list + 1] = { id = supervisor.id, host = supervisor.host, free = free,
        ports = #supervisor.ports, rack = supervisor.rack or supervisor.host,
        load = supervisor.load or 0, cpu = supervisor.cpu, ram = supervisor.ram, workers = 0 }
    end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

local function take_port(node, port)
  for i, free in ipairs(node.free) do
    if free == port then
      table.remove(node.free, i)
      return true
    end
  end
  return false
end

-- Takes the resources of one more worker (of default size unless cpu and ram are given), when the
-- node states them.
local function charge(self, node, cpu, ram)
  node.workers = node.workers + 1
  if node.cpu then node.cpu = node.cpu - (cpu or self.request.container_cpu or 0) end
  if node.ram then node.ram = node.ram - (ram or self.request.container_ram or 0) end
end

--- True when a node takes one more worker (of default size unless cpu and ram are given).
---@param node table of state.nodes
---@param cpu? number cores
---@param ram? number bytes
---@return boolean
function State:has_room(node, cpu, ram)
  cpu, ram = cpu or self.request.container_cpu or 0, ram or self.request.container_ram or 0
  return #node.free > 0 and (not node.cpu or cpu <= node.cpu) and (not node.ram or ram <= node.ram)
end

--- Opens a worker on a node: on a port, or on its first free one. It is of default size unless cpu
--- and ram are given.
---@param node table of state.nodes
---@param port integer?
---@param cpu? number cores
---@param ram? number bytes
---@return table worker {supervisor=, host=, port=, tasks={}, node=}
function State:open(node, port, cpu, ram)
  if not node then error('not enough slots: no node has room for another worker', 0) end
  port = port or node.free[1]
  if not port or not take_port(node, port) then
    error(("supervisor '%s': port %s can not be had"):format(node.id, tostring(port)), 0)
  end
  charge(self, node, cpu, ram)
  local worker = { supervisor = node.id, host = node.host, port = port, tasks = {}, node = node,
    count = {}, cpu = cpu, ram = ram }
  self.workers[#self.workers + 1] = worker
  self.workers_to_open = self.workers_to_open - 1
  return worker
end

--- Gives a task to a worker.
---@param worker table
---@param task table of state.tasks
function State:put(worker, task)
  worker.tasks[#worker.tasks + 1] = task.id
  worker.count[task.component] = (worker.count[task.component] or 0) + 1
  if self.is_spread[task.component] then
    self.spread_on[task.component .. '\0' .. worker.supervisor] = true
  end
end

--- The node that takes another worker and is best by `better(a, b)`; by default the one with the
--- fewest workers of this topology, then the most free ports, then the lowest id. Nil when no node
--- has room.
---@param better (fun(a: table, b: table): boolean)?
---@return table?
function State:node_with_room(better)
  better = better or function(a, b)
    if a.workers ~= b.workers then return a.workers < b.workers end
    return #a.free > #b.free
  end
  local best
  for _, node in ipairs(self.nodes) do
    if self:has_room(node) and (not best or better(node, best)) then best = node end
  end
  return best
end

--- True when the node may have a task of the component: not when its tasks must run on different
--- nodes and one is there.
---@param node table of state.nodes
---@param component string
---@return boolean
function State:may_put(node, component)
  return not self.is_spread[component] or not self.spread_on[component .. '\0' .. node.id]
end

--- Opens all workers that are to be opened, each on the node whose key is the least then (M.queue);
--- a node's key must get worse with its workers.
---@param key fun(node: table): number[]
function State:open_all(key)
  local queue = M.queue(self.nodes, key, function(node) return self:has_room(node) end)
  while self.workers_to_open > 0 do self:open(queue:best()) end
end

local function put_lone_master(self)
  if not self.master then return end
  self.workers_to_open = self.workers_to_open + 1
  self:put(self:open(self:node_with_room()), self.master)
  self.master = nil
end

--- Places the topology master, drops empty workers, and gives the assignment.
---@return table
function State:finish()
  put_lone_master(self)
  local workers = {}
  for _, list in ipairs({ self.closed, self.workers }) do
    for _, worker in ipairs(list) do
      if #worker.tasks > 0 then
        table.sort(worker.tasks)
        workers[#workers + 1] = { supervisor = worker.supervisor, host = worker.host,
          port = worker.port, tasks = worker.tasks, cpu = worker.cpu, ram = worker.ram }
      end
    end
  end
  table.sort(workers, function(a, b)
    if a.supervisor ~= b.supervisor then return a.supervisor < b.supervisor end
    return a.port < b.port
  end)
  return { topology = self.request.topology, workers = workers }
end

-- What of a previous worker stays: nothing when it is dead; in mode monitor and for unstopped tasks
-- it is closed; in keep and minimal it goes on and may get more.
local function keep_previous(self, by_id)
  local request = self.request
  local mode = request.mode
  if mode == 'new' or not request.previous then return end
  local dead, unstopped = as_set(request.dead_tasks), as_set(request.unstopped_tasks)
  local node_of = {}
  for _, node in ipairs(self.nodes) do node_of[node.id] = node end
  for _, old in ipairs(request.previous.workers) do
    local is_dead, is_closed, tasks = false, mode == 'monitor', {}
    for _, id in ipairs(old.tasks) do
      local task = by_id[id]
      if task then
        tasks[#tasks + 1] = task
        is_dead, is_closed = is_dead or dead[id], is_closed or unstopped[id]
      end
    end
    local node = node_of[old.supervisor]
    -- Nobody gets the port of a dead worker, nor that of one that runs on.
    local is_free = node and take_port(node, old.port)
    local worker = { supervisor = old.supervisor, host = old.host, port = old.port, tasks = {},
      node = node, count = {}, cpu = old.cpu, ram = old.ram }
    local resumes = (mode == 'keep' or mode == 'minimal') and is_free and self.workers_to_open > 0
    if #tasks > 0 and not is_dead and (is_closed or resumes) then
      if node then charge(self, node, old.cpu, old.ram) end
      table.insert(is_closed and self.closed or self.workers, worker)
      self.workers_to_open = self.workers_to_open - 1
      for _, task in ipairs(tasks) do
        local is_lone = task == self.master
        if is_closed or not is_lone and self:may_put({ id = old.supervisor }, task.component) then
          if is_lone then self.master = nil end
          self:put(worker, task)
          by_id[task.id] = nil
        end
      end
    elseif not is_dead and is_free then
      table.insert(node.free, old.port)
      table.sort(node.free)
    end
  end
end

local function open_user_workers(self, by_id)
  local request = self.request
  if request.mode == 'monitor' then return end
  local members = {}
  for _, component in ipairs(request.components) do members[component.name] = component.tasks end
  for i, user in ipairs(request.user_workers) do
    local node
    for _, candidate in ipairs(self.nodes) do
      local has_port = not user.port or as_set(candidate.free)[user.port]
      if not node and (not user.host or user.host == candidate.host) and has_port
        and self:has_room(candidate, user.cpu, user.ram) then
        node = candidate
      end
    end
    if not node then error(('user worker %d can not be placed'):format(i), 0) end
    local worker = self:open(node, user.port, user.cpu, user.ram)
    for name, count in pairs(user.components) do
      for _, id in ipairs(members[name]) do
        if count > 0 and by_id[id] then
          self:put(worker, by_id[id])
          by_id[id] = nil
          count = count - 1
        end
      end
    end
  end
end

--- Reads a request. The state has `nodes` (usable supervisors), `tasks` (to place, by id),
--- `workers` (open, also those that go on), `closed` (stay as they are), `workers_to_open`,
--- `edges` (M.edges), `is_spread` (components on different nodes) and `request`.
---@param request table normal form
---@return table state
function M.start(request)
  local count, is_master_alone = M.worker_count(request)
  local self = setmetatable({ request = request, nodes = nodes_of(request), tasks = {},
    workers = {}, closed = {}, workers_to_open = count, edges = M.edges(request),
    is_spread = as_set(request.on_different_nodes), spread_on = {} }, State)
  local by_id, tasks = {}, M.tasks(request)
  for _, task in ipairs(tasks) do
    by_id[task.id] = task
    if is_master_alone and task.component == MASTER then self.master = task end
  end
  keep_previous(self, by_id)
  open_user_workers(self, by_id)
  for _, task in ipairs(tasks) do
    if by_id[task.id] and task ~= self.master then self.tasks[#self.tasks + 1] = task end
  end
  -- Something to place and nowhere to put it: one more worker than was asked for.
  if #self.tasks > 0 and #self.workers == 0 then
    self.workers_to_open = math.max(self.workers_to_open, 1)
  end
  self.workers_to_open = math.max(self.workers_to_open, 0)
  return self
end

return M
