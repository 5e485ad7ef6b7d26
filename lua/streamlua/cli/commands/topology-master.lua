-- `streamlua topology-master`: leads a topology; started by its guardian, or by a supervisor
-- (docs/operations.md).

local launcher = require 'streamlua.cluster.launcher'
local role = require 'streamlua.cli.role'

return role.command('topology-master', 'Lead a topology.', function(C, options, settings, context, given)
  local name = context.settings.launcher
  -- Supervisors start what they have slots for; else the launcher of the cluster does.
  if given.supervisor or not launcher.is_file(name) then
    return C.sl_abi_role_topology_master(options, settings)
  end
  local mine = context:check(launcher.load(name))
  return context:check(launcher.serve(mine, given, settings))
end)
