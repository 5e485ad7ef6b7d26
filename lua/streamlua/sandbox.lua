-- Runs user code (a custom packer or scheduler) in a child process of our own binary, with limits.
--
-- Parent: one call starts the child, feeds it its standard input, waits and cleans up.
--
--     local sandbox = require 'streamlua.sandbox'
--     local result, err = sandbox.run {
--       what = "packer 'mine.lua'",                     -- names the code in messages
--       argv = { 'plan', '--request', '-', '--packing', 'mine.lua' },
--       input = request_json,                           -- the child's standard input
--       seconds = 10, memory = 2^30,                    -- optional; these are the defaults
--     }
--     -- result: what the child's `work` returned (JSON types only), or nil and an error of
--     -- streamlua.err with code EUSER (exit 7), `kind` = 'raised' | 'result' | 'time' | 'memory' |
--     -- 'printed' | 'forked' | 'ended', and for 'raised' `traceback`; its message starts with
--     -- `file:line:`.
--
-- Child: the command of that argv sees that it is inside and serves instead of printing.
--
--     if sandbox.inside() then
--       sandbox.serve(function() return dofile(path).pack(request) end)   -- never returns
--     end
--
-- Standard output is the command's: code that prints there, or that forks, is ended and told of
-- (streamlua.sandbox.guard). Its standard error is ours. The child is a process group of its own;
-- when the call is over - result, error or limit - the whole group is killed. Address space and CPU
-- time are limited by setrlimit, wall-clock time by us, and the child dies with its parent.

local bit = require 'bit'
local ffi = require 'ffi'
local err = require 'streamlua.err'
local guards = require 'streamlua.sandbox.guard'
local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'

local C = libc.C
-- The code may set the global ones to anything.
local pcall, xpcall, sethook = pcall, xpcall, debug.sethook

local M = {}

--- Wall-clock limit in seconds and address space in bytes when the caller names none.
M.SECONDS = 10
M.MEMORY = 2 ^ 30

--- Nesting that a result may have.
M.MAX_DEPTH = 64

local VARIABLE = 'STREAMLUA_SANDBOX'
local RESULT_FD = 3
local HEADER = 16
local MAX_RESULT = 512 * 1024 * 1024
-- Between two looks whether the child has ended without closing its result pipe.
local SLICE_MS = 50

local F_SETFD, FD_CLOEXEC = 2, 1
local SPAWN_SETPGROUP = 2
local SIGXCPU = 24
local PR_SET_PDEATHSIG = 1
local POLLIN = 1
local P_PID, WNOHANG, WEXITED, WNOWAIT = 1, 1, 4, 0x01000000
local RLIMIT_CPU, RLIMIT_CORE, RLIMIT_AS = 0, 4, 9

local function failure(kind, message, traceback)
  local value = err.new('EUSER', message)
  value.kind = kind
  value.traceback = traceback
  return nil, value
end

---------------------------------------------------------------------------------------------------
-- the child

--- True in a child that `run` started.
---@return boolean
function M.inside()
  local value = os.getenv(VARIABLE)
  return value ~= nil and value ~= ''
end

local function limit(resource, amount)
  local value = ffi.new('struct sl_libc_rlimit', amount, amount)
  C.setrlimit(resource, value)
end

-- Address space in use, in bytes. Sanitizers reserve terabytes, which no limit could allow.
local function address_space()
  local file = io.open('/proc/self/statm', 'r')
  local pages = file and file:read('*n') or 0
  if file then
    file:close()
  end
  return pages * 4096
end

local function apply_limits()
  local memory, cpu_s = os.getenv(VARIABLE):match('^(%d+):(%d+)$')
  C.prctl(PR_SET_PDEATHSIG, libc.SIGKILL, 0, 0, 0)
  C.fcntl(RESULT_FD, F_SETFD, ffi.cast('int', FD_CLOEXEC))
  limit(RLIMIT_CORE, 0)
  limit(RLIMIT_CPU, tonumber(cpu_s))
  if address_space() < tonumber(memory) then
    limit(RLIMIT_AS, tonumber(memory))
  end
end

local function path_text(path)
  return #path == 0 and 'it' or table.concat(path)
end

