-- Data written in Lua: a text chunk that returns a table of strings, numbers, booleans and tables.
-- It runs in an environment of a few helpers, as text only, without the JIT and with a limit on its
-- instructions; functions, metatables, cycles and other values are refused with their key path.
--
--   local data = require 'streamlua.conf.data'
--   local values, lines = data.load_text('return { ram = GB(2) }', 'x.lua')
--   assert(values.ram == 2147483648 and lines.ram == 1)

local libc = require 'streamlua.connectors.libc'

local M = {}

--- Largest file, in bytes; most instructions; deepest nesting; deepest chain of `include`.
M.MAX_BYTES = 1048576
M.MAX_INSTRUCTIONS = 10000000
M.MAX_DEPTH = 32
M.MAX_INCLUDES = 8

-- As functions: strings have no methods while a text runs (`guarded`), and `include` calls us then.
local format, find, gsub, sub, match = string.format, string.find, string.gsub, string.sub, string.match

local function failure(code, message, line, hint)
  return nil, { code = code, message = message, line = line, hint = hint }
end

---------------------------------------------------------------------------------------------------
-- Lines of keys: a scan over the text that follows braces and `name =`, so that an error about a
-- key can show its line. It never decides anything; keys it does not see have no line.

local function skip_long_bracket(text, at)
  local level = match(text, '^%[(=*)%[', at)
  if not level then
    return nil
  end
  local _, stop = find(text, ']' .. level .. ']', at + #level + 2, true)
  return (stop or #text) + 1
end

local function skip_comment(text, at)
  if sub(text, at, at + 1) ~= '--' then
    return nil
  end
  return skip_long_bracket(text, at + 2) or (find(text, '\n', at, true) or #text + 1)
end

local function skip_quoted(text, at)
  local quote = match(text, '^["\']', at)
  if not quote then
    return nil
  end
  local i = at + 1
  while i <= #text do
    local c = sub(text, i, i)
    if c == '\\' then
      i = i + 1
    elseif c == quote then
      return i + 1
    end
    i = i + 1
  end
  return i
end

local function key_at(text, at)
  local name, stop = match(text, '^([%a_][%w_]*)%s*=()', at)
  if not name then
    name, stop = match(text, '^%[%s*["\']([^"\'\n]*)["\']%s*%]%s*=()', at)
  end
  if name and sub(text, stop, stop) ~= '=' then
    return name, stop
  end
end

--- Line numbers of the keys of a data text by dotted path.
---@param text string
---@return table<string, integer>
function M.key_lines(text)
  local lines, line, at, counted = {}, 1, 1, 1
  local stack, prefix, pending = {}, '', nil
  while at <= #text do
    local skipped = skip_comment(text, at) or skip_long_bracket(text, at)
    local name, stop = nil, nil
    if not skipped and #stack > 0 then
      name, stop = key_at(text, at)
    end
    skipped = skipped or (not name and skip_quoted(text, at)) or nil
    if skipped then
      at = skipped
    elseif name then
      local _, breaks = gsub(sub(text, counted, at - 1), '\n', '')
      line, counted = line + breaks, at
      lines[prefix .. name] = lines[prefix .. name] or line
      pending, at = name, stop
    else
      local c = sub(text, at, at)
      if c == '{' then
        stack[#stack + 1] = prefix
        -- The outermost table adds no name; one without a key is an item of a list.
        prefix = #stack == 1 and '' or prefix .. (pending or '?') .. '.'
        pending = nil
      elseif c == '}' and #stack > 0 then
        prefix, pending = stack[#stack], nil
        stack[#stack] = nil
      elseif c == ',' or c == ';' then
        pending = nil
      end
      local word = match(text, '^[%w_]+', at)
      at = at + (word and #word or 1)
    end
  end
  return lines
end

---------------------------------------------------------------------------------------------------
-- The check that a value is pure data.

local function path_of(prefix, key)
  local name = type(key) == 'string' and key or format('[%s]', tostring(key))
  return prefix == '' and name or prefix .. '.' .. name
end

-- Returns the path and the reason of the first impurity.
local function impurity(value, path, open, depth)
  local kind = type(value)
  if kind == 'string' or kind == 'number' or kind == 'boolean' then
    return
  elseif kind ~= 'table' then
    return path, format('a %s is no data', kind)
  elseif debug.getmetatable(value) ~= nil then
    return path, 'a table with a metatable is no data'
  elseif open[value] then
    return path, 'the table contains itself'
  elseif depth == 0 then
    return path, 'nested too deeply'
  end
  open[value] = true
  for key, item in next, value do
    if type(key) ~= 'string' and type(key) ~= 'number' then
      return path_of(path, key), format('a %s is no key', type(key))
    end
    local bad, why = impurity(item, path_of(path, key), open, depth - 1)
    if bad then
      return bad, why
    end
  end
  open[value] = nil
end

---------------------------------------------------------------------------------------------------
-- Running the chunk.

local function environment(directory, includes)
  local function scaled(name, factor)
    return function(n)
      if type(n) ~= 'number' then
        error(name .. ': expected a number', 2)
      end
      return n * factor
    end
  end
  local env = {
    KB = scaled('KB', 1024), MB = scaled('MB', 1024 ^ 2), GB = scaled('GB', 1024 ^ 3),
    TB = scaled('TB', 1024 ^ 4), sec = scaled('sec', 1), ms = scaled('ms', 0.001),
    min = scaled('min', 60),
  }
  function env.env(name, default)
    if type(name) ~= 'string' then
      error('env: expected the name of a variable', 2)
    end
    local value = os.getenv(name)
    if value == nil or value == '' then
      return default
    end
    return value
  end
  -- The tables of all files that match, later names over earlier ones.
  function env.include(pattern)
    if type(pattern) ~= 'string' then
      error('include: expected a path or a pattern', 2)
    end
    if includes >= M.MAX_INCLUDES then
      error('include: nested too deeply', 2)
    end
    if sub(pattern, 1, 1) ~= '/' then
      pattern = directory .. '/' .. pattern
    end
    local paths = libc.glob(pattern)
    if #paths == 0 and not find(pattern, '[*?[]') then
      error(format("include: no file '%s'", pattern), 2)
    end
    local result = {}
    for _, path in ipairs(paths) do
      local values, err = M.load_file(path, includes + 1)
      if not values then
        error(format('%s%s: %s', path, err.line and ':' .. err.line or '', err.message), 0)
      end
      M.merge_over(result, values)
    end
    return result
  end
  return env
end

--- Deep merge: values of `over` replace those of `into`; tables with names are merged key by key,
--- lists are replaced.
---@param into table changed
---@param over table
function M.merge_over(into, over)
  for key, value in pairs(over) do
    local old = into[key]
    if type(value) == 'table' and type(old) == 'table' and #value == 0 and #old == 0 then
      M.merge_over(old, value)
    else
      into[key] = value
    end
  end
end

-- A compiled loop ignores hooks and string methods reach beyond the environment: both are switched
-- off while foreign text runs, and on again whatever it did.
local function guarded(chunk)
  local strings = getmetatable('')
  local index = strings.__index
  local was_on = jit.status()
  local hook, mask, count = debug.gethook()
  jit.off()
  jit.flush()
  strings.__index = nil
  debug.sethook(function()
    error('the file runs too long', 0)
  end, '', M.MAX_INSTRUCTIONS)
  local ok, value = pcall(chunk)
  debug.sethook(hook, mask, count)
  strings.__index = index
  if was_on then
    jit.on()
  end
  return ok, value
end

-- A table alone is as good as one that is returned.
local function with_return(text)
  local at = find(text, '%S') or 1
  local after = skip_comment(text, at)
  while after do
    at = find(text, '%S', after) or #text + 1
    after = skip_comment(text, at)
  end
  if sub(text, at, at) == '{' then
    return sub(text, 1, at - 1) .. 'return ' .. sub(text, at)
  end
  return text
end

--- Loads data from a text: `return { ... }`, or a table alone.
---@param text string
---@param name string path for messages; `include` looks beside it
---@param includes integer? depth of inclusion
---@return table? values
---@return table lines_or_error lines of keys, or {code=, message=, line=}
function M.load_text(text, name, includes)
  if sub(text, 1, 1) == '\27' then
    return failure('invalid', 'compiled Lua is refused, only text is read')
  end
  local env = environment(match(name, '^(.*)/[^/]*$') or '.', includes or 0)
  local chunk, message = load(with_return(text), '@' .. name, 't', env)
  if not chunk then
    local line, why = match(message, ':(%d+): (.*)$')
    return failure('invalid', why or message, tonumber(line))
  end
  local ok, value = guarded(chunk)
  if not ok then
    local text_value = tostring(value)
    local line, why
    if sub(text_value, 1, #name) == name then
      line, why = match(sub(text_value, #name + 1), '^:(%d+): (.*)$')
    end
    return failure('invalid', why or text_value, tonumber(line))
  end
  if type(value) ~= 'table' then
    return failure('invalid', 'the file must return a table, it returned '
      .. (value == nil and 'nothing' or 'a ' .. type(value)))
  end
  local path, why = impurity(value, '', {}, M.MAX_DEPTH)
  local lines = M.key_lines(text)
  if path then
    return failure('invalid', format('%s: %s', path == '' and 'the table' or path, why),
      lines[path])
  end
  return value, lines
end

--- Loads data from a file.
---@param path string
---@param includes integer?
---@return table? values
---@return table lines_or_error
function M.load_file(path, includes)
  local file, message, code = io.open(path, 'rb')
  if not file then
    return failure(code == libc.ENOENT and 'not_found' or 'failed',
      (gsub(message, '^' .. gsub(path, '%p', '%%%0') .. ': ', '')))
  end
  local text, why = file:read(M.MAX_BYTES + 1)
  file:close()
  if not text and why then
    return failure('failed', why)
  elseif text and #text > M.MAX_BYTES then
    return failure('invalid', format('larger than %d bytes', M.MAX_BYTES))
  end
  return M.load_text(text or '', path, includes)
end

return M
