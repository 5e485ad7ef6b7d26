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

local function diff_plans(context, a, b, paths)
  local document, show = packing.diff(a, b, { names = paths })
  context:check(document, show)
  if context.output == 'json' then
    context:print_json(document, order.plan_diff)
  elseif not document.same then
    context.stdout:write(show(context.color))
  end
  return document.same and 0 or 1
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
