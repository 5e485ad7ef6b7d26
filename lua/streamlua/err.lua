--- Errors that are values: what an operation returns as `nil, err` when it failed.
--
--     local err = require 'streamlua.err'
--     local failure = err.new('EINVAL', 'parallelism is 0')
--     assert(tostring(failure) == 'parallelism is 0')
--
-- A wrapper of a C function writes `if rc < 0 then return err.last() end`.

local abi = require 'streamlua.abi'
local libc = require 'streamlua.connectors.libc'

local C, ffi = abi.C, abi.ffi

local M = {}

---@class streamlua.Error
---@field code string name of the code without SL_, such as 'EINVAL'
---@field message string what went wrong, one line
---@field cause? string|streamlua.Error what it was wrapped around, the root last
---@field errno? integer of an ESYS failure
---@field file? string C file that reported it
---@field line? integer
local Error = {}
Error.__index = Error

function Error:__tostring()
  if self.cause then return self.message .. ': ' .. tostring(self.cause) end
  return self.message
end

--- Makes an error value.
---@param code string 'EINVAL' and so on
---@param message string
---@param cause? string|streamlua.Error
---@return streamlua.Error
function M.new(code, message, cause)
  return setmetatable({ code = code, message = message, cause = cause }, Error)
end

--- Whether a value is an error made here.
---@param value any
---@return boolean
function M.is(value) return getmetatable(value) == Error end

-- The root of a failure with the system's reason, unless it says that already.
local function with_reason(text, errno)
  local reason = libc.message(errno)
  return text:find(reason, 1, true) and text or text .. ': ' .. reason
end

--- Takes the last failure of the C core on this thread, as `nil, err`, and clears the record. The root of
--- an ESYS failure ends with what the system said.
---@return nil
---@return streamlua.Error
function M.last()
  local code = C.sl_error_code()
  local message = ffi.string(C.sl_error_message())
  if message == '' then message = ffi.string(C.sl_error_text(code)) end
  local causes = {}
  for i = 0, C.sl_error_cause_count() - 1 do causes[#causes + 1] = ffi.string(C.sl_error_cause(i)) end
  local errno = C.sl_error_errno()
  if errno ~= 0 and #causes > 0 then
    causes[#causes] = with_reason(causes[#causes], errno)
  elseif errno ~= 0 then
    message = with_reason(message, errno)
  end
  local failure = M.new(ffi.string(C.sl_error_name(code)), message,
    #causes > 0 and table.concat(causes, ': ') or nil)
  if errno ~= 0 then failure.errno = errno end
  failure.file, failure.line = ffi.string(C.sl_error_file()), C.sl_error_line()
  C.sl_error_clear()
  return nil, failure
end

return M
