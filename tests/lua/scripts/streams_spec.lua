-- The examples of scripts/streams in virtual time.
local lfs = require 'lfs'
local testing = require 'streamlua.testing'
local helper = require 'lua.streaming.helper'

local function path_of(name) return 'scripts/streams/' .. name .. '.lua' end

-- What was printed, as "time: record record".
local function texts(program, keep_order)
  local out = {}
  for i, batch in ipairs(program:printed()) do
    if not keep_order then table.sort(batch.records) end
    out[i] = ('%d: %s'):format(batch.time, table.concat(batch.records, ' '))
  end
  return out
end

describe('the stream examples', function()
  local program
  after_each(function()
    if program then program:stop() end
    program = nil
    helper.clean()
  end)

  it('network_wordcount counts the words of each second', function()
    program = testing.program(path_of('network_wordcount'),
      { mock = { lines = { { 'a b a' }, {}, { 'b', ' b  c ' } } } })
    program:advance('3s')
    assert.same({ '1000: (a,2) (b,1)', '2000: ', '3000: (b,2) (c,1)' }, texts(program))
  end)

  it('hashtags counts a sliding window, the most frequent first', function()
    local posts = {}
    posts[1] = { 'I like #Lua and #streams', '#lua' }
    posts[3] = { '#c' }
    posts[4] = { '#c #c #lua' }
    program = testing.program(path_of('hashtags'), { mock = { posts = posts },
      set = { window = '4s', slide = '2s', top = 2, checkpoint = helper.folder() .. '/h' } })
    program:advance('10s')
    assert.same({ '2000: (lua,2) (streams,1)', '4000: (c,3) (lua,3) ...', '6000: (c,3) (lua,1)', '8000: ',
      '10000: ' }, texts(program, true))
  end)

  it('sessions end when a user is quiet or says so', function()
    local actions = {}
    actions[1] = { 'ada login', 'bob login' }
    actions[2] = { 'ada buy', 'not-a-pair' }
    actions[3] = { 'bob logout' }
    program = testing.program(path_of('sessions'), { mock = { actions = actions },
      set = { gap = '3s', checkpoint = helper.folder() .. '/s' } })
    program:advance('8s')
    assert.same({ '1000: ', '2000: ', '3000: (bob,(2,2000))', '4000: ', '5000: ', '6000: (ada,(2,1000))',
      '7000: ', '8000: ' }, texts(program))
  end)

  it('log_monitor counts levels over a window and shows errors', function()
    program = testing.program(path_of('log_monitor'), { mock = { lines = {
      { 'INFO start', 'ERROR disk full', 'no level' }, { 'INFO more' }, {}, { 'ERROR again' },
    } }, set = { window = '10s', slide = '10s' } })
    program:advance('20s')
    assert.same({ '5000: ERROR disk full', '10000: (ERROR,1) (INFO,2)', '10000: ', '15000: ',
      '20000: (ERROR,1)', '20000: ERROR again' }, texts(program))
  end)

  it('log_monitor reads the files that appear in its folder', function()
    local folder = helper.folder()
    local now = os.time()
    program = testing.program(path_of('log_monitor'), { set = { folder = folder, window = '5s', slide = '5s' },
      start_ms = now * 1000 - 2000 })
    helper.write(folder, 'a.log', 'WARN one\nWARN two\n')
    assert(lfs.touch(folder .. '/a.log', now))
    program:advance('10s')
    local seen = table.concat(texts(program), '\n')
    assert.matches('%(WARN,2%)', seen)
  end)

  it('join finds the views of a click', function()
    program = testing.program(path_of('join'), { mock = {
      views = { { 'ad1 sports', 'ad2 news' }, {}, { 'ad3 home' } },
      clicks = { { 'ad1 ada' }, { 'ad2 bob' }, { 'ad1 cy' } },
    }, set = { window = '2s' } })
    program:advance('3s')
    assert.same({ '1000: (ad1,(sports,ada))', '1000: (ad2,(news,None))', '2000: (ad2,(news,bob))', '2000: ',
      '3000: ', '3000: (ad3,(home,None))' }, texts(program))
  end)
end)
