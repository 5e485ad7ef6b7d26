-- Error objects of the command line: what failed, why, a hint, where, and the exit code.
-- Only `cli.main` catches and prints them; commands raise them through `context:fail`.
--
--   local errors = require 'streamlua.cli.error'
--   local err = errors.new('not_found', "script 'a.lua'", 'no such file', 'check the path')
--   assert(tostring(err) == "script 'a.lua': no such file" and err.exit == 3)

local exit = require 'streamlua.cli.exit'
local raised = require 'streamlua.runtime.raised'

local M = {}

local Error = {}
Error.__index = Error

function Error.__tostring(self)
  return self.message
end

--- Builds an error object.
---@param code string|integer name or number of the exit table
---@param what string what failed
---@param why any? reason: text, or an error of the library
---@param hint string? what to do about it
---@param place table? {file=, line=, traceback=}
---@return table
function M.new(code, what, why, hint, place)
  local number = exit.number(code)
  place = place or {}
  local message = tostring(what)
  if why ~= nil and tostring(why) ~= '' then
    message = message .. ': ' .. tostring(why)
  end
  -- User code may have raised a text of several lines; an error is one, and `-v` shows the others.
  local line, traceback = raised.one_line(message), place.traceback
  if line ~= message then
    traceback = traceback and message .. '\n' .. traceback or message
  end
  return setmetatable({
    code = exit.name(number),
    exit = number,
    message = line,
    hint = hint,
    file = place.file,
    line = place.line,
    traceback = traceback,
  }, Error)
end

--- True for objects made by `new`.
function M.is(value)
  return getmetatable(value) == Error
end

--- Splits `file:line: text` of a Lua error. Returns file, line and text, or nil when there is no
--- position in front.
---@param text string
function M.position(text)
  local file, line, rest = text:match('^%s*([^\n]-):(%d+): ?(.*)$')
  if file and file ~= '' then
    return file, tonumber(line), rest
  end
end

-- A Lua error may be any value; users see its text, never "table: 0x...".
local function text_of(value)
  if type(value) == 'string' then
    return value
  end
  local meta = type(value) == 'table' and getmetatable(value)
  if type(meta) == 'table' and meta.__tostring then
    return tostring(value)
  end
  if type(value) == 'table' and type(value.message) == 'string' then
    return value.message
  end
  if type(value) == 'table' or type(value) == 'userdata' or type(value) == 'function' then
    return '(error object is a ' .. type(value) .. ' value)'
  end
  return tostring(value)
end
M.text_of = text_of

--- Turns a value raised by user code into an error object: one line with file:line in front, the
--- rest of a longer text kept for `-v`.
---@param code string|integer
---@param value any what was raised
---@param traceback string?
---@param prefix string? put before the text, e.g. "open of 'lines'"
---@return table
function M.from_lua(code, value, traceback, prefix)
  if M.is(value) then
    return value
  end
  local text = text_of(value)
  local file, number = M.position(raised.one_line(text))
  return M.new(code, prefix or text, prefix and text or nil, nil,
    { file = file, line = number, traceback = traceback })
end

-- Errors of the core carry the place in our C source, which is of no use to a user; those of scripts
-- carry the place in the script.
local function user_place(err)
  local file = type(err) == 'table' and err.file
  if type(file) ~= 'string' or file:find('%.[ch]$') then
    return {}
  end
  return { file = file, line = err.line, traceback = err.traceback }
end

--- Turns an error `{code=, message=, cause=}` of the library into an error object with the exit
--- code that belongs to its code. An error with a place in a script starts with `file:line:`.
---@param err any
---@param what string? what failed
---@param hint string?
---@return table
function M.from_library(err, what, hint)
  if M.is(err) then
    return err
  end
  local is_table = type(err) == 'table'
  local number = is_table and exit.of_error(err.code) or 1
  local place = user_place(err)
  local text = text_of(err)
  if place.file then
    text = ('%s:%s%s'):format(place.file, place.line and place.line .. ': ' or ' ', text)
  end
  hint = hint or (is_table and err.hint or nil)
  if what then
    return M.new(number, what, text, hint, place)
  end
  return M.new(number, text, nil, hint, place)
end

--- The JSON form: one object with the fields of docs/cli.md.
function M.document(err)
  return { error = {
    code = err.code,
    message = err.message,
    hint = err.hint,
    file = err.file,
    line = err.line,
  } }
end

return M
