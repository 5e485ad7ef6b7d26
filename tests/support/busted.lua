-- Runs busted inside the streamlua binary: build/streamlua exec tests/support/busted.lua FILE...
--
-- busted's runner would replace ffi.cdef, ffi.typeof and ffi.metatype by versions that remember
-- the first argument only, so that a second declaration that fails in production passes in a
-- spec, and every '$ *' type is the first one. The specs run with the real ffi instead; the helper
-- (.busted) loads the modules that declare types before the first spec file, because busted drops
-- loaded modules between files.
package.loaded['busted.luajit'] = function() end

require 'busted.runner'({ standalone = false, output = 'plainTerminal' })
