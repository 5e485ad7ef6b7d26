-- What commands of running topologies share: the client of the cluster, the topology that TARGET
-- means, and a script made ready to be submitted or compared.
--
--   local running = require 'streamlua.cli.running'
--   running.with_client(context, function(client)
--     context:print_json(context:check(client:status('wordcount')))
--   end)

local apart = require 'streamlua.cli.apart'
local cluster = require 'streamlua.cluster'
local control = require 'streamlua.conf.control'
local errors = require 'streamlua.cli.error'
local home = require 'streamlua.home'
local launcher = require 'streamlua.cluster.launcher'
local libc = require 'streamlua.connectors.libc'
local load = require 'streamlua.topology.load'
local packages = require 'streamlua.cluster.package'
local packing = require 'streamlua.packing'
local placement = require 'streamlua.cluster.placement'
local submission = require 'streamlua.streaming.submission'
local target = require 'streamlua.cli.target'

local M = {}

--- Seconds that a command waits for a topology when --timeout says nothing.
M.TIMEOUT = 300
--- Limit of one step against the state manager or a topology master, in seconds.
M.STEP = 10

local function absolute(path)
  if path:sub(1, 1) ~= '/' then path = libc.realpath('.') .. '/' .. path end
  path = path:gsub('/%./', '/'):gsub('//+', '/')
  return #path > 1 and path:gsub('/$', '') or path
end

--- True when commands talk to an HTTP API.
---@param context table
---@return boolean
function M.is_remote(context)
  local url = context.settings.service_url
  return url ~= nil and url ~= ''
end

--- The address of the state manager as every process of the cluster is given it: with an absolute
--- folder.
---@param context table
---@return string
function M.state_url(context)
  local url = context.settings.state
  if url == 'memory:' then
    context:fail('invalid', "state URL 'memory:'", 'it ends with the process that has it; '
      .. 'use localfs:DIR or zookeeper://host:port[,host:port]/root')
  end
  local folder = url:match('^localfs:(.+)$')
  return folder and 'localfs:' .. absolute(folder) or url
end

--- Folder of all logs: beside the state, or in the user's own state folder.
---@param url string
---@return string
function M.logs_folder(url)
  local folder = url:match('^localfs:(.+)$')
  return (folder or home.state_home() .. '/streamlua') .. '/logs'
end

--- Where the logs of a topology are, for a hint; nil when they are on the machine of an HTTP API.
---@param context table
---@param name string
---@return string?
function M.logs_place(context, name)
  if M.is_remote(context) then return nil end
  return 'logs are in ' .. M.logs_folder(M.state_url(context)) .. '/' .. name
end

--- Milliseconds that a command may wait.
---@param context table
---@param seconds number? when --timeout says nothing
---@return number
function M.timeout_ms(context, seconds)
  return (context.timeout or seconds or M.TIMEOUT) * 1000
end

--- The setting `launcher`; a file by its absolute path, as processes with other folders need it.
---@param context table
---@return string
function M.launcher_name(context)
  local name = context.settings.launcher
  return launcher.is_file(name) and absolute(name) or name
end

--- Fails when the cluster's launcher is a file that is none.
---@param context table
function M.check_launcher(context)
  local name = M.launcher_name(context)
  if launcher.is_file(name) and not M.is_remote(context) then context:check(launcher.load(name)) end
end

-- What a client is opened with: whom it talks to is the settings' word.
local function client_options(context)
  local settings, url = context.settings, M.state_url(context)
  local values, wrong, name = control.settings(settings)
  if not values then context:fail('invalid', ("setting '%s'"):format(name), tostring(wrong)) end
  return {
    state = url, logs = M.logs_folder(url), program = libc.realpath('/proc/self/exe'),
    timeout_ms = math.min(context.timeout or M.STEP, M.STEP) * 1000,
    progress_fd = context.quiet == 0 and 2 or -1, launcher = M.launcher_name(context),
    service = settings.scheduler_service, secret = settings.secret, settings = values,
  }
end

-- A client of the cluster itself, or of the HTTP API that the settings name.
local function open_client(context, options)
  if M.is_remote(context) then
    local service = require 'streamlua.service.client'
    return context:check(service.open({ url = context.settings.service_url,
      secret = context.settings.secret,
      progress = context.quiet == 0 and function(text) context.stderr:write(text, '\n') end or nil }))
  end
  local given = client_options(context)
  given.reader = options and options.reader
  return context:check(cluster.open(given))
