-- The exit codes of the command line and the words that stand for them in JSON errors.
-- Commands name a code (`context:fail('not_found', ...)`); the number never appears in their text.
--
--   local exit = require 'streamlua.cli.exit'
--   assert(exit.number('conflict') == 4 and exit.name(4) == 'conflict')

local M = {}

--- Every code in the order of the documentation: number, name, what it tells the caller.
M.table = {
  { 0, 'ok', 'done' },
  { 1, 'failed', 'failed; for diff: the documents differ' },
  { 2, 'usage', 'unknown command or option, or a value that does not parse' },
  { 3, 'not_found', 'topology, container or file not found' },
  { 4, 'conflict', 'lock held, version moved, already exists, nothing to do, or the script differs '
    .. 'from what runs' },
  { 5, 'unreachable', 'cluster unreachable, or it has no leader' },
  { 6, 'timeout', 'timed out; the message says what still goes on' },
  { 7, 'invalid', 'invalid script, name, config, request or custom code, or a plan that can not '
    .. 'be satisfied' },
  { 8, 'rolled_back', 'failed and rolled back' },
  { 9, 'not_rolled_back', 'failed and not rolled back: needs a look' },
  { 130, 'interrupted', 'ended by SIGINT' },
  { 143, 'terminated', 'ended by SIGTERM' },
}

local number_of, name_of = {}, {}
for _, row in ipairs(M.table) do
  number_of[row[2]] = row[1]
  name_of[row[1]] = row[2]
end

-- How the error codes of the core map to exit codes; what is not listed is a plain failure.
local of_error = {
  EINVAL = 7,
  ENOTFOUND = 3,
  EEXIST = 4,
  ECONFLICT = 4,
  EFENCED = 4,
  EAGAIN = 4,
  ETIMEOUT = 6,
  ERANGE = 7,
  ELIMIT = 7,
  EUNAVAIL = 5,
  EUNSATISFIABLE = 7,
  EUSER = 7,
  ECANCELED = 130,
}

--- Number of a code given by name or number.
---@param code string|integer
---@return integer
function M.number(code)
  if type(code) == 'number' then
    return code
  end
  return number_of[code] or error('unknown exit code ' .. tostring(code), 2)
end

--- Name of an exit number; numbers outside the table are 'failed'.
---@param number integer
---@return string
function M.name(number)
  return name_of[number] or 'failed'
end

--- Exit number for an error code of the core such as 'EFENCED'; a leading 'SL_' is ignored.
---@param code string?
---@return integer
function M.of_error(code)
  local text = tostring(code):gsub('^SL_', '')
  return of_error[text] or 1
end

return M
