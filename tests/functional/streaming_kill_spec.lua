-- Stream programs that are killed (kill -9) at every step of a batch and started again: state counts
-- every record once, every batch gives its output at least once and always the same. The rows of
-- recovery (T107, T108, T120), with a kill in place of a polite stop.
local process = require 'support.process'

-- Kills itself at the k-th call of step(name) when KILL_AT says "name:k"; the counts are those of one
-- Lua state. A program that is to kill itself does not stop before: on a slow machine the batches of its
-- down-time are many, and run first.
local PRELUDE = [[
  local ffi = require 'ffi'
  ffi.cdef 'int kill(int pid, int signal); int getpid(void);'
  local streaming = require 'streamlua.streaming'
  local folder = debug.getinfo(1, 'S').source:match('^@(.*/)')
  local kill_at, kill_count = (os.getenv('KILL_AT') or ''):match('^(.-):(%d+)$')
  local calls = 0
  local function step(name)
    if name ~= kill_at then return end
    calls = calls + 1
    if calls == tonumber(kill_count) then ffi.C.kill(ffi.C.getpid(), 9) end
  end
  local function sum(values, old)
    local total = old or 0
    for _, value in ipairs(values) do total = total + value end
    return total
  end
  local function write(...)
    local file = assert(io.open(folder .. 'out', 'a'))
    file:write(table.concat({ ... }, ' ') .. '\n')
    file:close()
  end
  local function listen(ssc)
    ssc:add_listener {
      batch_submitted = function() step('submitted') end,
      batch_started = function() step('started') end,
      output_operation_started = function() step('operation_started') end,
      output_operation_completed = function() step('operation_completed') end,
      batch_completed = function() step('completed') end,
    }
  end
]]

local INPUTS = PRELUDE .. [[
  local ssc = streaming.context { name = 'kill', batch = '50ms', checkpoint = folder .. 'state' }
  listen(ssc)
  local pairs_of_batch = ssc:input_stream(function(_, index)
    step('input')
    return { { 'a', 1 }, { 'n', index } }
  end)
  pairs_of_batch:map(function(pair)
      step('record')
      return pair
    end)
    :update_state_by_key(function(values, old)
      step('update')
      return sum(values, old)
    end):checkpoint('100ms'):name('sums')
    :foreach_rdd(function(rdd, time)
      local sums = rdd:collect_as_map()
      step('before_output')
      write('state', time, sums.a, sums.n)
      step('after_output')
    end)
  local batches = 0
  pairs_of_batch:reduce_by_key_and_window(function(a, b) return a + b end,
      function(a, b) return a - b end, '150ms', '50ms'):checkpoint('100ms'):name('window')
    :foreach_rdd(function(rdd, time)
      write('window', time, rdd:collect_as_map().a)
      step('after_window')
      batches = batches + 1
      if batches == 4 and not kill_at then ssc:stop { graceful = true } end
    end)
  return ssc]]

-- A receiver whose records are all different, also those of different processes.
local RECEIVER = PRELUDE .. [[
  local ssc = streaming.context { name = 'kill', batch = '50ms', block_interval = '10ms',
    checkpoint = folder .. 'state', write_ahead_log = true, max_rate = 2000 }
  listen(ssc)
  local process = ffi.C.getpid()
  local batches, stopped = 0, false
  ssc:receiver_stream {
      on_start = function(self) self.n = 0 end,
      poll = function(self, r)
        self.n = self.n + 1
        r:store({ process .. ':' .. self.n, 1 })
        step('stored')
        return true
      end,
    }
    :update_state_by_key(sum):checkpoint('100ms'):name('seen')
    :foreach_rdd(function(rdd, time)
      local keys, total = 0, 0
      for _, pair in ipairs(rdd:collect()) do
        keys, total = keys + 1, total + pair[2]
      end
      step('before_output')
      write('seen', time, keys, total)
      step('after_output')
      batches = batches + 1
      if batches >= 6 and keys > 20 and not kill_at and not stopped then
        stopped = true
        ssc:stop { graceful = true }
      end
    end)
  return ssc]]

