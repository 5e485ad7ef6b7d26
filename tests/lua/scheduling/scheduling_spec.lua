-- Scheduling from Lua: documents, requests of topologies, differences and figures. labels: short
local document = require 'streamlua.scheduling.document'
local json = require 'streamlua.json'
local scheduling = require 'streamlua.scheduling'
local streamlua = require 'streamlua'

local function word_count(config)
  local t = streamlua.topology('wc', config or { workers = 3, ackers = 1 })
  local spout = streamlua.spout { fields = { 'line' }, next_tuple = function() end }
  local bolt = streamlua.bolt { fields = { 'word' }, execute = function() end }
  t:spout('spout', spout, { parallelism = 2 })
  t:bolt('split', bolt, { parallelism = 3 }):shuffle('spout')
  t:bolt('count', bolt, { parallelism = 3 }):fields('split', { 'word' })
  return t
end

local UNIFORM = { supervisors = 3, slots = 4 }

local function request_of(more)
  local request = assert(scheduling.request_from_topology(word_count(), UNIFORM))
  for key, value in pairs(more or {}) do request[key] = value end
  return request
end

-- "s1:6800 1,4,8,9; s2:6800 2,5,10"
local function layout(assignment)
  local parts = {}
  for i, worker in ipairs(assignment.workers) do
    parts[i] = ('%s:%d %s'):format(worker.supervisor, worker.port, table.concat(worker.tasks, ','))
  end
  return table.concat(parts, '; ')
end

local C1 = 's1:6800 1,4,8,9; s2:6800 2,5,10; s3:6800 3,6,7'

local function faults_of(request)
  local value, err = scheduling.validate_request(request)
  assert.is_nil(value)
  assert.equal('EINVAL', err.code)
  return err.faults, err.message
end

local function expect_fault(words, request)
  local _, message = faults_of(request)
  assert.truthy(message:find(words, 1, true), message)
end

