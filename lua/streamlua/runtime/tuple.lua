--- What a tuple knows of its origin: `streamlua.tuple`.
--
-- A tuple is a plain table; its origin is its metatable, {source=, stream=, handle=, plan=}, which has
-- no metamethods. Bolts that ack automatically share one metatable a turn; bolts with manual acks get
-- one for each tuple, with the handle of the tuple that C holds (-1: it is not tracked).

local getmetatable, ipairs, type = getmetatable, ipairs, type

local M = {}

-- Marks metatables of tuples.
local TUPLE = {}

--- The metatable of tuples.
---@param plan table the plan of the worker (streamlua.runtime.plan)
---@param source integer id of the task that emitted them
---@param stream integer index of their stream in the plan
---@param handle? number of a held tuple
function M.meta(plan, source, stream, handle)
  return { [0] = TUPLE, plan = plan, source = source, stream = stream, handle = handle or -1 }
end

--- The origin of a tuple, or nil when the value is none.
---@param tuple any
---@return table?
function M.origin(tuple)
  local meta = type(tuple) == 'table' and getmetatable(tuple) or nil
  return meta and meta[0] == TUPLE and meta or nil
end

local function need_origin(tuple)
  local origin = M.origin(tuple)
  if not origin then error('this is not a tuple that a bolt was given', 3) end
  return origin
end

--- Name of the component that emitted the tuple. Raises when the value is no tuple.
---@param tuple table
---@return string
function M.component(tuple)
  local origin = need_origin(tuple)
  return origin.plan.streams[origin.stream].component.name
end

--- Id of the task that emitted the tuple.
---@param tuple table
---@return integer
function M.task(tuple) return need_origin(tuple).source end

--- Name of the stream that it came on.
---@param tuple table
---@return string
function M.stream(tuple)
  local origin = need_origin(tuple)
  return origin.plan.streams[origin.stream].name
end

--- Names of its fields, in order.
---@param tuple table
---@return string[]
function M.fields(tuple)
  local origin = need_origin(tuple)
  local fields = {}
  for i, name in ipairs(origin.plan.streams[origin.stream].fields) do fields[i] = name end
  return fields
end

return M
