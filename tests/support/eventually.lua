--- Asks again and again until something has become so, for as long as a busy machine may need.
--
--     local eventually = require 'support.eventually'
--     local value = eventually(function() return ... end)

local posix = { poll = require 'posix.poll' }
local process = require 'support.process'

local LIMIT_S, PAUSE_MS = 60, 20

--- What fn gives when it gives something; nil when it does not.
---@param fn fun(): any
---@return any
return function(fn)
  local deadline = process.now() + LIMIT_S * process.slowness
  repeat
    local value = fn()
    if value then return value end
    posix.poll.poll({}, PAUSE_MS)
  until process.now() >= deadline
end
