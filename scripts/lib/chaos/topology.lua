-- The topology that scripts/chaos does harm to, and what must be true of what it wrote.
--
-- A spout emits numbered roots and writes down each one that is acked or failed, a keyed bolt counts, a relay
-- passes on, a sink writes down each root that it sees: one line each, at once, since several processes append.
--
-- No root may wait for its time-out, which is longer than any harm: where tuples were lost with a process or a
-- connection, somebody knows it and fails their roots. One that nobody knows of stays open while all that were
-- emitted later end; the spout writes it down.

local M = {}

local PENDING = 100

--- So many later roots end only when nothing keeps an open one from its end: while a process or a connection
--- stands still, the roots that need it fill the spout's window long before.
M.LATER = 100 * PENDING

local SCRIPT = [[
local streamlua = require 'streamlua'
local function append(context, name)
  local file = assert(io.open(context.config.folder .. '/' .. name, 'a'))
  file:setvbuf('no')
  return file
end
local function ended(self, n)
  local at = self.place[n]
  self.ended, self.open[at], self.before[at], self.place[n] = self.ended + 1, nil, nil, nil
  while self.first <= self.last and not self.open[self.first] do self.first = self.first + 1 end
  if self.first <= self.last and self.ended - self.before[self.first] > ]] .. M.LATER .. [[ then
    self.waits:write(('%s-%d\n'):format(self.run, self.open[self.first]))
    self.before[self.first] = math.huge
  end
end
local source = streamlua.spout {
  fields = { 'key', 'root' },
  open = function(self, context)
    self.run, self.n, self.again, self.done = ('%.0f'):format(context:now()), 0, {}, 0
    self.acked, self.failed = append(context, 'acked'), append(context, 'failed')
    self.closed, self.waits = append(context, 'closed'), append(context, 'waits')
    -- Emits in their order: what was emitted, until it ends, and how many had ended then.
    self.first, self.last, self.ended, self.open, self.before, self.place = 1, 0, 0, {}, {}, {}
  end,
  next_tuple = function(self, collector)
    local n = table.remove(self.again)
    if not n then
      self.n = self.n + 1
      n = self.n
    end
    self.last = self.last + 1
    self.open[self.last], self.before[self.last], self.place[n] = n, self.ended, self.last
    local root = self.run .. '-' .. n
    collector:emit({ 'k' .. n % 64, root }, { id = root })
  end,
  ack = function(self, root)
    self.done = self.done + 1
    self.acked:write(root .. '\n')
    ended(self, tonumber(root:match('%d+$')))
  end,
  fail = function(self, root)
    local n = tonumber(root:match('%d+$'))
    self.failed:write(root .. '\n')
    table.insert(self.again, n)
    ended(self, n)
  end,
  close = function(self) self.closed:write(('%s %d %d\n'):format(self.run, self.n, self.done)) end,
}
local count = streamlua.bolt {
  fields = { 'root', 'count' },
  prepare = function(self, context) self.counts = context:state('counts') end,
  execute = function(self, tuple, collector)
    collector:emit({ tuple.root, self.counts:add(tuple.key, 1) })
  end,
}
local relay = streamlua.bolt {
  fields = { 'root' },
  execute = function(_, tuple, collector) collector:emit({ tuple.root }) end,
}
local sink = streamlua.bolt {
  prepare = function(self, context) self.file = append(context, 'seen') end,
  execute = function(self, tuple) self.file:write(tuple.root .. '\n') end,
}
local t = streamlua.topology('NAME', { containers = CONTAINERS, ackers = ACKERS, executors = 1,
  message_timeout = '1h', max_spout_pending = ]] .. PENDING .. [[ })
t:spout('source', source)
t:bolt('count', count, { parallelism = 3 }):fields('source', { 'key' })
t:bolt('relay', relay, { parallelism = 2 }):shuffle('count')
t:bolt('sink', sink, { parallelism = 2 }):shuffle('relay')
return t
]]

--- The script of a topology with this name, in so many containers; without ackers spouts track their roots.
function M.script(name, containers, ackers)
  return (SCRIPT:gsub('%u%u+', { NAME = name, CONTAINERS = containers, ACKERS = tostring(ackers) }))
end

-- How often each root stands in a file: run -> list of counts; and the number of lines. A line that its
-- writer did not end, because it was killed, does not count.
local function read_roots(path)
  local runs, lines = {}, 0
  local file = io.open(path)
  for line in file and file:lines('*L') or function() end do
    local run, n = line:match('^(%d+)%-(%d+)\n$')
    if run then
      n = tonumber(n)
      local counts = runs[run] or {}
      runs[run], counts[n], lines = counts, (counts[n] or 0) + 1, lines + 1
    end
  end
  if file then file:close() end
  return runs, lines
end

-- A spout that died takes what it had under way with it, and nothing else.
local function check_gaps(run, acked, last_done)
  local largest, count = 0, 0
  for n in pairs(acked) do
    largest, count = math.max(largest, n), count + 1
  end
  local lost = largest - count
  if last_done and count ~= last_done then
    error(('%d roots of the last source are acked, it was told of %d'):format(count, last_done), 0)
  end
  if lost > (last_done and 0 or PENDING) then
    error(('%d roots of source %s were never acked'):format(lost, run), 0)
  end
end

--- Raises when a root waited for its time-out while later ones ended.
function M.check_waits(folder)
  local roots, count = read_roots(folder .. '/waits')
  local run, numbers = next(roots)
  if run then
    error(('%d roots had no end when %d later ones had, one of them %s-%d: what was lost was told to nobody'):format(
      count, M.LATER, run, next(numbers)), 0)
  end
end

--- Checks the files of a topology whose kill waited; raises what is wrong. Returns how many roots were
--- acked, and how often one was seen.
function M.check(folder)
  local acked, acked_count = read_roots(folder .. '/acked')
  local failed = read_roots(folder .. '/failed')
  local seen, seen_count = read_roots(folder .. '/seen')
  M.check_waits(folder)
  local last, emitted, done
  for line in io.lines(folder .. '/closed') do last, emitted, done = line:match('^(%d+) (%d+) (%d+)$') end
  if emitted ~= done then error(('%s roots emitted, %s acked'):format(emitted, done), 0) end
  for run, roots in pairs(acked) do
    check_gaps(run, roots, run == last and tonumber(done))
    for n in pairs(roots) do
      if not (seen[run] and seen[run][n]) then
        error(('root %s-%d was acked and not seen'):format(run, n), 0)
      end
    end
  end
  for run, roots in pairs(seen) do
    for n, times in pairs(roots) do
      local attempts = 1 + (failed[run] and failed[run][n] or 0)
      if times > attempts then
        error(('root %s-%d was emitted %d times and seen %d times'):format(run, n, attempts, times), 0)
      end
    end
  end
  return acked_count, seen_count
end

return M
