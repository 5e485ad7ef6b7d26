--- What this Lua state is within a run; set before a script is evaluated.
--
--     local mode = require 'streamlua.streaming.mode'
--     print(mode.is_member)

return {
  -- A thread of a run: its contexts only declare.
  is_member = false,
  -- Contexts take over what their checkpoint folder holds (`streamlua run`).
  is_automatic = false,
  -- The clock of contexts that a spec loads from scripts; false: their own.
  clock = false,
}
