-- `streamlua help [COMMAND]`: the same texts as --help.

local commands = require 'streamlua.cli.commands'
local suggest = require 'streamlua.cli.suggest'

return {
  name = 'help',
  summary = 'Show help for a command, or for everything.',
  declare = function(command)
    command:argument('topic', 'The command to explain.'):argname('COMMAND'):args('?')
  end,
  run = function(context, args)
    local parser = require 'streamlua.cli.parser'
    local name = args.topic
    if not name then
      context.stdout:write(parser.build():get_help(), '\n')
      return
    end
    if not commands.exists(name) then
      context:fail('usage', ("unknown command '%s'"):format(name), nil,
        suggest.hint(name, commands.names()) or "see 'streamlua --help'")
    end
    local root = parser.build({ name })
    for _, command in ipairs(root._commands) do
      if command._name == name then
        context.stdout:write(command:get_help(), '\n')
      end
    end
  end,
}
