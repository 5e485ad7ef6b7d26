--- The C core as Lua sees it, and the only place that declares its symbols.
--
--     local abi = require 'streamlua.abi'
--     print(abi.ffi.string(abi.C.sl_version()))
--
-- The library carries the text of its own declarations, so the two can not disagree. Inside the
-- streamlua binary the symbols are in the process; under a stock luajit libstreamlua.so is loaded.

local ffi = require 'ffi'

ffi.cdef 'const char *sl_abi_text(void);'

local function symbol(library) return library.sl_abi_text end

local C = ffi.C
if not pcall(symbol, C) then C = ffi.load('streamlua') end

ffi.cdef(ffi.string(C.sl_abi_text()))

---@class streamlua.abi
---@field C streamlua.abi.C the functions and constants of the core
---@field ffi ffilib LuaJIT's ffi library, so that callers share one
local M = { C = C, ffi = ffi }

return M
