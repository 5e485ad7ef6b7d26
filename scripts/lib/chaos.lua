-- scripts/chaos: harm to a topology, and what must be true of it all the same. It is a local one, or runs
-- in the slots of supervisors, with two masters, on a state folder or on ZooKeeper servers.
--
-- Every root that was acked must have been seen, every one that was emitted is acked in the end, none waits
-- for its time-out, and none is seen twice without a reason; the plan's version must count the updates that
-- succeeded; in the end no process and nothing stored is left, and nobody listens.

package.path = 'tests/?.lua;' .. package.path

local Cluster = require 'chaos.cluster'
local faults = require 'chaos.faults'
local libc = require 'streamlua.connectors.libc'
local network = require 'support.network'
local process = require 'support.process'
local topology = require 'chaos.topology'
local transactions = require 'chaos.transactions'
local zookeeper = require 'support.zookeeper'

local USAGE = 'usage: scripts/chaos [--minutes N] [--seed S] [--supervisors N] [--zookeeper N] [--outage S] '
  .. '[--containers N] [--ackers N] [--faults NAME,NAME...]\n'

local function arguments(words)
  local options = { minutes = 1, seed = os.time(), supervisors = 0, zookeeper = 0, outage = 30, faults = '',
    containers = 0, ackers = -1 }
  for i = 1, #words, 2 do
    local name = words[i]:match('^%-%-(%a+)$')
    local value = words[i + 1]
    if type(options[name]) == 'number' then value = tonumber(value) end
    if not (options[name] and value) then
      io.stderr:write(USAGE)
      os.exit(2)
    end
    options[name] = value
  end
  if options.zookeeper > 0 then options.supervisors = math.max(options.supervisors, 3) end
  return options
end

local function temporary_folder()
  local pipe = assert(io.popen('mktemp -d'))
  local folder = pipe:read('*l')
  pipe:close()
  return folder
end

local options = arguments(arg)
local is_standalone = options.supervisors > 0
if options.zookeeper > 0 and not zookeeper.is_installed() then
  io.stderr:write('skipped: package zookeeper is not installed\n')
  os.exit(0)
end
local no_networks = options.zookeeper == 0 and 'there is no ZooKeeper' or network.missing()
if not no_networks then
  network.enter(libc.realpath('/proc/self/exe'), { 'exec', arg[0], unpack(arg) })
end
local cluster = Cluster.new { folder = temporary_folder(), seed = options.seed, outage = options.outage,
  supervisors = options.supervisors, members = options.zookeeper, with_hosts = not no_networks }

