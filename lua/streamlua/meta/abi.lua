---@meta
-- Written by scripts/gen-meta from the bare headers in core/; edit those.
error('streamlua.meta.abi describes types for editors and is not to be required')

--- Where one field of a shared struct lies, as the C compiler sees it.
---@class sl_abi_layout: ffi.cdata*
---@field type ffi.cdata*
---@field field ffi.cdata*
---@field offset integer
---@field size integer

--- The functions and constants of the C core, as `require 'streamlua.abi'.C` holds them.
---@class streamlua.abi.C
---@field SL_ABI_VERSION integer
local C = {}

--- Returns SL_ABI_VERSION as it was when the library was compiled.
---@return integer
function C.sl_abi_version() end

--- Returns the release of the library, like "0.1.0". The string is static.
---@return ffi.cdata*
function C.sl_version() end

--- Returns the text of all bare headers, NUL-terminated, in the order of core/abi/order.txt.
--- The string is static. The Lua module streamlua.abi hands it to ffi.cdef.
---@return ffi.cdata*
function C.sl_abi_text() end

--- Returns the number of entries of sl_abi_layouts().
---@return integer
function C.sl_abi_layout_count() end

--- Returns the layouts of all structs in the ABI text: per struct one entry for the whole and one
--- a field, in the order of the text. The array is static; bit fields are left out.
---@return sl_abi_layout
function C.sl_abi_layouts() end

return C
