-- `streamlua doctor`: is this machine fit to run topologies? A list of checks with ticks and crosses.

local doctor = require 'streamlua.cli.doctor'
local output = require 'streamlua.cli.output'

local function mark(context, check)
  if check.ok then
    return output.paint(context.color, 'green', '✓')
  elseif check.essential then
    return output.paint(context.color, 'red', '✗')
  end
  return output.paint(context.color, 'yellow', '!')
end

return {
  name = 'doctor',
  summary = 'Check this machine and this installation.',
  description = 'Check this machine and this installation: one line a check, ✓ fine, ! worth a look, '
    .. '✗ broken. Exit 1 when something essential is broken.',
  run = function(context)
    local checks = doctor.checks(context)
    local broken = false
    for _, check in ipairs(checks) do
      broken = broken or (check.essential and not check.ok)
    end
    if context.output == 'json' then
      context:print_json({ ok = not broken, checks = checks })
    else
      for _, check in ipairs(checks) do
        context:print(('%s %-12s %s'):format(mark(context, check), check.name, check.detail))
        if not check.ok and check.hint then
          context:print('               ', check.hint)
        end
      end
    end
    return broken and 'failed' or nil
  end,
}
