-- The names that a REPL session starts with. Everything they return is plain data; what belongs to a
-- value (the request behind an assignment, how a difference is shown) is remembered beside it.
--
--   t = load_topology 'wordcount.lua'
--   c = cluster { supervisors = 3, slots = 4 }
--   a = schedule(t, c)
--   b = schedule(t, c, { previous = a, mode = 'minimal', parallelism = { count = 6 } })
--   diff(a, b)

local err = require 'streamlua.err'
local error_lines = require 'streamlua.cli.error_lines'
local load = require 'streamlua.topology.load'
local packing = require 'streamlua.packing'
local printer = require 'streamlua.repl.printer'
local scheduling = require 'streamlua.scheduling'
local topology = require 'streamlua.topology'

local M = {}

-- The request that a plan or an assignment was made from.
local request_of = setmetatable({}, { __mode = 'k' })

-- Failures of the library are raised at a prompt.
local function check(value, failure)
  if value == nil then error(failure, 0) end
  return value
end

local function known(...)
  local map = {}
  for _, name in ipairs({ ... }) do map[name] = true end
  return map
end

-- An argument of a type, said by the name of the function it is for.
local function expect(value, wanted, text)
  if type(value) ~= wanted then
    error(err.new('EINVAL', ('%s, got %s'):format(text, value == nil and 'nothing'
      or 'a ' .. type(value))), 0)
  end
  return value
end