-- A receiver of a source that counts and goes on behind the number it was told to be stored.
local RELIABLE = PRELUDE .. [[
  local ssc = streaming.context { name = 'kill', batch = '50ms', block_interval = '10ms',
    checkpoint = folder .. 'state', write_ahead_log = true, max_rate = 500 }
  listen(ssc)
  local batches, stopped = 0, false
  ssc:receiver_stream {
      on_start = function(self)
        local file = io.open(folder .. 'told')
        self.n = file and file:read('*n') or 0
        if file then file:close() end
      end,
      poll = function(self, r)
        r:store_block { { self.n + 1, 1 }, { self.n + 2, 1 } }
        step('stored')
        self.n = self.n + 2
        local file = assert(io.open(folder .. 'told.new', 'w'))
        file:write(self.n)
        file:close()
        os.rename(folder .. 'told.new', folder .. 'told')
        step('told')
        return true
      end,
    }
    :update_state_by_key(sum):checkpoint('100ms'):name('seen')
    :foreach_rdd(function(rdd, time)
      local keys, most = 0, 0
      for _, pair in ipairs(rdd:collect()) do
        keys, most = keys + 1, math.max(most, pair[1])
      end
      write('seen', time, keys, most)
      step('after_output')
      batches = batches + 1
      if batches >= 6 and keys > 20 and not kill_at and not stopped then
        stopped = true
        ssc:stop { graceful = true }
      end
    end)
  return ssc]]

-- Files that are numbers, in virtual time: step i writes the file i and goes on by a batch. Runs the steps
-- of its arguments, from a clock time on and a first advance; kills itself when it reads the number KILL_AT.
local FILES = [[
  local ffi = require 'ffi'
  local lfs = require 'lfs'
  ffi.cdef 'int kill(int pid, int signal); int getpid(void);'
  local streaming = require 'streamlua.streaming'
  local folder, start, first, last = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
  local kill_at = os.getenv('KILL_AT')
  local clock = streaming.manual_clock(start)
  local function put(i)
    local path = ('%s/in/%d'):format(folder, i)
    local file = assert(io.open(path, 'w'))
    file:write(i, '\n')
    file:close()
    local modified = clock:now() / 1000
    assert(lfs.touch(path, modified, modified))
  end
  local ssc = streaming.get_or_create(folder .. '/state', function()
    local made = streaming.context { name = 'files', batch = '2s', checkpoint = folder .. '/state', clock = clock }
    made:text_file_stream(folder .. '/in')
      :map(function(line)
        if line == kill_at then ffi.C.kill(ffi.C.getpid(), 9) end
        return tonumber(line)
      end)
      :reduce_by_window(function(a, b) return a + b end, '60s', '2s')
      :foreach_rdd(function(rdd, time)
        local file = assert(io.open(folder .. '/out', 'a'))
        file:write(('%d:%d '):format(time / 1000, rdd:collect()[1]))
        file:close()
      end)
    return made
  end)
  ssc:start()
  ssc:advance(tonumber(arg[5]) or 0)
  for i = first, last do
    put(i)
    ssc:advance(2)
  end
  ssc:stop()]]

local function run(path, kill_at, executors)
  return process.run({ 'run', '-q', '--executors', executors or '1', path },
    { env = { KILL_AT = kill_at or '' } })
end

-- Calls fn(kind, time, numbers) for each line of the output; fails when a time came with two results
-- or a batch is missing between others. Returns how often batches gave output again.
local function check_lines(text, batch_ms, expected)
  local seen, times, again = {}, {}, 0
  local first
  for kind, time, rest in text:gmatch('(%a+) (%d+) ([^\n]+)\n') do
    time = tonumber(time)
    first = math.min(first or time, time)
    local key = kind .. time
    if seen[key] then
      assert.equal(seen[key], rest, key)
      again = again + 1
    else
      seen[key] = rest
      times[kind] = times[kind] or {}
      table.insert(times[kind], time)
    end
  end
  for kind, list in pairs(times) do
    table.sort(list)
    for i, time in ipairs(list) do
      assert.equal(first + (i - 1) * batch_ms, time, kind .. ': a batch is missing')
      assert.equal(expected(kind, i, seen[kind .. time]), seen[kind .. time], kind .. ' ' .. i)
    end
  end
  return again
