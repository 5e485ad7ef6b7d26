-- `streamlua restart`: starts the worker processes of a topology anew.

local parser = require 'streamlua.cli.parser'
local running = require 'streamlua.cli.running'

return {
  name = 'restart',
  summary = 'Restart the containers of a topology, or one of them.',
  declare = function(command)
    running.declare_target(command)
    command:option('--container', 'Only this container.'):argname('N')
      :convert(parser.integer(1, 2147483647))
  end,
  run = function(context, args)
    local name = running.target(context, args.target)
    local state = running.with_client(context, function(client)
      local done, failure = client:restart(name, args.container or 0,
        running.timeout_ms(context, 60))
      running.check(context, name, done, failure)
      return running.check(context, name, client:load(name)).execution.state
    end)
    running.print_action(context, name, 'restart', state, args.container
      and ('%s: container %d restarted'):format(name, args.container) or name .. ': restarted')
  end,
}
