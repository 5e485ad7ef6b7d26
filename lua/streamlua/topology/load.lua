--- Loads a topology script (or a streaming program): a Lua file that returns its topology.
--
--     local load = require 'streamlua.topology.load'
--     local t, err = load.script('wordcount.lua', { set = { input = 'a.txt' } })
--     if not t then print(err.file, err.line, err.message, err.hint) end
--
-- `require` in the script finds modules beside the script first, also when it is called later from a
-- running component. A symbolic link to a script counts as the script: its folder comes first, then
-- the folder of the link. Which modules came from there is in `load.modules()`, for submission, and
-- which other files it asked for in `load.files()`.
--
-- A program is a value whose metatable has a field __streamlua: 'topology', or 'streaming' for a
-- streaming context.

local err = require 'streamlua.err'
local libc = require 'streamlua.connectors.libc'
local raised = require 'streamlua.runtime.raised'
local topology = require 'streamlua.topology'

local M = {}

--- Largest script, in bytes.
M.MAX_BYTES = 16 * 1024 * 1024

-- The folders of the script loaded last, the modules that came from there (name -> path), and other
-- files (path in the folder -> path).
local current = { folders = {}, modules = {}, files = {} }

local function failure(code, message, file, line, hint)
  local value = err.new(code, message)
  value.file, value.line, value.hint = file, line, hint
  return nil, value
end

local function folder_of(path)
  local folder = path:match('^(.*)/[^/]*$')
  if folder == nil then return '.' end
  return folder == '' and '/' or folder
end

-- How Lua shortens a chunk name in messages: 'file.lua', or '...the/end/of/a/long/path.lua'.
local function short_name(path)
  local probe = loadstring('', '@' .. path)
  return debug.getinfo(probe, 'S').short_src
end

