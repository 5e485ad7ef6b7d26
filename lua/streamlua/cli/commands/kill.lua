-- `streamlua kill`: ends a topology.

local parser = require 'streamlua.cli.parser'
local running = require 'streamlua.cli.running'

return {
  name = 'kill',
  summary = 'End a topology: its processes, and what is stored of it.',
  description = 'Ends the processes of a topology and deletes what is stored of it; finishes what an '
    .. 'interrupted kill left.',
  declare = function(command)
    running.declare_target(command)
    command:option('--wait', 'How long what is in flight may take (default: not at all).')
      :argname('D'):convert(parser.duration)
    command:flag('--purge', 'Also forget where it ran, which masters keep for its return.')
  end,
  run = function(context, args)
    local name = running.target(context, args.target)
    running.with_client(context, function(client)
      local done, failure = client:kill(name, (args.wait or 0) * 1000,
        running.timeout_ms(context, 30), args.purge)
      running.check(context, name, done, failure)
    end)
    running.print_action(context, name, 'kill', 'KILLED', name .. ': killed')
  end,
}
