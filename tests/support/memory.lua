--- How much memory this process has resident.
--
--     local grown = memory.watch()
--     ... ; memory.assert_grown_less(grown, 64 * 1024)

local assert = require 'luassert'

local M = {}

local build = os.getenv('SL_TEST_BUILD')

--- Under a sanitizer freed memory stays for a while, so nothing can be said of it.
M.is_measurable = build ~= 'asan' and build ~= 'tsan'

local function resident_kib()
  local file = assert(io.open('/proc/self/statm'))
  local pages = tonumber(file:read('*l'):match('^%d+ (%d+)'))
  file:close()
  return pages * 4
end

--- A function that says by how many KiB it has grown since.
---@return fun(): integer
function M.watch()
  local before = resident_kib()
  return function() return resident_kib() - before end
end

--- Fails when it has grown by that much; says nothing where that can not be measured.
---@param grown fun(): integer
---@param kib integer
function M.assert_grown_less(grown, kib)
  local growth = grown()
  assert.is_true(growth < kib or not M.is_measurable, ('grew by %d KiB'):format(growth))
end

return M
