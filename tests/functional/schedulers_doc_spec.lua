-- docs/schedulers.md: what it tells a newcomer to type gives what it says. timeout: 120
local process = require 'support.process'

-- Blocks of a document in order: {kind = 'type' | 'file' | 'shown', text=, file=}.
local function blocks_of(text)
  local blocks, current = {}, nil
  for line in text:gmatch('([^\n]*)\n') do
    local fence = line:match('^```(.*)$')
    if fence and current then
      blocks[#blocks + 1], current = current, nil
    elseif fence then
      local file = fence:match('^lua file=(%S+)$')
      current = { kind = file and 'file' or fence == 'lua' and 'type' or 'shown', file = file,
        text = '' }
    elseif current then
      current.text = current.text .. line .. '\n'
    end
  end
  return blocks
end

describe('docs/schedulers.md', function()
  it('can be typed line by line', function()
    local blocks = blocks_of(process.read_file('docs/schedulers.md'))
    assert.is_true(#blocks > 15)
    process.with_folder(function(folder)
      local repl = process.start({ 'repl' }, { keep_stdin = true, cwd = folder,
        env = { XDG_STATE_HOME = folder, XDG_CONFIG_HOME = folder, STREAMLUA_OUTPUT = false,
          NO_COLOR = '1' } })
      local checked = 0
      for i, block in ipairs(blocks) do
        if block.kind == 'file' then
          process.write_file(folder .. '/' .. block.file, block.text)
        elseif block.kind == 'type' then
          -- A mark tells when it is done.
          repl:write(block.text .. ("print('done %d')\n"):format(i))
          local shown = repl:expect('stdout', '^(.-)done ' .. i .. '\n')
          local expected = blocks[i + 1] and blocks[i + 1].kind == 'shown' and blocks[i + 1].text
          if expected then
            checked = checked + 1
            assert.equal(expected, shown)
          else
            assert.equal('', shown)
          end
        end
      end
      repl:close_stdin()
      local result = repl:wait()
      assert.equal(0, result.code, result.stderr)
      assert.is_true(checked >= 9)
    end)
  end)
end)
