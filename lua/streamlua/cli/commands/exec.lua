-- `streamlua exec SCRIPT [ARG ...]`: a Lua program with the library at hand.

local errors = require 'streamlua.cli.error'
local libc = require 'streamlua.connectors.libc'

-- Modules beside the script are found too, after the places that Lua searches anyway: a script named
-- like a library must not hide it. A link to a script counts as the script.
local function add_script_directory(script)
  local path = libc.realpath(script) or script
  local directory = path:match('^(.*)/[^/]*$') or '.'
  package.path = package.path .. ';' .. directory .. '/?.lua;' .. directory .. '/?/init.lua'
end

local function load_script(context, script)
  if script == '-' then
    return loadstring(io.read('*a'), '=stdin')
  end
  local stat, message, code = libc.stat(script)
  if not stat or stat.kind == 'directory' then
    context:fail((code == nil or code == libc.ENOENT) and 'not_found' or 'failed',
      ("script '%s'"):format(script), message or 'it is a directory')
  end
  add_script_directory(script)
  return loadfile(script)
end

return {
  name = 'exec',
  summary = 'Run a Lua program with the library at hand.',
  description = "Run a Lua program with the library at hand; `arg` is as in Lua, '-' reads the "
    .. 'program from standard input. What stands behind SCRIPT belongs to the program.',
  takes_rest = true,
  declare = function(command)
    command:argument('script', 'Lua file to run.'):argname('SCRIPT')
    command:argument('rest', 'Arguments of the program.'):argname('ARG'):args('*')
  end,
  run = function(context, args)
    local chunk, message = load_script(context, args.script)
    if not chunk then
      error(errors.from_lua('failed', message), 0)
    end
    local line = { [0] = args.script }
    for i, word in ipairs(args.rest) do
      line[i] = word
    end
    _G.arg = line
    context:call_user('failed', chunk, unpack(args.rest))
  end,
}
