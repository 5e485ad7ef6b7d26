--- The tasks of one worker process of a topology that spans several: brings them to a physical plan,
--- and to the next one while they run.
--
--     local site = sites.new({ worker = worker, plan = plan, container = 1 })
--     assert(site:apply(sites.parse(text)))
--
-- A physical plan is { version=, is_active=, is_held=, containers = { [id] = identity }, tasks = { [id] =
-- { id=, component=, index=, container= } }, coming = tasks of the next one, groups = { [component] =
-- { task, ... } } }. Tasks of other containers are planned too: for the lane behind the last executor,
-- with their place.
--
-- New tasks are opened first, and taken back when one can not. Then routes are built anew everywhere,
-- and the tasks that leave finish what they have and go. Who sends plans has the spouts paused and
-- drained before.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local plans = require 'streamlua.runtime.plan'

local C, ffi = abi.C, abi.ffi

local Site = {}
Site.__index = Site

local M = {}

local function last()
  local _, failure = err.last()
  return failure
end

--- Reads the text of a plan (enum sl_worker_ask).
---@param text string
---@return table
function M.parse(text)
  local plan = { containers = {}, tasks = {}, coming = {}, groups = {} }
  for line in text:gmatch('[^\n]+') do
    local kind, rest = line:match('^(%S+) (.*)$')
    if kind == 'plan' then
      local version, active, held = rest:match('^(%d+) ([01])(.*)$')
      plan.version, plan.is_active, plan.is_held = tonumber(version), active == '1', held == ' held'
    elseif kind == 'container' then
      local id, identity = rest:match('^(%d+) (%S+)$')
      plan.containers[tonumber(id)] = identity
    elseif kind == 'task' or kind == 'coming' then
      local id, component, index, container = rest:match('^(%d+) (%S+) (%d+) (%d+)$')
      id = tonumber(id)
      plan[kind == 'task' and 'tasks' or 'coming'][id] = { id = id, component = component,
        index = tonumber(index), container = tonumber(container) }
    elseif kind == 'groups' then
      local component, owners = rest:match('^(%S+) (.*)$')
      local list = {}
      for id in owners:gmatch('%d+') do list[#list + 1] = tonumber(id) end
      plan.groups[component] = list
    end
  end
  return plan
end

-- Tasks in the order in which executors are filled: along the stream.
local function in_order(self, tasks)
  local by_name = self.plan.by_name
  table.sort(tasks, function(a, b)
    local one, other = by_name[a.component], by_name[b.component]
    if one.rank ~= other.rank then return one.rank < other.rank end
    if one.index ~= other.index then return one.index < other.index end
    return a.id < b.id
  end)
  return tasks
end

local function idlest(self)
  local best = 0
  for index = 1, self.plan.executors - 1 do
    if self.loads[index] < self.loads[best] then best = index end
  end
  return best
end

-- What is to be done, as lists of tasks; or nil and why it can not be.
local function compare(self, plan)
  local own = self.container
  local work = { add_here = {}, add_there = {}, come = {}, go = {}, place = {}, drop_here = {},
    drop_there = {} }
  for id, task in pairs(plan.tasks) do
    local before = self.tasks[id]
    local component = self.plan.by_name[task.component]
    if not component then
      return nil, err.new('ENOTFOUND', ("the plan has a component '%s', the script has none")
        :format(task.component))
    end
    if before and (before.component ~= task.component or before.index ~= task.index) then
      return nil, err.new('EINVAL', ('task %d changes from %s[%d] to %s[%d]'):format(id,
        before.component, before.index, task.component, task.index))
    end
    local list
    local ready = self.ready[id]
    if ready and task.container == own and ready.component == task.component
      and ready.index == task.index then
      task.executor = ready.executor
    elseif not before then
      list = task.container == own and work.add_here or work.add_there
    elseif before.container ~= task.container then
      list = task.container == own and work.come or before.container == own and work.go or work.place
    elseif task.container ~= own
      and plan.containers[task.container] ~= self.identities[task.container] then
      list = work.place
    end
    if list then list[#list + 1] = task end
  end
  for id, task in pairs(self.tasks) do
    if not plan.tasks[id] then
      if self.plan.by_name[task.component].code == C.SL_TASK_ACKER then
        return nil, err.new('EINVAL', ('task %d: ackers can not change while tasks run'):format(id))
      end
      local list = task.container == own and work.drop_here or work.drop_there
      list[#list + 1] = task
    end
  end
  for _, list in pairs(work) do in_order(self, list) end
  return work
end

local function plan_here(self, task)
  local component = self.plan.by_name[task.component]
  -- One that comes back finds its state where it was.
  task.executor = self.former[task.id] or idlest(self)
  if C.sl_abi_worker_task(self.pointer, component.index, task.id, task.index, task.executor) < 0 then
    return nil, last()
  end
  self.loads[task.executor] = self.loads[task.executor] + 1
  return true
end

local function plan_there(self, task)
  local component = self.plan.by_name[task.component]
  if C.sl_abi_worker_task(self.pointer, component.index, task.id, task.index,
    self.plan.executors) < 0 or C.sl_abi_worker_place(self.pointer, task.id, task.container) ~= 0 then
    return nil, last()
  end
  return true
end

-- Takes back what plan_added has planned, and what has been opened.
local function undo(self, undone)
  local attached, came = {}, {}
  for _, task in ipairs(undone.came) do came[task.id] = self.tasks[task.id] end
  for _, task in ipairs(undone.here) do
    -- One that came goes back; until it has been opened it is only planned.
    local before = came[task.id]
    if before and C.sl_abi_worker_move_task(self.pointer, task.id, before.container) == 0 then
      came[task.id] = nil
    else
      C.sl_abi_worker_remove_task(self.pointer, task.id)
    end
    self.loads[task.executor] = self.loads[task.executor] - 1
    if C.sl_abi_worker_planned(self.pointer, task.id, ffi.new('struct sl_planned')) == 0 then
      attached[#attached + 1] = task
    end
  end
  for _, task in ipairs(undone.there) do C.sl_abi_worker_remove_task(self.pointer, task.id) end
  self.worker:remove_tasks(attached, self.wait_options)
  for _, before in pairs(came) do plan_there(self, before) end
  self.worker:route(self.wait_options)
end

-- Which acker keeps a tree follows from their order, which has to be the same in all processes: they are
-- planned before the others, by id.
local function add_ackers(self, work, undone)
  local ackers = {}
  for _, name in ipairs({ 'add_here', 'add_there' }) do
    local rest = {}
    for _, task in ipairs(work[name]) do
      local is_acker = self.plan.by_name[task.component].code == C.SL_TASK_ACKER
      local list = is_acker and ackers or rest
      list[#list + 1] = task
    end
    work[name] = rest
  end
  table.sort(ackers, function(a, b) return a.id < b.id end)
  for _, task in ipairs(ackers) do
    local is_here = task.container == self.container
    local ok, failure = (is_here and plan_here or plan_there)(self, task)
    if not ok then return nil, failure end
    local list = is_here and undone.here or undone.there
    list[#list + 1] = task
  end
  return true
end

-- Plans the new tasks and opens those of this process.
local function add(self, work)
  local undone = { here = {}, there = {}, came = {} }
  local function try(list, plan_one, into)
    for _, task in ipairs(list) do
      local ok, failure = plan_one(self, task)
      if not ok then return nil, failure end
      into[#into + 1] = task
    end
    return true
  end
  local ok, failure = add_ackers(self, work, undone)
  if ok then ok, failure = try(work.add_there, plan_there, undone.there) end
  if ok then
    for _, task in ipairs(work.come) do
      C.sl_abi_worker_remove_task(self.pointer, task.id)
      undone.came[#undone.came + 1] = task
    end
    ok, failure = try(work.add_here, plan_here, undone.here)
  end
  if ok then ok, failure = try(work.come, plan_here, undone.here) end
  if ok then ok, failure = self.worker:open_tasks(undone.here, self.wait_options) end
  if not ok then
    undo(self, undone)
    return nil, failure
  end
  return true, nil, undone
end

local function set_groups(self, plan)
  for name, groups in pairs(plan.groups) do
    local component = self.plan.by_name[name]
    if component then
      local owners = ffi.new('int32_t[?]', #groups, groups)
      if C.sl_abi_worker_groups(self.pointer, component.index, owners, #groups) < 0 then
        return nil, last()
      end
      component.groups = groups
      -- The plan's number, not that of the script: it was submitted with another parallelism, perhaps.
      self.plan.key_groups = #groups
    end
  end
  return true
end

-- What has come for the plan. It is kept until the plan is here to stay: one that can not be applied at once
-- finds it again.
local function staged(self, plan)
  if self.staged.version ~= plan.version then self.staged = { version = plan.version } end
  for item in self.next_staged, plan.version do table.insert(self.staged, item) end
  return self.staged
end

-- Puts what has come for the plan into the tasks that it is meant for.
local function adopt(self, plan)
  local requests = {}
  for _, item in ipairs(staged(self, plan)) do
    local task = plan.tasks[item.task]
    if not task or task.container ~= self.container or task.component ~= item.component then
      return nil, err.new('EINVAL', ('state of %s came for task %d, which is not here'):format(
        item.component, item.task))
    end
    local executor = task.executor or self.tasks[item.task].executor
    requests[executor] = requests[executor] or { what = 'adopt', tables = {} }
    table.insert(requests[executor].tables, { task = item.task, state = item.state,
      address = tonumber(ffi.cast('uintptr_t', item.handle)) })
  end
  return self.worker:tell(requests, self.wait_options)
end

-- Bytes of entries in one answer.
local EXPORT_BYTES = 384 * 1024

-- What is wanted of groups, or of a task (0: of the groups): {{group, task}, ...}.
local function wanted_of(self, component, groups, task)
  local owners, wanted = self.groups[component] or {}, {}
  if task ~= 0 then
    for group = 0, self.plan.key_groups - 1 do wanted[group + 1] = { group, task } end
  else
    for i, group in ipairs(groups) do wanted[i] = { group, owners[group + 1] or 0 } end
  end
  return wanted
end

-- The executor of a task that is here.
local function executor_here(self, task)
  local entry = self.tasks[task]
  return entry and entry.container == self.container and entry.executor
end

--- Bytes of the state of key groups, or of all state of a task.
---@param component string
---@param groups integer[] from 0
---@param task integer 0 = that of the groups
---@return integer? bytes
---@return streamlua.Error?
function Site:measure(component, groups, task)
  local requests = {}
  for _, item in ipairs(wanted_of(self, component, groups, task)) do
    local executor = executor_here(self, item[2])
    if executor then
      requests[executor] = requests[executor] or { what = 'measure', groups = {} }
      table.insert(requests[executor].groups, item)
    end
  end
  local answers, failure = self.worker:tell(requests, self.wait_options)
  if not answers then return nil, failure end
  local bytes = 0
  for _, answer in pairs(answers) do bytes = bytes + answer.bytes end
  return bytes
end

--- Pieces of the state of key groups, or of all state of a task, and where the next ones begin ('' = there
--- are no more): { state=, group=, count=, entries=, whole= } as told.lua says. Nothing changes by it.
---@param component string
---@param groups integer[] from 0
---@param task integer 0 = that of the groups
---@param cursor string '' at first
---@return table[]? pieces
---@return string|streamlua.Error cursor or error
function Site:export(component, groups, task, cursor)
  local wanted = wanted_of(self, component, groups, task)
  local at, name_at, offset, sent = 1, 1, 0, 0
  if cursor ~= '' then
    at, name_at, offset, sent = cursor:match('^(%d+) (%d+) (%d+) (%d+)$')
    at, name_at, offset, sent = tonumber(at), tonumber(name_at), tonumber(offset), tonumber(sent)
  end
  if not at or at > #wanted then return {}, '' end
  local function executor_of(i) return executor_here(self, wanted[i][2]) end
  -- Groups that follow each other on one executor are one request.
  local executor, final = executor_of(at), at
  while wanted[final + 1] and executor_of(final + 1) == executor do final = final + 1 end
  local function next_cursor(position)
    return ('%d %d %d %d'):format(unpack(position))
  end
  if not executor then return {}, final < #wanted and next_cursor({ final + 1, 1, 0, 0 }) or '' end
  local part = {}
  for i = at, final do part[#part + 1] = wanted[i] end
  local answers, failure = self.worker:tell({ [executor] = { what = 'export', groups = part,
    at = { 1, name_at, offset, sent }, most = EXPORT_BYTES } }, self.wait_options)
  if not answers then return nil, failure end
  local answer = answers[executor]
  if answer.at then
    return answer.pieces, next_cursor({ at + answer.at[1] - 1, answer.at[2], answer.at[3], answer.at[4] })
  end
  return answer.pieces, final < #wanted and next_cursor({ final + 1, 1, 0, 0 }) or ''
end

-- Lets tasks go that were made ready for a plan, unless that is the one that comes.
local function drop_ready(self, plan)
  local dropped = {}
  for id, ready in pairs(self.ready) do
    local task = plan.tasks[id]
    if not (task and task.container == self.container and task.component == ready.component
      and task.index == ready.index) then
      dropped[#dropped + 1], self.ready[id] = ready, nil
    end
  end
  if #dropped > 0 then undo(self, { here = dropped, there = {}, came = {} }) end
end

--- Makes new tasks of the next plan ready: spouts and bolts are opened, and get no tuple, no tick and no call
--- before that plan is applied and nothing is held. Returns true, or nil and an error, and then none is ready.
---@param plan table
---@return true? ok
---@return streamlua.Error? failure
function Site:make_ready(plan)
  local list = {}
  for _, task in pairs(plan.coming or {}) do
    local component = self.plan.by_name[task.component]
    local is_user = component and (component.code == C.SL_TASK_BOLT or component.code == C.SL_TASK_SPOUT)
    if is_user and task.container == self.container then list[#list + 1] = task end
  end
  local undone = { here = {}, there = {}, came = {} }
  local ok, failure = true, nil
  local requests = {}
  for _, task in ipairs(in_order(self, list)) do
    ok, failure = plan_here(self, task)
    if not ok then break end
    table.insert(undone.here, task)
    requests[task.executor] = requests[task.executor] or { what = 'ready', tasks = {} }
    table.insert(requests[task.executor].tasks, task.id)
  end
  if ok then ok, failure = self.worker:tell(requests, self.wait_options) end
  if not ok then
    undo(self, undone)
    return nil, failure
  end
  for _, task in ipairs(list) do self.ready[task.id] = task end
  return true
end

-- Has bolts tick or not; what is opened meanwhile waits, too, until nothing is held. It stays as it is when it
-- is held already.
local function hold(self, is_held, has_way)
  if self.is_held == is_held and (is_held or not self.has_waiting) then return true end
  local requests = {}
  for index = 0, self.plan.executors - 1 do
    requests[index] = { what = 'hold', is_held = is_held, has_way = has_way }
  end
  self.is_held, self.has_waiting = is_held, is_held
  return self.worker:tell(requests, self.wait_options)
end

-- The plan that runs is there to stay: what it took away goes.
local function commit(self)
  local requests = {}
  for index = 0, self.plan.executors - 1 do
    requests[index] = { what = 'commit', owners = self.groups }
  end
  self.needs_commit, self.former = false, {}
  return self.worker:tell(requests, self.wait_options)
end

--- Brings the tasks to a plan. Returns true, or nil and an error: with EUSER, ENOTFOUND, EINVAL, ELIMIT
--- the tasks are what they were; ETIMEDOUT: tasks that leave have not finished in time.
---@param plan table
---@return true? ok
---@return streamlua.Error? failure
function Site:apply(plan)
  local ok, failure = true, nil
  if plan.is_held then ok, failure = hold(self, true) end
  if ok and self.needs_commit and plan.version > self.version then ok, failure = commit(self) end
  if not ok then return nil, failure end
  drop_ready(self, plan)
  local work
  work, failure = compare(self, plan)
  if not work then return nil, failure end
  -- Emits of new tasks need the owners of key groups when they are attached.
  local is_first = next(self.tasks) == nil
  if is_first then
    ok, failure = set_groups(self, plan)
    if not ok then return nil, failure end
  end
  local undone
  ok, failure, undone = add(self, work)
  if not ok then return nil, failure end
  ok, failure = adopt(self, plan)
  if not ok then
    undo(self, undone)
    return nil, failure
  end
  for _, task in ipairs(work.place) do
    C.sl_abi_worker_place(self.pointer, task.id, task.container)
  end
  local leaving = {}
  for _, task in ipairs(work.go) do
    local before = self.tasks[task.id]
    C.sl_abi_worker_move_task(self.pointer, task.id, task.container)
    leaving[#leaving + 1] = before
  end
  for _, task in ipairs(work.drop_here) do
    C.sl_abi_worker_remove_task(self.pointer, task.id)
    leaving[#leaving + 1] = task
  end
  for _, task in ipairs(work.drop_there) do C.sl_abi_worker_remove_task(self.pointer, task.id) end
  ok, failure = set_groups(self, plan)
  if ok then
    plans.refresh(self.plan, self.pointer)
    ok, failure = self.worker:route(self.wait_options)
  end
  for id, task in pairs(plan.tasks) do
    task.executor = task.executor or (self.tasks[id] and self.tasks[id].executor)
  end
  for _, task in ipairs(leaving) do
    self.loads[task.executor] = self.loads[task.executor] - 1
    self.former[task.id] = task.executor
  end
  self.has_waiting = self.has_waiting or next(self.ready) ~= nil
  self.ready, self.staged = {}, {}
  self.needs_commit = self.needs_commit or self.version ~= nil and self.version ~= plan.version
  self.tasks, self.identities, self.version = plan.tasks, plan.containers, plan.version
  self.groups = plan.groups
  if ok and #leaving > 0 then
    ok, failure = self.worker:remove_tasks(leaving, self.drain_options)
    if ok then ok, failure = self.worker:route(self.wait_options) end
    plans.refresh(self.plan, self.pointer)
  end
  return ok, failure
end

--- Has spouts be called or not, and bolts tick or not, and waits until it is so.
---@param is_active boolean
---@param is_held? boolean nothing begins by the clock, and tasks that are opened wait
---@param has_way? boolean and bolts begin only when nothing that they have emitted is under way
function Site:set_active(is_active, is_held, has_way)
  local ok, failure = true, nil
  -- Nothing is held any more: every process has the plan.
  local is_released = self.is_held and not is_held
  if self.needs_commit and (is_active or is_released) then ok, failure = commit(self) end
  if ok then ok, failure = hold(self, is_held or false, has_way) end
  if not ok then return nil, failure end
  -- Spouts that came meanwhile were told when they were opened.
  if self.is_active == is_active then return true end
  self.is_active = is_active
  return self.worker:command_all(is_active and C.SL_COMMAND_ACTIVATE or C.SL_COMMAND_DEACTIVATE,
    self.wait_options)
end

--- Has spouts emit nothing new, only again what fails, for good.
function Site:drain()
  if self.is_draining then return true end
  self.is_draining = true
  local ok, failure = self:set_active(false)
  if not ok then return nil, failure end
  self.worker:command(C.SL_COMMAND_DRAIN)
  -- Until every executor has it.
  return self.worker:route(self.wait_options)
end

---@class streamlua.SiteOptions
---@field worker table streamlua.runtime.worker, started, of a plan without tasks
---@field plan table
---@field container integer
---@field on_event fun(event: table) hears what else the worker says meanwhile
---@field drain_ms? number how long tasks that leave may take
---@field next_staged? fun(version: integer): table? the next state of a task that has come for the plan of a
---version, { component=, state=, task=, handle = struct sl_keyed * }; nil: there is none

--- A site without tasks.
---@param options streamlua.SiteOptions
function M.new(options)
  local loads = {}
  for index = 0, options.plan.executors - 1 do loads[index] = 0 end
  return setmetatable({
    worker = options.worker,
    pointer = options.worker.pointer,
    plan = options.plan,
    container = options.container,
    tasks = {},
    -- Tasks of the next plan that are ready.
    ready = {},
    identities = {},
    groups = {},
    loads = loads,
    -- Executors of tasks that have left since the last commit.
    former = {},
    -- States of tasks that have come, for the plan of a version.
    staged = {},
    next_staged = options.next_staged or function() end,
    needs_commit = false,
    is_active = false,
    is_held = false,
    -- The plan has tasks that were made ready, and begin when nothing is held.
    has_waiting = false,
    wait_options = { limit_ms = 30000, on_event = options.on_event },
    drain_options = {
      limit_ms = options.drain_ms or options.plan.settings.message_timeout * 1500,
      on_event = options.on_event,
    },
  }, Site)
end

return M
