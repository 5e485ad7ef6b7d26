-- Files of custom code - packers and schedulers: finding, loading and calling them, in this process
-- or in a child with limits. What differs between the kinds is in their own modules.
--
--   local custom = require 'streamlua.custom'
--   local kind = { what = 'packer', folder = 'packers', shape = '{ name=, pack= }',
--     functions = { 'pack' }, built_in = { 'round_robin' },
--     fault = function(value) if not value.pack then return 'it has no pack function' end end }
--   local path = assert(custom.find(kind, 'spread', { folder = 'scripts' }))
--   local packer = assert(custom.load(kind, path))         -- {name=, path=, pack=}
--   local plan, err = custom.call(packer.pack, request)    -- in this process
--
-- The code gets a copy of the request and may do with it what it likes. What it returns is not
-- checked here.

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

-- True when the text names a file rather than a packer or scheduler.
---@return boolean
local function is_path(text) return text:find('/', 1, true) ~= nil or text:find('%.lua$') ~= nil end

-- Folders in which code is looked for by name: the script's, this one, the shipped ones of a build
-- tree and of an installation.
local function folders(kind, folder)
  local list = { '.' }
  if folder and folder ~= '.' then table.insert(list, 1, folder) end
  local lua = home.lua_directory()
  if lua then
    list[#list + 1] = ('%s/../scripts/%s'):format(lua, kind.folder)
    list[#list + 1] = ('%s/../%s'):format(lua, kind.folder)
  end
  return list
end

--- The file of custom code, by name or path.
---@param kind table {what=, folder=, built_in= names}
---@param text string
---@param options table? {folder= of the topology's script}
---@return string? path
---@return streamlua.Error? failure ENOTFOUND for a path, EINVAL for a name
function M.find(kind, text, options)
  if is_path(text) then
    if readable(text) then return text end
    return nil, err.new('ENOTFOUND', ("%s '%s': no such file"):format(kind.what, text))
  end
  if text:find('^[%w_.-]+$') then
    for _, folder in ipairs(folders(kind, options and options.folder)) do
      local path = ('%s/%s.lua'):format(folder, text)
      if readable(path) then return path end
    end
  end
  return nil, err.new('EINVAL', ("%s '%s': no %s of that name (built in: %s)"):format(kind.what, text,
    kind.what, table.concat(kind.built_in, ', ')))
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

-- Calls user code: what it returns, or nil and an error with a traceback.
local function protected(fn)
  local trace
  local ok, result = xpcall(fn, function(raised)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return raised
  end)
  if ok then return result end
  return user_failure(raised_text(result), trace)
end

--- Loads a file of custom code: its functions, with `name` and `path`.
---@param kind table {what=, shape=, functions= names of its functions, fault = function(value) that
---  returns what is wrong, or nil}
---@param path string
---@return table? code
---@return streamlua.Error?
function M.load(kind, path)
  local chunk, message = loadfile(path)
  if not chunk then return user_failure(message) end
  local value, fault = protected(chunk)
  if fault then return nil, fault end
  if type(value) ~= 'table' then
    return user_failure(('%s: it returns %s, a %s is a table %s'):format(path,
      value == nil and 'nothing' or 'a ' .. type(value), kind.what, kind.shape))
  end
  message = kind.fault(value)
  local name = value.name
  if name == nil then name = path:match('([^/]+)%.lua$') or path end
  if not message and (type(name) ~= 'string' or name == '') then
    message = ('its name is a %s, it must be text'):format(type(name))
  end
  if message then return user_failure(('%s: %s'):format(path, message)) end
  local code = { name = name, path = path }
  for _, key in ipairs(kind.functions) do code[key] = value[key] end
  return code
end

-- Custom code may change what it gets; JSON's types only, so a plain copy does.
local function copy(value)
  if type(value) ~= 'table' then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copy(item) end
  return result
end

--- Calls a function of custom code in this process, without limits.
---@param fn fun(request: table): any
---@param request table
---@return any result
---@return streamlua.Error?
function M.call(fn, request)
  return protected(function() return fn(copy(request)) end)
end

--- What the child of `run` does: loads the file, calls the function that `choose` finds in it, and
--- hands its result to the parent. Never returns.
---@param kind table
---@param path string
---@param choose fun(code: table): function?, streamlua.Error?
---@param request table
function M.serve(kind, path, choose, request)
  sandbox.serve(function()
    local code, fault = M.load(kind, path)
    local fn
    if code then fn, fault = choose(code) end
    if not fn then error(fault, 0) end
    return { name = code.name, result = fn(request) }
  end)
end

--- Runs a file in a child process with limits, through the command that calls `serve`.
---@param kind table {what=, command = {the command and its options, the file's path goes behind}}
---@param path string
---@param request table
---@param limits table? {seconds=, memory=}
---@return table? reply {name=, result=}
---@return streamlua.Error?
function M.run(kind, path, request, limits)
  local input, message = json.encode(request)
  if not input then return nil, err.new('EINVAL', message) end
  local argv = { unpack(kind.command) }
  -- A name that looks like an option must not become one.
  argv[#argv + 1] = path:find('^%-') and './' .. path or path
  return sandbox.run {
    what = ("%s '%s'"):format(kind.what, path), argv = argv, input = input,
    seconds = limits and limits.seconds, memory = limits and limits.memory,
  }
end

return M
