-- labels: short
-- Everything that README.md shows works as it is shown.
local net = require 'support.net'
local process = require 'support.process'
local topologies = require 'support.topologies'

-- Code blocks of a language, in order.
local function blocks(path, language)
  local found = {}
  for text in process.read_file(path):gmatch('\n```' .. language .. '\n(.-)\n```') do
    found[#found + 1] = text
  end
  return found
end

-- A command that fails does not leave the daemons behind.
local ENDS = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"

-- Calls of the state manager, too, may take as long on a busy machine as what a spec waits for.
local function on_state(folder, kind)
  return { STREAMLUA_STATE = 'localfs:' .. folder, STREAMLUA_CLUSTER = kind,
    STREAMLUA_STATE_TIMEOUT = ('%ds'):format(process.patience) }
end

describe('README.md', function()
  local scripts, commands = blocks('README.md', 'lua'), blocks('README.md', 'sh')

  it('shows a topology of about twenty lines that counts words', function()
    assert.equal(1, #scripts)
    local _, lines = scripts[1]:gsub('\n', '')
    assert.is_true(lines <= 25)
    process.with_folder(function(folder)
      process.write_file(folder .. '/words.lua', scripts[1])
      local r = process.run({ 'run', folder .. '/words.lua' }, { stdin = 'to be or not to be\n' })
      assert.equal(0, r.code, r.stderr)
      local printed = {}
      for line in r.stdout:gmatch('[^\n]+') do printed[#printed + 1] = line end
      assert.same({ '1\tnot', '1\tor', '2\tbe', '2\tto' }, topologies.sorted(printed))
    end)
  end)

  it('shows commands that work on it', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/words.lua', scripts[1])
      process.write_file(folder .. '/LICENSE', process.read_file('LICENSE'))
      local text = commands[2]:gsub('build/streamlua', "'" .. process.binary:gsub('%%', '%%%%') .. "'")
      local r = process.run({ '-ec', text }, { program = 'bash', cwd = folder })
      assert.equal(0, r.code, r.stderr)
      assert.truthy(r.stderr:find("topology 'words': ok\n", 1, true), r.stderr)
      assert.truthy(r.stdout:find('split  (bolt x2)', 1, true), r.stdout)
      local first = topologies.ranking_of(process.read_file('LICENSE'), 1)[1]
      local count, word = first:match('(%d+) (%S+)')
      assert.truthy(r.stdout:find(('\n%s\t%s\n'):format(count, word), 1, true), r.stdout)
    end)
  end)

  it('shows how to run a topology in processes of its own', function()
    process.with_folder(function(folder)
      local text = commands[3]:gsub('build/streamlua', "'" .. process.binary:gsub('%%', '%%%%') .. "'")
      local r = process.run({ '-ec', text }, { program = 'bash', cwd = process.root,
        env = on_state(folder) })
      assert.equal(0, r.code, r.stderr)
      assert.matches('wordcount%s+RUNNING%s+1%s+1%s+8', r.stdout)
      assert.matches('wordcount: plan 1 %-> 2', r.stdout)
      assert.matches('count%s+bolt%s+8', r.stdout)
      assert.matches('wordcount: killed\n$', r.stdout)
      local left = process.run({ 'list', '-o', 'json' },
        { env = on_state(folder) })
      assert.equal('{"topologies":[]}\n', left.stdout)
    end)
  end)


  it('shows how to run one on a cluster', function()
    process.with_folder(function(folder)
      -- At an address where it meets nobody else.
      local text = commands[4]:gsub('build/streamlua', "'" .. process.binary:gsub('%%', '%%%%') .. "'")
        :gsub(' supervisor ', '%0--host ' .. net.address() .. ' ')
      local r = process.run({ '-ec', ENDS .. text .. '\nwait' }, { program = 'bash', cwd = process.root,
        env = on_state(folder) })
      assert.matches('wordcount: running', r.stdout)
      assert.matches('wordcount: plan 1 %-> 2', r.stdout)
      assert.matches('wordcount: killed\n$', r.stdout)
      local left = process.run({ 'list', '-o', 'json' },
        { env = on_state(folder, 'standalone') })
      assert.equal('{"topologies":[]}\n', left.stdout)
    end)
  end)
  it('names scripts that are there', function()
    for script in commands[1]:gmatch('scripts/%w+') do
      assert.equal(0, process.run({ '-x', script }, { program = 'test' }).code, script)
    end
  end)
end)

describe('the documents', function()
  it('link to files that are there', function()
    local pipe = assert(io.popen("ls *.md docs/*.md docs/decisions/*.md 2>/dev/null"))
    local count = 0
    for path in pipe:lines() do
      local folder = path:match('^(.*/)') or ''
      for target in process.read_file(path):gmatch('%]%(([^)#%s]+)#?[^)]*%)') do
        if not target:find('^%a+:') then
          count = count + 1
          assert.equal(0, process.run({ '-e', folder .. target }, { program = 'test' }).code,
            path .. ': ' .. target)
        end
      end
    end
    pipe:close()
    assert.is_true(count > 10)
  end)
end)

describe('ARCHITECTURE.md', function()
  it('shows the rooms as they are', function()
    local rows = {}
    for line in io.lines('core/rooms.txt') do
      local floor, room, uses = line:match('^(%d) (%w+) *(.-) *$')
      if floor then
        rows[#rows + 1] = ('| %s | `%s` |%s |'):format(floor, room, uses ~= '' and ' ' .. uses or '')
      end
    end
    local table_text = process.read_file('ARCHITECTURE.md'):match('<!%-%- rooms %-%->\n(.-)<!%-%- /rooms %-%->')
    local shown = {}
    for line in table_text:gmatch('[^\n]+') do
      if line:find('^| %d') then shown[#shown + 1] = line end
    end
    assert.same(rows, shown)
  end)

  it('names files and records that are there', function()
    for name in process.read_file('ARCHITECTURE.md'):gmatch('`([%w_/.-]+/[%w_/.-]*)`') do
      -- Paths below lua/streamlua are written short where that is clear.
      local found = false
      for _, folder in ipairs({ '', 'lua/streamlua/' }) do
        found = found or process.run({ '-e', folder .. name }, { program = 'test' }).code == 0
      end
      assert.is_true(found, name)
    end
    local pipe = assert(io.popen('ls docs/decisions'))
    local text = process.read_file('ARCHITECTURE.md')
    for name in pipe:lines() do
      assert.truthy(text:find('docs/decisions/' .. name, 1, true), name)
    end
    pipe:close()
  end)
end)
