-- The routes of the HTTP API: from a request to an answer, in the process that carries it out.
--
--   local routes = require 'streamlua.service.routes'
--   local status, document = routes.answer({ method = 'GET', target = '/api/v1/topologies', type = '',
--     body = '' }, environment)
--
-- The environment: `with_client(fn, options)` calls fn with a client of the cluster, `cli(argv)` runs
-- the command line and gives its exit code, output and error output; `cluster`, `launcher` and
-- `scheduler` are the settings of the cluster.

local base64 = require 'streamlua.service.base64'
local documents = require 'streamlua.cluster.documents'
local errors = require 'streamlua.cli.error'
local exit = require 'streamlua.cli.exit'
local form = require 'streamlua.service.form'
local json = require 'streamlua.json'
local native = require 'streamlua.topology.native'
local packages = require 'streamlua.cluster.package'
local packing = require 'streamlua.packing'
local placement = require 'streamlua.cluster.placement'
local plans = require 'streamlua.cluster.plan'
local scheduling = require 'streamlua.scheduling'
local target = require 'streamlua.cli.target'
local units = require 'streamlua.units'

local M = {}

-- Seconds that an action waits when the request does not say.
local ACTION_S, SUBMIT_S, KILL_S = 60, 300, 30
local UPDATE_LOCK_S, DRAIN_S = 5, 30
-- Longest wait for new lines of logs.
local LOGS_WAIT_S = 60

-- The HTTP status of an exit code.
local STATUS = { [0] = 200, [2] = 422, [3] = 404, [4] = 409, [5] = 503, [6] = 504, [7] = 422 }

-- Failing: `refuse` and `fail` raise what `answer` turns into a document.

local function refuse(status, message, hint)
  error({ status = status, document = { message = message,
    error = { code = status == 404 and 'not_found' or 'invalid', message = message,
      hint = hint } } }, 0)
end

-- An error of the library or of the command line; `name` is the topology that it is about.
local function fail(failure, name)
  local what = name and ("topology '%s'"):format(name) or nil
  local shown = errors.from_library(failure, what)
  local detail = type(failure) == 'table' and not errors.is(failure) and failure.code
  error({ status = STATUS[shown.exit] or 500, document = { message = shown.message,
    error = { code = shown.code, message = shown.message, hint = shown.hint,
      reason = detail or nil, detail = detail and tostring(failure) or nil } } }, 0)
end

local function check(name, value, failure)
  if value == nil then fail(failure, name) end
  return value
end

-- Parameters.

local function one(values, name)
  local list = values[name]
  if list and #list ~= 1 then refuse(422, ("exactly one '%s' is expected"):format(name)) end
  return list and list[1]
end

local function integer(values, name, least)
  local text = one(values, name)
  if not text then return nil end
  local number = text:find('^%d+$') and #text < 16 and tonumber(text)
  if not number or number < least then
    refuse(422, ("'%s' must be a whole number from %d on, not '%s'"):format(name, least, text))
  end
  return number
end

local function seconds(values, name, default)
  local text = one(values, name)
  if not text then return default end
  local value, why = units.parse_duration(text)
  if not value then refuse(422, ("'%s': %s"):format(name, tostring(why))) end
  return value
end

local WORDS = { ['true'] = true, ['1'] = true, yes = true, ['false'] = false, ['0'] = false, no = false }

local function flag(values, name)
  local text = one(values, name)
  if text == nil then return false end
  local value = WORDS[text:lower()]
  if value == nil then refuse(422, ("'%s' must be true or false, not '%s'"):format(name, text)) end
  return value
end

-- Only these parameters are known.
local function only(values, ...)
  local known = {}
  for _, name in ipairs({ ... }) do known[name] = true end
  for name in pairs(values) do
    if not known[name] then
      refuse(422, ("unknown parameter '%s'"):format(name), 'known: ' .. table.concat({ ... }, ', '))
    end
  end
end

