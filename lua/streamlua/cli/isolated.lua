-- Runs a function in a child process with a limit on its time and memory, for user code that may
-- never return: a loop that the JIT compiled can not be stopped from inside its own process.
--
--   local isolated = require 'streamlua.cli.isolated'
--   local result = isolated.run(function() return { n = 1 } end, { timeout = 5 })
--   assert(result.value.n == 1)
--
-- The function's result travels back as data (streamlua.topology.canonical). What the function
-- prints on standard output appears on standard error, because standard output is the command's.

local canonical = require 'streamlua.topology.canonical'
local libc = require 'streamlua.connectors.libc'

local M = {}

--- Bytes of memory that the child may add.
M.MEMORY = 4 * 1024 ^ 3

local function child(fn, writer)
  libc.dup2(2, 1)
  libc.limit_memory(M.MEMORY)
  local ok, value = pcall(fn)
  local text = canonical.encode({ ok = ok, value = ok and value or tostring(value) })
  io.stdout:flush()
  io.stderr:flush()
  libc.write_all(writer, text or canonical.encode({ ok = false, value = 'the result is no data' }))
  libc.exit(0)
end

-- All the child writes until it ends or the time is over; nil in the latter case.
local function read_all(reader, timeout)
  local deadline = libc.clock_s('mono') + timeout
  local parts = {}
  while true do
    local left = deadline - libc.clock_s('mono')
    if left <= 0 then return nil end
    if libc.readable(reader, math.min(math.ceil(left * 1000), 0x7fffffff)) then
      local part, _, errno = libc.read_some(reader)
      if part == '' or (not part and errno ~= libc.EINTR) then return table.concat(parts) end
      parts[#parts + 1] = part
    end
  end
end

--- Calls fn() in a child process. Returns {value=} (what it returned), {raised=} (the text of an
--- error), {timed_out=true}, or {ended='exited'|'killed', code=} when it ended the process itself.
--- Raises when no process can be made.
---@param fn fun(): any
---@param options table {timeout = seconds}
---@return table result
function M.run(fn, options)
  local reader, writer = libc.pipe()
  if not reader then error('no pipe: ' .. writer, 0) end
  local pid, message = libc.fork()
  if not pid then error('no process: ' .. message, 0) end
  if pid == 0 then child(fn, writer) end
  libc.close(writer)
  local text = read_all(reader, options.timeout)
  libc.close(reader)
  if not text then libc.kill(pid, libc.SIGKILL) end
  local how, code = libc.wait(pid)
  if not text then return { timed_out = true } end
  local result = text ~= '' and canonical.decode(text)
  if not result then return { ended = how, code = code } end
  if result.ok then return { value = result.value } end
  return { raised = result.value }
end

return M
