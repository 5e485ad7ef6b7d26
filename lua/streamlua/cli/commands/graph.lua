-- `streamlua graph SCRIPT`: the logical graph of a script's topology; nothing runs.

local apart = require 'streamlua.cli.apart'
local json = require 'streamlua.json'
local native = require 'streamlua.topology.native'
local render = require 'streamlua.topology.render'

return {
  name = 'graph',
  summary = 'Show the logical graph of a script.',
  description = 'Show the logical graph of a script: components, their streams, and who reads them. '
    .. 'With --system also what the engine adds, and the task ids of the first plan.',
  declare = function(command)
    command:argument('script', 'Lua file that returns a topology.'):argname('SCRIPT')
    command:option('--format', 'Form: ascii, dot (Graphviz), mermaid or json (default: ascii).')
      :argname('FORMAT'):choices({ 'ascii', 'dot', 'mermaid', 'json' })
    command:flag('--system', 'Show the components that the engine adds, too.')
  end,
  run = function(context, args)
    local description = apart.build(context, args.script, function(topology)
      local handle, failure = topology:native()
      if handle and args.system then handle, failure = native.system(handle) end
      if not handle then return nil, failure end
      return native.describe(handle)
    end)
    local format = args.format or (context.output == 'json' and 'json' or 'ascii')
    if format == 'json' or context.output == 'json' then
      context:print_json(render.data(description, json.array))
    else
      context.stdout:write(render[format](description))
    end
  end,
}
