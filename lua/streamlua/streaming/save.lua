--- Writes the dataset of a batch as text files: a folder "prefix-<ms>.suffix" with one file for each
--- partition, "part-00000" and so on, and an empty file _SUCCESS once all are complete.

local lfs = require 'lfs'
local pass = require 'streamlua.streaming.pass'
local show = require 'streamlua.streaming.show'

local M = {}

local function make_folders(path)
  for at in path:gmatch('()/') do
    if at > 1 then lfs.mkdir(path:sub(1, at - 1)) end
  end
  lfs.mkdir(path)
  if lfs.attributes(path, 'mode') ~= 'directory' then
    error(("folder '%s' can not be made"):format(path), 0)
  end
end

-- A file appears complete or not at all.
local function write(path, lines)
  local temporary = path .. '.new'
  local file, problem = io.open(temporary, 'wb')
  if not file then error(problem, 0) end
  for _, line in ipairs(lines) do
    local ok, why = file:write(line, '\n')
    if not ok then
      file:close()
      error(("file '%s': %s"):format(path, why), 0)
    end
  end
  local ok, why = file:close()
  if ok then ok, why = os.rename(temporary, path) end
  if not ok then error(("file '%s': %s"):format(path, why), 0) end
end

-- Removes what an earlier run of the batch wrote.
local function clear(folder)
  for name in lfs.dir(folder) do
    if name:match('^part%-%d+$') or name == '_SUCCESS' then os.remove(folder .. '/' .. name) end
  end
end

--- Saves a dataset.
---@param prefix? string
---@param suffix? string
---@param rdd streamlua.Rdd
---@param time integer ms
function M.text(prefix, suffix, rdd, time)
  local folder = show.file_name(prefix, suffix, time)
  make_folders(folder)
  clear(folder)
  for i, part in ipairs(rdd:parts()) do
    local lines = {}
    for j, item in ipairs(pass.items_of(part)) do lines[j] = show.text(item) end
    write(('%s/part-%05d'):format(folder, i - 1), lines)
  end
  write(folder .. '/_SUCCESS', {})
end

return M
