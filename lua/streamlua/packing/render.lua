-- Plans as text: Heron's dry-run tables for people, ordered JSON for programs.
--
--   local render = require 'streamlua.packing.render'
--   io.write(render.plan(plan, { color = true }))
--   io.write(render.update(old, new))
--
-- In a MODIFIED container a first column marks the rows: `+` added, `-` removed, blank kept.

local json = require 'streamlua.json'

local M = {}

local ESC = '\27['
local BOLD, RED, GREEN, RESET = ESC .. '1m', ESC .. '31m', ESC .. '32m', ESC .. '0m'
-- Combining long stroke overlay, behind every character that is struck through.
local STROKE = '\204\182'
local MIB = 1048576
local TITLES = { 'component', 'task ID', 'CPU', 'RAM (MB)', 'disk (MB)' }

-- A number of cores, always with a decimal point and no more digits than it has.
local function cores_text(cpu)
  local text = ('%.14g'):format(cpu)
  if tonumber(text) ~= cpu then text = ('%.17g'):format(cpu) end
  return text:find('[.e]') and text or text .. '.0'
end

-- The same in a table: thirds of a core are not worth 14 digits.
local function cores_cell(cpu)
  local text = ('%.3f'):format(cpu):gsub('0+$', '')
  return text:find('%.$') and text .. '0' or text
end

local function megabytes(bytes) return math.floor(bytes / MIB) end

local function plain(_, text) return text end

local function coloured(code, text) return code and code .. text .. RESET or text end

local function painter(color) return color and coloured or plain end

-- A cell of a removed row: red and struck through, blanks too.
local function removed(paint, text)
  if paint == plain then return text end
  return paint(RED, (text:gsub('[%z\1-\127\194-\244][\128-\191]*', '%0' .. STROKE)))
end

-- " (+50.00%)" of two amounts, or nothing when there is nothing to say.
local function percentage(paint, old, new)
  if old == new or old == 0 then return '' end
  local text = (' (%+.2f%%)'):format((new - old) / old * 100)
  return paint(new > old and GREEN or RED, text)
end

local function resource_line(paint, container, old)
  local ram, disk = megabytes(container.ram), megabytes(container.disk)
  local changed = { '', '', '' }
  if old then
    changed = { percentage(paint, old.cpu, container.cpu),
      percentage(paint, megabytes(old.ram), ram), percentage(paint, megabytes(old.disk), disk) }
  end
  return ('CPU: %s%s, RAM: %d MB%s, Disk: %d MB%s'):format(cores_cell(container.cpu), changed[1],
    ram, changed[2], disk, changed[3])
end

local function cells_of(instance)
  return { instance.component, tostring(instance.task), cores_cell(instance.cpu),
    ('%d'):format(megabytes(instance.ram)), ('%d'):format(megabytes(instance.disk)) }
end

