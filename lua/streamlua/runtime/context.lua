--- The context that `open` and `prepare` get: who the task is, its config, clock, log, metrics, state.

local metrics = require 'streamlua.runtime.metrics'

local M = {}

local Context = {}
Context.__index = Context

--- Milliseconds since the epoch by the engine's clock.
---@return integer
function Context:now() return self._rt.executor:now_ms() end

--- Ids of the tasks of a component, ascending. Raises when there is no such component.
---@param component string
---@return integer[]
function Context:tasks(component)
  local found = self._rt.plan.by_name[component]
  if not found then error(("tasks: no component '%s'"):format(tostring(component)), 2) end
  local ids = {}
  for i, id in ipairs(found.tasks) do ids[i] = id end
  return ids
end

--- Who reads a stream of this component: { component = { task, ... } }.
---@param stream string
---@return table<string, integer[]>
function Context:readers(stream)
  local own = self._rt.component.stream_by_name[stream]
  if not own then error(("readers: no stream '%s'"):format(tostring(stream)), 2) end
  local readers = {}
  for _, reader in ipairs(self._rt.plan.readers_of[own.index]) do
    readers[reader.component.name] = self:tasks(reader.component.name)
  end
  return readers
end

local function check_name(name, what)
  if type(name) ~= 'string' then
    error(("context:%s: expected a name, a string, got %s"):format(what, type(name)), 3)
  end
end

--- A counter of this task by name: `:inc([n])`, `:value()`.
---@param name string
---@return streamlua.Counter
function Context:counter(name)
  check_name(name, 'counter')
  return self._rt.metrics:counter(name)
end

--- A gauge of this task by name: `:set(x)`, `:value()`.
---@param name string
---@return streamlua.Gauge
function Context:gauge(name)
  check_name(name, 'gauge')
  return self._rt.metrics:gauge(name)
end

--- A histogram of this task by name: `:record(x)`, `:quantile(q)`, `:mean()`, `:count()`.
---@param name string
---@return streamlua.Histogram
function Context:histogram(name)
  check_name(name, 'histogram')
  return self._rt.metrics:histogram(name)
end

--- Keyed state of this task by name, off the Lua heap.
---@param name string
function Context:state(name)
  check_name(name, 'state')
  local states = self._rt.states
  local found = states[name]
  if not found then
    found = require('streamlua.runtime.state').new({
      name = name,
      component = self._rt.component.name,
      key_groups = self._rt.plan.key_groups,
    })
    states[name] = found
  end
  return found
end

-- A table that can be read like the one given and not written, at any depth.
local function read_only(source, what)
  local proxy = {}
  return setmetatable(proxy, {
    __index = function(_, key)
      local item = source[key]
      if type(item) == 'table' then
        item = read_only(item, what .. '.' .. tostring(key))
        rawset(proxy, key, item)
      end
      return item
    end,
    __newindex = function(_, key)
      error(("%s is read-only: '%s' can not be set"):format(what, tostring(key)), 2)
    end,
  })
end

local LEVELS = { 'error', 'warn', 'info', 'debug' }

-- context.log: log:info(format, ...) and so on.
local function logger(rt)
  local log = {}
  for _, level in ipairs(LEVELS) do
    log[level] = function(_, text, ...)
      if select('#', ...) > 0 then
        local ok, line = pcall(string.format, text, ...)
        if not ok then error(('log:%s: %s'):format(level, line), 2) end
        text = line
      end
      rt.executor:log(rt, level, tostring(text))
    end
  end
  return log
end

--- The context of a task.
---@param rt table streamlua.runtime.task
function M.new(rt)
  rt.states = {}
  rt.metrics = metrics.new()
  local component = rt.component
  return setmetatable({
    _rt = rt,
    topology = rt.plan.name,
    component = component.name,
    task = rt.planned.id,
    index = rt.planned.index,
    parallelism = #component.tasks,
    config = read_only(component.config, 'config'),
    log = logger(rt),
  }, Context)
end

return M
