-- labels: short
-- The ABI text, the loaded symbols, the C layouts and the documentation must say the same.
local abi = require 'streamlua.abi'
local header = dofile('scripts/abi/bare_header.lua')
local C, ffi = abi.C, abi.ffi

local text = ffi.string(C.sl_abi_text())
local declarations = header.parse(text)

local function each(kind)
  local out = {}
  for _, d in ipairs(declarations) do
    if d.kind == kind then out[#out + 1] = d end
  end
  return ipairs(out)
end

describe('the ABI', function()
  it('embeds the bytes of the bare headers', function()
    assert.equal(header.text('.'), text)
  end)

  it('resolves every prototype', function()
    for _, d in each('function') do
      assert.is_true(pcall(function() return C[d.name] end), d.name .. ' does not resolve')
    end
  end)

  it('exports exactly the functions of the text', function()
    local declared = {}
    for _, d in each('function') do declared[d.name] = true end
    local binary = os.getenv('SL_TEST_BINARY') or 'build/streamlua'
    local pipe = io.popen(("nm -D --defined-only '%s'"):format(binary))
    local found = 0
    for line in pipe:lines() do
      local name = line:match(' [TDBRVW] (sl_[%w_]+)$')
      if name then
        found = found + 1
        assert.is_true(declared[name], name .. ' is exported but not in the text')
      end
    end
    pipe:close()
    local expected = 0
    for _ in pairs(declared) do expected = expected + 1 end
    assert.equal(expected, found)
  end)

  it('gives LuaJIT the layouts that gcc has', function()
    local layouts, count = C.sl_abi_layouts(), C.sl_abi_layout_count()
    assert.is_true(count > 0)
    for i = 0, count - 1 do
      local entry = layouts[i]
      local ctype, field = ffi.string(entry.type), ffi.string(entry.field)
      if field == '' then
        assert.equal(entry.size, ffi.sizeof(ctype), ctype)
      else
        assert.equal(entry.offset, ffi.offsetof(ctype, field), ctype .. '.' .. field)
      end
    end
  end)

  it('has a layout for every struct of the text', function()
    local known = {}
    for i = 0, C.sl_abi_layout_count() - 1 do known[ffi.string(C.sl_abi_layouts()[i].type)] = true end
    for _, d in each('struct') do
      assert.is_true(known['struct ' .. d.name], d.name .. ' has no layout')
    end
  end)

  it('documents every prototype', function()
    for _, d in each('function') do
      assert.is_truthy(d.comment and #d.comment > 15, d.name .. ' has no comment')
    end
  end)

  it('describes every prototype in the LuaCATS file', function()
    local meta = header.read('lua/streamlua/meta/abi.lua')
    for _, d in each('function') do
      assert.is_truthy(meta:find('function C.' .. d.name .. '(', 1, true), d.name)
    end
  end)

  it('has the version the text states', function()
    assert.equal(C.SL_ABI_VERSION, C.sl_abi_version())
  end)
end)
