--- Where in the user's code something was declared, for messages.
--
--     local place = require 'streamlua.topology.place'
--     local file, line = place.caller(1)

local M = {}

local getinfo = debug.getinfo

--- File and line of a caller: level 1 is the function that calls this one, 2 its caller. Code that
--- lies in no file has its chunk name as file; C code has neither.
---@param level integer
---@return string? file
---@return integer? line
function M.caller(level)
  local info = getinfo(level + 1, 'Sl')
  if not info or info.what == 'C' then return nil end
  local source = info.source
  local first = source:sub(1, 1)
  local file = (first == '@' or first == '=') and source:sub(2) or info.short_src
  return file, info.currentline > 0 and info.currentline or nil
end

local Mistake = {}

--- Stops a declaration because of a programmer's mistake; `call` turns it into an error at the line
--- of the user. Never returns.
---@param text string format
function M.mistake(text, ...)
  error(setmetatable({ text = select('#', ...) > 0 and text:format(...) or text }, Mistake), 0)
end

--- Calls fn(...) and returns its first result. A mistake in it is raised at the line that called the
--- function which calls this one, so that the public functions blame their callers however deep the
--- check lies. (Callers write `return (call(...))`: a tail call would hide them.)
---@param fn function
---@return any
function M.call(fn, ...)
  local ok, result = pcall(fn, ...)
  if ok then return result end
  if getmetatable(result) == Mistake then error(result.text, 3) end
  error(result, 0)
end

--- A value as messages show it: 'text', a number, or what kind of value it is.
---@param value any
---@return string
function M.shown(value)
  local kind = type(value)
  if kind == 'string' then
    local text = #value > 40 and value:sub(1, 37) .. '...' or value
    return "'" .. text:gsub('[%c]', function(c) return ('\\x%02x'):format(c:byte()) end) .. "'"
  elseif kind == 'number' or kind == 'boolean' or kind == 'nil' then
    return tostring(value)
  end
  return 'a ' .. kind
end

return M
