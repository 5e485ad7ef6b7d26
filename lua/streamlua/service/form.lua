-- Parameters of HTTP requests: targets ("/a/b?c=d"), forms and multipart bodies, read and written.
-- Readers return nil and a text for what is none; nothing here raises.
--
--   local form = require 'streamlua.service.form'
--   local path, values = form.target('/api/v1/topologies/words?wait=5s')
--   assert(path[4] == 'words' and values.wait[1] == '5s')

local M = {}

--- Most parameters or parts of a request.
M.MAX = 4096

--- A text without its %XX; nil when one is cut off or no number.
---@param text string
---@return string?
function M.decode(text)
  local is_good = true
  local plain = text:gsub('%%(..?)', function(digits)
    local number = digits:find('^%x%x$') and tonumber(digits, 16)
    is_good = is_good and number ~= nil and number ~= false
    return number and string.char(number) or ''
  end)
  return is_good and not text:find('%%$') and plain or nil
end

--- A text as it stands in a target or a form.
---@param text string
---@return string
function M.encode(text)
  return (text:gsub('[^%w%-%._~]', function(c) return ('%%%02X'):format(c:byte()) end))
end

--- Values of a query or a form body, by name in the order in which they came.
---@param text string
---@return table<string, string[]>? values
---@return string? message
function M.fields(text)
  local values, count = {}, 0
  for piece in text:gmatch('[^&]+') do
    local name, value = piece:match('^([^=]*)=?(.*)$')
    name, value = M.decode((name:gsub('%+', ' '))), M.decode((value:gsub('%+', ' ')))
    if not (name and value) or name == '' then
      return nil, ("the parameter '%s' can not be read"):format(piece:sub(1, 80))
    end
    count = count + 1
    if count > M.MAX then return nil, ('more than %d parameters'):format(M.MAX) end
    local list = values[name] or {}
    values[name] = list
    list[#list + 1] = value
  end
  return values
end

--- Parts of a path, decoded, and the values behind it.
---@param target string
---@return string[]? path
---@return table<string, string[]>|string values or a message
function M.target(target)
  local text, query = target:match('^([^?]*)%??(.*)$')
  local path = {}
  for part in text:gmatch('[^/]+') do
    local plain = M.decode(part)
    if not plain or plain:find('%z') or #path == 16 then return nil, 'the path can not be read' end
    path[#path + 1] = plain
  end
  local values, message = M.fields(query)
  if not values then return nil, message end
  return path, values
end

--- Parts of a multipart body: a list of {name=, filename=, content=}.
---@param body string
---@param content_type string
---@return table[]? parts
---@return string? message
function M.multipart(body, content_type)
  local boundary = content_type:match('boundary="([^"]+)"') or content_type:match('boundary=([^;%s]+)')
  if not boundary or #boundary > 70 then return nil, 'the multipart body has no boundary' end
  local mark, parts = '--' .. boundary, {}
  local at = select(2, body:find(mark, 1, true))
  if not at then return nil, 'the multipart body has no part' end
  while true do
    local after = body:sub(at + 1, at + 2)
    if after == '--' then return parts end
    local head_end = select(2, body:find('\r\n\r\n', at + 1, true))
    local stop, next_at = body:find('\r\n' .. mark, head_end or #body, true)
    if after ~= '\r\n' or not head_end or not stop then
      return nil, 'the multipart body is cut off'
    end
    local head = body:sub(at + 3, head_end - 2)
    local line = head:lower():match('content%-disposition:[^\r\n]*') or ''
    local from = head:lower():find('content-disposition:', 1, true)
    local disposition = from and head:sub(from, from + #line - 1) or ''
    local name = disposition:match('[;%s]name="([^"]*)"') or disposition:match('[;%s]name=([^;%s]+)')
    if not name then return nil, 'a part of the multipart body has no name' end
    parts[#parts + 1] = { name = name, filename = disposition:match('filename="([^"]*)"'),
      content = body:sub(head_end + 1, stop - 1) }
    if #parts > M.MAX then return nil, ('more than %d parts'):format(M.MAX) end
    at = next_at
  end
end

--- A multipart body with the parts {name=, filename=, content=}.
---@param parts table[]
---@param boundary string that is in none of them
---@return string body
---@return string content_type
function M.multipart_text(parts, boundary)
  local out = {}
  for _, part in ipairs(parts) do
    local file = part.filename and ('; filename="%s"'):format(part.filename) or ''
    out[#out + 1] = ('--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n'):format(boundary,
      part.name, file)
    out[#out + 1] = part.content
    out[#out + 1] = '\r\n'
  end
  out[#out + 1] = '--' .. boundary .. '--\r\n'
  return table.concat(out), 'multipart/form-data; boundary=' .. boundary
end

return M
