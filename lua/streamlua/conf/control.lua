-- Settings of the control plane (time-outs, intervals, limits of the roles). Their table is in C,
-- core/cluster/settings.h; the schema takes its rows from here, and a role its values.
--
--   local control = require 'streamlua.conf.control'
--   local settings = control.settings({ heartbeat_interval = '2s' })
--   assert(not control.settings({ heartbeat_interval = '2h' }))    -- above heartbeat_timeout

local abi = require 'streamlua.abi'
local errors = require 'streamlua.err'
local units = require 'streamlua.units'

local C, ffi = abi.C, abi.ffi

local M = {}

local TYPES = { [tonumber(C.SL_SETTING_DURATION)] = 'duration',
  [tonumber(C.SL_SETTING_NUMBER)] = 'integer', [tonumber(C.SL_SETTING_FLAG)] = 'boolean' }

local function duration_text(ms)
  if ms % 60000 == 0 then
    return ('%dm'):format(ms / 60000)
  end
  return ms % 1000 == 0 and ('%ds'):format(ms / 1000) or ('%dms'):format(ms)
end

local function value_of(kind, number)
  if kind == 'duration' then
    return duration_text(number)
  elseif kind == 'boolean' then
    return number ~= 0
  end
  return number
end

--- The rows in order: {name=, type= duration, integer or boolean, default=, least=, text=}.
---@return table[]
function M.rows()
  local rows = {}
  local row = C.sl_abi_settings_row(0)
  while row ~= nil do
    local kind = TYPES[tonumber(row.kind)]
    rows[#rows + 1] = { name = ffi.string(row.name), type = kind, text = ffi.string(row.text),
      default = value_of(kind, tonumber(row.value)), least = tonumber(row.least) }
    row = C.sl_abi_settings_row(#rows)
  end
  return rows
end

local function number_of(kind, value)
  if kind == 'duration' then
    local seconds, why = units.parse_duration(value)
    return seconds and math.floor(seconds * 1000 + 0.5), why
  elseif kind == 'boolean' then
    return value and 1 or 0
  end
  return value
end

--- The settings of a role, from a map of settings by name; other names are not looked at.
---@param values table
---@return ffi.cdata*? settings a `struct sl_settings *`, freed when it is garbage
---@return streamlua.Error? err
---@return string? name the setting that is wrong, when it is one
function M.settings(values)
  local settings = ffi.gc(C.sl_abi_settings_new(), C.sl_abi_settings_free)
  for _, row in ipairs(M.rows()) do
    local value = values[row.name]
    if value ~= nil then
      local number, why = number_of(row.type, value)
      if not number then
        return nil, errors.new('EINVAL', why), row.name
      end
      if C.sl_abi_settings_set(settings, row.name, number) ~= 0 then
        local _, err = errors.last()
        return nil, err, row.name
      end
    end
  end
  if C.sl_abi_settings_check(settings) ~= 0 then
    return errors.last()
  end
  return settings
end

return M
