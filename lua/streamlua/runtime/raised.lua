--- What user code raised, as text: one line that begins with the file and line, and with `verbose` the
--- traceback of the user's functions behind it.
--
--     local guard = raised.handler({ verbose = true })
--     local ok, value = xpcall(fn, guard)
--     if not ok then print(raised.text(value)) end      -- topo.lua:3: boom

local M = {}

-- What a handler made; any other value has not been through one.
local Raised = {}
Raised.__index = Raised
Raised.__tostring = function(self) return self.message end

-- Folder of the library's own Lua files.
local OWN = (debug.getinfo(1, 'S').source:match('^@(.*)/runtime/raised%.lua$')) or '@'

--- Whether a chunk's source is a file that is not the library's own.
---@param source string
---@return boolean
function M.is_user_code(source)
  return source:sub(1, 1) == '@' and source:sub(2, #OWN + 1) ~= OWN
end

--- What one line can show of a text: its first line. `require` lists the places where it searched behind
--- that, but what is wrong with a module that it found.
---@param text string
---@return string
function M.one_line(text)
  local line, more = text:match('^%s*([^\n]*)(.*)$')
  if line:find('error loading module', 1, true) then
    return line .. ' ' .. more:match('^%s*([^\n]*)')
  end
  return more == '' and line or (line:gsub(':?%s*$', ''))
end

--- The text of any value that was raised.
---@param value any
---@return string
function M.message(value)
  local kind = type(value)
  if kind == 'string' then
    return value
  elseif kind == 'table' then
    local meta = getmetatable(value)
    if type(meta) == 'table' and meta.__tostring then return tostring(value) end
    if type(value.message) == 'string' then return value.message end
    return 'raised a table without a message'
  end
  return value == nil and 'raised nil' or 'raised ' .. tostring(value)
end

--- Whether a chunk is where the engine calls user code: frames further out belong to another call, such
--- as that of the bolt in whose emit this one runs.
---@param source string
---@return boolean
function M.is_entry(source)
  return source == '=execute' or source == '=next_tuple' or source == '@' .. OWN .. '/runtime/task.lua'
end

-- The message with the place it came from in front, the file by its whole path. Lua shortens long
-- paths in messages, and leaves the place out of errors that are no texts. Of what was raised inside
-- the library (a colon forgotten in a call of it, say) the place is that of the user's call.
local function locate(message)
  local level, innermost = 3, nil
  local info = debug.getinfo(level, 'Sl')
  local bare
  while info and not M.is_entry(info.source) do
    if info.currentline > 0 and info.source:sub(1, 1) == '@' then
      local short, is_users = info.short_src, M.is_user_code(info.source)
      if message:sub(1, #short + 1) == short .. ':' then
        if is_users then return info.source:sub(2) .. message:sub(#short + 1) end
        bare = bare or message:sub(#short + 2):match('^%d+: (.*)$')
      end
      if not innermost and is_users then
        innermost = ('%s:%d'):format(info.source:sub(2), info.currentline)
      end
    end
    level = level + 1
    info = debug.getinfo(level, 'Sl')
  end
  if innermost and (bare or not message:find('^[^\n]-:%d+: ')) then
    return innermost .. ': ' .. (bare or message)
  end
  return message
end

-- The traceback without the frames of the engine that called the user's function.
local function traceback()
  local lines = {}
  for line in debug.traceback('', 3):gmatch('[^\n]+') do lines[#lines + 1] = line end
  while #lines > 1 do
    local where = lines[#lines]:match('^%s*(.-):')
    if where and where:sub(1, 1) ~= '[' and where:find('[/.]') and where:sub(1, #OWN) ~= OWN then
      break
    end
    lines[#lines] = nil
  end
  return table.concat(lines, '\n')
end

--- A message handler for xpcall.
---@param options? { verbose?: boolean }
---@return fun(value: any): table
function M.handler(options)
  local verbose = options and options.verbose
  return function(value)
    if getmetatable(value) == Raised then return value end
    local text = M.message(value)
    local more = text:match('\n(.+)$')
    return setmetatable({
      message = locate(M.one_line(text)),
      traceback = verbose and (more and more .. '\n' or '') .. traceback() or nil,
    }, Raised)
  end
end

--- The text of what was raised, whether or not it went through a handler.
---@param value any
---@return string
function M.text(value)
  if getmetatable(value) ~= Raised then return M.one_line(M.message(value)) end
  return value.traceback and value.message .. '\n' .. value.traceback or value.message
end

--- A text that begins with a place: as it is, or behind the place where the function begins, when that
--- is user code. A function that ends in a tail call is on no traceback.
---@param text string
---@param fn? function
---@return string
function M.place(text, fn)
  if not fn or text:find('^[^\n]-:%d+: ') then return text end
  local info = debug.getinfo(fn, 'S')
  if not M.is_user_code(info.source) then return text end
  return ('%s:%d: %s'):format(info.source:sub(2), info.linedefined, text)
end

return M
