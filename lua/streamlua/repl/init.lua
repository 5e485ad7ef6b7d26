-- The REPL: an interactive session, or a script, a chunk or piped input in one.
--
--   local repl = require 'streamlua.repl'
--   repl.interactive(context)                  -- returns the exit code
--   repl.script(context, { '1 + 1' }, 'play.lua')   -- raises what they raised
--   repl.input(context, io.stdin)
--
-- An error ends everything but the interactive session. With -o json a script or chunks give one
-- document, the last value; what is printed goes to standard error.

local errors = require 'streamlua.cli.error'
local sessions = require 'streamlua.repl.session'

local M = {}

local PROMPT, MORE = 'streamlua> ', '        >> '

-- Ends a script at its first error: errors of the command line keep their exit code.
local function raise(session)
  local value = session.error
  if errors.is(value) then error(value, 0) end
  local failure = errors.from_lua('failed', value, session.traceback)
  if type(value) == 'table' and value.hint then failure.hint = value.hint end
  error(failure, 0)
end

local function script_session(context)
  if context.output == 'json' then context:keep_stdout() end
  return sessions.new { context = context, is_interactive = false }
end

local function run_chunk(session, text)
  local state = session:evaluate(text, { chunk_name = '=chunk' })
  if state == 'incomplete' then
    session.pending = { text }
    state = session:finish()
  end
  if state == 'error' then raise(session) end
end

local function run_file(session, path)
  local libc = require 'streamlua.connectors.libc'
  local stat, message = libc.stat(path)
  if not stat or stat.kind == 'directory' then
    session.context:fail('not_found', ("script '%s'"):format(path), message or 'it is a directory')
  end
  if session:command('load', path) == 'error' then raise(session) end
end

--- Evaluates chunks, printing what they return, and then a file, all in one session.
---@param context table
---@param chunks string[]
---@param path string? of the file
function M.script(context, chunks, path)
  local session = script_session(context)
  for _, text in ipairs(chunks) do run_chunk(session, text) end
  if path then run_file(session, path) end
  session:print_document()
end

--- Evaluates the lines of a file handle, chunk by chunk.
---@param context table
---@param handle file*
---@param name string?
function M.input(context, handle, name)
  local session = script_session(context)
  local number, first = 0, 1
  for line in handle:lines() do
    number = number + 1
    if #session.pending == 0 then first = number end
    -- Blank lines keep the line numbers of messages right inside a chunk.
    local chunk_name = '=' .. (name or 'stdin')
    if #session.pending == 0 and first > 1 then
      session.pending = { ('\n'):rep(first - 2) }
    end
    local state = session:feed(line, chunk_name)
    if state == 'error' then raise(session) end
    -- Who feeds lines may wait for the answer to each.
    if state == 'ok' then context.stdout:flush() end
    if session.is_over then break end
  end
  if not session.is_over and session:finish() == 'error' then raise(session) end
  session:print_document()
end

-- Plain lines, where lua-readline is missing or input is no terminal.
local function plain_editor(interrupt)
  return {
    read = function(_, prompt)
      io.stdout:write(prompt)
      io.stdout:flush()
      local line = io.read('*l')
      if line then return line end
      if interrupt.take() then return nil, 'interrupt' end
      return nil, 'end'
    end,
    remember = function() end,
  }
end

local function history_path(getenv)
  local state = getenv('XDG_STATE_HOME')
  if state and state ~= '' then return state .. '/streamlua/history' end
  local home = getenv('HOME')
  return home and home ~= '' and home .. '/.local/state/streamlua/history' or nil
end

local function open_editor(context, session, interrupt)
  local complete = require 'streamlua.repl.complete'
  local editor = require('streamlua.repl.readline').open {
    history = history_path(context.getenv),
    interrupt = interrupt,
    complete = function(line, from, to)
      local ok, matches = pcall(complete.matches, session.env, line, from, to)
      return ok and matches or {}
    end,
  }
  return editor or plain_editor(interrupt)
end

-- One round of the loop; false when the session is over.
local function round(session, editor, state)
  local line, why = editor:read(#session.pending > 0 and MORE or PROMPT)
  if not line then
    if why == 'end' then
      session:write('\n')
      return false
    end
    local was_idle = #session.pending == 0 and why == 'interrupt'
    session:drop()
    -- Twice at an empty prompt leaves; once tells how.
    if was_idle and state.interrupts >= 1 then return false end
    state.interrupts = was_idle and state.interrupts + 1 or 0
    if was_idle then session:write('(Ctrl-C again or Ctrl-D leaves)\n') end
    return true
  end
  state.interrupts = 0
  editor:remember(line)
  -- What is pasted comes as one line of several, and is taken as if it had been typed.
  for part in (line .. '\n'):gmatch('([^\n]*)\n') do
    if session:feed(part) == 'error' or session.is_over then break end
  end
  session.context.stdout:flush()
  return not session.is_over
end

--- Reads, evaluates and prints until the user leaves.
---@param context table
---@return integer exit code
function M.interactive(context)
  local interrupt = require 'streamlua.interrupt'
  -- Compiled code can not be interrupted.
  jit.off()
  jit.flush()
  interrupt.open()
  local session = sessions.new { context = context, is_interactive = true, interrupt = interrupt }
  local editor = open_editor(context, session, interrupt)
  context:print("streamlua ", require('streamlua.abi').ffi.string(
    require('streamlua.abi').C.sl_version()), ', .help for help')
  local state = { interrupts = 0 }
  local ok, failure
  repeat
    local goes_on
    ok, goes_on = pcall(round, session, editor, state)
    if not ok then failure = goes_on end
  until not ok or not goes_on
  interrupt.close()
  if failure then error(failure, 0) end
  return 0
end

return M
