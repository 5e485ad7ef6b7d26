--- A standalone cluster for functional specs: its daemons, and a topology whose outcome can be checked.
--
--     local cluster = require 'support.standalone'
--     local script = cluster.open()            -- before each; STATE may be given instead of a folder
--     cluster.master(); cluster.supervisor(1, 2)
--     cluster.ok('submit', script)
--     cluster.close()                          -- after each, whatever happened

local assert = require 'luassert'
local commands = require 'support.commands'
local files = require 'support.files'
local net = require 'support.net'
local process = require 'support.process'

-- All that support.commands has is here, too.
local M = setmetatable({}, { __index = commands })

-- Emits numbered roots as long as it is told to. The sink writes what it saw; the spout, at its end,
-- how many it emitted and how many of them were acked.
local SCRIPT = [[
local streamlua = require 'streamlua'
local source = streamlua.spout {
  fields = { 'key', 'root' }, replay = true,
  open = function(self, context) self.config, self.n, self.acked = context.config, 0, 0 end,
  next_tuple = function(self, collector)
    self.n = self.n + 1
    collector:emit({ 'k' .. self.n % 16, self.n }, { id = self.n })
  end,
  ack = function(self) self.acked = self.acked + 1 end,
  close = function(self)
    local file = assert(io.open(self.config.folder .. '/emitted', 'w'))
    file:write(self.n, ' ', self.acked, '\n')
    file:close()
  end,
}
local count = streamlua.bolt {
  fields = { 'key', 'count', 'root' },
  prepare = function(self, context)
    self.counts = context:state('counts')
    if context.config.broken then error('no such table') end
  end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.key, self.counts:add(tuple.key, 1), tuple.root })
  end,
}
local sink = streamlua.bolt {
  prepare = function(self, context)
    self.file = assert(io.open(context.config.folder .. '/sink', 'a'))
    -- What is acked is written, whoever dies.
    self.file:setvbuf('no')
  end,
  execute = function(self, tuple)
    self.file:write(('%s %d %d\n'):format(tuple.key, tuple.count, tuple.root))
  end,
  cleanup = function(self) self.file:close() end,
}
local t = streamlua.topology('counts', { containers = 3, executors = 1, max_spout_pending = 20 })
t:spout('source', source)
t:bolt('count', count, { parallelism = 2 }):fields('source', { 'key' })
t:bolt('sink', sink):global('count')
return t
]]

-- What fails is seen sooner than by default, and nobody is given up for being slow. All processes of the
-- cluster read it.
local SETTINGS = [[return { heartbeat_interval = '200ms', heartbeat_timeout = '10s',
  monitor_interval = '200ms', registration_error_delay = '100ms',
  registration_refused_delay = '100ms', supervisor_timeout = '1s',
  zookeeper_session_timeout = '4s' }]]

local folder

--- Starts a master. Arguments are options of it; it serves no HTTP API unless they say so.
function M.master(...)
  local started = M.daemon('master', unpack(select('#', ...) > 0 and { ... } or { '--api', 'off' }))
  started:expect('stderr', 'stands for election')
  return started
end

--- Starts a supervisor.
function M.supervisor(number, slots, ...)
  local first = 6800 + number * 10
  local started = M.daemon('supervisor', '--id', 's' .. number, '--host', net.address(), '--ports',
    ('%d-%d'):format(first, first + slots - 1), '--cpu', '64', '--ram', '64GiB', ...)
  started:expect('stderr', 'is ready')
  return started
end

--- What sink and source wrote must fit, after a kill that waited: counts are exact.
function M.check_outcome()
  local largest, sum = {}, 0
  for line in process.read_file(folder .. '/sink'):gmatch('[^\n]+') do
    local key, count = line:match('^(%S+) (%d+) %d+$')
    largest[key] = math.max(largest[key] or 0, tonumber(count))
  end
  for _, count in pairs(largest) do sum = sum + count end
  local emitted, acked = process.read_file(folder .. '/emitted'):match('^(%d+) (%d+)')
  assert.is_true(tonumber(emitted) > 0)
  assert.equal(emitted, acked)
  assert.equal(tonumber(emitted), sum)
end

--- A new folder, state and settings for all that is started. Returns the topology's script and the
--- folder. Options: `state` (URL).
---@param options table?
function M.open(options)
  local env
  folder, env = commands.open('counts', { state = options and options.state,
    env = { STREAMLUA_CLUSTER = 'standalone', XDG_STATE_HOME = files.folder(),
      STREAMLUA_SET = 'folder=' .. files.folder() } })
  env.STREAMLUA_CONFIG = files.write('settings.lua', SETTINGS)
  return files.write('counts.lua', SCRIPT), folder
end

return M
