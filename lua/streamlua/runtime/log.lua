--- Log lines of user code (`context.log`): RFC 3339 time, level, component and task, text.
--
--     local write = require('streamlua.runtime.log').writer({ level = 'info' })

local M = {}

local RANK = { error = 1, warn = 2, info = 3, debug = 4 }

--- A function(rt, level, text) that writes lines of the given level and above to standard error.
---@param options? { level?: string }
function M.writer(options)
  local most = RANK[options and options.level or 'info'] or RANK.info
  return function(rt, level, text)
    if RANK[level] > most then return end
    local now = rt.executor:now_ms()
    local seconds = math.floor(now / 1000)
    io.stderr:write(('%s.%03dZ %s %s[%d] %s\n'):format(os.date('!%Y-%m-%dT%H:%M:%S', seconds),
      now - seconds * 1000, level:sub(1, 1):upper(), rt.component.name, rt.planned.index,
      (text:gsub('\n', '\n  '))))
  end
end

return M
