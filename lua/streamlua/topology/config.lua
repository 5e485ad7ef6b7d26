--- The topology's config: known keys and their types, overrides of `--set`, likely misspellings.
--
--     local config = require 'streamlua.topology.config'
--     local merged = config.merge({ input = 'a.txt' }, { ackers = 2 })
--     assert(config.resolve(merged).ackers == 2)
--     assert(config.resolve(merged).message_timeout == 30)
--
-- The known keys are the settings of scope 'topology' in streamlua.conf.schema; other keys are the
-- user's own. `t.config` and `context.config` hold what the user wrote; `resolve` gives numbers.

local canonical = require 'streamlua.topology.canonical'
local component = require 'streamlua.topology.component'
local place = require 'streamlua.topology.place'
local schema = require 'streamlua.conf.schema'
local units = require 'streamlua.units'

local shown = place.shown
local floor = math.floor

local M = {}

--- Names of the known keys, in the order of the schema.
M.names = {}

local entries = {}
for _, entry in ipairs(schema) do
  -- `config` is how a cluster's file gives defaults for the user's own keys.
  if entry.scope == 'topology' and entry.name ~= 'config' then
    M.names[#M.names + 1] = entry.name
    entries[entry.name] = entry
  end
end

local function is_whole(value, least)
  return type(value) == 'number' and value == floor(value) and value >= least and value < 2 ^ 53
end

local function is_list(value)
  if type(value) ~= 'table' then return false end
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  return count == #value
end

local function check_texts(value, what)
  for i, item in ipairs(value) do
    if type(item) ~= 'string' or item == '' then
      return ('item %d must be %s, got %s'):format(i, what, shown(item))
    end
  end
end

local worker_checks = {
  host = function(v) return type(v) == 'string' and v ~= '', 'a host name' end,
  port = function(v) return is_whole(v, 1) and v <= 65535, 'a port (1 to 65535)' end,
  cpu = function(v) return type(v) == 'number' and v > 0 and v < math.huge, 'a number above 0' end,
  ram = function(v) return units.parse_size(v) ~= nil, 'a size' end,
}

local function check_worker(worker, at)
  if type(worker) ~= 'table' then
    return ('item %d must be a table, got %s'):format(at, shown(worker))
  end
  for key, value in pairs(worker) do
    local test = worker_checks[key]
    if key == 'components' then
      if type(value) ~= 'table' then
        return ('components of item %d must be { name = tasks }, got %s'):format(at, shown(value))
      end
      for name, tasks in pairs(value) do
        if type(name) ~= 'string' or not is_whole(tasks, 1) then
          return ('components of item %d must be { name = tasks }, got %s = %s'):format(at,
            shown(name), shown(tasks))
        end
      end
    elseif not test then
      return ('item %d has the unknown key %s'):format(at, shown(key))
    else
      local ok, wanted = test(value)
      if not ok then
        return ('%s of item %d must be %s, got %s'):format(key, at, wanted, shown(value))
      end
    end
  end
end

local function at_most(most)
  return function(value)
    if value > most then return ('it must be at most %d'):format(most) end
  end
end

-- What the schema can not say. Each returns what is wrong, or nothing.
local more = {
  message_timeout = function(value)
    if units.parse_duration(value) < 0.001 then return 'it must be at least 1ms' end
  end,
  executors = at_most(1024),
  ackers = at_most(65536),
  isolation = function(value) return check_texts(value, 'a host name') end,
  on_different_nodes = function(value) return check_texts(value, 'the name of a component') end,
  user_workers = function(value)
    for i, worker in ipairs(value) do
      local fault = check_worker(worker, i)
      if fault then return fault end
    end
  end,
  container_padding_percentage = function(value)
    if value > 100 then return 'it must be from 0 to 100' end
  end,
}

local function fault_of(name, value)
  local ok, why = schema.check(name, value)
  if not ok then return why end
  if entries[name].type == 'list' and not is_list(value) then return 'the list has gaps' end
  return more[name] and more[name](value)
end

local function sorted_keys(config)
  local keys = {}
  for key in pairs(config) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == 'string' or type(a) == 'number' then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

local function check_key(config, key, report)
  local value = config[key]
  if type(key) ~= 'string' or key == '' then
    return report('error', 'bad-config', 'config keys are names, got %s', shown(key))
  end
  if not entries[key] then
    local meant = component.near_miss(key, M.names)
    if meant then
      report('warning', 'misspelt', "config key '%s' looks like '%s'", key, meant)
    end
    return
  end
  local fault = fault_of(key, value)
  if fault then report('error', 'bad-config', 'config key %s: %s', key, fault) end
end

-- Names in lists of components must be components.
local function check_components(config, components, report)
  local known = {}
  for _, entry in ipairs(components) do known[entry.name] = true end
  local function expect(name, key)
    if type(name) == 'string' and not known[name] then
      report('error', 'unknown-component', 'config key %s names %s, which is no component of the '
        .. 'topology', key, shown(name))
    end
  end
  if is_list(config.on_different_nodes) then
    for _, name in ipairs(config.on_different_nodes) do expect(name, 'on_different_nodes') end
  end
  if is_list(config.user_workers) then
    for _, worker in ipairs(config.user_workers) do
      local tasks = type(worker) == 'table' and worker.components
      if type(tasks) == 'table' then
        for _, name in ipairs(sorted_keys(tasks)) do expect(name, 'user_workers') end
      end
    end
  end
end

--- Checks a config. Returns problems {severity=, code=, message=} in the order of the keys, and the
--- canonical texts of the values that are data, by key.
---@param config table
---@param components? table[] entries of the topology, to check names against
---@return table[] problems
---@return table<string, string> texts
function M.check(config, components)
  local problems, texts = {}, {}
  local function report(severity, code, text, ...)
    problems[#problems + 1] = { severity = severity, code = code, message = text:format(...) }
  end
  for _, key in ipairs(sorted_keys(config)) do
    check_key(config, key, report)
    local text, message = canonical.encode(config[key])
    if text and type(key) == 'string' then
      texts[key] = text
    elseif not text then
      report('error', 'bad-config', 'config key %s: %s; config is data', tostring(key), message)
    end
  end
  if config.containers ~= nil and config.workers ~= nil and config.containers ~= config.workers then
    report('error', 'bad-config', 'config keys containers and workers mean the same and differ')
  end
  check_components(config, components or {}, report)
  return problems, texts
end

local function set_path(config, key, value)
  local head, rest = key:match('^([^.]+)%.(.+)$')
  -- A key with a dot that the user has is that key.
  if not head or config[key] ~= nil then
    config[key] = value
    return
  end
  local inner = {}
  if type(config[head]) == 'table' then
    for name, item in pairs(config[head]) do inner[name] = item end
  end
  config[head] = inner
  set_path(inner, rest, value)
end

local function override(config, key, value)
  local entry = entries[key]
  if entry and entry.type == 'list' and type(value) == 'string' then
    -- A list on the command line: names with commas between them.
    local list = {}
    for item in value:gmatch('[^,]+') do list[#list + 1] = item end
    value = list
  end
  -- One of two names of one key replaces the other.
  if key == 'workers' then config.containers = nil end
  if key == 'containers' then config.workers = nil end
  set_path(config, key, value)
end

--- A new config: defaults below, then what the script wrote, then overrides. Keys of overrides may
--- be paths such as 'redis.host'.
---@param config? table
---@param overrides? table<string, any> of --set
---@param defaults? table<string, any> of the cluster
---@return table
function M.merge(config, overrides, defaults)
  local merged = {}
  for key, value in pairs(defaults or {}) do merged[key] = value end
  if config and config.workers ~= nil then merged.containers = nil end
  if config and config.containers ~= nil then merged.workers = nil end
  for key, value in pairs(config or {}) do merged[key] = value end
  for _, key in ipairs(sorted_keys(overrides or {})) do override(merged, key, overrides[key]) end
  return merged
end

local converters = { duration = units.parse_duration, size = units.parse_size }

--- The known keys with their defaults: durations in seconds, sizes in bytes, `workers` as
--- `containers`. Unset keys without a default are absent. The config must be valid.
---@param config table
---@return table
function M.resolve(config)
  local resolved = {}
  for name, entry in pairs(entries) do
    local value = config[name]
    if value == nil then value = entry.default end
    local convert = converters[entry.type]
    if convert and value ~= nil then value = convert(value) end
    resolved[name] = value
  end
  resolved.containers = resolved.containers or resolved.workers
  resolved.workers = nil
  return resolved
end

return M
