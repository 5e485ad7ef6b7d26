local config = require 'streamlua.topology.config'

local function problems(values, components)
  local list = {}
  for i, p in ipairs(config.check(values, components)) do
    list[i] = p.severity .. ' ' .. p.message
  end
  return list
end

describe('the topology config', function()
  it('takes every documented key', function()
    assert.same({}, problems({
      containers = 2, executors = 2, acking = true, ackers = 0, message_timeout = '30s',
      max_spout_pending = 16384, key_groups = 128, packing = 'round_robin',
      repacking = 'first_fit_decreasing', scheduler = 'packed', container_cpu = 2.5,
      container_ram = '10GiB', container_disk = 1e9, container_max_instances = 10,
      container_cpu_padding = 1, container_ram_padding = '1GiB', container_padding_percentage = 10,
      master_alone = false, reserve_workers = 1, isolation = { 'h1' },
      user_workers = { { host = 'h1', port = 6800, cpu = 1, ram = '1GiB', components = { s = 2 } } },
      use_old_assignment = false, on_different_nodes = { 's' },
    }, { { name = 's' } }))
    assert.same({}, problems({ workers = 2 }))
    assert.same({}, problems({ workers = 2, containers = 2 }))
  end)

  it("leaves the user's own keys alone", function()
    assert.same({}, problems({ input = 'x', top = 10, nested = { a = { 1, 2 } }, debug = true }))
  end)

  it('refuses values of the wrong kind', function()
    local rows = {
      containers = { 0, 1.5, 'two', -1, {} },
      executors = { 0, false, 1025 },
      acking = { 'yes', 1 },
      ackers = { -1, 0.5, '2', 65537 },
      message_timeout = { 0, -1, 'soon', '5 m s', true, '0s', 1e-4 },
      max_spout_pending = { 0, 1.5 },
      key_groups = { 0, 32769, 1.5, 'x' },
      packing = { 1, '' },
      container_cpu = { 'x', -1, 0 / 0 },
      container_ram = { 'big', -1 },
      container_padding_percentage = { 101, -1 },
      master_alone = { 1 },
      isolation = { 'h1', { 1 }, { a = 'h1' }, { 'a', nil, 'b' } },
      user_workers = { { 1 }, { { hst = 'x' } }, { { port = 0 } }, { { port = 70000 } },
        { { cpu = 0 } }, { { ram = 'x' } }, { { components = 1 } }, { { components = { s = 0 } } } },
      on_different_nodes = { 's', { 1 } },
    }
    for key, values in pairs(rows) do
      for i, value in ipairs(values) do
        local list = problems({ [key] = value }, { { name = 's' } })
        assert.equal(1, #list, ('%s row %d'):format(key, i))
        assert.truthy(list[1]:find('^error config key ' .. key .. ': '), list[1])
      end
    end
  end)

  it('refuses two names of one key with two values', function()
    assert.same({ 'error config keys containers and workers mean the same and differ' },
      problems({ containers = 1, workers = 2 }))
  end)

  it('refuses names of components that do not exist', function()
    assert.same({ "error config key on_different_nodes names 'x', which is no component of the topology",
      "error config key user_workers names 'y', which is no component of the topology" },
      problems({ on_different_nodes = { 's', 'x' }, user_workers = { { components = { y = 1 } } } },
        { { name = 's' } }))
  end)

  it('warns of a key that looks like a misspelt one', function()
    assert.same({ "warning config key 'contaners' looks like 'containers'" },
      problems({ contaners = 2 }))
    assert.same({ "warning config key 'max-spout-pending' looks like 'max_spout_pending'" },
      problems({ ['max-spout-pending'] = 2 }))
    assert.same({ "warning config key 'contaners' looks like 'containers'" },
      problems({ contaners = 2, containers = 2 }), 'beside the right one too: --set is meant to win')
  end)
end)

describe('overrides', function()
  it('win over the script, which wins over the defaults', function()
    local merged = config.merge({ a = 2, b = 2 }, { a = 3 }, { a = 1, b = 1, c = 1 })
    assert.same({ a = 3, b = 2, c = 1 }, merged)
  end)

  it('do not touch the tables they are merged into', function()
    local own = { redis = { host = 'a', port = 1 } }
    local merged = config.merge(own, { ['redis.host'] = 'b', x = 1 })
    assert.same({ redis = { host = 'b', port = 1 }, x = 1 }, merged)
    assert.same({ redis = { host = 'a', port = 1 } }, own)
  end)

  it('make paths and keep keys that have a dot', function()
    assert.same({ a = { b = { c = 1 } } }, config.merge({}, { ['a.b.c'] = 1 }))
    assert.same({ ['a.b'] = 2 }, config.merge({ ['a.b'] = 1 }, { ['a.b'] = 2 }))
  end)

  it('give lists as names with commas', function()
    assert.same({ isolation = { 'h1', 'h2' } }, config.merge({}, { isolation = 'h1,h2' }))
    assert.same({ input = 'a,b' }, config.merge({}, { input = 'a,b' }))
  end)

  it('know that workers is another name of containers', function()
    assert.same({ workers = 3 }, config.merge({ containers = 2 }, { workers = 3 }))
    assert.same({ containers = 3 }, config.merge({ workers = 2 }, { containers = 3 }))
    assert.same({ workers = 2 }, config.merge({ workers = 2 }, nil, { containers = 1 }))
  end)
end)

describe('resolved settings', function()
  it('are numbers with the documented defaults', function()
    local r = config.resolve({})
    assert.is_true(r.acking)
    assert.equal(30, r.message_timeout)
    assert.equal(16384, r.max_spout_pending)
    assert.equal(10, r.container_max_instances)
    assert.is_false(r.use_old_assignment)
    for _, name in ipairs { 'containers', 'executors', 'ackers', 'key_groups', 'master_alone' } do
      assert.is_nil(r[name], name)
    end
  end)

  it('have units resolved and aliases renamed', function()
    local r = config.resolve({ workers = 3, message_timeout = '500ms', container_ram = '1GiB',
      acking = false, mine = 1 })
    assert.equal(3, r.containers)
    assert.is_nil(r.workers)
    assert.equal(0.5, r.message_timeout)
    assert.equal(1073741824, r.container_ram)
    assert.is_false(r.acking)
    assert.is_nil(r.mine)
  end)
end)
