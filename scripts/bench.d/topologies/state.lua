-- B11: put, get and add of `context:state` with `keys` keys in random order, `times` of each.
--
--     streamlua run state.lua --set keys=1e4 --set times=1e6 --set kind=number
--
-- It prints the rate of each, and the bytes of an entry. `kind` is number or string (12 bytes).

local streamlua = require 'streamlua'
local clock = require 'clock'

local t = streamlua.topology('state', { keys = 1e4, times = 1e6, kind = 'number' })
local keys, times, kind = t.config.keys, t.config.times, t.config.kind

-- Visits all keys in an order that looks random: the step has no divisor in common with 2 and 5.
local STEP = 7654321

local function put_new(state)
  for i = 1, keys do state:put(i * STEP % keys, i) end
end

local function put(state)
  local at = 0
  for i = 1, times do
    at = (at + STEP) % keys
    state:put(at, i)
  end
end

local function get(state)
  local at, sum = 0, 0
  for _ = 1, times do
    at = (at + STEP) % keys
    sum = sum + state:get(at)
  end
  return sum
end

local function add(state)
  local at = 0
  for _ = 1, times do
    at = (at + STEP) % keys
    state:add(at, 1)
  end
end

local function add_text(state, names)
  local at = 0
  for _ = 1, times do
    at = (at + STEP) % keys
    state:add(names[at + 1], 1)
  end
end

local function rate(name, count, fn, state, names)
  local before = clock.mono()
  fn(state, names)
  print(name, count / (clock.mono() - before))
end

-- The memory of this process, in bytes.
local function resident()
  for line in io.lines('/proc/self/status') do
    local kib = line:match('^VmRSS:%s*(%d+)')
    if kib then return kib * 1024 end
  end
end

local function measure_numbers(context)
  collectgarbage()
  local before = resident()
  local state = context:state('numbers')
  rate('put_new', keys, put_new, state)
  print('entry_bytes', (resident() - before) / state:size())
  for _ = 1, 2 do
    rate('put', times, put, state)
    rate('get', times, get, state)
    rate('add', times, add, state)
  end
end

local function measure_texts(context)
  local state, names = context:state('texts'), {}
  for i = 1, keys do names[i] = ('key-%08d'):format(i) end
  for _ = 1, 3 do rate('add_text', times, add_text, state, names) end
end

t:spout('source', streamlua.spout {
  fields = { 'nothing' },
  open = function(self, context) self.context = context end,
  next_tuple = function(self)
    if kind == 'string' then measure_texts(self.context) else measure_numbers(self.context) end
    return streamlua.DONE
  end,
})
t:bolt('sink', streamlua.bolt { execute = function() end }):shuffle('source')
return t
