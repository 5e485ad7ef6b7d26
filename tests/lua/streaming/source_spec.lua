local ffi = require 'ffi'
local streaming = require 'streamlua.streaming'
local helper = require 'lua.streaming.helper'
local lfs = require 'lfs'
local net = require 'support.net'
local psocket = require 'posix.sys.socket'
local unistd = require 'posix.unistd'

local function context(options)
  local all = { name = 's', batch = '1s', clock = streaming.manual_clock(0) }
  for name, value in pairs(options or {}) do all[name] = value end
  local ssc = streaming.context(all)
  ssc.warnings, ssc.notes = {}, {}
  ssc.warner = function(text) table.insert(ssc.warnings, text) end
  ssc.noter = function(text) table.insert(ssc.notes, text) end
  return ssc
end

-- Collects non-empty batches as "time: records".
local function collect(stream)
  local out = {}
  stream:foreach_rdd(function(rdd, time)
    local records = rdd:collect()
    for i, record in ipairs(records) do records[i] = tostring(record) end
    if #records > 0 then out[#out + 1] = ('%d: %s'):format(time, table.concat(records, ' ')) end
  end)
  return out
end

describe('queues', function()
  after_each(helper.clean)

  it('T77: one list a batch', function()
    local ssc = context()
    local queue = {}
    local out = collect(ssc:queue_stream(queue))
    ssc:start()
    for i = 1, 6 do
      table.insert(queue, { 2 * i - 1 })
      table.insert(queue, { 2 * i })
      ssc:advance('1s')
      if i == 3 then for k = #queue, 3, -1 do queue[k] = nil end end
    end
    ssc:stop()
    assert.same({ '1000: 1', '2000: 2', '3000: 3', '4000: 4', '5000: 5', '6000: 7' }, out)
  end)

  it('all there is, and a default when there is nothing', function()
    local ssc = context()
    local queue = { { 1 }, { 2, 3 } }
    local out = collect(ssc:queue_stream(queue, { one_at_a_time = false, default = { 9 } }))
    ssc:start()
    ssc:advance('2s')
    ssc:stop()
    assert.same({ '1000: 1 2 3', '2000: 9' }, out)
  end)
end)

