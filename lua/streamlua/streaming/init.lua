--- DStreams: programs whose jobs are generated from a graph of streams, every batch interval.
--
--     local streaming = require 'streamlua.streaming'
--     local ssc = streaming.context { name = 'wc', batch = '1s' }
--     ssc:queue_stream({ { 'a', 'b', 'a' } }):count_by_value():print()
--     return ssc
--
-- docs/dstreams.md is the guide.

---@class streamlua.streaming
---@field context fun(options: streamlua.StreamingOptions): streamlua.StreamingContext
---@field NONE table the missing side of an outer join
---@field manual_clock fun(start_ms?: integer): streamlua.ManualClock
local M = {}

local parts = {
  context = { 'streamlua.streaming.context', 'new' },
  get_or_create = { 'streamlua.streaming.recovery', 'get_or_create' },
  active = { 'streamlua.streaming.context', 'active' },
  state_spec = { 'streamlua.streaming.state', 'state_spec' },
  NONE = { 'streamlua.streaming.rdd', 'NONE' },
  manual_clock = { 'streamlua.streaming.clock', 'manual_clock' },
  recurring_timer = { 'streamlua.streaming.clock', 'recurring_timer' },
  pid_rate_estimator = { 'streamlua.streaming.clock', 'pid_rate_estimator' },
  time = { 'streamlua.streaming.clock', 'time' },
}

return setmetatable(M, {
  __index = function(self, name)
    local part = parts[name]
    if not part then return nil end
    local value = require(part[1])[part[2]]
    rawset(self, name, value)
    return value
  end,
})
