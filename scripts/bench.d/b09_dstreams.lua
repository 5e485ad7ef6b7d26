-- B9: DStreams on two executors: an incremental window, batches without records, both kinds of state, and
-- recovery. The limit is one thread that adds up the same pairs in a plain table.

local json = require 'streamlua.json'

local folder = debug.getinfo(1, 'S').source:match('^@(.*)/[^/]*$') or '.'
local binary = folder .. '/../../build/streamlua'

local function temporary()
  local name = os.tmpname()
  os.remove(name)
  return name
end

local function call(text, ...)
  local pipe = assert(io.popen(text:format(...) .. ' 2>/dev/null', 'r'))
  local out = pipe:read('*a')
  pipe:close()
  return out
end

-- The batches of a program that runs so long, and of those the ones that ran jobs.
local function batches_of(name, seconds, more)
  local work = temporary()
  os.execute(("mkdir -p '%s'"):format(work))
  call("'%s' run -q '%s/streams/%s.lua' --executors 2 --ttl %gs --summary '%s/summary' --set checkpoint='%s/state' %s",
    binary, folder, name, seconds, work, work, more or '')
  local file = io.open(work .. '/summary', 'r')
  local text = file and file:read('*a')
  if file then file:close() end
  os.execute(("rm -rf '%s'"):format(work))
  if not text then error(name .. ' wrote no summary', 0) end
  return json.decode(text).batches
end

-- The least and the greatest of a field over batches, and its mean.
local function spread(batches, field)
  local least, most, sum = math.huge, 0, 0
  for _, batch in ipairs(batches) do
    local value = batch[field]
    least, most, sum = math.min(least, value), math.max(most, value), sum + value
  end
  return least, most, sum / math.max(1, #batches)
end

local function where(batches, keeps)
  local out = {}
  for i, batch in ipairs(batches) do
    if keeps(batch, i) then out[#out + 1] = batch end
  end
  return out
end

-- Records/s of a thread that adds up pairs in a table.
local function plain_rate(bench)
  local list, n = {}, 200000
  for i = 1, n do list[i] = { 'key' .. (i * 7919) % 1000, 1 } end
  return bench:best(5, function()
    local began, sums, total = bench:now(), {}, 0
    for i = 1, n do
      local pair = list[i]
      local sum = (sums[pair[1]] or 0) + pair[2]
      sums[pair[1]] = sum
      total = total + sum
    end
    assert(total > 0)
    return n / (bench:now() - began)
  end)
end

local function window(bench, limit)
  local rate = 2e6
  local ran = batches_of('window', bench.quick and 2 or 8, '--set rate=2000000')
  -- The first slides compile.
  local late = where(ran, function(_, i) return i > 1 end)
  local least, _, mean = spread(late, 'processing_delay_ms')
  bench:report { variant = 'window', unit = 'records/s', value = rate / (mean / 1000), limit = limit,
    target = 2e6, least = rate / (least / 1000) }
  local _, delay = spread(late, 'scheduling_delay_ms')
  bench:report { variant = 'window-delay', name = 'longest scheduling delay at 2 M/s', unit = 'ms',
    value = delay, target = 100, better = 'less' }
end

local function empty(bench)
  local ran = where(batches_of('empty', bench.quick and 1 or 4), function(_, i) return i > 50 end)
  local _, _, mean = spread(ran, 'total_delay_ms')
  bench:report { variant = 'empty', name = 'batch without records', unit = 'ms', value = mean, target = 1,
    better = 'less' }
end

local function update(bench, limit)
  local ran = where(batches_of('update', bench.quick and 2 or 5), function(_, i) return i > 3 end)
  local least, _, mean = spread(ran, 'processing_delay_ms')
  bench:report { variant = 'update', name = 'update_state_by_key, 100 k keys', unit = 'updates/s',
    value = 1e5 / (least / 1000), least = 1e5 / (mean / 1000), limit = limit, target = 1e6 }
end

local function touch(bench)
  local keys = bench.quick and 2e5 or 1e7
  local ran = batches_of('touch', bench.quick and 2 or 40, ('--set keys=%d'):format(keys))
  for _, share in ipairs { 100, 1000 } do
    local some = where(ran, function(batch) return batch.records == keys / share end)
    if #some > 0 then
      local least = spread(some, 'processing_delay_ms')
      bench:report { variant = 'touch-1/' .. share, name = ('map_with_state, %g M keys'):format(keys / 1e6),
        unit = 'keys/s', value = keys / share / (least / 1000) }
    end
  end
end

local function recover(bench)
  local work = temporary()
  local out = call("'%s' exec '%s/streams/recover.lua' '%s' 1000000", binary, folder, work)
  os.execute(("rm -rf '%s'"):format(work))
  local seconds = tonumber(out:match('recover%s+(%S+)'))
  if not seconds then error('recovery failed: ' .. out, 0) end
  bench:report { variant = 'recover', name = 'state of 1 M keys is there again', unit = 's', value = seconds,
    target = 3, better = 'less' }
end

return {
  id = 'B9',
  name = 'DStreams',
  run = function(bench)
    local limit = plain_rate(bench)
    window(bench, limit)
    empty(bench)
    update(bench, limit)
    touch(bench)
    recover(bench)
  end,
}
