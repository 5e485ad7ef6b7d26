-- `streamlua topology-master`: a process of a local topology, started by its guardian
-- (docs/operations.md).

local role = require 'streamlua.cli.role'

return role.command('topology-master', 'Lead a local topology.', function(C, state, args, settings)
  return C.sl_abi_role_topology_master(state, args.topology, role.program(), args.logs,
    args.partner, settings)
end)
