-- Collects what is wrong with a document, all of it, with the place of each fault.
--
--   local check = require 'streamlua.packing.check'
--   local faults = check.new()
--   faults:add('components[%d].cpu', { 2 }, 'must be at least 0, got -1')
--   local value, err = faults:result('request', value)   -- nil and an error when there are faults

local err = require 'streamlua.err'
local json = require 'streamlua.json'
local suggest = require 'streamlua.cli.suggest'
local target = require 'streamlua.cli.target'
local units = require 'streamlua.units'

local M = {}

--- The largest size in bytes: beyond, numbers are no longer exact.
M.MAX_BYTES = 2 ^ 53

--- Faults that a message lists; what is beyond is counted.
M.MAX_LISTED = 100

local Faults = {}
Faults.__index = Faults

--- An empty list of faults.
function M.new() return setmetatable({ count = 0, list = {} }, Faults) end

--- Adds a fault at a place: a format and its arguments, or a text.
---@param place string
---@param arguments table?
---@param what string
function Faults:add(place, arguments, what)
  self.count = self.count + 1
  if self.count <= M.MAX_LISTED then
    if arguments then place = place:format(unpack(arguments)) end
    self.list[self.count] = place == '' and what or place .. ' ' .. what
  end
end

--- The value when there are no faults, else nil and an error EINVAL with `faults`, the list.
---@param what string what the document is
---@param value any
function Faults:result(what, value)
  if self.count == 0 then return value end
  local text = table.concat(self.list, '; ')
  if self.count > #self.list then
    text = ('%s; and %d more'):format(text, self.count - #self.list)
  end
  local failure = err.new('EINVAL', what and ('%s: %s'):format(what, text) or text)
  failure.faults = self.list
  return nil, failure
end

--- A short text of any value for a message.
function M.shown(value)
  local kind = type(value)
  if kind == 'string' then
    local text = #value > 40 and value:sub(1, 37) .. '...' or value
    return ("'%s'"):format((text:gsub('[%c\127-\255]', '?')))
  elseif value == nil or value == json.null then
    return 'null'
  elseif kind == 'number' or kind == 'boolean' then
    return tostring(value)
  elseif kind == 'cdata' then
    return (tostring(value):gsub('[UL]+$', ''))
  elseif kind == 'table' then
    return 'a table'
  end
  return 'a ' .. kind
end

--- nil for JSON's null and for nothing, else the value.
function M.value(value)
  if value == json.null then return nil end
  return value
end

--- True for a table with keys 1..n and no others.
function M.is_list(value)
  if type(value) ~= 'table' then return false end
  local n = #value
  local count = 0
  for _ in next, value do
    count = count + 1
    if count > n then return false end
  end
  return count == n
end

--- True for a whole number in a range.
function M.is_whole(value, least, most)
  return type(value) == 'number' and value == math.floor(value) and value >= least and value <= most
end

--- Adds a fault for every key that is not in `known` (a map of names).
function Faults:unknown_keys(map, known, place, arguments)
  local strangers
  for key in next, map do
    if not known[key] then
      strangers = strangers or {}
      strangers[#strangers + 1] = type(key) == 'string' and key or tostring(key)
    end
  end
  if not strangers then return end
  table.sort(strangers)
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  for _, key in ipairs(strangers) do
    local hint = suggest.hint(key, names)
    self:add(place, arguments, ('has the unknown key %s%s'):format(M.shown(key),
      hint and ' (' .. hint .. ')' or ''))
  end
end

--- A size in bytes, rounded down; nil when it is absent, or for a fault.
---@param value any bytes, or text like "1GiB"
---@param place string
---@param arguments table?
---@return integer?
function Faults:size(value, place, arguments)
  value = M.value(value)
  if value == nil then return nil end
  local bytes = units.parse_size(value)
  if not bytes or bytes > M.MAX_BYTES then
    self:add(place, arguments, 'must be a size of at least 0 (bytes, or text like "1GiB"), got '
      .. M.shown(value))
    return nil
  end
  return math.floor(bytes)
end

local KINDS = { spout = true, bolt = true, system = true }

--- What the components of all requests have: a table with a kind, and a name that no other has.
---@param given any
---@param known table<string, boolean> its keys
---@param at integer position in the list
---@param seen table<string, integer> position of each name, filled
---@return boolean is_table
---@return string? kind
function Faults:component(given, known, at, seen)
  local arguments = { at }
  if type(given) ~= 'table' then
    self:add('components[%d]', arguments, 'must be a table, got ' .. M.shown(given))
    return false
  end
  self:unknown_keys(given, known, 'components[%d]', arguments)
  local kind, name = M.value(given.kind), given.name
  if type(kind) ~= 'string' or not KINDS[kind] then
    self:add('components[%d].kind', arguments, "must be 'spout', 'bolt' or 'system', got "
      .. M.shown(kind))
  end
  if type(name) ~= 'string' then
    self:add('components[%d].name', arguments, 'must be a name, got ' .. M.shown(name))
    return true, kind
  end
  local fault = target.name_fault(kind == 'system' and name:gsub('^__', '') or name)
  if fault then self:add('components[%d].name', arguments, ('is %s: %s'):format(M.shown(name), fault)) end
  if seen[name] then
    self:add('components[%d].name', arguments, ("is '%s', as components[%d] is"):format(name,
      seen[name]))
  end
  seen[name] = seen[name] or at
  return true, kind
end

--- True for a list of at least one component; else the fault is added.
---@param given any
---@return boolean
function Faults:has_components(given)
  if M.is_list(given) and #given > 0 then return true end
  self:add('components', nil, 'must be a list of at least one component, got '
    .. (type(given) == 'table' and 'none' or M.shown(given)))
  return false
end

return M
