-- `streamlua logs`: what the workers of a topology wrote.

local libc = require 'streamlua.connectors.libc'
local parser = require 'streamlua.cli.parser'
local running = require 'streamlua.cli.running'

local function find_logs(context, args, name)
  local folder = running.logs_folder(running.state_url(context)) .. '/' .. name
  local list = {}
  for _, path in ipairs(libc.glob(folder .. '/container-*.log')) do
    local id = tonumber(path:match('container%-(%d+)%.log$'))
    if id and (not args.container or id == args.container) then
      list[#list + 1] = { id = id, path = path }
    end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  if #list == 0 then
    context:fail('not_found', running.label(name), args.container
      and ('there is no log of container %d'):format(args.container) or 'there are no logs of it',
      'logs are in ' .. folder)
  end
  return list
end

-- Lines of a log that are complete, the last `tail` of them; the log remembers where it was read to.
local function read_lines(log, tail)
  local file = io.open(log.path, 'rb')
  if not file then return {} end
  -- A log that became shorter is another one.
  if file:seek('end') < (log.at or 0) then log.at = 0 end
  file:seek('set', log.at or 0)
  local text = file:read('*a') or ''
  file:close()
  local whole = text:match('^.*\n') or ''
  log.at = (log.at or 0) + #whole
  local lines = {}
  for line in whole:gmatch('([^\n]*)\n') do lines[#lines + 1] = line end
  if tail and #lines > tail then
    local last = {}
    for i = #lines - tail + 1, #lines do last[#last + 1] = lines[i] end
    return last
  end
  return lines
end

local function print_lines(context, logs, log, lines)
  if #logs > 1 and logs.shown ~= log and #lines > 0 then
    context:print(('==> container %d <=='):format(log.id))
    logs.shown = log
  end
  for _, line in ipairs(lines) do context:print(line) end
end

local function print_json(context, name, logs, tail)
  local list = {}
  for i, log in ipairs(logs) do
    list[i] = { container = log.id, lines = read_lines(log, tail) }
  end
  context:print_json({ topology = name, logs = list },
    { 'topology', 'logs', logs = { 'container', 'lines' } })
end

local function follow(context, logs)
  local watcher = context:check(libc.watch_files())
  for _, log in ipairs(logs) do context:check(libc.watch_file(watcher, log.path)) end
  while true do
    for _, log in ipairs(logs) do print_lines(context, logs, log, read_lines(log)) end
    context.stdout:flush()
    libc.readable(watcher, -1)
    libc.read_some(watcher)
  end
end

return {
  name = 'logs',
  summary = 'Show what the workers of a topology wrote.',
  declare = function(command)
    running.declare_target(command)
    command:option('--container', 'Only this container.'):argname('N')
      :convert(parser.integer(1, 2147483647))
    command:flag('-f --follow', 'Go on as lines are written.')
    command:option('--tail', 'Only the last N lines of each.'):argname('N')
      :convert(parser.integer(0, 2147483647))
  end,
  run = function(context, args)
    if args.follow and context.output == 'json' then
      context:fail('usage', 'logs -f', 'a document has an end, what is followed has none')
    end
    local name = running.target(context, args.target)
    local logs = find_logs(context, args, name)
    if context.output == 'json' then return print_json(context, name, logs, args.tail) end
    for _, log in ipairs(logs) do print_lines(context, logs, log, read_lines(log, args.tail)) end
    if args.follow then follow(context, logs) end
  end,
}
