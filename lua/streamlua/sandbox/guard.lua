-- What the code in a sandbox may not do: print to standard output and start other processes.
--
--   local guard = require 'streamlua.sandbox.guard'.install()
--   local ok, result = pcall(user_code)
--   local fault = guard:fault()              -- nil, or text that says what it did all the same
--
-- Two fences, because one sees where and the other sees everything. Lua's own ways - print, io.write,
-- os.execute, io.popen - raise an error with the line that called them, and are remembered when the
-- error was caught. What goes past them, through FFI or a C module, meets the kernel: standard output
-- is a pipe that the parent watches, and a filter (seccomp) ends a process that forks. Where the
-- kernel has no such filters, `fault` finds the children that are there or were.

local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'streamlua.connectors.libc'

local C = libc.C

local M = {}

--- The signal by which the filter ends a process.
M.SIGSYS = 31

M.PRINTS = 'it prints to standard output; what is not the result goes to io.stderr'
M.FORKS = 'it starts another process (a fork), which is not allowed here'

local PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
local P_ALL, WNOHANG, WEXITED, WNOWAIT = 0, 1, 4, 0x01000000
local RUSAGE_CHILDREN = -1

---------------------------------------------------------------------------------------------------
-- the kernel's fence

-- Numbers of the system calls that make a process, and of the architecture they belong to.
local MACHINES = {
  x64 = { audit = 0xc000003e, clone = 56, fork = 57, vfork = 58, clone3 = 435, foreign = 0x40000000 },
  arm64 = { audit = 0xc00000b7, clone = 220, clone3 = 435 },
}

local LOAD, RETURN = 0x20, 0x06
local IF_EQUAL, IF_AT_LEAST, IF_SET = 0x15, 0x35, 0x45
local KILL, ALLOW, REFUSE_ENOSYS = 0x80000000, 0x7fff0000, 0x00050000 + 38
-- Offsets in struct seccomp_data.
local NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
local CLONE_THREAD = 0x10000

-- The program for a machine as {code, value, jump when true, jump when false}. Threads are no
-- processes and stay allowed: clone3 hides its flags behind a pointer, so that it is said to be
-- missing, and the C library takes clone instead.
local function program(machine)
  local p = {}
  local function add(...) p[#p + 1] = { ... } end
  -- Returns `action` when the test holds.
  local function when(test, value, action)
    add(test, value, 0, 1)
    add(RETURN, action, 0, 0)
  end
  add(LOAD, ARCHITECTURE, 0, 0)
  add(IF_EQUAL, machine.audit, 1, 0)
  add(RETURN, KILL, 0, 0)
  add(LOAD, NUMBER, 0, 0)
  if machine.foreign then when(IF_AT_LEAST, machine.foreign, KILL) end
  if machine.fork then when(IF_EQUAL, machine.fork, KILL) end
  if machine.vfork then when(IF_EQUAL, machine.vfork, KILL) end
  when(IF_EQUAL, machine.clone3, REFUSE_ENOSYS)
  add(IF_EQUAL, machine.clone, 1, 0)
  add(RETURN, ALLOW, 0, 0)
  add(LOAD, FIRST_ARGUMENT, 0, 0)
  when(IF_SET, CLONE_THREAD, ALLOW)
  add(RETURN, KILL, 0, 0)
  return p
end

-- Installs the filter; nothing happens where there is none for this machine or kernel.
local function refuse_forks()
  local machine = MACHINES[ffi.arch]
  if not machine then return end
  local list = program(machine)
  local code = ffi.new('struct sl_libc_filter[?]', #list)
  for i, line in ipairs(list) do
    code[i - 1].code, code[i - 1].value = line[1], line[2]
    code[i - 1].if_true, code[i - 1].if_false = line[3], line[4]
  end
  local filter = ffi.new('struct sl_libc_filter_program[1]', { { #list, code } })
  if C.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 then
    C.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ffi.cast('uintptr_t', filter), 0, 0)
  end
end

-- True when this process has children, or had some that it waited for.
local function had_children()
  local info = ffi.new('struct sl_libc_siginfo')
  if C.waitid(P_ALL, 0, info, bit.bor(WEXITED, WNOHANG, WNOWAIT)) == 0 then return true end
  local usage = ffi.new('struct sl_libc_rusage')
  return C.getrusage(RUSAGE_CHILDREN, usage) == 0 and usage.resident_kib > 0
end

---------------------------------------------------------------------------------------------------
-- Lua's own fence

local Guard = {}
Guard.__index = Guard

-- Raises `message` with the place of the Lua code that called; remembers it, an error may be caught.
local function refuse(self, message)
  local level = 3
  local info = debug.getinfo(level, 'Sl')
  while info and info.currentline <= 0 do
    level = level + 1
    info = debug.getinfo(level, 'Sl')
  end
  if info then message = ('%s:%d: %s'):format(info.short_src, info.currentline, message) end
  self.refused = self.refused or message
  error(message, 0)
end

local function fence_lua(self)
  local stdout = io.stdout
  local methods = getmetatable(stdout).__index
  local write, io_write = methods.write, io.write
  _G.print = function() refuse(self, M.PRINTS) end
  rawset(io, 'write', function(...)
    if io.output() == stdout then refuse(self, M.PRINTS) end
    return io_write(...)
  end)
  methods.write = function(file, ...)
    if file == stdout then refuse(self, M.PRINTS) end
    return write(file, ...)
  end
  rawset(os, 'execute', function() refuse(self, M.FORKS) end)
  rawset(io, 'popen', function() refuse(self, M.FORKS) end)
end

--- Puts up both fences for the rest of this process's life.
---@param options table? {filter = false: without the kernel's filter}
---@return table guard
function M.install(options)
  local self = setmetatable({ pid = C.getpid() }, Guard)
  fence_lua(self)
  if not (options and options.filter == false) then refuse_forks() end
  return self
end

--- What the code did although it may not, as far as this process can tell.
---@return string? message
function Guard:fault()
  if self.refused then return self.refused end
  if had_children() then return M.FORKS end
end

--- True in a process that the code forked from the guarded one.
---@return boolean
function Guard:is_fork() return C.getpid() ~= self.pid end

return M
