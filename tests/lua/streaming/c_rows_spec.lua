-- labels: short
-- tests/unit/batch/rows.txt says where the rows of the reference are tested in C; it must be true.

local read = require('support.process').read_file

describe('the list of rows that are tested in C', function()
  local rows = {}
  for line in read('tests/unit/batch/rows.txt'):gmatch('[^\n]+') do
    if not line:find('^#') then
      local id, program, rest = line:match('^(T%d+)%s+(%S+)%s+(.+)$')
      rows[#rows + 1] = { id = id, program = program, rest = rest, line = line }
    end
  end

  it('names tests that exist', function()
    assert.is_true(#rows > 50)
    for _, row in ipairs(rows) do
      assert.is_truthy(row.id, row.line)
      if row.program ~= '-' then
        local source = read(('tests/unit/batch/%s.c'):format(row.program))
        assert.is_truthy(source:find(('cmocka_unit_test(%s)'):format(row.rest), 1, true), row.line)
      end
    end
  end)

  it('has each row once, in order', function()
    local last = 0
    for _, row in ipairs(rows) do
      local number = tonumber(row.id:sub(2))
      assert.is_true(number > last, row.line)
      last = number
    end
  end)
end)
