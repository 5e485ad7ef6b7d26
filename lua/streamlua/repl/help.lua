-- `name?` and `name??`: the docstring and signature of a function, or its source. Docstrings are the
-- lines that begin with `---` above a definition, read from the file that defines it.
--
--   local help = require 'streamlua.repl.help'
--   print(help.text(env, 'schedule'))

local M = {}

local function file_lines(path)
  local file = io.open(path, 'rb')
  if not file then return nil end
  local lines = {}
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  return lines
end

-- Walks a name like `a.b.c` or `a:m` from the names of the session.
local function resolve(env, name)
  local value = env
  for part in name:gmatch('[^.:]+') do
    local ok, item = pcall(function() return value[part] end)
    if not ok or item == nil then return nil, part end
    value = item
  end
  return value
end

-- "---" lines above a line, without their marks; LuaCATS marks are shown as they are.
local function docstring(lines, line)
  local first = line
  while first > 1 and lines[first - 1]:find('^%s*%-%-%-') do first = first - 1 end
  local parts = {}
  for i = first, line - 1 do
    parts[#parts + 1] = (lines[i]:gsub('^%s*%-%-%-%s?', ''):gsub('^@', '  '))
  end
  return parts
end

local function function_source(fn)
  local info = debug.getinfo(fn, 'S')
  local path = info.source:match('^@(.*)')
  local lines = path and file_lines(path)
  return info, lines, path
end

local function signature(lines, line)
  return (lines[line]:gsub('^%s*', ''):gsub('^local%s+', ''):gsub('^function names%.', 'function '))
end

local function function_help(name, fn, wants_source)
  local info, lines, path = function_source(fn)
  if not lines or info.linedefined < 1 or not lines[info.linedefined] then
    return ('%s is a function without a source to read'):format(name)
  end
  local parts = {}
  if wants_source then
    for i = info.linedefined, info.lastlinedefined do parts[#parts + 1] = lines[i] end
  else
    parts[1] = signature(lines, info.linedefined)
    for _, text in ipairs(docstring(lines, info.linedefined)) do parts[#parts + 1] = '  ' .. text end
    if #parts == 1 then parts[2] = '  (no description)' end
  end
  parts[#parts + 1] = ('%s:%d'):format(path, info.linedefined)
  return table.concat(parts, '\n')
end

-- First sentence of a function's docstring.
local function brief(fn)
  local info, lines = function_source(fn)
  if not lines or not lines[info.linedefined] then return '' end
  local text = table.concat(docstring(lines, info.linedefined), ' ')
  return text:match('^(.-[.:;])%s') or text
end

-- What a table's metatable offers is its own, too, also what is loaded at its first use.
local function members(value)
  local list, seen = {}, {}
  local at = value
  local own = getmetatable(value)
  for name in pairs(type(own) == 'table' and rawget(own, '__parts') or {}) do
    -- It stands in the table from now on.
    local _ = value[name]
  end
  for _ = 1, 8 do
    if type(at) ~= 'table' then break end
    for key, item in next, at do
      if type(key) == 'string' and not key:find('^_') and not seen[key] then
        seen[key] = true
        list[#list + 1] = { key, item }
      end
    end
    local meta = getmetatable(at)
    at = type(meta) == 'table' and rawget(meta, '__index') or nil
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end
M.members = members

local function table_help(name, value)
  local parts = { ('%s is a table with'):format(name) }
  for _, member in ipairs(members(value)) do
    local text = type(member[2]) == 'function' and brief(member[2]) or ''
    parts[#parts + 1] = ('  %-24s %s%s'):format(member[1], type(member[2]),
      text ~= '' and '  ' .. text or '')
  end
  return #parts > 1 and table.concat(parts, '\n') or name .. ' is an empty table'
end

--- Help for a name of a session, or the source of its function.
---@param env table
---@param name string
---@param wants_source boolean?
---@return string
function M.text(env, name, wants_source)
  local value, missing = resolve(env, name)
  if value == nil then
    return ("there is no %s%s"):format(name, missing ~= name and ' (' .. missing .. ' is nil)' or '')
  end
  if type(value) == 'function' then return function_help(name, value, wants_source) end
  if type(value) == 'table' then return table_help(name, value) end
  return ('%s is a %s: %s'):format(name, type(value), tostring(value))
end

return M
