--- Drives a program through a pseudo terminal, as a user at a keyboard does.
--
--     local terminal = require 'support.terminal'
--     local t = terminal.start({ 'repl' }, { env = { HOME = folder } })
--     t:expect('streamlua> ')             -- plain text, after what was expected before
--     t:type('1 + 1\n')
--     t:expect('2')
--     t:type('\3')                        -- Ctrl-C
--     assert.equal(0, t:finish())         -- types Ctrl-D, waits, gives the exit code
--
-- Options: program (default: the binary under test), env, cwd, timeout (seconds, default 60; three
-- times that under a sanitizer).

local posix = {
  fcntl = require 'posix.fcntl', poll = require 'posix.poll', signal = require 'posix.signal',
  stdlib = require 'posix.stdlib', unistd = require 'posix.unistd',
  wait = require 'posix.sys.wait',
}
local process = require 'support.process'

local M = {}

local Terminal = {}
Terminal.__index = Terminal

local function child(args, options, slave)
  posix.unistd.setpid('s')
  -- The first terminal that a session leader opens is its controlling one.
  local fd = assert(posix.fcntl.open(slave, posix.fcntl.O_RDWR))
  for target = 0, 2 do posix.unistd.dup2(fd, target) end
  for other = 3, 63 do posix.unistd.close(other) end
  posix.signal.signal(posix.signal.SIGINT, posix.signal.SIG_DFL)
  if options.cwd then posix.unistd.chdir(options.cwd) end
  posix.stdlib.setenv('TERM', 'dumb')
  for name, value in pairs(options.env or {}) do
    posix.stdlib.setenv(name, value ~= false and tostring(value) or nil)
  end
  posix.unistd.execp(options.program or process.binary, args)
  posix.unistd._exit(127)
end

--- Starts a program on a terminal of its own.
---@param args string[]
---@param options? table
---@return table terminal
function M.start(args, options)
  options = options or {}
  local master = assert(posix.stdlib.openpt(posix.fcntl.O_RDWR + posix.fcntl.O_NOCTTY))
  assert(posix.stdlib.grantpt(master))
  assert(posix.stdlib.unlockpt(master))
  local slave = assert(posix.stdlib.ptsname(master))
  io.stdout:flush()
  io.stderr:flush()
  local pid = assert(posix.unistd.fork())
  if pid == 0 then child(args, options, slave) end
  posix.fcntl.fcntl(master, posix.fcntl.F_SETFD, posix.fcntl.FD_CLOEXEC)
  return setmetatable({ pid = pid, master = master, text = '', taken = 1,
    timeout = (options.timeout or 60) * process.slowness }, Terminal)
end

--- Types text; '\n' is Enter, '\3' Ctrl-C, '\4' Ctrl-D, '\t' Tab.
function Terminal:type(text) posix.unistd.write(self.master, text) end

-- Reads what is there; false when the program has closed the terminal.
function Terminal:_read(deadline)
  local fds = { [self.master] = { events = { IN = true } } }
  local ready = posix.poll.poll(fds, math.max(0, math.ceil((deadline - process.now()) * 1000)))
  if ready == 0 then
    posix.signal.kill(self.pid, posix.signal.SIGKILL)
    error(('nothing more within %g s; the terminal shows:\n%s'):format(self.timeout, self.text), 0)
  end
  local part = posix.unistd.read(self.master, 65536)
  if not part or #part == 0 then return false end
  -- Escape sequences and carriage returns are how it looks, not what it says.
  self.text = self.text .. part:gsub('\27%[[%d;?]*[%a]', ''):gsub('\r', '')
  return true
end

--- Waits until the terminal shows a text (plain, no pattern) after what was expected before.
---@param words string
---@return string shown what came before it
function Terminal:expect(words)
  local deadline = process.now() + self.timeout
  while true do
    local from, to = self.text:find(words, self.taken, true)
    if from then
      local shown = self.text:sub(self.taken, from - 1)
      self.taken = to + 1
      return shown
    end
    if not self:_read(deadline) then
      error(('the program ended before it showed %q; the terminal shows:\n%s'):format(words,
        self.text), 0)
    end
  end
end

--- Waits for the end and gives the exit code; `keys` are typed first (default Ctrl-D).
---@param keys string?
---@return integer
function Terminal:finish(keys)
  if keys ~= '' then self:type(keys or '\4') end
  local deadline = process.now() + self.timeout
  while self:_read(deadline) do end
  local _, how, status = posix.wait.wait(self.pid)
  posix.unistd.close(self.master)
  return how == 'exited' and status or 128 + status
end

return M
