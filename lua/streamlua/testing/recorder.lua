--- Remembers what a topology under test emitted, acked, failed, logged and raised.
--
-- It is the executors' tap (streamlua.runtime.executor): values are copied when they are emitted,
-- since the emitter may change a table afterwards.

local value = require 'streamlua.runtime.value'

local M = {}

local Recorder = {}
Recorder.__index = Recorder

local function copied(stream, values)
  local copy = {}
  for i = 1, #stream.fields do
    local item = values[i]
    if type(item) == 'table' then
      local bytes = value.encode(item)
      item = value.decode(bytes, #bytes)
    end
    copy[i] = item
  end
  return copy
end

local function list_in(tables, first, second)
  local inner = tables[first]
  if not inner then
    inner = {}
    tables[first] = inner
  end
  local list = inner[second]
  if not list then
    list = {}
    inner[second] = list
  end
  return list
end

--- The tap of the executors: functions that the runtime calls.
function Recorder:tap()
  return {
    emitted = function(rt, stream, values)
      local name = rt.component.name
      if self.all or self.captured[name] then
        local list = list_in(self.emits, name, stream.name)
        list[#list + 1] = copied(stream, values)
      end
    end,
    acked = function(rt, id)
      local list = list_in(self.ids, rt.component.name, 'acked')
      list[#list + 1] = id
    end,
    failed = function(rt, id)
      local list = list_in(self.ids, rt.component.name, 'failed')
      list[#list + 1] = id
    end,
  }
end

--- An error of user code in a planned task.
function Recorder:error(planned, text)
  self.errors[#self.errors + 1] = { component = planned.component.name, index = planned.index,
    task = planned.id, message = text }
end

--- A line of context.log.
function Recorder:log(rt, level, text)
  self.logs[#self.logs + 1] = { component = rt.component.name, index = rt.planned.index,
    level = level, text = text }
end

function Recorder:outputs_of(component, stream)
  if not self.all and not self.captured[component] then
    error(("outputs: '%s' is not captured"):format(component), 3)
  end
  return list_in(self.emits, component, stream)
end

function Recorder:told(spout, what) return list_in(self.ids, spout, what) end

--- Keeps the last counters and reports of a topology that ends.
function Recorder:keep_stats(stats, reports) self.stats, self.reports = stats, reports end

--- A recorder of the emits of all components (true), of some (list of names), or of none (false).
---@param capture boolean|string[]
function M.new(capture)
  local captured = {}
  for _, name in ipairs(type(capture) == 'table' and capture or {}) do captured[name] = true end
  return setmetatable({
    all = capture == true,
    captured = captured,
    emits = {},
    ids = {},
    errors = {},
    logs = {},
    reports = {},
  }, Recorder)
end

return M
