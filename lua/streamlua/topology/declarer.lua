--- What `t:bolt(...)` returns: says which streams the component reads and how they are grouped.
--
--     t:bolt('count', count, { parallelism = 4 })
--       :fields('split', { 'word' })
--       :all('control', 'settings')
--
-- Every method adds one input and returns the declarer. Mistakes in the arguments are raised at the
-- caller's line; whether the source, its stream and its fields exist is found by `t:validate()`,
-- because the source may be declared later.

local grouping = require 'streamlua.topology.grouping'
local place = require 'streamlua.topology.place'
local suggest = require 'streamlua.cli.suggest'

local call, caller, mistake, shown = place.call, place.caller, place.mistake, place.shown

local M = {}

local Declarer = {}

function Declarer.__index(_, key)
  local method = Declarer[key]
  if method == nil and type(key) == 'string' then
    error(("there is no grouping '%s' (%s)"):format(key,
      suggest.hint(key, grouping.names) or table.concat(grouping.names, ', ')), 2)
  end
  return method
end

-- input: {grouping=, source=, stream=, fields=, fn=, file=, line=} as the user gave it.
local function add(self, input)
  local name = input.grouping
  if type(input.source) ~= 'string' then
    mistake('%s: the source must be the name of a component, got %s', name, shown(input.source))
  elseif input.stream ~= nil and type(input.stream) ~= 'string' then
    mistake('%s: the stream must be a name, got %s', name, shown(input.stream))
  end
  input.stream = input.stream or 'default'
  local entry = rawget(self, 'entry')
  entry.inputs[#entry.inputs + 1] = input
  return self
end

local function add_plain(self, name, source, stream, file, line)
  return add(self, { grouping = name, source = source, stream = stream, file = file, line = line })
end

local function add_keyed(self, name, source, fields, stream, file, line)
  if type(fields) ~= 'table' then
    mistake('%s: the fields must be a list of names, got %s', name, shown(fields))
  end
  local names, count = {}, 0
  for key, field in pairs(fields) do
    if type(key) ~= 'number' or type(field) ~= 'string' then
      mistake('%s: the fields must be a list of names, got %s among them', name, shown(field))
    end
    count = count + 1
  end
  for i, field in ipairs(fields) do names[i] = field end
  if #names ~= count then mistake('%s: the list of fields has a gap', name) end
  return add(self, { grouping = name, source = source, stream = stream, fields = names,
    file = file, line = line })
end

local function add_custom(self, source, fn, stream, file, line)
  if type(fn) ~= 'function' then
    mistake('custom: the second argument must be a function (values, tasks), got %s', shown(fn))
  end
  return add(self, { grouping = 'custom', source = source, stream = stream, fn = fn, file = file,
    line = line })
end

--- Each task gets an equal share, in random order.
---@param source string name of the component that is read
---@param stream? string 'default' when missing
function Declarer:shuffle(source, stream)
  local file, line = caller(2)
  return (call(add_plain, self, 'shuffle', source, stream, file, line))
end

--- Tuples with equal values in these fields go to the same task.
---@param source string
---@param fields string[]
---@param stream? string
function Declarer:fields(source, fields, stream)
  local file, line = caller(2)
  return (call(add_keyed, self, 'fields', source, fields, stream, file, line))
end

--- Every task gets every tuple.
---@param source string
---@param stream? string
function Declarer:all(source, stream)
  local file, line = caller(2)
  return (call(add_plain, self, 'all', source, stream, file, line))
end

--- The task with the lowest id gets every tuple.
---@param source string
---@param stream? string
function Declarer:global(source, stream)
  local file, line = caller(2)
  return (call(add_plain, self, 'global', source, stream, file, line))
end

--- The emitter names the task; the stream must be declared direct.
---@param source string
---@param stream string
function Declarer:direct(source, stream)
  local file, line = caller(2)
  return (call(add_plain, self, 'direct', source, stream, file, line))
end

--- The engine chooses; only the default stream.
---@param source string
function Declarer:none(source)
  local file, line = caller(2)
  return (call(add_plain, self, 'none', source, nil, file, line))
end

--- Tasks in the emitter's own worker if there are any, else a shuffle.
---@param source string
---@param stream? string
function Declarer:local_or_shuffle(source, stream)
  local file, line = caller(2)
  return (call(add_plain, self, 'local_or_shuffle', source, stream, file, line))
end

--- Each key has two candidate tasks; the one that got less so far is taken.
---@param source string
---@param fields string[]
---@param stream? string
function Declarer:partial_key(source, fields, stream)
  local file, line = caller(2)
  return (call(add_keyed, self, 'partial_key', source, fields, stream, file, line))
end

--- The function chooses.
---@param source string
---@param fn fun(values: table, tasks: integer[]): integer|integer[] a task or a list of tasks
---@param stream? string
function Declarer:custom(source, fn, stream)
  local file, line = caller(2)
  return (call(add_custom, self, source, fn, stream, file, line))
end

--- A declarer that adds to entry.inputs.
---@param entry table component entry of a topology
---@return table declarer
function M.new(entry) return setmetatable({ entry = entry }, Declarer) end

return M
