-- `streamlua topology-master`: leads a topology; started by its guardian, or by a supervisor
-- (docs/operations.md).

local role = require 'streamlua.cli.role'

return role.command('topology-master', 'Lead a topology.',
  function(C, options, settings) return C.sl_abi_role_topology_master(options, settings) end)
