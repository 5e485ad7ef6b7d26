local component = require 'streamlua.topology.component'
local streamlua = require 'streamlua'

local function nothing() end

-- The message of an error that a function raises, and whether it blames this file.
local function raised(fn)
  local ok, message = pcall(fn)
  assert.is_false(ok)
  assert.is_string(message)
  local text = message:match('component_spec%.lua:%d+: (.*)$')
  assert(text, 'not blamed on the caller: ' .. message)
  return text
end

describe('streamlua.spout and streamlua.bolt', function()
  it('keep the definition and describe its streams', function()
    local definition = { fields = { 'a', 'b' }, next_tuple = nothing, mine = 1 }
    local spout = streamlua.spout(definition)
    assert.equal('spout', spout.kind)
    assert.equal(definition, spout.definition)
    assert.same({ 'a', 'b' }, spout.streams.default.fields)
    assert.is_false(spout.streams.default.direct)
    assert.equal(1, #spout.streams)
    assert.is_true(component.is(spout))
    assert.is_false(component.is(definition))
  end)

  it('order streams with default first and then by name', function()
    local bolt = streamlua.bolt { execute = nothing, streams = {
      late = { 'x' }, ctl = { fields = { 'y' }, direct = true }, default = {}, a = { fields = {} } } }
    local names = {}
    for i, stream in ipairs(bolt.streams) do names[i] = stream.name end
    assert.same({ 'default', 'a', 'ctl', 'late' }, names)
    assert.is_true(bolt.streams.ctl.direct)
    assert.same({ 'y' }, bolt.streams.ctl.fields)
    assert.is_false(bolt.streams.late.direct)
  end)

  it('take fields together with other named streams', function()
    local bolt = streamlua.bolt { execute = nothing, fields = { 'a' }, streams = { late = { 'b' } } }
    assert.same({ 'a' }, bolt.streams.default.fields)
    assert.same({ 'b' }, bolt.streams.late.fields)
  end)

  it('may have no stream at all', function()
    assert.same({}, streamlua.bolt({ execute = nothing }).streams)
  end)

  it('turn tick_every, manual_ack and replay into options', function()
    local bolt = streamlua.bolt { execute = nothing, tick = nothing, tick_every = '500ms',
      tick_aligned = true, manual_ack = true }
    assert.same({ tick_every = 0.5, tick_aligned = true, manual_ack = true }, bolt.options)
    local function replay(value)
      return streamlua.spout({ next_tuple = nothing, replay = value }).options.replay
    end
    assert.is_nil(replay(nil))
    assert.is_nil(replay(false))
    assert.same({ delay = 0 }, replay(true))
    assert.same({ limit = 3, delay = 0.1 }, replay({ limit = 3, delay = '100ms' }))
  end)

  it('remember where they were declared', function()
    local line = debug.getinfo(1, 'l').currentline + 1
    local spout = streamlua.spout { next_tuple = nothing }
    assert.equal(line, spout.line)
    assert.truthy(spout.file:find('component_spec.lua', 1, true))
  end)

  it('raise mistakes at the line of the caller', function()
    local rows = {
      { 'spout', nil, 'takes a table, got nil' },
      { 'spout', {}, 'needs a function next_tuple' },
      { 'bolt', {}, 'needs a function execute' },
      { 'bolt', { execute = 1 }, 'execute must be a function, got 1' },
      { 'bolt', { execute = nothing, prepare = 'x' }, "prepare must be a function, got 'x'" },
      { 'bolt', { execute = nothing, next_tuple = nothing }, 'next_tuple belongs to a spout' },
      { 'spout', { next_tuple = nothing, execute = nothing }, 'execute belongs to a bolt' },
      { 'bolt', { execute = nothing, fields = 'a' }, 'fields must be a list of field names' },
      { 'bolt', { execute = nothing, fields = { 'a', 1 } }, 'fields%[2%] must be a field name, got 1' },
      { 'bolt', { execute = nothing, fields = { a = 'b' } }, 'fields must be a list' },
      { 'bolt', { execute = nothing, fields = { 'a', nil, 'c' } }, 'fields must be a list' },
      { 'bolt', { execute = nothing, streams = { 'a' } }, 'streams are named, got the key 1' },
      { 'bolt', { execute = nothing, streams = { s = 1 } }, 'streams%.s must be a list' },
      { 'bolt', { execute = nothing, streams = { s = { fields = {}, dirct = true } } },
        "streams%.s has the unknown key 'dirct'" },
      { 'bolt', { execute = nothing, streams = { s = { fields = {}, direct = 1 } } },
        'streams%.s%.direct must be true or false' },
      { 'bolt', { execute = nothing, fields = {}, streams = { default = {} } }, 'both describe' },
      { 'bolt', { execute = nothing, tick_every = '5 parsecs' }, 'tick_every: .*is not a duration' },
      { 'bolt', { execute = nothing, tick_every = 0 }, 'tick_every must be more than 0' },
      { 'bolt', { execute = nothing, manual_ack = 'yes' }, 'manual_ack must be true or false' },
      { 'spout', { next_tuple = nothing, replay = 3 }, 'replay must be true or' },
      { 'spout', { next_tuple = nothing, replay = { times = 3 } }, "unknown key 'times'" },
      { 'spout', { next_tuple = nothing, replay = { limit = -1 } }, 'replay%.limit must be' },
      { 'spout', { next_tuple = nothing, replay = { limit = 1.5 } }, 'replay%.limit must be' },
      { 'spout', { next_tuple = nothing, replay = { delay = 'x' } }, 'replay%.delay: .*duration' },
    }
    for _, row in ipairs(rows) do
      local text = raised(function()
        local made = streamlua[row[1]](row[2])
        return made
      end)
      assert.truthy(text:find(row[3]), ('%s does not match %s'):format(text, row[3]))
    end
    local once = streamlua.bolt { execute = nothing }
    assert.truthy(raised(function() local b = streamlua.bolt(once) return b end):find('already'))
  end)

  it('refuse state spouts, which are reserved', function()
    assert.truthy(raised(function()
      local spout = streamlua.state_spout({})
      return spout
    end):find('reserved'))
  end)

  it('warn of keys that look like misspelt ones', function()
    local bolt = streamlua.bolt { execute = nothing, prepair = nothing, counts = {}, manual_akc = true }
    local texts = {}
    for i, warning in ipairs(bolt.warnings) do texts[i] = warning.message end
    assert.same({ "bolt key 'manual_akc' looks like 'manual_ack'",
      "bolt key 'prepair' looks like 'prepare'" }, texts)
  end)

  it('warn of what something is called elsewhere', function()
    local function texts(made)
      local out = {}
      for i, warning in ipairs(made.warnings) do
        assert.equal('misspelt', warning.code)
        out[i] = warning.message
      end
      return out
    end
    assert.same({ "bolt key 'ack' is your own; did you mean 'manual_ack'?",
      "bolt key 'open' is your own; did you mean 'prepare'?" },
      texts(streamlua.bolt { execute = nothing, ack = 'manual', open = nothing }))
    assert.same({ "spout key 'cleanup' is your own; did you mean 'close'?",
      "spout key 'retries' is your own; did you mean 'replay'?" },
      texts(streamlua.spout { next_tuple = nothing, cleanup = nothing, retries = 3 }))
  end)

  it('take keys that are clearly the user\'s without a word', function()
    local bolts = {
      { ack = nothing, open = 'notes.txt', close = 5, acks = { 1 }, manual_ack = true },
      { open = nothing, prepare = nothing, close = nothing, cleanup = nothing },
      { counts = {}, interval = '1s', limit = 3, emit = nothing, flush = nothing, path = 'x' },
    }
    for _, definition in ipairs(bolts) do
      definition.execute = nothing
      assert.same({}, streamlua.bolt(definition).warnings)
    end
    local spout = streamlua.spout { next_tuple = nothing, retry = nothing, file = 'x', next = 1 }
    assert.same({}, spout.warnings)
  end)

  it('warn of a tick that never comes', function()
    assert.equal('tick-without-interval',
      streamlua.bolt({ execute = nothing, tick = nothing }).warnings[1].code)
    assert.equal('interval-without-tick',
      streamlua.bolt({ execute = nothing, tick_every = 1 }).warnings[1].code)
  end)
end)

describe('near misses', function()
  it('are small slips of known names', function()
    local names = { 'containers', 'workers', 'ackers', 'acking', 'message_timeout' }
    local rows = { contaners = 'containers', Containers = 'containers', worker = 'workers',
      acker = 'ackers', ['message-timeout'] = 'message_timeout', messageTimeout = 'message_timeout',
      message_timeuot = 'message_timeout' }
    for word, name in pairs(rows) do assert.equal(name, component.near_miss(word, names)) end
    for _, word in ipairs { 'input', 'host', 'message', 'timeout', 'ack', 'w', '', 'broker' } do
      assert.is_nil(component.near_miss(word, names), word)
    end
  end)
end)
