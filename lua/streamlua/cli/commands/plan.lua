-- `streamlua plan`: packs a topology or a request, or changes a plan; nothing runs.

local apart = require 'streamlua.cli.apart'
local custom = require 'streamlua.packing.custom'
local order = require 'streamlua.cli.order'
local packing = require 'streamlua.packing'
local parallelism = require 'streamlua.cli.parallelism'
local parser = require 'streamlua.cli.parser'
local sandbox = require 'streamlua.sandbox'

local function check_usage(context, args)
  if (args.script == nil) == (args.request == nil) then
    context:fail('usage', 'plan', 'one of SCRIPT and --request FILE is needed, not both',
      "see 'streamlua plan --help'")
  elseif args.repacking and not args.from and not args.request then
    context:fail('usage', '--repacking', 'it needs --from, the plan to start from')
  elseif args.from == '-' and args.request == '-' then
    context:fail('usage', 'plan', '--from and --request can not both be standard input')
  end
end

-- The request as it is given, before --parallelism and --containers, in normal form.
local function base_request(context, args)
  local document
  if args.request then
    document = context:read_json(args.request, 'request')
    if args.from and type(document) == 'table' then document.current = nil end
    if type(document) == 'table' and next(context.set) then
      local config = type(document.config) == 'table' and document.config or {}
      document.config = config
      for key, value in pairs(context.set) do config[key] = value end
    end
  else
    document = apart.build(context, args.script, packing.request_from_topology)
  end
  if args.from and type(document) == 'table' then
    document.current = context:read_json(args.from, 'plan')
  end
  local request, failure = packing.validate_request(document)
  return context:check(request, failure)
end

-- The present instances of each component, in order of declaration.
local function present(request)
  local document = require 'streamlua.packing.document'
  local counts = document.wanted(request)
  local list = {}
  for i, component in ipairs(request.components) do
    list[i] = { name = component.name, parallelism = counts[component.name] }
  end
  return list
end

local function apply_parallelism(context, request, texts)
  local list, failure = parallelism.parse(texts)
  local result
  if list then result, failure = parallelism.resolve(list, present(request)) end
  if failure then context:fail(failure.code, failure.message, nil, failure.hint) end
  if request.current then
    request.changes = request.changes or {}
    for name, delta in pairs(result.deltas) do
      request.changes[name] = (request.changes[name] or 0) + delta
    end
  else
    for _, component in ipairs(request.components) do
      component.parallelism = result.parallelism[component.name] or component.parallelism
    end
  end
end

-- A change that changes nothing is told apart from one that was made.
local function check_change(context, args, request)
  if not args.from then return end
  local changes = request.changes and next(request.changes)
  local containers = request.containers and request.containers ~= #request.current.containers
  if not changes and not containers then
    context:fail('conflict', 'plan', 'there is nothing to do: the plan has what is asked for',
      'name a change with --parallelism or --containers')
  end
end

local function build_request(context, args)
  local request = base_request(context, args)
  if #args.parallelism > 0 then apply_parallelism(context, request, args.parallelism) end
  request.containers = args.containers or request.containers
  check_change(context, args, request)
  return request
end

-- An explicit --packing names the packer of a change too, as it does for `update`.
local function packer_of(args, request)
  if request.current then
    return args.repacking or args.packing or packing.default_packer(request)
  end
  return args.packing or packing.default_packer(request)
end

local function fail_packing(context, failure, name)
  if context.verbose > 0 and failure.traceback then
    context:fail(require('streamlua.cli.exit').of_error(failure.code), tostring(failure), nil, nil,
      { traceback = failure.traceback })
  end
  -- A position in user code comes first, so that editors find it.
  local what = failure.kind ~= 'raised' and failure.code == 'EUNSATISFIABLE'
    and ("packer '%s'"):format(name) or nil
  context:fail_with(failure, what)
end

local function print_warnings(context, warnings)
  for _, warning in ipairs(warnings or {}) do
    context:warn(('container %d: its padding of %s is dropped, its components need that room')
      :format(warning.container, warning.resource))
  end
end

local function print_plan(context, request, plan)
  if context.output == 'json' then
    context:print(packing.to_json(plan))
  elseif request.current then
    context.stdout:write(packing.render_update(request.current, plan, { color = context.color }))
  else
    context.stdout:write(packing.render(plan, { color = context.color }))
  end
end

local function run(context, args)
  if sandbox.inside() then custom.serve(args.packing, base_request(context, args)) end
  check_usage(context, args)
  local request = build_request(context, args)
  if args.print_request then
    context:print_json(request, order.packing_request)
    return
  end
  local name = packer_of(args, request)
  local folder = args.script and (args.script:match('^(.*)/[^/]*$') or '.')
  local plan, result = packing.plan(request, name, { folder = folder,
    limits = { seconds = args.limit } })
  if not plan then fail_packing(context, result, name) end
  print_warnings(context, result)
  print_plan(context, request, plan)
end

return {
  name = 'plan',
  summary = 'Pack a topology into containers, or change a plan; nothing runs.',
  description = 'Packs the topology of SCRIPT, or the request of --request, and prints the plan. '
    .. 'With --from, changes that plan instead.',
  declare = function(command)
    command:argument('script', 'Lua file that returns a topology.'):argname('SCRIPT'):args('?')
    command:option('--request', "Packing request (JSON; '-' is standard input)."):argname('FILE')
    command:option('--packing', 'Packer: round_robin, first_fit_decreasing, '
      .. 'resource_compliant_rr, or a Lua file by name or path.'):argname('P')
    command:option('--from', 'Plan (JSON) to start from.'):argname('PLAN.json')
    parallelism.declare(command)
    command:option('--containers', 'Number of containers that the plan must have.'):argname('N')
      :overwrite(false):convert(function(text)
        local number = text:find('^%d+$') and tonumber(text)
        if number and number <= 2000000000 then return number end
        return nil, ("'%s' is not a number of containers"):format(text)
      end)
    command:option('--repacking', 'Packer of the change (default: first_fit_decreasing).')
      :argname('P')
    command:option('--limit', 'Time limit of a custom packer (default: 10s).'):argname('D')
      :convert(parser.duration)
    command:flag('--print-request', 'Print the request instead of packing it.')
  end,
  run = run,
}
