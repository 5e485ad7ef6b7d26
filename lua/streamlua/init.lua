--- The public surface: what `require 'streamlua'` gives a topology script.
--
--     local streamlua = require 'streamlua'
--     local numbers = streamlua.spout { fields = { 'n' }, next_tuple = function() end }
--     local print = streamlua.bolt { execute = function(_, tuple) print(tuple.n) end }
--     local t = streamlua.topology('numbers')
--     t:spout('numbers', numbers)
--     t:bolt('print', print):shuffle('numbers')
--     return t
--
-- Parts are loaded when they are first used, so that a script that only declares a topology loads
-- nothing of the engine.

---@class streamlua
---@field spout fun(definition: table): table makes a spout
---@field bolt fun(definition: table): table makes a bolt
---@field topology fun(name: string, config?: table): table starts a topology
---@field DONE table what `next_tuple` returns when a spout is exhausted
---@field null userdata JSON's null as a value
---@field tuple table component(t), task(t), stream(t), fields(t) of a tuple
---@field key_group fun(value: any, groups: integer): integer group of a key, from 0
---@field io table lines{} and print{}: ready-made input and output
---@field file fun(path: string): string path of a file beside the script, which is shipped with it
---@field json table decode(text), encode(value)
---@field split fun(line: string): function iterator over the words of a line
local M = {}

--- Returned by `next_tuple` of a spout that has nothing more to emit.
M.DONE = require('streamlua.runtime.constants').DONE

-- Where the other parts come from: module, and field of it (nil = the module itself).
local parts = {
  spout = { 'streamlua.topology.component', 'spout' },
  bolt = { 'streamlua.topology.component', 'bolt' },
  state_spout = { 'streamlua.topology.component', 'state_spout' },
  topology = { 'streamlua.topology', 'new' },
  null = { 'streamlua.runtime.value', 'null' },
  tuple = { 'streamlua.runtime.tuple' },
  key_group = { 'streamlua.runtime.key', 'key_group' },
  file = { 'streamlua.topology.load', 'file' },
  io = { 'streamlua.connectors.io' },
  json = { 'streamlua.json' },
  split = { 'streamlua.split' },
}

return setmetatable(M, {
  -- For who lists what there is: names that are not loaded yet are not found by `next`.
  __parts = parts,
  __index = function(self, name)
    local part = parts[name]
    if not part then return nil end
    local module = require(part[1])
    local value = module
    if part[2] then value = module[part[2]] end
    rawset(self, name, value)
    return value
  end,
})
