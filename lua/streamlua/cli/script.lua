-- Topology scripts for commands: load one, with --set in force, or fail the way docs/cli.md says.
--
--   local script = require 'streamlua.cli.script'
--   local t = script.load_valid(context, args.script)   -- a topology without errors
--   local program = script.load(context, args.script)   -- a topology or a streaming context

local load = require 'streamlua.topology.load'
local topology = require 'streamlua.topology'

local M = {}

local function place_text(err)
  return err.line and ('%s:%d'):format(err.file, err.line) or err.file
end

--- Fails the command with an error of streamlua.topology.load: exit 3 for a missing file, else 7.
---@param context table
---@param path string
---@param err table
function M.fail(context, path, err)
  if err.code == 'ENOTFOUND' then
    context:fail('not_found', ("script '%s'"):format(path), err.message, err.hint)
  end
  local code = err.code == 'EIO' and 'failed' or 'invalid'
  context:fail(code, place_text(err), err.message, err.hint,
    { file = err.file, line = err.line, traceback = err.traceback })
end

--- Loads a script: its topology or streaming context. --set overrides the config.
---@param context table
---@param path string
---@param options? table defaults = config below the script's own, args
---@return table program
function M.load(context, path, options)
  options = options or {}
  local program, err = load.script(path,
    { set = context.set, defaults = options.defaults, args = options.args })
  if not program then M.fail(context, path, err) end
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
---@param options? table as load takes
---@return table topology
function M.load_valid(context, path, options)
  local t = M.load(context, path, options)
  if load.kind(t) ~= 'topology' then
    context:fail('invalid', path, 'it returns a streaming context, and this command takes topologies')
  end
  M.validate(context, t)
  return t
end

return M
