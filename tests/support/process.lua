--- Starts programs for functional specs and waits for what they do, never for time to pass.
--
--     local process = require 'support.process'
--     local r = process.run { 'version' }                 -- the streamlua binary under test
--     assert.equal(0, r.code)                             -- r.stdout, r.stderr
--     local p = process.start({ 'master' }, { env = { STREAMLUA_STATE = url } })
--     p:expect('stderr', 'listening on (%S+)')            -- waits, and fails after p.timeout seconds
--     p:signal('TERM'); p:wait()
--
-- Options: program (default: the binary under test), stdin (text), env (added), cwd, timeout
-- (seconds, default 60; three times that under a sanitizer).

local posix = {
  fcntl = require 'posix.fcntl', poll = require 'posix.poll', signal = require 'posix.signal',
  stdlib = require 'posix.stdlib', time = require 'posix.time', unistd = require 'posix.unistd',
  wait = require 'posix.sys.wait',
}

local M = {}

local build = os.getenv('SL_TEST_BUILD') or 'release'
local slow = (build == 'asan' or build == 'tsan') and 3 or 1

--- Path of the binary under test, absolute, so that a spec may start it in another folder.
M.binary = os.getenv('SL_TEST_BINARY') or (posix.unistd.getcwd() .. '/build/streamlua')
--- Folder of the source tree.
M.root = posix.unistd.getcwd()
--- Kind of the build under test: 'dev', 'release', 'asan', 'tsan' or 'coverage'.
M.build = build
--- How much longer than usual things may take in this build.
M.slowness = slow
--- How long what ends by itself may take before a spec gives it up, in seconds.
M.patience = 60 * slow

--- Seconds of a clock that only goes forward.
---@return number
function M.now()
  local t = posix.time.clock_gettime(posix.time.CLOCK_MONOTONIC)
  return t.tv_sec + t.tv_nsec / 1e9
end

local Process = {}
Process.__index = Process

local function child(args, options, files)
  posix.unistd.dup2(files.stdin, 0)
  posix.unistd.dup2(files.stdout, 1)
  posix.unistd.dup2(files.stderr, 2)
  for fd = 3, 63 do posix.unistd.close(fd) end
  -- A shell has what it starts in the background ignore it, and what that starts, too.
  posix.signal.signal(posix.signal.SIGINT, posix.signal.SIG_DFL)
  if options.cwd and posix.unistd.chdir(options.cwd) ~= 0 then
    io.stderr:write(options.cwd, ': no such folder\n')
    posix.unistd._exit(126)
  end
  for name, value in pairs(options.env or {}) do
    posix.stdlib.setenv(name, value ~= false and tostring(value) or nil)
  end
  local program = options.program or M.binary
  local _, message = posix.unistd.execp(program, args)
  io.stderr:write(program, ': ', tostring(message), '\n')
  posix.unistd._exit(127)
end

--- Starts a program; its output is collected until it ends.
---@param args string[] arguments without the program
---@param options? table
---@return table process
function M.start(args, options)
  options = options or {}
  local in_read, in_write = posix.unistd.pipe()
  local out_read, out_write = posix.unistd.pipe()
  local err_read, err_write = posix.unistd.pipe()
  io.stdout:flush()
  io.stderr:flush()
  local pid = assert(posix.unistd.fork())
  if pid == 0 then
    child(args, options, { stdin = in_read, stdout = out_write, stderr = err_write })
  end
  for _, fd in ipairs { in_read, out_write, err_write } do posix.unistd.close(fd) end
  -- A later child must not inherit our ends, else this one's pipes never see their end.
  for _, fd in ipairs { in_write, out_read, err_read } do
    posix.fcntl.fcntl(fd, posix.fcntl.F_SETFD, posix.fcntl.FD_CLOEXEC)
  end
  local self = setmetatable({
    pid = pid, timeout = options.timeout and options.timeout * slow or M.patience, args = args,
    text = { stdout = '', stderr = '' }, names = { [out_read] = 'stdout', [err_read] = 'stderr' },
    stdin = in_write, taken = { stdout = 1, stderr = 1 },
  }, Process)
  if not options.keep_stdin then
    self:write(options.stdin or '')
    self:close_stdin()
  end
  return self
end