-- "short:12: text" -> 12, "text".
local function split_position(text, short)
  if text:sub(1, #short + 1) ~= short .. ':' then return nil end
  local line, rest = text:match('^(%d+): ?(.*)$', #short + 2)
  return tonumber(line), rest
end

local function own_code(source)
  local own = debug.getinfo(1, 'S').source:match('^(.*)/topology/load%.lua$')
  return own ~= nil and source:sub(1, #own) == own
end

-- Turns what was raised into {text, file, line, traceback}: the position that the message carries,
-- with the full path, else the innermost line of the user's code, which is also the place of what was
-- raised inside the library.
local function locate(value)
  local result = { traceback = debug.traceback('', 2):gsub('^\n', '') }
  local whole = raised.message(value)
  local text = raised.one_line(whole)
  if text ~= whole then result.traceback = whole .. '\n' .. result.traceback end
  result.text = text
  local level, innermost, bare = 2, nil, nil
  while true do
    local info = debug.getinfo(level, 'Sl')
    if not info then break end
    if info.source:sub(1, 1) == '@' and info.currentline > 0 then
      local line, rest = split_position(text, info.short_src)
      if line and own_code(info.source) then
        bare = bare or rest
      elseif line then
        result.file, result.line, result.text = info.source:sub(2), line, rest
        return result
      end
      if not innermost and not own_code(info.source) then innermost = info end
    end
    level = level + 1
  end
  local file, line, rest = text:match('^([^\n:]+%.lua):(%d+): ?(.*)$')
  result.text = bare or text
  if file and not bare then
    result.file, result.line, result.text = file, tonumber(line), rest
  elseif innermost then
    result.file, result.line = innermost.source:sub(2), innermost.currentline
  end
  return result
end

local function read(path)
  local stat, message, errno = libc.stat(path)
  if not stat then
    if errno == libc.ENOENT then
      return failure('ENOTFOUND', 'no such file', path, nil, 'check the path of the script')
    end
    return failure('EIO', message, path)
  elseif stat.kind == 'directory' then
    return failure('ENOTFOUND', 'it is a directory', path, nil, 'name the script in it')
  elseif stat.size > M.MAX_BYTES then
    return failure('ELIMIT', ('%d bytes are too many for a script'):format(stat.size), path)
  end
  local file, reason = io.open(path, 'rb')
  local text = file and file:read('*a')
  if file then file:close() end
  if not text then return failure('EIO', reason or 'it can not be read', path) end
  return text
end

-- Compiles text: a `#!` line becomes a comment, bytecode is refused.
local function compile(path, text)
  if text:byte(1) == 27 then
    return failure('EINVAL', 'it is compiled bytecode; scripts are text', path)
  end
  if text:sub(1, 3) == '\239\187\191' then text = text:sub(4) end
  if text:byte(1) == 35 then text = '--' .. text end
  local chunk, message = load(text, '@' .. path, 't')
  if chunk then return chunk end
  local line, rest = split_position(message, short_name(path))
  return failure('EINVAL', rest or message, path, line)
end

-- Modules of the library itself are never looked for beside a script.
local function is_ours(name) return name == 'streamlua' or name:sub(1, 10) == 'streamlua.' end

local function find_beside(name)
  local relative = name:gsub('%.', '/')
  local tried = {}
  for _, folder in ipairs(current.folders) do
    local prefix = folder == '.' and '' or (folder == '/' and folder or folder .. '/')
    for _, tail in ipairs({ '.lua', '/init.lua' }) do
      local path = prefix .. relative .. tail
      local stat = libc.stat(path)
      if stat and stat.kind ~= 'directory' then return path end
      tried[#tried + 1] = ("\n\tno file '%s'"):format(path)
    end
  end
  return nil, table.concat(tried)
end

local function search_beside(name)
  if is_ours(name) then return nil end
  local path, tried = find_beside(name)
  if not path then return tried end
  local text, fault = read(path)
  local chunk
  if text then chunk, fault = compile(path, text) end
  if not chunk then
    error(('%s:%d: %s'):format(path, fault.line or 1, fault.message), 0)
  end
  current.modules[name] = path
  return chunk
end

local function install_search()
  for _, search in ipairs(package.loaders) do
    if search == search_beside then return end
  end
  table.insert(package.loaders, 2, search_beside)
end

-- A script that is loaded again, or another one, gets its own modules and not those of the last.
local function start_script(path)
  for name in pairs(current.modules) do package.loaded[name] = nil end
  local real = libc.realpath(path) or path
  local folders = { folder_of(real) }
  if folder_of(path) ~= folders[1] then folders[2] = folder_of(path) end
  current = { folders = folders, modules = {}, files = {} }
  install_search()
end

--- What a script returned: 'topology', 'streaming', or nil.
---@param value any
---@return string?
function M.kind(value)
  local meta = type(value) == 'table' and getmetatable(value)
  return type(meta) == 'table' and meta.__streamlua or nil
end

-- A path below the folder, without empty parts, "." and ".."; nil for any other.
local function inner_path(path)
  if type(path) ~= 'string' or path == '' or path:find('^/') or path:find('%z') then return nil end
  for part in (path .. '/'):gmatch('([^/]*)/') do
    if part == '' or part == '.' or part == '..' then return nil end
  end
  return path
end

--- The path of a file beside the script, by its path in the script's folder: `streamlua.file`. The file
--- is shipped with the script when this is called while the script loads; on the machine of a worker it
--- gives the path there. Raises when there is no such file.
---@param path string such as 'data/access.log'
---@return string
function M.file(path)
  if not inner_path(path) then
    error(("file '%s': a path below the script's folder is expected"):format(tostring(path)), 2)
  end
  local folders = #current.folders > 0 and current.folders or { '.' }
  for _, folder in ipairs(folders) do
    local found = folder .. '/' .. path
    local stat = libc.stat(found)
    if stat and stat.kind == 'file' then
      current.files[path] = found
      return found
    end
  end
  error(("file '%s': there is none beside the script, in %s"):format(path, folders[1]), 2)
end

--- Files that the script loaded last asked for, so far: path in its folder -> path.
---@return table<string, string>
function M.files()
  local copy = {}
  for name, path in pairs(current.files) do copy[name] = path end
  return copy
end

--- Modules that the script loaded last took from beside it, so far: name -> path.
---@return table<string, string>
function M.modules()
  local copy = {}
  for name, path in pairs(current.modules) do copy[name] = path end
  return copy
end

local function check_result(path, value, overrides)
  local kind = M.kind(value)
  if kind == 'topology' and overrides then
    -- The script may have written to t.config after it was made.
    value.config = require('streamlua.topology.config').merge(value.config, overrides)
  end
  if kind then
    value.script = path
    return value
  end
  local returned = value == nil and 'nothing' or type(value) == 'table' and 'a table that is no topology'
    or 'a ' .. type(value)
  return failure('EINVAL', ('it returned %s instead of its topology'):format(returned), path, nil,
    "end the script with 'return t'")
end

--- Loads a script. On failure err has code (ENOTFOUND: no such file; EINVAL: syntax, or it returned
--- no program; EUSER: it raised an error; EIO, ELIMIT), message, file, and where known line, hint
--- and traceback.
---@param path string
---@param options? table set = overrides of the config, defaults = config below the script's own,
---  args = list that the script gets as `...`
---@return table? program topology or streaming context; its field `script` is the path
---@return streamlua.Error? err
function M.script(path, options)
  options = options or {}
  local text, fault = read(path)
  if not text then return nil, fault end
  local chunk
  chunk, fault = compile(path, text)
  if not chunk then return nil, fault end
  start_script(path)
  local args = options.args or {}
  local located
  local function run()
    return xpcall(function() return chunk(unpack(args)) end, function(value)
      located = locate(value)
      return located
    end)
  end
  local _, ok, value = topology.with_config(options.set, options.defaults, run)
  if not ok then
    located = located or { text = tostring(value) }
    local _, failed = failure('EUSER', located.text, located.file or path, located.line)
    failed.traceback = located.traceback
    return nil, failed
  end
  return check_result(path, value, options.set)
end

return M