describe('the request of a topology', function()
  it('numbers bolts, __acker, __topology_master and spouts', function()
    local request = request_of()
    local ids = {}
    for i, component in ipairs(request.components) do
      ids[i] = ('%s %s'):format(component.name, table.concat(component.tasks, ','))
    end
    assert.same({ 'split 1,2,3', 'count 4,5,6', '__acker 7', '__topology_master 8', 'spout 9,10' },
      ids)
    assert.same({ 'split' }, request.components[2].inputs)
    assert.equal('new', request.mode)
    assert.equal(3, request.workers)
  end)

  it('has no acker without ackers', function()
    local t = word_count({ workers = 3 })
    local request = assert(scheduling.request_from_topology(t, UNIFORM))
    assert.equal('__topology_master', request.components[3].name)
    assert.same({ 7 }, request.components[3].tasks)
    t = word_count({ ackers = 2, acking = false })
    request = assert(scheduling.request_from_topology(t, UNIFORM))
    assert.same({ 7 }, request.components[3].tasks)
  end)

  it('keeps ids of a previous assignment, grows with max + 1 and drops the highest', function()
    local first = assert(scheduling.assign(request_of(), 'balanced'))
    local function tasks_after(parallelism)
      local request = assert(scheduling.request_from_topology(word_count(), UNIFORM,
        { previous = first, parallelism = parallelism }))
      return request.components[2].tasks, request.components[1].tasks, request
    end
    assert.same({ 4, 5, 6, 11, 12 }, (tasks_after { count = 5 }))
    assert.same({ 4 }, (tasks_after { count = 1 }))
    local count, split, request = tasks_after { count = 4, split = 4 }
    assert.same({ 4, 5, 6, 12 }, count)
    assert.same({ 1, 2, 3, 11 }, split)
    assert.equal('keep', request.mode)
  end)

  it('goes on from ids that an assignment carries', function()
    local from_topology = require 'streamlua.scheduling.topology'
    local t = word_count()
    local first = assert(scheduling.assign(request_of(), 'balanced'))
    assert.is_nil(from_topology.components_to_keep(t, request_of()))
    local request = assert(scheduling.request_from_topology(t, UNIFORM,
      { previous = first, parallelism = { count = 5 } }))
    local second = assert(scheduling.assign(request, 'balanced'))
    second.components = from_topology.components_to_keep(t, request)
    request = assert(scheduling.request_from_topology(t, UNIFORM,
      { previous = second, parallelism = { count = 6 } }))
    assert.same({ 4, 5, 6, 11, 12, 13 }, request.components[2].tasks)
    request = assert(scheduling.request_from_topology(t, UNIFORM,
      { previous = second, parallelism = { count = 4 } }))
    assert.same({ 4, 5, 6, 11 }, request.components[2].tasks)
  end)

  it('marks the tasks of dead workers, and the own ports in mode monitor', function()
    local first = assert(scheduling.assign(request_of(), 'balanced'))
    local request = assert(scheduling.request_from_topology(word_count(), UNIFORM, {
      previous = first, mode = 'monitor', dead = { { supervisor = 's2', port = 6800 } } }))
    assert.same({ 2, 5, 10 }, request.dead_tasks)
    assert.same({ 6800 }, request.cluster.supervisors[1].used)
    local assignment = assert(scheduling.assign(request))
    assert.equal('s1:6800 1,4,8,9; s1:6801 2,5,10; s3:6800 3,6,7', layout(assignment))
    local none, err = scheduling.request_from_topology(word_count(), UNIFORM, {
      previous = first, mode = 'monitor', dead = { { supervisor = 's9', port = 1 } } })
    assert.is_nil(none)
    assert.truthy(err.message:find('s9:1', 1, true))
  end)

  it('takes workers, isolation, pins and sizes from the config', function()
    local t = word_count { containers = 4, isolation = { 'h1', 'h2' }, container_ram = '1GiB',
      user_workers = { { host = 'h2', ram = '2GiB', components = { split = 2 } } },
      on_different_nodes = { 'spout' }, reserve_workers = 1, master_alone = false }
    local request = assert(scheduling.request_from_topology(t, UNIFORM))
    assert.equal(4, request.workers)
    assert.same({ 'h1', 'h2' }, request.isolation)
    assert.equal(2 ^ 30, request.container_ram)
    assert.equal(2 ^ 31, request.user_workers[1].ram)
    local assignment = assert(scheduling.assign(request))
    assert.equal(2 ^ 30, assignment.workers[1].ram)
    assert(scheduling.validate_assignment(assignment, request))
  end)

  it('packs for the scheduler packed', function()
    local request = assert(scheduling.request_from_topology(word_count { workers = 2, ackers = 1 },
      UNIFORM, { scheduler = 'packed' }))
    assert.equal(2, #request.plan.containers)
    local assignment = assert(scheduling.assign(request, 'packed'))
    assert.equal(2, #assignment.workers)
    local tasks = {}
    for _, worker in ipairs(assignment.workers) do
      for _, task in ipairs(worker.tasks) do tasks[#tasks + 1] = task end
    end
    table.sort(tasks)
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, tasks)
  end)

  it('packs again for packed: ids stay, growth takes max + 1, shrinking drops the highest', function()
    local function tasks_of(options)
      options.scheduler = 'packed'
      local request = assert(scheduling.request_from_topology(word_count { workers = 2, ackers = 1 },
        UNIFORM, options))
      local tasks = {}
      for _, component in ipairs(request.components) do tasks[component.name] = component.tasks end
      return tasks, request
    end
    local before, request = tasks_of({})
    local previous = assert(scheduling.assign(request, 'packed'))
    local after = tasks_of({ previous = previous, parallelism = { split = 2, spout = 4 } })
    local highest = before[document.MASTER][1]
    for name, tasks in pairs(before) do
      local kept = {}
      for i = 1, math.min(#tasks, #after[name]) do kept[i] = after[name][i] end
      for i = 1, #kept do assert.equal(tasks[i], kept[i], name) end
    end
    assert.same({ 2, 4 }, { #after.split, #after.spout })
    assert.same({ highest + 1, highest + 2 }, { after.spout[3], after.spout[4] })
  end)
end)

describe('assigning', function()
  it('gives row C1', function()
    local assignment = assert(scheduling.assign(request_of()))
    assert.equal(C1, layout(assignment))
    assert.same({ topology = 'wc', scheduler = 'balanced' },
      { topology = assignment.topology, scheduler = assignment.scheduler })
    assert.same({ supervisor = 's2', host = 'h2', port = 6800, tasks = { 2, 5, 10 } },
      assignment.workers[2])
  end)

  it('takes requests as JSON writes them', function()
    local request = request_of()
    request.previous, request.master_alone, request.plan = json.null, json.null, json.null
    request = assert(json.decode(assert(json.encode(request))))
    assert.equal(C1, layout(assert(scheduling.assign(request))))
  end)

  it('gives the same answer for any order of the lists', function()
    local request = request_of()
    local function reverse(list)
      local result = {}
      for i = #list, 1, -1 do result[#result + 1] = list[i] end
      return result
    end
    request.components = reverse(request.components)
    request.cluster.supervisors = reverse(request.cluster.supervisors)
    for _, component in ipairs(request.components) do component.tasks = reverse(component.tasks) end
    assert.equal(C1, layout(assert(scheduling.assign(request))))
  end)

  it('lets every built-in keep its promises', function()
    for _, name in ipairs(scheduling.names) do
      if name ~= 'packed' then
        local request = request_of({ isolation = { 'h1', 'h3' } })
        assert(scheduling.validate_assignment(assert(scheduling.assign(request, name)), request))
      end
    end
  end)

  it('refuses with numbers and code', function()
    local value, err = scheduling.assign(request_of({ cluster = { supervisors = 1, slots = 2 } }))
    assert.is_nil(value)
    assert.equal('EUNSATISFIABLE', err.code)
    assert.truthy(err.message:find('need 3, free 2', 1, true), err.message)
    local first = assert(scheduling.assign(request_of()))
    value, err = scheduling.assign(request_of({ previous = first, mode = 'monitor' }))
    assert.is_nil(value)
    assert.equal('ECONFLICT', err.code)
  end)

  it('names unknown schedulers and missing files', function()
    local value, err = scheduling.assign(request_of(), 'balanzed')
    assert.is_nil(value)
    assert.equal('EINVAL', err.code)
    assert.truthy(err.message:find('balanced', 1, true))
    value, err = scheduling.assign(request_of(), './missing.lua')
    assert.is_nil(value)
    assert.equal('ENOTFOUND', err.code)
  end)
end)

describe('validating a request', function()
  it('lists every fault', function()
    local request = request_of()
    request.colour = 'red'
    request.mode = 'fast'
    request.components[1].tasks = { 1, 1, -2 }
    request.components[2].inputs = { 'splot' }
    request.workers = 0
    request.cluster.supervisors[1].cpu = -1
    request.cluster.supervisors[2].id = 's1'
    request.isolation = 'h1'
    local faults = faults_of(request)
    assert.equal(9, #faults, table.concat(faults, '\n'))
  end)

  local rows = {
    { 'unknown keys', "unknown key 'worker'", function(r) r.worker = 3 end },
    { 'a missing cluster', 'cluster must be a table', function(r) r.cluster = nil end },
    { 'missing components', 'components must be a list', function(r) r.components = nil end },
    { 'a name given twice', "components[2].name is 'split', as components[1] is",
      function(r) r.components[2].name = 'split' end },
    { 'a task given twice', "has task 1, which 'split' has already",
      function(r) r.components[2].tasks[1] = 1 end },
    { 'NaN', 'cpu must be a number of cores',
      function(r) r.cluster.supervisors[1].cpu = 0 / 0 end },
    { 'infinite ram', 'ram must be a size', function(r) r.container_ram = math.huge end },
    { 'a port given twice', "has 6800 twice",
      function(r) r.cluster.supervisors[1].ports[2] = 6800 end },
    { 'pins of unknown components', "names the unknown component 'cuont' (did you mean 'count'?)",
      function(r) r.user_workers = { { components = { cuont = 1 } } } end },
    { 'different nodes of unknown components', "on_different_nodes names the unknown component",
      function(r) r.on_different_nodes = { 'x' } end },
    { 'a mode without a previous assignment', "previous must be given in mode 'keep'",
      function(r) r.mode = 'keep' end },
    { 'a faulty previous assignment', 'previous: workers[1].port must be a port',
      function(r) r.previous = { topology = 'wc', workers = { { supervisor = 's1', tasks = { 1 } } } }
      end },
    { 'dead tasks that nobody has', 'dead_tasks has task 99, which no component has',
      function(r) r.dead_tasks = { 99 } end },
    { 'a plan that is none', 'plan: ', function(r) r.plan = { containers = 3 } end },
    { 'two masters', "of '__topology_master' must be one task, got 2",
      function(r) r.components[4].tasks = { 8, 88 } end },
    { 'a bolt without tasks', "of 'split' must have at least one task",
      function(r) r.components[1].tasks = {} end },
    { 'too large a uniform cluster', 'cluster.slots',
      function(r) r.cluster = { supervisors = 1000000, slots = 1000 } end },
    { 'a list as topology', 'topology is', function(r) r.topology = {} end },
  }
  for _, row in ipairs(rows) do
    it('tells of ' .. row[1], function()
      local request = request_of()
      row[3](request)
      expect_fault(row[2], request)
    end)
  end

  it('refuses what is no table', function()
    expect_fault('must be a table', 'x')
    expect_fault('must be a table', nil)
  end)
end)

describe('validating an assignment', function()
  local function broken(change, more)
    local request = request_of(more)
    local assignment = assert(scheduling.assign(request))
    change(assignment, request)
    local value, err = scheduling.validate_assignment(assignment, request)
    assert.is_nil(value)
    return err.message
  end

  local rows = {
    { 'a task left out', "leave out task 10 of 'spout'",
      function(a) table.remove(a.workers[2].tasks) end },
    { 'a task twice', 'has task 1, which s1:6800 has already',
      function(a) table.insert(a.workers[2].tasks, 1) end },
    { 'a strange task', 'have task 77, which no component has',
      function(a) table.insert(a.workers[2].tasks, 77) end },
    { 'one slot twice', 'is on slot s1:6800, as workers[1] is',
      function(a) a.workers[2].supervisor = 's1' end },
    { 'an unknown supervisor', "is 's9', which the cluster does not have",
      function(a) a.workers[2].supervisor = 's9' end },
    { 'an unknown port', "is 7000, which supervisor 's2' does not have",
      function(a) a.workers[2].port = 7000 end },
    { 'a used port', "is 6800, which is taken on supervisor 's2'",
      function(_, r) r.cluster.supervisors[2].used = { 6800 } end },
    { 'a wrong host', "is 'h7', but supervisor 's2' is on 'h2'",
      function(a) a.workers[2].host = 'h7' end },
    { 'a worker without tasks', 'has no tasks', function(a) a.workers[2].tasks = {} end },
    { 'a host outside of isolation', "is on host 'h2', which isolation leaves out",
      function(_, r) r.isolation = { 'h1', 'h3' } end },
    { 'tasks that must run on different nodes', 'they must run on different nodes',
      function(a, r)
        r.on_different_nodes = { 'count' }
        a.workers[1].tasks, a.workers[2].tasks = { 1, 4, 5, 8, 9 }, { 2, 10 }
      end },
    { 'too much cpu', "need 2 cpu on supervisor 's1', it has 1",
      function(a, r)
        a.workers[1].cpu = 2
        r.cluster.supervisors[1].cpu = 1
      end },
    { 'too many workers', 'are 3, asked for are 1', function(_, r)
      r.workers, r.master_alone = 1, false
    end },
    { 'a master with company', 'it is to be alone', function(_, r) r.master_alone = true end },
    { 'a pin that is not honoured', 'do not honour user_workers[1] (host h3, port 6803)',
      function(_, r)
        r.user_workers = { { host = 'h3', port = 6803, components = { split = 1 } } }
      end },
    { 'reserved slots', 'leave 9 slots free, reserved are 10', function(_, r)
      r.reserve_workers = 10
    end },
    { 'another topology', "is 'x', the request is for 'wc'", function(a) a.topology = 'x' end },
    { 'unknown keys', "unknown key 'tasks'", function(a) a.tasks = {} end },
  }
  for _, row in ipairs(rows) do
    it('tells of ' .. row[1], function()
      local message = broken(row[3])
      assert.truthy(message:find(row[2], 1, true), message)
    end)
  end

  it('tells of all that is wrong at once', function()
    local message = broken(function(a)
      a.workers[1].supervisor = 's9'
      a.workers[2].tasks = { 1, 2, 77 }
      a.workers[3].tasks = {}
    end)
    for _, part in ipairs({ 'has task 1, which s9:6800 has already', 'workers[3] has no tasks',
      'have task 77, which no component has', "leave out task 5 of 'count'",
      "is 's9', which the cluster does not have" }) do
      assert.truthy(message:find(part, 1, true), message)
    end
  end)

  it('lets nothing move that runs on in mode monitor', function()
    local first = assert(scheduling.assign(request_of()))
    local request = request_of { mode = 'monitor', previous = first, dead_tasks = { 2, 5, 10 } }
    local assignment = assert(scheduling.assign(request))
    assert(scheduling.validate_assignment(assignment, request))
    assignment.workers[1].tasks = { 4, 8, 9 }
    assignment.workers[2].tasks = { 1, 2, 5, 10 }
    local value, err = scheduling.validate_assignment(assignment, request)
    assert.is_nil(value)
    assert.truthy(err.message:find('move task 1 from s1:6800 to s1:6801', 1, true), err.message)
  end)
end)

describe('differences and figures', function()
  it('tells kept, moved, started and stopped tasks', function()
    local first = assert(scheduling.assign(request_of()))
    local request = assert(scheduling.request_from_topology(word_count { workers = 4, ackers = 1 },
      UNIFORM, { previous = first, mode = 'reassign' }))
    local second = assert(scheduling.assign(request))
    local delta = assert(scheduling.diff(first, second))
    assert.is_false(delta.same)
    assert.equal(3, delta.moved)
    assert.same({ 4, 7, 8 }, { delta.moves[1].task, delta.moves[2].task, delta.moves[3].task })
    assert.same({ task = 4, from = 's1:6800', to = 's1:6801' }, delta.moves[1])
    assert.equal('NEW', delta.workers[2].state)
    assert.truthy(scheduling.render_diff(delta):find('7 tasks kept, 3 moved, 0 started', 1, true))
    assert.is_true(scheduling.diff(first, first).same)
  end)

  it('counts edges between workers and nodes', function()
    local request = request_of()
    local figures = assert(scheduling.evaluate(assert(scheduling.assign(request)), request))
    -- spout x split has 6 pairs, split x count 9; of them 2 and 3 are in one worker.
    assert.same({ workers = 3, min_tasks = 3, max_tasks = 4, cross_worker_edges = 10,
      cross_node_edges = 10, moved = 0 }, figures)
    request = request_of({ cluster = { supervisors = 1, slots = 4 } })
    figures = assert(scheduling.evaluate(assert(scheduling.assign(request)), request))
    assert.equal(0, figures.cross_node_edges)
  end)

  it('counts what moved since the previous assignment', function()
    local first = assert(scheduling.assign(request_of()))
    local request = request_of { previous = first, mode = 'reassign', workers = 4 }
    local figures = assert(scheduling.evaluate(assert(scheduling.assign(request)), request))
    assert.equal(3, figures.moved)
  end)

  it('shows an assignment with components and supervisors', function()
    local request = request_of()
    local text = scheduling.render(assert(scheduling.assign(request)), { request = request })
    assert.truthy(text:find('split 1  count 4  __topology_master 8  spout 9', 1, true), text)
    assert.truthy(text:find('3 workers on 3 supervisors, 3 to 4 tasks each', 1, true), text)
  end)
end)
