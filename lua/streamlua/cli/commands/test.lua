-- `streamlua test [PATH ...]`: busted specs inside this very binary, so that they see the core.

local libc = require 'streamlua.connectors.libc'

local FORMATS = { plain = 'plainTerminal', terminal = 'utfTerminal', tap = 'TAP', junit = 'junit' }

-- busted drops loaded modules between files, but C types can be declared once only: everything
-- that declares them is loaded before the first file. busted's own replacement of `ffi` would hide
-- second declarations and is left out.
local function preload()
  require 'ffi'
  package.loaded['busted.luajit'] = function() end
  for _, name in ipairs({ 'streamlua.abi', 'streamlua', 'streamlua.testing', 'streamlua.json' }) do
    local ok, message = pcall(require, name)
    if not ok and not tostring(message):find(("module '%s' not found"):format(name), 1, true) then
      error(message, 0)
    end
  end
end

-- One JSON document instead of a report while the specs run.
local function json_handler(context)
  return function()
    local busted = require 'busted'
    local handler = require 'busted.outputHandlers.base'()
    local tests = {}
    local function add(list, status)
      for _, item in ipairs(list) do
        local trace = item.trace or (item.element and item.element.trace) or {}
        tests[#tests + 1] = { name = item.name, status = status,
          file = trace.short_src, line = trace.currentline,
          message = item.message and tostring(item.message) or nil }
      end
    end
    function handler.suiteEnd()
      add(handler.successes, 'passed')
      add(handler.failures, 'failed')
      add(handler.errors, 'error')
      add(handler.pendings, 'pending')
      context:print_json({ passed = handler.successesCount, failed = handler.failuresCount,
        errors = handler.errorsCount, pending = handler.pendingsCount,
        tests = require('streamlua.json').array(tests) })
      return nil, true
    end
    busted.subscribe({ 'suite', 'end' }, handler.suiteEnd)
    return handler
  end
end

local function arguments_of(context, args)
  local line = { [0] = 'streamlua test' }
  local function add(...)
    for _, word in ipairs({ ... }) do
      line[#line + 1] = word
    end
  end
  if context.output == 'json' then
    context:keep_stdout()
    package.preload['busted.outputHandlers.streamlua_json'] = function()
      return json_handler(context)
    end
    add('--output=streamlua_json')
  elseif args.format then
    add('--output=' .. FORMATS[args.format])
  end
  for _, name in ipairs({ 'filter', 'tags', 'helper', 'seed' }) do
    if args[name] then
      add(('--%s=%s'):format(name, args[name]))
    end
  end
  if args.shuffle then
    add('--shuffle')
  end
  if args.list then
    add('--list')
  end
  local paths = args.paths
  if #paths == 0 and not libc.stat('.busted') then
    for _, place in ipairs({ 'spec', 'tests', '.' }) do
      if #paths == 0 and libc.stat(place) then
        paths = { place }
      end
    end
  end
  add(unpack(paths))
  return line
end

return {
  name = 'test',
  summary = 'Run busted specs with streamlua.testing at hand.',
  description = 'Run busted specs (files *_spec.lua) inside this binary, with streamlua and '
    .. 'streamlua.testing at hand. Without PATH: spec, else tests, else the working directory. '
    .. 'Exit 1 when a test fails.',
  declare = function(command)
    command:argument('paths', 'Spec files or directories.'):argname('PATH'):args('*')
    command:option('--filter', 'Only tests whose name matches the Lua pattern.'):argname('PATTERN')
    command:option('--tags', 'Only tests with one of these #tags.'):argname('TAGS')
    command:option('--helper', 'Lua file to run before the specs.'):argname('FILE')
    command:option('--format', 'Report: plain, terminal, tap or junit.')
      :argname('FORMAT'):choices({ 'plain', 'terminal', 'tap', 'junit' })
    command:flag('--shuffle', 'Run files and tests in random order.')
    command:option('--seed', 'Seed of that order.'):argname('N')
      :convert(require('streamlua.cli.parser').integer(0))
    command:flag('--list', 'List the tests instead of running them.')
  end,
  run = function(context, args)
    for _, path in ipairs(args.paths) do
      local stat, message = libc.stat(path)
      if not stat then
        context:fail('not_found', ("spec '%s'"):format(path), message)
      end
    end
    preload()
    local ok, compatibility = pcall(require, 'busted.compatibility')
    if not ok then
      context:fail('failed', 'busted is not installed', nil, 'apt-get install lua-busted')
    end
    -- busted ends the process when a test failed; here that is an exit code like any other.
    local stop = {}
    compatibility.exit = function(code)
      stop.code = code
      error(stop, 0)
    end
    _G.arg = arguments_of(context, args)
    local finished, raised = pcall(require 'busted.runner', { standalone = false,
      output = not require('streamlua.connectors.libc').is_terminal(1) and 'plainTerminal' or nil })
    if not finished and raised ~= stop then
      error(raised, 0)
    end
    return not finished and stop.code ~= 0 and 1 or 0
  end,
}
