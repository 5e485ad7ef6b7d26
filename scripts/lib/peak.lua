-- Watches the memory of this process: starts when it is called; the function that it returns gives
-- the highest resident set since then, above what it was, in MB.

local function field(name)
  local file = assert(io.open('/proc/self/status', 'r'))
  local text = file:read('*a')
  file:close()
  return tonumber(text:match(name .. ':%s*(%d+)')) / 1024
end

return function()
  local file = io.open('/proc/self/clear_refs', 'w')
  if file then
    file:write('5')
    file:close()
  end
  local before = field('VmRSS')
  return function() return math.max(0, field('VmHWM') - before) end
end
