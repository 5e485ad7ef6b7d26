-- `streamlua run SCRIPT`: a whole topology in this process.

local abi = require 'streamlua.abi'
local error_lines = require 'streamlua.cli.error_lines'
local load = require 'streamlua.topology.load'
local order = require 'streamlua.cli.order'
local script = require 'streamlua.cli.script'
local units = require 'streamlua.units'

local C = abi.C

-- Returns a function that shows the rates of all components, from the counters of two moments.
local function progress_printer(display, topology)
  local before, before_s = {}, 0
  return function(stats, seconds)
    local rows = {}
    for i, entry in ipairs(topology.components) do
      local sums = stats[entry.name]
      local total = entry.kind == 'spout' and sums.emitted or sums.executed
      rows[i] = {
        name = entry.name,
        rate = (total - (before[entry.name] or 0)) / math.max(seconds - before_s, 1e-3),
        latency_ms = sums.latency_ms,
        queue = entry.kind == 'spout' and sums.pending or sums.queued,
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

-- What would make the topology faster; without -v the three most frequent findings.
local function print_advice(context, advice)
  for i, found in ipairs(advice) do
    if i > 3 and context.verbose == 0 then
      context.stderr:write(('advice: %d more with -v\n'):format(#advice - 3))
      break
    end
    context.stderr:write(('advice: %s at %s is not compiled: %s\n'):format(found.what, found.place,
      found.reason))
    if found.hint and context.verbose > 0 then
      context.stderr:write(('  hint: %s\n'):format(found.hint))
    end
  end
end

local function three_digits(x) return (x < 999.5 and '%.3g' or '%.0f'):format(x) end

local function print_summary(context, topology, summary)
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
    latency and (', complete latency p50 %s ms, p99 %s ms'):format(three_digits(latency.p50),
      three_digits(latency.p99)) or ''))
  print_advice(context, summary.advice or {})
end

-- The program of the script, without errors, and with what executors load it.
local function load_program(context, args)
  local options = { set = context.set, defaults = context.defaults }
  -- A stream program goes on where its checkpoint ends.
  require('streamlua.streaming.mode').is_automatic = true
  -- Its code becomes this process's, so it can not be loaded in one of its own as other commands do.
  local topology = script.load(context, args.script,
    { defaults = options.defaults, is_limited = true })
  for _, problem in ipairs(topology:validate()) do
    if problem.severity == 'error' then
      context:fail('invalid', ('%s:%d'):format(problem.file or args.script, problem.line or 1),
        problem.message, ("'streamlua check %s' lists all problems"):format(args.script))
    elseif problem.code == 'misspelt' and context.quiet == 0 and context.output ~= 'json' then
      -- What was meant to work does not, and nothing else will say so.
      context.stderr:write(script.problem_line(problem), '\n')
    end
  end
  return topology, options
end

-- The exit code of an outcome that is no failure.
local function exit_code(outcome)
  if outcome.signal then return 128 + outcome.signal end
  return outcome.stuck and outcome.reason ~= 'ttl' and 1 or 0
end

-- Says what went wrong. Returns the exit code, or ends the process when threads are left that do not
-- come back from user code.
local function conclude(context, outcome)
  if outcome.failure then
    local message, more = outcome.failure.message:match('^([^\n]*)\n?(.*)$')
    local place = { traceback = more }
    place.file, place.line = message:match('^(.-):(%d+): ')
    place.line = tonumber(place.line)
    context:fail('failed', outcome.failure.task or 'run', message, nil, place)
  end
  if outcome.in_flight > 0 then
    context.stderr:write(('error: run: ended with %d tuples in flight\n'):format(outcome.in_flight))
  end
  if outcome.stuck then
    local what = #outcome.stuck > 0 and table.concat(outcome.stuck, ', ') or 'an executor'
    context.stderr:write(('error: run: still in user code: %s\n'):format(what))
    context.stderr:flush()
    C.sl_abi_process_exit(exit_code(outcome))
  end
  return exit_code(outcome)
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
    if context.output == 'json' then context:keep_stdout() end
    local run = require 'streamlua.runtime.run'
    local topology, options = load_program(context, args)
    if load.kind(topology) == 'streaming' then
      return require('streamlua.cli.stream_run').run(context, args, topology, options)
    end
    local is_json = context.output == 'json'
    local is_shown = context.quiet == 0 and not is_json
    local display = context:progress({ quiet = not is_shown })
    local on_error, errors = error_lines.new(function(line)
      if is_shown then
        display:phase(line)
      elseif not is_json then
        context.stderr:write(line, '\n')
      end
    end)
    local outcome = run.run(topology, {
      executors = args.executors,
      ttl_ms = args.ttl and args.ttl * 1000,
      set = options.set,
      defaults = options.defaults,
      verbose = context.verbose > 0,
      catch_signals = true,
      on_error = on_error,
      on_drain = function(reason)
        if is_shown and reason == 'signal' then
          display:phase('draining; interrupt again to end at once')
        end
      end,
      on_progress = is_shown and progress_printer(display, topology) or nil,
      progress_ms = display.interval_s * 1000,
    })
    display:close()
    if #errors > 0 then outcome.summary.messages = errors end
    if is_shown and not outcome.failure then
      print_summary(context, topology, outcome.summary)
    end
    if args.summary then
      context:write_json(args.summary, outcome.summary, 'summary', order.summary(topology))
    end
    if is_json and not outcome.failure then
      context:print_json(outcome.summary, order.summary(topology))
    end
    return conclude(context, outcome)
  end,
}
