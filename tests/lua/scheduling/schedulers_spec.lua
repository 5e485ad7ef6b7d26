-- The schedulers of scripts/schedulers, and what custom ones may do wrong.
local files = require 'support.files'
local scheduling = require 'streamlua.scheduling'

local function component(name, kind, first, count, inputs)
  local tasks = {}
  for i = 1, count do tasks[i] = first + i - 1 end
  return { name = name, kind = kind, tasks = tasks, inputs = inputs or {} }
end

local function supervisors(list)
  local result = {}
  for i, more in ipairs(list) do
    local supervisor = { id = 's' .. i, host = 'h' .. i, ports = { 6800, 6801, 6802, 6803 } }
    for key, value in pairs(more) do supervisor[key] = value end
    result[i] = supervisor
  end
  return { supervisors = result }
end

-- s x4 -> p x4 -> c x4, and the topology master.
local function request_of(more)
  local large = { cpu = 16 }
  local request = {
    topology = 't', workers = 4, cluster = supervisors { large, large, large, large },
    components = {
      component('p', 'bolt', 1, 4, { 's' }),
      component('c', 'bolt', 5, 4, { 'p' }),
      component('__topology_master', 'system', 9, 1),
      component('s', 'spout', 10, 4),
    },
  }
  for key, value in pairs(more or {}) do request[key] = value end
  return request
end

local function assign(name, request)
  return assert(scheduling.assign(request, 'scripts/schedulers/' .. name .. '.lua'))
end

local function nodes_of(assignment)
  local count = {}
  for _, worker in ipairs(assignment.workers) do
    count[worker.supervisor] = (count[worker.supervisor] or 0) + #worker.tasks
  end
  return count
end

local function size(map)
  local n = 0
  for _ in pairs(map) do n = n + 1 end
  return n
end

local names = { 'traffic-aware', 'load-aware', 'rack-spread', 'bin-packing' }

