-- B12: a loaded keyed word count in processes of its own: from `submit` to its first tuple, an update
-- of its counting tasks from 2 to 4 and back, and from the death of a worker to its next first tuple. In
-- long runs also how long spouts are paused for each MB of keyed state that an update moves.
--
-- What can not be had for less: a process of this program starts, loads its Lua and ends in `start`; one
-- thread exports and imports the same entries.

local json = require 'streamlua.json'
local libc = require 'streamlua.connectors.libc'
local states = require 'streamlua.runtime.state'

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

local ENTRIES = 1e6

-- How many tuples the bolt that keeps them has executed.
local function kept(place)
  local sum = 0
  for _, component in ipairs(command(place, 'describe', 'moves').components) do
    if component.name == 'keep' then sum = component.executed end
  end
  return sum
end

-- Pause for each MB that moves, in ms, with a million entries; the shortest of three updates.
local function measure_moves(place)
  command(place, 'submit', folder .. '/topologies/cluster_state.lua', '--set', 'entries=' .. ENTRIES)
  local deadline = libc.clock_s('mono') + 30
  while kept(place) < ENTRIES do
    assert(libc.clock_s('mono') < deadline, 'the state does not grow')
  end
  local least = math.huge
  for _, tasks in ipairs({ 4, 2, 4 }) do
    local done = command(place, 'update', 'moves', '--parallelism', 'keep=' .. tasks)
    least = math.min(least, done.paused_ms / (done.bytes_moved / 1e6))
  end
  command(place, 'kill', 'moves')
  return least
end

-- The same work by one thread: export and import, in ms for each MB.
local function hand_moves()
  local from, to = assert(states.new()), assert(states.new())
  local text, bytes = ('v'):rep(88), 0
  for key = 1, ENTRIES / 10 do from:put(key, text) end
  local before = libc.clock_s('mono')
  for group = 0, 127 do bytes = bytes + assert(to:import(from:export_group(group))).bytes end
  return (libc.clock_s('mono') - before) * 1000 / (bytes / 1e6)
end

local ROWS = {
  { 'submit', 'submit to the first tuple', 1000 },
  { 'pause', 'pause of an update 2 -> 4 -> 2, the longer one', 500 },
  { 'update', 'update 2 -> 4 -> 2, the longer one', 3000 },
  { 'recovery', 'kill -9 of a worker to its first tuple', 1500 },
}

-- Measures in a folder of its own, in which nothing is left.
local function in_folder(measure_there, topology)
  local pipe = assert(io.popen('mktemp -d'))
  local place = pipe:read('*l')
  pipe:close()
  local ok, figures = pcall(measure_there, place)
  if not ok then pcall(command, place, 'kill', topology) end
  os.execute('rm -rf ' .. quoted(place))
  if not ok then error(figures, 0) end
  return figures
end

return {
  id = 'B12',
  name = 'a topology in processes of its own',
  run = function(bench)
    local best = {}
    for _ = 1, bench.quick and 1 or 3 do
      for name, value in pairs(in_folder(measure, 'bench')) do best[name] = math.min(best[name] or math.huge, value) end
    end
    for _, row in ipairs(ROWS) do
      bench:report { variant = row[1], name = row[2], value = best[row[1]], unit = 'ms',
        limit = best.start, target = row[3], better = 'less' }
    end
    if not bench.quick then
      bench:report { variant = 'moved', name = 'pause for each MB of state that moves',
        value = in_folder(measure_moves, 'moves'), unit = 'ms/MB', limit = bench:least(3, hand_moves) }
    end
  end,
}
