-- Topology scripts for commands: load one, with --set in force, or fail the way docs/cli.md says.
--
--   local script = require 'streamlua.cli.script'
--   local t = script.load_valid(context, args.script)   -- a topology without errors
--   local program = script.load(context, args.script)   -- a topology or a streaming context

local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local cli_error = require 'streamlua.cli.error'
local load = require 'streamlua.topology.load'
local units = require 'streamlua.units'
local topology = require 'streamlua.topology'

local M = {}

--- Seconds a script may take to load when --timeout says nothing.
M.TIMEOUT = 30

local function place_text(failure)
  return failure.line and ('%s:%d'):format(failure.file, failure.line) or failure.file
end

--- Fails the command with an error of streamlua.topology.load: exit 3 for a missing file, else 7.
---@param context table
---@param path string
---@param failure table
function M.fail(context, path, failure)
  if failure.code == 'ENOTFOUND' then
    context:fail('not_found', ("script '%s'"):format(path), failure.message, failure.hint)
  end
  local code = failure.code == 'EIO' and 'failed' or 'invalid'
  context:fail(code, place_text(failure), failure.message, failure.hint,
    { file = failure.file, line = failure.line, traceback = failure.traceback })
end

--- What a command says of a script that is still loading after `timeout` seconds.
---@param path string
---@param timeout number
---@return table error
function M.timeout_error(path, timeout)
  return cli_error.new('invalid', ("script '%s'"):format(path),
    ('still loading after %s'):format(units.duration_text(timeout)),
    'is there a loop that never ends? --timeout allows more')
end

-- A loop that the JIT compiled can only be ended together with its process.
local function set_limit(context, path)
  local timeout = context.timeout or M.TIMEOUT
  local failure = M.timeout_error(path, timeout)
  local text = require('streamlua.cli').error_text(failure,
    { json = context.output == 'json', color = context.color_stderr })
  if abi.C.sl_abi_deadline_set(timeout * 1000, text, failure.exit) ~= 0 then
    local _, why = err.last()
    context:fail_with(why, 'run')
  end
end

--- Loads a script: its topology or streaming context. --set overrides the config.
---@param context table
---@param path string
---@param options? table defaults = config below the script's own, args, is_limited = the process
---  ends with an error when the script does not stop loading
---@return table program
function M.load(context, path, options)
  options = options or {}
  if options.is_limited then set_limit(context, path) end
  local program, failure = load.script(path,
    { set = context.set, defaults = options.defaults, args = options.args })
  if options.is_limited then abi.C.sl_abi_deadline_clear() end
  if not program then M.fail(context, path, failure) end
  return program
end

--- One line of a problem: "file:line: severity: message [code]".
---@param problem table
---@return string
function M.problem_line(problem)
  return ('%s:%d: %s: %s [%s]'):format(problem.file or '?', problem.line or 1, problem.severity,
    problem.message, problem.code)
end

--- "2 errors, 1 warning".
---@param errors integer
---@param warnings integer
---@return string
function M.count_text(errors, warnings)
  local function count(n, word) return ('%d %s%s'):format(n, word, n == 1 and '' or 's') end
  if warnings == 0 then return count(errors, 'error') end
  if errors == 0 then return count(warnings, 'warning') end
  return count(errors, 'error') .. ', ' .. count(warnings, 'warning')
end

--- Validates a topology: warnings are printed on standard error, errors fail the command with 7.
---@param context table
---@param t table topology
function M.validate(context, t)
  local problems = t:validate()
  local errors, warnings = topology.count(problems)
  local first
  for _, problem in ipairs(problems) do
    if problem.severity == 'error' then first = first or problem end
    -- One error alone is the command's error line.
    if problem.severity == 'warning' or errors > 1 then
      context.stderr:write(M.problem_line(problem), '\n')
    end
  end
  if errors == 1 then
    context:fail('invalid', ('%s:%d'):format(first.file, first.line), first.message, nil, first)
  elseif errors > 1 then
    context:fail('invalid', ("topology '%s'"):format(t.name),
      M.count_text(errors, warnings) .. ', the first: ' .. first.message, nil,
      { file = first.file, line = first.line })
  end
end

--- Loads a script that must return a topology, and validates it.
---@param context table
---@param path string
---@param options? table as load takes; takes_streams = a stream program gives the topology it is
---  submitted as
---@return table topology
function M.load_valid(context, path, options)
  -- A stream program is declared here, and started elsewhere.
  require('streamlua.streaming.mode').is_member = options and options.takes_streams or false
  local t = M.load(context, path, options)
  if load.kind(t) == 'streaming' and options and options.takes_streams then
    M.validate(context, t)
    t = require('streamlua.streaming.submission').topology(t, options.defaults)
  elseif load.kind(t) ~= 'topology' then
    context:fail('invalid', path, 'it returns a streaming context, and this command takes topologies')
  end
  M.validate(context, t)
  return t
end

return M
