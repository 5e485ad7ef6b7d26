-- B10, scheduling: every scheduler on 10^3 to 10^5 tasks, five tasks a slot, ten tasks a worker.
--
-- The topology has 20 components in a chain of bolts with spouts, the cluster four slots a node;
-- 10^5 tasks stand on 2 x 10^4 slots. Times are those of the core on its arrays, `lua` is the same
-- call from documents to documents. `keep`, `reassign` and `minimal` start from the assignment of
-- `balanced` after 1 % of the tasks changed. The limit beside a time is a sort of that many numbers;
-- `growth` is the exponent e of time ~ n^e.

local abi = require 'streamlua.abi'
local document = require 'streamlua.scheduling.document'
local native = require 'streamlua.scheduling.native'

local C, ffi = abi.C, abi.ffi

local PATH = debug.getinfo(1, 'S').source:sub(2)

local COMPONENTS, SLOTS_PER_NODE = 20, 4
local TARGETS = { balanced = 1, ['balanced-minimal'] = 3 }

local function cluster_of(slots)
  local supervisors = {}
  for i = 1, slots / SLOTS_PER_NODE do
    supervisors[i] = { id = ('s%06d'):format(i), host = ('h%06d'):format(i),
      ports = { 6800, 6801, 6802, 6803 } }
  end
  return { supervisors = supervisors }
end

local function request_of(n)
  local components, next_id = {}, 1
  for i = 1, COMPONENTS do
    local tasks = {}
    for k = 1, n / COMPONENTS do
      tasks[k], next_id = next_id, next_id + 1
    end
    components[i] = { name = 'c' .. i, kind = i <= 2 and 'spout' or 'bolt', tasks = tasks,
      inputs = i > 2 and { 'c' .. (i - 2), 'c' .. math.max(i - 3, 1) } or {} }
  end
  components[#components + 1] = { name = '__topology_master', kind = 'system', tasks = { next_id } }
  return assert(document.request { topology = 't', components = components, workers = n / 10,
    cluster = cluster_of(n / 5) })
end

-- One container a ten tasks, for `packed`.
local function plan_of(request)
  local containers, at = {}, 0
  for _, component in ipairs(request.components) do
    for k, task in ipairs(component.kind == 'system' and {} or component.tasks) do
      local id = math.floor(at / 10) + 1
      containers[id] = containers[id] or { id = id, cpu = 10, ram = 2 ^ 30, disk = 0, instances = {} }
      table.insert(containers[id].instances, { component = component.name, task = task, index = k - 1,
        cpu = 1, ram = 2 ^ 26, disk = 0 })
      at = at + 1
    end
  end
  return { topology = request.topology, version = 1, packing = 'bench', containers = containers }
end

-- The same topology with 1 % of the tasks changed, half up and half down.
local function change_of(request, previous, mode)
  local change = {}
  for key, value in pairs(request) do change[key] = value end
  change.mode, change.previous, change.components = mode, previous, {}
  local highest = 0
  for _, component in ipairs(request.components) do
    for _, task in ipairs(component.tasks) do highest = math.max(highest, task) end
  end
  for i, component in ipairs(request.components) do
    local tasks = { unpack(component.tasks) }
    local step = component.kind == 'system' and 0 or math.max(1, math.floor(#tasks / 100))
    for _ = 1, step do
      if i % 2 == 0 then
        tasks[#tasks] = nil
      else
        highest = highest + 1
        tasks[#tasks + 1] = highest
      end
    end
    change.components[i] = { name = component.name, kind = component.kind, tasks = tasks,
      inputs = component.inputs }
  end
  return assert(document.request(change))
end

local function core_seconds(bench, prepared, name)
  local result = ffi.new('struct sl_sched_result')
  local before = bench:now()
  local rc = C.sl_scheduling_assign(prepared.struct, native.schedulers[name], result)
  local seconds = bench:now() - before
  assert(rc == 0, ffi.string(C.sl_error_message()))
  local moved = result.moved
  C.sl_scheduling_result_free(result)
  return seconds, moved
end

local function sort_seconds(bench, n)
  local numbers, state = {}, 1
  for i = 1, n do
    state = state * 16807 % 2147483647
    numbers[i] = state
  end
  local before = bench:now()
  table.sort(numbers)
  return bench:now() - before
end

-- The request of a scheduler and mode for n tasks.
local function request_for(name, mode, n)
  local request = request_of(n)
  if name == 'packed' then request.plan = plan_of(request) end
  if mode == 'new' then return request end
  return change_of(request, assert(native.assign(request, 'balanced')), mode)
end

-- Memory that the core takes, measured in a process of its own: what an allocator has from before
-- would hide it.
local function peak_megabytes(name, mode, n)
  local program = require('streamlua.sandbox').program()
  local pipe = assert(io.popen(("'%s' exec '%s' peak %s %s %d"):format(program, PATH, name, mode, n)))
  local text = pipe:read('*a')
  pipe:close()
  return assert(tonumber(text), text)
end

-- Measures one scheduler (with a mode) and returns the seconds of the core.
local function measure(bench, label, name, n, limit, request)
  local rounds = n >= 1e5 and 2 or 4
  local variant = ('%s-1e%d'):format(label, math.floor(math.log10(n) + 0.5))
  local title = ('%s, n = %d'):format(label, n)
  local prepared = native.prepare(request)
  collectgarbage()
  local seconds, moved = core_seconds(bench, prepared, name)
  seconds = bench:least(rounds, function()
    return math.min(seconds, (core_seconds(bench, prepared, name)))
  end)
  bench:figure(variant, title .. ', core', seconds, 's', { limit = limit, better = 'less',
    target = n == 1e5 and TARGETS[label] or nil })
  local before = bench:now()
  assert(native.assign(request, name))
  bench:figure(variant, title .. ', lua', bench:now() - before, 's', { limit = limit })
  bench:figure(variant, title, n / seconds, 'tasks/s')
  bench:figure(variant, title .. ', peak', peak_megabytes(name, request.mode, n), 'MB')
  if request.previous then bench:figure(variant, title .. ', moved', moved, 'tasks') end
  return seconds
end

if arg and arg[1] == 'peak' then
  local name, mode, n = arg[2], arg[3], tonumber(arg[4])
  local prepared = native.prepare(request_for(name, mode, n))
  collectgarbage()
  local peak = dofile(PATH:match('^(.*)bench%.d/') .. 'lib/peak.lua')()
  core_seconds({ now = function() return 0 end }, prepared, name)
  print(peak())
end

return {
  id = 'B10',
  name = 'scheduling',
  run = function(bench)
    local last = bench.quick and 4 or 5
    local times, order = {}, {}
    local function note(label, power, seconds)
      if not times[label] then
        times[label] = {}
        order[#order + 1] = label
      end
      times[label][power] = seconds
    end
    for power = 3, last do
      local n = 10 ^ power
      local limit = bench:least(2, function() return sort_seconds(bench, n) end)
      for _, name in ipairs(native.names) do
        note(name, power, measure(bench, name, name, n, limit, request_for(name, 'new', n)))
      end
      for _, mode in ipairs({ 'keep', 'reassign', 'minimal' }) do
        local label = 'balanced-' .. mode
        note(label, power, measure(bench, label, 'balanced', n, limit,
          request_for('balanced', mode, n)))
      end
    end
    for _, label in ipairs(order) do
      local t = times[label]
      bench:figure(label, label .. ' growth', math.log10(t[last] / t[3]) / (last - 3), 'e')
    end
  end,
}
