-- labels: short
local base64 = require 'streamlua.service.base64'
local form = require 'streamlua.service.form'

describe('parameters of HTTP requests', function()
  it('are read from targets', function()
    local path, values = form.target('/api/v1//topologies/a%20b?x=1&y=%2F+&x=2&z')
    assert.same({ 'api', 'v1', 'topologies', 'a b' }, path)
    assert.same({ x = { '1', '2' }, y = { '/ ' }, z = { '' } }, values)
    assert.same({}, (form.target('/')))
  end)

  it('are refused when they can not be read', function()
    for _, target in ipairs({ '/a%2', '/a/%zz', '/a%', '/a%zz', '/a%00', '/a?b=%', '/a?=b', '/a?%zz=1',
      '/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17' }) do
      local path, message = form.target(target)
      assert.is_nil(path, target)
      assert.is_string(message)
    end
    assert.is_nil(form.fields(('a=b&'):rep(form.MAX + 1)))
  end)

  it('read back as they were written', function()
    for _, text in ipairs({ 'a/b c%+&=\n\255', '', '%', '100%', '%25', '%%' }) do
      assert.equal(text, form.decode(form.encode(text)))
    end
  end)

  it('come in multipart bodies', function()
    local parts = { { name = 'name', content = 'words' },
      { name = 'file', filename = 'a/b.lua', content = '\r\n--x\r\n\0' } }
    local body, content_type = form.multipart_text(parts, 'mark')
    assert.same(parts, form.multipart(body, content_type))
    assert.same({ { name = 'a', content = '' } }, form.multipart(
      'ignored\r\n--q q\r\ncontent-disposition: form-data; name=a\r\n\r\n\r\n--q q--',
      'multipart/form-data; boundary="q q"'))
  end)

  it('are refused when a multipart body is damaged', function()
    local body, content_type = form.multipart_text({ { name = 'a', content = 'b' } }, 'mark')
    for _, case in ipairs({ { body, 'multipart/form-data' }, { '', content_type },
      { 'no part', content_type }, { body:gsub('name="a"', ''), content_type },
      { body, content_type .. ('x'):rep(70) } }) do
      local parts, message = form.multipart(case[1], case[2])
      assert.is_nil(parts)
      assert.is_string(message)
    end
    -- Cut off anywhere: never an error, and never a part that was not whole.
    for size = 0, #body - 3 do
      assert.is_nil((form.multipart(body:sub(1, size), content_type)))
    end
  end)

  it('carry bytes as base 64', function()
    for _, case in ipairs({ { '', '' }, { 'f', 'Zg==' }, { 'fo', 'Zm8=' }, { 'foo', 'Zm9v' },
      { 'foobar', 'Zm9vYmFy' }, { '\0\255\254', 'AP/+' } }) do
      assert.equal(case[2], base64.encode(case[1]))
      assert.equal(case[1], base64.decode(case[2]))
    end
    for _, text in ipairs({ 'Zg=', 'Zg', 'Z===', 'Zm9!', 'Z=g=' }) do
      assert.is_nil(base64.decode(text))
    end
  end)
end)
