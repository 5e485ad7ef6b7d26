-- Completion of names, fields, methods, module names, topology files and dot commands.
--
--   local complete = require 'streamlua.repl.complete'
--   complete.matches(env, 'sched', 1, 5)            -- { 'schedule', 'scheduler' }
--   complete.matches(env, 't:val', 1, 5)            -- { 't:validate' }

local help = require 'streamlua.repl.help'
local libc = require 'streamlua.connectors.libc'

local M = {}

local COMMANDS = { '.dump', '.help', '.jit', '.load', '.names', '.quit', '.reload', '.set', '.time' }

local KEYWORDS = { 'and', 'break', 'do', 'else', 'elseif', 'end', 'false', 'for', 'function', 'if', 'in',
  'local', 'nil', 'not', 'or', 'repeat', 'return', 'then', 'true', 'until', 'while' }

local function starts_with(text, prefix) return text:sub(1, #prefix) == prefix end

local function add(list, seen, text)
  if not seen[text] then
    seen[text] = true
    list[#list + 1] = text
  end
end

-- The value of a chain like `a.b` without calling anything; nil when a part is missing.
local function value_of(env, chain)
  local value = env
  for part in chain:gmatch('[^.:]+') do
    if type(value) ~= 'table' and type(value) ~= 'string' then return nil end
    local ok, item = pcall(function() return value[part] end)
    if not ok then return nil end
    value = item
  end
  return value
end

local function member_names(value)
  if type(value) == 'string' then value = string end
  local list = {}
  for _, member in ipairs(type(value) == 'table' and help.members(value) or {}) do
    list[#list + 1] = member
  end
  return list
end

local function fields(env, word)
  local chain, mark, prefix = word:match('^(.*)([.:])([%w_]*)$')
  local matches, seen = {}, {}
  for _, member in ipairs(member_names(value_of(env, chain))) do
    if starts_with(member[1], prefix) and (mark == '.' or type(member[2]) == 'function') then
      add(matches, seen, chain .. mark .. member[1])
    end
  end
  return matches
end

local function globals(env, prefix)
  local matches, seen = {}, {}
  for name in pairs(env) do
    if type(name) == 'string' and starts_with(name, prefix) then add(matches, seen, name) end
  end
  for name in pairs(_G) do
    if type(name) == 'string' and starts_with(name, prefix) then add(matches, seen, name) end
  end
  for _, word in ipairs(KEYWORDS) do
    if starts_with(word, prefix) then add(matches, seen, word) end
  end
  return matches
end

-- Files and folders; a folder ends in '/'.
local function files(prefix)
  local matches = {}
  local pattern = prefix:gsub('[%*%?%[\\]', '\\%0') .. '*'
  for _, path in ipairs(libc.glob(pattern) or {}) do
    local stat = libc.stat(path)
    matches[#matches + 1] = stat and stat.kind == 'directory' and path .. '/' or path
  end
  return matches
end

local function modules(prefix)
  local matches, seen = {}, {}
  for name in pairs(package.loaded) do
    if starts_with(name, prefix) then add(matches, seen, name) end
  end
  for path in package.path:gmatch('[^;]+') do
    local root = path:match('^(.*)/%?%.lua$')
    if root then
      for _, file in ipairs(libc.glob(root .. '/' .. prefix:gsub('%.', '/') .. '*') or {}) do
        local name = file:sub(#root + 2):gsub('/', '.')
        local module = name:match('^(.*)%.lua$')
        add(matches, seen, module or name)
      end
    end
  end
  return matches
end

-- The quote that is open at the end of a text, or nil.
local function open_quote(text)
  local quote
  for c in text:gsub('\\.', ''):gmatch('[\'"]') do
    if not quote then
      quote = c
    elseif quote == c then
      quote = nil
    end
  end
  return quote
end

--- Ways to complete what stands at from..to of a line, sorted.
---@param env table names of the session
---@param line string
---@param from integer
---@param to integer
---@return string[]
function M.matches(env, line, from, to)
  local before, word = line:sub(1, from - 1), line:sub(from, to)
  local matches
  if open_quote(before) then
    -- From the quote on: readline may have cut the word at a blank.
    local is_require = before:find('require%s*%(?%s*[\'"]$')
    matches = is_require and modules(word) or files(word)
  elseif before:find('^%s*%.load%s+$') then
    matches = files(word)
  elseif before:find('^%s*$') and word:find('^%.') then
    matches = {}
    for _, command in ipairs(COMMANDS) do
      if starts_with(command, word) then matches[#matches + 1] = command end
    end
  elseif word:find('[.:]') then
    matches = fields(env, word)
  else
    matches = globals(env, word)
  end
  table.sort(matches)
  return matches
end

return M
