--- Runs the examples of scripts/topologies for their specs.
--
--     local topologies = require 'support.topologies'
--     local lines, summary = topologies.run('wordcount', { '--set', 'top=3' })

local json = require 'streamlua.json'
local process = require 'support.process'

local M = {}

--- Runs a script with options; it must end with 0. Returns the lines of standard output, the summary
--- document, and the result of the process.
---@param script string path
---@param options? string[]
---@return string[] lines
---@return table summary
---@return table result
function M.run_script(script, options)
  return process.with_folder(function(folder)
    local args = { 'run', script, '--summary', folder .. '/s.json' }
    for _, option in ipairs(options or {}) do args[#args + 1] = option end
    local r = process.run(args)
    if r.code ~= 0 then error(('exit %d: %s'):format(r.code, r.stderr), 0) end
    local lines = {}
    for line in r.stdout:gmatch('([^\n]*)\n') do lines[#lines + 1] = line end
    return lines, json.decode(process.read_file(folder .. '/s.json')), r
  end)
end

--- Runs the text of a script as `run_script` does.
---@param text string
---@param options? string[]
function M.run_text(text, options)
  return process.with_folder(function(folder)
    process.write_file(folder .. '/topo.lua', text)
    return M.run_script(folder .. '/topo.lua', options)
  end)
end

--- Runs an example by its name.
---@param name string
---@param options? string[]
function M.run(name, options)
  return M.run_script('scripts/topologies/' .. name .. '.lua', options)
end

--- Sorts a list and returns it.
function M.sorted(list)
  table.sort(list)
  return list
end

--- What wordcount prints for a text, made without the engine.
---@param text string
---@param top integer
---@return string[]
function M.ranking_of(text, top)
  local counts, words = {}, {}
  for word in text:gmatch('%S+') do
    if not counts[word] then words[#words + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(words, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  local lines = {}
  for i = 1, math.min(top, #words) do
    lines[i] = ('%7d %s'):format(counts[words[i]], words[i])
  end
  return lines
end

--- What join prints for a number of orders, sorted.
---@param orders integer
---@return string[]
function M.joined(orders)
  local lines = {}
  local names = { 'ada', 'bob', 'cleo' }
  local function paid(n, amount)
    lines[#lines + 1] = ('{"order":%d,"customer":"%s","price":%d,"amount":%d}'):format(n,
      names[n % 3 + 1], n * 10, amount)
  end
  for n = 1, orders do
    if n % 10 == 0 then
      lines[#lines + 1] = ('{"order":%d,"missing":"payment"}'):format(n)
    elseif n % 5 == 0 then
      paid(n, n * 10 - 1)
      paid(n, 1)
    else
      paid(n, n * 10)
    end
  end
  for n = orders + 1, orders + 3 do
    lines[#lines + 1] = ('{"order":%d,"missing":"order"}'):format(n)
  end
  return M.sorted(lines)
end

--- What diamond prints, sorted, and how many numbers fail on the way.
---@param numbers integer
---@return string[] lines
---@return integer failures
function M.diamond(numbers)
  local total, failures = 0, 0
  for n = 1, numbers do
    total = total + 2 * n + n * n
    if n % 7 == 0 or n % 11 == 0 or n % 13 == 0 or n % 50 == 0 then failures = failures + 1 end
  end
  return {
    ('acked %d of %d numbers, %d failures on the way'):format(numbers, numbers, failures),
    ('sum of %d numbers: %d'):format(numbers, total),
  }, failures
end

return M
