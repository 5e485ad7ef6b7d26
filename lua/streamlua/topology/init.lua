--- Topologies: which components there are, who reads whom, and how.
--
--     local topology = require 'streamlua.topology'
--     local t = topology.new('wordcount', { input = 'a.txt' })
--     t:spout('lines', lines, { parallelism = 1 })
--     t:bolt('count', count, { parallelism = 4 }):fields('lines', { 'word' })
--     for _, p in ipairs(t:validate()) do print(p.file, p.line, p.severity, p.message) end
--
-- A topology is a plain value: t.name, t.config, t.file and t.line of its declaration, and
-- t.components in order, each with name, kind, definition (the user's table), component, streams (a
-- list that also has them by name), inputs (list of {source, stream, grouping, fields, fn, file,
-- line}), options (what the component's table asked for: tick_every and so on), parallelism, cpu,
-- ram, disk (numbers, or nil = unset), config, file and line.

local component = require 'streamlua.topology.component'
local canonical = require 'streamlua.topology.canonical'
local config = require 'streamlua.topology.config'
local declarer = require 'streamlua.topology.declarer'
local native = require 'streamlua.topology.native'
local place = require 'streamlua.topology.place'
local suggest = require 'streamlua.cli.suggest'
local units = require 'streamlua.units'

local call, caller, mistake, shown = place.call, place.caller, place.mistake, place.shown

local M = {}

---@class streamlua.Topology
---@field name string
---@field config table
---@field components table[]
---@field script string? path of the script it was loaded from
---@field file string?
---@field line integer?
local Topology = {}
Topology.__index = Topology
-- How load.lua and the CLI know what a script returned.
Topology.__streamlua = 'topology'

-- Set while a script is loaded: what --set and the cluster's configuration say of its config.
local NOT_LOADING = { overrides = nil, defaults = nil }
local loading = NOT_LOADING

local function new(name, own, file, line)
  if type(name) ~= 'string' then
    mistake('streamlua.topology: the name must be a text, got %s', shown(name))
  elseif own ~= nil and type(own) ~= 'table' then
    mistake('streamlua.topology: the config must be a table, got %s', shown(own))
  end
  return setmetatable({
    name = name,
    config = config.merge(own, loading.overrides, loading.defaults),
    components = {},
    file = file,
    line = line,
  }, Topology)
end

--- Starts a topology. Mistakes are raised at the caller's line.
---@param name string
---@param own? table config
---@return streamlua.Topology
function M.new(name, own)
  local file, line = caller(2)
  return (call(new, name, own, file, line))
end

local option_names = { 'parallelism', 'cpu', 'ram', 'disk', 'config' }
local is_option = { parallelism = true, cpu = true, ram = true, disk = true, config = true }

local function check_options(kind, name, options)
  if options == nil then return {} end
  if type(options) ~= 'table' then
    mistake("%s '%s': the options must be a table, got %s", kind, name, shown(options))
  end
  for key in pairs(options) do
    if not is_option[key] then
      local hint = type(key) == 'string' and suggest.hint(key, option_names)
      mistake("%s '%s': unknown option %s (%s)", kind, name, shown(key),
        hint or table.concat(option_names, ', '))
    end
  end
  if options.parallelism ~= nil and type(options.parallelism) ~= 'number' then
    mistake("%s '%s': parallelism must be a number, got %s", kind, name,
      shown(options.parallelism))
  elseif options.config ~= nil and type(options.config) ~= 'table' then
    mistake("%s '%s': config must be a table, got %s", kind, name, shown(options.config))
  end
  return options
end

-- Values that are wrong but not mistakes of the program are problems, told with all others.
local function take_resources(entry, options)
  local function report(text, ...)
    entry.problems[#entry.problems + 1] = { severity = 'error', code = 'bad-resource',
      message = text:format(...) }
  end
  local cpu = options.cpu
  if cpu ~= nil and (type(cpu) ~= 'number' or cpu ~= cpu) then
    report("cpu of '%s' must be a number of cores, got %s", entry.name, shown(cpu))
  else
    entry.cpu = cpu
  end
  for _, key in ipairs({ 'ram', 'disk' }) do
    if options[key] ~= nil then
      local bytes, message = units.parse_size(options[key])
      if bytes then
        entry[key] = bytes
      else
        report("%s of '%s': %s", key, entry.name, message)
      end
    end
  end
end

local function add(t, kind, name, made, options, file, line)
  if getmetatable(t) ~= Topology then
    mistake('call it as t:%s(name, component)', kind)
  elseif type(name) ~= 'string' then
    mistake('%s: the name must be a text, got %s', kind, shown(name))
  elseif not component.is(made) then
    mistake("%s '%s': the second argument must be made by streamlua.%s, got %s", kind, name, kind,
      shown(made))
  elseif made.kind ~= kind then
    mistake("%s '%s': this component is a %s; use t:%s", kind, name, made.kind, made.kind)
  end
  options = check_options(kind, name, options)
  local entry = {
    name = name,
    kind = kind,
    component = made,
    definition = made.definition,
    streams = made.streams,
    options = made.options,
    inputs = {},
    parallelism = options.parallelism == nil and 1 or options.parallelism,
    config = options.config,
    problems = {},
    file = file,
    line = line,
  }
  take_resources(entry, options)
  t.components[#t.components + 1] = entry
  return declarer.new(entry)
end

--- Adds a spout. Returns a declarer like `bolt`, though a spout that reads streams is a problem.
---@param name string
---@param made streamlua.Component of streamlua.spout
---@param options? table parallelism, cpu, ram, disk, config
---@return table declarer
function Topology:spout(name, made, options)
  local file, line = caller(2)
  return (call(add, self, 'spout', name, made, options, file, line))
end

--- Adds a bolt. Returns the declarer that says what it reads.
---@param name string
---@param made streamlua.Component of streamlua.bolt
---@param options? table parallelism, cpu, ram, disk, config
---@return table declarer
function Topology:bolt(name, made, options)
  local file, line = caller(2)
  return (call(add, self, 'bolt', name, made, options, file, line))
end

--- State spouts are reserved: raises.
function Topology.state_spout()
  error('state_spout: state spouts are reserved and can not be used', 2)
end

--- The entry of a component, or nil.
---@param name string
---@return table?
function Topology:component(name)
  for _, entry in ipairs(self.components) do
    if entry.name == name then return entry end
  end
end

-- Collects problems with the place each belongs to.
local function collector(t)
  local problems = {}
  return problems, function(problem, at)
    local spot = at or t
    problems[#problems + 1] = {
      -- A declaration in a tail call has no frame of its own left to tell its line.
      file = spot.file or t.file or t.script or '?',
      line = spot.line or t.line or 1,
      severity = problem.severity,
      code = problem.code,
      message = problem.message,
      component = at and at.name or nil,
      order = #problems,
    }
  end
end

local function check_entry(entry, report)
  for _, problem in ipairs(entry.problems) do report(problem, entry) end
  for _, warning in ipairs(entry.component.warnings) do
    report({ severity = 'warning', code = warning.code,
      message = ("'%s': %s"):format(entry.name, warning.message) },
      { name = entry.name, file = entry.component.file, line = entry.component.line })
  end
  entry.config_text = nil
  if entry.config then
    local text, message = canonical.encode(entry.config)
    if text then
      entry.config_text = text
    else
      report({ severity = 'error', code = 'bad-config',
        message = ("config of '%s': %s; config is data"):format(entry.name, message) }, entry)
    end
  end
end

-- By line within a file; files come as their first problem does.
local function sort_by_place(problems)
  local rank = {}
  for _, problem in ipairs(problems) do
    rank[problem.file] = rank[problem.file] or problem.order
  end
  table.sort(problems, function(a, b)
    if a.file ~= b.file then return rank[a.file] < rank[b.file] end
    if a.line ~= b.line then return a.line < b.line end
    return a.order < b.order
  end)
end

--- Everything that is wrong: a list of {file=, line=, severity='error'|'warning', code=, message=,
--- component=}, in the order of the lines; empty when all is well.
---@return table[] problems
function Topology:validate()
  local problems, report = collector(self)
  local config_problems, texts = config.check(self.config, self.components)
  for _, problem in ipairs(config_problems) do report(problem) end
  for _, entry in ipairs(self.components) do check_entry(entry, report) end
  local handle = assert(native.build(self, texts))
  for _, problem in ipairs(assert(native.validate(handle))) do
    local entry = problem.component and self.components[problem.component]
    local input = entry and problem.input and entry.inputs[problem.input]
    -- A key_groups that is no number is told as a bad config already.
    if problem.code ~= 'bad-key-groups' or #config_problems == 0 then
      report(problem, input and { name = entry.name, file = input.file, line = input.line } or entry)
    end
  end
  sort_by_place(problems)
  for _, problem in ipairs(problems) do problem.order = nil end
  return problems
end

--- Whether a list of problems has an error, and how many errors and warnings it has.
---@param problems table[]
---@return integer errors
---@return integer warnings
function M.count(problems)
  local errors = 0
  for _, problem in ipairs(problems) do
    if problem.severity == 'error' then errors = errors + 1 end
  end
  return errors, #problems - errors
end

--- The topology of the core (`struct sl_topology *`), for packing, scheduling and submission.
---@return ffi.cdata*? handle
---@return streamlua.Error? failure
function Topology:native()
  for _, entry in ipairs(self.components) do
    entry.config_text = entry.config and canonical.encode(entry.config) or nil
  end
  return native.build(self)
end

--- The system topology as plain data (streamlua.topology.native.describe): the user's components,
--- then __acker (when there are ackers), __topology_master, __metrics and __system, with the task
--- ids of the first plan.
---@return table? description
---@return streamlua.Error? failure
function Topology:system()
  local handle, failure = self:native()
  if not handle then return nil, failure end
  local system
  system, failure = native.system(handle)
  if not system then return nil, failure end
  return native.describe(system)
end

--- The known keys of its config as numbers, with defaults (streamlua.topology.config.resolve).
---@return table
function Topology:settings() return config.resolve(self.config) end

--- The number of key groups.
---@return integer? groups
---@return streamlua.Error? failure
function Topology:key_groups()
  local handle, failure = self:native()
  if not handle then return nil, failure end
  return native.key_groups(handle)
end

--- The bytes that submission ships (proto/topology.proto); native.decode and describe read them.
---@return string? bytes
---@return streamlua.Error? failure
function Topology:encode()
  local handle, failure = self:native()
  if not handle then return nil, failure end
  return native.encode(handle)
end

--- Whether a value is a topology.
---@param value any
---@return boolean
function M.is(value) return getmetatable(value) == Topology end

--- Runs fn with overrides and defaults for the config of every topology made in it; load.lua uses
--- it. Returns what pcall returns.
---@param overrides? table
---@param defaults? table
---@param fn function
function M.with_config(overrides, defaults, fn)
  local before = loading
  loading = { overrides = overrides, defaults = defaults }
  local results = { pcall(fn) }
  loading = before
  return unpack(results, 1, table.maxn(results))
end

--- Whether a script is being loaded.
---@return boolean
function M.is_loading() return loading ~= NOT_LOADING end

--- The overrides of the script that is being loaded, {} when there are none.
---@return table
function M.overrides() return loading.overrides or {} end

return M
