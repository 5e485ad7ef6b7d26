-- scripts/chaos: random harm to a local topology, and what must be true of it all the same.
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
  local options, i = { minutes = 1, seed = os.time() }, 1
  while words[i] do
    local name, value = words[i]:match('^%-%-(%a+)$'), tonumber(words[i + 1])
    if not (options[name] and value) then
      io.stderr:write('usage: scripts/chaos [--minutes N] [--seed S]\n')
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

local function say(...)
  io.stderr:write(('%7.1f  '):format(libc.clock_s('mono') - started), table.concat({ ... }, ' '), '\n')
end

-- Runs a command; its document and its exit code.
local function run(...)
  local words = { binary, '-q', '-o', 'json', '--state', 'localfs:' .. folder .. '/state' }
  for _, word in ipairs({ ... }) do words[#words + 1] = word end
  for i, word in ipairs(words) do words[i] = "'" .. word .. "'" end
  local pipe = assert(io.popen(table.concat(words, ' ') .. ' 2>&1; echo " $?"'))
  local text = pipe:read('*a')
  pipe:close()
  local body, code = text:match('^(.-) (%d+)\n$')
  return json.decode(body), tonumber(code), body
end

local function violation(...)
  io.stderr:write('VIOLATION: ', table.concat({ ... }, ' '), '\nseed ', options.seed, ', files in ',
    folder, '\n')
  run('kill', 'chaos')
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
    if document.to_version ~= updates + 1 then
      violation('the plan has version', tostring(document.to_version), 'after', updates, 'updates')
    end
  elseif code ~= 4 and code ~= 8 then
    violation('update ended with', tostring(code), text)
  end
  return code
end

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
local _, code, text = run('submit', folder .. '/chaos.lua', '--set', 'folder=' .. folder)
if code ~= 0 then violation('submit:', text) end
local rounds = 0
while libc.clock_s('mono') - started < options.minutes * 60 do
  local chosen = any(harm)
  local result = chosen[2]()
  say(chosen[1], result and 'exit ' .. result or '')
  if settled('RUNNING').plan_version ~= updates + 1 then
    violation('another plan is in force than the', updates, 'updates made')
  end
  rounds = rounds + 1
end
_, code, text = run('kill', 'chaos', '--wait', '10s')
if code ~= 0 then violation('kill:', text) end
local acked, seen = check_end()
say(('%d rounds, %d updates, %d roots acked, %d seen: no violation'):format(rounds, updates, acked, seen))
os.execute("rm -rf '" .. folder .. "'")
