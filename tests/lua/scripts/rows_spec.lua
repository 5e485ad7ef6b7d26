-- tests/unit/rows.txt names a test, or a reason, for every row of the control plane's reference.

local lfs = require 'lfs'

local function read(path)
  local file = assert(io.open(path, 'rb'), path)
  local text = file:read('*a')
  file:close()
  return text
end

-- How many rows each table has.
local COUNTS = { R = 10, M = 10, P = 21, S = 21, H = 7, L = 13, T = 19, F = 8, B = 13 }

describe('the list of tested rows', function()
  local rows, count = {}, {}
  for line in read('tests/unit/rows.txt'):gmatch('[^\n]+') do
    if not line:find('^#') then
      local id, place, rest = line:match('^(%u%d+)%s+(%S+)%s+(.+)$')
      assert(id and not rows[id], line)
      rows[id] = { place = place, rest = rest }
      count[id:sub(1, 1)] = (count[id:sub(1, 1)] or 0) + 1
    end
  end

  it('has all of them', function()
    assert.same(COUNTS, count)
  end)

  it('names tests that are there and run, or says why not', function()
    for id, row in pairs(rows) do
      if row.place == '-' then
        assert.is_true(#row.rest > 20, id)
      else
        local text = read('tests/unit/' .. row.place .. '.c')
        assert.truthy(text:find('\n' .. row.rest .. '%(%s*void %*%*state%)'), id)
        assert.truthy(text:find('[Tt][Ee][Ss][Tt][%w_]*%(%s*' .. row.rest .. '[%),]'), id)
        assert.truthy(row.rest:find('_' .. id .. '_', 1, true), id .. ' is not in ' .. row.rest)
      end
    end
  end)

  -- rpc/test_conn.c and state/ name other rows too, of the reference on security and ZooKeeper.
  it('has every row that a test is named by', function()
    for _, room in ipairs({ 'cluster', 'rpc' }) do
      for name in lfs.dir('tests/unit/' .. room) do
        local text = name:find('%.c$') and name ~= 'test_conn.c'
          and read('tests/unit/' .. room .. '/' .. name) or ''
        for test in text:gmatch('\n(test_%w+)%(void %*%*state') do
          for id in test:gmatch('_([RMPSHLTFB]%d+)') do
            assert.truthy(rows[id], test)
          end
        end
      end
    end
  end)
end)
