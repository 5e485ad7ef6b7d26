--- Our processes that are there, found by their command lines.
--
--     local processes = require 'support.processes'
--     assert.same({}, processes.of(folder .. '/state'))
--     local master = processes.of(folder .. '/state', 'topology-master')[1].pid

local dirent = require 'posix.dirent'

local M = {}

--- Processes of a topology whose command line has this text: {pid=, role=, text=}, the text being that
--- line; those of one role only when it is given.
---@param text string
---@param role string?
---@return table[]
function M.of(text, role)
  local list = {}
  for _, entry in ipairs(dirent.dir('/proc')) do
    local file = entry:find('^%d+$') and io.open('/proc/' .. entry .. '/cmdline', 'rb')
    local line = file and file:read('*a')
    if file then file:close() end
    if line and line:find(text, 1, true) and line:find('--topology', 1, true) then
      local found = line:match('^%Z+%z(%Z+)')
      if not role or found == role then list[#list + 1] = { pid = tonumber(entry), role = found, text = line } end
    end
  end
  return list
end

return M
