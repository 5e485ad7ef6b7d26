-- The argument parser: lua-argparse with our global options, exit codes and hints.
-- Global options are declared on the root, which argparse keeps in force behind the command, so
-- they may stand before and after it.
--
--   local parser = require 'streamlua.cli.parser'
--   local root = parser.build({ 'version' })
--   local args = parser.parse(root, { '-o', 'json', 'version' })
--   assert(args.command == 'version' and args.global_output == 'json')

local argparse = require 'argparse'
local commands = require 'streamlua.cli.commands'
local errors = require 'streamlua.cli.error'
local suggest = require 'streamlua.cli.suggest'
local units = require 'streamlua.units'

local M = {}

--- Raised by -h and --version: {help = text} or {version = true}; `cli.main` prints it.
local Request = {}
function M.is_request(value)
  return getmetatable(value) == Request
end

--- The global options: names, argument (nil for a flag), twin, summary. The twin's value is used
--- when the option is not given; `docs/cli.md` lists the same table.
M.globals = {
  { key = 'cluster', names = '--cluster', argname = 'NAME', twin = 'STREAMLUA_CLUSTER',
    text = 'Cluster, conf/NAME.lua (default: local).' },
  { key = 'state', names = '--state', argname = 'URL', twin = 'STREAMLUA_STATE',
    text = 'State manager: localfs:DIR or zookeeper://host:port[,host:port]/root.' },
  { key = 'service_url', names = '--service-url', argname = 'URL',
    twin = 'STREAMLUA_SERVICE_URL', text = 'Talk to the HTTP API of a master at URL.' },
  { key = 'config', names = '--config', argname = 'FILE', twin = 'STREAMLUA_CONFIG',
    text = 'Read FILE instead of the usual configuration files.' },
  { key = 'set', names = '--set', argname = 'KEY=VALUE', twin = 'STREAMLUA_SET', many = true,
    text = 'Override a setting or a key of the topology config (repeatable).' },
  { key = 'output', names = '-o --output', argname = 'FORMAT', twin = 'STREAMLUA_OUTPUT',
    choices = { 'table', 'json' }, text = 'Form of the result: table or json.' },
  { key = 'color', names = '--color', argname = 'WHEN', twin = 'STREAMLUA_COLOR',
    choices = { 'auto', 'always', 'never' }, text = 'Colour: auto, always or never.' },
  { key = 'verbose', names = '-v --verbose', twin = 'STREAMLUA_VERBOSE', count = true,
    text = 'Say more (repeatable); errors come with a traceback.' },
  { key = 'quiet', names = '-q --quiet', twin = 'STREAMLUA_QUIET', count = true,
    text = 'Say less: no progress (repeatable).' },
  { key = 'timeout', names = '--timeout', argname = 'DURATION', twin = 'STREAMLUA_TIMEOUT',
    duration = true, text = 'How long to wait for the cluster.' },
}

--- The same by key.
M.globals_by_key = {}
for _, global in ipairs(M.globals) do
  M.globals_by_key[global.key] = global
end

local function raise_request(content)
  error(setmetatable(content, Request), 0)
end

local function add_help(parser)
  parser:add_help(false)
  parser:flag('-h --help', 'Show this help and exit.'):action(function()
    raise_request({ help = parser:get_help() .. '\n' })
  end)
end

--- Converts a duration option to seconds: for `:convert` of commands too.
---@param text string
---@return number? seconds
---@return string? message
function M.duration(text)
  local seconds, message = units.parse_duration(text)
  if not seconds then
    return nil, message
  end
  return seconds
end

--- Converts a size option to bytes.
function M.size(text)
  local bytes, message = units.parse_size(text)
  if not bytes then
    return nil, message
  end
  return bytes
end

--- Makes a converter for whole numbers within limits.
---@param least integer
---@param most integer?
function M.integer(least, most)
  return function(text)
    local value = text:match('^[+-]?%d+$') and tonumber(text)
    if not value then
      return nil, ("'%s' is not a whole number"):format(text)
    elseif value < least or (most and value > most) then
      return nil, ("%s is not within %d..%s"):format(text, least, most and ('%d'):format(most) or '')
    end
    return value
  end
end

local function split_setting(text)
  local key, value = text:match('^([^=]+)=(.*)$')
  if not key then
    return nil, ("'%s': expected KEY=VALUE"):format(text)
  end
  return { key = key, value = value }
end

local function declare_globals(root)
  for _, global in ipairs(M.globals) do
    local option
    if global.argname then
      option = root:option(global.names, global.text):argname(global.argname)
    else
      option = root:flag(global.names, global.text)
    end
    option:target('global_' .. global.key)
    if global.choices then
      option:choices(global.choices)
    elseif global.duration then
      option:convert(M.duration)
    elseif global.many then
      option:count('*'):convert(split_setting)
    elseif global.count then
      option:count('*')
    end
  end
  root:flag('--version', 'Show the version and exit.'):target('global_version')
end

