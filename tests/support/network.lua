--- Hosts of their own in network namespaces, joined by a bridge in the network of this process, and cut
--- off from each other at will.
--
--     local network = require 'support.network'
--     local why = network.missing()               -- nil where it works, else the reason
--     network.enter(program, args)                -- begins this program anew in a network of its own
--     network.open('10.78.0.254')                 -- there: the bridge, with an address of ours
--     local a, b = network.host('10.78.0.1'), network.host('10.78.0.2')
--     a.network                                   -- the process whose network it is, for `nsenter`
--     network.cut(a, b); network.heal(a, b)       -- frames between the two vanish in both directions
--     network.unplug(a); network.plug(a)          -- ... between it and everybody

local eventually = require 'support.eventually'
local posix = { stdlib = require 'posix.stdlib', unistd = require 'posix.unistd' }
local process = require 'support.process'

local M = {}

local ENTERED = 'SL_TEST_NETWORK'
-- Nobody has this address: what is sent to it arrives nowhere, and no error comes back.
local NOWHERE = '02:00:00:00:00:01'

local hosts = 0

local function shell(command) return os.execute(command .. ' 2>/dev/null') == 0 end

-- How a network of its own is had: as root, or as the only user of a name space.
local function way()
  for _, options in ipairs({ '-n', '-rn' }) do
    if shell(('unshare %s ip link add br0 type bridge'):format(options)) then return options end
  end
end

--- Why there are no network namespaces here; nil where there are.
---@return string?
function M.missing()
  if not way() then return 'network namespaces are not permitted here, or `ip` is missing' end
end

--- Begins a program anew, in place of this one, in a network of its own. False: this is it.
---@param program string
---@param args string[]
---@return boolean
function M.enter(program, args)
  if posix.stdlib.getenv(ENTERED) then return false end
  posix.stdlib.setenv(ENTERED, '1')
  local _, message = posix.unistd.execp('unshare', { way(), program, unpack(args) })
  error(message)
end

local function must(command)
  if not shell(command) then error('failed: ' .. command, 0) end
end

--- Makes the bridge.
---@param address string
function M.open(address)
  must('ip link set lo up')
  must('ip link add br0 type bridge')
  must(('ip addr add %s/24 dev br0'):format(address))
  must('ip link set br0 up')
end

-- Runs `ip` in the network of a host.
local function ip(host, command)
  must(('nsenter --net=/proc/%d/ns/net ip %s'):format(host.network, command))
end

--- A host with an address of the bridge's network.
---@param address string
---@return table host {address=, network=}
function M.host(address)
  hosts = hosts + 1
  local holder = process.start({ '--pdeathsig', 'KILL', 'unshare', '-n', 'sleep', 'infinity' },
    { program = 'setpriv' })
  local host = { address = address, network = holder.pid, outside = 'v' .. hosts, inside = 'w' .. hosts,
    holder = holder }
  local ours = posix.unistd.readlink('/proc/self/ns/net')
  local is_apart = eventually(function()
    local its = posix.unistd.readlink(('/proc/%d/ns/net'):format(holder.pid))
    return its and its ~= ours
  end)
  if not is_apart then error('no network of its own for ' .. address, 0) end
  must(('ip link add %s type veth peer name %s'):format(host.outside, host.inside))
  must(('ip link set %s netns %d'):format(host.inside, holder.pid))
  must(('ip link set %s up'):format(host.outside))
  M.plug(host)
  ip(host, 'link set lo up')
  ip(host, ('addr add %s/24 dev %s'):format(address, host.inside))
  ip(host, ('link set %s up'):format(host.inside))
  return host
end

--- Cuts a host off from everybody.
function M.unplug(host) must(('ip link set %s nomaster'):format(host.outside)) end

--- Joins it again.
function M.plug(host) must(('ip link set %s master br0'):format(host.outside)) end

--- Has all that two hosts send to each other vanish.
function M.cut(one, two)
  ip(one, ('neigh replace %s lladdr %s dev %s nud permanent'):format(two.address, NOWHERE, one.inside))
  ip(two, ('neigh replace %s lladdr %s dev %s nud permanent'):format(one.address, NOWHERE, two.inside))
end

--- Lets them reach each other again.
function M.heal(one, two)
  ip(one, ('neigh del %s dev %s'):format(two.address, one.inside))
  ip(two, ('neigh del %s dev %s'):format(one.address, two.inside))
end

--- Ends the hosts; what runs in them is ended before.
function M.close(list)
  for _, host in ipairs(list) do host.holder:signal('KILL') end
  for _, host in ipairs(list) do host.holder:wait() end
end

return M
