--- The nine groupings: their names and the numbers the core knows them by.
--
--     local grouping = require 'streamlua.topology.grouping'
--     assert(grouping.number.fields == 2 and grouping.name[2] == 'fields')

local abi = require 'streamlua.abi'

local M = {
  --- Names in the order of their numbers.
  names = { 'shuffle', 'fields', 'all', 'global', 'direct', 'none', 'local_or_shuffle',
    'partial_key', 'custom' },
  --- Number by name.
  number = {},
  --- Name by number.
  name = {},
}

for _, name in ipairs(M.names) do
  local number = tonumber(abi.C['SL_GROUPING_' .. name:upper()])
  M.number[name] = number
  M.name[number] = name
end

return M
