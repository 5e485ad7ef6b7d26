-- TARGET of a command: the name of a running topology, or a script whose topology is meant.
--
--   local target = require 'streamlua.cli.target'
--   assert(target.parse('topo.lua').script == 'topo.lua')
--   assert(target.parse('wordcount').name == 'wordcount')

local M = {}

--- True when a word means a script: it ends in `.lua` or has a slash.
---@param word string
---@return boolean
function M.is_script(word)
  return word:find('%.lua$') ~= nil or word:find('/', 1, true) ~= nil
end

--- Why a word can not be the name of a topology, component or stream, or nil when it can.
---@param name string
---@return string?
function M.name_fault(name)
  if #name == 0 or #name > 64 then
    return ('a name has 1 to 64 characters, this one %d'):format(#name)
  elseif name:find('[^%w_.-]') then
    return 'a name is made of letters, digits and _ . -'
  elseif name == '.' or name == '..' then
    return 'this name is not allowed'
  elseif name:sub(1, 2) == '__' then
    return "names that start with '__' are kept for the system"
  end
end

--- Parses a TARGET: {script=} or {name=}, or nil and the reason.
---@param word string
---@return table? target
---@return string? reason
function M.parse(word)
  if M.is_script(word) then
    return { script = word }
  end
  local fault = M.name_fault(word)
  if fault then
    return nil, fault
  end
  return { name = word }
end

return M
