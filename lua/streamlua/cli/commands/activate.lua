-- `streamlua activate`: spouts are called again.

local running = require 'streamlua.cli.running'

return {
  name = 'activate',
  summary = 'Have the spouts of a topology called again.',
  declare = running.declare_target,
  run = function(context, args)
    local name = running.target(context, args.target)
    local changed = running.with_client(context, function(client)
      local changed, failure = client:set_active(name, true, running.timeout_ms(context, 60))
      return running.check(context, name, changed, failure)
    end)
    if not changed then context:warn(running.label(name) .. ' was running already') end
    running.print_action(context, name, 'activate', 'RUNNING', name .. ': running')
  end,
}
