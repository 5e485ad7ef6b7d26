-- Finds the name a mistyped word most likely meant.
--
--   local suggest = require 'streamlua.cli.suggest'
--   assert(suggest.nearest('submti', { 'submit', 'run' }) == 'submit')

local M = {}

--- Edit distance with transpositions of neighbours (optimal string alignment).
---@param a string
---@param b string
---@return integer
function M.distance(a, b)
  local before, previous, current = {}, {}, {}
  for j = 0, #b do
    previous[j] = j
  end
  for i = 1, #a do
    current[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, before[j - 2] + 1)
      end
      current[j] = best
    end
    before, previous, current = previous, current, before
  end
  return previous[#b]
end

--- The nearest of `names`, or nil when none is close (about a third of the letters may differ).
--- Ties go to the first name.
---@param word string
---@param names string[]
---@return string?
function M.nearest(word, names)
  if #word > 64 then
    return nil
  end
  local best, best_distance
  for _, name in ipairs(names) do
    local d = M.distance(word, name)
    local starts = #word >= 2 and name:sub(1, #word) == word
    local limit = math.max(1, math.floor(math.max(#word, #name) / 3))
    if (d <= limit or starts) and (not best or d < best_distance) then
      best, best_distance = name, d
    end
  end
  return best
end

--- "did you mean 'x'?" or nil.
function M.hint(word, names)
  local name = M.nearest(word, names)
  return name and ("did you mean '%s'?"):format(name) or nil
end

return M
