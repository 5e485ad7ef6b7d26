-- The least that a topology can be: a spout that has one root and then nothing, and a bolt. Its file's
-- name, which many copies of this file have each for themselves, is the topology's name.

local streamlua = require 'streamlua'

local name = debug.getinfo(1, 'S').source:match('([^/]+)%.lua$')

local source = streamlua.spout {
  fields = { 'n' },
  next_tuple = function(self, collector)
    if self.is_told then return end
    self.is_told = true
    collector:emit({ 1 }, { id = 1 })
  end,
}
local sink = streamlua.bolt { execute = function() end }

local t = streamlua.topology(name, { containers = 1, executors = 1 })
t:spout('source', source)
t:bolt('sink', sink):shuffle('source')
return t
