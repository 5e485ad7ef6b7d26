-- The command line: from argv to an exit code. Finds the command, parses options with their
-- STREAMLUA_ twins, runs it, and is the only place that catches errors and prints them.
--
--   local cli = require 'streamlua.cli'
--   local code = cli.main({ [0] = 'streamlua', 'version' })

local commands = require 'streamlua.cli.commands'
local conf = require 'streamlua.conf'
local errors = require 'streamlua.cli.error'
local exit = require 'streamlua.cli.exit'
local libc = require 'streamlua.connectors.libc'
local order = require 'streamlua.cli.order'
local output = require 'streamlua.cli.output'
local parser = require 'streamlua.cli.parser'

local M = {}

-- The value of a global option: given on the line, else its twin, else nil.
local function twin_value(global, getenv)
  local text = getenv(global.twin)
  if text == nil or text == '' then
    return nil
  end
  local function refuse(why)
    error(errors.new('usage', ("%s '%s'"):format(global.twin, text), why), 0)
  end
  if global.choices then
    for _, choice in ipairs(global.choices) do
      if choice == text then
        return text
      end
    end
    refuse('must be one of ' .. table.concat(global.choices, ', '))
  elseif global.duration then
    local seconds, message = parser.duration(text)
    return seconds or refuse(message)
  elseif global.count then
    local words = { ['true'] = 1, ['false'] = 0, yes = 1, no = 0 }
    return words[text] or (text:find('^%d+$') and tonumber(text)) or refuse('expected a number')
  elseif global.many then
    local list = {}
    for part in text:gmatch('[^;\n]+') do
      local key, value = part:match('^%s*([^=]-)%s*=(.*)$')
      if not key or key == '' then
        refuse('expected KEY=VALUE, several of them separated by ";"')
      end
      list[#list + 1] = { key = key, value = value }
    end
    return list
  end
  return text
end

local function is_given(value)
  return value ~= nil and value ~= 0 and not (type(value) == 'table' and #value == 0)
end

--- A value of --set becomes a number or a boolean when it reads like one.
---@param text string
---@return string|number|boolean
function M.set_value(text)
  if text == 'true' or text == 'false' then
    return text == 'true'
  end
  if text:find('^[+-]?%d+%.?%d*[eE]?[+-]?%d*$') or text:find('^[+-]?%.%d') then
    local number = tonumber(text)
    -- Digits that a double would change (an id, say) stay text.
    local digits = text:match('^[+-]?0*(%d*)$')
    if number and not (digits and #digits > 15 and ('%.0f'):format(number) ~= text) then
      return number
    end
  end
  return text
end

-- Global options as {value=, origin=} by key; origin is 'flag' or 'environment'.
local function collect_globals(args, getenv)
  local result = {}
  for _, global in ipairs(parser.globals) do
    local value = args['global_' .. global.key]
    if is_given(value) then
      result[global.key] = { value = value, origin = 'flag', name = global.names:match('%S+$') }
    end
    if not global.many then
      if not result[global.key] then
        local twin = twin_value(global, getenv)
        result[global.key] = twin ~= nil and { value = twin, origin = 'environment',
          name = global.twin } or nil
      end
    else
      -- Lists add up: the twin's entries first, so that the line wins key by key.
      local merged = twin_value(global, getenv) or {}
      for _, item in ipairs(value or {}) do
        merged[#merged + 1] = item
      end
      result[global.key] = { value = merged }
    end
  end
  return result
end

local function set_map(list)
  local map = {}
  for _, item in ipairs(list) do
    -- The last word counts, by whichever of its names a key is given.
    local other = conf.OTHER_NAME[item.key]
    if other then
      map[other] = nil
    end
    map[item.key] = M.set_value(item.value)
  end
  return map
end

local function new_context(args, streams)
  local globals = collect_globals(args, streams.getenv)
  local function value(key)
    return globals[key] and globals[key].value
  end
  local set = set_map(globals.set.value)
  return require('streamlua.cli.context').new({
    output = value('output'),
    color = value('color'),
    verbose = value('verbose'),
    quiet = value('quiet'),
    timeout = value('timeout'),
    set = set,
    conf_options = { globals = globals, set = set, getenv = streams.getenv },
    stdout = streams.stdout,
    stderr = streams.stderr,
    getenv = streams.getenv,
    is_service = streams.is_service,
  })
end

local function run(argv, streams)
  if #argv == 0 then
    streams.stdout:write(parser.build():get_help(), '\n')
    return 0
  end
  local position, name = parser.find_command(argv)
  local known = name and commands.exists(name)
  local module = known and commands.load(name)
  if module and module.takes_rest then
    argv = parser.protect_rest(argv, position)
  end
  -- Only the command in question is loaded; the help of everything needs the whole list.
  local root = parser.build(known and { name } or nil)
  local ok, args = pcall(parser.parse, root, argv)
  if not ok then
    if not parser.is_request(args) then
      error(args, 0)
    end
    streams.stdout:write(args.help)
    return 0
  end
  if args.global_version then
    module = commands.load('version')
  elseif not args.command then
    error(errors.new('usage', 'a command is required', nil, "see 'streamlua --help'"), 0)
  end
  local context = new_context(args, streams)
  streams.context = context
  local code = module.run(context, args)
  return code == nil and 0 or exit.number(code)
end

-- The form of the error must be known also when the line does not parse.
local function wants_json(argv, getenv)
  local json
  for i, word in ipairs(argv) do
    if word == '--' then
      break
    end
    -- `-o json`, `-ojson`, `-vo json`, `--output json`, `--output=json`
    local value = word:match('^%-[vq]*o(.*)$') or word:match('^%-%-output=(.*)$')
    if value == '' or word == '--output' then
      value = argv[i + 1]
    end
    if value then
      json = value == 'json'
    end
  end
  if json == nil then
    json = getenv('STREAMLUA_OUTPUT') == 'json'
  end
  return json
end

local function is_verbose(argv, getenv)
  for _, word in ipairs(argv) do
    if word == '--' then
      break
    elseif word == '--verbose' or word:find('^%-v+$') then
      return true
    end
  end
  local twin = getenv('STREAMLUA_VERBOSE')
  return twin ~= nil and twin ~= '' and twin ~= '0' and twin ~= 'false'
end

--- An error object as text, the way the user asked for.
---@param err table of streamlua.cli.error
---@param options table {json=, verbose=, color=}
---@return string
function M.error_text(err, options)
  if options.json then return output.json_text(errors.document(err), order.error) end
  local parts = { output.paint(options.color, 'red', 'error:'), ' ', err.message, '\n' }
  local function add(...)
    for _, part in ipairs({ ... }) do parts[#parts + 1] = part end
  end
  if err.hint then add(output.paint(options.color, 'cyan', 'hint:'), ' ', err.hint, '\n') end
  if options.verbose and err.traceback and err.traceback ~= '' then add(err.traceback, '\n') end
  return table.concat(parts)
end

--- Prints an error object the way the user asked for.
---@param err table of streamlua.cli.error
---@param options table {json=, verbose=, color=, file=}
function M.print_error(err, options)
  local file = options.file or io.stderr
  file:write(M.error_text(err, options))
end

-- What is no error object is a defect of ours or of a command file; it still ends in one line.
local function as_error(value, trace)
  if errors.is(value) then
    value.traceback = value.traceback or trace
    return value
  end
  return errors.from_lua('failed', value, trace)
end

local function flush(file)
  local ok, message, code = file:flush()
  if not ok and code == libc.EPIPE then
    error(output.BROKEN_PIPE, 0)
  elseif not ok then
    error(errors.new('failed', 'standard output', message), 0)
  end
end

--- Runs the command line and returns the exit code.
---@param argv table {[0]=program, arguments...}
---@param streams table? {stdout=, stderr=, getenv=} instead of the process's; is_service: on behalf of
--- a client of the HTTP API
---@return integer
function M.main(argv, streams)
  streams = streams or {}
  streams.stdout = streams.stdout or io.stdout
  streams.stderr = streams.stderr or io.stderr
  streams.getenv = streams.getenv or os.getenv
  local trace
  local ok, result = xpcall(function()
    local code = run(argv, streams)
    flush(streams.stdout)
    return code
  end, function(value)
    trace = debug.traceback('', 2):gsub('^\n', '')
    return value
  end)
  if ok then
    return result
  end
  if result == output.BROKEN_PIPE then
    if streams.stdout == io.stdout then
      libc.end_by_broken_pipe()
    end
    return 141
  end
  local err = as_error(result, trace)
  local context = streams.context
  pcall(streams.stdout.flush, streams.stdout)
  M.print_error(err, context and {
    json = context.output == 'json', verbose = context.verbose > 0,
    color = context.color_stderr, file = streams.stderr,
  } or {
    json = wants_json(argv, streams.getenv), verbose = is_verbose(argv, streams.getenv),
    color = output.use_color('auto', 2, streams.getenv), file = streams.stderr,
  })
  return err.exit
end

return M
