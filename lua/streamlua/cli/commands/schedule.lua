-- `streamlua schedule`: assigns tasks to workers and slots; nothing runs.

local apart = require 'streamlua.cli.apart'
local custom = require 'streamlua.scheduling.custom'
local json = require 'streamlua.json'
local order = require 'streamlua.cli.order'
local parallelism = require 'streamlua.cli.parallelism'
local parser = require 'streamlua.cli.parser'
local sandbox = require 'streamlua.sandbox'
local scheduling = require 'streamlua.scheduling'

local function check_usage(context, args)
  local has_previous = args.previous ~= nil
  if (args.script == nil) == (args.request == nil) then
    context:fail('usage', 'schedule', 'one of SCRIPT and --request FILE is needed, not both',
      "see 'streamlua schedule --help'")
  elseif args.script and not args.cluster_file then
    context:fail('usage', 'schedule', 'SCRIPT needs --cluster-file',
      'a file with { supervisors = 3, slots = 4 } is a cluster of three nodes with four slots each')
  elseif args.script and not has_previous and args.mode and args.mode ~= 'new' then
    context:fail('usage', '--mode ' .. args.mode, 'it needs --previous, the assignment to start from')
  elseif args.script and not has_previous and #args.dead > 0 then
    context:fail('usage', '--dead', 'it needs --previous, the assignment whose workers died')
  end
  local stdin = 0
  for _, path in ipairs({ args.request or '', args.previous or '', args.cluster_file or '' }) do
    stdin = stdin + (path == '-' and 1 or 0)
  end
  if stdin > 1 then context:fail('usage', 'schedule', 'only one document can be standard input') end
end

