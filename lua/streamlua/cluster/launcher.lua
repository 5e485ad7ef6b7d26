-- Launchers written in Lua: how the containers of a topology become processes on what a cluster runs on
-- (docs/launchers.md). A file returns a table of functions; this module loads it and serves the
-- topology master, which asks for one thing after the other.
--
--   local launcher = require 'streamlua.cluster.launcher'
--   local mine = assert(launcher.load('slurm.lua'))
--   local code = launcher.serve(mine, options, settings)      -- the body of a topology master

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'

local C, ffi = abi.C, abi.ffi

local M = {}

-- How often `check` is called, in milliseconds.
local CHECK_MS = 1000

local REQUIRED = { 'on_schedule', 'on_kill' }
local FUNCTIONS = { initialize = true, on_schedule = true, on_update = true, on_kill = true,
  on_restart = true, add_containers = true, remove_containers = true, check = true, close = true }

local function fault_of(value)
  if type(value) ~= 'table' then
    return ('it must return a table, not a %s'):format(type(value))
  end
  for _, name in ipairs(REQUIRED) do
    if value[name] == nil then return ("it has no function '%s'"):format(name) end
  end
  for name, fn in pairs(value) do
    if not FUNCTIONS[name] then return ("'%s' is no function of a launcher"):format(tostring(name)) end
    if type(fn) ~= 'function' then return ("'%s' must be a function"):format(name) end
  end
  if (value.add_containers == nil) ~= (value.remove_containers == nil) then
    return 'it must have both add_containers and remove_containers, or none of them'
  end
end

--- True for the name of a file.
---@param name string
---@return boolean
function M.is_file(name) return name:find('%.lua$') ~= nil end

--- Loads a launcher.
---@param path string
---@return table? launcher
---@return streamlua.Error?
function M.load(path)
  local file, message = io.open(path, 'rb')
  if not file then return nil, err.new('ENOTFOUND', ("launcher '%s': %s"):format(path, message)) end
  file:close()
  local chunk, value
  chunk, message = loadfile(path)
  if not chunk then return nil, err.new('EINVAL', ("launcher '%s': %s"):format(path, message)) end
  local ok
  ok, value = pcall(chunk)
  local fault = not ok and tostring(value) or fault_of(value)
  if fault then return nil, err.new('EINVAL', ("launcher '%s': %s"):format(path, fault)) end
  return value
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- What the functions of a launcher are given besides containers.
local function context_of(options, command)
  local context = { topology = options.topology, state = options.state_url, logs = options.logs,
    program = options.program, cwd = ffi.string(command.cwd), user = ffi.string(command.user) }
  --- The command line of the process of a container, as a list.
  function context.arguments(id)
    return { context.program, 'worker', '--state', context.state, '--topology', context.topology,
      '--container', ('%d'):format(id), '--logs', context.logs }
  end
  --- The same for a shell.
  function context.command(id)
    local words = context.arguments(id)
    for i, word in ipairs(words) do words[i] = quoted(word) end
    return table.concat(words, ' ')
  end
  return context
end

local function containers_of(list, count)
  local containers = {}
  for i = 0, count - 1 do
    containers[i + 1] = { id = list[i].id, cpu = list[i].cpu, ram = tonumber(list[i].ram_bytes),
      disk = tonumber(list[i].disk_bytes) }
  end
  return containers
end

local function ids_of(containers)
  local ids = {}
  for i, container in ipairs(containers) do ids[i] = container.id end
  return ids
end

-- Calls a function of the launcher: true and what it returns, or false and why not. Returning nil or
-- false with a reason refuses; returning nothing is fine.
local function call(fn, ...)
  local results = { pcall(fn, ...) }
  if not results[1] then return false, tostring(results[2]) end
  if not results[2] and results[3] ~= nil then return false, tostring(results[3]) end
  return true, results[2]
end

