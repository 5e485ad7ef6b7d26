-- labels: short
local files = require 'support.files'
local json = require 'streamlua.json'
local process = require 'support.process'

local wordcount = [[
local streamlua = require 'streamlua'
local function nothing() end
local t = streamlua.topology('wordcount')
t:spout('lines', streamlua.spout { fields = { 'line' }, next_tuple = nothing })
t:bolt('split', streamlua.bolt { fields = { 'word' }, execute = nothing }, { parallelism = 2 })
  :shuffle('lines')
t:bolt('count', streamlua.bolt { fields = { 'word', 'count' }, execute = nothing },
  { parallelism = 4 }):fields('split', { 'word' })
return t
]]

local function graph(...)
  local path = files.write('topo.lua', wordcount)
  return process.run({ 'graph', path, ... })
end

describe('streamlua graph', function()
  after_each(files.clean)

  it('draws components, streams and readers from the sources down', function()
    local r = graph()
    assert.equal(0, r.code)
    assert.equal([[
lines  (spout x1)
  default { line }
    -> split  shuffle

split  (bolt x2)
  default { word }
    -> count  fields(word)

count  (bolt x4)
  default { word, count }
]], r.stdout)
    assert.equal(r.stdout, graph('--format', 'ascii').stdout)
  end)

  it('ends with 7 when the script is still loading after --timeout', function()
    local r = process.run({ 'graph', files.write('loop.lua', 'while true do end'), '--timeout',
      '200ms' })
    assert.equal(7, r.code)
    assert.truthy(r.stderr:find('still loading after 200ms\n', 1, true), r.stderr)
    assert.equal('', r.stdout)
  end)

  it('writes Graphviz and Mermaid', function()
    local dot = graph('--format', 'dot')
    assert.equal(0, dot.code)
    assert.truthy(dot.stdout:find('^digraph "wordcount" {\n'))
    assert.truthy(dot.stdout:find('\n  "split" -> "count" [label="fields(word)"];\n', 1, true))
    local mermaid = graph('--format', 'mermaid')
    assert.truthy(mermaid.stdout:find('^flowchart LR\n'))
    assert.truthy(mermaid.stdout:find('\n  c2 -->|"fields(word)"| c3\n', 1, true))
  end)

  it('writes one JSON document with --format json and with -o json', function()
    local r = graph('--format', 'json')
    local document = assert(json.decode(r.stdout))
    assert.equal('wordcount', document.topology)
    assert.is_false(document.system)
    assert.equal(3, #document.components)
    assert.equal('bolt', document.components[2].kind)
    assert.equal(2, document.components[2].parallelism)
    assert.same({ 'line' }, document.components[1].streams[1].fields)
    assert.same({ component = 'split', stream = 'default', grouping = 'fields', fields = { 'word' } },
      document.components[3].inputs[1])
    assert.equal('lines', document.edges[1].from)
    assert.equal(r.stdout, graph('-o', 'json').stdout)
    assert.truthy(r.stdout:find('"inputs":[]', 1, true))
  end)

  it('shows what the engine adds with --system', function()
    local plain = assert(json.decode(graph('--system', '-o', 'json').stdout))
    local names = {}
    for i, component in ipairs(plain.components) do names[i] = component.name end
    assert.same({ 'lines', 'split', 'count', '__topology_master', '__metrics', '__system' }, names)
    local r = graph('--system', '--set', 'ackers=2')
    assert.truthy(r.stdout:find('__acker  (system x2)  tasks 7-8', 1, true))
    assert.truthy(r.stdout:find('__topology_master  (system x1)  task 9', 1, true))
    assert.truthy(r.stdout:find('lines  (spout x1)  task 10', 1, true))
    assert.truthy(r.stdout:find('__ack_init { id, value, task }\n    -> __acker  fields(id)', 1, true))
  end)

  it('refuses a script with errors and shows warnings on standard error', function()
    local path = files.write('bad.lua', wordcount:gsub("shuffle%('lines'%)", "shuffle('x')"))
    local r = process.run({ 'graph', path })
    assert.equal(7, r.code)
    assert.equal('', r.stdout)
    assert.equal(("error: %s:6: 'split' reads from 'x', which is no component of the topology\n")
      :format(path), r.stderr)
    path = files.write('cycle.lua', (wordcount:gsub("shuffle%('lines'%)",
      "shuffle('lines'):shuffle('count')")))
    r = process.run({ 'graph', path })
    assert.equal(0, r.code)
    assert.truthy(r.stderr:find(': warning: bolts read each other in a cycle', 1, true))
  end)

  it('exits 3 for a missing script, 7 for a broken one and 2 for an unknown format', function()
    assert.equal(3, process.run({ 'graph', 'none.lua' }).code)
    local r = process.run({ 'graph', files.write('broken.lua', 'x x') })
    assert.equal(7, r.code)
    assert.truthy(r.stderr:find('broken.lua:1: ', 1, true))
    assert.equal(2, graph('--format', 'png').code)
  end)
end)
