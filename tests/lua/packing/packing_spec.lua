-- Requests, plans, deltas and custom packers from Lua. labels: short
local json = require 'streamlua.json'
local packing = require 'streamlua.packing'
local process = require 'support.process'

local GIB = 2 ^ 30

local function request_of(more)
  local request = {
    topology = 't', config = { container_max_instances = 4 },
    components = {
      { name = 'spout', kind = 'spout', parallelism = 4 },
      { name = 'bolt', kind = 'bolt', parallelism = 3 },
    },
  }
  for key, value in pairs(more or {}) do request[key] = value end
  return request
end

-- "1[spout0#1 bolt0#2]": containers with index and task.
local function layout(plan)
  local parts = {}
  for k, container in ipairs(plan.containers) do
    local cells = {}
    for i, instance in ipairs(container.instances) do
      cells[i] = ('%s%d#%d'):format(instance.component:sub(1, 1):upper(), instance.index,
        instance.task)
    end
    parts[k] = ('%d[%s]'):format(container.id, table.concat(cells, ' '))
  end
  return table.concat(parts, ' ')
end

describe('streamlua.packing', function()
  it('packs row F1', function()
    local plan = assert(packing.pack(request_of(), 'first_fit_decreasing'))
    assert.equal('1[S0#1 S1#2 S2#3] 2[S3#4 B0#5 B1#6] 3[B2#7]', layout(plan))
    assert.equal('t', plan.topology)
    assert.equal(1, plan.version)
    assert.equal('first_fit_decreasing', plan.packing)
    assert.same({ component = 'spout', task = 1, index = 0, cpu = 1, ram = GIB, disk = GIB },
      plan.containers[1].instances[1])
    assert.equal(4, plan.containers[1].cpu)
    assert.equal(4 * GIB, plan.containers[1].ram)
  end)

  it('repacks row F8 and counts the version on', function()
    local request = request_of()
    local plan = assert(packing.pack(request, 'first_fit_decreasing'))
    local grown = assert(packing.repack(plan, { bolt = 5 }, { request = request }))
    assert.equal('1[S0#1 S1#2 S2#3] 2[S3#4 B0#5 B1#6] 3[B2#7 B3#8 B4#9] 4[B5#10 B6#11 B7#12]',
      layout(grown))
    assert.equal(2, grown.version)
    assert.same(plan.containers[1], grown.containers[1])
  end)

  it('repacks row R10 by the other packer', function()
    local request = request_of()
    local plan = assert(packing.pack(request, 'resource_compliant_rr'))
    local grown = assert(packing.repack(plan, { bolt = 5 },
      { request = request, repacker = 'resource_compliant_rr' }))
    assert.equal('1[S0#1 S3#4 B2#7] 2[S1#2 B0#5 B3#8] 3[S2#3 B1#6 B4#9] 4[B5#10 B7#12] 5[B6#11]',
      layout(grown))
  end)

  it('packs by round robin and repacks by first fit decreasing unless told otherwise', function()
    local request = request_of { config = { containers = 2 } }
    local plan = assert(packing.plan(request))
    assert.equal('round_robin', plan.packing)
    request.current, request.changes = plan, { bolt = 1 }
    assert.equal('first_fit_decreasing', assert(packing.plan(request)).packing)
    request.config.repacking = 'round_robin'
    assert.equal('round_robin', assert(packing.plan(request)).packing)
  end)

  it('takes sizes as text and counts bytes down', function()
    local request = request_of()
    request.components[1].ram = '1.5GiB'
    request.components[2].ram = 2 * GIB + 0.75
    local normal = assert(packing.validate_request(request))
    assert.equal(1.5 * GIB, normal.components[1].ram)
    assert.equal(2 * GIB, normal.components[2].ram)
  end)

  it('reads a request as JSON has it, with nulls', function()
    local request = assert(json.decode [[{"topology":"t","config":{"container_max_instances":4,
      "containers":2,"container_ram":10737418240},"components":[{"name":"spout","kind":"spout",
      "parallelism":4,"cpu":null,"ram":1073741824,"disk":null},{"name":"bolt","kind":"bolt",
      "parallelism":3}],"current":null,"changes":null,"containers":null}]])
    assert.equal(2, #assert(packing.pack(request)).containers)
  end)

  it('refuses with component, resource, need and room', function()
    local request = request_of()
    request.components[2].ram = '9GiB'
    local plan, fault = packing.pack(request, 'first_fit_decreasing')
    assert.is_nil(plan)
    assert.equal('EUNSATISFIABLE', fault.code)
    assert.equal("component 'bolt' does not fit into an empty container: ram: need 9663676416 "
      .. 'bytes, room 3221225472', fault.message)
  end)

  it('warns of padding that round robin drops', function()
    local request = request_of { config = { containers = 2, container_ram = 6 * GIB } }
    request.components[1].ram, request.components[2].ram = 2 * GIB, GIB
    local plan, warnings = packing.pack(request, 'round_robin')
    assert.is_truthy(plan)
    assert.same({ { container = 1, resource = 'ram' }, { container = 2, resource = 'ram' } },
      warnings)
  end)

  it('keeps the slots of containers that stay', function()
    local request = request_of()
    local plan = assert(packing.pack(request, 'first_fit_decreasing'))
    plan.containers[3].supervisor, plan.containers[3].host, plan.containers[3].port =
      's1', 'h1', 6800
    local grown = assert(packing.repack(plan, { bolt = 5 }, { request = request }))
    assert.equal('s1', grown.containers[3].supervisor)
    assert.equal(6800, grown.containers[3].port)
    assert.is_nil(grown.containers[4].supervisor)
  end)

  it('repacks a plan without its request', function()
    local plan = assert(packing.pack(request_of(), 'first_fit_decreasing'))
    local grown = assert(packing.repack(plan, { bolt = 1 }))
    assert.equal(8, #grown.containers[1].instances + #grown.containers[2].instances
      + #(grown.containers[3] or { instances = {} }).instances)
  end)

  it('holds a container count', function()
    local request = request_of { config = {} }
    local plan = assert(packing.pack(request, 'first_fit_decreasing'))
    assert.equal(1, #plan.containers)
    local spread = assert(packing.repack(plan, nil, { request = request, containers = 3 }))
    assert.equal('1[S0#1 S1#2 S2#3] 2[B0#5 B2#7] 3[S3#4 B1#6]', layout(spread))
    local _, fault = packing.repack(plan, nil, { request = request, containers = 8 })
    assert.equal('EUNSATISFIABLE', fault.code)
  end)
end)

describe('a packing request is refused', function()
  local function faults_of(request)
    local _, fault = packing.validate_request(request)
    return fault and fault.faults or {}
  end

  it('with every fault that it has', function()
    local request = request_of { bogus = 1, changes = { nope = 1.5 }, containers = -1 }
    request.config.container_cpu = -1
    request.config.contianer_ram = 5
    request.components[1] = { name = 'a b', kind = 'spout', parallelism = 0, cpu = 0 / 0,
      ram = -5, disk = 'lots', paralelism = 3 }
    request.components[3] = { name = 'bolt', kind = 'sink', parallelism = 1.5 }
    assert.same({
      "it has the unknown key 'bogus'",
      'config.container_cpu must be a number of cores within 0..1000000, got -1',
      "config has the unknown key 'contianer_ram' (did you mean 'container_ram'?)",
      "components[1] has the unknown key 'paralelism' (did you mean 'parallelism'?)",
      "components[1].name is 'a b': a name is made of letters, digits and _ . -",
      'components[1].parallelism must be a whole number within 1..16777216, got 0',
      'components[1].cpu must be a number of cores within 0..1000000, got ' .. tostring(0 / 0),
      'components[1].ram must be a size of at least 0 (bytes, or text like "1GiB"), got -5',
      'components[1].disk must be a size of at least 0 (bytes, or text like "1GiB"), got '
        .. "'lots'",
      "components[3].kind must be 'spout', 'bolt' or 'system', got 'sink'",
      "components[3].name is 'bolt', as components[2] is",
      'components[3].parallelism must be a whole number within 1..16777216, got 1.5',
      "changes names the unknown component 'nope' (components: a b, bolt, bolt)",
      'containers must be a whole number of at least 1, got -1',
    }, faults_of(request))
  end)

  it('when parts are missing', function()
    assert.same({ 'topology must be a name, got null',
      'components must be a list of at least one component, got null' }, faults_of {})
    assert.same({ 'must be a table, got 5' }, faults_of(5))
    assert.same({ 'components[1] must be a table, got 7' },
      faults_of { topology = 't', components = { 7 } })
  end)

  it('when changes have no plan to change', function()
    assert.same({ 'changes need the current plan they change' },
      faults_of(request_of { changes = { bolt = 1 } }))
  end)

  it('when it changes a component that it does not have (rows F19, R22)', function()
    local request = request_of()
    request.current = assert(packing.pack(request, 'first_fit_decreasing'))
    request.changes = { nobody = -10 }
    for _, packer in ipairs { 'first_fit_decreasing', 'resource_compliant_rr', 'round_robin' } do
      local plan, fault = packing.plan(request, packer)
      assert.is_nil(plan)
      assert.matches("names the unknown component 'nobody' %(components: spout, bolt%)",
        fault.message)
    end
  end)

  it('when its plan has no instance of a component', function()
    local request = request_of {}
    request.current = assert(packing.pack(request, 'first_fit_decreasing'))
    request.components[#request.components + 1] = { name = 'new', kind = 'bolt', parallelism = 2 }
    local _, fault = packing.validate_request(request)
    assert.same({ "current has no instance of component 'new'" }, fault.faults)
  end)

  it('when the slots of its plan are none', function()
    local plan = assert(packing.pack(request_of(), 'first_fit_decreasing'))
    local first = plan.containers[1]
    first.supervisor, first.host, first.port = 's1', 'h1', 6800
    assert(packing.validate_plan(plan))
    first.supervisor, first.host, first.port = 7, { 'h1' }, '6800'
    local _, fault = packing.validate_plan(plan)
    assert.same({ 'containers[1].supervisor must be a text, got 7',
      'containers[1].host must be a text, got a table',
      "containers[1].port must be a port within 0..65535, got '6800'" }, fault.faults)
    first.supervisor, first.host, first.port = 's1', 'h1', 65536
    _, fault = packing.validate_plan(plan)
    assert.same({ 'containers[1].port must be a port within 0..65535, got 65536' }, fault.faults)
  end)

  it('when its plan contradicts it', function()
    local plan = assert(packing.pack(request_of(), 'first_fit_decreasing'))
    plan.topology = 'other'
    plan.containers[1].instances[1].component = 'sink'
    local _, fault = packing.validate_request(request_of { current = plan })
    assert.same({
      "current containers[1].instances[1].component is 'sink', which the request does not have",
      "current topology is 'other', the request is for 't'",
    }, fault.faults)
  end)

  it('keeps the keys of the config that are the user\'s own', function()
    local request = assert(packing.validate_request(
      request_of { config = { racks = 3, acking = false } }))
    assert.equal(3, request.config.racks)
  end)

  it('when containers and workers differ', function()
    assert.same({ 'config says both containers and workers, which mean the same, and they differ' },
      faults_of(request_of { config = { containers = 1, workers = 2 } }))
    local request = assert(packing.validate_request(request_of { config = { workers = 2 } }))
    assert.equal(2, request.config.containers)
  end)
end)

describe('a plan is refused', function()
  it('with every fault that it has', function()
    local plan = assert(packing.pack(request_of(), 'first_fit_decreasing'))
    plan.version = 0
    plan.containers[2].id = 1
    plan.containers[2].cpu = -1
    plan.containers[1].ram = 1
    plan.containers[1].instances[2].task = 1
    plan.containers[1].instances[3].index = 0
    plan.containers[3].instances[1].ram = 0.5
    plan.containers[3].port = 6800
    plan.containers[3].rack = 'r1'
    local _, fault = packing.validate_plan(plan)
    table.sort(fault.faults)
    assert.same({
      'containers[1].instances[2].task is 1, which is taken by another instance',
      "containers[1].instances[3].index is 0, which another instance of 'spout' has",
      'containers[1].ram is 1, but its instances need 3221225472',
      'containers[2].cpu must be a number of cores of at least 0, got -1',
      'containers[2].id is 1, which containers[1] has',
      "containers[3] has the unknown key 'rack'",
      'containers[3].instances[1].ram must be a whole number of bytes of at least 0, got 0.5',
      'version must be a whole number of at least 1, got 0',
    }, fault.faults)
  end)

  it('counts the faults beyond the first hundred', function()
    local containers = {}
    for k = 1, 150 do containers[k] = 7 end
    local _, fault = packing.validate_plan { topology = 't', version = 1, packing = 'x',
      containers = containers }
    assert.equal(100, #fault.faults)
    assert.matches('; and 50 more$', fault.message)
  end)
end)

describe('the delta of two plans', function()
  it('is told by container and by instance', function()
    local request = request_of()
    local old = assert(packing.pack(request, 'first_fit_decreasing'))
    local new = assert(packing.repack(old, { spout = -3, bolt = 1 }, { request = request }))
    local delta = assert(packing.delta(old, new))
    local states = {}
    for k, entry in ipairs(delta.containers) do states[k] = entry.id .. entry.state end
    assert.equal('1MODIFIED 2UNAFFECTED 3UNAFFECTED', table.concat(states, ' '))
    assert.equal(4, delta.kept)
    assert.equal(1, delta.started)
    assert.equal(3, delta.stopped)
    assert.equal(0, delta.moved)
    assert.equal(1, #delta.containers[1].added)
    assert.equal(3, #delta.containers[1].removed)
    local same = assert(packing.delta(old, old))
    for _, entry in ipairs(same.containers) do assert.equal('UNAFFECTED', entry.state) end
  end)

  it('is the document of an update', function()
    local request = request_of()
    local old = assert(packing.pack(request, 'first_fit_decreasing'))
    local new = assert(packing.repack(old, { bolt = 5 }, { request = request }))
    local document = assert(packing.update_document(old, new, { bolt = 5 }))
    assert.equal('first_fit_decreasing', document.repacking)
    assert.equal(1, document.from_version)
    assert.equal('NEW', document.containers[4].state)
    assert.equal(7, document.kept)
    assert.equal(5, document.started)
    assert.same({ bolt = 5 }, document.changes)
  end)
end)

describe('the request of a topology', function()
  it('keeps order, resources and config, and adds ackers', function()
    local request = packing.request_from_topology({
      name = 'wc', config = { containers = 3, ackers = 2, input = 'a.txt', contaners = 4,
        user_workers = {} },
      components = {
        { name = 'lines', kind = 'spout', parallelism = 1, cpu = 0.5 },
        { name = 'count', kind = 'bolt', parallelism = 4, ram = GIB },
      },
    }, { parallelism = { count = 8 }, config = { container_ram = '10GiB' } })
    assert.same({
      topology = 'wc',
      config = { containers = 3, ackers = 2, input = 'a.txt', container_ram = '10GiB' },
      components = {
        { name = 'lines', kind = 'spout', parallelism = 1, cpu = 0.5 },
        { name = 'count', kind = 'bolt', parallelism = 8, ram = GIB },
        { name = '__acker', kind = 'system', parallelism = 2 },
      },
    }, request)
    assert.equal(11, #assert(packing.pack(request, 'first_fit_decreasing')).containers[1].instances
      + 2)
  end)
end)

describe('a custom packer', function()
  local function with_packer(text, fn)
    return process.with_folder(function(folder)
      local path = folder .. '/mine.lua'
      process.write_file(path, text)
      return fn(path, folder)
    end)
  end

  local GOOD = [[
return { name = 'one', pack = function(request)
  local container = { id = 1, cpu = 0, ram = 0, disk = 0, instances = {} }
  local task = 0
  for _, component in ipairs(request.components) do
    for index = 0, component.parallelism - 1 do
      task = task + 1
      container.instances[task] = { component = component.name, task = task, index = index,
        cpu = 1, ram = 2^30, disk = 0 }
      container.cpu, container.ram = container.cpu + 1, container.ram + 2^30
    end
  end
  request.components = nil
  return { containers = { container } }
end }]]

  it('is called with the request and its plan is completed', function()
    with_packer(GOOD, function(path)
      local request = request_of()
      for _, limits in ipairs { false, { seconds = process.patience } } do
        local plan = assert(packing.pack(request, path, { limits = limits or nil }))
        assert.equal('one', plan.packing)
        assert.equal('t', plan.topology)
        assert.equal(7, #plan.containers[1].instances)
      end
      assert.equal(2, #request.components)
    end)
  end)

  it('is found by name beside the script', function()
    with_packer(GOOD, function(_, folder)
      assert.equal('one', assert(packing.pack(request_of(), 'mine', { folder = folder })).packing)
      local _, fault = packing.pack(request_of(), 'yours', { folder = folder })
      assert.equal('EINVAL', fault.code)
      assert.matches("^packer 'yours': no packer of that name %(built in: round_robin, ",
        fault.message)
      _, fault = packing.pack(request_of(), folder .. '/yours.lua')
      assert.equal('ENOTFOUND', fault.code)
    end)
  end)

  it('is read again by reload', function()
    with_packer(GOOD, function(path)
      local packer = assert(packing.packer(path))
      process.write_file(path, (GOOD:gsub("'one'", "'two'")))
      assert.equal('one', packer.name)
      assert.equal('two', packer:reload().name)
      assert.equal('two', assert(packing.pack(request_of(), packer)).packing)
      process.write_file(path, 'return 5')
      assert.has_error(function() packer:reload() end)
      assert.equal('two', packer.name)
    end)
  end)

  it('has its plan checked as strictly as any', function()
    with_packer([[
return { pack = function(request)
  return { topology = 'x', version = 3, containers = { { id = 1, cpu = 1, ram = 20 * 2^30, disk = 0,
    instances = { { component = 'spout', task = 1, index = 0, cpu = 1, ram = 0, disk = 0 } } } } }
end }]], function(path)
      local request = request_of { containers = 2, config = { container_ram = 2 ^ 30 } }
      for _, limits in ipairs { false, { seconds = process.patience } } do
        local _, fault = packing.pack(request, path, { limits = limits or nil })
        assert.equal('EUSER', fault.code)
        table.sort(fault.faults)
        assert.same({
          'containers are 1, 2 are asked for',
          "containers have 0 instances of 'bolt', 3 are asked for",
          "containers have 1 instances of 'spout', 4 are asked for",
          'containers[1].ram is 21474836480, more than container_ram, 1073741824',
          "topology is 'x', the request is for 't'",
          'version is 3, it must be 1',
        }, fault.faults)
      end
    end)
  end)

  it('that fails in its own way is told so', function()
    for text, pattern in pairs {
      ['return 5'] = 'it returns a number, a packer is a table',
      ['return { pack = 1 }'] = 'its pack is a number, it must be a function',
      ['return {}'] = 'neither a pack nor a repack function',
      ['return { name = {}, pack = print }'] = 'its name is a table',
      ['return {'] = 'mine%.lua:1: ',
      ['\nerror("at load")'] = 'mine%.lua:2: at load',
      ['return { pack = function()\nerror("boom") end }'] = 'mine%.lua:2: boom',
      ['return { pack = function() end }'] = "packer 'mine' returned nothing",
      ['return { pack = function() return 5 end }'] = 'must be a table, got 5',
      ['return { repack = function() end }'] = "packer 'mine' has no pack function",
    } do
      with_packer(text, function(path)
        for _, limits in ipairs { false, { seconds = process.patience } } do
          local plan, fault
          process.without_stress(function()
            plan, fault = packing.pack(request_of(), path, { limits = limits or nil })
          end)
          assert.is_nil(plan)
          assert.equal('EUSER', fault.code)
          assert.matches(pattern, fault.message)
        end
      end)
    end
  end)

  it('that never ends is killed within its limit', function()
    with_packer('return { pack = function() while true do end end }', function(path)
      local _, fault = packing.pack(request_of(), path, { limits = { seconds = 0.3 } })
      assert.equal('EUSER', fault.code)
      assert.matches('mine%.lua. ran longer than its limit of 0%.3 s and was killed', fault.message)
    end)
  end)
end)
