--- Runs the topologies of this folder in fresh processes, and the program of limits, for the workloads
--- beside it.
--
-- Every figure of Lua comes from several processes, since the compiler may settle in another shape in
-- each: `best` gives the best one and the least, and processor time per unit, which other programs on
-- the machine disturb less.

local libc = require 'streamlua.connectors.libc'

local M = {}

local folder = debug.getinfo(1, 'S').source:match('^@(.*)/[^/]*$') or '.'
local root = folder .. '/../..'
local binary = root .. '/build/streamlua'
local limits_program = root .. '/build/tests/bench/limits'

-- A quick run repeats what it measures three times, twice after so many seconds, then not at all.
local QUICK_TWICE, QUICK_ONCE = 7, 12
local started = libc.clock_s('mono')

local function quoted(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

-- Processor seconds of children that have ended.
local function children_cpu()
  local file = assert(io.open('/proc/self/stat', 'r'))
  local fields = file:read('*a'):match('%) (.*)$')
  file:close()
  local at, sum = 2, 0
  for field in fields:gmatch('%S+') do
    at = at + 1
    if at == 16 or at == 17 then sum = sum + tonumber(field) end
  end
  return sum / 100
end

-- Lines 'name<blank>number' of a command's output; the same name again adds to a list of its own.
local function lines_of(command)
  local pipe = assert(io.popen(command .. ' 2>&1', 'r'))
  local values, all, rest = {}, {}, {}
  for line in pipe:lines() do
    local name, text = line:match('^(%S+)%s+(%S+)$')
    local value = tonumber(text)
    if value then
      all[name] = all[name] or {}
      table.insert(all[name], value)
      values[name] = value
    else
      rest[#rest + 1] = line
    end
  end
  pipe:close()
  values.all = all
  if #rest > 0 then error(command .. ': ' .. table.concat(rest, '\n'), 0) end
  return values
end

-- Runs a command line and adds the processor time that it took.
local function run_command(command)
  local cpu = children_cpu()
  local out = lines_of(command)
  out.cpu = children_cpu() - cpu
  return out
end

--- Runs a topology of the folder to its end. Returns what it printed by name, `all` with lists, `cpu` in seconds,
--- `spawned_at` by the monotonic clock.
---@param name string
---@param settings table config of the topology
---@param executors? integer
---@param more? string further options of `run`
function M.run(name, settings, executors, more)
  local words = { 'exec', quoted(binary), '-q', 'run',
    quoted(('%s/topologies/%s.lua'):format(folder, name)) }
  if executors then words[#words + 1] = '--executors ' .. executors end
  for key, value in pairs(settings or {}) do
    words[#words + 1] = '--set ' .. quoted(('%s=%s'):format(key, tostring(value)))
  end
  -- A run that does not end by itself says so instead of holding up the others.
  words[#words + 1] = more or '--ttl 60s'
  local spawned_at = libc.clock_s('mono')
  local out = run_command(table.concat(words, ' '))
  out.spawned_at = spawned_at
  return out
end

-- Identities and addresses of two workers; 127.0.0.0/8 is ours, so runs do not meet.
local function two_workers()
  local pid = tonumber(io.open('/proc/self/stat', 'r'):read('*n'))
  local host = ('127.%d.%d.3'):format(1 + math.floor(pid / 250) % 250, pid % 250)
  local containers = {}
  for id = 1, 2 do
    containers[id] = ('{"id":%d,"host":"%s","port":%d,"identity":"%s"}'):format(id, host, 21100 + id,
      ('%02x'):format(id):rep(16))
  end
  return table.concat(containers, ',')
end

--- As run, with two worker processes that talk over TCP; `tasks` are rows {component, container}.
---@param name string
---@param settings table
---@param tasks table[]
function M.run_apart(name, settings, tasks)
  local rows = {}
  for i, task in ipairs(tasks) do
    rows[i] = ('{"id":%d,"component":"%s","index":0,"container":%d}'):format(i, task[1], task[2])
  end
  local path = os.tmpname()
  local file = assert(io.open(path, 'w'))
  file:write(('{"topology_id":"bench","containers":[%s],"tasks":[%s]}'):format(two_workers(),
    table.concat(rows, ',')))
  file:close()
  local function worker(container)
    local words = { quoted(binary), '-q', 'worker', '--container', container, '--plan', quoted(path),
      quoted(('%s/topologies/%s.lua'):format(folder, name)), '--until-finished', '--ttl 60s' }
    for key, value in pairs(settings) do
      words[#words + 1] = '--set ' .. quoted(('%s=%s'):format(key, tostring(value)))
    end
    return table.concat(words, ' ') .. ' 2>&1'
  end
  -- What workers say of themselves is no figure.
  local out = run_command(('{ %s & %s; wait; } | grep -v "^worker: "'):format(worker(2), worker(1)))
  os.remove(path)
  return out
end

local function exec_words(name, ...)
  local words = { quoted(binary), 'exec', quoted(('%s/topologies/%s.lua'):format(folder, name)) }
  for _, word in ipairs({ ... }) do words[#words + 1] = quoted(word) end
  return table.concat(words, ' ')
end

--- Runs a Lua program of the folder.
function M.exec(name, ...) return run_command('exec ' .. exec_words(name, ...)) end

--- Runs it in two processes at once; `all` of what is returned has what both printed.
function M.exec_twice(name, ...)
  local command = exec_words(name, ...)
  return run_command(('{ %s & %s; wait; }'):format(command, command))
end

-- Seconds between the first start_ms and the last end_ms of a run.
function M.seconds(out)
  return (math.max(unpack(out.all.end_ms)) - math.min(unpack(out.all.start_ms))) / 1000
end

--- How many rounds there are to be now.
function M.round_count(bench)
  if not bench.quick then return 7 end
  local elapsed = libc.clock_s('mono') - started
  return elapsed < QUICK_TWICE and 3 or elapsed < QUICK_ONCE and 2 or 1
end

--- Calls `measure` (a number, larger is better) in several rounds: {best=, least=, rounds=}.
function M.rounds(bench, measure)
  local best, least, count = -math.huge, math.huge, 0
  repeat
    local value = measure()
    best, least, count = math.max(best, value), math.min(least, value), count + 1
  until count >= M.round_count(bench)
  return { best = best, least = least, rounds = count }
end

--- Reports rounds of a rate as one figure.
function M.report_rounds(bench, rounds, figure)
  figure.value, figure.least, figure.rounds = rounds.best, rounds.least, rounds.rounds
  bench:report(figure)
end

local known = {}

--- A limit of this machine: see tests/bench/limits.c, or 'batch_loop', records a second of a loop in
--- LuaJIT. Measured once in a run of bench.
---@param bench table
---@param name string
function M.limit(bench, name)
  if not known[name] then
    if name == 'batch_loop' then
      known[name] = M.rounds(bench, function()
        return M.exec('batch_loop', bench.quick and '3e7' or '2e8').rate
      end).best
    else
      local ms = bench.quick and 100 or 500
      known[name] = lines_of(('exec %s %d %s'):format(quoted(limits_program), ms, name))[name]
    end
  end
  return known[name]
end

return M
