-- scripts/chaos: random harm to a topology, and what must be true of it all the same. It is a local one,
-- or runs in the slots of supervisors, with two masters.
--
-- A spout emits numbered roots and writes each one that is acked at once; a keyed bolt counts; a sink
-- writes each root that it saw at once. Every root that was acked must have been seen; the plan's
-- version must count the updates that succeeded; in the end no process and nothing stored is left.

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'

local PENDING = 100

local SCRIPT = [[
local streamlua = require 'streamlua'
local function append(path)
  local file = assert(io.open(path, 'a'))
  file:setvbuf('no')
  return file
end
local source = streamlua.spout {
  fields = { 'key', 'root' }, replay = true,
  open = function(self, context)
    self.run, self.n = ('%.0f'):format(context:now()), 0
    self.file = append(context.config.folder .. '/acked')
  end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    local root = self.run .. '-' .. self.n
    collector:emit({ 'k' .. self.n % 64, root }, { id = root })
  end,
  -- One write a line: several processes append.
  ack = function(self, id) self.file:write(id .. '\n') end,
}
local count = streamlua.bolt {
  fields = { 'root', 'count' },
  prepare = function(self, context) self.counts = context:state('counts') end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.root, self.counts:add(tuple.key, 1) })
  end,
}
local sink = streamlua.bolt {
  prepare = function(self, context) self.file = append(context.config.folder .. '/seen') end,
  execute = function(self, tuple) self.file:write(tuple.root .. '\n') end,
}
local t = streamlua.topology('chaos', { containers = 3, executors = 1, message_timeout = '3s',
  max_spout_pending = ]] .. PENDING .. [[ })
t:spout('source', source)
t:bolt('count', count, { parallelism = 3 }):fields('source', { 'key' })
t:bolt('sink', sink, { parallelism = 2 }):shuffle('count')
return t
]]

local function arguments(words)
  local options, i = { minutes = 1, seed = os.time(), supervisors = 0 }, 1
  while words[i] do
    local name, value = words[i]:match('^%-%-(%a+)$'), tonumber(words[i + 1])
    if not (options[name] and value) then
      io.stderr:write('usage: scripts/chaos [--minutes N] [--seed S] [--supervisors N]\n')
      os.exit(2)
    end
    options[name], i = value, i + 2
  end
  return options
end

local function temporary_folder()
  local pipe = assert(io.popen('mktemp -d'))
  local folder = pipe:read('*l')
  pipe:close()
  return folder
end

local options = arguments(arg)
local folder = temporary_folder()
local binary = libc.realpath('/proc/self/exe')
local started = libc.clock_s('mono')
local updates = 0
local is_standalone = options.supervisors > 0
local cluster = is_standalone and 'standalone' or 'local'
-- Name -> {pid, words}.
local daemons = {}

local function say(...)
  io.stderr:write(('%7.1f  '):format(libc.clock_s('mono') - started), table.concat({ ... }, ' '), '\n')
end

