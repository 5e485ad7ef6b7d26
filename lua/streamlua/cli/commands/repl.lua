-- `streamlua repl [-e CHUNK] [SCRIPT]`: an interactive session, or a chunk, a script or piped input.

local libc = require 'streamlua.connectors.libc'

return {
  name = 'repl',
  summary = 'Try topologies, packers and schedulers interactively.',
  description = 'Starts an interactive session (.help in it tells more). With -e, a script, or input '
    .. 'that is no terminal, evaluates that and ends with 1 at the first error.',
  declare = function(command)
    command:argument('script', 'Lua file to run in a session.'):argname('SCRIPT'):args('?')
    command:option('-e', 'Evaluate CHUNK and print what it returns (repeatable).')
      :argname('CHUNK'):target('chunks'):count('*')
  end,
  run = function(context, args)
    local repl = require 'streamlua.repl'
    if #args.chunks > 0 or args.script then return repl.script(context, args.chunks, args.script) end
    if not libc.is_terminal(0) then return repl.input(context, io.stdin) end
    return repl.interactive(context)
  end,
}
