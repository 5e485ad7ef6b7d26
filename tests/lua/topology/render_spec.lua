local render = require 'streamlua.topology.render'

-- A description by hand, with names that need quoting in every form.
local description = {
  name = 'odd "name"',
  system = false,
  components = {
    { name = 'late', kind = 'bolt', parallelism = 1, rank = 1, streams = {},
      inputs = { { source = 'first', stream = 'a|b', grouping = 'fields', fields = { 'x"y', 'z' } } } },
    { name = 'first', kind = 'spout', parallelism = 2, rank = 0, inputs = {},
      streams = { { name = 'a|b', fields = { 'x"y', 'z' }, direct = true } } },
    { name = 'w', kind = 'system', parallelism = 0, rank = 0, streams = {}, inputs = {} },
  },
}

describe('a rendered graph', function()
  it('lists components by rank in ascii', function()
    assert.equal([[
first  (spout x2)
  a|b { x"y, z } direct
    -> late  fields(x"y, z)

w  (system, one a worker)

late  (bolt x1)
]], render.ascii(description))
  end)

  it('quotes names for Graphviz', function()
    local text = render.dot(description)
    assert.truthy(text:find('digraph "odd \\"name\\"" {', 1, true))
    assert.truthy(text:find('"first" -> "late" [label="a|b: fields(x\\"y, z)"];', 1, true))
  end)

  it('writes marks of Mermaid as entities', function()
    local text = render.mermaid(description)
    assert.truthy(text:find('c2 -->|"a#124;b: fields(x#34;y, z)"| c1', 1, true))
    assert.truthy(text:find('c2(["first - spout x2"])', 1, true))
  end)

  it('gives plain data for JSON', function()
    local lists = 0
    local data = render.data(description, function(items)
      lists = lists + 1
      return items
    end)
    assert.equal('odd "name"', data.topology)
    assert.same({ from = 'first', stream = 'a|b', to = 'late', grouping = 'fields',
      fields = { 'x"y', 'z' } }, data.edges[1])
    assert.is_true(lists > 5)
  end)
end)
