-- One session of the REPL: its names, evaluating chunks, and what they leave behind.
--
--   local session = require 'streamlua.repl.session'.new { context = context }
--   local state = session:evaluate('1 + 1')      -- 'ok', 'incomplete' or 'error'
--   session:feed('for i = 1, 3 do')              -- line by line, as a terminal gives them
--
-- Chunks see the names of streamlua.repl.names and all globals; what they assign to globals stays in
-- the session. A chunk that starts with `local` keeps what it declares, because a line that forgets
-- its variables is of no use at a prompt.

local help = require 'streamlua.repl.help'
local names = require 'streamlua.repl.names'
local printer = require 'streamlua.repl.printer'

local M = {}

-- The interrupt hook leaves code of this chunk name alone.
local SOURCE = debug.getinfo(1, 'S').source

local Session = {}
Session.__index = Session

--- Starts a session. options: `context` of the command line, `interrupt` (the module
--- streamlua.interrupt when chunks can be stopped by Ctrl-C), `is_interactive`.
---@param options table
---@return table
function M.new(options)
  local context = options.context
  local self = setmetatable({
    context = context, interrupt = options.interrupt, is_interactive = options.is_interactive,
    form = context.output == 'json' and 'json' or 'table', pending = {}, count = 0,
    -- With -o json a program reads standard output: one document, the last value.
    is_document = context.output == 'json' and not options.is_interactive,
  }, Session)
  self.env = setmetatable(names.make(self), { __index = _G })
  self.env._G = self.env
  return self
end

--- Writes text to the session's output; where that is for a document, to standard error.
function Session:write(...)
  local file = self.is_document and self.context.stderr or self.context.stdout
  file:write(...)
end

-- `local x = 1` and `local function f` become globals of the session; `local x` alone stays.
local function without_local(text)
  local rest = text:match('^%s*local%s+(function%s.*)$')
  if rest then return rest end
  rest = text:match('^%s*local%s+([%a_][%w_%s,]*=.*)$')
  return rest or text
end

local function pass(...) return ... end

-- A chunk, or nil and 'incomplete' or 'error' with the message. An expression is given to `pass`, the
-- chunk's argument: a plain `return` would be a tail call, and errors would lose their line.
local function compile(text, chunk_name)
  local chunk, as_value = loadstring('return ' .. text, chunk_name)
  if chunk then
    -- On a line of its own the bracket would make errors point there; behind a comment it must be.
    return loadstring('return (...)(' .. text .. ')', chunk_name)
      or loadstring('return (...)(' .. text .. '\n)', chunk_name) or chunk
  end
  local message
  chunk, message = loadstring(text, chunk_name)
  -- What is no definition (`local x`, then `y = 1` on the next line) stays as it is.
  if chunk then return loadstring(without_local(text), chunk_name) or chunk end
  -- `1 +` is no statement, but as a value it only lacks its end.
  if message:find("near '<eof>'$") or as_value:find("near '<eof>'$") then
    return nil, 'incomplete', message
  end
  return nil, 'error', message
end

-- Keeps the traceback of what was raised; the top of the stack is not yet unwound here.
local function on_error(self)
  return function(value)
    self.traceback = debug.traceback('', 2):gsub('^\n', '')
    return value
  end
end

-- Calls a chunk so that Ctrl-C stops it.
local function call(self, chunk)
  local interrupt = self.interrupt
  if interrupt then
    interrupt.take()
    interrupt.arm(SOURCE)
  end
  local results = { xpcall(chunk, on_error(self), pass) }
  if interrupt then
    interrupt.disarm()
    -- A coroutine puts its place in front of what passes through it.
    if interrupt.take() and not results[1] and tostring(results[2]):find('interrupted$') then
      results[2] = 'interrupted'
    end
  end
  return results, table.maxn(results)
end

-- Remembers values as `_` (the last), `_1`, `_2` ..
local function remember(self, results, n)
  if n < 2 then return end
  for i = 2, n do rawset(self.env, '_' .. (i - 1), results[i]) end
  rawset(self.env, '_', results[n])
  self.document = results[n]
end

--- Text of any error value.
---@param value any
---@return string
function M.error_text(value)
  if value == 'interrupted' then return 'interrupted' end
  return require('streamlua.cli.error').text_of(value)
end

local function show_error(self, value)
  self.context.stdout:flush()
  local paint = self.context
  local text = M.error_text(value)
  local prefix = self.context.color_stderr and '\27[31merror:\27[0m ' or 'error: '
  paint.stderr:write(prefix, text, '\n')
  if type(value) == 'table' and value.hint then paint.stderr:write('hint: ', value.hint, '\n') end
  if self.context.verbose > 0 and self.traceback and value ~= 'interrupted' then
    paint.stderr:write(self.traceback, '\n')
  end
  paint.stderr:flush()
end

local function fail(self, value)
  self.error = value
  rawset(self.env, '_err', value)
  if self.is_interactive then show_error(self, value) end
  return 'error'
end

--- Prints values the way the session shows them.
function Session:show(results, first, last)
  for i = first, last do
    self:write(printer.text(results[i], { color = self.context.color, form = self.form }), '\n')
  end
end

--- Prints the document of a session that has one: the last value that anything returned.
function Session:print_document()
  if not self.is_document then return end
  local ok, text = pcall(printer.json, self.document)
  if not ok then
    error(require('streamlua.err').new('EINVAL', ('the last value is no JSON document: %s'):format(
      text)), 0)
  end
  self.context.stdout:write(text, '\n')
