--- The other processes of a submitted program, from the driver's side: their crews run tasks and
--- receivers (docs/decisions/0020-stream-programs-on-a-cluster.md).
--
-- A host says that it is there with its slots. Each receiver takes a slot, the others run tasks; one more
-- than there are is sent ahead. What a host had when it was lost goes to another one: a task is a pure
-- function of the blocks that came with it, so it may run twice.

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local message = require 'streamlua.streaming.message'
local wire = require 'streamlua.streaming.wire'

local C = abi.C

local M = {}

-- Processes that a task may end before it fails.
local TRIES = 4
-- How long a connection may be broken before a host counts as lost.
local PATIENCE_MS = 5000

---@class streamlua.Hosts
local Hosts = {}
Hosts.__index = Hosts

--- The hosts of a pool's driver. `link` is what reaches them (struct sl_crew_link *).
---@param pool table
---@param link ffi.cdata*
function M.new(pool, link)
  local self = setmetatable({
    pool = pool,
    context = pool.context,
    link = link,
    -- By container; those that are there in order of their coming; by the number that C has for them.
    by_container = {},
    list = {},
    by_worker = {},
    -- Tasks that wait for a slot.
    first = 1,
    last = 0,
    queue = {},
  }, Hosts)
  pool:on(message.HOST, function(document, container) self:came(container, document) end)
  return self
end

--- Sends to a member of a host's crew, or to any.
function Hosts:send(host, member, kind, bytes)
  if C.sl_abi_crew_link_send(self.link, host.container, member, kind, bytes, #bytes) < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
end

local function free_slots(host) return math.max(0, host.slots - host.receivers) end

-- The host with the least to do for its slots, nil when all have enough.
local function idlest(self)
  local best, least
  for _, host in ipairs(self.list) do
    local slots = free_slots(host)
    if slots > 0 and host.load <= slots and not host.broken_at then
      local rank = host.load / slots
      if not least or rank < least then best, least = host, rank end
    end
  end
  return best
end

local function fail(self, entry, text) self.pool:settle({ id = entry.id, failure = text }) end

-- Hands tasks out as long as there are slots.
local function dispatch(self)
  local pool = self.pool
  while self.first <= self.last do
    local entry = self.queue[self.first]
    local host = pool.waiting[entry.id] == entry and idlest(self) or nil
    if host then
      entry.document.id = entry.id
      local ok, raised = pcall(function()
        self:send(host, C.SL_CREW_ANY, message.TASK, wire.pack(entry.document, true))
      end)
      if ok then
        entry.host = host
        host.load = host.load + 1
        host.tasks[entry.id] = entry
      else
        fail(self, entry, require('streamlua.streaming.site').raised(raised))
      end
    elseif pool.waiting[entry.id] == entry then
      return
    end
    self.queue[self.first] = nil
    self.first = self.first + 1
  end
end

local function push(self, entry)
  self.last = self.last + 1
  self.queue[self.last] = entry
end

--- Runs a task on a host: entry = {id, document, group, place} of the pool's.
function Hosts:run(entry)
  entry.tries = 0
  push(self, entry)
  dispatch(self)
end

--- A task has ended.
function Hosts:ended(entry)
  local host = entry.host
  if not host then return end
  host.tasks[entry.id] = nil
  host.load = host.load - 1
  entry.host = nil
  dispatch(self)
end

-- What a host had under way goes to others.
local function take_back(self, host)
  local pool = self.pool
  local entries = {}
  for _, entry in pairs(host.tasks) do entries[#entries + 1] = entry end
  table.sort(entries, function(a, b) return a.id < b.id end)
  host.tasks, host.load = {}, 0
  for _, entry in ipairs(entries) do
    entry.host = nil
    entry.tries = entry.tries + 1
    if entry.tries >= TRIES then
      fail(self, entry, ('a task has ended %d processes: container %d was the last'):format(TRIES,
        host.container))
    else
      -- With a number of its own, so that a late result of the first run is not taken for this one's.
      pool.waiting[entry.id] = nil
      entry.id = pool:next_id()
      pool.waiting[entry.id] = entry
      push(self, entry)
    end
  end
end

local function remove(list, item)
  for i, other in ipairs(list) do
    if other == item then table.remove(list, i) end
  end
end

--- A host is lost: its receivers and tasks go elsewhere.
function Hosts:lose(container, why)
  local host = self.by_container[container]
  if not host then return end
  self.by_container[container] = nil
  self.by_worker[host.worker] = nil
  remove(self.list, host)
  self.context:note('container %d is lost: %s', container, why)
  if self.on_lost then self.on_lost(host) end
  C.sl_abi_streaming_worker_remove(self.context.handle, host.worker)
  take_back(self, host)
  dispatch(self)
end

--- A host says that it is there.
function Hosts:came(container, document)
  self:lose(container, 'its process was replaced')
  local worker = C.sl_abi_streaming_worker_add(self.context.handle, ('container-%d'):format(container),
    document.host, document.slots)
  if worker < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
  self.context.has_worker = true
  local host = { container = container, worker = worker, slots = document.slots, receivers = 0, load = 0,
    tasks = {} }
  self.by_container[container], self.by_worker[worker] = host, host
  self.list[#self.list + 1] = host
  dispatch(self)
end

--- The connection to a host has changed.
function Hosts:changed(container, change)
  local host = self.by_container[container]
  if change == C.SL_CREW_PEER_LEFT then
    self:lose(container, 'its process has ended')
  elseif change == C.SL_CREW_PEER_CAME then
    self:lose(container, 'its process was replaced')
  elseif host and change == C.SL_CREW_PEER_BROKE then
    host.broken_at = C.sl_abi_monotonic_ms()
  elseif host and change == C.SL_CREW_PEER_RESUMED then
    host.broken_at = nil
    dispatch(self)
  end
end

--- Milliseconds until a host with a broken connection is given up, nil: there is none. Gives up those
--- whose time has come.
---@return number?
function Hosts:check()
  local now, least = C.sl_abi_monotonic_ms(), nil
  for i = #self.list, 1, -1 do
    local host = self.list[i]
    local left = host.broken_at and host.broken_at + PATIENCE_MS - now
    if left and left <= 0 then
      self:lose(host.container, 'it can not be reached')
      -- Should it come back, it starts anew.
      self:send(host, C.SL_CREW_ANY, message.GIVEN_UP, '')
    elseif left then
      least = math.min(least or left, left)
    end
  end
  return least
end

--- Slots of all hosts.
function Hosts:slots()
  local sum = 0
  for _, host in ipairs(self.list) do sum = sum + host.slots end
  return sum
end

--- A receiver takes a slot of a host, or gives it back.
function Hosts:occupy(host, change)
  host.receivers = host.receivers + change
  dispatch(self)
end

return M
