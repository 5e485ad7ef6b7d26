-- What lies between two plans, as the document of `streamlua diff`.
--
--   local diff = require 'streamlua.packing.diff'
--   local delta, show = assert(diff.diff(before, after))    -- delta.same, delta.moves ...
--   io.write(show(true))

local document = require 'streamlua.packing.document'
local native = require 'streamlua.packing.native'
local render = require 'streamlua.packing.render'

local M = {}

local function entry_of(instance)
  return { component = instance.component, task = instance.task, index = instance.index,
    cpu = instance.cpu, ram = instance.ram, disk = instance.disk }
end

local function entries(list)
  local result = {}
  for i, instance in ipairs(list) do result[i] = entry_of(instance) end
  return result
end

-- True when two plans place the same instances in the same containers. Version and packer are not
-- part of where things run.
local function are_same(old, new, delta)
  if old.topology ~= new.topology then return false end
  for _, entry in ipairs(delta.containers) do
    if entry.state ~= 'UNAFFECTED' then return false end
    for _, key in ipairs({ 'supervisor', 'host', 'port' }) do
      if entry.old[key] ~= entry.new[key] then return false end
    end
  end
  return true
end

local function compare(old, new, delta)
  local containers, moves = {}, {}
  for k, entry in ipairs(delta.containers) do
    containers[k] = { id = entry.id, state = entry.state, added = entries(entry.added),
      removed = entries(entry.removed) }
  end
  for _, instance in ipairs(delta.instances) do
    if instance.state == 'moved' then
      moves[#moves + 1] = { component = instance.component, task = instance.task,
        from = instance.from, to = instance.to }
    end
  end
  return { kind = 'plan', same = are_same(old, new, delta), topology = new.topology,
    from_version = old.version, to_version = new.version, containers = containers,
    kept = delta.kept, moved = delta.moved, started = delta.started, stopped = delta.stopped,
    moves = moves }
end

--- Compares two plans: {kind='plan', same=, topology=, from_version=, to_version=, containers={{id=,
--- state=, added=, removed=}}, kept=n, moved=n, started=n, stopped=n, moves={{component=, task=,
--- from=, to=}}}.
---@param before table document
---@param after table document
---@param options table? {names={what the first is called, the second}}
---@return table? document
---@return fun(color: boolean): string|streamlua.Error shows it as tables
function M.diff(before, after, options)
  local names = options and options.names or {}
  local function read(given, name, what)
    return document.plan(given, { what = name and ("plan '%s'"):format(name) or what })
  end
  local old, new, delta, fault
  old, fault = read(before, names[1], 'old plan')
  if not old then return nil, fault end
  new, fault = read(after, names[2], 'new plan')
  if not new then return nil, fault end
  delta, fault = native.delta(old, new)
  if not delta then return nil, fault end
  return compare(old, new, delta), function(color)
    return ('%s\n%d kept, %d moved, %d started, %d stopped\n'):format(
      render.update(old, new, { color = color, delta = delta }), delta.kept, delta.moved,
      delta.started, delta.stopped)
  end
end

return M