-- Raises {result=} for the first thing in a result that is no JSON value.
local function check_plain(value, path, above)
  local kind = type(value)
  if kind == 'table' then
    if above[value] then
      error({ result = ('%s contains itself'):format(path_text(path)) }, 0)
    elseif #path >= M.MAX_DEPTH then
      error({ result = ('it is nested more than %d levels deep'):format(M.MAX_DEPTH) }, 0)
    end
    above[value] = true
    for key, item in next, value do
      if type(key) ~= 'string' and type(key) ~= 'number' then
        error({ result = ('%s has a %s as key'):format(path_text(path), type(key)) }, 0)
      end
      local is_name = type(key) == 'string'
      path[#path + 1] = is_name and (#path > 0 and '.' or '') .. key or ('[%s]'):format(key)
      check_plain(item, path, above)
      path[#path] = nil
    end
    above[value] = nil
  elseif kind == 'number' then
    if value ~= value or value == math.huge or value == -math.huge then
      error({ result = ('%s is the number %s'):format(path_text(path), tostring(value)) }, 0)
    end
  elseif kind ~= 'string' and kind ~= 'boolean' and value ~= nil and value ~= json.null then
    error({ result = ('%s is a %s'):format(path_text(path), kind) }, 0)
  end
end

-- The folder of the library, to tell its functions from the user's.
local OWN = debug.getinfo(1, 'S').source:match('^(.*)/sandbox%.lua$')

-- What user code raised, as text with a position. A value without one gets that of the innermost
-- function of the user.
local function raised_text(value)
  local text
  if type(value) == 'string' or type(value) == 'number' then
    text = tostring(value)
  else
    local meta = getmetatable(value)
    if type(meta) == 'table' and meta.__tostring then
      text = tostring(value)
    elseif type(value) == 'table' and type(value.message) == 'string' then
      text = value.message
    else
      text = ('(error object is a %s value)'):format(type(value))
    end
  end
  local level = 3
  local info = not err.is(value) and not text:find('^[^\n]-:%d+:') and debug.getinfo(level, 'Sl')
  while info do
    if info.currentline > 0 and info.source:sub(1, 1) == '@'
      and not (OWN and info.source:sub(1, #OWN) == OWN) then
      return ('%s:%d: %s'):format(info.short_src, info.currentline, text)
    end
    level = level + 1
    info = debug.getinfo(level, 'Sl')
  end
  return text
end

local function on_error(value)
  -- One of the code's own would go on raising.
  sethook()
  if type(value) == 'table' and value.result then
    return value
  elseif value == 'not enough memory' then
    return { memory = true }
  end
  local ok, text = pcall(raised_text, value)
  return {
    message = ok and text or '(an error that can not be shown)',
    traceback = debug.traceback('', 2):gsub('^\n', ''),
  }
end

-- Without memory, or without stack, the handler fails as well, and Lua puts a text in its place. What
-- was allocated is not collected yet.
local function unhandled(value)
  local memory = tonumber(os.getenv(VARIABLE):match('^%d+'))
  if value == 'not enough memory' or collectgarbage('count') * 1024 > memory / 4 then
    return { memory = true }
  end
  return { message = 'stack overflow' }
end

local function send(reply)
  local text, why = json.encode(reply, { max_depth = M.MAX_DEPTH + 8 })
  if not text and tostring(why):find('not enough memory', 1, true) then
    error(why, 0)
  end
  text = text or '{"message":"the error can not be written"}'
  libc.write_all(RESULT_FD, ('%016x'):format(#text))
  libc.write_all(RESULT_FD, text)
end

local function serve(work, options)
  local stdout = io.stdout
  apply_limits()
  local guard = guards.install(options)
  local ok, value = xpcall(function()
    local result = work()
    check_plain(result, {}, {})
    return result
  end, on_error)
  -- What C code left in the buffer of standard output must show before the answer does; the code may
  -- have closed it.
  pcall(stdout.flush, stdout)
  if guard:is_fork() then return end
  if not ok and type(value) ~= 'table' then value = unhandled(value) end
  local fault = ok and guard:fault()
  if fault then
    ok, value = false, { message = fault }
  end
  if not pcall(send, ok and { ok = true, result = value } or value) then
    collectgarbage()
    pcall(send, { memory = true })
  end
end

--- Runs `work` under the limits, sends what it returns to the parent, and ends the process.
---@param work fun(): any
---@param options table? {filter = false: see streamlua.sandbox.guard}
function M.serve(work, options)
  local exit = libc.exit
  -- Code that took apart what this needs gives no answer, which the parent tells.
  local ok = pcall(serve, work, options)
  exit(ok and 0 or 1)
end

---------------------------------------------------------------------------------------------------
-- the parent

local function strings(list)
  local array = ffi.new('char *[?]', #list + 1)
  for i, text in ipairs(list) do
    array[i - 1] = ffi.cast('char *', text)
  end
  return array
end

local function environment(options)
  local list = {}
  local at = 0
  while C.environ[at] ~= nil do
    local entry = ffi.string(C.environ[at])
    -- Settings of the parent's command line must not change what the child prints or refuses.
    if not entry:find('^' .. VARIABLE .. '=') and not entry:find('^STREAMLUA_OUTPUT=') then
      list[#list + 1] = entry
    end
    at = at + 1
  end
  -- One second more than the wall clock has, so that the clock is what ends an endless loop.
  list[#list + 1] = ('%s=%d:%d'):format(VARIABLE, options.memory, math.ceil(options.seconds) + 1)
  return list
end

--- Path of our own executable, for a child that runs one of our commands.
---@return string
function M.program()
  local path = libc.realpath('/proc/self/exe')
  return path and path:find('/streamlua$') and path or 'streamlua'
end

-- The whole input in a file without a name: no pipe that both sides could wait on.
local function input_file(text)
  local fd = C.memfd_create('request', 1)
  if fd < 0 then
    return nil, libc.message(ffi.errno())
  end
  local ok, message = libc.write_all(fd, text)
  if not ok then
    libc.close(fd)
    return nil, message
  end
  libc.seek(fd, 0)
  return fd
end

local function spawn(options, input, output, result)
  local argv = { M.program() }
  for _, text in ipairs(options.argv) do
    argv[#argv + 1] = text
  end
  local env = environment(options)
  local files = ffi.new('struct sl_libc_spawn_files')
  local attr = ffi.new('struct sl_libc_spawn_attr')
  C.posix_spawn_file_actions_init(files)
  C.posix_spawnattr_init(attr)
  C.posix_spawn_file_actions_adddup2(files, input, 0)
  C.posix_spawn_file_actions_adddup2(files, output, 1)
  C.posix_spawn_file_actions_adddup2(files, result, RESULT_FD)
  C.posix_spawn_file_actions_addclosefrom_np(files, RESULT_FD + 1)
  C.posix_spawnattr_setflags(attr, SPAWN_SETPGROUP)
  C.posix_spawnattr_setpgroup(attr, 0)
  local pid = ffi.new('int[1]')
  local code = C.posix_spawnp(pid, argv[1], files, attr, strings(argv), strings(env))
  C.posix_spawn_file_actions_destroy(files)
  C.posix_spawnattr_destroy(attr)
  if code ~= 0 then
    return nil, libc.message(code)
  end
  return pid[0]
end

local function has_ended(pid)
  local info = ffi.new('struct sl_libc_siginfo')
  local rc = C.waitid(P_PID, pid, info, bit.bor(WEXITED, WNOHANG, WNOWAIT))
  return rc ~= 0 or info.pid == pid
end

-- Kills the group first, while the child still holds its number - and the child, which may have left
-- it - then collects the child. Returns its exit code, or the signal that ended it.
local function finish(pid)
  libc.kill(-pid, libc.SIGKILL)
  libc.kill(pid, libc.SIGKILL)
  local how, code = libc.wait(pid)
  if how == 'killed' then return nil, code end
  return code, 0
end

-- What the child sends: reads both pipes into `received` (reply, printed) for at most `timeout_ms`.
-- Returns false when the reply's pipe is at its end.
local function read_pipes(received, pipes, timeout_ms)
  local fds = ffi.new('struct sl_libc_pollfd[2]')
  fds[0].fd, fds[1].fd = pipes.reply, received.no_output and -1 or pipes.output
  fds[0].events, fds[1].events = POLLIN, POLLIN
  received.idle = C.poll(fds, 2, timeout_ms) <= 0
  if received.idle then
    return true
  end
  -- What was printed came before the reply did.
  if fds[1].revents ~= 0 then
    local text = libc.read_some(pipes.output)
    if text and text ~= '' then
      received.printed = text
    else
      received.no_output = true
    end
  end
  if fds[0].revents ~= 0 then
    local text = libc.read_some(pipes.reply)
    if not text or text == '' then
      return false
    end
    received.parts[#received.parts + 1] = text
    received.size = received.size + #text
  end
  return true
end

-- Length of the reply once its header is there; math.huge for what is none.
local function wanted_size(received)
  if received.size < HEADER then
    return nil
  end
  received.parts = { table.concat(received.parts) }
  return tonumber(received.parts[1]:sub(1, HEADER), 16) or math.huge
end

-- A process closes its files a moment before it has ended; one that goes on closed them itself.
local function ends_soon(pid)
  for _ = 1, 100 do
    if has_ended(pid) then
      return true
    end
    C.poll(nil, 0, 10)
  end
  return false
end

-- Reads the reply: its text, or nil and 'time', 'ended', 'closed', 'size' or 'printed' with the text.
local function receive(pid, pipes, seconds)
  local deadline = libc.clock_s('mono') + seconds
  local received = { parts = {}, size = 0 }
  local wanted, ended
  while true do
    local left_ms = (deadline - libc.clock_s('mono')) * 1000
    if left_ms <= 0 then
      return nil, 'time'
    end
    local is_open = read_pipes(received, pipes, math.min(math.ceil(left_ms), SLICE_MS))
    if received.printed then
      return nil, 'printed', received.printed
    elseif not is_open then
      return nil, ends_soon(pid) and 'ended' or 'closed'
    elseif received.idle and ended then
      return nil, 'ended'
    end
    wanted = wanted or wanted_size(received)
    if wanted and wanted > MAX_RESULT then
      return nil, 'size'
    elseif wanted and received.size >= HEADER + wanted then
      return table.concat(received.parts):sub(HEADER + 1, HEADER + wanted)
    end
    -- A process that the child left may hold the pipe open; one more look, then it is over.
    ended = received.idle and has_ended(pid)
  end
end

local function size_text(bytes)
  if bytes >= 2 ^ 30 and bytes % 2 ^ 30 == 0 then
    return ('%d GiB'):format(bytes / 2 ^ 30)
  end
  return ('%.4g MiB'):format(bytes / 2 ^ 20)
end

local MAX_QUOTED = 60

-- The first line of what was printed, as it may stand in a message.
local function quoted(text)
  local line = text:match('^[^\r\n]*'):gsub('[%c\127-\255]', '?')
  return #line > MAX_QUOTED and line:sub(1, MAX_QUOTED) .. '..' or line
end

local function ended_failure(options, reason, printed, code, signal)
  if reason == 'printed' then
    return failure('printed', ('%s printed to standard output ("%s"); what is not the result goes to '
      .. 'standard error'):format(options.what, quoted(printed)))
  elseif signal == guards.SIGSYS then
    return failure('forked', ('%s started another process (a fork), which is not allowed here')
      :format(options.what))
  elseif reason == 'time' or signal == SIGXCPU then
    return failure('time', ('%s ran longer than its limit of %g s and was killed'):format(
      options.what, options.seconds))
  elseif reason == 'closed' then
    return failure('ended', ('%s closed the way of its answer'):format(options.what))
  elseif reason == 'size' then
    return failure('result', ('%s gave an answer that can not be read'):format(options.what))
  elseif signal ~= 0 then
    return failure('ended', ('%s ended by signal %d before it returned (its memory limit is %s)')
      :format(options.what, signal, size_text(options.memory)))
  end
  return failure('ended', ('%s ended its process (exit code %d) before it returned'):format(
    options.what, code))
end

local function reply_result(options, text)
  local reply, message = json.decode(text, { max_depth = M.MAX_DEPTH + 16 })
  if type(reply) ~= 'table' then
    return failure('result', ('%s gave no answer: %s'):format(options.what, tostring(message)))
  elseif reply.ok then
    return reply.result
  elseif reply.memory then
    return failure('memory', ('%s needed more memory than its limit of %s'):format(options.what,
      size_text(options.memory)))
  elseif reply.result then
    return failure('result', ('%s returned something that is no document: %s'):format(options.what,
      tostring(reply.result)))
  elseif type(reply.message) ~= 'string' then
    return failure('result', ('%s gave an answer that can not be read'):format(options.what))
  end
  return failure('raised', reply.message, reply.traceback)
end

-- Starts the child; returns its pid and the pipes to read from: {reply=, output=}.
local function start(options)
  local reply, reply_end = libc.pipe()
  if not reply then
    return nil, reply_end
  end
  local output, output_end = libc.pipe()
  local input, pid
  local message = output_end
  if output then
    input, message = input_file(options.input)
  end
  if input then
    io.stdout:flush()
    io.stderr:flush()
    pid, message = spawn(options, input, output_end, reply_end)
    libc.close(input)
  end
  libc.close(reply_end)
  if output then
    libc.close(output_end)
  end
  if pid then
    return pid, { reply = reply, output = output }
  end
  libc.close(reply)
  if output then
    libc.close(output)
  end
  return nil, message
end

--- Runs a command of our binary whose handler calls `serve`; see the top of this file.
---@param options table {what=, argv=, input=, seconds=, memory=}
---@return any result nil when the code returned nothing: compare the second value with nil
---@return streamlua.Error? failure
function M.run(options)
  options = { what = options.what or 'the code', argv = options.argv, input = options.input or '',
    seconds = options.seconds or M.SECONDS, memory = options.memory or M.MEMORY }
  local pid, pipes = start(options)
  if not pid then
    return nil, err.new('ESYS', ('%s can not be started: %s'):format(options.what, pipes))
  end
  local text, reason, printed = receive(pid, pipes, options.seconds)
  libc.close(pipes.reply)
  libc.close(pipes.output)
  local code, signal = finish(pid)
  if not text then
    return ended_failure(options, reason, printed, code, signal)
  end
  return reply_result(options, text)
end

return M
