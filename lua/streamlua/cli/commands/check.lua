-- `streamlua check SCRIPT`: loads and validates a script, one line a problem; nothing runs.

local isolated = require 'streamlua.cli.isolated'
local load = require 'streamlua.topology.load'
local place = require 'streamlua.topology.place'
local script = require 'streamlua.cli.script'
local topology = require 'streamlua.topology'
local units = require 'streamlua.units'

-- Seconds a script may take to load when --timeout says nothing.
local DEFAULT_TIMEOUT = 30

-- The words for errors of loading, beside those of validation.
local codes = { EINVAL = 'bad-script', EUSER = 'raised', ENOTFOUND = 'not-found', EIO = 'unreadable',
  ELIMIT = 'too-large' }

-- Runs in the child: everything that is known of the script, as data.
local function examine(path, set, defaults)
  local program, err = load.script(path, { set = set, defaults = defaults })
  if not program then
    return { load_error = { code = err.code, message = err.message, hint = err.hint, file = err.file,
      line = err.line, traceback = err.traceback } }
  end
  local problems = type(program.validate) == 'function' and program:validate() or {}
  return { kind = load.kind(program), name = program.name, problems = problems,
    components = program.components and #program.components or nil }
end

-- A list of one error at the script as a whole.
local function one_problem(path, code, message, hint)
  return { problems = { { file = path, line = 1, severity = 'error', code = code, message = message,
    hint = hint } } }
end

local function report_of(path, result, timeout)
  if result.timed_out then
    return one_problem(path, 'timeout', ('still loading after %s'):format(
      units.duration_text(timeout)), 'is there a loop that never ends? --timeout allows more')
  elseif result.raised then
    return one_problem(path, 'raised', result.raised)
  elseif result.ended == 'exited' then
    return one_problem(path, 'ended', ('it ended the process while loading, with exit code %d')
      :format(result.code))
  elseif result.ended then
    return one_problem(path, 'ended', ('the process died of signal %d while loading'):format(
      result.code))
  end
  local report = result.value
  local err = report.load_error
  if err then
    report.problems = { { file = err.file or path, line = err.line or 1, severity = 'error',
      code = codes[err.code] or 'raised', message = err.message, hint = err.hint,
      traceback = err.traceback } }
  end
  return report
end

local function print_text(context, path, report, errors, warnings)
  for _, problem in ipairs(report.problems) do
    local colour = problem.severity == 'error' and 'red' or 'yellow'
    context:print(('%s:%d: %s %s [%s]'):format(problem.file, problem.line,
      context:paint(colour, problem.severity .. ':'), problem.message, problem.code))
    if problem.hint then context:note('hint: ' .. problem.hint) end
    if problem.traceback and context.verbose > 0 then context.stderr:write(problem.traceback, '\n') end
  end
  local what = report.name and ('%s %s'):format(
    report.kind == 'streaming' and 'stream' or 'topology', place.shown(report.name)) or path
  if errors > 0 or warnings > 0 then
    context:note(('%s: %s'):format(what, script.count_text(errors, warnings)))
  else
    context:note(('%s: ok'):format(what))
  end
end

local function print_json(context, path, report, errors)
  local problems = {}
  for i, problem in ipairs(report.problems) do
    problems[i] = { file = problem.file, line = problem.line, severity = problem.severity,
      code = problem.code, message = problem.message, hint = problem.hint,
      component = problem.component }
  end
  context:print_json({ script = path, topology = report.name, kind = report.kind,
    valid = errors == 0, problems = problems })
  if errors > 0 then
    context:fail('invalid', path, script.count_text(errors, #problems - errors))
  end
end

return {
  name = 'check',
  summary = 'Load and validate a script; nothing runs.',
  description = 'Load and validate a script; nothing runs. One line a problem: '
    .. 'FILE:LINE: error: ...; exit 7 when there is an error. A script that is still loading after '
    .. '--timeout (default 30s) is ended.',
  declare = function(command)
    command:argument('script', 'Lua file that returns a topology.'):argname('SCRIPT')
  end,
  run = function(context, args)
    local timeout = context.timeout or DEFAULT_TIMEOUT
    local defaults = context.defaults
    local result = isolated.run(function() return examine(args.script, context.set, defaults) end,
      { timeout = timeout })
    local report = report_of(args.script, result, timeout)
    local err = report.load_error
    if err and (err.code == 'ENOTFOUND' or err.code == 'EIO') then
      script.fail(context, args.script, err)
    end
    local errors, warnings = topology.count(report.problems)
    local output = context.output == 'json' and print_json or print_text
    output(context, args.script, report, errors, warnings)
    return errors > 0 and 'invalid' or 'ok'
  end,
}