-- Query and form body together.
local function parameters(request)
  local values = request.values
  if request.body ~= '' then
    if not request.type:find('^application/x%-www%-form%-urlencoded') then
      refuse(422, ("parameters must come as a form, not as '%s'"):format(request.type))
    end
    local more, message = form.fields(request.body)
    if not more then refuse(422, message) end
    for name, list in pairs(more) do
      values[name] = values[name] or {}
      for _, value in ipairs(list) do table.insert(values[name], value) end
    end
  end
  return values
end

local FORMATS = { table = true, colored_table = true, json = true, raw = true }

-- The form of a dry run's answer, whatever its case.
local function dry_run_format(values)
  local text = one(values, 'dry_run_format') or 'table'
  if not FORMATS[text:lower()] then
    refuse(422, ("unknown dry_run_format '%s'"):format(text),
      'known: table, colored_table, json, raw')
  end
  return text:lower()
end

-- JSON bodies.

local function json_body(request)
  if not request.type:find('^application/json') then
    refuse(422, ("a JSON document is expected, not '%s'"):format(request.type))
  end
  local document, failure = json.decode(request.body)
  if type(document) ~= 'table' then
    refuse(422, 'the document can not be read: ' .. tostring(failure or 'it is no object'))
  end
  return document
end

local function field(document, name, kind, default)
  local value = document[name]
  if value == nil then value = default end
  if type(value) ~= kind then refuse(422, ("'%s' must be a %s"):format(name, kind)) end
  return value
end

local function integer_field(document, name, most)
  local value = field(document, name, 'number', 0)
  if value < 0 or value % 1 ~= 0 or value > most then
    refuse(422, ("'%s' must be a whole number from 0 on"):format(name))
  end
  return value
end

local function name_field(document)
  local name = field(document, 'topology', 'string')
  local fault = target.name_fault(name)
  if fault then refuse(422, ("topology '%s': %s"):format(name, fault)) end
  return name
end

local function ms_field(document, name, default_s)
  local value = field(document, name, 'number', default_s * 1000)
  if not (value >= 0 and value <= 86400000) then
    refuse(422, ("'%s' must be within a day"):format(name))
  end
  return value
end

-- Reading.

local function list_topologies(request, environment)
  only(parameters(request))
  return 200, { topologies = json.array(environment.with_client(function(client)
    return check(nil, documents.list(client))
  end, { reader = true })) }
end

local function describe_topology(request, environment, name)
  only(parameters(request))
  return 200, environment.with_client(function(client)
    local topology = check(name, client:load(name))
    if not (topology.plan and topology.execution) then
      fail(errors.new('failed', 'what is stored of it is not whole'))
    end
    return documents.describe(topology, (client:status(name)))
  end, { reader = true })
end

local function stored(request, environment, name)
  only(parameters(request))
  return 200, environment.with_client(function(client)
    local topology = check(name, client:load(name))
    return { name = name, is_led = topology.is_led, execution = topology.execution,
      plan = topology.plan, components = topology.components,
      definition = base64.encode(topology.definition) }
  end, { reader = true })
end

local function status(request, environment, name)
  only(parameters(request))
  return 200, environment.with_client(function(client)
    return check(name, client:status(name))
  end, { reader = true })
end

local function package(request, environment, name)
  only(parameters(request))
  return 200, environment.with_client(function(client)
    local code = check(name, client:package(name))
    for _, file in ipairs(code.files) do file.content = base64.encode(file.content) end
    return code
  end, { reader = true })
end

-- "container:position" pairs.
local function positions(values)
  local after = {}
  for _, text in ipairs(values.after or {}) do
    local id, at = text:match('^(%d+):(%d+)$')
    if not id then refuse(422, ("'after' must be CONTAINER:POSITION, not '%s'"):format(text)) end
    after[tonumber(id)] = tonumber(at)
  end
  return after
end

