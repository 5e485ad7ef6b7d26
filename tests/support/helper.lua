-- busted's helper, named in .busted: loads ffi and every module that declares C types, once for
-- all spec files, because a C type can be declared and get its metatable only once per process.
require 'ffi'
local abi = require 'streamlua.abi'
assert(abi.C.sl_abi_version() == abi.C.SL_ABI_VERSION)

package.path = 'tests/?.lua;' .. package.path

local function declares_types(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text:find('ffi.metatype', 1, true) or text:find('ffi.cdef', 1, true)
end

local pipe = assert(io.popen("find lua/streamlua -name '*.lua' ! -path '*/meta/*' | LC_ALL=C sort"))
for path in pipe:lines() do
  if declares_types(path) then
    local name = path:gsub('^lua/', ''):gsub('%.lua$', ''):gsub('/init$', ''):gsub('/', '.')
    -- A module that needs a library of its own may fail here; its spec then says why.
    pcall(require, name)
  end
end
pipe:close()
