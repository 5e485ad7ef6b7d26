-- Values as text: plans, assignments, differences and figures as the tables of their commands, lists
-- of records as aligned tables, everything else as Lua.
--
--   local printer = require 'streamlua.repl.printer'
--   print(printer.text({ a = 1 }))                      -- { a = 1 }
--   print(printer.text(assignment, { color = true }))
--
-- Long and deep values are cut; `full` and the form 'lua' show all of them.

local json = require 'streamlua.json'
local order = require 'streamlua.cli.order'
local output = require 'streamlua.cli.output'

local M = {}

--- Levels and items that are shown of a value.
M.MAX_DEPTH = 3
M.MAX_ITEMS = 50

-- Text of a value by the value: what `schedule`, `diff` and the like remember of their results.
local renderers = setmetatable({}, { __mode = 'k' })

--- Says how a value is shown: fn(color) -> text.
---@param value table
---@param fn fun(color: boolean): string
---@return table value
function M.show_as(value, fn)
  renderers[value] = fn
  return value
end

---------------------------------------------------------------------------------------------------
-- Lua

local function quoted(text)
  local shown = ('%q'):format(text):gsub('\\\n', '\\n'):gsub('\r', '\\r'):gsub('%z', '\\0')
  return (shown:gsub('[\1-\9\11-\31\127]', function(c) return ('\\%d'):format(c:byte()) end))
end

local function cdata_text(value)
  if value == json.null then return 'null' end
  return (tostring(value):gsub('[UL]+$', ''))
end

local function scalar(value)
  if type(value) == 'string' then return quoted(value) end
  if type(value) == 'cdata' then return cdata_text(value) end
  if type(value) == 'number' and value == math.floor(value) and math.abs(value) < 2 ^ 53 then
    return ('%d'):format(value)
  end
  return tostring(value)
end

local words = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch('%a+') do
  words[word] = true
end

local function key_text(key)
  if type(key) == 'string' and key:find('^[%a_][%w_]*$') and not words[key] then return key end
  return '[' .. scalar(key) .. ']'
end

local function by_type(a, b)
  if type(a) == type(b) and (type(a) == 'number' or type(a) == 'string') then return a < b end
  if type(a) ~= type(b) then return type(a) < type(b) end
  return tostring(a) < tostring(b)
end

