--- Where in the user's program something stands, for messages: the innermost line that is not the
--- library's own.
--
--     local site = require 'streamlua.streaming.site'
--     site.raise('window: %s is no duration', text)      -- "wc.lua:12: window: ..."

local getinfo = debug.getinfo

local M = {}

-- The folder of this library; code in it is never blamed.
local own_folder = getinfo(1, 'S').source:match('^(.*)/streaming/site%.lua$')

--- File and line of the user's code, or nil when no code of a file is on the stack.
---@return string? file
---@return integer? line
function M.find()
  local level = 2
  while true do
    local info = getinfo(level, 'Sl')
    if not info then return nil end
    local source = info.source
    if info.what ~= 'C' and info.currentline > 0
      and not (own_folder and source:sub(1, #own_folder) == own_folder) then
      local first = source:sub(1, 1)
      return (first == '@' or first == '=') and source:sub(2) or info.short_src, info.currentline
    end
    level = level + 1
  end
end

--- The same as "file:line", '' when it is not known.
---@return string
function M.text()
  local file, line = M.find()
  return file and ('%s:%d'):format(file, line) or ''
end

--- Raises an error that blames the user's line. Never returns.
---@param text string format
function M.raise(text, ...)
  local file, line = M.find()
  local message = select('#', ...) > 0 and text:format(...) or text
  error(file and ('%s:%d: %s'):format(file, line, message) or message, 0)
end

--- Where a function was defined, as "file:line"; '' for one of C.
---@param fn function
---@return string
function M.of_function(fn)
  local info = getinfo(fn, 'S')
  if info.what == 'C' then return '' end
  local source = info.source
  local first = source:sub(1, 1)
  return ('%s:%d'):format((first == '@' or first == '=') and source:sub(2) or info.short_src,
    info.linedefined)
end

--- What was raised as one line of text that keeps the position it has; a table with `message` or
--- __tostring gives that.
---@param raised any
---@return string
function M.raised(raised)
  if type(raised) == 'string' then return raised end
  if type(raised) == 'table' then
    local meta = getmetatable(raised)
    if type(meta) == 'table' and meta.__tostring then return tostring(raised) end
    if type(raised.message) == 'string' then return raised.message end
    return 'raised a table without a message'
  end
  return raised == nil and 'raised nil' or 'raised ' .. tostring(raised)
end

return M
