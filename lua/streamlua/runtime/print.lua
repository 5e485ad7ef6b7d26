--- `print` for code that runs on several threads: a call writes its line as a whole, so lines of tasks
-- on different executors never mix.
--
--     require('streamlua.runtime.print')('a', 1)     -- a<tab>1

local concat, select = table.concat, select

--- Prints its arguments, as they read by tostring, between tabs.
return function(...)
  local texts, n = { ... }, select('#', ...)
  for i = 1, n do
    local text = tostring(texts[i])
    if type(text) ~= 'string' then error("'tostring' must return a string to 'print'", 2) end
    texts[i] = text
  end
  io.stdout:write(concat(texts, '\t', 1, n) .. '\n')
end
