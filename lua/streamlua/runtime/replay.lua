--- Replays: what a spout with `replay` has emitted and not yet seen acked, emitted again on failure.
--
-- Values are kept as they were when they were emitted. A failed emit waits for the configured delay,
-- then goes out again as a root of its own with the same id; past the limit the spout's `fail` is
-- called instead.

local value = require 'streamlua.runtime.value'

local M = {}

local Replays = {}
Replays.__index = Replays

-- Tables may change after the emit: they are kept as a copy.
local function copy_values(values, count)
  local copy = {}
  for i = 1, count do
    local item = values[i]
    if type(item) == 'table' then
      local bytes = value.encode(item)
      item = value.decode(bytes, #bytes)
    end
    copy[i] = item
  end
  return copy
end

--- Keeps what was emitted in a root's slot.
function Replays:keep(slot, id, values, stream, options)
  local again = self.emitting
  self.kept[slot] = again or {
    id = id,
    values = copy_values(values, #stream.fields),
    stream = stream.name,
    task = options and options.task or nil,
    attempts = 0,
  }
end

--- The root of a slot was acked.
function Replays:forget(slot) self.kept[slot] = nil end

--- The root of a slot has failed: false when it was tried as often as allowed.
function Replays:retry(slot)
  local entry = self.kept[slot]
  self.kept[slot] = nil
  if not entry or (self.limit and entry.attempts >= self.limit) then return false end
  entry.attempts = entry.attempts + 1
  entry.due_ms = self.rt.executor:now_ms() + self.delay_ms
  local last = self.last + 1
  self.queue[last] = entry
  self.last = last
  self.rt.task.replaying = self.rt.task.replaying + 1
  return true
end

--- Milliseconds until the next replay is due; -1 = none waits.
function Replays:due_in()
  local entry = self.queue[self.first]
  if not entry then return -1 end
  return math.max(0, entry.due_ms - self.rt.executor:now_ms())
end

--- Emits what is due, at most `most`. Returns how many, and the milliseconds until the next one is due
--- (-1 = none waits).
function Replays:emit_due(most)
  local emitted = 0
  local now = self.rt.executor:now_ms()
  while emitted < most do
    local entry = self.queue[self.first]
    if not entry or entry.due_ms > now then break end
    self.queue[self.first] = nil
    self.first = self.first + 1
    self.emitting = entry
    local emit = self.rt.emit_by_stream[entry.stream]
    local ok, err = pcall(emit, entry.values, { id = entry.id, task = entry.task })
    self.emitting = nil
    if ok then
      -- It is the engine's emit, not one of the user's.
      self.rt.task.emits = self.rt.task.emits - 1
    else
      self.rt.report_error(err, 'replay')
    end
    self.rt.task.replaying = self.rt.task.replaying - 1
    emitted = emitted + 1
  end
  return emitted, self:due_in()
end

--- The replays of a spout task.
---@param rt table
---@param options { limit?: integer, delay: number } delay in seconds
function M.new(rt, options)
  return setmetatable({
    rt = rt,
    limit = options.limit,
    delay_ms = options.delay * 1000,
    kept = {},
    queue = {},
    first = 1,
    last = 0,
  }, Replays)
end

return M
