local input = require 'streamlua.cli.input'
local target = require 'streamlua.cli.target'

describe('documents as input', function()
  local path

  local function write(text, suffix)
    path = os.tmpname() .. (suffix or '')
    local file = assert(io.open(path, 'wb'))
    file:write(text)
    file:close()
    return path
  end

  after_each(function()
    os.remove(path)
    os.remove((path:gsub('%.lua$', '')))
  end)

  it('are read as JSON', function()
    assert.same({ a = { 1, 2 } }, input.read_json(write('{"a":[1,2]}')).value)
  end)

  it('are Lua data when the name ends so', function()
    assert.same({ supervisors = 3, slots = 4 },
      input.read_document(write('return { supervisors = 3, slots = 4 }', '.lua')).value)
    local result = input.read_document(write('return {\n x = }', '.lua'))
    assert.equal('invalid', result.code)
    assert.equal(2, result.line)
  end)

  it('are told by what is in them, and may be a table alone', function()
    for _, text in ipairs { 'return {a=1}', '{a=1}', '{["a"]=1}', '-- of mine\n{ a = 1 }', '{"a":1}' } do
      assert.same({ a = 1 }, input.read_document(write(text)).value)
      os.remove(path)
    end
    assert.same({ a = 1 }, input.read_document(write('--[[ of\nmine ]] { a = 1 }', '.lua')).value)
    assert.equal(2, input.read_document(write('{\n a = = }')).line)
  end)

  it('may stand in place of a path', function()
    write('')
    assert.same({ a = 1 }, input.read_document('{a=1}').value)
    assert.same({ a = 1 }, input.read_document('{"a": 1}').value)
    assert.equal('invalid', input.read_document('{a=1').code)
  end)

  it('that are missing are not found', function()
    write('')
    assert.equal('not_found', input.read_json('no/such/file.json').code)
    assert.equal('not_found', input.read_json('tests').code)
  end)

  it('that are broken name the line', function()
    local result = input.read_json(write('{\n"a": 1,\n]'))
    assert.equal('invalid', result.code)
    assert.equal(3, result.line)
    assert.equal('invalid', input.read_json(write('')).code)
  end)

  it('have limits of size and depth', function()
    assert.equal('invalid', input.read_json(write('[1,2,3]'), { max_bytes = 6 }).code)
    assert.same({ 1, 2, 3 }, input.read_json(path, { max_bytes = 7 }).value)
    os.remove(path)
    assert.equal('invalid', input.read_json(write(('['):rep(1000) .. (']'):rep(1000))).code)
  end)
end)

describe('TARGET', function()
  it('is a script when it ends in .lua or has a slash', function()
    assert.same({ script = 'topo.lua' }, target.parse('topo.lua'))
    assert.same({ script = './topo' }, target.parse('./topo'))
    assert.same({ name = 'topo' }, target.parse('topo'))
    assert.same({ name = 'topo.lua.x' }, target.parse('topo.lua.x'))
  end)

  it('is refused when it can be no name', function()
    for _, name in ipairs({ '', '.', '..', '__acker', 'a b', 'a\n', ('x'):rep(65), 'ä' }) do
      local result, why = target.parse(name)
      assert.is_nil(result, name)
      assert.equal('string', type(why))
    end
    assert.truthy(target.parse(('x'):rep(64)))
  end)
end)
