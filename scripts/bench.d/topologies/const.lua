-- B1, B2, B4: a spout of constant tuples, perhaps a bolt that passes them on, and a bolt that does
-- nothing.
--
--     streamlua run const.lua --set n=1e7 --set ack=true --set via=shuffle
--
-- Config: `n` tuples, of which the first `warm` are not timed; `ack` gives each an id; `via` puts the
-- passing bolt between with that grouping (local, shuffle, fields, all), two tasks of each; `text` adds
-- a string to the two numbers. It prints `start_ms` when the timed part begins and `end_ms` when all
-- tuples have been executed.

local streamlua = require 'streamlua'
local clock = require 'clock'

local t = streamlua.topology('const', { n = 1e7, warm = 1e6, ack = false, via = '', text = false })
local n, warm = t.config.n, t.config.warm
local has_ids, has_text = t.config.ack, t.config.text
local fields = has_text and { 'key', 'value', 'text' } or { 'key', 'value' }
local DONE = streamlua.DONE

-- One function for each kind, so that none asks per tuple what it is.
local function emitting(emit)
  return function(self, collector)
    local i = self.i + 1
    if i > n then return DONE end
    if i == warm then print('start_ms', clock.mono() * 1000) end
    self.i = i
    emit(collector, i)
  end
end

local function emit_plain(collector, i) collector:emit({ i, 7 }) end
local function emit_acked(collector, i) collector:emit({ i, 7 }, { id = i }) end
local function emit_text(collector, i) collector:emit({ i, 7, 'constant' }) end

local source = streamlua.spout {
  fields = fields,
  open = function(self) self.i = 0 end,
  next_tuple = emitting(has_text and emit_text or has_ids and emit_acked or emit_plain),
}

local pass = streamlua.bolt {
  fields = fields,
  execute = function(_, tuple, collector) collector:emit(tuple) end,
}

local sink = streamlua.bolt {
  execute = function() end,
  finish = function() print('end_ms', clock.mono() * 1000) end,
}

local GROUPINGS = {
  ['local'] = function(bolt, from) bolt:local_or_shuffle(from) end,
  shuffle = function(bolt, from) bolt:shuffle(from) end,
  fields = function(bolt, from) bolt:fields(from, { 'key' }) end,
  all = function(bolt, from) bolt:all(from) end,
}

t:spout('source', source)
if t.config.via == '' then
  t:bolt('sink', sink):shuffle('source')
else
  local group = GROUPINGS[t.config.via] or error('via: one of local, shuffle, fields, all', 0)
  group(t:bolt('pass', pass, { parallelism = 2 }), 'source')
  group(t:bolt('sink', sink, { parallelism = 2 }), 'pass')
end
return t