local function command_line(...)
  local words = { binary, '-q', '-o', 'json', '--cluster', cluster, '--state',
    'localfs:' .. folder .. '/state' }
  for _, word in ipairs({ ... }) do words[#words + 1] = word end
  for i, word in ipairs(words) do words[i] = "'" .. word .. "'" end
  return table.concat(words, ' ')
end

-- Runs a command; its document and its exit code.
local function run(...)
  local pipe = assert(io.popen(command_line(...) .. ' 2>&1; echo " $?"'))
  local text = pipe:read('*a')
  pipe:close()
  local body, code = text:match('^(.-) (%d+)\n$')
  return json.decode(body), tonumber(code), body
end

-- Daemons, as a service manager keeps them.

local function is_alive(pid)
  local file = io.open('/proc/' .. pid .. '/stat')
  local text = file and file:read('*a') or ''
  if file then file:close() end
  return text ~= '' and not text:find(') Z', 1, true)
end

local function daemon_start(name)
  local command = command_line(unpack(daemons[name].words))
  local pipe = assert(io.popen(("exec 3>&1; exec >>'%s/%s.log' 2>&1; %s 3>&- & echo $! >&3"):format(
    folder, name, command)))
  daemons[name].pid = tonumber(pipe:read('*l'))
  pipe:close()
end

local function daemons_keep()
  for name, daemon in pairs(daemons) do
    if not is_alive(daemon.pid) then daemon_start(name) end
  end
end

local function daemons_end()
  for _, daemon in pairs(daemons) do libc.kill(daemon.pid, 15) end
end

local function daemons_begin()
  local quick = { '--set', 'heartbeat_interval=300ms', '--set', 'heartbeat_timeout=3s', '--set',
    'registration_error_delay=200ms', '--set', 'registration_refused_delay=200ms' }
  local function add(name, ...)
    daemons[name] = { words = { ... } }
    for _, word in ipairs(quick) do table.insert(daemons[name].words, word) end
    daemon_start(name)
  end
  -- Slots that nobody else on this machine is likely to have.
  local first = 30000 + options.seed % 1000 * 20
  for i = 1, 2 do add('master-' .. i, 'master') end
  for i = 1, options.supervisors do
    add('supervisor-' .. i, 'supervisor', '--id', 's' .. i, '--ports',
      ('%d-%d'):format(first + i * 4, first + i * 4 + 3))
  end
end

local function violation(...)
  io.stderr:write('VIOLATION: ', table.concat({ ... }, ' '), '\nseed ', options.seed, ', files in ',
    folder, '\n')
  run('kill', 'chaos')
  daemons_end()
  os.exit(1)
end

local function describe()
  local document, code = run('describe', 'chaos')
  return code == 0 and document or nil
end

-- Waits until every container runs again.
local function settled(state)
  local deadline = libc.clock_s('mono') + 90
  while libc.clock_s('mono') < deadline do
    daemons_keep()
    local document, is_settled = describe(), true
    for _, container in ipairs(document and document.containers or {}) do
      is_settled = is_settled and container.state == state
    end
    if document and #document.containers > 0 and is_settled and document.state == state then
      return document
    end
    libc.readable(-1, 100)
  end
  violation('the topology does not recover:', (select(3, run('describe', 'chaos'))))
end

local function processes(role)
  local list = {}
  for _, path in ipairs(libc.glob('/proc/[0-9]*/cmdline')) do
    local file = io.open(path, 'rb')
    local text = file and file:read('*a')
    if file then file:close() end
    if text and text:find(folder .. '/state', 1, true) and text:find('--topology', 1, true)
        and (not role or text:match('^%Z+%z(%Z+)') == role) then
      list[#list + 1] = tonumber(path:match('%d+'))
    end
  end
  return list
end

local function any(list) return list[math.random(#list)] end

local function kill_one(role)
  local pid = any(processes(role))
  if pid then libc.kill(pid, libc.SIGKILL) end
end

local function stop_one(role)
  local pid = any(processes(role))
  if not pid then return end
  libc.kill(pid, 19)
  libc.readable(-1, math.random(100, 3000))
  libc.kill(pid, 18)
end

local function update()
  local tasks = math.random(1, 6)
  local document, code, text = run('update', 'chaos', '--parallelism', 'count=' .. tasks,
    '--drain-timeout', '10s')
  if code == 0 then
    updates = updates + 1
    if not is_standalone and document.to_version ~= updates + 1 then
      violation('the plan has version', tostring(document.to_version), 'after', updates, 'updates')
    end
  elseif code ~= 4 and code ~= 8 and not (is_standalone and code == 5) then
    violation('update ended with', tostring(code), text)
  end
  return code
end

local function any_daemon(pattern)
  local names = {}
  for name in pairs(daemons) do
    if name:find(pattern) then names[#names + 1] = name end
  end
  table.sort(names)
  return any(names)
end

local function pause() libc.readable(-1, math.random(1, 4000)) end

-- What a supervisor has started.
local function processes_of(name)
  local list = {}
  local id = name:gsub('supervisor%-', 's')
  for _, pid in ipairs(processes()) do
    local file = io.open('/proc/' .. pid .. '/cmdline', 'rb')
    local text = file and file:read('*a') or ''
    if file then file:close() end
    if text:find('--supervisor\0' .. id .. '\0', 1, true) then list[#list + 1] = pid end
  end
  return list
end

local function daemon_kill(pattern)
  libc.kill(daemons[any_daemon(pattern)].pid, libc.SIGKILL)
  pause()
end

local function daemon_stop(pattern)
  local pid = daemons[any_daemon(pattern)].pid
  libc.kill(pid, 19)
  pause()
  libc.kill(pid, 18)
end

-- A machine goes: all at once, and comes back later.
local function machine_kill()
  local name = any_daemon('^supervisor')
  libc.kill(daemons[name].pid, libc.SIGKILL)
  for _, pid in ipairs(processes_of(name)) do libc.kill(pid, libc.SIGKILL) end
  pause()
end

local harm_of_daemons = {
  { 'kill a master', function() daemon_kill('^master') end },
  { 'kill both masters', function()
    for i = 1, 2 do libc.kill(daemons['master-' .. i].pid, libc.SIGKILL) end
    pause()
  end },
  { 'stop a master', function() daemon_stop('^master') end },
  { 'kill a supervisor', function() daemon_kill('^supervisor') end },
  { 'kill a supervisor and a worker', function()
    libc.kill(daemons[any_daemon('^supervisor')].pid, libc.SIGKILL)
    kill_one('worker')
    pause()
  end },
  { 'stop a supervisor', function() daemon_stop('^supervisor') end },
  { 'end a supervisor', function()
    libc.kill(daemons[any_daemon('^supervisor')].pid, 15)
    pause()
  end },
  { 'kill a machine', machine_kill }, { 'kill a machine', machine_kill },
  { 'kill a worker', function() kill_one('worker') end },
  { 'stop a worker', function() stop_one('worker') end },
  { 'kill the topology master', function() kill_one('topology-master') end },
  { 'stop the topology master', function() stop_one('topology-master') end },
  { 'kill a worker and the topology master', function()
    kill_one('worker')
    kill_one('topology-master')
  end },
  { 'pause and resume', function()
    run('deactivate', 'chaos')
    settled('PAUSED')
    run('activate', 'chaos')
  end },
  { 'update', update }, { 'update', update }, { 'update', update },
}

local harm = {
  { 'kill a worker', function() kill_one('worker') end },
  { 'kill the topology master', function() kill_one('topology-master') end },
  { 'kill the guardian', function() kill_one('guardian') end },
  { 'stop a worker', function() stop_one('worker') end },
  { 'stop the topology master', function() stop_one('topology-master') end },
  { 'kill a worker and the topology master', function()
    kill_one('worker')
    kill_one('topology-master')
  end },
  { 'kill the guardian and the topology master', function()
    local master = processes('topology-master')[1]
    if master then libc.kill(master, 19) end
    kill_one('guardian')
    if master then libc.kill(master, libc.SIGKILL) end
  end },
  { 'restart a container', function() run('restart', 'chaos', '--container', '1') end },
  { 'pause and resume', function()
    run('deactivate', 'chaos')
    settled('PAUSED')
    run('activate', 'chaos')
  end },
  { 'update', update }, { 'update', update }, { 'update', update },
}

local function lines_of(path)
  local set, count = {}, 0
  for line in io.lines(path) do
    if not set[line] then count = count + 1 end
    set[line] = true
  end
  return set, count
end

local function check_end()
  local acked, acked_count = lines_of(folder .. '/acked')
  local seen, seen_count = lines_of(folder .. '/seen')
  -- Their supervisors end them.
  local deadline = libc.clock_s('mono') + (is_standalone and 10 or 0)
  while #processes() > 0 and libc.clock_s('mono') < deadline do
    daemons_keep()
    libc.readable(-1, 100)
  end
  for root in pairs(acked) do
    if not seen[root] then violation('root', root, 'was acked and not seen') end
  end
  if #processes() > 0 then violation('processes are left') end
  local document = run('list')
  if #document.topologies > 0 then violation('the topology is still listed') end
  return acked_count, seen_count
end

math.randomseed(options.seed)
say('seed', options.seed, 'in', folder)
local file = assert(io.open(folder .. '/chaos.lua', 'w'))
file:write(SCRIPT)
file:close()
if is_standalone then daemons_begin() end
local _, code, text
for _ = 1, 20 do
  -- The masters need a moment to elect one, and to hear of supervisors.
  _, code, text = run('submit', folder .. '/chaos.lua', '--set', 'folder=' .. folder)
  if code == 0 or not is_standalone then break end
  libc.readable(-1, 200)
end
if code ~= 0 then violation('submit:', text) end
local rounds = 0
while libc.clock_s('mono') - started < options.minutes * 60 do
  local chosen = any(is_standalone and harm_of_daemons or harm)
  local result = chosen[2]()
  say(chosen[1], result and 'exit ' .. result or '')
  local document = settled('RUNNING')
  if not is_standalone and document.plan_version ~= updates + 1 then
    violation('another plan is in force than the', updates, 'updates made')
  end
  -- One that its supervisor or a new plan does not want any more has a moment to end.
  local deadline = libc.clock_s('mono') + 10
  while #processes('worker') ~= #document.containers do
    if libc.clock_s('mono') > deadline then
      violation(#processes('worker'), 'workers run', #document.containers, 'containers')
    end
    libc.readable(-1, 100)
    document = settled('RUNNING')
  end
  rounds = rounds + 1
end
_, code, text = run('kill', 'chaos', '--wait', '10s')
if code ~= 0 then violation('kill:', text) end
local acked, seen = check_end()
daemons_end()
say(('%d rounds, %d updates, %d roots acked, %d seen: no violation'):format(rounds, updates, acked, seen))
os.execute("rm -rf '" .. folder .. "'")
