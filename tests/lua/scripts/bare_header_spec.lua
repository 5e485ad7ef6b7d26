local header = dofile('scripts/abi/bare_header.lua')

local function one(text)
  local all = header.parse(text)
  assert.equal(1, #all)
  return all[1]
end

local function names(list)
  local out = {}
  for i, entry in ipairs(list) do out[i] = entry.name end
  return table.concat(out, ' ')
end

describe('scripts/abi/bare_header.lua', function()
  it('reads a prototype with its comment', function()
    local d = one('/*\n * Opens it;\n * returns 0.\n */\nint sl_open(struct sl_x *x, const char *name,\n'
      .. '            uint64_t n[4]) __attribute__((nonnull(1)));')
    assert.same({ 'function', 'sl_open', 'int', 'Opens it;\nreturns 0.', 5 },
      { d.kind, d.name, d.returns, d.comment, d.line })
    assert.equal('x name n', names(d.parameters))
    assert.equal('const char *', d.parameters[2].type)
  end)

  it('reads (void) as no parameter', function()
    assert.same({}, one('const char *sl_text(void);').parameters)
  end)

  it('gives a comment to the declaration right behind it only', function()
    local all = header.parse('// One.\nint a(void);\nint b(void);')
    assert.equal('One.', all[1].comment)
    assert.is_nil(all[2].comment)
  end)

  it('reads all kinds of fields', function()
    local d = one('struct s { int a, *b; char c[8]; uint32_t d : 3; union { int e; double f; };'
      .. ' struct { int x; } g; void (*h)(void *ctx, int n); /* last; */ uint8_t i[]; };')
    assert.equal('a b c d e f g h i', names(d.fields))
    assert.is_true(d.fields[4].bitfield)
    assert.is_true(d.fields[9].flexible)
    assert.equal('int *', d.fields[2].type)
  end)

  it('reads enums, opaque structs, typedefs and constants', function()
    assert.same({ 'A', 'B', 'C' }, one('enum e { A = 1, B = (1 << 2), C, };').values)
    assert.equal('opaque', one('struct sl_x;').kind)
    assert.equal('sl_fn', one('typedef int sl_fn;').name)
    assert.equal('N', one('static const int N = 3;').name)
  end)

  it('refuses what is no declaration', function()
    assert.has_error(function() header.parse('int a(void); int b(void)') end)
    assert.has_error(function() header.parse('what is this;') end)
  end)
end)
