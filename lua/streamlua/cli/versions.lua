-- Versions of streamlua and of the libraries it runs on, as far as this process can tell.
-- Declares the version calls of those libraries, and nothing else of them.
--
--   local versions = require 'streamlua.cli.versions'
--   print(versions.document().version)

local ffi = require 'ffi'

local M = {}

ffi.cdef [[
const char *uv_version_string(void);
const char *protobuf_c_version(void);
]]

-- A symbol that is not linked in raises: the library is absent then.
local function text_of(name)
  local ok, value = pcall(function()
    return ffi.string(ffi.C[name]())
  end)
  return ok and value or nil
end

-- The release that was built with, and the file that is loaded: the client itself does not tell.
local function zookeeper(core)
  local found
  local maps = io.open('/proc/self/maps', 'r')
  for line in (maps and maps:lines() or function() end) do
    found = found or line:match('libzookeeper_mt%.so%.[%d.]+')
  end
  if maps then
    maps:close()
  end
  local release = core and ffi.string(core.sl_zookeeper_version())
  return release and found and ('%s (%s)'):format(release, found) or release
end

--- The document of `version -o json`: version, abi, luajit, libuv, protobuf_c, zookeeper; what is
--- not known is absent.
---@return table
function M.document()
  local ok, abi = pcall(require, 'streamlua.abi')
  return {
    version = ok and ffi.string(abi.C.sl_version()) or '?',
    abi = ok and abi.C.sl_abi_version() or nil,
    luajit = (jit.version:gsub('^LuaJIT ', '')),
    libuv = text_of('uv_version_string'),
    protobuf_c = text_of('protobuf_c_version'),
    zookeeper = zookeeper(ok and abi.C or nil),
    os = jit.os,
    arch = jit.arch,
  }
end

return M
