-- `streamlua diff A.json B.json`: two plans or two assignments; exit 0 same, 1 differ, 2+ failed.

local order = require 'streamlua.cli.order'
local packing = require 'streamlua.packing'

-- What a document is, by its parts.
local function kind_of(value)
  if type(value) ~= 'table' then return nil end
  if value.containers ~= nil then return 'plan' end
  if value.workers ~= nil then return 'assignment' end
end

local function read(context, path)
  local value = context:read_json(path, 'document')
  local kind = kind_of(value)
  if not kind then
    context:fail('invalid', ("document '%s'"):format(path),
      'it is neither a plan (containers) nor an assignment (workers)')
  end
  return value, kind
end

local function entry_of(instance)
  return { component = instance.component, task = instance.task, index = instance.index,
    cpu = instance.cpu, ram = instance.ram, disk = instance.disk }
end

local function entries(list)
  local result = {}
  for i, instance in ipairs(list) do result[i] = entry_of(instance) end
  return result
end

local function plan_document(old, new, delta)
  local containers = {}
  for k, entry in ipairs(delta.containers) do
    containers[k] = { id = entry.id, state = entry.state, added = entries(entry.added),
      removed = entries(entry.removed) }
  end
  local moves = {}
  for _, instance in ipairs(delta.instances) do
    if instance.state == 'moved' then
      moves[#moves + 1] = { component = instance.component, task = instance.task,
        from = instance.from, to = instance.to }
    end
  end
  return { kind = 'plan', same = false, topology = new.topology, from_version = old.version,
    to_version = new.version, containers = containers, kept = delta.kept, moved = delta.moved,
    started = delta.started, stopped = delta.stopped, moves = moves }
end

-- True when two plans place the same instances in the same containers. Version and packer are not
-- part of where things run.
local function plans_are_same(old, new, delta)
  if old.topology ~= new.topology then return false end
  for _, entry in ipairs(delta.containers) do
    if entry.state ~= 'UNAFFECTED' then return false end
    for _, key in ipairs({ 'supervisor', 'host', 'port' }) do
      if entry.old[key] ~= entry.new[key] then return false end
    end
  end
  return true
end

local function diff_plans(context, a, b, paths)
  local old, failure = packing.validate_plan(a, { what = ("plan '%s'"):format(paths[1]) })
  context:check(old, failure)
  local new
  new, failure = packing.validate_plan(b, { what = ("plan '%s'"):format(paths[2]) })
  context:check(new, failure)
  local delta
  delta, failure = require('streamlua.packing.native').delta(old, new)
  context:check(delta, failure)
  local same = plans_are_same(old, new, delta)
  local document = plan_document(old, new, delta)
  document.same = same
  if context.output == 'json' then
    context:print_json(document, order.plan_diff)
  elseif not same then
    context.stdout:write(packing.render_update(old, new, { color = context.color, delta = delta }))
    context:print('')
    context:print(('%d kept, %d moved, %d started, %d stopped'):format(delta.kept, delta.moved,
      delta.started, delta.stopped))
  end
  return same and 0 or 1
end

local function diff_assignments(context, a, b, paths)
  local assignment = require 'streamlua.scheduling.diff'
  local document, failure = assignment.diff(a, b, { names = paths })
  context:check(document, failure)
  if context.output == 'json' then
    context:print_json(document, order.assignment_diff)
  elseif not document.same then
    context.stdout:write(assignment.render(document, { color = context.color }))
  end
  return document.same and 0 or 1
end

return {
  name = 'diff',
  summary = 'Compare two plans or two assignments: exit 0 same, 1 differ.',
  description = 'Compares two plans or two assignments (JSON). Prints nothing and ends with 0 when '
    .. 'they are the same, prints what differs and ends with 1 when they are not.',
  declare = function(command)
    command:argument('old', "The document before ('-' is standard input)."):argname('A.json')
    command:argument('new', 'The document after.'):argname('B.json')
  end,
  run = function(context, args)
    local paths = { args.old, args.new }
    local a, kind = read(context, args.old)
    local b, other = read(context, args.new)
    if kind ~= other then
      context:fail('invalid', 'diff', ('%s is %s, %s is %s: there is nothing to compare'):format(
        args.old, kind == 'plan' and 'a plan' or 'an assignment', args.new,
        other == 'plan' and 'a plan' or 'an assignment'))
    end
    if kind == 'plan' then return diff_plans(context, a, b, paths) end
    return diff_assignments(context, a, b, paths)
  end,
}
