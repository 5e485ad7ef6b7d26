-- `streamlua worker`: a worker process of a topology, started by a launcher (docs/operations.md). It has
-- its code and its plan from the topology master; with --plan it runs a fixed plan without one.

local abi = require 'streamlua.abi'
local canonical = require 'streamlua.topology.canonical'
local error_lines = require 'streamlua.cli.error_lines'
local err = require 'streamlua.err'
local json = require 'streamlua.json'
local load = require 'streamlua.topology.load'
local mode = require 'streamlua.streaming.mode'
local parser = require 'streamlua.cli.parser'
local role = require 'streamlua.cli.role'
local script = require 'streamlua.cli.script'
local units = require 'streamlua.units'

local C, ffi = abi.C, abi.ffi

local function read_plan(context, path)
  local file, message = io.open(path, 'r')
  if not file then context:fail('not_found', ("plan '%s'"):format(path), message) end
  local ok, plan = pcall(json.decode, file:read('*a'))
  file:close()
  if not ok then context:fail('invalid', ("plan '%s'"):format(path), tostring(plan)) end
  return plan
end

-- The row of its own container in a fixed plan.
local function own_row(context, plan, container)
  for _, row in ipairs(plan.containers) do
    if row.id == container then return row end
  end
  context:fail('invalid', 'plan', ('it has no container %d'):format(container))
end

local function whole(text)
  local n = tonumber(text)
  if n and n >= 0 and n == math.floor(n) and n <= 65535 then return n end
  return nil, ("'%s' is no number of a container"):format(text)
end

-- What is known before the topology is loaded: where its code is and what surrounds it.
local function with_fixed_plan(context, args)
  local fixed = read_plan(context, args.plan)
  local own = own_row(context, fixed, args.container)
  if not args.script then context:fail('usage', 'worker', 'a fixed plan needs a SCRIPT') end
  local topology = script.load(context, args.script,
    { defaults = context.defaults, is_limited = true })
  return topology, { fixed = fixed, host = own.host, data_port = own.port, identity = own.identity,
    set = context.set, defaults = context.defaults }
end

local function from_state_manager(context, args, settings)
  local state_url = args.global_state or context.settings.state
  if not args.topology or not state_url then
    context:fail('usage', 'worker', '--state and --topology are needed')
  end
  local unpacked = C.sl_abi_package_unpack(state_url, args.topology, settings)
  if unpacked == nil then
    local _, failure = err.last()
    context:fail_with(failure, ("topology '%s'"):format(args.topology))
  end
  local set = canonical.decode(ffi.string(unpacked.overrides, unpacked.overrides_size))
  local defaults = canonical.decode(ffi.string(unpacked.defaults, unpacked.defaults_size))
  local path = ffi.string(unpacked.script)
  local code_folder = path:match('^(.*)/')
  -- A stream program is only declared at first; its driver loads it again to run it.
  mode.is_member = true
  local topology, failure = load.script(path, { set = set, defaults = defaults })
  if not topology then
    C.sl_abi_package_unpack_free(unpacked)
    script.fail(context, path, failure)
  end
  return topology, { state_url = state_url, host = args.host, unpacked = unpacked, set = set,
    defaults = defaults, code_folder = code_folder }
end

-- The process of a stream program. Which of its containers drives it is in the stored plan.
local function run_streams(context, args, program, options)
  local client = context:check(require('streamlua.cluster').open({ state = options.state_url, logs = '.',
    program = '', timeout_ms = 30000, progress_fd = -1, reader = true, secret = options.secret,
    settings = options.settings }))
  local topology, failure = client:load(args.topology)
  client:close()
  if not (topology and topology.plan) then
    context:fail_with(failure or err.new('ENOTFOUND', 'it has no plan'), ("topology '%s'"):format(args.topology))
  end
  local function line(text) context.stderr:write(text, '\n') end
  options.topology, options.plan = args.topology, topology.plan
  options.follow = require('streamlua.cli.stream_run').follower({ phase = function(_, text) line(text) end },
    true, line).on_event
  return require('streamlua.streaming.process').run(program, options)
end

local function write_summary(path, stats)
  local file = assert(io.open(path, 'w'))
  file:write(json.encode(stats), '\n')
  file:close()
end

return {
  name = 'worker',
  summary = 'Run the tasks of one container of a topology.',
  declare = function(command)
    command:option('--container', 'Number of its container.'):argname('N'):convert(whole):count(1)
    command:option('--topology', 'Name of the topology.'):argname('NAME')
    command:option('--host', 'Where it listens and is reached.'):argname('HOST'):default('127.0.0.1')
    command:option('--supervisor', 'Supervisor that started it.'):argname('ID')
    command:option('--port', 'Port of its slot, on which it listens for the other workers.')
      :argname('PORT'):convert(parser.integer(1, 65535))
    command:option('--plan', 'Fixed plan instead of a topology master.'):argname('FILE')
    command:option('--logs', 'Folder of the logs of a local topology.'):argname('DIR')
    command:argument('script', 'With a fixed plan: the topology.'):argname('SCRIPT'):args('?')
    command:option('--ttl', 'End after this time.'):argname('D'):convert(units.parse_duration)
    command:option('--summary', 'Write counters to FILE at the end.'):argname('FILE')
    command:flag('--until-finished', 'With a fixed plan: end when all its tasks have finished.')
  end,
  run = function(context, args)
    local control = require 'streamlua.conf.control'
    local process = require 'streamlua.runtime.site_process'
    local settings, failure = control.settings(context.settings)
    if not settings then context:fail('invalid', 'settings', tostring(failure)) end
    -- What user code prints is in the log at once, and not lost when the process is killed.
    if args.logs or args.supervisor then io.stdout:setvbuf('line') end
    local prepare = args.plan and with_fixed_plan or from_state_manager
    local topology, options = prepare(context, args, settings)
    options.container = args.container
    options.supervisor, options.data_port = args.supervisor, args.port or options.data_port
    options.ttl_ms = args.ttl and args.ttl * 1000
    options.ends_when_finished = args.until_finished
    options.secret = context.settings.secret
    options.settings = settings
    options.logs = args.logs
    options.program = args.logs and role.program()
    options.verbose = context.verbose > 0
    options.on_error = error_lines.new(function(line) context.stderr:write(line, '\n') end)
    options.on_listen = function(port)
      context.stderr:write(('worker: container %d listens on %s:%d\n'):format(args.container,
        options.host, port))
      context.stderr:flush()
    end
    local outcome = load.kind(topology) == 'streaming' and run_streams(context, args, topology, options)
      or process.run(topology, options)
    C.sl_abi_package_unpack_free(options.unpacked)
    if args.summary then write_summary(args.summary, outcome.stats) end
    if outcome.code ~= 0 then
      context.stderr:write(('error: worker: %s\n'):format(outcome.reason))
    end
    if outcome.is_stuck then
      context.stderr:flush()
      C.sl_abi_process_exit(outcome.code)
    end
    return outcome.code
  end,
}
