-- `streamlua completion bash|zsh|fish`: a completion script made from the tree of options.

return {
  name = 'completion',
  summary = 'Print a completion script for a shell.',
  description = 'Print a completion script for a shell, made from the commands and options of this '
    .. 'very version. For bash: source <(streamlua completion bash)',
  declare = function(command)
    command:argument('shell', 'Shell to complete in: bash, zsh or fish.')
      :argname('SHELL'):choices({ 'bash', 'zsh', 'fish' })
  end,
  run = function(context, args)
    local root = require('streamlua.cli.parser').build()
    context.stdout:write(root['get_' .. args.shell .. '_complete'](root))
  end,
}