-- Options of a function: {} when there are none; a name that is none of its own is an error.
local function options_of(what, opts, names)
  if opts == nil then return {} end
  expect(opts, 'table', what .. ' takes its options as a table')
  local list = {}
  for name in pairs(names) do list[#list + 1] = name end
  table.sort(list)
  for key in pairs(opts) do
    if not names[key] then
      error(err.new('EINVAL', ("%s has no option '%s' (it has: %s)"):format(what, tostring(key),
        table.concat(list, ', '))), 0)
    end
  end
  return opts
end

local function plain_copy(value)
  if type(value) ~= 'table' then return value end
  local copy = {}
  for key, item in pairs(value) do copy[key] = plain_copy(item) end
  return copy
end

local function first_error(t)
  for _, problem in ipairs(t:validate()) do
    if problem.severity == 'error' then
      error(err.new('EINVAL', ('%s:%d: %s'):format(problem.file or '?', problem.line or 1,
        problem.message)), 0)
    end
  end
end

local function topology_text(t)
  local rows = {}
  for i, entry in ipairs(t.components) do
    local inputs = {}
    for k, input in ipairs(entry.inputs) do inputs[k] = input.source end
    rows[i] = { entry.name, entry.kind, entry.parallelism, table.concat(inputs, ', ') }
  end
  return ("topology '%s'\n"):format(t.name) .. require('streamlua.cli.output').table_text(
    { 'COMPONENT', 'KIND', { title = 'PARALLELISM', align = 'right' }, 'READS' }, rows)
end

local function remember_assignment(assignment, request)
  request_of[assignment] = request
  return printer.show_as(assignment, function(color)
    return scheduling.render(assignment, { request = request, color = color })
  end)
end

-- A scheduler or packer as it is shown: its name and file.
local function named(value, what)
  return setmetatable(value, { __tostring = function(self)
    return ('%s %s (%s)'):format(what, self.name, self.path or 'built in')
  end })
end

--- The names of a session.
---@param session table
---@return table
function M.make(session)
  local names = {}
  local context = session.context

  names.streamlua = require 'streamlua'
  local ok, streaming = pcall(require, 'streamlua.streaming')
  names.streaming = ok and streaming or nil

  --- Loads a topology script and checks it. Its module folder is where the script is.
  --- Example: t = load_topology 'wordcount.lua'
  function names.load_topology(path)
    expect(path, 'string', 'load_topology takes the path of a script')
    local t, failure = load.script(path, { set = context.set, defaults = context.defaults })
    if not t then
      local where = failure.line and ('%s:%d'):format(failure.file, failure.line)
        or ("script '%s'"):format(path)
      failure.message = where .. ': ' .. failure.message
      error(failure, 0)
    end
    if load.kind(t) ~= 'topology' then
      error(err.new('EINVAL', path .. ' returns a streaming context, not a topology'), 0)
    end
    first_error(t)
    return printer.show_as(t, function() return topology_text(t) end)
  end

  --- Makes a cluster: { supervisors = 3, slots = 4 }, or the full form with a list of supervisors
  --- { id =, host =, ports = {..}, used = {..}, cpu =, ram =, rack =, load = }.
  function names.cluster(description) return check(scheduling.cluster(description)) end

  --- A packer by name (round_robin, first_fit_decreasing, resource_compliant_rr) or by the path of a
  --- Lua file; `:reload()` reads the file again.
  function names.packer(name_or_path)
    expect(name_or_path, 'string', 'packer takes a name or a path')
    return named(check(packing.packer(name_or_path)), 'packer')
  end

  --- A scheduler by name (balanced, even, round_robin, packed, or one of scripts/schedulers) or by
  --- the path of a Lua file; `:reload()` reads the file again.
  function names.scheduler(name_or_path)
    expect(name_or_path, 'string', 'scheduler takes a name or a path')
    return named(check(scheduling.scheduler(name_or_path)), 'scheduler')
  end

  --- Packs a topology into containers. opts: packer (name, path or packer), parallelism (by
  --- component), config, containers.
  function names.pack(t, opts)
    expect(t, 'table', 'pack takes a topology or a request')
    opts = options_of('pack', opts, known('packer', 'packing', 'parallelism', 'config', 'containers'))
    local request = topology.is(t) and packing.request_from_topology(t, opts) or plain_copy(t)
    local plan = check(packing.pack(request, opts.packer or opts.packing))
    request_of[plan] = request
    return plan
  end

  --- Changes a plan: changes are signed by component, { count = 2, split = -1 }. opts: packer,
  --- containers.
  function names.repack(plan, changes, opts)
    opts = options_of('repack', opts, known('packer', 'packing', 'repacking', 'containers'))
    local request = request_of[plan]
    local changed = check(packing.repack(plan, changes, { request = request,
      repacker = opts.packer or opts.repacking or opts.packing, containers = opts.containers }))
    request_of[changed] = request
    return changed
  end

  --- Assigns the tasks of a topology to the workers of a cluster. opts: scheduler (name, path or
  --- scheduler; default balanced), mode (keep, reassign, minimal, monitor), previous (assignment),
  --- parallelism (by component), dead (list of { supervisor =, port = }).
  function names.schedule(t, cluster, opts)
    expect(t, 'table', 'schedule takes a topology or a request')
    opts = options_of('schedule', opts, known('scheduler', 'mode', 'previous', 'parallelism', 'dead'))
    local chosen = opts.scheduler or (topology.is(t) and t.config.scheduler) or scheduling.DEFAULT
    local name = type(chosen) == 'table' and chosen.name or chosen
    local request
    if topology.is(t) then
      request = check(scheduling.request_from_topology(t, cluster, { scheduler = name,
        mode = opts.mode, previous = opts.previous, parallelism = opts.parallelism,
        dead = opts.dead }))
    else
      request = plain_copy(t)
      request.cluster = cluster or request.cluster
      request.mode, request.previous = opts.mode or request.mode, opts.previous or request.previous
      request = check(scheduling.validate_request(request))
    end
    local assignment = check(scheduling.assign(request, chosen))
    if topology.is(t) then
      assignment.components = require('streamlua.scheduling.topology').components_to_keep(t, request)
    end
    return remember_assignment(assignment, request)
  end

  --- The request that `schedule` or `pack` made a result from.
  function names.request(value) return plain_copy(request_of[value]) end

  --- What lies between two assignments, or between two plans.
  function names.diff(a, b)
    if type(a) == 'table' and a.containers and type(b) == 'table' and b.containers then
      local delta, show = packing.diff(a, b)
      return printer.show_as(check(delta, show), show)
    end
    local delta = check(scheduling.diff(a, b))
    return printer.show_as(delta, function(color)
      return scheduling.render_diff(delta, { color = color })
    end)
  end

  --- Figures of an assignment: workers, min_tasks, max_tasks, cross_worker_edges, cross_node_edges,
  --- moved. Edges are known for what `schedule` returned.
  function names.evaluate(assignment)
    return check(scheduling.evaluate(assignment, request_of[assignment]))
  end

  --- Prints values as Lua's print does, and tables the way the session shows them.
  function names.print(...)
    local texts = {}
    for i = 1, select('#', ...) do
      local value = select(i, ...)
      texts[i] = type(value) == 'table' and printer.text(value, { color = session.context.color })
        or tostring(value)
    end
    session:write(table.concat(texts, '\t'), '\n')
  end

  --- Runs a topology in this process until it is done or opts.ttl has passed ("5s"), and returns its
  --- summary; Ctrl-C drains it.
  function names.run(t, opts)
    return M.run(session, t, options_of('run', opts, known('ttl', 'executors')))
  end

  --- Tries a scheduler on random clusters and topologies and returns what it breaks, at most ten
  --- findings. opts: cases (100), seed (1).
  function names.fuzz(scheduler, opts)
    return require('streamlua.repl.fuzz').run(scheduler, options_of('fuzz', opts,
      known('cases', 'seed')))
  end

  --- Connects to a cluster by name, or to that of the session. Returns c with c:list(), c:describe(name),
  --- c:plan(name) and c:plans(), which look at the running topologies and change nothing.
  --- Example: a = connect():plan 'wordcount'
  function names.connect(cluster)
    if cluster ~= nil then expect(cluster, 'string', 'connect takes the name of a cluster') end
    return require('streamlua.repl.live').connect(context, cluster)
  end

  return names
end

--- Runs a topology for `run`.
function M.run(session, t, opts)
  if not topology.is(t) or not t.script then
    error(err.new('EINVAL', 'run takes a topology of load_topology'), 0)
  end
  local ttl
  if opts.ttl ~= nil then
    local seconds, message = require('streamlua.units').parse_duration(opts.ttl)
    if not seconds then error(err.new('EINVAL', 'ttl: ' .. message), 0) end
    ttl = seconds * 1000
  end
  local interrupt = session.interrupt
  -- The engine takes Ctrl-C itself while it runs.
  if interrupt then interrupt.disarm() end
  local outcome = require('streamlua.runtime.run').run(t, {
    ttl_ms = ttl, executors = opts.executors, set = session.context.set,
    defaults = session.context.defaults, catch_signals = true,
    on_error = error_lines.new(function(line) session.context.stderr:write(line, '\n') end),
  })
  if interrupt then interrupt.open() end
  if outcome.reason == 'failed' then
    error(err.new('EUSER', ('%s: %s'):format(outcome.failure.task or 'run',
      outcome.failure.message)), 0)
  end
  return outcome.summary
end

return M
