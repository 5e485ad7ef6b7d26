-- Stream programs in the real binary: threads, sockets, signals, kill -9, documents.
local cjson = require 'cjson'
local net = require 'support.net'
local process = require 'support.process'
local psocket = require 'posix.sys.socket'
local unistd = require 'posix.unistd'

local function with_script(text, fn)
  process.with_folder(function(folder)
    local path = folder .. '/program.lua'
    process.write_file(path, text)
    fn(path, folder)
  end)
end

describe('streamlua run on a stream program', function()
  it('counts words of a connection, and goes on with the next sender', function()
    local fd, port = net.listen()
    local run = process.start({ 'run', 'scripts/streams/network_wordcount.lua', '--set', 'port=' .. port,
      '--set', 'batch=200ms', '--set', 'receiver_restart_delay=100ms' })
    local client = assert(psocket.accept(fd))
    psocket.send(client, 'a b a\n')
    run:expect('stdout', '%(a,2%)')
    unistd.close(client)
    client = assert(psocket.accept(fd))
    psocket.send(client, 'c c c\n')
    run:expect('stdout', '%(c,3%)')
    run:signal('INT')
    local result = run:wait()
    assert.equal(130, result.code)
    assert.matches('%(b,1%)', result.stdout)
    assert.matches('has ended the connection', result.stderr)
    assert.matches('batch %d+: %d+ records, scheduling delay', result.stderr)
    unistd.close(client)
    unistd.close(fd)
  end)

  it('keeps state exactly once over kill -9', function()
    with_script([[
      local streaming = require 'streamlua.streaming'
      local folder = debug.getinfo(1, 'S').source:match('^@(.*/)')
      local ssc = streaming.context { name = 'kill', batch = '100ms', checkpoint = folder .. 'state',
        catch_up = 1000 }
      ssc:input_stream(function(_, index) return { { 'a', 1 }, { 'n', index } } end)
        :update_state_by_key(function(values, old)
          local sum = old or 0
          for _, value in ipairs(values) do sum = sum + value end
          return sum
        end):checkpoint('200ms'):name('sums')
        :foreach_rdd(function(rdd, time)
          local sums = rdd:collect_as_map()
          print(('%d %d %d'):format(time, sums.a, sums.n))
        end)
      return ssc]], function(path)
      local first, last, count = nil, nil, 0
      for round = 1, 4 do
        local run = process.start({ 'run', '-q', path })
        -- Not always the same number of batches.
        for _ = 1, 2 + round do run:expect('stdout', '%d+ %d+ %d+\n') end
        run:signal(round < 4 and 'KILL' or 'TERM')
        local result = run:wait()
        for time, a, n in result.stdout:gmatch('(%d+) (%d+) (%d+)\n') do
          first = first or tonumber(time)
          local index = (tonumber(time) - first) / 100 + 1
          assert.equal(index, tonumber(a))
          assert.equal(index * (index + 1) / 2, tonumber(n))
          assert.is_true(last == nil or tonumber(time) <= last + 100, 'a batch is missing')
          last, count = tonumber(time), count + 1
        end
      end
      assert.is_true(count >= 18)
    end)
  end)

  it('writes the summary, stops itself, and tells of batches that failed', function()
    with_script([[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'sum', batch = '50ms' }
      local n = 0
      ssc:queue_stream({ { 1, 2 }, { 3 }, { 4 } }):map(function(x)
        if x == 3 then error('no threes') end
        return x
      end):foreach_rdd(function(rdd)
        n = n + 1
        if n == 3 then ssc:stop() end
        rdd:collect()
      end)
      return ssc]], function(path, folder)
      local result = process.run({ 'run', path, '--summary', folder .. '/s.json', '--executors', '2' })
      assert.equal(0, result.code)
      assert.matches('foreach_rdd%-3 %(.*program.lua:7%): .*program.lua:5: no threes', result.stderr)
      local summary = cjson.decode(process.read_file(folder .. '/s.json'))
      assert.equal('sum', summary.context)
      assert.is_true(#summary.batches >= 3)
      local one, two = summary.batches[1], summary.batches[2]
      assert.equal(2, one.records)
      assert.equal(2, one.inputs['0'])
      assert.equal(50, two.time - one.time)
      assert.is_nil(one.output_operations[1].failure_reason)
      assert.matches('no threes', two.output_operations[1].failure_reason)
      assert.matches('program.lua:7', two.output_operations[1].call_site)
      assert.is_true(summary.records >= 4)
      result = process.run({ 'run', path, '--summary', '/dev/full', '--executors', '2' })
      assert.equal(1, result.code)
      assert.matches("summary '/dev/full': No space left on device", result.stderr, 1, true)
    end)
  end)

  it('keeps no block that the log did not take', function()
    with_script([[
      local streaming = require 'streamlua.streaming'
      local folder = debug.getinfo(1, 'S').source:match('^@(.*)/')
      local ssc = streaming.context { name = 'refused', batch = '50ms', block_interval = '10ms',
        checkpoint = folder, write_ahead_log = true, receiver_restart_delay = '1h' }
      ssc:receiver_stream({ poll = function(_, r) r:store('x') return true end }):print()
      ssc:add_listener({ receiver_stopped = function()
        local kept = 0
        for _, own in pairs(ssc.receivers.blocks) do
          for _ in pairs(own) do kept = kept + 1 end
        end
        io.stderr:write(('it has stopped, blocks %d\n'):format(kept))
      end })
      return ssc]], function(path, folder)
      -- In the place of the log's folder.
      process.write_file(folder .. '/receivedData', '')
      local run = process.start({ 'run', path, '--executors', '2' })
      run:expect('stderr', 'it has stopped, blocks 0\n')
      run:signal('TERM')
      local result = run:wait()
      assert.matches('receiver receiver_stream%-%d: a block could not be stored: .*receivedData', result.stderr)
    end)
  end)

  it('a long job delays no tick and is finished after SIGTERM', function()
    with_script([[
      local streaming = require 'streamlua.streaming'
      local abi = require 'streamlua.abi'
      local path = debug.getinfo(1, 'S').source:match('^@(.*/)') .. 'ticks'
      local ssc = streaming.context { name = 'long', batch = '100ms' }
      local function ticks()
        local file = assert(io.open(path))
        local count = file:seek('end')
        file:close()
        return count
      end
      local jobs = 0
      ssc:input_stream(function()
        local file = assert(io.open(path, 'a'))
        file:write('.')
        file:close()
        return { 1 }
      end):foreach_rdd(function(rdd, time)
        print('begin')
        jobs = jobs + 1
        -- The first one ends when others have been generated beside it, the rest after a while.
        local enough = jobs == 1 and ticks() + 2 or 0
        local until_ms = abi.C.sl_abi_monotonic_ms() + 250
        while ticks() < enough or abi.C.sl_abi_monotonic_ms() < until_ms do end
        print('end')
      end)
      return ssc]], function(path)
      local run = process.start({ 'run', '-q', path, '--executors', '1', '--set', 'graceful_timeout=200ms' })
      run:expect('stdout', 'end')
      run:expect('stdout', 'begin')
      run:signal('TERM')
      local result = run:wait()
      assert.equal(143, result.code)
      local begun, ended = select(2, result.stdout:gsub('begin', '')), select(2, result.stdout:gsub('end', ''))
      assert.equal(begun, ended)
    end)
  end)

  it('goes on without a receiver that never returns', function()
    with_script([[
      local streaming = require 'streamlua.streaming'
      local libc = require 'streamlua.connectors.libc'
      require 'streamlua.streaming.receivers'.STOP_MS = 200
      local ssc = streaming.context { name = 'stuck', batch = '100ms' }
      local stuck = ssc:receiver_stream({ poll = function(_, r)
        r:store_block { 1 }
        libc.C.poll(nil, 0, -1)
      end }):name('stuck')
      stuck:count():print()
      return ssc]], function(path)
      local run = process.start({ 'run', path })
      run:expect('stdout', '\n1\n')
      run:expect('stdout', '\n0\n')
      run:signal('INT')
      run:expect('stderr', 'receiver stuck does not end: its code does not return')
      run:signal('INT')
      local result = run:wait()
      assert.equal(130, result.code)
      assert.matches('a thread does not come back from user code', result.stderr)
    end)
  end)

  it('mistakes are one line and exit 7', function()
    with_script([[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'none', batch = '1s' }
      ssc:queue_stream({})
      return ssc]], function(path)
      local result = process.run({ 'run', path })
      assert.equal(7, result.code)
      assert.matches('error: .*program.lua:2: the context has no output operation', result.stderr)
      result = process.run({ 'check', path })
      assert.equal(7, result.code)
      assert.matches('program.lua:2: error: the context has no output operation', result.stdout)
    end)
    with_script([[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'none', batch = '1s' }
      ssc:queue_stream({}):print()
      ssc:start()
      return ssc]], function(path)
      local result = process.run({ 'run', path })
      assert.equal(7, result.code)
      assert.matches('program.lua:4: start: streamlua run starts the context itself', result.stderr)
    end)
    with_script([[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'none', batch = '1s' }
      ssc:receiver_stream({ poll = function() return false end }):print()
      return ssc]], function(path)
      local result = process.run({ 'run', path, '--executors', '1' })
      assert.equal(7, result.code)
      assert.matches('slot', result.stderr)
    end)
    with_script([[
      local streaming = require 'streamlua.streaming'
      local ssc = streaming.context { name = 'none', batch = '1s' }
      ssc:queue_stream({}):window('1500ms'):print()
      return ssc]], function(path)
      local result = process.run({ 'run', path })
      assert.equal(7, result.code)
      assert.matches('program.lua:3', result.stderr)
      assert.matches('no multiple', result.stderr)
    end)
  end)
end)
