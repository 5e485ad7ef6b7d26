-- Reads documents that commands take as arguments, with limits and errors that name the line.
-- Results are {value=} or {code=, message=, line=}; `Context:read_json` turns the latter into a
-- failure.
--
--   local input = require 'streamlua.cli.input'
--   local result = input.read_json('plan.json')
--   print(result.value or result.message)

local data = require 'streamlua.conf.data'
local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'

local M = {}

--- Largest document, in bytes.
M.MAX_BYTES = 256 * 1024 * 1024

local function failed(code, message, line)
  return { code = code, message = message, line = line }
end

local function too_large(limit)
  return failed('invalid', ('larger than %d bytes'):format(limit))
end

local function open(path, limit)
  if path == '-' then
    return io.stdin
  end
  local stat, message, code = libc.stat(path)
  if not stat then
    return nil, failed(code == libc.ENOENT and 'not_found' or 'failed', message)
  elseif stat.kind == 'directory' then
    return nil, failed('not_found', 'it is a directory')
  elseif stat.kind == 'file' and stat.size > limit then
    return nil, too_large(limit)
  end
  local file, why = io.open(path, 'rb')
  if not file then
    return nil, failed('failed', (why:match(': ([^:]*)$')))
  end
  return file
end

--- Reads a whole file ('-' is standard input) of at most `max_bytes`.
---@param path string
---@param options table? {max_bytes=}
---@return table {value= text} or {code=, message=}
function M.read_text(path, options)
  local limit = options and options.max_bytes or M.MAX_BYTES
  local file, err = open(path, limit)
  if not file then
    return err
  end
  local text, message = file:read(limit + 1)
  if file ~= io.stdin then
    file:close()
  end
  if not text and message then
    return failed('failed', message)
  elseif text and #text > limit then
    return too_large(limit)
  end
  return { value = text or '' }
end

local function decode(text, options)
  local value, message, line = json.decode(text, { max_depth = options and options.max_depth })
  if value == nil then
    return failed('invalid', message, line)
  end
  return { value = value }
end

--- Reads one JSON document.
---@param path string
---@param options table? {max_bytes=, max_depth=}
function M.read_json(path, options)
  local result = M.read_text(path, options)
  if result.code then
    return result
  end
  return decode(result.value, options)
end

-- JSON starts neither with a word, a comment nor a bare key.
local function looks_like_lua(text)
  return text:find('^%s*return%f[^%w_]') or text:find('^%s*%-%-') or text:find('^%s*{%s*[%a_%[]')
end

local function result_of(values, err)
  if not values then
    return failed(err.code, err.message, err.line)
  end
  return { value = values }
end

--- Reads a document in JSON or as Lua data (`return { ... }` or just `{ ... }`), which is told by
--- what is in it; `.lua` files are Lua. A text that starts with a brace is no path but the document.
---@param path string
---@param options table? {max_bytes=, max_depth=}
function M.read_document(path, options)
  if path:find('%.lua$') then
    return result_of(data.load_file(path))
  end
  local is_inline = path:find('^%s*{')
  local result = is_inline and { value = path } or M.read_text(path, options)
  if result.code then
    return result
  elseif looks_like_lua(result.value) then
    return result_of(data.load_text(result.value, is_inline and 'document' or path))
  end
  return decode(result.value, options)
end

return M