local function logs(request, environment, name)
  local values = parameters(request)
  only(values, 'container', 'tail', 'after', 'wait')
  local wait_s = values.wait and math.min(seconds(values, 'wait', 0), LOGS_WAIT_S)
  local options = { container = integer(values, 'container', 1), tail = integer(values, 'tail', 0),
    after = positions(values), wait_ms = wait_s and wait_s * 1000 }
  return 200, environment.with_client(function(client)
    local list = check(name, client:logs(name, options))
    if #list == 0 then
      fail(errors.new('not_found', ("topology '%s'"):format(name), options.container
        and ('there is no log of container %d'):format(options.container)
        or 'there are no logs of it'))
    end
    for _, log in ipairs(list) do json.array(log.lines) end
    return { topology = name, logs = list }
  end, { reader = true })
end

local function cluster(request, environment)
  only(parameters(request))
  return 200, { cluster = environment.cluster, launcher = environment.launcher,
    scheduler = environment.scheduler }
end

local function version(request, environment)
  only(parameters(request))
  local _, text = environment.cli({ 'version', '-o', 'json' })
  return 200, (assert(json.decode(text)))
end

-- Actions.

local function set_active(is_active)
  return function(request, environment, name)
    local values = parameters(request)
    only(values, 'timeout')
    local timeout_s = seconds(values, 'timeout', ACTION_S)
    local changed = environment.with_client(function(client)
      return check(name, client:set_active(name, is_active, timeout_s * 1000))
    end)
    return 200, { topology = name, action = is_active and 'activate' or 'deactivate',
      state = is_active and 'RUNNING' or 'PAUSED', changed = changed }
  end
end

local function restart(environment, name, container, timeout_ms)
  local state = environment.with_client(function(client)
    check(name, client:restart(name, container, timeout_ms))
    return check(name, client:load(name)).execution.state
  end)
  return 200, { topology = name, action = 'restart', state = state }
end

local function restart_topology(request, environment, name)
  local values = parameters(request)
  only(values, 'container', 'container_id', 'timeout')
  if values.container and values.container_id then
    refuse(422, "'container' and 'container_id' are the same parameter")
  end
  local container = integer(values, values.container_id and 'container_id' or 'container', 1)
  return restart(environment, name, container or 0, seconds(values, 'timeout', ACTION_S) * 1000)
end

local function kill(environment, name, wait_ms, timeout_ms, purge)
  environment.with_client(function(client)
    check(name, client:kill(name, wait_ms, timeout_ms, purge))
  end)
  return 200, { topology = name, action = 'kill', state = 'KILLED' }
end

local function kill_topology(request, environment, name)
  local values = parameters(request)
  only(values, 'wait', 'timeout', 'purge')
  return kill(environment, name, seconds(values, 'wait', 0) * 1000,
    seconds(values, 'timeout', KILL_S) * 1000, flag(values, 'purge'))
end

-- Updating by parameters: the command plans it.

local MODES = { keep = true, minimal = true, reassign = true }