-- "s1:6800,s2:6801", repeatable -> {{supervisor=, port=}}.
local function parse_dead(context, texts)
  local list = {}
  for _, text in ipairs(texts) do
    for piece in text:gmatch('[^,]+') do
      local supervisor, port = piece:match('^%s*(.-):(%d+)%s*$')
      if not supervisor or supervisor == '' then
        context:fail('usage', ("--dead '%s'"):format(piece), 'expected SUPERVISOR:PORT')
      end
      list[#list + 1] = { supervisor = supervisor, port = tonumber(port) }
    end
  end
  return list
end

-- The mode when none is named: dead workers are replaced, else what runs is kept.
local function default_mode(args, dead)
  if args.mode then return args.mode end
  if not args.previous then return nil end
  return #dead > 0 and 'monitor' or 'keep'
end

local function resolved(context, texts, components)
  if #texts == 0 then return {} end
  local list, failure = parallelism.parse(texts)
  local result
  if list then result, failure = parallelism.resolve(list, components) end
  if failure then context:fail(failure.code, failure.message, nil, failure.hint) end
  return result.parallelism
end

-- What `--parallelism c=+1` counts from: the previous assignment's tasks, else the script's.
local function present_of(t, previous)
  local list, counts = {}, {}
  for _, component in ipairs(type(previous) == 'table' and previous.components or {}) do
    counts[component.name] = #component.tasks
  end
  for i, entry in ipairs(t.components) do
    list[i] = { name = entry.name, parallelism = counts[entry.name] or entry.parallelism }
  end
  return list
end

local function script_request(context, args, dead)
  local cluster = context:read_document(args.cluster_file, 'cluster file')
  cluster = context:check(scheduling.cluster(cluster))
  local previous = args.previous and context:read_json(args.previous, 'previous assignment')
  return apart.build(context, args.script, function(t)
    local name = args.scheduler or t.config.scheduler or scheduling.DEFAULT
    local request, fault = scheduling.request_from_topology(t, cluster, {
      scheduler = name, previous = previous, mode = default_mode(args, dead), dead = dead,
      parallelism = resolved(context, args.parallelism, present_of(t, previous)),
    })
    if not request then return nil, fault end
    return { request = request, scheduler = name,
      components = require('streamlua.scheduling.topology').components_to_keep(t, request) }
  end)
end

-- Growth takes max + 1, shrinking drops the highest; as for scripts.
local function scale(context, request, texts)
  if #texts == 0 then return end
  local present, highest = {}, 0
  for i, component in ipairs(request.components) do
    present[i] = { name = component.name, parallelism = #component.tasks }
    for _, task in ipairs(component.tasks) do highest = math.max(highest, task) end
  end
  for _, worker in ipairs(request.previous and request.previous.workers or {}) do
    for _, task in ipairs(worker.tasks) do highest = math.max(highest, task) end
  end
  local wanted = resolved(context, texts, present)
  for _, component in ipairs(request.components) do
    table.sort(component.tasks)
    local n = wanted[component.name] or #component.tasks
    while #component.tasks > n do component.tasks[#component.tasks] = nil end
    while #component.tasks < n do
      highest = highest + 1
      component.tasks[#component.tasks + 1] = highest
    end
  end
end

local function add_dead(context, request, dead)
  local exists = {}
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do exists[task] = true end
  end
  for _, slot in ipairs(dead) do
    local found
    for _, worker in ipairs(request.previous and request.previous.workers or {}) do
      if worker.supervisor == slot.supervisor and worker.port == slot.port then found = worker end
    end
    if not found then
      context:fail('invalid', ('--dead %s:%d'):format(slot.supervisor, slot.port),
        'the previous assignment has no worker there')
    end
    for _, task in ipairs(found.tasks) do
      if exists[task] then table.insert(request.dead_tasks, task) end
    end
  end
end

-- A request that is given whole; the other options change parts of it.
local function document_request(context, args, dead)
  local document = context:read_json(args.request, 'request')
  if type(document) == 'table' then
    if args.previous then
      document.previous = context:read_json(args.previous, 'previous assignment')
    end
    document.mode = default_mode(args, dead) or document.mode
    if args.cluster_file then
      document.cluster = context:read_document(args.cluster_file, 'cluster file')
    end
  end
  local request = context:check(scheduling.validate_request(document))
  scale(context, request, args.parallelism)
  add_dead(context, request, dead)
  return { request = request, scheduler = args.scheduler or scheduling.DEFAULT }
end

-- Fields that a reader of a request looks for, also where nothing is set.
local function print_request(context, request)
  for _, key in ipairs({ 'workers', 'master_alone', 'previous', 'plan' }) do
    if request[key] == nil then request[key] = json.null end
  end
  context:print_json(request, order.scheduling_request)
end

local function fail_scheduling(context, failure, name)
  if failure.traceback then
    context:fail('invalid', tostring(failure), nil, nil, { traceback = failure.traceback })
  end
  local is_refused = failure.code == 'EUNSATISFIABLE'
  context:fail_with(failure, is_refused and ("scheduler '%s'"):format(name) or nil)
end

local function run(context, args)
  if sandbox.inside() then
    custom.serve(args.scheduler, context:check(scheduling.validate_request(
      context:read_json(args.request, 'request'))))
  end
  check_usage(context, args)
  local dead = parse_dead(context, args.dead)
  local built = args.script and script_request(context, args, dead)
    or document_request(context, args, dead)
  if args.print_request then return print_request(context, built.request) end
  local folder = args.script and (args.script:match('^(.*)/[^/]*$') or '.')
  local assignment, failure = scheduling.assign(built.request, built.scheduler, {
    folder = folder, limits = { seconds = args.limit } })
  if not assignment then fail_scheduling(context, failure, built.scheduler) end
  assignment.components = built.components
  if context.output == 'json' then return context:print_json(assignment, order.assignment) end
  context.stdout:write(scheduling.render(assignment, { request = built.request,
    color = context.color }))
  context.stdout:write('\n', scheduling.render_figures(
    context:check(scheduling.evaluate(assignment, built.request)), { color = context.color }))
end

return {
  name = 'schedule',
  summary = 'Assign the tasks of a topology to workers and slots; nothing runs.',
  description = 'Assigns the tasks of SCRIPT on the cluster of --cluster-file, or those of the '
    .. 'request of --request. With --previous, starts from that assignment.',
  declare = function(command)
    command:argument('script', 'Lua file that returns a topology.'):argname('SCRIPT'):args('?')
    command:option('--cluster-file', 'Cluster (Lua or JSON), or { supervisors = 3, slots = 4 }.')
      :argname('C')
    command:option('--request', "Scheduling request (JSON; '-' is standard input)."):argname('FILE')
    command:option('--scheduler', 'Scheduler: balanced (default), even, round_robin, packed, or a '
      .. 'Lua file by name or path.'):argname('S')
    parallelism.declare(command)
    command:option('--previous', 'Assignment (JSON) to start from.'):argname('A.json')
    command:option('--mode', 'With --previous: keep (default), reassign, minimal, or monitor '
      .. '(default with --dead).'):argname('MODE'):choices(scheduling.modes)
    command:option('--dead', 'Workers of the previous assignment that died: SUPERVISOR:PORT '
      .. '(repeatable, comma lists).'):argname('SUP:PORT'):count('*')
    command:option('--limit', 'Time limit of a custom scheduler (default: 10s).'):argname('D')
      :convert(parser.duration)
    command:flag('--print-request', 'Print the request instead of assigning.')
  end,
  run = run,
}
