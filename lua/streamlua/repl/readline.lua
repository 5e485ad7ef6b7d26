-- Line editing over lua-readline, with a wait of our own, so that Ctrl-C at the prompt is seen. Nil
-- when the library is missing: callers then read plain lines.
--
--   local editor = require 'streamlua.repl.readline'.open { history = path, complete = fn }
--   local line, why = editor:read('> ')
--   -- nil and 'end' (Ctrl-D), 'dropped' (Ctrl-C on a line) or 'interrupt' (Ctrl-C on an empty one)
--
-- `complete(line, from, to)` returns a list of texts. The history is saved after every line.

local ffi = require 'ffi'
local libc = require 'streamlua.connectors.libc'

local M = {}

local HISTORY_LINES = 2000

local Editor = {}
Editor.__index = Editor

-- What lua-readline does not offer: leaving SIGINT to us, clearing the line that is being typed, and
-- letting go of the terminal in the right order.
local function library()
  pcall(ffi.cdef, [[
    void rl_replace_line(const char *text, int clear_undo);
    int rl_on_new_line(void);
    void rl_callback_handler_remove(void);
    extern int rl_end;
    extern int rl_catch_signals;
    int history_list_length(void);
  ]])
  local ok, rl = pcall(ffi.load, 'libreadline.so.8')
  return ok and rl or nil
end

local function make_folder(path)
  local at = 1
  while true do
    local slash = path:find('/', at + 1, true)
    if not slash then return end
    libc.C.mkdir(path:sub(1, slash - 1), 448)
    at = slash
  end
end

--- Opens the editor. options: `history` (file), `complete`, `interrupt` (streamlua.interrupt, open).
---@param options table
---@return table? editor
function M.open(options)
  local home = os.getenv('HOME')
  if not home then return nil end
  local ok, rl = pcall(require, 'readline')
  if not ok or type(rl) ~= 'table' then return nil end
  local self = setmetatable({ rl = rl, library = library(),
    interrupt = options.interrupt }, Editor)
  -- The default history file of the module must neither be read nor written.
  rl.set_options { histfile = '', keeplines = HISTORY_LINES, auto_add = false }
  if options.history then
    make_folder(options.history)
    -- Where it can not be written the session goes on without, and says nothing with every line.
    local file = io.open(options.history, 'ab')
    if file then
      file:close()
      rl.set_options { histfile = options.history }
      self.has_history = true
    end
  end
  -- Its own handler would keep Ctrl-C until the next key.
  if self.library then self.library.rl_catch_signals = 0 end
  rl.set_readline_name('streamlua')
  if options.complete then
    rl.set_complete_function(function(line, from, to)
      -- Readline forgets this at every completion: a blank after a name would be in the way.
      rl.set_completion_append_character('')
      return options.complete(line, from, to)
    end)
  end
  return self
end

-- Throws the line away that is being typed; true when there was one.
local function clear_line(self)
  io.stdout:write('^C\n')
  io.stdout:flush()
  if not self.library then return false end
  local was_typed = self.library.rl_end > 0
  self.library.rl_replace_line('', 1)
  self.library.rl_on_new_line()
  return was_typed
end

local POLLIN = 1

-- Waits for a key or for Ctrl-C; true when there is a key.
local function wait(interrupt)
  local fds = ffi.new('struct sl_libc_pollfd[2]')
  fds[0].fd, fds[0].events = 0, POLLIN
  fds[1].fd, fds[1].events = interrupt.fd(), POLLIN
  return libc.C.poll(fds, 2, -1) > 0 and fds[0].revents ~= 0
end

--- Reads a line.
---@param prompt string
---@return string? line
---@return string? why
function Editor:read(prompt)
  local line, is_done = nil, false
  self.rl.handler_install(prompt, function(text)
    line, is_done = text, true
    self.rl.handler_remove()
  end)
  while not is_done do
    if wait(self.interrupt) then self.rl.read_char() end
    if not is_done and self.interrupt.take() then
      local was_typed = clear_line(self)
      -- The module closes the terminal's stream first and lets readline write to it then.
      if self.library then self.library.rl_callback_handler_remove() end
      self.rl.handler_remove()
      return nil, was_typed and 'dropped' or 'interrupt'
    end
  end
  if line == nil then return nil, 'end' end
  return line
end

--- Adds a line to the history and saves it.
---@param line string
function Editor:remember(line)
  if line:find('%S') and line ~= self.last then
    self.last = line
    self.rl.add_history(line)
    if self.has_history then pcall(self.rl.save_history) end
  end
end

return M