end

--- Evaluates a chunk and prints what it returns. Returns 'ok', 'incomplete' (more lines are needed;
--- nothing was run) or 'error' (`self.error` has it; an interactive session has shown it).
---@param text string
---@param options table? {chunk_name=}
---@return string state
function Session:evaluate(text, options)
  options = options or {}
  local command, rest = text:match('^%s*%.(%a+)%s*(.-)%s*$')
  if command then return self:command(command, rest) end
  local topic, marks = text:match('^%s*([%a_][%w_.:]*)%s*(%?%??)%s*$')
  if topic then
    self:write(help.text(self.env, topic, marks == '??'), '\n')
    return 'ok'
  end
  local chunk, state, message = compile(text, options.chunk_name or '=repl')
  if not chunk then
    if state == 'incomplete' then
      self.incomplete_message = message
      return 'incomplete'
    end
    self.traceback = nil
    return fail(self, message)
  end
  setfenv(chunk, self.env)
  local results, n = call(self, chunk)
  if not results[1] then return fail(self, results[2]) end
  if n > 1 then
    remember(self, results, n)
    if not self.is_document then
      local ok, why = pcall(self.show, self, results, 2, n)
      if not ok then return fail(self, why) end
    end
  end
  return 'ok'
end

--- Takes one line; lines that are no whole chunk yet are kept. Returns 'ok', 'incomplete' or 'error'.
---@param line string
---@param chunk_name string?
---@return string state
function Session:feed(line, chunk_name)
  self.pending[#self.pending + 1] = line
  local text = table.concat(self.pending, '\n')
  if #self.pending == 1 and not text:find('%S') then
    self.pending = {}
    return 'ok'
  end
  local state = self:evaluate(text, { chunk_name = chunk_name })
  if state ~= 'incomplete' then self.pending = {} end
  return state
end

--- Forgets the lines of an incomplete chunk.
function Session:drop() self.pending = {} end

--- Ends input: an incomplete chunk is an error.
---@return string state
function Session:finish()
  if #self.pending == 0 then return 'ok' end
  self.pending = {}
  return fail(self, self.incomplete_message)
end

---------------------------------------------------------------------------------------------------
-- dot commands

local commands = {}

local HELP = [[
Expressions print their value; _ is the last one, _1, _2 .. all of the last line, _err the last error.
Lines go on until the chunk is complete. name? shows help, name?? the source. Tab completes.

  .help             this text           .names            the names of the session
  .load FILE        run a Lua file      .reload           read the last loaded file again
  .time CHUNK       how long it takes   .jit on|off       compile chunks (Ctrl-C stops none then)
  .set output FORM  table, json or lua  .dump EXPR        the whole value as Lua
  .quit             leave (also Ctrl-D)

Try: t = load_topology 'topo.lua'; schedule(t, cluster { supervisors = 3, slots = 4 })]]

function commands.help(self) self:write(HELP, '\n') end

function commands.names(self)
  local list = {}
  for name, value in pairs(self.env) do
    if type(name) == 'string' and not name:find('^_') then
      list[#list + 1] = { name = name, type = type(value) }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  self:show({ list }, 1, 1)
end

function commands.load(self, path)
  if path == '' then return fail(self, '.load needs a file') end
  local file, why = io.open(path, 'rb')
  if not file then return fail(self, why) end
  local text = file:read('*a')
  file:close()
  if not text then return fail(self, path .. ': it can not be read') end
  self.loaded = path
  text = text:gsub('^#[^\n]*', '')
  local chunk, message = loadstring(text, '@' .. path)
  if not chunk then return fail(self, message) end
  setfenv(chunk, self.env)
  local results, n = call(self, chunk)
  if not results[1] then return fail(self, results[2]) end
  remember(self, results, n)
end

function commands.reload(self)
  if not self.loaded then return fail(self, 'nothing was loaded with .load') end
  return commands.load(self, self.loaded)
end

function commands.time(self, text)
  local clock = require('streamlua.connectors.libc').clock_s
  local before = clock('mono')
  local state = self:evaluate(text)
  if state == 'ok' then
    self:write(('took %s\n'):format(
      require('streamlua.units').duration_text(clock('mono') - before)))
  end
  return state
end

function commands.jit(self, word)
  if word == 'on' then
    jit.on()
  elseif word == 'off' then
    jit.off()
    jit.flush()
  elseif word ~= '' then
    return fail(self, '.jit takes on or off')
  end
  self:write('the JIT is ', jit.status() and 'on' or 'off', '\n')
end

function commands.set(self, rest)
  local form = rest:match('^output%s+(%a+)$')
  if form ~= 'table' and form ~= 'json' and form ~= 'lua' then
    return fail(self, '.set output takes table, json or lua')
  end
  self.form = form
end

function commands.dump(self, text)
  local form = self.form
  self.form = 'lua'
  local state = self:evaluate(text)
  self.form = form
  return state
end

function commands.quit(self) self.is_over = true end
commands.exit = commands.quit

--- Runs a dot command.
function Session:command(name, rest)
  local command = commands[name]
  if not command then
    return fail(self, ("unknown command .%s; .help lists them"):format(name))
  end
  return command(self, rest) or 'ok'
end

return M
