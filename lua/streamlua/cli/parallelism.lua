-- `--parallelism c=N`: parsing of the option (repeatable, comma lists, `c=+2` and `c=-1` are
-- deltas) and its meaning against the present parallelism. `c:N` is accepted as Heron writes it.
-- Pure functions; failures are `nil, {code=, message=, hint=}` with a name of the exit table.
--
--   local parallelism = require 'streamlua.cli.parallelism'
--   local list = assert(parallelism.parse({ 'bolt=4,spout=+1' }))
--   local change = assert(parallelism.resolve(list, { { name = 'spout', parallelism = 1 },
--     { name = 'bolt', parallelism = 2 } }))
--   assert(change.parallelism.bolt == 4 and change.deltas.spout == 1)

local suggest = require 'streamlua.cli.suggest'

local M = {}

--- Growth of one component beyond this factor needs `force`.
M.MAX_GROWTH = 10

--- Most instances a request can name; a larger number is a typing error.
M.MAX = 2147483647

local function failure(code, message, hint)
  return nil, { code = code, message = message, hint = hint }
end

local function parse_piece(piece)
  local name, mark, sign, digits = piece:match('^([^=:]+)([=:])([+-]?)(%d+)$')
  -- Heron's form knows no deltas: `foo:-1` would be a number below 1.
  if not name or #digits > 15 or (mark == ':' and sign == '+') then
    return failure('usage', ("--parallelism '%s': expected COMPONENT=N, =+N or =-N with a whole "
      .. 'number N'):format(piece))
  end
  local number = tonumber(digits)
  if number > M.MAX then
    return failure('invalid', ("--parallelism '%s': the number is too large"):format(piece))
  end
  if sign == '' or mark == ':' then
    if number < 1 or sign == '-' then
      return failure('invalid', ("--parallelism '%s': it must be at least 1"):format(piece))
    end
    return { name = name, value = number }
  end
  return { name = name, delta = sign == '-' and -number or number }
end

-- Two entries of one component agree only when both ask for the same number.
local function contradicts(a, b)
  return a.value == nil or b.value == nil or a.value ~= b.value
end

--- Parses the values of the option in order. Empty pieces are skipped.
---@param texts string[]|string
---@return table[]? list of {name=, value=} or {name=, delta=}, each component once
---@return table? failure
function M.parse(texts)
  local list, seen = {}, {}
  for _, text in ipairs(type(texts) == 'table' and texts or { texts }) do
    for piece in text:gmatch('[^,]+') do
      local entry, err = parse_piece(piece)
      if not entry then
        return nil, err
      end
      local earlier = seen[entry.name]
      if earlier and contradicts(earlier, entry) then
        return failure('invalid', ("--parallelism: component '%s' is given twice"):format(
          entry.name))
      elseif not earlier then
        seen[entry.name] = entry
        list[#list + 1] = entry
      end
    end
  end
  return list
end

local function names_of(components)
  local names = {}
  for i, component in ipairs(components) do
    names[i] = component.name
  end
  return names
end

local function resolve_one(entry, current, options)
  local wanted = entry.value or current + entry.delta
  if wanted < 1 then
    return failure('invalid', ("component '%s' has %d, %+d leaves %d: it must stay at least 1")
      :format(entry.name, current, wanted - current, wanted))
  elseif wanted > M.MAX then
    return failure('invalid', ("component '%s': %d is too large"):format(entry.name, wanted))
  elseif options.guard and not options.force and wanted > current * M.MAX_GROWTH then
    return failure('invalid', ("component '%s' would grow from %d to %d, more than %d times")
      :format(entry.name, current, wanted, M.MAX_GROWTH), 'use --force if this is meant')
  end
  return wanted
end

--- What a parsed list means for components with a present parallelism.
---@param list table[] of `parse`
---@param components table[] in order: {name=, parallelism= present number, fixed= why it can not change}
---@param options table? {guard=true checks growth, force=true lifts that check}
---@return table? {parallelism= wanted by name of the named ones, deltas= non-zero by name,
---  changed= names in order of the components}
---@return table? failure
function M.resolve(list, components, options)
  options = options or {}
  local current, fixed = {}, {}
  for _, component in ipairs(components) do
    current[component.name], fixed[component.name] = component.parallelism, component.fixed
  end
  local result = { parallelism = {}, deltas = {}, changed = {} }
  for _, entry in ipairs(list) do
    if not current[entry.name] then
      local names = names_of(components)
      return failure('invalid', ("unknown component '%s'"):format(entry.name),
        suggest.hint(entry.name, names) or 'components: ' .. table.concat(names, ', '))
    end
    local wanted, err = resolve_one(entry, current[entry.name], options)
    if not wanted then
      return nil, err
    elseif fixed[entry.name] and wanted ~= current[entry.name] then
      return failure('invalid', ("component '%s': %s"):format(entry.name, fixed[entry.name]))
    end
    result.parallelism[entry.name] = wanted
    local delta = wanted - current[entry.name]
    result.deltas[entry.name] = delta ~= 0 and delta or nil
  end
  for _, component in ipairs(components) do
    if result.deltas[component.name] then
      result.changed[#result.changed + 1] = component.name
    end
  end
  return result
end

--- Declares the option on a command; its values arrive in `args.parallelism`.
function M.declare(command)
  command:option('--parallelism',
    'New parallelism: COMPONENT=N, or =+N and =-N as deltas (repeatable, comma lists).')
    :argname('COMPONENT=N'):count('*')
end

return M
