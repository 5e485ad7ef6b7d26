-- Settings: data written in Lua, found in layers, merged, checked, and each key with its source.
--
-- From high to low: --set and options, STREAMLUA_NAME, ./streamlua.conf.lua,
-- ~/.config/streamlua/config.lua, /etc/streamlua/*.lua (the last name wins), conf/CLUSTER.lua, built
-- in. `--config FILE` is read instead of the three file places in the middle; conf/CLUSTER.lua stays
-- below it.
--
--   local conf = require 'streamlua.conf'
--   local config = conf.load({ set = { state_timeout = '2s' } })
--   assert(config.values.state_timeout == '2s')
--   assert(config.source.state_timeout.text == '--set')

local control = require 'streamlua.conf.control'
local data = require 'streamlua.conf.data'
local errors = require 'streamlua.cli.error'
local home = require 'streamlua.home'
local libc = require 'streamlua.connectors.libc'
local schema = require 'streamlua.conf.schema'
local suggest = require 'streamlua.cli.suggest'

local M = {}

--- Name of the file read from the working directory.
M.LOCAL_FILE = 'streamlua.conf.lua'

local function fail(code, what, why, hint, place)
  error(errors.new(code, what, why, hint, place), 0)
end

local function file_exists(path)
  local stat = libc.stat(path)
  return stat ~= nil and stat.kind ~= 'directory'
end

-- "scheduler.x" with file:line in front when the line is known.
local function key_failure(layer, key, why, hint)
  local line = layer.lines and layer.lines[key]
  local place = layer.path and (line and ('%s:%d'):format(layer.path, line) or layer.path)
    or layer.text
  fail('invalid', ('%s: setting %s'):format(place, key), why, hint,
    { file = layer.path, line = line })
end

--- Settings with two names: the other one of each.
M.OTHER_NAME = { containers = 'workers', workers = 'containers' }

-- What is wrong with a layer that gives a setting under both of its names.
local function names_fault(values)
  if values.workers ~= nil and values.containers ~= nil and values.workers ~= values.containers then
    return 'it is another name of containers, which differs'
  end
end

local function check_layer(layer)
  -- Sorted, so that a file with two mistakes always shows the same one.
  local names = {}
  for name in pairs(layer.values) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    if type(name) ~= 'string' then
      key_failure(layer, tostring(name), 'settings have names, not positions')
    end
    local ok, why = schema.check(name, layer.values[name])
    if not ok then
      key_failure(layer, name, why, not schema.by_name[name] and suggest.hint(name, schema.names)
        or nil)
    end
  end
  local fault = names_fault(layer.values)
  if fault then
    key_failure(layer, 'workers', fault)
  end
end

local function file_layer(path, text)
  local values, err = data.load_file(path)
  if not values then
    local what = err.line and ('%s:%d'):format(path, err.line)
      or ("configuration file '%s'"):format(path)
    fail(err.code or 'invalid', what, err.message, err.hint, { file = path, line = err.line })
  end
  local layer = { values = values, path = path, text = text or path, lines = err }
  check_layer(layer)
  return layer
end

--- Path of conf/NAME.lua of a cluster, or nil and the places that were searched.
---@param name string
---@return string? path
---@return string[]? places
function M.cluster_file(name)
  local places = {}
  local own = home.config_home()
  if own then
    places[#places + 1] = own .. '/streamlua/conf'
  end
  places[#places + 1] = '/etc/streamlua/conf'
  places[#places + 1] = home.conf_directory()
  places[#places + 1] = 'conf'
  for _, place in ipairs(places) do
    local path = place .. '/' .. name .. '.lua'
    if file_exists(path) then
      return path
    end
  end
  return nil, places
end

local function cluster_names(places)
  local names, seen = {}, {}
  for _, place in ipairs(places) do
    for _, path in ipairs(libc.glob(place .. '/*.lua')) do
      local name = path:match('([^/]+)%.lua$')
      if not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  return names
end

local function cluster_layer(name, source)
  local ok, why = schema.check('cluster', name)
  if not ok then
    fail('usage', source.text, why)
  end
  local path, places = M.cluster_file(name)
  if path then
    local layer = file_layer(path, ('conf/%s.lua'):format(name))
    layer.is_cluster = true
    return layer
  end
  local names = cluster_names(places)
  fail('not_found', ("cluster '%s'"):format(name), ('no conf/%s.lua'):format(name),
    suggest.hint(name, names) or (#names > 0 and 'there is: ' .. table.concat(names, ', ')) or nil)
end

local function file_layers(options)
  local layers = {}
  local named = options.globals and options.globals.config
  if named then
    if not file_exists(named.value) then
      fail('not_found', ("configuration file '%s'"):format(named.value), 'no such file', nil,
        { file = named.value })
    end
    return { file_layer(named.value) }
  end
  if file_exists(M.LOCAL_FILE) then
    layers[#layers + 1] = file_layer(M.LOCAL_FILE, './' .. M.LOCAL_FILE)
  end
  local own = home.config_home()
  local path = own and own .. '/streamlua/config.lua'
  if path and file_exists(path) then
    layers[#layers + 1] = file_layer(path)
  end
  local system = libc.glob('/etc/streamlua/*.lua')
  for i = #system, 1, -1 do
    layers[#layers + 1] = file_layer(system[i])
  end
  return layers
end

-- Twins of settings that are no global options, e.g. STREAMLUA_STATE_TIMEOUT.
local function environment_layer(options)
  local getenv = options.getenv or os.getenv
  local values = {}
  for _, entry in ipairs(schema) do
    local text = getenv('STREAMLUA_' .. entry.name:upper())
    local is_option = options.globals and entry.scope == 'process' and
      require('streamlua.cli.parser').globals_by_key[entry.name]
    if text and text ~= '' and not is_option then
      local value = text
      if entry.type == 'boolean' then
        local words = { ['true'] = true, ['1'] = true, ['false'] = false, ['0'] = false }
        value = words[text]
        if value == nil then
          value = text
        end
      elseif entry.type == 'integer' or entry.type == 'number' then
        value = tonumber(text) or text
      elseif entry.type == 'list' then
        value = {}
        for item in text:gmatch('[^,]+') do
          value[#value + 1] = item
        end
      end
      if entry.type ~= 'table' then
        local ok, why = schema.check(entry.name, value)
        if not ok then
          fail('invalid', 'STREAMLUA_' .. entry.name:upper(), why)
        end
        values[entry.name] = value
      end
    end
  end
  local fault = names_fault(values)
  if fault then
    fail('invalid', 'STREAMLUA_WORKERS', fault)
  end
  return values
end

local function option_layers(options)
  local flags, environment = {}, environment_layer(options)
  -- --config names a file; the setting `config` is a table that only files and --set write.
  for key, given in pairs(options.globals or {}) do
    if schema.by_name[key] and key ~= 'config' then
      local target = given.origin == 'flag' and flags or environment
      target[key] = given.value
    end
  end
  return { values = flags, text = 'option' }, { values = environment, text = 'environment' }
end

--- Puts a value under a dotted key; returns false when a part on the way is no table.
---@param root table
---@param key string e.g. 'config.input'
---@param value any
---@return boolean
function M.put(root, key, value)
  local at = root
  local parts = {}
  for part in key:gmatch('[^.]+') do
    parts[#parts + 1] = part
  end
  for i = 1, #parts - 1 do
    if at[parts[i]] == nil then
      at[parts[i]] = {}
    end
    at = at[parts[i]]
    if type(at) ~= 'table' then
      return false
    end
  end
  at[parts[#parts]] = value
  return true
end

-- --set also carries keys of topologies: only what the schema knows belongs to the settings.
local function set_layer(options)
  local values = {}
  for key, value in pairs(options.set or {}) do
    local first = key:match('^[^.]+')
    local entry = first and schema.by_name[first]
    if entry and not (first == key and entry.type == 'table') then
      -- A topology's lists can not be written on a line; its own check judges them.
      if entry.type == 'list' and type(value) == 'string' then
        local list = {}
        for item in value:gmatch('[^,]+') do
          list[#list + 1] = item
        end
        value = list
      elseif entry.type == 'string' and type(value) ~= 'string' and first == key then
        value = tostring(value)
      end
      if not M.put(values, key, value) then
        fail('usage', '--set ' .. key, 'it does not name a single setting')
      end
    end
  end
  local layer = { values = values, text = '--set' }
  for name, value in pairs(values) do
    local ok, why = schema.check(name, value)
    if not ok then
      fail('invalid', '--set ' .. name, why)
    end
  end
  return layer
end

local function built_in_layer()
  local values = {}
  for _, entry in ipairs(schema) do
    values[entry.name] = entry.default
  end
  values.state = 'localfs:' .. home.state_home() .. '/streamlua'
  return { values = values, text = 'built in' }
end

local function is_map(value)
  return type(value) == 'table' and #value == 0
end

-- Merges `from` under what is there already: the first layer that names a key decides it, by whichever
-- of its names.
local function merge(into, from, source, layer, prefix)
  for key, value in pairs(from) do
    local path = prefix .. tostring(key)
    local other = prefix == '' and M.OTHER_NAME[key]
    local is_decided = other and into[other] ~= nil
    if into[key] == nil and not is_decided then
      if is_map(value) then
        into[key] = {}
        merge(into[key], value, source, layer, path .. '.')
        if next(value) == nil then
          source[path] = M.source_of(layer, path)
        end
      else
        into[key] = value
        source[path] = M.source_of(layer, path)
      end
    elseif is_map(into[key]) and is_map(value) then
      merge(into[key], value, source, layer, path .. '.')
    end
  end
end

--- Where a key of a layer comes from: {text=, file=, line=}.
function M.source_of(layer, path)
  local line = layer.lines and layer.lines[path]
  local text = layer.text
  local top = path:match('^[^.]+')
  if text == 'option' then
    text = '--' .. top:gsub('_', '-')
  elseif text == 'environment' then
    text = 'STREAMLUA_' .. top:upper()
  elseif line then
    text = ('%s:%d'):format(layer.text, line)
  end
  return { text = text, is_cluster = layer.is_cluster, file = layer.path, line = line }
end

local function first_of(layers, key)
  for _, layer in ipairs(layers) do
    if layer.values[key] ~= nil then
      return layer.values[key], M.source_of(layer, key)
    end
  end
end

-- Where the settings that a message names come from.
local function origins(message, sources)
  local parts = {}
  for name in message:gmatch('[%w_]+') do
    if schema.by_name[name] then
      parts[#parts + 1] = ('%s: %s'):format(name, sources[name].text)
    end
  end
  return table.concat(parts, ', ')
end

--- Loads the settings. Raises an error object of the command line.
---@param options table? {globals= options of the line and their twins, set= map of --set, getenv=}
---@return table config {values=, source= by dotted key, layers= high to low}
function M.load(options)
  options = options or {}
  local flags, environment = option_layers(options)
  local layers = { set_layer(options), flags, environment }
  for _, layer in ipairs(file_layers(options)) do
    layers[#layers + 1] = layer
  end
  local built_in = built_in_layer()
  local cluster, source = first_of(layers, 'cluster')
  layers[#layers + 1] = cluster_layer(cluster or built_in.values.cluster,
    source or { text = 'cluster' })
  layers[#layers + 1] = built_in
  local values, sources = {}, {}
  for _, layer in ipairs(layers) do
    merge(values, layer.values, sources, layer, '')
  end
  -- Each value alone was checked with its layer; some depend on each other.
  local settings, err = control.settings(values)
  if not settings then
    fail('invalid', 'settings', tostring(err), origins(tostring(err), sources))
  end
  return { values = values, source = sources, layers = layers }
end

--- The cluster's defaults of the topology config: settings of scope 'topology' that a file, the
--- environment or --set names, and the open table `config`. Built-in values are left out: they are
--- the topology's own defaults. So is the scheduler of conf/CLUSTER.lua, which is that of submitted
--- topologies alone.
---@param config table result of `load`
---@return table
function M.topology_defaults(config)
  local result = {}
  for key, value in pairs(config.values.config or {}) do
    result[key] = value
  end
  for _, entry in ipairs(schema) do
    local source = config.source[entry.name]
    local is_own = source and (source.text == 'built in'
      or (source.is_cluster and entry.name == 'scheduler'))
    if entry.scope == 'topology' and entry.type ~= 'table' and source and not is_own then
      result[entry.name] = config.values[entry.name]
    end
  end
  return result
end

return M