describe('input functions', function()
  after_each(helper.clean)

  it('get the time and the number of the batch; lists are cut into nearly equal partitions', function()
    local ssc = context { clock = streaming.manual_clock(5300) }
    local calls, parts = {}, nil
    ssc:input_stream(function(time, index)
      calls[#calls + 1] = { time, index }
      return index == 2 and nil or { 1, 2, 3, 4, 5 }
    end, { partitions = 3 }):foreach_rdd(function(rdd) parts = rdd:partitions() end)
    ssc:start()
    ssc:advance('3s')
    ssc:stop()
    assert.same({ { 6000, 1 }, { 7000, 2 }, { 8000, 3 } }, calls)
    assert.same({ { 1 }, { 2, 3 }, { 4, 5 } }, parts)
    assert.has_error(function() context():input_stream(5) end)
    assert.has_error(function() context():input_stream(print, { partitions = 0 }) end)
  end)

  it('must return a list or nil', function()
    local ssc = context()
    collect(ssc:input_stream(function() return 5 end))
    ssc:start()
    ssc:advance('1s')
    ssc:stop()
    assert.matches('source_spec.lua:%d+: input_stream: the function must return a list or nil, got number',
      ssc.failure)
  end)
end)

describe('files', function()
  after_each(helper.clean)

  ffi.cdef 'struct spec_timeval { long sec, usec; }; int utimes(const char *, const struct spec_timeval *);'

  local function write(path, text, ms)
    local file = assert(io.open(path, 'wb'))
    file:write(text)
    file:close()
    local times = ffi.new('struct spec_timeval[2]')
    times[0].sec, times[0].usec = math.floor(ms / 1000), ms % 1000 * 1000
    times[1] = times[0]
    assert.equal(0, ffi.C.utimes(path, times))
  end

  -- T83 and its kin: file 0 is old, then one file every 2 s.
  local function run(pattern, options, path_of)
    local folder = helper.folder()
    local clock = streaming.manual_clock(12000)
    write(folder .. '/old', '0\n', 10000)
    local ssc = context { batch = '2s', clock = clock }
    local out = collect(ssc:text_file_stream(folder .. pattern, options))
    clock:set(13000)
    ssc:start()
    for i = 1, 5 do
      write(path_of(folder, i), i .. '\n', clock:now())
      ssc:advance('2s')
    end
    ssc:stop()
    return out, ssc
  end

  local function plain(folder, i) return folder .. '/f' .. i end

  it('T83: new files, each in the batch after it was written', function()
    local out, ssc = run('', nil, plain)
    assert.same({ '14000: 1', '16000: 2', '18000: 3', '20000: 4', '22000: 5' }, out)
    local text = table.concat(ssc.notes, '\n')
    assert.matches('/old\' is not taken: it was modified at 10000 ms, not after 12000 ms', text)
    assert.equal(1, #ssc.notes)
  end)

  it('T84: also old ones with new_files_only = false', function()
    assert.same({ '14000: 0 1', '16000: 2', '18000: 3', '20000: 4', '22000: 5' },
      (run('', { new_files_only = false }, plain)))
  end)

  it('T85: folders of a glob, not the files beside them', function()
    local out = run('/*/', nil, function(folder, i)
      lfs.mkdir(folder .. '/d' .. i)
      write(folder .. '/f' .. i, 'no\n', 13000 + 2000 * (i - 1))
      return folder .. '/d' .. i .. '/f'
    end)
    assert.same({ '14000: 1', '16000: 2', '18000: 3', '20000: 4', '22000: 5' }, out)
  end)

  it('T87: the threshold is left out, the batch time is not, a later time waits', function()
    local folder = helper.folder()
    local ssc = context { clock = streaming.manual_clock(5000) }
    local out = collect(ssc:text_file_stream(folder))
    write(folder .. '/a', 'threshold\n', 5000)
    write(folder .. '/b', 'batch\n', 6000)
    write(folder .. '/c', 'later\n', 6500)
    write(folder .. '/.d', 'hidden\n', 5500)
    ssc:start()
    ssc:advance('2s')
    ssc:stop()
    assert.same({ '6000: batch', '7000: later' }, out)
    local text = table.concat(ssc.notes, '\n')
    assert.matches('c\' is not taken: it was modified at 6500 ms, after the batch', text)
    assert.matches('%.d\' is not taken: the filter refuses it', text)
  end)

  it('a filter of the program, a folder that is missing, and data that is appended later', function()
    local folder = helper.folder()
    local clock = streaming.manual_clock(0)
    local ssc = context { clock = clock }
    local out = collect(ssc:text_file_stream(folder .. '/in', { filter = function(path)
      return path:match('%.log$') ~= nil
    end }))
    ssc:start()
    ssc:advance('1s')
    assert.matches("'.*/in' matches no folder", ssc.warnings[1])
    lfs.mkdir(folder .. '/in')
    write(folder .. '/in/x.log', 'one\ntwo', 1500)
    write(folder .. '/in/x.tmp', 'no\n', 1500)
    ssc:advance('1s')
    write(folder .. '/in/x.log', 'one\ntwo\nthree\n', 2500)
    ssc:advance('2s')
    ssc:stop()
    assert.same({ '2000: one two' }, out)
    assert.matches('x.log\' is not taken: it was taken at 2000 ms with 7 bytes; what came later is ignored',
      table.concat(ssc.notes, '\n'))
    assert.equal(2, ssc:progress().processed_records)
  end)

  it('T89: binary records; a length that does not fit fails the batch', function()
    local folder = helper.folder()
    local ssc = context()
    local out = collect(ssc:binary_records_stream(folder, 2))
    write(folder .. '/a', 'abcd', 500)
    write(folder .. '/b', 'efg', 1500)
    ssc:start()
    ssc:advance('1s')
    assert.is_nil(ssc.failure)
    ssc:advance('1s')
    ssc:stop()
    assert.same({ '1000: ab cd' }, out)
    assert.matches('3 bytes are no multiple of the record length 2', ssc.failure)
  end)

  it('the lists of files are texts of checkpoints', function()
    local source = require 'streamlua.streaming.file_source'
    local lists = { { path = 'a b\nc\\d', size = 5, modified_ms = 7 }, { path = '/x', size = 0, modified_ms = 8 } }
    local back = source.decode(source.encode(lists), 9)
    assert.same({ { path = 'a b\nc\\d', size = 5, modified_ms = 7, time = 9 },
      { path = '/x', size = 0, modified_ms = 8, time = 9 } }, back)
  end)
end)

-- A server of this process: accepts and writes when told.
local function server()
  local fd, port = net.listen()
  return { fd = fd, port = port,
    accept = function(self) self.client = assert(psocket.accept(self.fd)) end,
    send = function(self, text) assert(psocket.send(self.client, text)) end,
    hang_up = function(self) unistd.close(self.client) end,
    close = function(self) unistd.close(self.fd) end }
end

describe('receivers', function()
  after_each(helper.clean)

  it('T80: lines of a connection, one a tick, in order', function()
    local tcp = server()
    local ssc = context()
    local out = collect(ssc:socket_text_stream('127.0.0.1', tcp.port))
    ssc:start()
    tcp:accept()
    for i = 1, 5 do
      tcp:send(i .. '\n')
      ssc:advance('1s')
    end
    ssc:stop { graceful = true }
    local seen = {}
    for _, text in ipairs(out) do
      for word in text:match(': (.*)'):gmatch('%S+') do seen[#seen + 1] = word end
    end
    assert.equal('1 2 3 4 5', table.concat(seen, ' '))
    local progress = ssc:progress()
    assert.equal(5, progress.received_records)
    assert.equal(5, progress.processed_records)
    tcp:close()
  end)

  it('T81: a batch without data is complete and empty', function()
    local tcp = server()
    local ssc = context()
    local times = {}
    ssc:socket_text_stream('127.0.0.1', tcp.port):foreach_rdd(function(rdd, time)
      times[#times + 1] = time
      assert.is_true(rdd:is_empty())
    end)
    ssc:start()
    ssc:advance('2s')
    ssc:stop()
    assert.same({ 1000, 2000 }, times)
    tcp:close()
  end)

  it('a connection that ends is made again after the delay', function()
    local tcp = server()
    local ssc = context()
    local out = collect(ssc:socket_text_stream('127.0.0.1', tcp.port))
    ssc:start()
    tcp:accept()
    tcp:send('first\nhalf')
    ssc:advance('1s')
    tcp:hang_up()
    ssc:advance('1s')
    ssc:advance('2500ms')
    tcp:accept()
    tcp:send('second\n')
    ssc:advance('2s')
    ssc:stop()
    local text = table.concat(out, ' | ')
    assert.matches('first', text)
    assert.matches('half', text)
    assert.matches('second', text)
    tcp:close()
  end)

  it('a line of a connection that is too long is dropped and told', function()
    local tcp = server()
    local ssc = context()
    local problems = {}
    ssc:add_listener { receiver_error = function(event) problems[#problems + 1] = event.last_error end }
    local out = collect(ssc:socket_text_stream('127.0.0.1', tcp.port))
    ssc:start()
    tcp:accept()
    tcp:send('a\n')
    for _ = 1, 17 do
      tcp:send(('x'):rep(65536))
      ssc:advance('100ms')
    end
    tcp:send('\nb\n')
    ssc:advance('2s')
    ssc:stop()
    assert.matches(': a | .*: b', table.concat(out, ' | '))
    assert.is_nil(table.concat(out):find('x', 1, true))
    assert.same({ ('127.0.0.1:%d: lines of more than 1048576 bytes were dropped: 1'):format(tcp.port) },
      problems)
    tcp:close()
  end)

  it('T82: ten times a thousand records are all counted', function()
    local ssc = context()
    local total, given = 0, 0
    ssc:receiver_stream({ poll = function(_, r)
      if given == 10 then return false end
      given = given + 1
      local list = {}
      for i = 1, 1000 do list[i] = i end
      r:store_block(list)
      return true
    end }):count():foreach_rdd(function(rdd) total = total + (rdd:first() or 0) end)
    ssc:start()
    ssc:advance('3s')
    ssc:stop()
    assert.equal(10000, total)
  end)

  it('T90: inputs are numbered in order, receivers among them', function()
    local ssc = context()
    local receiver = { poll = function() return false end }
    local list = { ssc:receiver_stream(receiver), ssc:receiver_stream(receiver), ssc:queue_stream({}),
      ssc:queue_stream({}), ssc:queue_stream({}) }
    for i, stream in ipairs(list) do
      assert.equal(i - 1, stream:input_id())
      stream:foreach_rdd(function() end)
    end
    local seen = {}
    ssc:add_listener { receiver_started = function(event) seen[#seen + 1] = event.stream_id end }
    ssc:start()
    ssc:advance('1s')
    ssc:stop()
    assert.same({ 0, 1 }, seen)
  end)

  it('T95, T149: a receiver that reports an error and stops is started again', function()
    local ssc = context()
    local events = {}
    local function keep(name) return function(event) events[#events + 1] = { name, event } end end
    ssc:add_listener { receiver_started = keep('started'), receiver_error = keep('error'),
      receiver_stopped = keep('stopped') }
    collect(ssc:receiver_stream({
      on_start = function(_, r) r:report_error('message') end,
      poll = function(_, r)
        r:stop('done')
        return false
      end,
    }))
    ssc:start()
    ssc:advance('1s')
    local names = {}
    for i, event in ipairs(events) do names[i] = event[1] end
    assert.same({ 'started', 'error', 'stopped' }, { unpack(names, 1, 3) })
    assert.equal(0, events[1][2].stream_id)
    assert.equal('message', events[2][2].last_error)
    ssc:advance('3s')
    local starts = 0
    for _, event in ipairs(events) do starts = starts + (event[1] == 'started' and 1 or 0) end
    assert.is_true(starts >= 2)
    ssc:stop()
  end)

  it('T150: a restart with a delay calls on_stop and, after it, on_start', function()
    local ssc = context()
    local calls = {}
    local function note(name) calls[#calls + 1] = name .. ssc.clock:now() end
    local asked
    collect(ssc:receiver_stream({
      on_start = function() note('start') end,
      on_stop = function() note('stop') end,
      poll = function(_, r)
        if not asked then
          asked = true
          r:restart('again', '100ms')
        end
        return false
      end,
    }))
    ssc:start()
    ssc:advance('1s')
    ssc:stop()
    assert.same({ 'start0', 'stop0', 'start100' }, { unpack(calls, 1, 3) })
  end)

  it('a receiver that raises is started again, its error is told', function()
    local ssc = context()
    local errors, polls = {}, 0
    ssc:add_listener { receiver_stopped = function(event) errors[#errors + 1] = event.last_error end }
    local out = collect(ssc:receiver_stream({ poll = function(_, r)
      polls = polls + 1
      if polls == 1 then error('broken') end
      if polls == 2 then r:store('x') end
      return false
    end }))
    ssc:start()
    ssc:advance('5s')
    ssc:stop()
    assert.matches('source_spec.lua:%d+: broken', errors[1])
    assert.matches('x', out[1])
  end)

  it('max_rate bounds what a batch gets, also of a receiver that floods', function()
    local ssc = context { max_rate = 100 }
    local counts = {}
    ssc:receiver_stream({ poll = function(_, r)
      r:store('x')
      return true
    end }):count():foreach_rdd(function(rdd) counts[#counts + 1] = rdd:first() or 0 end)
    ssc:start()
    ssc:advance('5s')
    ssc:stop()
    for _, count in ipairs(counts) do assert.is_true(count <= 100 + 1, count) end
    assert.is_true(counts[5] >= 50)
  end)

  it('B11: not more slots than receivers is refused at the start', function()
    local ssc = context()
    ssc:add_worker('test', 1)
    collect(ssc:receiver_stream({ poll = function() return false end }))
    local ok, message = pcall(function() ssc:start() end)
    assert.is_false(ok)
    assert.matches('slot', message)
  end)

  it('mistakes are errors at their line', function()
    local ssc = context()
    local function message(fn)
      local ok, text = pcall(fn)
      assert.is_false(ok)
      return text
    end
    assert.matches('receiver_stream: expected a receiver', message(function() ssc:receiver_stream(5) end))
    assert.matches('receiver_stream: poll: expected a function',
      message(function() ssc:receiver_stream({ poll = 5 }) end))
    assert.matches('socket_text_stream: a port', message(function() ssc:socket_text_stream('h', 0) end))
    assert.matches('socket_text_stream: expected a host', message(function() ssc:socket_text_stream(nil, 1) end))
    assert.matches('text_file_stream: expected a folder', message(function() ssc:text_file_stream() end))
    assert.matches("text_file_stream: there is no option 'only'",
      message(function() ssc:text_file_stream('x', { only = true }) end))
  end)
end)
