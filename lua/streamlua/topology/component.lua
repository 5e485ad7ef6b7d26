--- Spouts and bolts as values: what `streamlua.spout{...}` and `streamlua.bolt{...}` make.
--
--     local component = require 'streamlua.topology.component'
--     local numbers = component.spout { fields = { 'n' }, next_tuple = function() end }
--     assert(numbers.kind == 'spout' and numbers.streams.default.fields[1] == 'n')
--
-- A component is {kind, definition, streams, options, warnings, file, line}. `definition` is the
-- user's table as it is: the runtime makes each task's `self` from it. `streams` is a list in a
-- fixed order ('default' first, then by name) that also has each stream by name. `options` holds
-- tick_every (seconds), tick_aligned, manual_ack and replay = {limit, delay (seconds)}.

local place = require 'streamlua.topology.place'
local suggest = require 'streamlua.cli.suggest'
local units = require 'streamlua.units'

local mistake, shown = place.mistake, place.shown
local floor, huge = math.floor, math.huge

local M = {}

---@class streamlua.Stream
---@field name string
---@field fields string[]
---@field direct boolean

---@class streamlua.Component
---@field kind 'spout'|'bolt'
---@field definition table
---@field streams streamlua.Stream[]
---@field options table
---@field warnings table[] {code=, message=}
---@field file string?
---@field line integer?
local Component = {}
Component.__index = Component

-- What the engine calls, by kind; the first is the one that must be there.
local methods = {
  spout = { 'next_tuple', 'open', 'ack', 'fail', 'activate', 'deactivate', 'close' },
  bolt = { 'execute', 'prepare', 'tick', 'finish', 'cleanup' },
}
local settings = {
  spout = { 'fields', 'streams', 'replay' },
  bolt = { 'fields', 'streams', 'tick_every', 'tick_aligned', 'manual_ack' },
}

-- What other systems, or the other kind of component, call something that the engine calls otherwise.
local aliases = {
  spout = {
    next = 'next_tuple', prepare = 'open', cleanup = 'close', output_fields = 'fields',
    declare_output_fields = 'fields', retry = 'replay', retries = 'replay', max_retries = 'replay',
  },
  bolt = {
    open = 'prepare', close = 'cleanup', on_tick = 'tick', output_fields = 'fields',
    declare_output_fields = 'fields', tick_interval = 'tick_every', tick_period = 'tick_every',
    tick_seconds = 'tick_every', tick_ms = 'tick_every', ack = 'manual_ack', acks = 'manual_ack',
    acking = 'manual_ack', ack_mode = 'manual_ack', auto_ack = 'manual_ack',
  },
}

local function known_names(kind)
  local names = {}
  for _, list in ipairs({ methods[kind], settings[kind] }) do
    for _, name in ipairs(list) do names[name] = true end
  end
  return names
end

local function is_list(value)
  if type(value) ~= 'table' then return false end
  local count = 0
  for key in pairs(value) do
    if type(key) ~= 'number' then return false end
    count = count + 1
  end
  return count == #value
end

-- A copy of a list of field names; what names may hold is checked with the whole topology.
local function field_list(kind, what, value)
  if not is_list(value) then
    mistake('%s: %s must be a list of field names, got %s', kind, what, shown(value))
  end
  local fields = {}
  for i, name in ipairs(value) do
    if type(name) ~= 'string' then
      mistake('%s: %s[%d] must be a field name, got %s', kind, what, i, shown(name))
    end
    fields[i] = name
  end
  return fields
end

