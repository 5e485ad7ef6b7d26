--- The logical graph as text: ascii, dot, mermaid, and as data for JSON.
--
--     local render = require 'streamlua.topology.render'
--     print(render.ascii(native.describe(handle)))
--
-- Every function takes a description of streamlua.topology.native; same description, same text.

local M = {}

local function grouping_text(input)
  if not input.fields then return input.grouping end
  return ('%s(%s)'):format(input.grouping, table.concat(input.fields, ', '))
end

-- All edges: {from=, stream=, to=, input=}, by reader and input in order of declaration.
local function edges_of(topology)
  local edges = {}
  for _, component in ipairs(topology.components) do
    for _, input in ipairs(component.inputs) do
      edges[#edges + 1] = { from = input.source, stream = input.stream, to = component.name,
        input = input }
    end
  end
  return edges
end

-- Components by rank; equal ranks keep the order of declaration.
local function by_rank(components)
  local order = {}
  for i, component in ipairs(components) do order[i] = { component = component, at = i } end
  table.sort(order, function(a, b)
    if a.component.rank ~= b.component.rank then return a.component.rank < b.component.rank end
    return a.at < b.at
  end)
  local sorted = {}
  for i, item in ipairs(order) do sorted[i] = item.component end
  return sorted
end

-- "bolt x4", "system, one a worker".
local function kind_text(component)
  if component.kind == 'system' and component.parallelism == 0 then return 'system, one a worker' end
  return ('%s x%d'):format(component.kind, component.parallelism)
end

local function task_text(component)
  local first, count = component.first_task, component.tasks
  if not first then return '' end
  if count == 1 then return ('  task %d'):format(first) end
  return ('  tasks %d-%d'):format(first, first + count - 1)
end

--- Components from the sources down, each with its streams and who reads them.
---@param topology table description
---@return string
function M.ascii(topology)
  local lines = {}
  local edges = edges_of(topology)
  for i, component in ipairs(by_rank(topology.components)) do
    if i > 1 then lines[#lines + 1] = '' end
    lines[#lines + 1] = ('%s  (%s)%s'):format(component.name, kind_text(component),
      task_text(component))
    for _, stream in ipairs(component.streams) do
      lines[#lines + 1] = ('  %s { %s }%s'):format(stream.name, table.concat(stream.fields, ', '),
        stream.direct and ' direct' or '')
      for _, edge in ipairs(edges) do
        if edge.from == component.name and edge.stream == stream.name then
          lines[#lines + 1] = ('    -> %s  %s'):format(edge.to, grouping_text(edge.input))
        end
      end
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

-- The label of an edge; the default stream goes without saying.
local function edge_text(edge)
  local text = grouping_text(edge.input)
  return edge.stream == 'default' and text or edge.stream .. ': ' .. text
end

local function quote_dot(text) return '"' .. text:gsub('[\\"]', '\\%0'):gsub('\n', '\\n') .. '"' end

--- A digraph for Graphviz.
---@param topology table description
---@return string
function M.dot(topology)
  local lines = { ('digraph %s {'):format(quote_dot(topology.name)), '  rankdir=LR;',
    '  node [shape=box];' }
  local shapes = { spout = 'cds', system = 'component' }
  for _, component in ipairs(topology.components) do
    local shape = shapes[component.kind]
    lines[#lines + 1] = ('  %s [label=%s%s];'):format(quote_dot(component.name),
      quote_dot(component.name .. '\n' .. kind_text(component)),
      shape and ', shape=' .. shape or '')
  end
  for _, edge in ipairs(edges_of(topology)) do
    lines[#lines + 1] = ('  %s -> %s [label=%s];'):format(quote_dot(edge.from), quote_dot(edge.to),
      quote_dot(edge_text(edge)))
  end
  lines[#lines + 1] = '}'
  return table.concat(lines, '\n') .. '\n'
end

-- Mermaid takes any text in quotes when quotes and its own marks are entities.
local function quote_mermaid(text)
  return '"' .. text:gsub('[#"<>&|]', function(c) return ('#%d;'):format(c:byte()) end) .. '"'
end

--- A flowchart for Mermaid.
---@param topology table description
---@return string
function M.mermaid(topology)
  local lines, ids = { 'flowchart LR' }, {}
  for i, component in ipairs(topology.components) do
    ids[component.name] = 'c' .. i
    local open, close = '[', ']'
    if component.kind == 'spout' then open, close = '([', '])' end
    if component.kind == 'system' then open, close = '[[', ']]' end
    lines[#lines + 1] = ('  c%d%s%s%s'):format(i, open,
      quote_mermaid(component.name .. ' - ' .. kind_text(component)), close)
  end
  for _, edge in ipairs(edges_of(topology)) do
    lines[#lines + 1] = ('  %s -->|%s| %s'):format(ids[edge.from], quote_mermaid(edge_text(edge)),
      ids[edge.to])
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Plain data for a JSON document: {topology, system, components, edges}. `list` marks a table as a
--- list, so that an empty one is written [].
---@param topology table description
---@param list fun(items: table): table
---@return table
function M.data(topology, list)
  local components, edges = list({}), list({})
  for i, component in ipairs(topology.components) do
    local streams, inputs = list({}), list({})
    for j, stream in ipairs(component.streams) do
      streams[j] = { name = stream.name, fields = list(stream.fields), direct = stream.direct }
    end
    for j, input in ipairs(component.inputs) do
      inputs[j] = { component = input.source, stream = input.stream, grouping = input.grouping,
        fields = input.fields and list(input.fields) or nil }
    end
    components[i] = { name = component.name, kind = component.kind,
      parallelism = component.parallelism, cpu = component.cpu, ram = component.ram,
      disk = component.disk, rank = component.rank, cyclic = component.cyclic,
      first_task = component.first_task, streams = streams, inputs = inputs }
  end
  for i, edge in ipairs(edges_of(topology)) do
    edges[i] = { from = edge.from, stream = edge.stream, to = edge.to,
      grouping = edge.input.grouping, fields = edge.input.fields }
  end
  return { topology = topology.name, system = topology.system, components = components,
    edges = edges }
end

return M
