--- Temporary folders and files of a spec, removed by `files.clean()`.
--
--     local files = require 'support.files'
--     after_each(files.clean)
--     local path = files.write('topo.lua', 'return 1')     -- in a new folder of this test

local stdlib = require 'posix.stdlib'
local sys_stat = require 'posix.sys.stat'

local M = {}

local folder

--- Folder of the present test, made when it is first asked for.
---@return string
function M.folder()
  if not folder then
    folder = assert(stdlib.mkdtemp((os.getenv('TMPDIR') or '/tmp') .. '/streamlua-XXXXXX'))
  end
  return folder
end

--- Writes a file in the folder; folders in its name are made. Returns its path.
---@param name string
---@param text string
---@return string
function M.write(name, text)
  local path = M.folder() .. '/' .. name
  for part in path:sub(#M.folder() + 2):gmatch('()/') do
    sys_stat.mkdir(M.folder() .. '/' .. name:sub(1, part - 1))
  end
  local file = assert(io.open(path, 'wb'))
  file:write(text)
  file:close()
  return path
end

--- Removes the folder.
function M.clean()
  if folder then os.execute(("rm -rf '%s'"):format(folder)) end
  folder = nil
end

return M
