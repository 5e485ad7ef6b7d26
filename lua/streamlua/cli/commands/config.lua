-- `streamlua config view [--explain]`: the settings in force and where each comes from.

local output = require 'streamlua.cli.output'
local schema = require 'streamlua.conf.schema'

-- A secret is shown to nobody, not even in JSON.
local function shown(name, value)
  local entry = schema.by_name[name:match('^[^.]+')]
  if entry and entry.secret then
    return '********'
  end
  return value
end

local function value_text(value)
  if type(value) == 'string' then
    return value
  elseif type(value) == 'table' then
    return (output.json_text(value):gsub('\n$', ''))
  end
  return tostring(value)
end

-- Effective keys, dotted, sorted: {key=, value=, source=, file=, line=}.
local function rows_of(config)
  local rows = {}
  for key, source in pairs(config.source) do
    local value = config.values
    for part in key:gmatch('[^.]+') do
      value = value[part]
    end
    rows[#rows + 1] = { key = key, value = shown(key, value), source = source.text,
      file = source.file, line = source.line }
  end
  table.sort(rows, function(a, b) return a.key < b.key end)
  return rows
end

local function view(context, args)
  local config = context.config
  local rows = rows_of(config)
  if context.output == 'json' then
    if args.explain then
      context:print_json({ settings = rows })
      return
    end
    local values = {}
    for name, value in pairs(config.values) do
      values[name] = shown(name, value)
    end
    context:print_json(values)
    return
  end
  local columns = args.explain and { 'SETTING', { title = 'VALUE', align = 'left' }, 'SOURCE' }
    or { 'SETTING', { title = 'VALUE', align = 'left' } }
  local cells = {}
  for i, row in ipairs(rows) do
    cells[i] = { row.key, value_text(row.value), args.explain and row.source or nil }
  end
  context:print_table(columns, cells)
end

return {
  name = 'config',
  summary = 'Show the settings in force and where each comes from.',
  declare = function(command)
    command:require_command(true)
    local child = command:command('view', 'Print every effective setting.')
    child:flag('--explain', 'Name the source of each: option, variable, file:line, built in.')
  end,
  run = view,
}