local function stream_of(kind, name, value)
  local what = ('streams.%s'):format(name)
  if type(value) ~= 'table' then
    mistake('%s: %s must be a list of field names or { fields = {...}, direct = true }, '
      .. 'got %s', kind, what, shown(value))
  end
  if value.fields == nil and value.direct == nil then
    return { name = name, fields = field_list(kind, what, value), direct = false }
  end
  for key in pairs(value) do
    if key ~= 'fields' and key ~= 'direct' then
      mistake('%s: %s has the unknown key %s', kind, what, shown(key))
    end
  end
  if value.direct ~= nil and type(value.direct) ~= 'boolean' then
    mistake('%s: %s.direct must be true or false, got %s', kind, what, shown(value.direct))
  end
  return {
    name = name,
    fields = field_list(kind, what .. '.fields', value.fields or {}),
    direct = value.direct == true,
  }
end

local function by_default_then_name(a, b)
  if (a.name == 'default') ~= (b.name == 'default') then return a.name == 'default' end
  return a.name < b.name
end

local function streams_of(kind, definition)
  local streams = {}
  if definition.streams ~= nil then
    if type(definition.streams) ~= 'table' then
      mistake('%s: streams must be a table of streams by name, got %s', kind,
        shown(definition.streams))
    end
    for name, value in pairs(definition.streams) do
      if type(name) ~= 'string' then
        mistake('%s: streams are named, got the key %s', kind, shown(name))
      end
      streams[#streams + 1] = stream_of(kind, name, value)
    end
  end
  if definition.fields ~= nil then
    if type(definition.streams) == 'table' and definition.streams.default ~= nil then
      mistake('%s: fields and streams.default both describe the default stream', kind)
    end
    streams[#streams + 1] = { name = 'default', direct = false,
      fields = field_list(kind, 'fields', definition.fields) }
  end
  table.sort(streams, by_default_then_name)
  for _, stream in ipairs(streams) do streams[stream.name] = stream end
  return streams
end

local function check_methods(kind, definition)
  for i, name in ipairs(methods[kind]) do
    local value = definition[name]
    if value == nil and i == 1 then
      mistake('%s: it needs a function %s', kind, name)
    elseif value ~= nil and type(value) ~= 'function' then
      mistake('%s: %s must be a function, got %s', kind, name, shown(value))
    end
  end
  local other = kind == 'spout' and 'bolt' or 'spout'
  local misplaced = methods[other][1]
  if definition[misplaced] ~= nil then
    mistake('%s: %s belongs to a %s', kind, misplaced, other)
  end
end

local function boolean_option(kind, definition, name)
  local value = definition[name]
  if value ~= nil and type(value) ~= 'boolean' then
    mistake('%s: %s must be true or false, got %s', kind, name, shown(value))
  end
  return value == true
end

local function duration_option(kind, name, value, least)
  local seconds, message = units.parse_duration(value)
  if not seconds then
    mistake('%s: %s: %s', kind, name, message)
  elseif seconds < least then
    mistake('%s: %s must be more than 0', kind, name)
  end
  return seconds
end

local function replay_option(kind, value)
  if value == nil or value == false then return nil end
  if value == true then return { delay = 0 } end
  if type(value) ~= 'table' then
    mistake('%s: replay must be true or { limit = n, delay = d }, got %s', kind, shown(value))
  end
  for key in pairs(value) do
    if key ~= 'limit' and key ~= 'delay' then
      mistake('%s: replay has the unknown key %s', kind, shown(key))
    end
  end
  local limit = value.limit
  if limit ~= nil and (type(limit) ~= 'number' or limit < 0 or limit ~= floor(limit)
    or limit == huge) then
    mistake('%s: replay.limit must be a whole number from 0 on, got %s', kind, shown(limit))
  end
  local delay = value.delay
  return { limit = limit,
    delay = delay and duration_option(kind, 'replay.delay', delay, 0) or 0 }
end

local function options_of(kind, definition)
  if kind == 'spout' then return { replay = replay_option(kind, definition.replay) } end
  return {
    tick_every = definition.tick_every ~= nil
      and duration_option(kind, 'tick_every', definition.tick_every, 1e-9) or nil,
    tick_aligned = boolean_option(kind, definition, 'tick_aligned'),
    manual_ack = boolean_option(kind, definition, 'manual_ack'),
  }
end

-- The name that the engine has for what a key of the user's is called elsewhere: a function for a
-- function, anything else for a setting.
local function alias_of(kind, key, value)
  local meant = aliases[kind][key]
  if not meant then return nil end
  for _, name in ipairs(methods[kind]) do
    if name == meant then return type(value) == 'function' and meant or nil end
  end
  return type(value) ~= 'function' and meant or nil
end

-- Keys of the user's own are welcome. Whoever loads the script is told of one that is nearly a name the
-- engine knows, or the name that something of the engine has elsewhere.
local function warnings_of(kind, definition)
  local warnings = {}
  local function warn(code, text, ...)
    warnings[#warnings + 1] = { code = code, message = text:format(...) }
  end
  local known, names, own = known_names(kind), {}, {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  for key in pairs(definition) do
    if type(key) == 'string' and not known[key] then own[#own + 1] = key end
  end
  table.sort(own)
  for _, key in ipairs(own) do
    local near, alias = M.near_miss(key, names), alias_of(kind, key, definition[key])
    if near and definition[near] == nil then
      warn('misspelt', "%s key '%s' looks like '%s'", kind, key, near)
    elseif alias and definition[alias] == nil then
      warn('misspelt', "%s key '%s' is your own; did you mean '%s'?", kind, key, alias)
    end
  end
  if definition.tick and definition.tick_every == nil then
    warn('tick-without-interval', 'bolt has a function tick but no tick_every, so it never ticks')
  elseif definition.tick_every ~= nil and not definition.tick then
    warn('interval-without-tick', 'bolt has tick_every but no function tick')
  end
  return warnings
end

--- The known name that a word was most likely meant to be, or nil: the same but for case, dashes and
--- underscores, or one slip away (two from six letters on, when the first letter is right).
---@param word string
---@param names string[]
---@return string?
function M.near_miss(word, names)
  if #word > 64 then return nil end
  local function plain(text) return (text:lower():gsub('[_%-%. ]', '')) end
  local best, best_distance
  for _, name in ipairs(names) do
    local limit = math.min(#word, #name) >= 6 and word:byte() == name:byte() and 2 or 1
    local distance = plain(word) == plain(name) and 0 or suggest.distance(word, name)
    -- Two words of three letters that differ in one are two words.
    if distance <= limit and (distance == 0 or #word > 3)
      and (not best or distance < best_distance) then
      best, best_distance = name, distance
    end
  end
  return best
end

local function new(kind, definition, file, line)
  if type(definition) ~= 'table' then
    mistake('streamlua.%s: it takes a table, got %s', kind, shown(definition))
  elseif getmetatable(definition) == Component then
    mistake('streamlua.%s: this is a component already', kind)
  end
  check_methods(kind, definition)
  return setmetatable({
    kind = kind,
    definition = definition,
    streams = streams_of(kind, definition),
    options = options_of(kind, definition),
    warnings = warnings_of(kind, definition),
    file = file,
    line = line,
  }, Component)
end

--- Makes a spout. Mistakes are raised at the caller's line.
---@param definition table fields or streams, next_tuple and the other functions of a spout
---@return streamlua.Component
function M.spout(definition)
  local file, line = place.caller(2)
  return (place.call(new, 'spout', definition, file, line))
end

--- Makes a bolt. Mistakes are raised at the caller's line.
---@param definition table fields or streams, execute and the other functions of a bolt
---@return streamlua.Component
function M.bolt(definition)
  local file, line = place.caller(2)
  return (place.call(new, 'bolt', definition, file, line))
end

--- State spouts are reserved: raises.
function M.state_spout()
  error('streamlua.state_spout: state spouts are reserved and can not be used', 2)
end

--- Whether a value was made here.
---@param value any
---@return boolean
function M.is(value) return getmetatable(value) == Component end

return M