-- Rows are {mark=, instance=}; the marker column is there when `marked`.
local function table_lines(out, paint, rows, marked)
  local widths, cells = {}, {}
  for c, title in ipairs(TITLES) do widths[c] = #title end
  for r, row in ipairs(rows) do
    cells[r] = cells_of(row.instance)
    for c, text in ipairs(cells[r]) do widths[c] = math.max(widths[c], #text) end
  end
  local length = 1
  for _, width in ipairs(widths) do length = length + width + 3 end
  if marked then length = length + 4 end
  local function line(mark, texts, decorate)
    local parts = marked and { mark } or {}
    for c, text in ipairs(texts) do
      parts[#parts + 1] = decorate((' '):rep(widths[c] - #text) .. text)
    end
    out[#out + 1] = '| ' .. table.concat(parts, ' | ') .. ' |'
  end
  out[#out + 1] = ('='):rep(length)
  line(' ', TITLES, function(text) return paint(BOLD, text) end)
  out[#out + 1] = ('-'):rep(length)
  for r, row in ipairs(rows) do
    line(row.mark, cells[r], function(text)
      if row.mark == '-' then return removed(paint, text) end
      return paint(row.mark == '+' and GREEN or nil, text)
    end)
  end
  out[#out + 1] = ('='):rep(length)
end

local function rows_of(container, mark)
  local rows = {}
  for i, instance in ipairs(container.instances) do rows[i] = { mark = mark, instance = instance } end
  return rows
end

local function by_task(a, b) return a.instance.task < b.instance.task end

local function append_sorted(to, list, mark)
  local rows = {}
  for i, instance in ipairs(list) do rows[i] = { mark = mark, instance = instance } end
  table.sort(rows, by_task)
  for _, row in ipairs(rows) do to[#to + 1] = row end
end

--- A plan as tables, one block a container.
---@param plan table
---@param options table? {color=}
---@return string
function M.plan(plan, options)
  local paint = painter(options and options.color)
  local out = { ('Total number of containers: %d'):format(#plan.containers),
    'Using packing class: ' .. plan.packing }
  for k, container in ipairs(plan.containers) do
    if k > 1 then out[#out + 1] = '' end
    out[#out + 1] = paint(BOLD, ('Container %d'):format(container.id))
    out[#out + 1] = resource_line(paint, container)
    table_lines(out, paint, rows_of(container, ' '), false)
  end
  return table.concat(out, '\n') .. '\n'
end

local STATE_COLORS = { NEW = GREEN, REMOVED = RED }

local function update_block(out, paint, entry)
  local container = entry.new or entry.old
  local title = paint(BOLD, ('Container %d'):format(entry.id))
  out[#out + 1] = ('%s %s'):format(title, paint(STATE_COLORS[entry.state], entry.state))
  out[#out + 1] = resource_line(paint, container, entry.state == 'MODIFIED' and entry.old or nil)
  if entry.state ~= 'MODIFIED' then
    local marks = { NEW = '+', REMOVED = '-' }
    table_lines(out, paint, rows_of(container, marks[entry.state] or ' '), false)
    return
  end
  local added = {}
  for _, instance in ipairs(entry.added) do added[instance.task] = true end
  local kept = {}
  for _, instance in ipairs(entry.new.instances) do
    if not added[instance.task] then kept[#kept + 1] = instance end
  end
  local rows = {}
  append_sorted(rows, kept, ' ')
  append_sorted(rows, entry.added, '+')
  append_sorted(rows, entry.removed, '-')
  table_lines(out, paint, rows, true)
end

--- The change from one plan to another as tables, one block a container of either plan.
---@param old table plan in normal form
---@param new table plan in normal form
---@param options table? {color=, delta= of streamlua.packing.native when it is there already}
---@return string
function M.update(old, new, options)
  options = options or {}
  local paint = painter(options.color)
  local delta = options.delta or assert(require('streamlua.packing.native').delta(old, new))
  local out = { ('Total number of containers: %d'):format(#new.containers),
    'Using repacking class: ' .. new.packing }
  for k, entry in ipairs(delta.containers) do
    if k > 1 then out[#out + 1] = '' end
    update_block(out, paint, entry)
  end
  return table.concat(out, '\n') .. '\n'
end

local function json_number(value)
  return value == math.floor(value) and ('%d'):format(value) or cores_text(value)
end

local function json_string(text) return (assert(json.encode(text))) end

local function container_json(out, container)
  out[#out + 1] = ('{"id":%d,"cpu":%s,"ram":%s,"disk":%s'):format(container.id,
    cores_text(container.cpu), json_number(container.ram), json_number(container.disk))
  for _, key in ipairs({ 'supervisor', 'host', 'port' }) do
    if container[key] ~= nil then
      out[#out + 1] = (',"%s":%s'):format(key, assert(json.encode(container[key])))
    end
  end
  out[#out + 1] = ',"instances":['
  for i, item in ipairs(container.instances) do
    out[#out + 1] = ('%s{"component":%s,"task":%d,"index":%d,"cpu":%s,"ram":%s,"disk":%s}'):format(
      i > 1 and ',' or '', json_string(item.component), item.task, item.index, cores_text(item.cpu),
      json_number(item.ram), json_number(item.disk))
  end
  out[#out + 1] = ']}'
end

--- A plan as one line of JSON with its keys in the documented order.
---@param plan table
---@return string
function M.json(plan)
  local out = { ('{"topology":%s,"version":%d,"packing":%s,"containers":['):format(
    json_string(plan.topology), plan.version, json_string(plan.packing)) }
  for k, container in ipairs(plan.containers) do
    if k > 1 then out[#out + 1] = ',' end
    container_json(out, container)
  end
  out[#out + 1] = ']'
  if plan.key_groups ~= nil then
    out[#out + 1] = ',"key_groups":' .. assert(json.encode(plan.key_groups))
  end
  out[#out + 1] = '}'
  return table.concat(out)
end

return M
