--- Records as text, the way Spark prints them: (a,2), (a,(1,None)), null.
--
--     local show = require 'streamlua.streaming.show'
--     assert(show.text({ 'a', { 1, 'x' } }) == '(a,(1,x))')

local rdd = require 'streamlua.streaming.rdd'
local value = require 'streamlua.runtime.value'

local M = {}

local concat, sort, tostring, type = table.concat, table.sort, tostring, type
local floor = math.floor

local DEPTH = 16

local function number_text(number)
  if number == floor(number) and number > -1e15 and number < 1e15 then return ('%d'):format(number) end
  return tostring(number)
end

local text_of

local function map_text(map, depth)
  local names, texts = {}, {}
  for key in pairs(map) do
    local name = text_of(key, depth)
    names[#names + 1] = name
    texts[name] = text_of(map[key], depth)
  end
  sort(names)
  for i, name in ipairs(names) do names[i] = name .. ' -> ' .. texts[name] end
  return 'Map(' .. concat(names, ', ') .. ')'
end

-- A list may have holes: what counts is its greatest whole key.
local function length_of(list)
  local n = 0
  for key in pairs(list) do
    if type(key) ~= 'number' or key < 1 or key ~= floor(key) then return nil end
    if key > n then n = key end
  end
  return n
end

function text_of(item, depth)
  local kind = type(item)
  if kind == 'string' then return item end
  if kind == 'number' then return number_text(item) end
  if item == nil or item == value.null then return 'null' end
  if item == rdd.NONE then return 'None' end
  if kind == 'cdata' then return (tostring(item):gsub('[UL]+$', '')) end
  if kind ~= 'table' then return tostring(item) end
  if depth == DEPTH then return '(...)' end
  local n = length_of(item)
  if not n or n > 1000000 then return map_text(item, depth + 1) end
  local parts = {}
  for i = 1, n do parts[i] = text_of(item[i], depth + 1) end
  return '(' .. concat(parts, ',') .. ')'
end

--- The text of a record.
---@param item any
---@return string
function M.text(item) return text_of(item, 0) end

local RULE = ('-'):rep(43)

--- What `print` writes of a batch: the first n of `items`, and `...` when there are more.
---@param time integer ms
---@param items any[] up to n + 1 records
---@param n integer
---@return string
function M.batch(time, items, n)
  local lines = { RULE, ('Time: %d ms'):format(time), RULE }
  for i = 1, math.min(n, #items) do lines[#lines + 1] = M.text(items[i]) end
  if #items > n then lines[#lines + 1] = '...' end
  lines[#lines + 1] = ''
  return concat(lines, '\n') .. '\n'
end

--- The name of what a batch saves: "prefix-<ms>.suffix".
---@param prefix? string
---@param suffix? string
---@param time integer ms
---@return string
function M.file_name(prefix, suffix, time)
  local name = ('%d'):format(time)
  if prefix ~= nil and prefix ~= '' then name = prefix .. '-' .. name end
  if suffix ~= nil and suffix ~= '' then name = name .. '.' .. suffix end
  return name
end

return M