end

--- Calls fn(client) and closes the client however that ends. Options: `reader`, nothing is written.
---@param context table
---@param fn fun(client: table): any
---@param options table?
---@return any
function M.with_client(context, fn, options)
  local client = open_client(context, options)
  local trace
  local ok, result = xpcall(function() return fn(client) end, function(value)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return value
  end)
  client:close()
  if not ok then
    if errors.is(result) then error(result, 0) end
    error(errors.from_lua('failed', result, trace), 0)
  end
  return result
end

--- What runs topologies: the settings {launcher=, scheduler=}, those of the cluster that an HTTP API
--- serves where commands talk to one.
---@param context table
---@return table
function M.place(context)
  if not M.is_remote(context) then return context.settings end
  if not context.remote_place then
    local place = M.with_client(context, function(client)
      return context:check(client:cluster())
    end, { reader = true })
    place.scheduler = context.set.scheduler or place.scheduler
    context.remote_place = place
  end
  return context.remote_place
end

--- Masters choose where topologies run.
---@param context table
---@return boolean
function M.is_scheduled(context) return M.place(context).launcher == 'standalone' end

-- `--set input=a.txt` means the file here, wherever the topology runs then.
local function resolve_input(set)
  local input = set.input
  if type(input) == 'string' and input:sub(1, 1) ~= '/' and libc.stat(input) then
    set.input = absolute(input)
  end
end

--- What is submitted of a script: {name, definition, request, described, groups, package, containers,
--- scheduler; where masters schedule, schedule}. The script is evaluated in a process of its own.
---@param context table
---@param path string
---@param parallelism table<string, integer>? by component
---@return table
function M.prepare(context, path, parallelism)
  local defaults, is_scheduled = context.defaults, M.is_scheduled(context)
  local default_scheduler = M.place(context).scheduler
  resolve_input(context.set)
  return apart.build(context, path, function(topology)
    for _, component in ipairs(topology.components) do
      component.parallelism = parallelism and parallelism[component.name] or component.parallelism
    end
    local code, failure = packages.build(path, load.modules(),
      { set = context.set, defaults = defaults, files = load.files() })
    if not code then return nil, failure end
    local definition
    definition, failure = topology:encode()
    if not definition then return nil, failure end
    local components = {}
    for i, component in ipairs(topology.components) do
      components[i] = { name = component.name, parallelism = component.parallelism,
        fixed = submission.fixed(topology.config, component.name) }
    end
    local scheduler, schedule = topology.config.scheduler or default_scheduler, nil
    if is_scheduled and placement.is_known(scheduler) then
      schedule, failure = placement.schedule(topology, scheduler)
      if not schedule then return nil, failure end
    end
    return { name = topology.name, definition = definition, package = code,
      request = packing.request_from_topology(topology), components = components,
      scheduler = scheduler, schedule = schedule, groups = topology:key_groups(),
      message_timeout = topology:settings().message_timeout,
      is_streams = submission.is_program(topology.config) }
  end, { takes_streams = true })
end

--- The name of the topology that TARGET means. A script is evaluated for it; the second result is
--- then what `prepare` gives.
---@param context table
---@param word string
---@return string name
---@return table? prepared
function M.target(context, word)
  local parsed, reason = target.parse(word)
  if not parsed then context:fail('invalid', ("topology '%s'"):format(word), reason) end
  if parsed.name then return parsed.name end
  local prepared = M.prepare(context, parsed.script)
  return prepared.name, prepared
end

--- "topology 'name'", for messages.
---@param name string
---@return string
function M.label(name) return ("topology '%s'"):format(name) end

--- A value of a client's call, or the command fails in the words of the topology.
---@param context table
---@param name string
---@param value any
---@param failure any
---@param hint string?
---@return any
function M.check(context, name, value, failure, hint)
  if value == nil then context:fail_with(failure, M.label(name), hint) end
  return value
end

--- Prints what an action came to.
---@param context table
---@param name string
---@param action string
---@param state string
---@param text string
function M.print_action(context, name, action, state, text)
  if context.output == 'json' then
    context:print_json({ topology = name, action = action, state = state },
      { 'topology', 'action', 'state' })
  else
    context:print(text)
  end
end

--- Declares TARGET.
---@param command table
function M.declare_target(command)
  command:argument('target', 'Name of a running topology, or the script it was submitted from.')
    :argname('TARGET')
end

return M
