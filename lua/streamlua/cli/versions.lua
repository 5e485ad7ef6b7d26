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
const char *zoo_version(void);
]]

-- A symbol that is not linked in raises: the library is absent then.
local function text_of(name)
  local ok, value = pcall(function()
    return ffi.string(ffi.C[name]())
  end)
  return ok and value or nil
end

-- The client of ZooKeeper tells its version only in the name of the file that was loaded.
local function zookeeper()
  local text = text_of('zoo_version')
  if text then
    return text
  end
  local maps = io.open('/proc/self/maps', 'r')
  if not maps then
    return nil
  end
  local found
  for line in maps:lines() do
    found = found or line:match('libzookeeper_mt%.so%.([%d.]+)')
  end
  maps:close()
  return found and 'libzookeeper_mt.so.' .. found
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
    zookeeper = zookeeper(),
    os = jit.os,
    arch = jit.arch,
  }
end

return M
