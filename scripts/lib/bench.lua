-- Runs the workloads of scripts/bench.d in the order of their ids and prints their figures.
-- Usage: build/streamlua exec scripts/lib/bench.lua [--quick] [--json] [--list] [ID ...]
--
-- A workload is a file that returns
--
--     { id = 'B1', name = 'const spout to null bolt', run = function(bench) ... end }
--
-- and run calls, once for each figure,
--
--     bench:report { variant = 'ack', value = 31e6, unit = 'tuples/s', limit = 400e6, target = 30e6 }
--
-- `limit` is what the hardware does in the same run, `ratio` = value / limit; `better = 'less'` is
-- for times and sizes, where the target is met from below. With several rounds `value` is the best,
-- `least` the worst of them; `cpu_ns` is the processor time of one unit. bench.quick asks for a short
-- run; bench:best(rounds, fn) calls fn that often and returns the best (largest) number, bench:least
-- the smallest; bench:now() is a clock in seconds. The exit code is 0 whatever the figures, 1 when a
-- workload raised an error, 2 for a wrong command line.

local folder = arg[0]:match('^(.*)/lib/[^/]*$') or 'scripts'

local Bench = {}
Bench.__index = Bench

local function number_text(value)
  local size = math.abs(value)
  if size >= 1e9 then return ('%.2f G'):format(value / 1e9) end
  if size >= 1e6 then return ('%.2f M'):format(value / 1e6) end
  if size >= 1e4 then return ('%.1f k'):format(value / 1e3) end
  return ('%.4g '):format(value)
end

-- Numbers of JSON with enough digits and never in a form that JSON lacks.
local function json_number(value)
  if value ~= value or value == math.huge or value == -math.huge then return 'null' end
  if value == math.floor(value) and math.abs(value) < 1e15 then return ('%d'):format(value) end
  return ('%.6g'):format(value)
end

local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n' }
local function json_string(text) return '"' .. text:gsub('["\\\n]', ESCAPES) .. '"' end

local function json_line(line)
  local out = {}
  local function add(key, text) out[#out + 1] = json_string(key) .. ':' .. text end
  add('id', json_string(line.id))
  add('variant', json_string(line.variant))
  add('name', json_string(line.name))
  add('value', json_number(line.value))
  add('unit', json_string(line.unit))
  for _, key in ipairs { 'limit', 'ratio', 'target' } do
    add(key, line[key] and json_number(line[key]) or 'null')
  end
  add('met', line.met == nil and 'null' or tostring(line.met))
  for _, key in ipairs { 'least', 'rounds', 'cpu_ns' } do
    if line[key] then add(key, json_number(line[key])) end
  end
  return '{' .. table.concat(out, ',') .. '}'
end

local function table_line(line)
  local verdict = line.met == nil and '' or line.met and 'met' or 'missed'
  return ('%-5s %-14s %-38s %14s%-9s limit %-10s ratio %-7s target %-10s %s'):format(line.id,
    line.variant, line.name, number_text(line.value), line.unit,
    line.limit and number_text(line.limit) or '-', line.ratio and ('%.3f'):format(line.ratio) or '-',
    line.target and number_text(line.target) or '-', verdict)
end

--- Prints one figure of the workload.
---@param figure table variant, value, unit, and optionally name, limit, target, better = 'less'
function Bench:report(figure)
  assert(type(figure.value) == 'number', 'a figure has a value')
  local line = {
    id = self.id, name = figure.name or self.name, variant = figure.variant or '',
    value = figure.value, unit = figure.unit or '', limit = figure.limit, target = figure.target,
    ratio = figure.ratio, least = figure.least, rounds = figure.rounds, cpu_ns = figure.cpu_ns,
  }
  if line.limit and not line.ratio and line.limit ~= 0 then line.ratio = line.value / line.limit end
  if line.target then
    if figure.better == 'less' then
      line.met = line.value <= line.target
    else
      line.met = line.value >= line.target
    end
  end
  io.stdout:write(self.json and json_line(line) or table_line(line), '\n')
  io.stdout:flush()
end

--- The largest result of several calls.
function Bench:best(rounds, fn)
  local best = -math.huge
  for round = 1, rounds do best = math.max(best, fn(round)) end
  return best
end

--- The smallest result of several calls.
function Bench:least(rounds, fn)
  return -self:best(rounds, function(round) return -fn(round) end)
end

local libc = require 'streamlua.connectors.libc'

--- Reports one figure: its variant, name, value and unit, and what else `report` takes.
function Bench:figure(variant, name, value, unit, more)
  local line = more or {}
  line.variant, line.name, line.value, line.unit = variant, name, value, unit
  self:report(line)
end

--- Starts to watch memory (scripts/lib/peak.lua).
function Bench.peak() return dofile(folder .. '/lib/peak.lua')() end

--- Seconds of a monotonic clock.
function Bench:now() return libc.clock_s('mono') end

local function usage(message)
  io.stderr:write('error: ', message, '\nusage: scripts/bench [--quick] [--json] [--list] [ID ...]\n')
  os.exit(2)
end

local function read_arguments(words)
  local options = { ids = {} }
  for _, word in ipairs(words) do
    if word == '--quick' or word == '--json' or word == '--list' then
      options[word:sub(3)] = true
    elseif word:find('^%-') then
      usage('unknown option: ' .. word)
    else
      options.ids[#options.ids + 1] = word
    end
  end
  return options
end

-- Sorts B2 before B10.
local function id_key(id)
  return (id:gsub('%d+', function(digits) return ('%06d'):format(tonumber(digits)) end))
end

local function read_workloads()
  local out = {}
  local pipe = assert(io.popen(("find '%s/bench.d' -maxdepth 1 -name '*.lua' 2>/dev/null"):format(folder)))
  for path in pipe:lines() do
    local workload = dofile(path)
    -- A file without an id is a helper of the workloads beside it.
    if type(workload) == 'table' and workload.id then out[#out + 1] = workload end
  end
  pipe:close()
  table.sort(out, function(a, b)
    if a.id ~= b.id then return id_key(a.id) < id_key(b.id) end
    return a.name < b.name
  end)
  return out
end

local function select_workloads(workloads, ids)
  if #ids == 0 then return workloads end
  local out = {}
  for _, id in ipairs(ids) do
    -- One id may have several files.
    local before = #out
    for _, workload in ipairs(workloads) do
      if workload.id == id then out[#out + 1] = workload end
    end
    if #out == before then usage('unknown workload: ' .. id) end
  end
  return out
end

local options = read_arguments(arg)
package.path = folder .. '/bench.d/?.lua;' .. package.path
local failures = 0
for _, workload in ipairs(select_workloads(read_workloads(), options.ids)) do
  if options.list then
    print(workload.id, workload.name)
  else
    local bench = setmetatable({ id = workload.id, name = workload.name, quick = options.quick,
      json = options.json }, Bench)
    local ok, message = xpcall(workload.run, debug.traceback, bench)
    if not ok then
      failures = failures + 1
      io.stderr:write('error: ', workload.id, ': ', message, '\n')
    end
  end
end
os.exit(failures == 0 and 0 or 1)
