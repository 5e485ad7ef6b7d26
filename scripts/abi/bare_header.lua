--- Reads bare headers: splits their text into declarations with the comments before them.
--
--     local header = dofile('scripts/abi/bare_header.lua')
--     for _, d in ipairs(header.parse(text)) do print(d.kind, d.name, d.comment) end
--
-- It knows the subset of C that bare headers use (CONTRIBUTING, "Add an ABI function"): structs,
-- unions, enums, prototypes, typedefs and `static const` integers.

local M = {}

-- Cuts the text into pieces {kind = 'comment' | 'code', text, line}.
local function pieces(text)
  local out, at, line = {}, 1, 1
  local function push(kind, stop)
    local part = text:sub(at, stop)
    out[#out + 1] = { kind = kind, text = part, line = line }
    line = line + select(2, part:gsub('\n', '\n'))
    at = stop + 1
  end
  while at <= #text do
    local two = text:sub(at, at + 1)
    if two == '/*' then
      local _, stop = text:find('*/', at + 2, true)
      push('comment', assert(stop, 'comment without an end'))
    elseif two == '//' then
      push('comment', (text:find('\n', at, true) or #text + 1) - 1)
    else
      local stop = text:find('/[/*]', at)
      push('code', stop and stop - 1 or #text)
    end
  end
  return out
end

-- Comment text without its marks and without blank lines at both ends.
local function comment_text(raw)
  local body = raw:gsub('^/%*+', ''):gsub('%*+/$', ''):gsub('^//+', '')
  local lines = {}
  for line in (body .. '\n'):gmatch('(.-)\n') do
    lines[#lines + 1] = line:gsub('^%s*%*? ?', ''):gsub('%s+$', '')
  end
  while lines[1] == '' do table.remove(lines, 1) end
  while lines[#lines] == '' do table.remove(lines) end
  return table.concat(lines, '\n')
end

local function squeeze(text) return (text:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', '')) end

-- Splits at a separator outside of (), [] and {}.
local function split(text, separator)
  local out, depth, from = {}, 0, 1
  for i = 1, #text do
    local c = text:sub(i, i)
    if c:find('[%(%[{]') then
      depth = depth + 1
    elseif c:find('[%)%]}]') then
      depth = depth - 1
    elseif c == separator and depth == 0 then
      out[#out + 1] = text:sub(from, i - 1)
      from = i + 1
    end
  end
  out[#out + 1] = text:sub(from)
  return out
end

local function without_attributes(text)
  return (text:gsub('__attribute__%s*%b()', ''))
end

-- Type and name of one declarator such as `const char *name`, `int32_t a[4]`, `void (*fn)(int)`.
local function declarator(text)
  text = squeeze(text)
  local name = text:match('%(%*%s*([%a_][%w_]*)%s*%)%s*%(')
  if name then return { name = name, type = 'void *', callback = true } end
  local head, tail = text:match('^([^%[:]*)(.*)$')
  head = squeeze(head)
  local kind, last = head:match('^(.-)([%a_][%w_]*)$')
  if not kind or kind == '' then return { name = nil, type = head } end
  return {
    name = last,
    type = squeeze(kind),
    array = tail:match('^%[') and tail or nil,
    flexible = tail:match('^%[%s*%]') ~= nil,
    bitfield = tail:match('^:') ~= nil,
  }
end

-- Fields of a struct body; those of nameless members count as the struct's own.
local function fields(body, out)
  out = out or {}
  for _, member in ipairs(split(body, ';')) do
    member = squeeze(without_attributes(member))
    if member ~= '' then
      local inner, after = member:match('^[%a_][%w_ ]*(%b{})%s*(.*)$')
      if inner and after == '' then
        fields(inner:sub(2, -2), out)
      elseif inner then
        local field = declarator('nested ' .. after)
        out[#out + 1] = field
      else
        local parts = split(member, ',')
        local first = declarator(parts[1])
        out[#out + 1] = first
        for i = 2, #parts do
          local stars, rest = squeeze(parts[i]):match('^([%* ]*)(.*)$')
          out[#out + 1] = declarator(first.type:gsub('[%* ]+$', '') .. ' ' .. stars .. rest)
        end
      end
    end
  end
  return out
end

local function enumerators(body)
  local out = {}
  for _, part in ipairs(split(body, ',')) do
    local name = squeeze(part):match('^[%a_][%w_]*')
    if name then out[#out + 1] = name end
  end
  return out
end

local function parameters(text)
  local out = {}
  for _, part in ipairs(split(text, ',')) do
    part = squeeze(part)
    if part == '...' then
      out[#out + 1] = { name = '...', type = '...' }
    elseif part ~= '' and part ~= 'void' then
      local p = declarator(part)
      p.name = p.name or ('arg' .. (#out + 1))
      out[#out + 1] = p
    end
  end
  return out
end

local function classify(code)
  local text = squeeze(without_attributes(code))
  if text:find('^typedef ') then
    return { kind = 'typedef', name = text:match('([%a_][%w_]*)$') or text:match('%(%*%s*([%w_]+)') }
  end
  local keyword, tag, body = text:match('^(%a+) ?([%w_]*) ?(%b{})$')
  if keyword == 'enum' then
    return { kind = 'enum', name = tag, values = enumerators(body:sub(2, -2)) }
  elseif keyword == 'struct' or keyword == 'union' then
    return { kind = keyword, name = tag, fields = fields(body:sub(2, -2)) }
  end
  tag = text:match('^struct ([%w_]+)$')
  if tag then return { kind = 'opaque', name = tag } end
  if text:find('^static const ') then
    return { kind = 'constant', name = text:match('([%w_]+) ?=') }
  end
  local before, arguments = text:match('^([^%(]-)%s*(%b())$')
  if before then
    local d = declarator(before)
    return { kind = 'function', name = d.name, returns = d.type,
      parameters = parameters(arguments:sub(2, -2)) }
  end
  error('not a declaration that bare headers may have: ' .. text)
end

--- Parses the text of bare headers.
---@param text string
---@return table[] declarations each {kind, name, comment, line, text, ...}, in order
function M.parse(text)
  local out, code, comment, line, depth = {}, '', nil, nil, 0
  for _, piece in ipairs(pieces(text)) do
    if piece.kind == 'comment' then
      if code:match('^%s*$') then comment = comment_text(piece.text) end
    else
      local at_line = piece.line
      for c in piece.text:gmatch('.') do
        if c == '\n' then at_line = at_line + 1 end
        if c == ';' and depth == 0 then
          local d = classify(code)
          d.comment, d.line, d.text = comment, line, squeeze(code)
          out[#out + 1] = d
          code, comment, line = '', nil, nil
        else
          if c == '{' then depth = depth + 1 elseif c == '}' then depth = depth - 1 end
          if not line and not c:find('%s') then line = at_line end
          code = code .. c
        end
      end
    end
  end
  assert(code:match('^%s*$'), 'text after the last declaration: ' .. code)
  return out
end

--- Reads a whole file.
---@param path string
---@return string
function M.read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

--- The bare headers that core/abi/order.txt lists.
---@param root string folder of the source tree
---@return string[] paths relative to core/
function M.order(root)
  local out = {}
  for line in io.lines(root .. '/core/abi/order.txt') do
    line = squeeze(line)
    if line ~= '' and not line:find('^#') then out[#out + 1] = line end
  end
  return out
end

--- The text that the library embeds: all bare headers one after the other.
---@param root string
---@return string
function M.text(root)
  local out = {}
  for _, path in ipairs(M.order(root)) do out[#out + 1] = M.read(root .. '/core/' .. path) end
  return table.concat(out)
end

return M
