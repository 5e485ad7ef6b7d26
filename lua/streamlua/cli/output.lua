-- What commands print: aligned tables for people, one JSON document for programs, colour.
-- Pure functions from values to text; `writer` is the only part that touches a stream.
--
--   local output = require 'streamlua.cli.output'
--   print(output.table_text({ 'NAME', 'TASKS' }, { { 'wordcount', 7 } }))

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'

local M = {}

-- Names that are lists wherever they stand in our documents: an empty table there is `[]`.
local lists = {}
for name in ([[topologies containers instances workers tasks supervisors events ports used inputs
  isolation user_workers on_different_nodes dead_tasks unstopped_tasks dead checks commands settings
  added removed unchanged warnings problems moves deleted]]):gmatch('%S+') do
  lists[name] = true
end

local function mark_lists(value, seen)
  for key, item in pairs(value) do
    if type(item) == 'table' and not seen[item] then
      seen[item] = true
      if lists[key] and next(item) == nil and getmetatable(item) == nil then
        json.array(item)
      else
        mark_lists(item, seen)
      end
    end
  end
  return value
end

--- One JSON document with a line end. Raises when the value can not be written.
---@param value any
---@param order table? of the keys (streamlua.json.encode)
---@return string
function M.json_text(value, order)
  if type(value) == 'table' then
    mark_lists(value, {})
  end
  local text, err = json.encode(value, { order = order })
  if not text then
    error(err, 0)
  end
  return text .. '\n'
end

local sgr = { bold = '\27[1m', red = '\27[31m', green = '\27[32m', yellow = '\27[33m',
  cyan = '\27[36m', dim = '\27[2m' }
local reset = '\27[0m'

--- Text in a colour (bold, red, green, yellow, cyan, dim) when `on`, else the text as it is.
function M.paint(on, colour, text)
  return on and sgr[colour] .. text .. reset or text
end

--- Columns that a text takes on a terminal: escapes and combining strokes take none, other UTF-8
--- sequences one.
---@param text string
---@return integer
function M.width(text)
  local plain = text:gsub('\27%[[%d;]*m', ''):gsub('\204\182', '')
  local _, continuation = plain:gsub('[\128-\191]', '')
  return #plain - continuation
end

local function cell_text(value)
  if value == nil then
    return '-'
  end
  if type(value) == 'number' and value ~= math.floor(value) then
    return ('%.3f'):format(value):gsub('0+$', ''):gsub('%.$', '')
  end
  -- Line ends and other control characters would break the table.
  return (tostring(value):gsub('[%z\1-\26\28-\31]', ' '))
end

--- Columns from a list of titles or of {title=, align='left'|'right'} and rows (lists of values,
--- positions by column). Numbers are right-aligned unless told otherwise.
---@param columns table[]|string[]
---@param rows table[]
---@param options table? {headers=false, indent='', color=}
---@return string
function M.table_text(columns, rows, options)
  options = options or {}
  local titles, aligned, widths, cells, right = {}, {}, {}, {}, {}
  for i, column in ipairs(columns) do
    titles[i] = type(column) == 'table' and column.title or column
    aligned[i] = type(column) == 'table' and column.align or nil
    widths[i] = options.headers ~= false and M.width(titles[i]) or 0
    right[i] = aligned[i] == 'right'
  end
  for r, row in ipairs(rows) do
    cells[r] = {}
    for i = 1, #columns do
      local value = row[i]
      if type(value) == 'number' and not aligned[i] then
        right[i] = true
      end
      cells[r][i] = cell_text(value)
      widths[i] = math.max(widths[i], M.width(cells[r][i]))
    end
  end
  local lines = {}
  local function add(texts, colour)
    local parts = {}
    for i = 1, #columns do
      local fill = (' '):rep(widths[i] - M.width(texts[i]))
      parts[i] = right[i] and fill .. texts[i] or texts[i] .. fill
    end
    local line = (options.indent or '') .. table.concat(parts, '  ')
    lines[#lines + 1] = M.paint(colour ~= nil, colour or 'bold', (line:gsub('%s+$', '')))
  end
  if options.headers ~= false then
    add(titles, options.color and 'bold' or nil)
  end
  for _, texts in ipairs(cells) do
    add(texts)
  end
  return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
end

--- Whether to colour a stream: `mode` is auto, always or never; auto asks the terminal and honours
--- NO_COLOR and TERM=dumb.
---@param mode string
---@param fd integer
---@param getenv fun(name: string): string?
---@return boolean
function M.use_color(mode, fd, getenv)
  if mode == 'always' then
    return true
  elseif mode == 'never' then
    return false
  end
  local no_color = getenv('NO_COLOR')
  if (no_color and no_color ~= '') or getenv('TERM') == 'dumb' then
    return false
  end
  return libc.is_terminal(fd)
end

--- Raised instead of an error when the reader of standard output went away.
M.BROKEN_PIPE = setmetatable({}, { __tostring = function() return 'broken pipe' end })

local Writer = {}
Writer.__index = Writer

local function checked(ok, message, code)
  if ok then
    return
  end
  if code == libc.EPIPE then
    error(M.BROKEN_PIPE, 0)
  end
  error('can not write the result: ' .. tostring(message), 0)
end

--- Writes texts; raises BROKEN_PIPE or a message.
function Writer:write(...)
  checked(self.file:write(...))
  return self
end

function Writer:flush()
  checked(self.file:flush())
end

--- A checked writer over a Lua file.
function M.writer(file)
  return setmetatable({ file = file }, Writer)
end

return M