--- Writes to the program's standard input (with option keep_stdin; small texts only).
function Process:write(text)
  if #text > 0 then posix.unistd.write(self.stdin, text) end
end

--- Ends the program's standard input.
function Process:close_stdin()
  if self.stdin then posix.unistd.close(self.stdin) end
  self.stdin = nil
end

-- Reads what is there, waiting for at most until `deadline`; false when both outputs have ended.
function Process:_read(deadline)
  local fds = {}
  for fd in pairs(self.names) do fds[fd] = { events = { IN = true } } end
  if not next(fds) then return false end
  local left = math.max(0, math.ceil((deadline - M.now()) * 1000))
  local ready = posix.poll.poll(fds, left)
  if not ready then return true end
  if ready == 0 then self:_late('produced nothing more') end
  for fd, entry in pairs(fds) do
    if entry.revents and (entry.revents.IN or entry.revents.HUP or entry.revents.ERR) then
      local part = posix.unistd.read(fd, 65536)
      if part and #part > 0 then
        local name = self.names[fd]
        self.text[name] = self.text[name] .. part
      else
        posix.unistd.close(fd)
        self.names[fd] = nil
      end
    end
  end
  return true
end

-- What a spec shows when its program is late; the program is ended first.
function Process:_late(what)
  self:signal('KILL')
  posix.wait.wait(self.pid)
  self.pid = nil
  error(('%s %s within %g s\nstdout: %s\nstderr: %s'):format(
    table.concat(self.args, ' '), what, self.timeout, self.text.stdout, self.text.stderr), 0)
end

--- Waits until the output holds the pattern after what was expected before; returns its captures.
---@param name 'stdout'|'stderr'
---@param pattern string Lua pattern
function Process:expect(name, pattern)
  local deadline = M.now() + self.timeout
  while true do
    local found = { self.text[name]:find(pattern, self.taken[name]) }
    if found[1] then
      self.taken[name] = found[2] + 1
      if found[3] then return unpack(found, 3) end
      return self.text[name]:sub(found[1], found[2])
    end
    if not self:_read(deadline) then
      error(('%s ended without %q on %s\nstdout: %s\nstderr: %s'):format(
        table.concat(self.args, ' '), pattern, name, self.text.stdout, self.text.stderr), 0)
    end
  end
end

--- Sends a signal: 'INT', 'TERM', 'KILL', ...
function Process:signal(name)
  if self.pid then posix.signal.kill(self.pid, posix.signal['SIG' .. name]) end
end

--- Waits for the end. Returns {code, stdout, stderr, signal}; a signal counts as 128 + its number.
function Process:wait()
  if self.result then return self.result end
  self:close_stdin()
  local deadline = M.now() + self.timeout
  while self:_read(deadline) do end
  local _, how, status = posix.wait.wait(self.pid)
  self.pid = nil
  self.result = {
    code = how == 'exited' and status or 128 + status, signal = how == 'killed' and status or nil,
    stdout = self.text.stdout, stderr = self.text.stderr,
  }
  return self.result
end

--- Runs a program to its end.
---@param args string[]
---@param options? table
---@return table result {code, stdout, stderr, signal}
function M.run(args, options) return M.start(args, options):wait() end

--- Calls fn with a new folder and removes it afterwards, also when fn raises.
---@param fn fun(folder: string): any
function M.with_folder(fn)
  local folder = assert(posix.stdlib.mkdtemp((os.getenv('TMPDIR') or '/tmp') .. '/streamlua-XXXXXX'))
  local results = { pcall(fn, folder) }
  M.run({ '-rf', folder }, { program = 'rm' })
  if not results[1] then error(results[2], 0) end
  return unpack(results, 2)
end

--- Writes a file.
function M.write_file(path, text)
  local file = assert(io.open(path, 'wb'))
  assert(file:write(text))
  assert(file:close())
end

--- Reads a file.
function M.read_file(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

--- Calls fn with programs started without GC stress: a program takes seconds to start under it, and
--- one that must fill its memory would else only collect.
function M.without_stress(fn)
  local value = os.getenv('SL_GC')
  posix.stdlib.setenv('SL_GC', nil)
  local ok, fault = pcall(fn)
  posix.stdlib.setenv('SL_GC', value)
  if not ok then error(fault, 0) end
end

return M