describe('every scheduler of scripts/schedulers', function()
  for _, name in ipairs(names) do
    it(name .. ' serves all modes, isolation, different nodes and dead workers', function()
      local first = assign(name, request_of { isolation = { 'h1', 'h2', 'h3' } })
      assert.equal(name, first.scheduler)
      for _, mode in ipairs({ 'keep', 'reassign', 'minimal' }) do
        local request = request_of { previous = first, mode = mode, workers = 3 }
        request.components[2].tasks[5] = 14
        local second = assign(name, request)
        if mode == 'keep' then
          assert.is_true(scheduling.evaluate(second, request).moved <= 4)
        end
      end
      assign(name, request_of { on_different_nodes = { 'c' } })
      local dead = first.workers[1]
      local request = request_of { previous = first, mode = 'monitor', dead_tasks = dead.tasks }
      for _, supervisor in ipairs(request.cluster.supervisors) do
        supervisor.used = {}
        for _, worker in ipairs(first.workers) do
          if worker.supervisor == supervisor.id then
            table.insert(supervisor.used, worker.port)
          end
        end
      end
      local after = assign(name, request)
      for _, worker in ipairs(after.workers) do
        assert.is_false(worker.supervisor == dead.supervisor and worker.port == dead.port)
      end
    end)

    it(name .. ' gives the topology master a worker of its own when asked', function()
      local assignment = assign(name, request_of { master_alone = true })
      for _, worker in ipairs(assignment.workers) do
        for _, task in ipairs(worker.tasks) do
          if task == 9 then assert.equal(1, #worker.tasks) end
        end
      end
    end)

    it(name .. ' honours user workers', function()
      local assignment = assign(name, request_of {
        user_workers = { { host = 'h3', port = 6802, components = { p = 2 } } } })
      for _, worker in ipairs(assignment.workers) do
        if worker.supervisor == 's3' and worker.port == 6802 then
          assert.equal(1, worker.tasks[1])
          assert.equal(2, worker.tasks[2])
        end
      end
    end)

    it(name .. ' says when there are too few slots', function()
      local value, err = scheduling.assign(request_of { cluster = { supervisors = 1, slots = 1 },
        master_alone = true }, 'scripts/schedulers/' .. name .. '.lua')
      assert.is_nil(value)
      assert.equal('EUSER', err.code)
    end)
  end
end)

describe('traffic-aware', function()
  it('never has more edges between nodes than balanced', function()
    for _, workers in ipairs({ 2, 3, 4, 6 }) do
      local request = request_of { workers = workers,
        cluster = supervisors { { ports = { 1, 2 } }, { ports = { 1, 2 } }, { ports = { 1, 2 } } } }
      local mine = scheduling.evaluate(assign('traffic-aware', request), request)
      local usual = scheduling.evaluate(assert(scheduling.assign(request)), request)
      assert.is_true(mine.cross_node_edges <= usual.cross_node_edges)
      assert.is_true(mine.max_tasks - mine.min_tasks <= 1)
    end
  end)

  it('puts what talks most on one node', function()
    -- Two nodes with one slot each: either s and p, or p and c can be together.
    local function crossing(rates)
      local request = {
        topology = 't', workers = 2, rates = rates, master_alone = false,
        cluster = supervisors { { ports = { 1 } }, { ports = { 1 } } },
        components = { component('p', 'bolt', 1, 1, { 's' }), component('c', 'bolt', 2, 1, { 'p' }),
          component('x', 'bolt', 3, 1, { 's' }), component('s', 'spout', 4, 1) },
      }
      for _, worker in ipairs(assign('traffic-aware', request).workers) do
        local has = {}
        for _, task in ipairs(worker.tasks) do has[task] = true end
        if has[1] then return has[4] and 'with s' or has[2] and 'with c' end
      end
    end
    assert.equal('with s', crossing { { from = 's', to = 'p', rate = 100 },
      { from = 'p', to = 'c', rate = 1 }, { from = 's', to = 'x', rate = 2 } })
    assert.equal('with c', crossing { { from = 's', to = 'p', rate = 1 },
      { from = 'p', to = 'c', rate = 100 }, { from = 's', to = 'x', rate = 2 } })
  end)
end)

describe('load-aware', function()
  it('leaves busy machines alone and gives idle ones more', function()
    local count = nodes_of(assign('load-aware', request_of { workers = 2, cluster = supervisors {
      { load = 0.9 }, { load = 0.1 }, { load = 0.95 }, { load = 0.2 } } }))
    assert.is_nil(count.s1)
    assert.is_nil(count.s3)
    count = nodes_of(assign('load-aware', request_of { workers = 2, cluster = supervisors {
      { load = 0.75, ports = { 1 } }, { load = 0, ports = { 1 } } } }))
    -- A quarter of a core is idle against a whole one: about a fifth of the 13 tasks.
    assert.same({ s1 = 2, s2 = 11 }, count)
  end)
end)

describe('rack-spread', function()
  it('spreads workers and components over racks before nodes', function()
    local request = request_of { workers = 4, cluster = supervisors {
      { rack = 'a' }, { rack = 'a' }, { rack = 'a' }, { rack = 'b' } } }
    local count = nodes_of(assign('rack-spread', request))
    assert.is_true(count.s4 >= 6)
    assert.equal(3, size(count))
  end)
end)

describe('bin-packing', function()
  it('fills as few nodes as hold the tasks and states what a worker takes', function()
    local request = request_of { workers = 4, cluster = supervisors {
      { cpu = 8, ram = 2 ^ 33 }, { cpu = 8, ram = 2 ^ 33 }, { cpu = 8, ram = 2 ^ 33 } } }
    local assignment = assign('bin-packing', request)
    assert.equal(2, #assignment.workers)
    local cpu = 0
    for _, worker in ipairs(assignment.workers) do cpu = cpu + worker.cpu end
    assert.is_true(math.abs(cpu - 12.1) < 1e-9)
  end)

  it('says which task fits nowhere', function()
    local request = request_of { cluster = supervisors { { cpu = 2 }, { cpu = 2 } } }
    local value, err = scheduling.assign(request, 'bin-packing')
    assert.is_nil(value)
    assert.truthy(err.message:find("no node has that left", 1, true), err.message)
  end)
end)

describe('a custom scheduler', function()
  after_each(files.clean)

  local function refused(text, words)
    local path = files.write('mine.lua', text)
    local value, err = scheduling.assign(request_of(), path)
    assert.is_nil(value)
    assert.equal('EUSER', err.code)
    assert.truthy(tostring(err):find(words, 1, true), tostring(err))
    return tostring(err)
  end

  it('gets a request of its own and may spoil it', function()
    local path = files.write('mine.lua', [[
      return { name = 'mine', assign = function(request)
        local tasks = {}
        for _, component in ipairs(request.components) do
          for _, task in ipairs(component.tasks) do tasks[#tasks + 1] = task end
        end
        local slot = request.cluster.supervisors[2]
        request.components, request.cluster = nil, nil
        return { workers = { { supervisor = slot.id, port = slot.ports[1], tasks = tasks } } }
      end }]])
    local request = request_of()
    local assignment = assert(scheduling.assign(request, path))
    assert.equal('mine', assignment.scheduler)
    assert.equal('t', assignment.topology)
    assert.equal('h2', assignment.workers[1].host)
    assert.equal(13, #assignment.workers[1].tasks)
    assert.equal(4, #request.components)
  end)

  it('is shown the room that user workers with a size of their own leave', function()
    local path = files.write('mine.lua', [[
      local toolkit = require 'streamlua.scheduling.toolkit'
      return { name = 'mine', assign = function(request)
        local state = toolkit.start(request)
        while state.workers_to_open > 0 do state:open(state:node_with_room()) end
        for i, task in ipairs(state.tasks) do
          state:put(state.workers[(i - 1) % #state.workers + 1], task)
        end
        return state:finish()
      end }]])
    local assignment = assert(scheduling.assign(request_of { workers = 5, container_cpu = 1,
      cluster = supervisors { { cpu = 4 }, { cpu = 4 } },
      user_workers = { { host = 'h1', cpu = 3, components = { p = 1 } } } }, path))
    local slots = {}
    for i, worker in ipairs(assignment.workers) do slots[i] = worker.supervisor end
    assert.same({ 's1', 's1', 's2', 's2', 's2' }, slots)
  end)

  it('is told every fault of what it returns', function()
    local message = refused([[return { assign = function()
      return { workers = { { supervisor = 's9', port = 1, tasks = { 1, 2, 99 } } } }
    end }]], "which the cluster does not have")
    assert.truthy(message:find("leave out task 3 of 'p'", 1, true))
    assert.truthy(message:find('have task 99', 1, true))
  end)

  it('must return a scheduler with assign', function()
    refused('return 3', 'it returns a number')
    refused('local x = 1', 'it returns nothing')
    refused('return {}', 'its assign is missing')
    refused('return { assign = 1 }', 'its assign is a number')
    refused('return { name = 3, assign = print }', 'its name is a number')
  end)

  it('has errors with file and line', function()
    refused('\n\nx = = 1', 'mine.lua:3:')
    refused('\nerror("at load")', 'mine.lua:2: at load')
    refused('return { assign = function()\n\n  error("oh") end }', 'mine.lua:3: oh')
    refused('return { assign = function() return nil end }', 'returned nothing')
    refused('return { assign = function() return 7 end }', 'must be a table')
  end)

  it('is read again by reload', function()
    local function text(port)
      return ([[return { name = 'mine', assign = function(request)
        local tasks = {}
        for _, c in ipairs(request.components) do
          for _, task in ipairs(c.tasks) do tasks[#tasks + 1] = task end
        end
        return { workers = { { supervisor = 's1', port = %d, tasks = tasks } } }
      end }]]):format(port)
    end
    local scheduler = assert(scheduling.scheduler(files.write('mine.lua', text(6800))))
    assert.equal(6800, scheduling.assign(request_of(), scheduler).workers[1].port)
    files.write('mine.lua', text(6803))
    assert.equal(scheduler, scheduler:reload())
    assert.equal(6803, scheduling.assign(request_of(), scheduler).workers[1].port)
    files.write('mine.lua', 'return 1')
    assert.has_error(function() scheduler:reload() end)
  end)
end)
