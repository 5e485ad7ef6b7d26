-- The settings: name, type, default, who reads it, and one sentence for docs and `config view`.
-- Settings with scope 'topology' are the cluster's defaults of the topology config (API of
-- docs/topologies.md); the others belong to the command line and the daemons. Those of group
-- 'control' are the control plane's, whose table is in C (core/cluster/settings.h).
--
--   local schema = require 'streamlua.conf.schema'
--   assert(schema.by_name.state_timeout.type == 'duration')

local control = require 'streamlua.conf.control'
local units = require 'streamlua.units'

local M = {}

local function process(name, kind, default, text, more)
  local entry = { name = name, type = kind, default = default, scope = 'process', text = text }
  for key, value in pairs(more or {}) do
    entry[key] = value
  end
  M[#M + 1] = entry
end

local function topology(name, kind, default, text, more)
  process(name, kind, default, text, more)
  M[#M].scope = 'topology'
end

process('cluster', 'name', 'local', 'Cluster whose conf/NAME.lua is read.')
process('state', 'string', nil, 'URL of the state manager.', { default_text =
  'localfs:${XDG_STATE_HOME:-~/.local/state}/streamlua' })
process('service_url', 'string', nil, 'HTTP API of a master that commands talk to.')
process('secret', 'string', nil, 'Secret that all processes of a cluster share.', { secret = true })
process('launcher', 'string', 'local', 'How containers are started: local, standalone, or a file.')
process('scheduler_service', 'boolean', true,
  'Commands reach the scheduler over its endpoint (true) or load the launcher themselves.')
process('output', 'enum', 'table', 'Form of results.', { values = { 'table', 'json' } })
process('color', 'enum', 'auto', 'Colour on a terminal.',
  { values = { 'auto', 'always', 'never' } })
process('verbose', 'integer', 0, 'How much more to say.', { least = 0 })
process('quiet', 'integer', 0, 'How much less to say.', { least = 0 })
process('timeout', 'duration', nil, 'How long a command waits for the cluster.')

for _, row in ipairs(control.rows()) do
  process(row.name, row.type, row.default, row.text, { least = row.least, group = 'control' })
end

topology('scheduler', 'string', 'packed',
  'Scheduler of submitted topologies: packed, balanced, even, round_robin, or a file.')
topology('packing', 'string', 'round_robin',
  'Packer: round_robin, first_fit_decreasing, resource_compliant_rr, or a file.')
topology('repacking', 'string', 'first_fit_decreasing', 'Packer for changes of a plan.')
topology('containers', 'integer', nil, 'Worker processes.', { least = 1 })
topology('workers', 'integer', nil, 'Another name of containers.', { least = 1 })
topology('executors', 'integer', nil, 'Executor threads a worker.', { least = 1 })
topology('acking', 'boolean', true, 'Track emits that carry an id.')
topology('ackers', 'integer', nil, 'Acker tasks; unset tracks roots at the executor of the spout.',
  { least = 0 })
topology('message_timeout', 'duration', '30s', 'Time after which a tuple that is not acked fails.')
topology('max_spout_pending', 'integer', 16384, 'Roots in flight a spout task.', { least = 1 })
topology('key_groups', 'integer', nil, 'Key groups of keyed components.',
  { least = 1, most = 32768 })
topology('container_cpu', 'number', nil, 'Cores of a container.')
topology('container_ram', 'size', nil, 'Memory of a container.')
topology('container_disk', 'size', nil, 'Disk of a container.')
topology('container_max_instances', 'integer', 10, 'Instances a container holds at most.',
  { least = 1 })
topology('container_cpu_padding', 'number', nil, 'Cores of a container kept for itself.')
topology('container_ram_padding', 'size', nil, 'Memory of a container kept for itself.')
topology('container_padding_percentage', 'number', nil, 'Share of a container kept for itself.')
topology('master_alone', 'boolean', nil, 'Give the topology master a worker of its own.')
topology('reserve_workers', 'integer', nil, 'Workers kept in reserve.', { least = 0 })
topology('isolation', 'list', nil, 'Hosts the topology is confined to.')
topology('user_workers', 'list', nil, 'Workers with a fixed host, port or tasks.')
topology('use_old_assignment', 'boolean', false, 'Start from the assignment the name last had.')
topology('on_different_nodes', 'list', nil, 'Components whose tasks avoid sharing a node.')
-- Not of scope 'topology': a topology may have a key `config` of its own.
process('config', 'table', nil, "Defaults for keys of the topologies' own.")

M.by_name = {}
M.names = {}
for i, entry in ipairs(M) do
  M.by_name[entry.name] = entry
  M.names[i] = entry.name
end

local function is_whole(value)
  return type(value) == 'number' and value == math.floor(value) and math.abs(value) <= 2 ^ 53
end

local checks = {}

function checks.string(value)
  return type(value) == 'string' and value ~= '', 'text'
end

function checks.name(value)
  return type(value) == 'string' and value:find('^[%w_.-]+$') and #value <= 64
    and value ~= '.' and value ~= '..', 'a name'
end

function checks.boolean(value)
  return type(value) == 'boolean', 'true or false'
end

function checks.integer(value, entry)
  local least, most = entry.least or -2 ^ 53, entry.most or 2 ^ 53
  local range = entry.most and ('a whole number within %d..%d'):format(least, most)
    or ('a whole number of at least %d'):format(least)
  return is_whole(value) and value >= least and value <= most, range
end

function checks.number(value)
  return type(value) == 'number' and value == value and value >= 0 and value < math.huge,
    'a number of at least 0'
end

function checks.duration(value, entry)
  local seconds = units.parse_duration(value)
  -- Times of the control plane are whole milliseconds, and most of them are not 0.
  if seconds and entry.group == 'control' then
    local ms = math.floor(seconds * 1000 + 0.5)
    return ms >= entry.least and ms <= 2 ^ 53, ('a duration of at least %dms'):format(entry.least)
  end
  return seconds ~= nil, 'a duration like "500ms" or "10s"'
end

function checks.size(value)
  return units.parse_size(value) ~= nil, 'a size like "512MiB"'
end

function checks.enum(value, entry)
  for _, allowed in ipairs(entry.values) do
    if value == allowed then
      return true
    end
  end
  return false, 'one of ' .. table.concat(entry.values, ', ')
end

function checks.list(value)
  if type(value) ~= 'table' then
    return false, 'a list'
  end
  for key in pairs(value) do
    if type(key) ~= 'number' then
      return false, 'a list'
    end
  end
  return true
end

function checks.table(value)
  return type(value) == 'table', 'a table'
end

local function shown(value)
  if type(value) == 'string' then
    return ("'%s'"):format(value)
  end
  return type(value) == 'table' and 'a table' or tostring(value)
end

--- Checks one value. Returns true, or false and the reason.
---@param name string
---@param value any
---@return boolean ok
---@return string? reason
function M.check(name, value)
  local entry = M.by_name[name]
  if not entry then
    return false, 'unknown setting'
  end
  local ok, wanted = checks[entry.type](value, entry)
  if ok then
    return true
  end
  return false, ('expected %s, got %s'):format(wanted, shown(value))
end

return M
