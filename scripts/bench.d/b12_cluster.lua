-- B12: a loaded keyed word count in processes of its own: from `submit` to its first tuple, an update
-- of its counting tasks from 2 to 4 and back, and from the death of a worker to its next first tuple.
--
-- What can not be had for less: a process of this program starts, loads its Lua and ends in `start`.

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'

local folder = debug.getinfo(1, 'S').source:match('^@(.*)/[^/]*$') or '.'
local binary = folder .. '/../../build/streamlua'

local function quoted(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

local function command(place, ...)
  local words = { 'exec', quoted(binary), '-q', '-o', 'json', '--state', quoted('localfs:' .. place) }
  for _, word in ipairs({ ... }) do words[#words + 1] = quoted(word) end
  local pipe = assert(io.popen(table.concat(words, ' ') .. ' 2>&1', 'r'))
  local text = pipe:read('*a')
  pipe:close()
  local document = json.decode(text)
  if not document or document.error then error(table.concat(words, ' ') .. ': ' .. text, 0) end
  return document
end

-- When the n-th process of the sink had its first tuple, in ms; waits for it.
local function first_tuple(path, n)
  local deadline = libc.clock_s('mono') + 20
  local watcher = assert(libc.watch_files())
  assert(libc.watch_file(watcher, path))
  local found
  repeat
    local times = {}
    for line in io.lines(path) do times[#times + 1] = tonumber(line) end
    found = times[n]
    if not found then libc.readable(watcher, 1000) end
  until found or libc.clock_s('mono') > deadline
  libc.close(watcher)
  return assert(found, 'no tuple came')
end

-- The process that runs the sink.
local function sink_process(place)
  for _, container in ipairs(command(place, 'describe', 'bench').containers) do
    for _, task in ipairs(container.tasks) do
      if task.component == 'sink' then return container.pid end
    end
  end
end

local function measure(place)
  local out, figures = place .. '/first', {}
  io.open(out, 'w'):close()
  local before = libc.clock_s('mono')
  command(place, 'version')
  figures.start = (libc.clock_s('mono') - before) * 1000
  local submitted = libc.clock_s('wall') * 1000
  command(place, 'submit', folder .. '/topologies/cluster.lua', '--set', 'out=' .. out)
  figures.submit = first_tuple(out, 1) - submitted
  local grown = command(place, 'update', 'bench', '--parallelism', 'count=4')
  local shrunk = command(place, 'update', 'bench', '--parallelism', 'count=2')
  figures.pause = math.max(grown.paused_ms, shrunk.paused_ms)
  figures.update = math.max(grown.seconds, shrunk.seconds) * 1000
  local pid = sink_process(place)
  local killed = libc.clock_s('wall') * 1000
  libc.kill(pid, libc.SIGKILL)
  figures.recovery = first_tuple(out, 2) - killed
  command(place, 'kill', 'bench')
  return figures
end

local ROWS = {
  { 'submit', 'submit to the first tuple', 1000 },
  { 'pause', 'pause of an update 2 -> 4 -> 2, the longer one', 500 },
  { 'update', 'update 2 -> 4 -> 2, the longer one', 3000 },
  { 'recovery', 'kill -9 of a worker to its first tuple', 1500 },
}

return {
  id = 'B12',
  name = 'a topology in processes of its own',
  run = function(bench)
    local best = {}
    for _ = 1, bench.quick and 1 or 3 do
      local pipe = assert(io.popen('mktemp -d'))
      local place = pipe:read('*l')
      pipe:close()
      local ok, figures = pcall(measure, place)
      if not ok then pcall(command, place, 'kill', 'bench') end
      os.execute('rm -rf ' .. quoted(place))
      if not ok then error(figures, 0) end
      for name, value in pairs(figures) do best[name] = math.min(best[name] or math.huge, value) end
    end
    for _, row in ipairs(ROWS) do
      bench:report { variant = row[1], name = row[2], value = best[row[1]], unit = 'ms',
        limit = best.start, target = row[3], better = 'less' }
    end
  end,
}
