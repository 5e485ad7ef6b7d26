-- `streamlua api-request`: carries out one request of the HTTP API, in a process that its server
-- starts (core/http/api.h says what it reads and writes).

local cli = require 'streamlua.cli'
local output = require 'streamlua.cli.output'
local routes = require 'streamlua.service.routes'
local running = require 'streamlua.cli.running'

-- A stream that keeps what is written.
local function keeper()
  local parts = {}
  return {
    write = function(_, ...)
      for _, part in ipairs({ ... }) do parts[#parts + 1] = tostring(part) end
      return true
    end,
    flush = function() return true end,
    text = function() return table.concat(parts) end,
  }
end

-- The options of this process that name the cluster, for a command in its place.
local function cluster_arguments(context)
  local globals, argv = context.conf_options.globals, { '--service-url', '' }
  for _, name in ipairs({ 'cluster', 'state', 'config' }) do
    if globals[name] and globals[name].value then
      argv[#argv + 1], argv[#argv + 2] = '--' .. name, globals[name].value
    end
  end
  for _, item in ipairs(globals.set.value) do
    argv[#argv + 1], argv[#argv + 2] = '--set', item.key .. '=' .. item.value
  end
  argv[#argv + 1] = '-q'
  return argv
end

local function environment_of(context)
  return {
    cluster = context.settings.cluster, launcher = context.settings.launcher,
    scheduler = context.settings.scheduler,
    with_client = function(fn, options)
      local ok, value
      running.with_client(context, function(client) ok, value = pcall(fn, client) end, options)
      if not ok then error(value, 0) end
      return value
    end,
    cli = function(words)
      local argv, stdout, stderr = cluster_arguments(context), keeper(), keeper()
      for _, word in ipairs(words) do argv[#argv + 1] = word end
      local code = cli.main(argv, { stdout = stdout, stderr = stderr,
        is_service = true })
      return code, stdout.text(), stderr.text()
    end,
  }
end

local function read_request()
  local method, target = (io.read('*l') or ''):match('^(%S+) (%S*)$')
  if not method then return nil end
  return { method = method, target = target, type = io.read('*l') or '', body = io.read('*a') or '' }
end

return {
  name = 'api-request',
  summary = 'Carry out one request of the HTTP API.',
  declare = function() end,
  run = function(context)
    local request = read_request()
    if not request then context:fail('usage', 'api-request', 'a request is expected on its input') end
    -- The API that it serves is not asked in turn.
    context.settings.service_url = nil
    context.quiet = math.max(context.quiet, 1)
    local status, document = routes.answer(request, environment_of(context))
    context.stdout:write(('%d application/json\n'):format(status), output.json_text(document))
  end,
}
