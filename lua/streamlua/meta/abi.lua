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

--- Returns the code of the last failure (negative), or 0 when there is none. Like all functions
--- sl_error_* it reads the record that the last failed call of this thread left; their strings are
--- valid until the next call that fails.
---@return integer
function C.sl_error_code() end

--- Returns the name of a code, "EINVAL" for SL_EINVAL, "OK" for 0, "EUNKNOWN" for any other.
---@param code integer
---@return ffi.cdata*
function C.sl_error_name(code) end

--- Returns the phrase that describes a code, "invalid argument" for SL_EINVAL.
---@param code integer
---@return ffi.cdata*
function C.sl_error_text(code) end

--- Returns the code whose name is given ("EINVAL"), or 0 when there is none.
---@param name string|ffi.cdata*
---@return integer
function C.sl_error_from_name(name) end

--- Returns the message of the last failure, without its causes; "" when there is none.
---@return ffi.cdata*
function C.sl_error_message() end

--- Returns the saved errno of an ESYS failure, else 0.
---@return integer
function C.sl_error_errno() end

--- Returns the C file, without folders, that reported the last failure; "" when there is none.
---@return ffi.cdata*
function C.sl_error_file() end

--- Returns the line of that report, 0 when there is none.
---@return integer
function C.sl_error_line() end

--- Returns how many causes the last failure has (0 to 4).
---@return integer
function C.sl_error_cause_count() end

--- Returns the message of cause index (from 0, the root last); "" for an index out of range.
---@param index integer
---@return ffi.cdata*
function C.sl_error_cause(index) end

--- Empties the record, so that a later sl_error_code() tells of later failures only.
function C.sl_error_clear() end

return C
