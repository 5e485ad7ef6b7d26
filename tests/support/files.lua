--- Temporary folders and files of a spec, removed by `files.clean()`.
--
--     local files = require 'support.files'
--     after_each(files.clean)
--     local path = files.write('topo.lua', 'return 1')     -- in a new folder of this test
--     local gate = files.gate('gate')                      -- something waits at gate.path ...
--     gate.arrived()                                       -- ... until the test has seen enough
--     gate.open()

local lfs = require 'lfs'
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

--- A place where processes wait for the test: whoever opens `path` to read waits until `open()`.
--- `arrived()` returns when somebody waits there. After `open()` there is no file of that name, and nobody
--- waits any more.
---@param name string
---@return table gate {path=, arrived=, open=}
function M.gate(name)
  local gate = { path = M.folder() .. '/' .. name }
  assert(sys_stat.mkfifo(gate.path, 384))
  function gate.arrived() gate.writer = gate.writer or assert(io.open(gate.path, 'w')) end
  function gate.open()
    gate.writer = gate.writer or assert(io.open(gate.path, 'r+'))
    assert(os.remove(gate.path))
    gate.writer:close()
  end
  return gate
end

--- Removes a file, or a folder with all that is in it; what is not there is no error.
---@param path string
function M.remove(path)
  if lfs.symlinkattributes(path, 'mode') == 'directory' then
    for name in lfs.dir(path) do
      if name ~= '.' and name ~= '..' then M.remove(path .. '/' .. name) end
    end
  end
  os.remove(path)
end

--- Removes the folder.
function M.clean()
  if folder then M.remove(folder) end
  folder = nil
end

return M