-- What a converter says is about a value; the option that it was given to stands before it.
local function name_converters(parser)
  for _, option in ipairs(parser._options) do
    local convert, name = option._convert, option._public_aliases[#option._public_aliases]
    if convert then
      option:convert(function(text)
        local value, why = convert(text)
        if value == nil then
          return nil, ('%s: %s'):format(name, why)
        end
        return value
      end)
    end
  end
end

local EPILOG = 'Exit codes and every field of the JSON documents: docs/cli.md.'
local COMMAND_EPILOG = "Global options (streamlua --help) may stand here too."

local function declare_command(root, name, module)
  local command = root:command(name, module.description or module.summary)
  command:summary(module.summary)
  command:epilog(COMMAND_EPILOG)
  if module.declare then
    module.declare(command)
  end
  local function completed(parser)
    name_converters(parser)
    add_help(parser)
    for _, child in ipairs(parser._commands) do
      completed(child)
    end
  end
  completed(command)
  return command
end

--- Builds the parser with the commands named (all of them when nil), grouped for the help.
---@param names string[]?
---@return table root
function M.build(names)
  local root = argparse('streamlua', 'Stream processing in Lua.', EPILOG)
  root:usage('Usage: streamlua [GLOBAL OPTIONS] COMMAND [TARGET] [OPTIONS]')
  root:help_max_width(98):command_target('command'):require_command(false)
  root:help_description_margin(32)
  declare_globals(root)
  name_converters(root)
  add_help(root)
  local wanted
  if names then
    wanted = {}
    for _, name in ipairs(names) do
      wanted[name] = true
    end
  end
  for _, group in ipairs(commands.grouped()) do
    local members = {}
    for _, name in ipairs(group[2]) do
      if not wanted or wanted[name] then
        members[#members + 1] = declare_command(root, name, commands.load(name))
      end
    end
    if #members > 0 then
      root:group(group[1], unpack(members))
    end
  end
  -- Commands of our own processes are in no list and parse like any other.
  for _, name in ipairs(names or {}) do
    if commands.hidden[name] then declare_command(root, name, commands.load(name)) end
  end
  return root
end

local function option_names(parser)
  local names = {}
  while parser do
    for _, option in ipairs(parser._options) do
      for _, alias in ipairs(option._public_aliases) do
        names[#names + 1] = alias
      end
    end
    parser = parser._parent
  end
  table.sort(names)
  return names
end

-- The name a user would type before `--help` to read on.
local function help_hint(parser)
  local name = parser._parent and parser:_get_fullname() or 'streamlua'
  return ("see '%s --help'"):format(name)
end

-- argparse words its errors for a screen; here they become one line and a hint.
local function usage_error(parser, message)
  local line = message:match('^[^\n]*')
  local word = line:match("^unknown option '(.*)'$")
  local hint
  if word then
    hint = suggest.hint(word, option_names(parser))
  end
  word = line:match("^unknown command '(.*)'$")
  if word then
    local names = {}
    if parser._parent then
      for _, command in ipairs(parser._commands) do
        names[#names + 1] = command._name
      end
    else
      names = commands.names()
    end
    hint = suggest.hint(word, names)
  end
  error(errors.new('usage', line, nil, hint or help_hint(parser)), 0)
end

local function options_with_values(parser, names)
  for _, option in ipairs(parser._options) do
    for _, alias in ipairs(option._public_aliases) do
      names[alias] = option._maxargs > 0 or nil
    end
  end
  for _, command in ipairs(parser._commands) do
    options_with_values(command, names)
  end
  return names
end

-- A negative number behind an option that takes a value is that value, though it looks like an option:
-- `--tail -1` becomes `--tail=-1`, so that the message is about the number.
local function attach_numbers(root, argv)
  local names, result = options_with_values(root, {}), {}
  local i = 1
  while argv[i] do
    local word, following = argv[i], argv[i + 1]
    if word == '--' then
      break
    elseif names[word] and word:find('^%-%-') and following and following:find('^%-%.?%d') then
      word, i = word .. '=' .. following, i + 1
    end
    result[#result + 1], i = word, i + 1
  end
  for rest = i, #argv do
    result[#result + 1] = argv[rest]
  end
  return result
end

--- Parses arguments; raises an error object with exit 2, or a request for help or the version.
---@param root table
---@param argv string[]
---@return table args
function M.parse(root, argv)
  local ok, result = pcall(function()
    return root:_parse(attach_numbers(root, argv), usage_error)
  end)
  if not ok then
    error(result, 0)
  end
  return result
end

local takes_value = {}
for _, global in ipairs(M.globals) do
  for name in global.names:gmatch('%S+') do
    takes_value[name] = global.argname ~= nil
  end
end

--- Position and name of the command in argv, found without a full parse: the first argument that
--- is neither an option nor the value of one.
---@param argv string[]
---@return integer? position
---@return string? name
function M.find_command(argv)
  local i = 1
  while i <= #argv do
    local word = argv[i]
    if word == '--' then
      return argv[i + 1] and i + 1 or nil, argv[i + 1]
    elseif word:sub(1, 1) ~= '-' or word == '-' then
      return i, word
    end
    -- -ojson, -vo json and --output=json carry or announce their value in one word.
    local cluster = word:match('^%-([^-].*)$')
    if takes_value[word] or (cluster and #cluster > 1 and cluster:find('^[vq]+o$')) then
      i = i + 1
    end
    i = i + 1
  end
end

--- For commands that hand the rest of the line on (exec): puts `--` before the first argument
--- behind the command that is no option, so that the options of the script stay its own.
---@param argv string[]
---@param position integer where the command stands
---@return string[]
function M.protect_rest(argv, position)
  local result = {}
  local i = 1
  while i <= position do
    result[i] = argv[i]
    i = i + 1
  end
  while i <= #argv do
    local word = argv[i]
    if word == '--' then
      break
    elseif word:sub(1, 1) ~= '-' or word == '-' then
      result[#result + 1] = '--'
      break
    end
    result[#result + 1] = word
    if takes_value[word] and argv[i + 1] then
      i = i + 1
      result[#result + 1] = argv[i]
    end
    i = i + 1
  end
  while i <= #argv do
    result[#result + 1] = argv[i]
    i = i + 1
  end
  return result
end

return M
