-- Custom packers: Lua files that return { name=, pack=function(request) return plan end, repack= }.
--
--   local custom = require 'streamlua.packing.custom'
--   local path = assert(custom.find('spread', { folder = 'scripts' }))
--   local packer = assert(custom.load(path))
--   local plan, err = custom.call(packer, request)          -- in this process
--   local plan, err = custom.run(path, request, { seconds = 10 })   -- in a child, with limits
--
-- The code gets a copy of the request in normal form and may do with it what it likes. What it
-- returns is checked like any plan: nothing of a faulty result is used.

local document = require 'streamlua.packing.document'
local err = require 'streamlua.err'
local home = require 'streamlua.home'
local json = require 'streamlua.json'
local sandbox = require 'streamlua.sandbox'

local M = {}

local function readable(path)
  local file = io.open(path, 'rb')
  -- A folder opens but can not be read.
  local ok = file ~= nil and file:read(0) ~= nil or (file ~= nil and file:seek('end') == 0)
  if file then file:close() end
  return ok
end

--- True when the text names a file rather than a packer.
---@param text string
---@return boolean
function M.is_path(text) return text:find('/', 1, true) ~= nil or text:find('%.lua$') ~= nil end

--- Folders in which a custom packer is looked for by name.
---@param folder string? of the topology's script
---@return string[]
function M.folders(folder)
  local list = { '.' }
  if folder and folder ~= '.' then table.insert(list, 1, folder) end
  local lua = home.lua_directory()
  if lua then list[#list + 1] = lua .. '/../scripts/packers' end
  return list
end

--- The file of a custom packer, by name or path.
---@param text string
---@param options table? {folder= of the topology's script}
---@return string? path
---@return streamlua.Error? failure ENOTFOUND for a path, EINVAL for a name
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
  return nil, err.new('EINVAL', 'no packer of that name')
end

local function user_failure(message, traceback)
  local value = err.new('EUSER', message)
  value.kind, value.traceback = 'raised', traceback
  return nil, value
end

--- Loads the file of a custom packer.
---@param path string
---@return table? packer {name=, pack=, repack=, path=}
---@return streamlua.Error?
function M.load(path)
  local chunk, message = loadfile(path)
  if not chunk then return user_failure(message) end
  local trace
  local ok, value = xpcall(chunk, function(raised)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return raised
  end)
  if not ok then return user_failure(tostring(value), trace) end
  if type(value) ~= 'table' then
    return user_failure(('%s: it returns %s, a packer is a table { name=, pack=, repack= }'):format(
      path, value == nil and 'nothing' or 'a ' .. type(value)))
  end
  for _, key in ipairs({ 'pack', 'repack' }) do
    if value[key] ~= nil and type(value[key]) ~= 'function' then
      return user_failure(('%s: its %s is a %s, it must be a function'):format(path, key,
        type(value[key])))
    end
  end
  if not value.pack and not value.repack then
    return user_failure(path .. ': it has neither a pack nor a repack function')
  end
  local name = value.name
  if name == nil then name = path:match('([^/]+)%.lua$') or path end
  if type(name) ~= 'string' or name == '' then
    return user_failure(('%s: its name is a %s, it must be text'):format(path, type(name)))
  end
  return { name = name, pack = value.pack, repack = value.repack, path = path }
end

local function function_of(packer, request)
  local key = request.current and 'repack' or 'pack'
  local fn = packer[key]
  if fn then return fn end
  return user_failure(("packer '%s' has no %s function"):format(packer.name, key))
end

-- A packer may change what it gets; JSON's types only, so a plain copy does.
local function copy(value)
  if type(value) ~= 'table' then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copy(item) end
  return result
end

--- Checks what a packer returned and fills in topology, version and packing where they are missing.
---@param result any
---@param request table normal form
---@param name string of the packer
---@return table? plan
---@return streamlua.Error?
function M.check(result, request, name)
  if result == nil then
    return nil, err.new('EUSER', ("packer '%s' returned nothing; it must return a plan"):format(name))
  end
  local plan, fault = document.plan(result, {
    request = request, wanted = document.wanted(request), what = ("plan of packer '%s'"):format(name),
    defaults = { topology = request.topology, packing = name,
      version = request.current and request.current.version + 1 or 1 },
  })
  if not plan then fault.code = 'EUSER' end
  return plan, fault
end

--- Runs a loaded packer in this process, without limits.
---@param packer table of `load`
---@param request table normal form
---@return table? plan
---@return streamlua.Error?
function M.call(packer, request)
  local fn, fault = function_of(packer, request)
  if not fn then return nil, fault end
  local trace
  local ok, result = xpcall(function() return fn(copy(request)) end, function(raised)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return raised
  end)
  if not ok then return user_failure(tostring(result), trace) end
  return M.check(result, request, packer.name)
end

--- What the child of `run` does: loads the packer, calls it and hands its result to the parent.
--- Never returns.
---@param path string
---@param request table normal form
function M.serve(path, request)
  sandbox.serve(function()
    local packer, fault = M.load(path)
    if not packer then error(fault, 0) end
    local fn
    fn, fault = function_of(packer, request)
    if not fn then error(fault, 0) end
    return { name = packer.name, plan = fn(request) }
  end)
end

--- Runs a packer's file in a child process with limits.
---@param path string
---@param request table normal form
---@param limits table? {seconds=, memory=}
---@return table? plan
---@return streamlua.Error?
function M.run(path, request, limits)
  local input, message = json.encode(request)
  if not input then return nil, err.new('EINVAL', message) end
  -- A name that looks like an option must not become one.
  local file = path:find('^%-') and './' .. path or path
  local result, fault = sandbox.run {
    what = ("packer '%s'"):format(path), argv = { 'plan', '--request', '-', '--packing', file },
    input = input, seconds = limits and limits.seconds, memory = limits and limits.memory,
  }
  if fault then return nil, fault end
  return M.check(result.plan, request, result.name)
end

return M
