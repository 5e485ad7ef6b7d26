-- `streamlua submit`: starts a topology in processes of its own.

local native = require 'streamlua.topology.native'
local packing = require 'streamlua.packing'
local parallelism = require 'streamlua.cli.parallelism'
local placement = require 'streamlua.cluster.placement'
local plans = require 'streamlua.cluster.plan'
local libc = require 'streamlua.connectors.libc'
local order = require 'streamlua.cli.order'
local running = require 'streamlua.cli.running'
local submission = require 'streamlua.streaming.submission'

-- What --parallelism asks for, against the script's own numbers.
local function wanted_parallelism(context, args, prepared)
  local list, failure = parallelism.parse(args.parallelism)
  local result
  if list then result, failure = parallelism.resolve(list, prepared.components) end
  if failure then context:fail(failure.code, failure.message, nil, failure.hint) end
  return result.parallelism
end

local function prepare(context, args)
  local prepared = running.prepare(context, args.script)
  if #args.parallelism > 0 then
    prepared = running.prepare(context, args.script, wanted_parallelism(context, args, prepared))
  end
  if running.is_scheduled(context) and not prepared.schedule then
    context:fail('invalid', ("scheduler '%s'"):format(prepared.scheduler),
      'masters never load user code', 'use one of balanced, even, round_robin and packed')
  end
  return prepared
end

local function pack(context, args, prepared)
  local request = context:check(packing.validate_request(prepared.request))
  local folder = args.script:match('^(.*)/[^/]*$') or '.'
  local plan, result = packing.plan(request, packing.default_packer(request),
    { folder = folder, limits = {} })
  if not plan then context:fail_with(result) end
  for _, warning in ipairs(result or {}) do
    if type(warning) == 'table' and warning.container then
      context:warn(('container %d: its padding of %s is dropped, its components need that room')
        :format(warning.container, warning.resource))
    end
  end
  if prepared.is_streams then submission.set_apart(plan) end
  if prepared.schedule then placement.first_plan(plan, prepared.schedule) end
  return plan, request
end

local function names_of(request)
  local names = {}
  for i, component in ipairs(request.components) do names[i] = component.name end
  return names
end

-- What a client submits.
local function wanted_of(context, args, prepared, plan, request)
  local handle = context:check(native.decode(prepared.definition))
  plans.with_key_groups(plan, context:check(native.describe(handle)), prepared.groups)
  return {
    name = prepared.name, definition = prepared.definition, plan = plan,
    components = names_of(request), package = prepared.package, cwd = libc.realpath('.'),
    user = os.getenv('USER') or '', active = not args.deactivated,
    timeout_ms = running.timeout_ms(context), schedule = prepared.schedule,
  }
end

local function submit(context, prepared, wanted)
  return running.with_client(context, function(client)
    local done, failure = client:submit(wanted)
    if not done and failure.code == 'EUSER' then
      context:fail('failed', running.label(prepared.name), 'it can not start: ' .. failure.message,
        'nothing of it is left; '
        .. (running.logs_place(context, prepared.name) or 'its logs are on the machine of the API'))
    end
    running.check(context, prepared.name, done, failure)
    -- Masters make the containers of most schedulers.
    local stored = prepared.schedule and client:load(prepared.name)
    return #(stored and stored.plan or wanted.plan).containers
  end)
end

-- The plan as masters would make it.
local function planned(context, prepared, wanted)
  return running.with_client(context, function(client)
    if not client.place then
      context:warn('masters place it anew when it is submitted')
      return wanted.plan
    end
    local plan, failure = client:place(wanted)
    return plans.shown(running.check(context, prepared.name, plan, failure))
  end, { reader = true })
end

local function run(context, args)
  running.check_launcher(context)
  local prepared = prepare(context, args)
  local plan, request = pack(context, args, prepared)
  if args.dry_run and prepared.schedule then
    plan = planned(context, prepared, wanted_of(context, args, prepared, plan, request))
  end
  if args.dry_run then
    if context.output == 'json' then
      context:print_json(plan, order.plan)
    else
      context.stdout:write(packing.render(plan, { color = context.color }))
    end
    return
  end
  local containers = submit(context, prepared,
    wanted_of(context, args, prepared, plan, request))
  local state = args.deactivated and 'PAUSED' or 'RUNNING'
  running.print_action(context, prepared.name, 'submit', state,
    ("%s: %s, %d containers, plan 1"):format(prepared.name, state:lower(), containers))
end

return {
  name = 'submit',
  summary = 'Start a topology in processes of its own; returns when all tasks run.',
  description = 'Evaluates SCRIPT here, stores its definition, plan and code, and starts its '
    .. 'processes. It runs until it is killed.',
  declare = function(command)
    command:argument('script', 'Lua file that returns a topology.'):argname('SCRIPT')
    command:flag('--deactivated', 'Do not call its spouts before it is activated.')
    parallelism.declare(command)
    command:flag('--dry-run', 'Print the plan; nothing starts.')
  end,
  run = run,
}
