-- `streamlua logs`: what the workers of a topology wrote.

local json = require 'streamlua.json'
local parser = require 'streamlua.cli.parser'
local running = require 'streamlua.cli.running'

-- How long a look waits for new lines when they are followed.
local FOLLOW_MS = 20000

local function read(context, client, name, options)
  return running.check(context, name, client:logs(name, options))
end

-- Logs that can not be had now: told once, and all there is to say when there are no others.
local function tell_missing(context, name, list)
  local missing = {}
  for _, log in ipairs(list) do missing[#missing + 1] = log.missing end
  if #missing == #list then
    context:fail('unreachable', running.label(name), missing[1],
      'there it is container-N.log, in a folder of the name of the topology below that of the logs')
  end
  for _, text in ipairs(missing) do context:warn(text) end
end

-- The logs with what is asked for of them; large ones come in pieces.
local function read_first(context, client, args, name)
  local list = read(context, client, name, { container = args.container, tail = args.tail })
  if #list == 0 then
    context:fail('not_found', running.label(name), args.container
      and ('there is no log of container %d'):format(args.container) or 'there are no logs of it',
      running.logs_place(context, name))
  end
  tell_missing(context, name, list)
  return list
end

-- Calls fn(log, lines, is_alone) for the lines of each log, up to its present end.
local function each_piece(context, client, args, name, fn)
  local list = read_first(context, client, args, name)
  for _, log in ipairs(list) do
    local lines = log.lines
    while #lines > 0 do
      fn(log, lines, #list == 1)
      lines = {}
      if not args.tail then
        local more = read(context, client, name, { container = log.container,
          after = { [log.container] = log.at } })[1]
        if more then lines, log.at = more.lines, more.at end
      end
    end
  end
  return list
end

local function printer(context)
  local shown
  return function(log, lines, is_alone)
    if not is_alone and shown ~= log.container then
      context:print(('==> container %d <=='):format(log.container))
      shown = log.container
    end
    for _, line in ipairs(lines) do context:print(line) end
  end
end

local function print_json(context, client, args, name)
  local whole = {}
  local list = each_piece(context, client, args, name, function(log, lines)
    local all = whole[log.container] or {}
    whole[log.container] = all
    for _, line in ipairs(lines) do all[#all + 1] = line end
  end)
  local logs = {}
  for i, log in ipairs(list) do
    logs[i] = { container = log.container, lines = json.array(whole[log.container]) }
  end
  context:print_json({ topology = name, logs = logs },
    { 'topology', 'logs', logs = { 'container', 'lines' } })
end

local function follow(context, client, args, name, list, print_lines)
  local after = {}
  for _, log in ipairs(list) do after[log.container] = log.at end
  while true do
    context.stdout:flush()
    local more = read(context, client, name, { container = args.container, after = after,
      wait_ms = FOLLOW_MS })
    for _, log in ipairs(more) do
      if #log.lines > 0 then print_lines(log, log.lines, #more == 1) end
      after[log.container] = log.at
    end
  end
end

local function print_text(context, client, args, name)
  local print_lines = printer(context)
  local list = each_piece(context, client, args, name, print_lines)
  if args.follow then follow(context, client, args, name, list, print_lines) end
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
    running.with_client(context, function(client)
      local show = context.output == 'json' and print_json or print_text
      show(context, client, args, name)
    end, { reader = true })
  end,
}
