-- What a command gets to work with: options, settings, streams, and how to fail.
--
--   run = function(context, args)
--     local plan = context:read_json(args.plan, 'plan')
--     if context.output == 'json' then
--       context:print_json(plan)
--     else
--       context:print_table({ 'ID', 'TASKS' }, rows)
--     end
--   end

local conf = require 'streamlua.conf'
local errors = require 'streamlua.cli.error'
local libc = require 'streamlua.connectors.libc'
local output = require 'streamlua.cli.output'
local progress = require 'streamlua.cli.progress'

local M = {}

local Context = {}

-- Settings are read from files on first use: `version` and `help` work with a broken file.
function Context.__index(self, key)
  if key == 'settings' or key == 'config' or key == 'defaults' then
    local config = conf.load(rawget(self, 'conf_options'))
    rawset(self, 'config', config)
    rawset(self, 'settings', config.values)
    rawset(self, 'defaults', conf.topology_defaults(config))
    return rawget(self, key)
  end
  return Context[key]
end

--- Builds the context of one invocation.
---@param options table {output=, color=, verbose=, quiet=, timeout=, set=, conf_options=, stdout=,
---  stderr=, getenv=, is_service=, stdout_terminal=, stderr_terminal=}
function M.new(options)
  local self = {
    output = options.output or 'table',
    color_mode = options.color or 'auto',
    verbose = options.verbose or 0,
    quiet = options.quiet or 0,
    timeout = options.timeout,
    set = options.set or {},
    conf_options = options.conf_options or {},
    getenv = options.getenv or os.getenv,
    is_service = options.is_service or false,
    stdout = output.writer(options.stdout or io.stdout),
    stderr = options.stderr or io.stderr,
  }
  self.color = output.use_color(self.color_mode, 1, self.getenv)
  self.color_stderr = output.use_color(self.color_mode, 2, self.getenv)
  return setmetatable(self, Context)
end

--- Fails the command. Never returns.
---@param code string|integer of the exit table: 'not_found', 'invalid', 7 ...
---@param what string what failed, e.g. "plan 'a.json'"
---@param why any? the reason; an error object of the library is shown by its message
---@param hint string? what the user can do
---@param place table? {file=, line=, traceback=}
function Context.fail(_, code, what, why, hint, place)
  error(errors.new(code, what, why, hint, place), 0)
end

--- Fails with an error of the library: its code decides the exit code (docs/cli.md).
---@param err any
---@param what string? what failed
---@param hint string?
function Context.fail_with(_, err, what, hint)
  error(errors.from_library(err, what, hint), 0)
end

--- `value, err` of a library call: the value, or the command fails.
function Context.check(self, value, err, what, hint)
  if value == nil then
    self:fail_with(err, what, hint)
  end
  return value
end

--- Calls user code; what it raises becomes an error object with `file:line:` in front and the
--- given exit code.
---@param code string|integer
---@param fn function
---@return any ...
function Context.call_user(_, code, fn, ...)
  local arguments, n = { ... }, select('#', ...)
  local trace
  local results = { xpcall(function()
    return fn(unpack(arguments, 1, n))
  end, function(value)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return value
  end) }
  if not results[1] then
    error(errors.from_lua(code, results[2], trace), 0)
  end
  return unpack(results, 2, table.maxn(results))
end

--- Makes standard output the command's alone: what user code prints from now on goes to standard
--- error. A document on standard output stays one document.
function Context.keep_stdout(self)
  if self.stdout.file ~= io.stdout then return end
  io.stdout:flush()
  local fd = self:check(libc.dup(1))
  self:check(libc.dup2(2, 1))
  self.stdout = output.writer({
    write = function(_, ...) return libc.write_all(fd, table.concat({ ... })) end,
    flush = function() return true end,
  })
end

--- Prints one JSON document on standard output; `order` of its keys as for streamlua.json.encode.
function Context.print_json(self, value, order)
  self.stdout:write(output.json_text(value, order))
end

--- Writes one JSON document to a file, or the command fails; `what` the document is, for the message.
---@param path string
---@param value any
---@param what string
---@param order? table of its keys
function Context.write_json(self, path, value, what, order)
  local text = output.json_text(value, order)
  local file, message = io.open(path, 'w')
  if not file then self:fail('failed', what, message) end
  file:write(text)
  -- A full disk shows when the buffer is written, not when it is filled.
  local ok, why = file:flush()
  file:close()
  if not ok then self:fail('failed', ("%s '%s'"):format(what, path), why) end
end

--- Prints an aligned table: columns are titles or {title=, align=}, rows lists of values.
---@param options table? {headers=false, indent=}
function Context.print_table(self, columns, rows, options)
  options = options or {}
  self.stdout:write(output.table_text(columns, rows, {
    headers = options.headers, indent = options.indent, color = self.color }))
end

--- Prints text lines on standard output.
function Context.print(self, ...)
  self.stdout:write(...)
  self.stdout:write('\n')
end

--- Text in a colour when standard output is coloured.
function Context.paint(self, colour, text)
  return output.paint(self.color, colour, text)
end

--- A note on standard error, unless -q was given.
function Context.note(self, ...)
  if self.quiet == 0 then
    self.stderr:write(...)
    self.stderr:write('\n')
  end
end

--- A warning on standard error.
function Context.warn(self, text)
  if self.quiet < 2 then
    self.stderr:write(output.paint(self.color_stderr, 'yellow', 'warning:'), ' ', text, '\n')
  end
end

--- A progress display on standard error; silent with -q.
---@param options table? see streamlua.cli.progress
function Context.progress(self, options)
  options = options or {}
  options.file = options.file or self.stderr
  options.color = self.color_stderr
  if options.quiet == nil then options.quiet = self.quiet > 0 end
  return progress.new(options)
end

--- Reads a JSON document from a file ('-' is standard input): not_found or invalid on failure.
---@param path string
---@param what string? what the document is, for the message
---@param options table? {max_bytes=, max_depth=}
function Context.read_json(self, path, what, options)
  local input = require 'streamlua.cli.input'
  return self:_loaded(input.read_json(path, options), what, path)
end

--- Reads a document that may be JSON or Lua data.
function Context.read_document(self, path, what, options)
  local input = require 'streamlua.cli.input'
  return self:_loaded(input.read_document(path, options), what, path)
end

function Context._loaded(self, result, what, path)
  if result.code then
    local name = ("%s '%s'"):format(what or 'file', path)
    local why = result.line and ('%s:%d: %s'):format(path, result.line, result.message)
      or result.message
    self:fail(result.code, name, why, nil, { file = path, line = result.line })
  end
  return result.value
end

return M
