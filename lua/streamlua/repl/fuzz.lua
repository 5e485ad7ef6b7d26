-- Tries a scheduler on random clusters and topologies: what it breaks is what a check of its
-- assignments finds, or an error of its own.
--
--   local fuzz = require 'streamlua.repl.fuzz'
--   local findings = fuzz.run('my-scheduler.lua', { cases = 200, seed = 7 })

local scheduling = require 'streamlua.scheduling'

local M = {}

local MAX_FINDINGS = 10

-- A small generator of its own: math.random is the user's.
local function generator(seed)
  local state = seed % 2147483646 + 1
  return function(least, most)
    state = state * 16807 % 2147483647
    return least + state % (most - least + 1)
  end
end

local function random_cluster(random)
  local supervisors = {}
  for i = 1, random(2, 6) do
    local ports, used = {}, {}
    for k = 1, random(2, 6) do
      ports[k] = 6799 + k
      if random(1, 6) == 1 then used[#used + 1] = ports[k] end
    end
    supervisors[i] = { id = 's' .. i, host = 'h' .. i, ports = ports, used = used,
      rack = 'r' .. random(1, 3), load = random(0, 10) / 10 }
  end
  return { supervisors = supervisors }
end

local function random_components(random)
  local components, next_id = {}, 1
  local function add(name, kind, count, inputs)
    local tasks = {}
    for i = 1, count do tasks[i], next_id = next_id, next_id + 1 end
    components[#components + 1] = { name = name, kind = kind, tasks = tasks, inputs = inputs }
  end
  local bolts = random(1, 4)
  for i = 1, bolts do add('b' .. i, 'bolt', random(1, 6), { i == 1 and 's' or 'b' .. (i - 1) }) end
  if random(1, 2) == 1 then add('__acker', 'system', random(1, 2), {}) end
  add('__topology_master', 'system', 1, {})
  add('s', 'spout', random(1, 4), {})
  return components
end

-- What a built-in can do, a custom one should: requests that balanced refuses are left out.
local function random_request(random)
  local request = { topology = 'fuzz', components = random_components(random),
    cluster = random_cluster(random), workers = random(1, 6) }
  if random(1, 4) == 1 then request.isolation = { 'h1', 'h2' } end
  if random(1, 4) == 1 then request.on_different_nodes = { 'b1' } end
  if random(1, 4) == 1 then request.master_alone = true end
  return request
end

--- Findings of a scheduler (name, path or scheduler): {case=, seed=, fault=}.
---@param scheduler string|table
---@param options table {cases=, seed=}
---@return table[] findings empty when it broke nothing
function M.run(scheduler, options)
  local seed, findings = options.seed or 1, {}
  for case = 1, options.cases or 100 do
    local random = generator(seed + case * 7919)
    local request = random_request(random)
    if scheduling.assign(request, 'balanced') and #findings < MAX_FINDINGS then
      local assignment, failure = scheduling.assign(request, scheduler)
      if assignment then assignment, failure = scheduling.validate_assignment(assignment, request) end
      if not assignment then
        findings[#findings + 1] = { case = case, seed = seed, fault = tostring(failure) }
      end
    end
  end
  return findings
end

return M
