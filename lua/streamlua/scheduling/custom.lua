-- Custom schedulers: Lua files that return { name=, assign=function(request) return assignment end }.
--
--   local custom = require 'streamlua.scheduling.custom'
--   local path = assert(custom.find('rack-spread'))
--   local scheduler = assert(custom.load(path))
--   local assignment, err = custom.call(scheduler, request)                -- in this process
--   local assignment, err = custom.run(path, request, { seconds = 10 })    -- in a child, with limits
--
-- The code gets a copy of the request in normal form and may do with it what it likes. What it
-- returns is checked as a built-in's result is: nothing of a faulty one is used.

local document = require 'streamlua.scheduling.document'
local err = require 'streamlua.err'
local home = require 'streamlua.home'
local json = require 'streamlua.json'
local sandbox = require 'streamlua.sandbox'

local M = {}

local function readable(path)
  local file = io.open(path, 'rb')
  if not file then return false end
  -- A folder opens but can not be read.
  local ok = file:read(0) ~= nil or file:seek('end') == 0
  file:close()
  return ok
end

--- True when the text names a file rather than a scheduler.
---@param text string
---@return boolean
function M.is_path(text) return text:find('/', 1, true) ~= nil or text:find('%.lua$') ~= nil end

--- Folders in which a custom scheduler is looked for by name.
---@param folder string? of the topology's script
---@return string[]
function M.folders(folder)
  local list = { '.' }
  if folder and folder ~= '.' then table.insert(list, 1, folder) end
  local lua = home.lua_directory()
  if lua then
    list[#list + 1] = lua .. '/../scripts/schedulers'
    list[#list + 1] = lua .. '/../schedulers'
  end
  return list
end

--- The file of a custom scheduler, by name or path.
---@param text string
---@param options table? {folder= of the topology's script}
---@return string? path
---@return streamlua.Error? ENOTFOUND for a path, EINVAL for a name
function M.find(text, options)
  if M.is_path(text) then
    if readable(text) then return text end
    return nil, err.new('ENOTFOUND', 'no such file')
  end
  if text:find('^[%w_.-]+$') then
    for _, folder in ipairs(M.folders(options and options.folder)) do
      local path = ('%s/%s.lua'):format(folder, text)
      if readable(path) then return path end
    end
  end
  return nil, err.new('EINVAL', 'no scheduler of that name')
end

local function user_failure(message, traceback)
  local value = err.new('EUSER', message)
  value.kind, value.traceback = 'raised', traceback
  return nil, value
end

-- The text of what user code raised; values without a text get one.
local function raised_text(value)
  if type(value) == 'string' or type(value) == 'number' then return tostring(value) end
  local meta = getmetatable(value)
  if type(meta) == 'table' and meta.__tostring then return tostring(value) end
  if type(value) == 'table' and type(value.message) == 'string' then return value.message end
  return ('(error object is a %s value)'):format(type(value))
end

--- Loads the file of a custom scheduler.
---@param path string
---@return table? scheduler {name=, assign=, path=}
---@return streamlua.Error?
function M.load(path)
  local chunk, message = loadfile(path)
  if not chunk then return user_failure(message) end
  local trace
  local ok, value = xpcall(chunk, function(raised)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return raised
  end)
  if not ok then return user_failure(raised_text(value), trace) end
  if type(value) ~= 'table' then
    return user_failure(('%s: it returns %s, a scheduler is a table { name=, assign= }'):format(
      path, value == nil and 'nothing' or 'a ' .. type(value)))
  elseif type(value.assign) ~= 'function' then
    return user_failure(('%s: its assign is %s, it must be a function'):format(path,
      value.assign == nil and 'missing' or 'a ' .. type(value.assign)))
  end
  local name = value.name
  if name == nil then name = path:match('([^/]+)%.lua$') or path end
  if type(name) ~= 'string' or name == '' then
    return user_failure(('%s: its name is a %s, it must be text'):format(path, type(name)))
  end
  return { name = name, assign = value.assign, path = path }
end

-- A scheduler may change what it gets.
local function copy(value)
  if type(value) ~= 'table' then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copy(item) end
  return result
end

--- Checks what a scheduler returned and fills in topology, scheduler and hosts where they are
--- missing.
---@param result any
---@param request table normal form
---@param name string of the scheduler
---@return table? assignment
---@return streamlua.Error?
function M.check(result, request, name)
  if result == nil then
    return nil, err.new('EUSER',
      ("scheduler '%s' returned nothing; it must return an assignment"):format(name))
  end
  local assignment, fault = document.assignment(result, {
    request = request, scheduler = name, what = ("assignment of scheduler '%s'"):format(name),
  })
  if not assignment then
    fault.code = 'EUSER'
    return nil, fault
  end
  -- Its name is what made it, whatever it says.
  assignment.scheduler = name
  assignment.components = nil
  return assignment
end

--- Runs a loaded scheduler in this process, without limits.
---@param scheduler table of `load`
---@param request table normal form
---@return table? assignment
---@return streamlua.Error?
function M.call(scheduler, request)
  local trace
  local ok, result = xpcall(function() return scheduler.assign(copy(request)) end, function(raised)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return raised
  end)
  if not ok then return user_failure(raised_text(result), trace) end
  return M.check(result, request, scheduler.name)
end

--- What the child of `run` does: loads the scheduler, calls it and hands its result to the parent.
--- Never returns.
---@param path string
---@param request table normal form
function M.serve(path, request)
  sandbox.serve(function()
    local scheduler, fault = M.load(path)
    if not scheduler then error(fault, 0) end
    return { name = scheduler.name, assignment = scheduler.assign(request) }
  end)
end

--- Runs a scheduler's file in a child process with limits.
---@param path string
---@param request table normal form
---@param limits table? {seconds=, memory=}
---@return table? assignment
---@return streamlua.Error?
function M.run(path, request, limits)
  local input, message = json.encode(request)
  if not input then return nil, err.new('EINVAL', message) end
  -- A name that looks like an option must not become one.
  local file = path:find('^%-') and './' .. path or path
  local result, fault = sandbox.run {
    what = ("scheduler '%s'"):format(path),
    argv = { 'schedule', '--request', '-', '--scheduler', file },
    input = input, seconds = limits and limits.seconds, memory = limits and limits.memory,
  }
  if fault then return nil, fault end
  return M.check(result.assignment, request, result.name)
end

return M