-- All kinds of harm, each as often as it weighs, with the reason why it is not possible here.
local function kinds()
  local list = {}
  local function add(some, missing)
    for _, kind in ipairs(some) do
      for _ = 1, kind.weight or 1 do list[#list + 1] = { name = kind[1], fn = kind[2], missing = missing } end
    end
  end
  local no_cluster = not is_standalone and 'the topology is a local one'
  local no_servers = options.zookeeper == 0 and 'there is no ZooKeeper'
  local no_ensemble = options.zookeeper < 3 and 'ZooKeeper has one server'
  add(faults.LOCAL, is_standalone and 'it has no daemons')
  add(faults.WORKERS)
  add(faults.CONNECTIONS, faults.missing_ss())
  add(faults.STANDALONE, no_cluster)
  add(faults.ZOOKEEPER, no_servers)
  add(faults.ENSEMBLE, no_servers or no_ensemble)
  add(faults.NETWORK, no_networks)
  add(faults.NETWORK_ENSEMBLE, no_networks or no_ensemble)
  return list
end

-- The kinds that were asked for, in that order; without a wish, all that are possible.
local function wanted(list)
  local chosen = {}
  for name in options.faults:gmatch('[^,]+') do
    local found
    for _, kind in ipairs(list) do
      if kind.name == name and not (found and kind.missing) then found = kind end
    end
    if not found then
      io.stderr:write(("error: no such harm: '%s'\n"):format(name))
      os.exit(2)
    end
    chosen[#chosen + 1] = found
  end
  for _, kind in ipairs(options.faults == '' and list or {}) do
    if not kind.missing then chosen[#chosen + 1] = kind end
  end
  return chosen
end

local function submit()
  for _, name in ipairs({ 'chaos', 'other' }) do
    process.write_file(('%s/%s.lua'):format(cluster.folder, name),
      topology.script(name, options.containers, options.ackers > 0 and options.ackers or nil))
  end
  local code, text
  for _ = 1, 50 do
    -- The masters need a moment to elect one, and to hear of supervisors.
    code, text = select(2, cluster:run('submit', cluster.folder .. '/chaos.lua'))
    if code == 0 or not is_standalone then break end
    Cluster.sleep(0.2)
  end
  if code ~= 0 then error('submit: ' .. text, 0) end
end

local rounds, present = 0, nil

local function one_round(kind)
  if kind.missing then
    cluster:say('skipped:', kind.name .. ':', kind.missing)
    return
  end
  local began = Cluster.now()
  present = kind.name
  local result = kind.fn(cluster)
  local document = cluster:settled('RUNNING')
  if cluster.is_in_doubt and document.plan_version == cluster.updates + 2 then
    cluster.updates = cluster.updates + 1
  end
  cluster.is_in_doubt = false
  if not is_standalone and document.plan_version ~= cluster.updates + 1 then
    error(('plan %d is in force after %d updates'):format(document.plan_version, cluster.updates), 0)
  end
  cluster:ends(10)
  rounds = rounds + 1
  cluster:say(kind.name, result and 'exit ' .. result or '', ('(%.1f s)'):format(Cluster.now() - began))
end

-- What ZooKeeper knows: nobody led who was not elected, and nothing is left but folders.
local function check_nodes()
  local root, left = cluster.zookeeper.url:match('(/[^/]+)$'), nil
  local function said() return 'nodes are left: ' .. table.concat(left, ' ') end
  cluster:await(2 * Cluster.SESSION_S, said, function()
    left = {}
    for path, owner in pairs(transactions.replay(transactions.read(cluster.zookeeper:logs()), root)) do
      if owner ~= '' or path:find('/chaos', 1, true) or path:find('/other', 1, true) then
        left[#left + 1] = path
      end
    end
    return #left == 0
  end)
end

local function finish()
  cluster:ok('kill', 'chaos', '--wait', '30s', '--purge')
  cluster:await(is_standalone and 10 or 0, 'processes are left', function()
    cluster:keep()
    return #cluster:processes() == 0
  end)
  if #cluster:ok('list').topologies > 0 then error('the topology is still listed', 0) end
  cluster:end_daemons()
  if cluster.zookeeper then
    check_nodes()
  end
  return topology.check(cluster.folder)
end

math.randomseed(options.seed)
if options.containers == 0 then options.containers = math.random(2, 4) end
if options.ackers < 0 then options.ackers = 2 * math.random(0, 1) end
local chosen, acked, seen = wanted(kinds()), nil, nil
cluster:say('seed', options.seed, 'in', cluster.folder, 'with', options.containers, 'containers and', options.ackers,
  'ackers')
local is_fine, fault = xpcall(function()
  cluster:begin()
  submit()
  local began = Cluster.now()
  if options.faults ~= '' then
    for _, kind in ipairs(chosen) do one_round(kind) end
  else
    while Cluster.now() - began < options.minutes * 60 do one_round(chosen[math.random(#chosen)]) end
  end
  present = nil
  acked, seen = finish()
end, function(raised) return raised:find('^[^\n]+%.lua:%d+:') and debug.traceback(raised) or raised end)
if not is_fine then
  io.stderr:write('VIOLATION: ', present and present .. ': ' or '', fault, '\nseed ', options.seed, ', files in ',
    cluster.folder, '\n')
  -- How things are then is of more use than how they come to be.
  local is_told, _, _, text = pcall(cluster.run, cluster, 'describe', 'chaos')
  if is_told then io.stderr:write(text, '\n') end
end
cluster:finish()
if not is_fine then os.exit(1) end
cluster:say(('%d rounds, %d updates, %d roots acked, %d seen: no violation'):format(rounds, cluster.updates, acked,
  seen))
os.execute("rm -rf '" .. cluster.folder .. "'")
