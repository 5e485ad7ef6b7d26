-- `streamlua supervisor`: gives slots of this machine to a cluster (docs/operations.md).

local ffi = require 'ffi'
local libc = require 'streamlua.connectors.libc'
local parser = require 'streamlua.cli.parser'
local role = require 'streamlua.cli.role'
local running = require 'streamlua.cli.running'

-- core/cluster/supervisor.h
local FIRST_PORT, SLOTS = 6800, 4

local function ports(text)
  local first, last = text:match('^(%d+)%-(%d+)$')
  first, last = tonumber(first or text:match('^%d+$')), tonumber(last or text:match('^%d+$'))
  if not first or first < 1 or last > 65535 or last < first then
    return nil, ("'%s' is no range of ports like 6800-6803"):format(text)
  end
  return { first = first, last = last }
end

local function cpu(text)
  local value = tonumber(text)
  if not value or value <= 0 or value ~= value or value > 65536 then
    return nil, ("'%s' is no number of cores"):format(text)
  end
  return value
end

-- Memory of this machine in bytes.
local function memory()
  local file = io.open('/proc/meminfo', 'r')
  local text = file and file:read('*a') or ''
  if file then file:close() end
  return (tonumber(text:match('MemTotal:%s*(%d+)')) or 0) * 1024
end

-- Words as C takes them; they borrow from the list.
local function to_c(list)
  local words = ffi.new('const char *[?]', #list + 1)
  for i, text in ipairs(list) do words[i - 1] = text end
  return words
end

-- What its processes are told of the settings, beside the environment, which they inherit.
local function arguments(context, args)
  local list = { '--cluster', context.settings.cluster }
  if args.global_config then
    list[#list + 1] = '--config'
    list[#list + 1] = libc.realpath(args.global_config)
  end
  for _, word in ipairs(role.set_arguments(args.global_set or {})) do list[#list + 1] = word end
  return list
end

local function options(context, args)
  local url = running.state_url(context)
  local logs = running.logs_folder(url)
  local slots = args.slots or SLOTS
  local range = args.ports or { first = FIRST_PORT, last = FIRST_PORT + slots - 1 }
  local words = arguments(context, args)
  return {
    state_url = url, id = args.id, host = args.host,
    -- The list keeps the texts that C borrows.
    words = words, arguments = to_c(words),
    folder = logs:gsub('/logs$', '/supervisors'), logs = logs,
    first_port = range.first, last_port = math.max(0, range.last),
    cpu_cores = args.cpu or libc.processors(), ram_bytes = args.ram or memory(),
    is_drained = args.drained or false,
  }
end

return {
  name = 'supervisor',
  summary = 'Run the processes of topologies on this machine.',
  description = 'Offers slots of this machine to the topologies of a cluster and runs their '
    .. 'processes. SIGTERM ends it and leaves them running: the next supervisor of that name takes '
    .. 'them over. Ctrl-C ends them too.',
  declare = function(command)
    command:option('--slots', ('How many slots (default: %d), from port %d on.'):format(SLOTS,
      FIRST_PORT)):argname('N'):convert(parser.integer(0, 1024))
    command:option('--ports', 'Its slots: one for each port from A to B.'):argname('A-B'):convert(ports)
    command:option('--host', 'Where its processes listen and are reached.'):argname('NAME')
      :default('127.0.0.1')
    command:option('--id', 'Its name (default: HOST-PORT of the first slot).'):argname('NAME')
    command:option('--cpu', 'Cores that all slots share (default: all of the machine).'):argname('N')
      :convert(cpu)
    command:option('--ram', 'Memory that all slots share (default: all of the machine).')
      :argname('SIZE'):convert(parser.size)
    command:flag('--drained', 'Keep what runs and take nothing new.')
  end,
  run = function(context, args)
    if args.slots and args.ports then
      context:fail('usage', 'supervisor', '--slots and --ports do not go together')
    end
    if args.slots == 0 then
      context:fail('invalid', 'supervisor', 'it has no slots', 'give it at least one: --slots 1')
    end
    return role.run(context, 'supervisor', options(context, args),
      'struct sl_supervisor_role_options',
      function(C, role_options, settings) return C.sl_abi_role_supervisor(role_options, settings) end)
  end,
}