local function update_arguments(values, name)
  local argv = { 'update', name }
  local function add(option, value)
    if value then argv[#argv + 1], argv[#argv + 2] = option, tostring(value) end
  end
  for _, text in ipairs(values.component_parallelism or {}) do add('--parallelism', text) end
  add('--containers', integer(values, 'container_number', 1))
  add('--if-version', integer(values, 'if_version', 1))
  local packer, mode = one(values, 'packing'), one(values, 'mode')
  if packer and packer:find('[^%w_]') then
    refuse(422, ("packing '%s': only packers that are built in can be named here"):format(packer))
  elseif mode and not MODES[mode] then
    refuse(422, ("unknown mode '%s'"):format(mode), 'known: keep, minimal, reassign')
  end
  add('--packing', packer)
  add('--mode', mode)
  for parameter, option in pairs({ lock_timeout = '--lock-timeout',
    drain_timeout = '--drain-timeout' }) do
    if seconds(values, parameter) then add(option, one(values, parameter)) end
  end
  if flag(values, 'force') then argv[#argv + 1] = '--force' end
  return argv
end

-- What a command whose result is a text says of its error, as the object it would be in JSON.
local function told_error(code, text)
  text = '\n' .. text:gsub('\27%[[%d;]*m', '')
  return { code = exit.name(code), message = text:match('\nerror: ([^\n]*)') or text,
    hint = text:match('\nhint: ([^\n]*)') }
end

-- Runs the command; its output, or its error as an answer.
local function run_command(environment, argv)
  local code, text, error_text = environment.cli(argv)
  if code == 0 then return text end
  local document = json.decode(error_text:match('{.*}') or '')
  local found = type(document) == 'table' and document.error or told_error(code, error_text)
  error({ status = STATUS[code] or 500,
    document = { message = found.message, error = found } }, 0)
end

local function raw_text(document)
  return ('Packing class: %s\nTopology: %s\nNew packing plan:\n%s\nOld packing plan:\n%s\n'):format(
    document.old.packing, document.topology, packing.render(document.new),
    packing.render(document.old))
end

local function dry_run(environment, argv, format)
  argv[#argv + 1] = '--dry-run'
  local is_json = format == 'json' or format == 'raw'
  argv[#argv + 1], argv[#argv + 2] = '-o', is_json and 'json' or 'table'
  argv[#argv + 1], argv[#argv + 2] = '--color', format == 'colored_table' and 'always' or 'never'
  local text = run_command(environment, argv)
  return 200, { response = format == 'raw' and raw_text(assert(json.decode(text))) or text }
end

local function update_topology(request, environment, name)
  local values = parameters(request)
  only(values, 'component_parallelism', 'container_number', 'packing', 'mode', 'force',
    'if_version', 'lock_timeout', 'drain_timeout', 'dry_run', 'dry_run_format', 'runtime_config')
  if values.runtime_config then
    refuse(422, "'runtime_config' can not be changed while a topology runs")
  end
  local argv, format = update_arguments(values, name), dry_run_format(values)
  if #argv == 2 then
    refuse(422, "'component_parallelism', 'container_number', 'packing' or 'mode' is needed")
  end
  if flag(values, 'dry_run') then return dry_run(environment, argv, format) end
  argv[#argv + 1], argv[#argv + 2] = '-o', 'json'
  return 200, (assert(json.decode(run_command(environment, argv))))
end

-- What a scheduler is asked: documents instead of parameters.

local function plan_field(document, name)
  local given = field(document, name, 'table')
  local plan, failure = packing.validate_plan(plans.shown(given))
  if not plan then fail(failure) end
  plan.key_groups = type(given.key_groups) == 'table' and given.key_groups or {}
  local master = given.master
  if type(master) == 'table' then
    plan.master = { supervisor = field(master, 'supervisor', 'string', ''),
      host = field(master, 'host', 'string', ''), port = integer_field(master, 'port', 65535),
      task = integer_field(master, 'task', 2147483647) }
  end
  return plan
end

-- How masters are to schedule; nil when nothing is said.
local function schedule_field(document)
  local schedule = document.schedule
  if schedule == nil then return nil end
  local scheduler = field(field(document, 'schedule', 'table'), 'scheduler', 'string')
  if not placement.is_known(scheduler) then
    refuse(422, ("scheduler '%s' is not one that masters have"):format(scheduler))
  end
  local request, failure = scheduling.validate_request(field(schedule, 'request', 'table'))
  if not request then fail(failure) end
  return { scheduler = scheduler, request = request }
end

-- Every component of the plan is among the components, each key group has a task.
local function check_components(plan, components)
  local known = {}
  for _, name in ipairs(components) do known[name] = true end
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do
      if not known[instance.component] then
        refuse(422, ("component '%s' is not among the components"):format(instance.component))
      end
    end
  end
  for name, owners in pairs(plan.key_groups) do
    local is_good = known[name] and type(owners) == 'table'
    for _, task in ipairs(is_good and owners or {}) do
      is_good = is_good and type(task) == 'number' and task >= 0 and task <= 2147483647
    end
    if not is_good then refuse(422, ("the key groups of '%s' can not be read"):format(name)) end
  end
end

local function text_list(document, name)
  local list = field(document, name, 'table')
  for _, text in ipairs(list) do
    if type(text) ~= 'string' then refuse(422, ("'%s' must be a list of texts"):format(name)) end
  end
  return list
end

local function update_options(given)
  local mode = given.mode
  if mode ~= nil and not MODES[mode] then refuse(422, ("unknown mode '%s'"):format(tostring(mode))) end
  return { lock_ms = ms_field(given, 'lock_ms', UPDATE_LOCK_S),
    drain_ms = ms_field(given, 'drain_ms', DRAIN_S), mode = mode, schedule = schedule_field(given),
    dry_run = field(given, 'dry_run', 'boolean', false) }
end

local function scheduler_update(request, environment)
  local document = json_body(request)
  local proposed = field(document, 'proposed', 'table')
  if type(proposed.containers) ~= 'table' or #proposed.containers == 0 then
    refuse(422, 'the proposed plan has no container')
  end
  local current = plan_field(document, 'current')
  proposed = plan_field(document, 'proposed')
  local components = text_list(document, 'components')
  check_components(current, components)
  check_components(proposed, components)
  local options = update_options(field(document, 'options', 'table', {}))
  local result = environment.with_client(function(client)
    return check(current.topology, client:update(current, proposed, components, options))
  end)
  if result.outcome == 'done' or options.dry_run then return 200, { topology = current.topology, result = result } end
  local message = ("topology '%s': the update failed%s: %s"):format(current.topology,
    result.outcome == 'rolled_back' and ' and was rolled back' or '', result.reason)
  return 500, { message = message, error = { code = result.outcome, message = message },
    result = result }
end

local function scheduler_kill(request, environment)
  local document = json_body(request)
  return kill(environment, name_field(document), ms_field(document, 'wait_ms', 0),
    ms_field(document, 'timeout_ms', KILL_S), field(document, 'purge', 'boolean', false))
end

local function scheduler_restart(request, environment)
  local document = json_body(request)
  return restart(environment, name_field(document), integer_field(document, 'container', 2147483647),
    ms_field(document, 'timeout_ms', ACTION_S))
end

-- Submitting.

local SUBMIT_PARTS = { 'name', 'definition', 'plan', 'components', 'cwd', 'user', 'deactivated',
  'timeout', 'script', 'overrides', 'defaults', 'schedule', 'dry_run', 'dry_run_format' }

local function submission_parts(request)
  local parts, message = form.multipart(request.body, request.type)
  if not parts then refuse(422, message) end
  local values, files = {}, {}
  for _, part in ipairs(parts) do
    if part.name == 'file' then
      files[#files + 1] = { path = part.filename or '', content = part.content }
    else
      values[part.name] = values[part.name] or {}
      table.insert(values[part.name], part.content)
    end
  end
  only(values, unpack(SUBMIT_PARTS))
  for _, name in ipairs({ 'name', 'definition', 'plan', 'components', 'script' }) do
    if not one(values, name) then refuse(422, ("the part '%s' is missing"):format(name)) end
  end
  table.sort(files, function(a, b) return a.path < b.path end)
  return values, files
end

local function json_part(values, name)
  local value = json.decode(one(values, name))
  if type(value) ~= 'table' then refuse(422, ("the part '%s' is no JSON document"):format(name)) end
  return value
end

local function submission_of(values, files)
  local name = one(values, 'name')
  local fault = target.name_fault(name)
  if fault then refuse(422, ("topology '%s': %s"):format(name, fault)) end
  local handle, message = native.decode(one(values, 'definition'))
  if not handle then refuse(422, 'the definition can not be read: ' .. tostring(message)) end
  local described = check(name, native.describe(handle))
  local plan = plan_field({ plan = json_part(values, 'plan') }, 'plan')
  if described.name ~= name or plan.topology ~= name then
    refuse(422, ("definition, plan and name must be of the same topology, not of '%s', '%s' and "
      .. "'%s'"):format(described.name, plan.topology, name))
  end
  local code = { script = one(values, 'script'), files = files,
    overrides = one(values, 'overrides') or '{}', defaults = one(values, 'defaults') or '{}' }
  check(name, packages.hash(code))
  local components = text_list({ components = json_part(values, 'components') }, 'components')
  check_components(plan, components)
  return { name = name, definition = one(values, 'definition'), plan = plan,
    components = components, package = code,
    schedule = values.schedule and schedule_field({ schedule = json_part(values, 'schedule') }),
    cwd = one(values, 'cwd') or '/', user = one(values, 'user') or '',
    active = not flag(values, 'deactivated'),
    timeout_ms = seconds(values, 'timeout', SUBMIT_S) * 1000 }
end

local function submit_topology(request, environment)
  if not request.type:find('^multipart/form%-data') then
    refuse(422, ("a multipart form is expected, not '%s'"):format(request.type))
  end
  local values, files = submission_parts(request)
  local wanted, format = submission_of(values, files), dry_run_format(values)
  if flag(values, 'dry_run') then
    local is_json = format == 'json'
    local text = is_json and json.encode(wanted.plan)
      or packing.render(wanted.plan, { color = format == 'colored_table' })
    return 200, { response = text }
  end
  environment.with_client(function(client) check(wanted.name, client:submit(wanted)) end)
  return 201, { topology = wanted.name, action = 'submit',
    state = wanted.active and 'RUNNING' or 'PAUSED' }
end

-- The table of routes. NAME is the topology; the long form of Heron, CLUSTER/ROLE/ENVIRONMENT/NAME, is
-- understood too.

local ROUTES = {
  version = { GET = version },
  cluster = { GET = cluster },
  topologies = { GET = list_topologies, POST = submit_topology },
  NAME = { GET = describe_topology, DELETE = kill_topology },
  activate = { POST = set_active(true) },
  deactivate = { POST = set_active(false) },
  restart = { POST = restart_topology },
  update = { POST = update_topology },
  logs = { GET = logs },
  stored = { GET = stored },
  status = { GET = status },
  package = { GET = package },
}
-- Those that are of no topology.
local WHOLE = { version = true, cluster = true, topologies = true }
local SCHEDULER = { update = { POST = scheduler_update }, kill = { POST = scheduler_kill },
  restart = { POST = scheduler_restart } }

local function check_cluster(path, environment)
  if path[4]:lower() ~= environment.cluster:lower() then
    refuse(422, ("unknown cluster '%s', this one is '%s'"):format(path[4], environment.cluster))
  end
end

-- The methods of a path, and the name of the topology in it.
local function find(path, environment)
  if #path == 1 then return SCHEDULER[path[1]] end
  if path[1] ~= 'api' or path[2] ~= 'v1' then return nil end
  if #path == 3 then return WHOLE[path[3]] and ROUTES[path[3]] end
  if path[3] ~= 'topologies' then return nil end
  local is_long = #path == 7 or #path == 8
  if is_long then check_cluster(path, environment) end
  local at = is_long and 7 or 4
  if #path == at then return ROUTES.NAME, path[at] end
  local action = #path == at + 1 and path[at + 1]
  if not action or WHOLE[action] or action == 'NAME' then return nil end
  return ROUTES[action], path[at]
end

local function carry_out(request, environment)
  local path, values = form.target(request.target)
  if not path then refuse(400, values) end
  local methods, name = find(path, environment)
  if not methods then refuse(404, ("there is no '%s'"):format(request.target:match('^[^?]*'))) end
  local handle = methods[request.method]
  if not handle then
    local known = {}
    for method in pairs(methods) do known[#known + 1] = method end
    table.sort(known)
    refuse(405, ('%s is not possible here'):format(request.method), 'possible: '
      .. table.concat(known, ', '))
  end
  local fault = name and target.name_fault(name)
  if fault then refuse(422, ("topology '%s': %s"):format(name, fault)) end
  request.values = values
  return handle(request, environment, name)
end

--- Answers a request {method=, target=, type= of the body, body=}.
---@param request table
---@param environment table
---@return integer status
---@return table document
function M.answer(request, environment)
  local ok, code, document = pcall(carry_out, request, environment)
  if ok then return code, document end
  if type(code) == 'table' and code.document then return code.status, code.document end
  local shown = errors.is(code) and code or errors.from_lua('failed', code)
  return STATUS[shown.exit] or 500, { message = shown.message,
    error = { code = shown.code, message = shown.message, hint = shown.hint } }
end

return M