end

describe('a stream program that is killed', function()
  it('T107, T108, T120: gives what it would have given, at every step of a batch', function()
    process.with_folder(function(folder)
      local path = folder .. '/program.lua'
      process.write_file(path, INPUTS)
      assert.equal(0, run(path).code)
      for _, name in ipairs { 'input', 'submitted', 'started', 'operation_started', 'record', 'update',
        'before_output', 'after_output', 'operation_completed', 'after_window', 'completed' } do
        for count = 1, 3, 2 do
          assert.equal(137, run(path, name .. ':' .. count).code, name .. ':' .. count)
        end
      end
      local last = run(path)
      assert.equal(0, last.code, last.stderr)
      local again = check_lines(process.read_file(folder .. '/out'), 50, function(kind, i)
        if kind == 'window' then return tostring(math.min(i, 3)) end
        return ('%d %d'):format(i, i * (i + 1) / 2)
      end)
      assert.is_true(again > 0)
    end)
  end)

  it('T123, T152: has the blocks of a receiver once, from the log', function()
    process.with_folder(function(folder)
      local path = folder .. '/program.lua'
      process.write_file(path, RECEIVER)
      assert.equal(0, run(path, nil, '2').code)
      for _, name in ipairs { 'submitted:2', 'started:3', 'before_output:1', 'after_output:3', 'stored:12',
        'completed:2', 'stored:2', 'before_output:4', 'completed:5' } do
        assert.equal(137, run(path, name, '2').code, name)
      end
      local last = run(path, nil, '2')
      assert.equal(0, last.code, last.stderr)
      local before = 0
      check_lines(process.read_file(folder .. '/out'), 50, function(_, _, result)
        local keys, total = result:match('^(%d+) (%d+)$')
        assert.equal(keys, total, 'a record was counted twice')
        assert.is_true(tonumber(keys) >= before, 'records are gone')
        before = tonumber(keys)
        return result
      end)
      assert.is_true(before > 20)
    end)
  end)

  it('SPARK-21525: has what a source was told to be stored', function()
    process.with_folder(function(folder)
      local path = folder .. '/program.lua'
      process.write_file(path, RELIABLE)
      assert.equal(0, run(path, nil, '2').code)
      for _, name in ipairs { 'stored:1', 'told:2', 'submitted:1', 'stored:5', 'completed:1', 'told:4' } do
        assert.equal(137, run(path, name, '2').code, name)
      end
      local last = run(path, nil, '2')
      assert.equal(0, last.code, last.stderr)
      local final
      check_lines(process.read_file(folder .. '/out'), 50, function(_, _, result)
        final = result
        return result
      end)
      local keys, most = final:match('^(%d+) (%d+)$')
      assert.equal(most, keys, 'numbers are missing')
      assert.equal(process.read_file(folder .. '/told'), most)
      assert.is_true(tonumber(most) > 20)
    end)
  end)

  it('T110: has the files of pending batches and of its down-time', function()
    process.with_folder(function(folder)
      local path = folder .. '/program.lua'
      process.write_file(path, FILES)
      assert(require('lfs').mkdir(folder .. '/in'))
      local function exec(start, first, last, advance, kill_at)
        return process.run({ 'exec', path, folder, start, first, last, advance }, { env = { KILL_AT = kill_at } })
      end
      assert.equal(137, exec('0', '1', '3', '1', '3').code)
      assert.equal('2:1 4:3 ', process.read_file(folder .. '/out'))
      -- Files 4, 5 and 6 come while nothing runs.
      for i = 4, 6 do
        process.write_file(('%s/in/%d'):format(folder, i), i .. '\n')
        assert(require('lfs').touch(('%s/in/%d'):format(folder, i), 2 * i + 1, 2 * i + 1))
      end
      local result = exec('15000', '7', '9', '0')
      assert.equal(0, result.code, result.stderr)
      local out = process.read_file(folder .. '/out')
      assert.matches('^2:1 4:3 [24:13 ]*6:6 8:6 10:10 12:15 14:21 16:28 18:36 20:45 $', out)
    end)
  end)
end)