local function sorted_keys(value, n)
  local keys = {}
  for key in next, value do
    local is_position = type(key) == 'number' and key >= 1 and key <= n and key == math.floor(key)
    if not is_position then keys[#keys + 1] = key end
  end
  table.sort(keys, by_type)
  return keys
end

local WIDTH = 96

local table_lua

local function value_lua(value, options, depth, seen)
  if type(value) ~= 'table' then return scalar(value) end
  local meta = getmetatable(value)
  if type(meta) == 'table' and rawget(meta, '__tostring') then return tostring(value) end
  if seen[value] then return '<cycle>' end
  if depth <= 0 then return next(value) == nil and '{}' or '{...}' end
  return table_lua(value, options, depth, seen)
end

-- One line when it fits, else one item a line.
function table_lua(value, options, depth, seen)
  seen[value] = true
  local parts, shown = {}, 0
  local n = #value
  local function add(prefix, item)
    shown = shown + 1
    if shown <= options.items then
      parts[#parts + 1] = prefix .. value_lua(item, options, depth - 1, seen)
    end
  end
  for i = 1, n do add('', value[i]) end
  for _, key in ipairs(sorted_keys(value, n)) do add(key_text(key) .. ' = ', value[key]) end
  if shown > options.items then
    parts[#parts + 1] = ('... %d more'):format(shown - options.items)
  end
  seen[value] = nil
  if #parts == 0 then return '{}' end
  local line = '{ ' .. table.concat(parts, ', ') .. ' }'
  if #line <= WIDTH and not line:find('\n', 1, true) then return line end
  for i, part in ipairs(parts) do parts[i] = '  ' .. part:gsub('\n', '\n  ') end
  return '{\n' .. table.concat(parts, ',\n') .. '\n}'
end

---------------------------------------------------------------------------------------------------
-- documents

local function is_list(value)
  return type(value) == 'table' and value[1] ~= nil
end

local function looks_like_assignment(value)
  return type(value.workers) == 'table' and type(value.scheduler) == 'string'
    and type(value.topology) == 'string'
end

local function looks_like_plan(value)
  return type(value.containers) == 'table' and type(value.packing) == 'string'
    and type(value.topology) == 'string'
end

local function looks_like_figures(value)
  return type(value.workers) == 'number' and type(value.min_tasks) == 'number'
end

local function looks_like_cluster(value)
  return is_list(value.supervisors) and type(value.supervisors[1]) == 'table'
    and type(value.supervisors[1].ports) == 'table'
end

local function cluster_text(value, color)
  local rows = {}
  for i, supervisor in ipairs(value.supervisors) do
    rows[i] = { supervisor.id, supervisor.host, #supervisor.ports, #(supervisor.used or {}),
      supervisor.cpu, supervisor.ram }
  end
  return output.table_text({ 'SUPERVISOR', 'HOST', { title = 'SLOTS', align = 'right' },
    { title = 'USED', align = 'right' }, { title = 'CPU', align = 'right' },
    { title = 'RAM', align = 'right' } }, rows, { color = color })
end

local function document_text(value, color)
  if renderers[value] then return renderers[value](color) end
  if looks_like_assignment(value) then
    return require('streamlua.scheduling').render(value, { color = color })
  elseif looks_like_plan(value) then
    return require('streamlua.packing').render(value, { color = color })
  elseif looks_like_figures(value) then
    return require('streamlua.scheduling').render_figures(value, { color = color })
  elseif value.kind == 'assignment' and value.same ~= nil then
    return require('streamlua.scheduling').render_diff(value, { color = color })
  elseif looks_like_cluster(value) then
    return cluster_text(value, color)
  end
end

-- A list of at least two flat records with texts as keys: its columns, or nil.
local function record_columns(value)
  if #value < 2 then return nil end
  local columns, seen = {}, {}
  for _, record in ipairs(value) do
    if type(record) ~= 'table' or getmetatable(record) ~= nil or next(record) == nil then
      return nil
    end
    for key, item in next, record do
      if type(key) ~= 'string' or type(item) == 'table' then return nil end
      if not seen[key] then columns[#columns + 1] = key end
      seen[key] = true
    end
  end
  for key in next, value do
    if type(key) ~= 'number' then return nil end
  end
  table.sort(columns)
  return columns
end

local function record_text(value, columns, options)
  local rows = {}
  for i = 1, math.min(#value, options.items) do
    rows[i] = {}
    for k, column in ipairs(columns) do
      local item = value[i][column]
      if type(item) == 'cdata' then item = cdata_text(item) end
      rows[i][k] = item == nil and '' or item
    end
  end
  local titles = {}
  for k, column in ipairs(columns) do titles[k] = column:upper() end
  local text = output.table_text(titles, rows, { color = options.color })
  if #value > options.items then
    text = text .. ('... %d more\n'):format(#value - options.items)
  end
  return text
end

-- The documented order of the keys of what is a document.
local function order_of(value)
  if type(value) ~= 'table' then return nil end
  if looks_like_assignment(value) then return order.assignment end
  if looks_like_plan(value) then return order.plan end
  if looks_like_figures(value) then return order.figures end
  if looks_like_cluster(value) then return order.cluster end
  if value.same ~= nil then
    return value.kind == 'plan' and order.plan_diff or order.assignment_diff
  end
end

--- One line of JSON. Raises for what is no JSON.
---@param value any
---@return string
function M.json(value)
  return (output.json_text(value, order_of(value)):gsub('\n$', ''))
end

--- Text of any value, without a line end. options: `color`, `form` = 'table', 'json' or 'lua' (all
--- of it).
---@param value any
---@param options table?
---@return string
function M.text(value, options)
  options = options or {}
  local form = options.form or 'table'
  local limits = { items = M.MAX_ITEMS, color = options.color }
  local depth = M.MAX_DEPTH
  if form == 'json' then
    local ok, text = pcall(M.json, value)
    if ok then return text end
  elseif form == 'lua' then
    limits.items, depth = math.huge, math.huge
  elseif type(value) == 'table' then
    local text = document_text(value, options.color)
    if not text then
      local columns = record_columns(value)
      text = columns and record_text(value, columns, limits)
    end
    if text then return (text:gsub('\n$', '')) end
  end
  return value_lua(value, limits, depth, {})
end

return M
