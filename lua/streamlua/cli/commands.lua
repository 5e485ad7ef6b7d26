-- The commands: their order and groups in the help, and how their files are found.
-- A command is a file lua/streamlua/cli/commands/NAME.lua; a file that is not in the list below is
-- found too and stands in the group "Other".
--
--   local commands = require 'streamlua.cli.commands'
--   for _, name in ipairs(commands.names()) do print(name) end

local home = require 'streamlua.home'
local libc = require 'streamlua.connectors.libc'

local M = {}

--- Groups in the order of the help.
M.groups = {
  { 'Topologies in this process', { 'run', 'check', 'graph', 'test', 'exec', 'repl' } },
  { 'Plans (nothing runs)', { 'plan', 'schedule', 'diff' } },
  { 'Running topologies', { 'submit', 'list', 'describe', 'activate', 'deactivate', 'update',
    'restart', 'kill', 'logs' } },
  { 'Daemons', { 'master', 'supervisor', 'api' } },
  { 'Settings and tools', { 'config', 'doctor', 'version', 'completion', 'help' } },
}

--- Commands that only our own processes type: in no list, but there.
M.hidden = { ['api-request'] = true, guardian = true, ['topology-master'] = true, worker = true }

local function directory()
  local lua = home.lua_directory()
  return lua and lua .. '/streamlua/cli/commands'
end

local function file_exists(path)
  local file = io.open(path, 'r')
  if file then
    file:close()
  end
  return file ~= nil
end

--- True when a command of that name has a file.
---@param name string
---@return boolean
function M.exists(name)
  if not name:find('^[%w][%w-]*$') then
    return false
  end
  if package.loaded['streamlua.cli.commands.' .. name] then
    return true
  end
  local place = directory()
  return place ~= nil and file_exists(place .. '/' .. name .. '.lua')
end

--- Groups {title, {names}} of the commands that exist.
---@return table[]
function M.grouped()
  local result, known = {}, {}
  for _, group in ipairs(M.groups) do
    local names = {}
    for _, name in ipairs(group[2]) do
      known[name] = true
      if M.exists(name) then
        names[#names + 1] = name
      end
    end
    if #names > 0 then
      result[#result + 1] = { group[1], names }
    end
  end
  local other = {}
  local place = directory()
  for _, path in ipairs(place and libc.glob(place .. '/*.lua') or {}) do
    local name = path:match('([^/]+)%.lua$')
    if not known[name] and not M.hidden[name] then
      other[#other + 1] = name
    end
  end
  if #other > 0 then
    result[#result + 1] = { 'Other', other }
  end
  return result
end

--- Names of all commands in the order of the help.
---@return string[]
function M.names()
  local names = {}
  for _, group in ipairs(M.grouped()) do
    for _, name in ipairs(group[2]) do
      names[#names + 1] = name
    end
  end
  return names
end

--- The module of a command: {name=, summary=, declare=, run=}.
---@param name string
---@return table
function M.load(name)
  return require('streamlua.cli.commands.' .. name)
end

return M
