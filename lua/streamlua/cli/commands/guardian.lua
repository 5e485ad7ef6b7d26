-- `streamlua guardian`: a process of a local topology, started by `submit` (docs/operations.md).

local role = require 'streamlua.cli.role'

return role.command('guardian', 'Restart the topology master of a local topology.',
  function(C, options, settings) return C.sl_abi_role_guardian(options, settings) end)