-- As often as it takes: what failed once may go well when something is to be started again.
local function initialize(self)
  local ok, value = true, nil
  if self.launcher.initialize and not self.is_initialized then
    ok, value = call(self.launcher.initialize, self.context)
  end
  self.is_initialized = ok
  if not ok then value = ("the launcher's initialize: %s"):format(value) end
  return ok, value
end

local function carry_out(self, command)
  local launcher, kind = self.launcher, tonumber(command.kind)
  local containers = containers_of(command.containers, command.container_count)
  if kind == C.SL_LAUNCHER_INITIALIZE then self.context = context_of(self.options, command) end
  if kind ~= C.SL_LAUNCHER_KILL then
    local ok, value = initialize(self)
    if not ok or kind == C.SL_LAUNCHER_INITIALIZE then return ok, value end
  end
  if kind == C.SL_LAUNCHER_SCHEDULE then
    return call(launcher.on_schedule, self.context, containers)
  elseif kind == C.SL_LAUNCHER_UPDATE then
    return call(launcher.on_update, self.context,
      containers_of(command.old_containers, command.old_container_count), containers)
  elseif kind == C.SL_LAUNCHER_ADD then
    return call(launcher.add_containers, self.context, containers)
  elseif kind == C.SL_LAUNCHER_REMOVE then
    return call(launcher.remove_containers, self.context, ids_of(containers))
  elseif kind == C.SL_LAUNCHER_RESTART then
    return call(launcher.on_restart, self.context, containers[1].id)
  end
  return call(launcher.on_kill, self.context)
end

-- The real numbers of added containers, or nil: as they were asked for.
local function real_ids(value)
  if type(value) ~= 'table' then return nil, 0 end
  local ids = ffi.new('int32_t[?]', #value + 1)
  for i, id in ipairs(value) do
    if type(id) ~= 'number' or id % 1 ~= 0 or id < 1 or id > 2147483647 then
      return nil, 0, ("the launcher gave '%s' as the number of a container"):format(tostring(id))
    end
    ids[i - 1] = id
  end
  return ids, #value
end

local function answer(self, command)
  local kind = tonumber(command.kind)
  local ok, value = carry_out(self, command)
  local ids, count, fault = nil, 0, nil
  if ok and kind == C.SL_LAUNCHER_ADD then ids, count, fault = real_ids(value) end
  if not ok then fault = value end
  C.sl_abi_launcher_done(self.role, fault, ids, count)
end

-- Asks the launcher what ended since.
local function check(self)
  if not (self.launcher.check and self.context) then return end
  local ok, ended = call(self.launcher.check, self.context)
  if not ok or type(ended) ~= 'table' then return end
  for id, text in pairs(ended) do
    C.sl_abi_launcher_ended(self.role, tonumber(id) or 0, tostring(text))
  end
end

--- Runs a topology master with a launcher, which is closed however that ends. Returns the exit code of
--- the process.
---@param launcher table of M.load
---@param options table fields of `struct sl_role_options`
---@param settings ffi.cdata* of streamlua.conf.control
---@return integer? code
---@return streamlua.Error?
function M.serve(launcher, options, settings)
  local given = ffi.new('struct sl_role_options', options)
  local abilities = ffi.new('struct sl_launcher_abilities', {
    can_scale = launcher.add_containers ~= nil, can_restart = launcher.on_restart ~= nil,
    wants_updates = launcher.on_update ~= nil })
  local role = C.sl_abi_launcher_start(given, settings, abilities)
  if role == nil then return err.last() end
  local self = { launcher = launcher, options = options, role = role }
  local command = ffi.new('const struct sl_launcher_command *[1]')
  local wait_ms = launcher.check and CHECK_MS or -1
  while true do
    local rc = C.sl_abi_launcher_next(role, wait_ms, command)
    if rc < 0 then break end
    if rc == 1 then answer(self, command[0]) else check(self) end
  end
  if launcher.close then call(launcher.close, self.context) end
  return C.sl_abi_launcher_end(role)
end

return M
