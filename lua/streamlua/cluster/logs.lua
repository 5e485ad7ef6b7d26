-- What the workers of a topology wrote: one file a container, FOLDER/container-N.log.
--
--   local logs = require 'streamlua.cluster.logs'
--   for _, log in ipairs(logs.read('logs/words', { tail = 10 })) do print(log.container, #log.lines) end

local libc = require 'streamlua.connectors.libc'

local M = {}

-- Most bytes of a log that are read at once.
local PIECE_BYTES = 8 * 1024 * 1024

local function find(folder, container)
  local list = {}
  for _, path in ipairs(libc.glob(folder .. '/container-*.log')) do
    local id = tonumber(path:match('container%-(%d+)%.log$'))
    if id and (not container or id == container) then list[#list + 1] = { id = id, path = path } end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

--- The lines of a text that are complete, the last `tail` of them, and how many bytes they are with
--- what is before those.
---@param text string
---@param tail integer?
---@return string[] lines
---@return integer size
function M.lines(text, tail)
  local whole = text:match('^.*\n') or ''
  local lines = {}
  for line in whole:gmatch('([^\n]*)\n') do lines[#lines + 1] = line end
  if tail and #lines > tail then
    local last = {}
    for i = #lines - tail + 1, #lines do last[#last + 1] = lines[i] end
    lines = last
  end
  return lines, #whole
end

-- Lines that are complete from position `at` on, the last `tail` of them, and where they end.
local function read_lines(path, at, tail)
  local file = io.open(path, 'rb')
  if not file then return {}, at end
  local size = file:seek('end')
  -- A log that became shorter is another one.
  if size < at then at = 0 end
  local from = tail and math.max(at, size - PIECE_BYTES) or at
  file:seek('set', from)
  local text = file:read(PIECE_BYTES) or ''
  file:close()
  local lines, size_of_lines = M.lines(text, tail)
  return lines, from + size_of_lines
end

local function has_lines(list)
  for _, log in ipairs(list) do
    if #log.lines > 0 then return true end
  end
  return false
end

local function read_all(found, options)
  local list = {}
  for i, log in ipairs(found) do
    local lines, at = read_lines(log.path, options.after and options.after[log.id] or 0,
      options.tail)
    list[i] = { container = log.id, lines = lines, at = at }
  end
  return list
end

--- Reads the logs of a topology: a list of {container=, lines=, at= where they end}, empty when there
--- are none. Options: `container` (only that one), `tail` (the last lines), `after` (where reading
--- goes on, by container), `wait_ms` (how long to wait for lines when there are none).
---@param folder string
---@param options table
---@return table[]
function M.read(folder, options)
  local found = find(folder, options.container)
  local list = read_all(found, options)
  if not options.wait_ms or #found == 0 or has_lines(list) then return list end
  local watcher = libc.watch_files()
  if not watcher then return list end
  for _, log in ipairs(found) do libc.watch_file(watcher, log.path) end
  local until_s = libc.clock_s('mono') + options.wait_ms / 1000
  repeat
    -- Also what was written before the files were watched.
    list = read_all(found, options)
    local left_ms = (until_s - libc.clock_s('mono')) * 1000
    if has_lines(list) or left_ms <= 0 then break end
    libc.readable(watcher, math.ceil(left_ms))
    libc.read_some(watcher)
  until false
  libc.close(watcher)
  return list
end

return M
