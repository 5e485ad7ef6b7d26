-- Errors of user code as lines for people: each different one of a task once, and ten at most, because
-- a component that fails fails for every tuple.
--
--   local on_error, errors = require 'streamlua.cli.error_lines'.new(print)
--   on_error('count[0]', 'wc.lua:3: boom')           -- error: count[0]: wc.lua:3: boom

local M = {}

-- Different errors of one task that are shown; later ones, and repeated ones, are only counted.
local SHOWN_ERRORS = 10

--- Returns a function(task, text) that shows errors through `say`, and the list of what it has shown.
---@param say fun(line: string)
---@return fun(task: string, text: string)
---@return table[] list {task=, message=, count=}
function M.new(say)
  local tasks, list = {}, {}
  return function(task, text)
    local shown = tasks[task]
    if not shown then
      shown = { count = 0, by_text = {} }
      tasks[task] = shown
    end
    local known = shown.by_text[text]
    if known then
      known.count = known.count + 1
      if not shown.has_repeats then
        shown.has_repeats = true
        say(('error: %s: repeated errors are counted only'):format(task))
      end
      return
    end
    shown.count = shown.count + 1
    if shown.count <= SHOWN_ERRORS then
      known = { task = task, message = text, count = 1 }
      shown.by_text[text] = known
      list[#list + 1] = known
      say(('error: %s: %s'):format(task, text))
    elseif shown.count == SHOWN_ERRORS + 1 then
      say(('error: %s: further errors are counted only'):format(task))
    end
  end, list
end

return M
