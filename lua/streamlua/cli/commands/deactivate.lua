-- `streamlua deactivate`: spouts are not called any more.

local running = require 'streamlua.cli.running'

return {
  name = 'deactivate',
  summary = 'Pause a topology: its spouts are not called any more.',
  declare = running.declare_target,
  run = function(context, args)
    local name = running.target(context, args.target)
    local changed = running.with_client(context, function(client)
      local changed, failure = client:set_active(name, false, running.timeout_ms(context, 60))
      return running.check(context, name, changed, failure)
    end)
    if not changed then context:warn(running.label(name) .. ' was paused already') end
    running.print_action(context, name, 'deactivate', 'PAUSED', name .. ': paused')
  end,
}
