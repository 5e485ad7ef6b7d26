-- How soon a run handles its first tuple: prints the time of the first `execute`, in seconds of the
-- clock that bench reads too.

local streamlua = require 'streamlua'
local clock = require 'clock'

local t = streamlua.topology('first')

t:spout('source', streamlua.spout {
  fields = { 'x' },
  next_tuple = function(_, collector)
    collector:emit({ 1 })
    return streamlua.DONE
  end,
})
t:bolt('sink', streamlua.bolt { execute = function() print('executed_at', clock.mono()) end })
  :shuffle('source')
return t
