-- `streamlua version`: our version and those of the libraries in use.

local versions = require 'streamlua.cli.versions'

return {
  name = 'version',
  summary = 'Show the version and those of the libraries in use.',
  run = function(context)
    local document = versions.document()
    if context.output == 'json' then
      context:print_json(document)
      return
    end
    context:print('streamlua ', document.version)
    context:print_table({ 'PART', 'VERSION' }, {
      { 'abi', document.abi and tostring(document.abi) or '-' },
      { 'luajit', document.luajit },
      { 'libuv', document.libuv },
      { 'protobuf-c', document.protobuf_c },
      { 'zookeeper', document.zookeeper },
    }, { headers = false, indent = '  ' })
  end,
}
