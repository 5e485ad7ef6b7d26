-- The checks of `streamlua doctor`: each is a function that returns whether it is well, a detail,
-- and a hint. None of them leaves anything behind.
--
--   local doctor = require 'streamlua.cli.doctor'
--   for _, check in ipairs(doctor.checks(context)) do print(check.name, check.ok) end

local home = require 'streamlua.home'
local libc = require 'streamlua.connectors.libc'
local units = require 'streamlua.units'
local versions = require 'streamlua.cli.versions'

local M = {}

--- Descriptors a worker of a large topology needs.
M.DESCRIPTORS = 1024

--- 2024-01-01: a clock before it was never set.
M.EARLIEST_S = 1704067200

local function check_lua()
  local directory = home.lua_directory()
  if not directory then
    return false, 'the Lua files were not found', 'set STREAMLUA_HOME to the installation'
  elseif not home.conf_directory() then
    return false, ('no conf/local.lua beside %s'):format(directory),
      'set STREAMLUA_HOME to a complete installation'
  end
  return true, directory
end

local function check_core()
  local ok, abi = pcall(require, 'streamlua.abi')
  if not ok then
    return false, 'the core can not be loaded: ' .. tostring(abi):match('[^\n]*')
  end
  local compiled, declared = abi.C.sl_abi_version(), tonumber(abi.C.SL_ABI_VERSION)
  if compiled ~= declared then
    return false, ('the core has ABI %d, its declarations %d'):format(compiled, declared)
  end
  return true, ('%s, ABI %d'):format(versions.document().version, compiled)
end

local function check_jit()
  if not jit.status() then
    return false, 'the JIT compiler is off', 'topologies run, but many times slower'
  end
  return true, ('%s on %s'):format(jit.version, jit.arch)
end

local function check_config(context)
  local ok, err = pcall(function()
    return context.config
  end)
  if not ok then
    return false, tostring(err), type(err) == 'table' and err.hint or nil
  end
  return true, ("cluster '%s'"):format(context.settings.cluster)
end

local function parent_of(path)
  return path:match('^(.+)/[^/]+/*$') or (path:sub(1, 1) == '/' and '/' or '.')
end

-- A directory that does not exist yet is made on first use: its nearest ancestor must allow that.
-- Only a try tells: rights, read-only file systems and full disks all answer alike.
local function is_writable(directory)
  local path = directory
  while not libc.stat(path) do
    local up = parent_of(path)
    if up == path then
      break
    end
    path = up
  end
  local probe = ('%s/.doctor-%d'):format(path, libc.C.getpid())
  local PRIVATE = tonumber('700', 8)
  if libc.C.mkdir(probe, PRIVATE) ~= 0 then
    return false, path
  end
  os.remove(probe)
  return true, path
end

local function check_state(context)
  local ok, state = pcall(function()
    return context.settings.state
  end)
  if not ok then
    return false, 'unknown: the settings can not be read'
  end
  local directory = state:match('^localfs:(.+)$')
  if directory then
    local writable, path = is_writable(directory)
    if not writable then
      return false, ("'%s' can not be written"):format(path),
        'choose another directory with --state localfs:DIR or STREAMLUA_STATE'
    end
    return true, state
  elseif state:find('^zookeeper://[^/]+/.*$') then
    return true, state
  end
  return false, ("'%s' is no URL of a state manager"):format(state),
    'localfs:DIR or zookeeper://host:port[,host:port]/root'
end

local function check_descriptors()
  local current, maximum = libc.descriptor_limit()
  local detail = ('%.0f open files, at most %.0f'):format(current, maximum)
  if current < M.DESCRIPTORS then
    return false, detail, ('raise the limit: ulimit -n %d'):format(M.DESCRIPTORS)
  end
  return true, detail
end

local function check_clock()
  local wall = libc.clock_s('wall')
  local first = libc.clock_s('mono')
  local second = libc.clock_s('mono')
  if second < first then
    return false, 'the monotonic clock runs backwards'
  elseif wall < M.EARLIEST_S then
    return false, ('the date is %s'):format(os.date('!%Y-%m-%d', wall)), 'set the clock'
  end
  return true, os.date('!%Y-%m-%dT%H:%M:%SZ', wall)
end

local function check_memory()
  local file = io.open('/proc/meminfo', 'r')
  local text = file and file:read('*a') or ''
  if file then
    file:close()
  end
  local available = tonumber(text:match('MemAvailable:%s*(%d+)'))
  if not available then
    return true, 'unknown'
  end
  local detail = units.size_text(available * 1024) .. ' available'
  return available > 128 * 1024, detail, 'workers may be killed for lack of memory'
end

local function module_check(name, package, use)
  return function()
    local ok, message = pcall(require, name)
    if not ok then
      return false, ('%s is missing: %s'):format(name, use), 'apt-get install ' .. package
        .. (tostring(message):find('not found', 1, true) and '' or ' (it is there but does not load)')
    end
    return true, use
  end
end

local function check_zookeeper()
  local version = versions.document().zookeeper
  return version ~= nil, version or 'no client library is loaded',
    'clusters on ZooKeeper can not be reached'
end

local plan = {
  { 'lua', check_lua, true },
  { 'core', check_core, true },
  { 'config', check_config, true },
  { 'state', check_state, true },
  { 'clock', check_clock, true },
  { 'jit', check_jit, false },
  { 'descriptors', check_descriptors, false },
  { 'memory', check_memory, false },
  { 'zookeeper', check_zookeeper, false },
  { 'cjson', module_check('cjson', 'lua-cjson', 'JSON'), true },
  { 'argparse', module_check('argparse', 'lua-argparse', 'command line'), true },
  { 'busted', module_check('busted.core', 'lua-busted', 'streamlua test'), false },
  { 'readline', module_check('readline', 'lua-readline', 'line editing of streamlua repl'), false },
}

--- Runs all checks in order: {name=, ok=, essential=, detail=, hint= when not ok}.
---@param context table
---@return table[]
function M.checks(context)
  local results = {}
  for i, row in ipairs(plan) do
    -- A check that breaks is a broken machine, not a broken doctor.
    local ran, ok, detail, hint = pcall(row[2], context)
    if not ran then
      ok, detail, hint = false, tostring(ok), nil
    end
    results[i] = { name = row[1], ok = ok, essential = row[3], detail = detail,
      hint = not ok and hint or nil }
  end
  return results
end

return M
