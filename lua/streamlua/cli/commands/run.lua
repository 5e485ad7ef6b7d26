-- `streamlua run SCRIPT`: a whole topology in this process.

local abi = require 'streamlua.abi'
local units = require 'streamlua.units'

local C = abi.C

-- Errors of one task that are shown one by one; later ones are only counted.
local SHOWN_ERRORS = 10

local function error_printer(context)
  local counts = {}
  return function(task, text)
    local count = (counts[task] or 0) + 1
    counts[task] = count
    if count <= SHOWN_ERRORS then
      context.stderr:write(('error: %s: %s\n'):format(task, text))
    elseif count == SHOWN_ERRORS + 1 then
      context.stderr:write(('error: %s: further errors are counted only\n'):format(task))
    end
  end
end

-- Shows the rates of all components, from the counters of two moments.
local function progress_printer(context, topology)
  local display = context:progress()
  local before, before_s = {}, 0
  return display, function(stats, seconds)
    local rows = {}
    for i, entry in ipairs(topology.components) do
      local sums = stats[entry.name]
      local total = entry.kind == 'spout' and sums.emitted or sums.executed
      rows[i] = {
        name = entry.name,
        rate = (total - (before[entry.name] or 0)) / math.max(seconds - before_s, 1e-3),
        queue = sums.pending,
        failed = sums.failed + sums.errors,
      }
      before[entry.name] = total
    end
    before_s = seconds
    display:components(rows)
  end
end

local function sorted_names(topology)
  local names = {}
  for i, entry in ipairs(topology.components) do names[i] = entry.name end
  return names
end

local function print_summary(context, topology, summary)
  if context.quiet > 0 then return end
  local rows = {}
  for i, name in ipairs(sorted_names(topology)) do
    local c = summary.components[name]
    rows[i] = { name, c.emitted, c.executed, c.acked or '', c.failed or '', c.errors or '' }
  end
  local right = 'right'
  local columns = { 'COMPONENT' }
  for _, title in ipairs({ 'EMITTED', 'EXECUTED', 'ACKED', 'FAILED', 'ERRORS' }) do
    columns[#columns + 1] = { title = title, align = right }
  end
  local output = require 'streamlua.cli.output'
  context.stderr:write(output.table_text(columns, rows, { color = context.color_stderr }))
  local latency = summary.complete_latency_ms
  context.stderr:write(('topology %s: %.2f s%s\n'):format(summary.topology, summary.seconds,
    latency and (', complete latency p50 %.3g ms, p99 %.3g ms'):format(latency.p50, latency.p99)
    or ''))
  for i, advice in ipairs(summary.advice or {}) do
    if i > 3 and context.verbose == 0 then break end
    context.stderr:write(('advice: %s does not compile: %s\n'):format(advice.place, advice.reason))
  end
end

local function write_summary(context, path, summary)
  local json = require 'streamlua.json'
  local file, message = io.open(path, 'w')
  if not file then context:fail('failed', 'summary', message) end
  local ok, why = file:write(json.encode(summary), '\n')
  file:close()
  if not ok then context:fail('failed', ("summary '%s'"):format(path), why) end
end

local function load_topology(context, args)
  local load = require 'streamlua.topology.load'
  local options = { set = context.set, defaults = context.settings.config }
  local topology, failure = load.script(args.script, options)
  if not topology then
    context:fail_with(failure, ("script '%s'"):format(args.script))
  elseif load.kind(topology) ~= 'topology' then
    context:fail('invalid', ("script '%s'"):format(args.script), 'it returns no topology')
  end
  for _, problem in ipairs(topology:validate()) do
    if problem.severity == 'error' then
      context:fail('invalid', ('%s:%d'):format(problem.file or args.script, problem.line or 1),
        problem.message, ("'streamlua check %s' lists all problems"):format(args.script))
    end
  end
  return topology, options
end

-- The exit code of an outcome, after saying what went wrong.
local function conclude(context, outcome)
  if outcome.stuck then
    local what = #outcome.stuck > 0 and table.concat(outcome.stuck, ', ') or 'an executor'
    context.stderr:write(('error: run: still in user code: %s\n'):format(what))
    context.stderr:flush()
    C.sl_abi_process_exit(outcome.signal and 128 + outcome.signal or 1)
  end
  if outcome.reason == 'failed' then
    context:fail('failed', outcome.failure.task or 'run', outcome.failure.message)
  elseif outcome.signal then
    return 128 + outcome.signal
  elseif outcome.is_aborted then
    context.stderr:write('error: run: what was in flight did not finish in time\n')
    return 1
  end
  return 0
end

return {
  name = 'run',
  summary = 'Run a topology in this process until its spouts are done.',
  description = 'Runs the whole topology in this process, one worker whatever `containers` says, '
    .. 'until its spouts are DONE and drained, the time to live has passed, or Ctrl-C (which '
    .. 'drains; a second one aborts).',
  declare = function(command)
    command:argument('script', 'Lua file that returns a topology.'):argname('SCRIPT')
    command:option('--ttl', 'End after this time.'):argname('D'):convert(units.parse_duration)
    command:option('--executors', 'Threads; default: cores or tasks, whichever is less.')
      :argname('N'):convert(function(text)
        local n = tonumber(text)
        if n and n >= 1 and n <= 1024 and n == math.floor(n) then return n end
        return nil, ("'%s' is no whole number from 1 to 1024"):format(text)
      end)
    command:option('--summary', 'Write the summary document to FILE.'):argname('FILE')
  end,
  run = function(context, args)
    local run = require 'streamlua.runtime.run'
    local topology, options = load_topology(context, args)
    local display, on_progress
    if context.quiet == 0 then display, on_progress = progress_printer(context, topology) end
    local outcome = run.run(topology, {
      executors = args.executors,
      ttl_ms = args.ttl and args.ttl * 1000,
      set = options.set,
      defaults = options.defaults,
      verbose = context.verbose > 0,
      catch_signals = true,
      on_error = error_printer(context),
      on_progress = on_progress,
      progress_ms = display and display.interval_s * 1000,
    })
    if display then display:close() end
    print_summary(context, topology, outcome.summary)
    if args.summary then write_summary(context, args.summary, outcome.summary) end
    return conclude(context, outcome)
  end,
}
