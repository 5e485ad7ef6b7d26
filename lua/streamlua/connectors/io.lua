-- Ready-made input and output of lines: `streamlua.io.lines` (spout) and `streamlua.io.print`
-- (bolt).
--
--   local streamlua = require 'streamlua'
--   local t = streamlua.topology('cat')
--   t:spout('lines', streamlua.io.lines { path = '-' })
--   t:bolt('print', streamlua.io.print { format = 'text' }):shuffle('lines')
--   return t

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'
local line_reader = require 'streamlua.connectors.line_reader'
local units = require 'streamlua.units'

local M = {}

---------------------------------------------------------------------------------------------------
-- lines

local function complain(text, ...)
  error('streamlua.io.lines: ' .. text:format(...), 0)
end

-- A file of that very name wins over its meaning as a pattern.
local function expand(path)
  if path == '-' or not path:find('[*?[]') or libc.stat(path) then
    return { path }
  end
  local paths = libc.glob(path)
  if #paths == 0 then
    complain("no file matches '%s'", path)
  end
  return paths
end

--- Paths that one task reads: files of all patterns in order, dealt out by index.
---@param patterns string[]
---@param index integer from 0
---@param parallelism integer
---@return string[]
function M.paths_of_task(patterns, index, parallelism)
  local mine, n = {}, 0
  for _, pattern in ipairs(patterns) do
    for _, path in ipairs(expand(pattern)) do
      if n % parallelism == index then
        mine[#mine + 1] = path
      end
      n = n + 1
    end
  end
  return mine
end

-- One input: {path=, fd=, reader=, identity=, regular=}; nil and why not when there is none.
local function try_open(path, options)
  local fd = 0
  if path ~= '-' then
    local message
    fd, message = libc.open(path)
    if not fd then
      return nil, message
    end
  end
  local stat = libc.fstat(fd)
  if stat and stat.kind == 'directory' then
    libc.close(fd)
    return nil, 'it is a directory'
  end
  local regular = stat ~= nil and stat.kind == 'file'
  return {
    path = path,
    fd = fd,
    identity = stat and stat.identity,
    regular = regular,
    -- A pipe or a terminal is asked before each read: the thread must never wait in it.
    reader = line_reader.new(fd, { max_line = options.max_line, poll = not regular,
      block = options.block }),
  }
end

local function open_input(path, options)
  local input, message = try_open(path, options)
  if not input then
    complain("can not open '%s': %s", path, message)
  end
  return input
end

local function close_input(input)
  input.reader:close()
  if input.path ~= '-' then
    libc.close(input.fd)
  end
end

-- At the end of a followed file: was it cut, or is another file there under its name? Returns the
-- last line of a file that was replaced, if that had no line end. As long as what is there can not be
-- opened the old one is followed.
local function follow_change(self, slot)
  local input = self.inputs[slot]
  local own = libc.fstat(input.fd)
  if own and own.size < input.reader.bytes then
    libc.seek(input.fd, 0)
    input.reader:forget()
    return nil
  end
  local now = libc.stat(input.path)
  if not now or now.identity == input.identity then
    return nil
  end
  local opened = try_open(input.path, self.options)
  if not opened then
    return nil
  end
  local rest = input.reader:rest()
  opened.reader.dropped = input.reader.dropped
  close_input(input)
  self.inputs[slot] = opened
  return rest
end

local function count_dropped(self, input)
  local n = input.reader.dropped - (input.counted or 0)
  if n > 0 then
    input.counted = input.reader.dropped
    self.dropped:inc(n)
  end
end

local function drop_input(self, slot)
  close_input(table.remove(self.inputs, slot))
  self.slot = slot > #self.inputs and 1 or slot
end

-- The input at `slot` gave no line. Returns its last line if there is one, and whether it is over. An
-- input that can not be read is over too, unless it is followed: then the next attempt may succeed.
local function at_pause(self, slot, state, message)
  local input = self.inputs[slot]
  count_dropped(self, input)
  if state == 'error' then
    if not (self.options.follow and input.regular) then
      drop_input(self, slot)
    end
    complain("can not read '%s': %s", input.path, message)
  elseif state == 'again' then
    return nil, false
  elseif self.options.follow and input.regular then
    local rest = follow_change(self, slot)
    self.inputs[slot].counted = input.counted
    return rest, false
  end
  local rest = input.reader:rest()
  count_dropped(self, input)
  return rest, true
end

-- Without `follow` one input after the other; with it, whichever has a line.
local function next_line(self)
  local tried = 0
  while tried < #self.inputs do
    local slot = self.slot
    local line, state, message = self.inputs[slot].reader:next()
    if line then
      return line
    end
    local over
    line, over = at_pause(self, slot, state, message)
    if over then
      drop_input(self, slot)
    else
      self.slot = slot % #self.inputs + 1
      tried = tried + 1
    end
    if line then
      return line
    end
    if not over and not self.options.follow then
      return nil
    end
  end
end

local lines = { fields = { 'line' } }

function lines.open(self, context)
  self.inputs, self.slot, self.count = {}, 1, 0
  self.emit_options = { id = 0 }
  self.dropped = context:counter('dropped_lines')
  self.done = require('streamlua').DONE
  for _, path in ipairs(M.paths_of_task(self.paths, context.index, context.parallelism)) do
    self.inputs[#self.inputs + 1] = open_input(path, self.options)
  end
end

function lines.next_tuple(self, collector)
  local input = self.inputs[self.slot]
  local line = input and input.reader:next()
  if not line then
    if not input then
      return self.done
    end
    line = next_line(self)
    if not line then
      return #self.inputs == 0 and self.done or false
    end
  end
  local n = self.count + 1
  self.count = n
  self.emit_options.id = n
  collector:emit({ line }, self.emit_options)
end

function lines.close(self)
  for _, input in ipairs(self.inputs or {}) do
    close_input(input)
  end
  self.inputs = {}
end

local function lines_options(options)
  if type(options) ~= 'table' then
    error('streamlua.io.lines: expected a table of options', 3)
  end
  local known = { path = true, follow = true, max_line = true, replay = true, block = true }
  for name in pairs(options) do
    if not known[name] then
      error(('streamlua.io.lines: unknown option %s'):format(tostring(name)), 3)
    end
  end
  local paths = type(options.path) == 'table' and options.path or { options.path }
  if #paths == 0 then
    error('streamlua.io.lines: the option path is missing', 3)
  end
  for _, path in ipairs(paths) do
    if type(path) ~= 'string' or path == '' then
      error('streamlua.io.lines: path must be a file, a list of files or a pattern', 3)
    end
  end
  local max_line, message = units.parse_size(options.max_line or '1MiB')
  if not max_line or max_line < 1 then
    error('streamlua.io.lines: max_line: ' .. (message or 'it must be at least 1 byte'), 3)
  end
  return paths, { follow = options.follow and true or false, max_line = max_line,
    block = options.block }
end

--- Definition of the spout `lines`; `lines` makes a component of it.
---@param options table see `lines`
---@return table definition
function M.lines_definition(options)
  local paths, parsed = lines_options(options)
  return {
    fields = lines.fields,
    replay = options.replay,
    open = function(self, context)
      self.paths, self.options = paths, parsed
      lines.open(self, context)
    end,
    next_tuple = lines.next_tuple,
    close = lines.close,
  }
end

--- Spout of the lines of files. Each line is emitted with its number as id, so that it is tracked;
--- `replay = true` emits lines again that failed.
---
--- Options: `path` (a file, a list, a pattern, '-' = standard input; with a parallelism above 1 the
--- files are dealt out), `follow` (false; true goes on at the end of a file, through truncation and
--- rotation), `max_line` ('1MiB'; longer lines are dropped and counted in `dropped_lines`),
--- `replay` (as of any spout).
---@param options table
---@return table component
function M.lines(options)
  return require('streamlua').spout(M.lines_definition(options))
end

---------------------------------------------------------------------------------------------------
-- print

local function lua_string(text)
  return '"' .. text:gsub('[%c"\\\127]', function(c)
    local known = { ['\n'] = '\\n', ['\r'] = '\\r', ['\t'] = '\\t', ['"'] = '\\"', ['\\'] = '\\\\' }
    return known[c] or ('\\%03d'):format(c:byte())
  end) .. '"'
end

local function lua_key(key, text)
  if type(key) == 'string' and key:find('^[%a_][%w_]*$') then
    return key
  end
  return '[' .. text(key) .. ']'
end

-- All digits of whole numbers, and as many of others as it takes to read them back.
local function number_text(value)
  if value == math.floor(value) and math.abs(value) < 2 ^ 53 then
    return ('%d'):format(value)
  end
  local text = ('%.14g'):format(value)
  return tonumber(text) == value and text or ('%.17g'):format(value)
end

--- A value as Lua writes it: tables on one line, keys sorted.
---@param value any
---@return string
local function lua_text(value)
  if type(value) == 'string' then
    return lua_string(value)
  elseif type(value) == 'number' then
    return number_text(value)
  elseif value == json.null then
    return 'null'
  elseif type(value) ~= 'table' then
    return tostring(value)
  end
  local parts, n = {}, #value
  for i = 1, n do
    parts[i] = lua_text(value[i])
  end
  local keys = {}
  for key in pairs(value) do
    if not (type(key) == 'number' and key >= 1 and key <= n and key == math.floor(key)) then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    parts[#parts + 1] = lua_key(key, lua_text) .. ' = ' .. lua_text(value[key])
  end
  return '{' .. table.concat(parts, ', ') .. '}'
end
M.lua_text = lua_text

local formats = {}

function formats.lua(tuple, names)
  local parts = {}
  for i, name in ipairs(names) do
    parts[i] = lua_key(name, lua_text) .. ' = ' .. lua_text(tuple[i])
  end
  return '{' .. table.concat(parts, ', ') .. '}'
end

function formats.json(tuple, names)
  local parts = {}
  for i, name in ipairs(names) do
    local text, message = json.encode(tuple[i])
    if not text then
      error(('field %s: %s'):format(name, message), 0)
    end
    parts[i] = json.encode(name) .. ':' .. text
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

function formats.text(tuple, names)
  local parts = {}
  for i = 1, #names do
    local value = tuple[i]
    if value == nil then
      parts[i] = ''
    elseif value == json.null then
      parts[i] = 'null'
    elseif type(value) == 'table' then
      parts[i] = lua_text(value)
    elseif type(value) == 'number' then
      parts[i] = number_text(value)
    elseif type(value) == 'cdata' then
      parts[i] = tostring(value):gsub('[UL]+$', '')
    else
      parts[i] = tostring(value)
    end
  end
  return table.concat(parts, '\t')
end

--- Bytes kept before they are written.
M.PRINT_BUFFER = 65536

local function flush(self)
  if self.size == 0 then
    return
  end
  local file = self.file
  local text = table.concat(self.parts, '\n', 1, self.n) .. '\n'
  self.n, self.size = 0, 0
  local ok, message, code = file:write(text)
  if ok then
    ok, message, code = file:flush()
  end
  if not ok and code == libc.EPIPE then
    -- Whoever read our output has gone: end as any filter does.
    libc.end_by_broken_pipe()
  elseif not ok then
    error('streamlua.io.print: can not write: ' .. tostring(message), 0)
  end
end

--- Definition of the bolt `print`; `print` makes a component of it.
---@param options table? {format=, file= where to write instead of standard output}
---@return table definition
function M.print_definition(options)
  options = options or {}
  local format = formats[options.format or 'lua']
  if not format then
    error(("streamlua.io.print: unknown format '%s' (lua, json, text)"):format(
      tostring(options.format)), 3)
  end
  local fields_of
  return {
    -- A line waits at most this long when no other one comes.
    tick_every = '100ms',
    prepare = function(self)
      self.parts, self.n, self.size = {}, 0, 0
      self.file = options.file or io.stdout
      fields_of = options.fields_of or require('streamlua').tuple.fields
    end,
    execute = function(self, tuple)
      local text = format(tuple, fields_of(tuple))
      local n = self.n + 1
      self.n, self.parts[n] = n, text
      self.size = self.size + #text + 1
      if self.size >= M.PRINT_BUFFER then
        flush(self)
      end
    end,
    tick = flush,
    finish = flush,
    cleanup = flush,
  }
end

--- Bolt that prints each tuple as one line on standard output: `lua` ({word = "a", n = 1}, the
--- default), `json` ({"word":"a","n":1}) or `text` (values between tabs). Lines are buffered and
--- written when 64 KiB are there, every 100 ms, and at the end.
---@param options table? {format=}
---@return table component
function M.print(options)
  return require('streamlua').bolt(M.print_definition(options))
end

return M
