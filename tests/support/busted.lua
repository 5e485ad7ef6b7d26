-- Runs busted inside the streamlua binary: build/streamlua exec tests/support/busted.lua FILE...
--
-- busted's runner would replace ffi.cdef, ffi.typeof and ffi.metatype by versions that remember
-- the first argument only, so that a second declaration that fails in production passes in a
-- spec, and every '$ *' type is the first one. The specs run with the real ffi instead; the helper
-- (.busted) loads the modules that declare types before the first spec file, because busted drops
-- loaded modules between files.
package.loaded['busted.luajit'] = function() end

-- The runner tells of failures by its exit code; what it raises is an error of its own.
local ok, message = pcall(require 'busted.runner', { standalone = false, output = 'plainTerminal' })
if not ok then
  io.stderr:write('error: ', tostring(message), '\n')
  os.exit(1, true)
end
