-- The topology that scripts/chaos does harm to, and what must be true of what it wrote.
--
-- A spout emits numbered roots and writes down each one that is acked or failed, a keyed bolt counts, a
-- sink writes down each root that it sees: one line each, at once, since several processes append.

local M = {}

local PENDING = 100

M.SCRIPT = [[
local streamlua = require 'streamlua'
local function append(context, name)
  local file = assert(io.open(context.config.folder .. '/' .. name, 'a'))
  file:setvbuf('no')
  return file
end
local source = streamlua.spout {
  fields = { 'key', 'root' },
  open = function(self, context)
    self.run, self.n, self.again, self.done = ('%.0f'):format(context:now()), 0, {}, 0
    self.acked, self.failed = append(context, 'acked'), append(context, 'failed')
    self.closed = append(context, 'closed')
  end,
  next_tuple = function(self, collector)
    local n = table.remove(self.again)
    if not n then
      self.n = self.n + 1
      n = self.n
    end
    local root = self.run .. '-' .. n
    collector:emit({ 'k' .. n % 64, root }, { id = root })
  end,
  ack = function(self, root)
    self.done = self.done + 1
    self.acked:write(root .. '\n')
  end,
  fail = function(self, root)
    self.failed:write(root .. '\n')
    table.insert(self.again, tonumber(root:match('%d+$')))
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
local sink = streamlua.bolt {
  prepare = function(self, context) self.file = append(context, 'seen') end,
  execute = function(self, tuple) self.file:write(tuple.root .. '\n') end,
}
local t = streamlua.topology('chaos', { containers = 3, executors = 1, message_timeout = '3s',
  max_spout_pending = ]] .. PENDING .. [[ })
t:spout('source', source)
t:bolt('count', count, { parallelism = 3 }):fields('source', { 'key' })
t:bolt('sink', sink, { parallelism = 2 }):shuffle('count')
return t
]]

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

--- Checks the files of a topology whose kill waited; raises what is wrong. Returns how many roots were
--- acked, and how often one was seen.
function M.check(folder)
  local acked, acked_count = read_roots(folder .. '/acked')
  local failed = read_roots(folder .. '/failed')
  local seen, seen_count = read_roots(folder .. '/seen')
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
