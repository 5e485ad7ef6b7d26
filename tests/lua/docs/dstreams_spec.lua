local files = require 'support.files'
local load = require 'streamlua.topology.load'
local streaming = require 'streamlua.streaming'

local read = require('support.process').read_file

describe('the guide to DStreams', function()
  after_each(files.clean)

  local text = read('docs/dstreams.md')
  local examples = {}
  for code in text:gmatch('\n```lua\n(.-)\n```') do examples[#examples + 1] = code end

  it('has examples that work', function()
    assert.equal(3, #examples)
    local ssc = assert(load.script(files.write('wc.lua', examples[1])))
    assert.same({}, ssc:validate())
    local counts = streaming.context { name = 'd', batch = '1s', clock = streaming.manual_clock(0) }
      :queue_stream({})
    assert(loadstring('local streaming, counts = ...\n' .. examples[2]))(streaming, counts)
    assert(loadstring(examples[3]))()
  end)

  it('names every option of a context', function()
    local source = read('lua/streamlua/streaming/context.lua')
    local options = source:match('local OPTIONS = (%b{})')
    local count = 0
    for name in options:gmatch('\n  ([%w_]+) = ') do
      count = count + 1
      assert.truthy(text:find('`' .. name .. '`', 1, true) or text:find(name .. ' = ', 1, true), name)
    end
    assert.is_true(count > 20)
  end)

  it('names every operation', function()
    local known = { get_or_compute = true, remember_ms = true, checkpoint_ms = true, remembered = true,
      input_id = true, remember = true }
    local count = 0
    for name, value in pairs(require('streamlua.streaming.stream').Stream) do
      if type(value) == 'function' and not known[name] then
        count = count + 1
        assert.truthy(text:find(name .. '[%(`]'), name)
      end
    end
    assert.is_true(count > 30)
  end)
end)
