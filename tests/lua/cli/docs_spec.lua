-- docs/cli.md must name what the program has: commands, options, exit codes, settings.

local commands = require 'streamlua.cli.commands'
local exit = require 'streamlua.cli.exit'
local parser = require 'streamlua.cli.parser'
local schema = require 'streamlua.conf.schema'

local read = require('support.process').read_file

describe('docs/cli.md', function()
  local text = read('docs/cli.md')

  -- The part under `### name`.
  local function section(name)
    local _, from = text:find('\n### ' .. name:gsub('%-', '%%-') .. '\n')
    return from and text:sub(from, (text:find('\n##', from) or #text + 1) - 1)
  end

  local function options_of(command)
    local names = {}
    for _, option in ipairs(command._options) do
      for _, alias in ipairs(option._public_aliases) do
        if alias ~= '-h' and alias ~= '--help' then
          names[#names + 1] = alias
        end
      end
    end
    for _, child in ipairs(command._commands) do
      for _, alias in ipairs(options_of(child)) do
        names[#names + 1] = alias
      end
    end
    return names
  end

  it('has a section for every command', function()
    for _, name in ipairs(commands.names()) do
      assert.truthy(section(name), 'no section for ' .. name)
    end
  end)

  it('names every option of every command', function()
    for _, command in ipairs(parser.build()._commands) do
      local part = section(command._name)
      for _, alias in ipairs(options_of(command)) do
        assert.truthy(part:find('`' .. alias:gsub('%-', '%%-') .. '[` ]'),
          ('%s %s is not in its section'):format(command._name, alias))
      end
    end
  end)

  it('names every global option with its variable', function()
    for _, global in ipairs(parser.globals) do
      for name in global.names:gmatch('%S+') do
        assert.truthy(text:find('`' .. name:gsub('%-', '%%-') .. '[` ]'), name)
      end
      assert.truthy(text:find('`' .. global.twin .. '`', 1, true), global.twin)
    end
  end)

  it('has the table of exit codes', function()
    for _, row in ipairs(exit.table) do
      assert.truthy(text:find(('| %d | `%s` | %s |'):format(row[1], row[2], row[3]), 1, true), row[2])
    end
  end)

  it('has every setting with its kind, default and sentence', function()
    local control = read('docs/control-plane.md')
    for _, entry in ipairs(schema) do
      local default = entry.default_text or entry.default
      local line = ('| `%s` | %s%s | %s | %s |'):format(entry.name, entry.type,
        entry.scope == 'topology' and ', *topology*' or '',
        default == nil and '' or '`' .. tostring(default) .. '`', entry.text)
      local where = entry.group == 'control' and control or text
      assert.truthy(where:find(line, 1, true), 'missing or different: ' .. line)
    end
  end)
end)
