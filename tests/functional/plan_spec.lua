-- `streamlua plan` from the outside: the reference's rows, changes of a plan, and bad input.
local json = require 'streamlua.json'
local process = require 'support.process'

local SCRIPT = [[
local streamlua = require 'streamlua'
local s = streamlua.spout { fields = { 'x' }, next_tuple = function() return streamlua.DONE end }
local b = streamlua.bolt { execute = function() end }
local t = streamlua.topology('t', { container_max_instances = 4 })
t:spout('spout', s, { parallelism = 4 })
t:bolt('bolt', b, { parallelism = 3 }):shuffle('spout')
return t
]]

-- Runs fn in a folder with topo.lua; `plan` runs the command there.
local function scene(fn)
  process.with_folder(function(folder)
    process.write_file(folder .. '/topo.lua', SCRIPT)
    local function write(name, text) process.write_file(folder .. '/' .. name, text) end
    local function plan(args, options)
      options = options or {}
      options.cwd = folder
      table.insert(args, 1, 'plan')
      return process.run(args, options)
    end
    fn(plan, write, folder)
  end)
end

local function layout(text)
  local plan = assert(json.decode(text))
  local parts = {}
  for k, container in ipairs(plan.containers) do
    local cells = {}
    for i, instance in ipairs(container.instances) do
      cells[i] = ('%s%d#%d'):format(instance.component:sub(1, 1):upper(), instance.index,
        instance.task)
    end
    parts[k] = ('%d[%s]'):format(container.id, table.concat(cells, ' '))
  end
  return table.concat(parts, ' '), plan
end

-- One error line, the exit code, and nothing on standard output.
local function assert_refused(r, code, pattern)
  assert.equal(code, r.code, r.stderr)
  assert.equal('', r.stdout)
  local lines = select(2, r.stderr:gsub('error: ', ''))
  assert.equal(1, lines, r.stderr)
  assert.matches(pattern, r.stderr)
end

local REQUEST = [[{"topology":"t","config":{"container_max_instances":4},"components":[
 {"name":"spout","kind":"spout","parallelism":4},{"name":"bolt","kind":"bolt","parallelism":3}]}]]

describe('streamlua plan', function()
  it('packs row F1 and changes it to row F8', function()
    scene(function(plan, write)
      local r = plan { 'topo.lua', '--packing', 'first_fit_decreasing', '-o', 'json' }
      assert.equal(0, r.code, r.stderr)
      local text, first = layout(r.stdout)
      assert.equal('1[S0#1 S1#2 S2#3] 2[S3#4 B0#5 B1#6] 3[B2#7]', text)
      write('plan.json', r.stdout)
      r = plan { 'topo.lua', '--from', 'plan.json', '--parallelism', 'bolt=+5', '-o', 'json' }
      assert.equal(0, r.code, r.stderr)
      local grown
      text, grown = layout(r.stdout)
      assert.equal('1[S0#1 S1#2 S2#3] 2[S3#4 B0#5 B1#6] 3[B2#7 B3#8 B4#9] 4[B5#10 B6#11 B7#12]',
        text)
      assert.same(first.containers[1], grown.containers[1])
      assert.same(first.containers[2], grown.containers[2])
      assert.equal(2, grown.version)
      assert.equal('first_fit_decreasing', grown.packing)
    end)
  end)

  it('shows a change as tables', function()
    scene(function(plan, write)
      write('plan.json', plan { 'topo.lua', '--packing', 'first_fit_decreasing', '-o', 'json' }.stdout)
      local r = plan { 'topo.lua', '--from', 'plan.json', '--parallelism', 'bolt=4', '--color',
        'never' }
      assert.equal(0, r.code, r.stderr)
      assert.matches('^Total number of containers: 3\nUsing repacking class: first_fit_decreasing\n'
        .. 'Container 1 UNAFFECTED\n', r.stdout)
      assert.matches('\nContainer 3 MODIFIED\nCPU: 3%.0 %(%+50%.00%%%), ', r.stdout)
      assert.matches('\n| %+ |      bolt |       8 |', r.stdout)
    end)
  end)

  it('reads a request from a file and from standard input', function()
    scene(function(plan, write)
      write('request.json', REQUEST)
      local expected = '1[S0#1 S3#4 B2#7] 2[S1#2 B0#5] 3[S2#3 B1#6]'
      local args = { '--packing', 'resource_compliant_rr', '-o', 'json', '--request' }
      local r = plan { args[1], args[2], args[3], args[4], args[5], 'request.json' }
      assert.equal(expected, (layout(r.stdout)))
      r = plan({ args[1], args[2], args[3], args[4], args[5], '-' }, { stdin = REQUEST })
      assert.equal(expected, (layout(r.stdout)))
    end)
  end)

  it('repacks a request with a current plan, by the packer that is named', function()
    scene(function(plan)
      local first = plan({ '--request', '-', '--packing', 'resource_compliant_rr', '-o', 'json' },
        { stdin = REQUEST }).stdout
      local request = REQUEST:gsub('}%s*$', ',"current":' .. first:gsub('%%', '%%%%')
        .. ',"changes":{"bolt":5}}')
      local r = plan({ '--request', '-', '--packing', 'resource_compliant_rr', '-o', 'json' },
        { stdin = request })
      assert.equal('1[S0#1 S3#4 B2#7] 2[S1#2 B0#5 B3#8] 3[S2#3 B1#6 B4#9] 4[B5#10 B7#12] 5[B6#11]',
        (layout(r.stdout)))
      r = plan({ '--request', '-', '--repacking', 'first_fit_decreasing', '-o', 'json' },
        { stdin = request })
      assert.equal('first_fit_decreasing', select(2, layout(r.stdout)).packing)
    end)
  end)

  it('takes --set into the config of the request', function()
    scene(function(plan)
      local r = plan { 'topo.lua', '--packing', 'first_fit_decreasing', '--set',
        'container_ram=3GiB', '-o', 'json' }
      assert.equal('1[S0#1 S1#2] 2[S2#3 S3#4] 3[B0#5 B1#6] 4[B2#7]', (layout(r.stdout)))
      r = plan { 'topo.lua', '--set', 'containers=2', '-o', 'json' }
      assert.equal('1[S0#1 S2#3 B0#5 B2#7] 2[S1#2 S3#4 B1#6]', (layout(r.stdout)))
      r = plan { 'topo.lua', '--set', 'packing=resource_compliant_rr', '-o', 'json' }
      assert.equal('resource_compliant_rr', select(2, layout(r.stdout)).packing)
    end)
  end)

  it('overrides the parallelism of a first plan', function()
    scene(function(plan)
      local r = plan { 'topo.lua', '--parallelism', 'spout=1,bolt=-1', '-o', 'json' }
      assert.equal('1[S0#1 B0#2 B1#3]', (layout(r.stdout)))
    end)
  end)

  it('holds a container count or refuses it with the numbers', function()
    scene(function(plan)
      local r = plan { 'topo.lua', '--packing', 'first_fit_decreasing', '--containers', '4', '-o',
        'json' }
      assert.equal(4, #select(2, layout(r.stdout)).containers)
      assert_refused(plan { 'topo.lua', '--containers', '9' }, 7,
        'need 9 instances, room for 7 containers')
      assert_refused(plan { 'topo.lua', '--packing', 'first_fit_decreasing', '--containers', '2' },
        7, "component 'bolt' does not fit into 2 containers .*cpu: need 1 cores, room 0")
      assert_refused(plan { 'topo.lua', '--containers', '0' }, 7, 'need at least 1, asked for 0')
    end)
  end)

  it('prints the request', function()
    scene(function(plan)
      local r = plan { 'topo.lua', '--print-request' }
      local request = assert(json.decode(r.stdout))
      assert.equal('t', request.topology)
      assert.equal(4, request.config.container_max_instances)
      assert.equal('bolt', request.components[2].name)
    end)
  end)

  it('warns of dropped padding on standard error', function()
    scene(function(plan)
      local r = plan { 'topo.lua', '--set', 'container_cpu=7', '--set', 'containers=1', '-o',
        'json' }
      assert.equal(0, r.code, r.stderr)
      local request = REQUEST:gsub('"parallelism":(%d)', '"parallelism":%1,"cpu":1')
        :gsub('"container_max_instances":4', '"container_cpu":7')
      r = plan({ '--request', '-', '-o', 'json' }, { stdin = request })
      assert.equal(0, r.code, r.stderr)
      assert.equal('warning: container 1: its padding of cpu is dropped, its components need that '
        .. 'room\n', r.stderr)
    end)
  end)

  it('has exit codes for changes that can not be', function()
    scene(function(plan, write)
      write('plan.json', plan { 'topo.lua', '--packing', 'first_fit_decreasing', '-o', 'json' }.stdout)
      local function change(...) return plan { 'topo.lua', '--from', 'plan.json', ... } end
      assert_refused(change(), 4, 'nothing to do')
      assert_refused(change('--parallelism', 'bolt=3'), 4, 'nothing to do')
      assert_refused(change('--containers', '3'), 4, 'nothing to do')
      assert_refused(change('--parallelism', 'sink=3'), 7, "unknown component 'sink'")
      assert_refused(change('--parallelism', 'bolt=0'), 7, 'at least 1')
      assert_refused(change('--parallelism', 'bolt=-3'), 7, 'at least 1')
      assert_refused(change('--parallelism', 'bolt=4,bolt=5'), 7, 'given twice')
      assert_refused(change('--parallelism', 'bolt'), 2, 'expected COMPONENT=N')
      assert_refused(change('--containers', 'many'), 2, 'not a number of containers')
      assert_refused(change('--containers', '3', '--containers', '4'), 2, 'containers')
      assert_refused(change('--parallelism', 'bolt=4', '--repacking', 'nope'), 7,
        "packer 'nope': no packer of that name")
    end)
  end)

  it('refuses command lines that say nothing or too much', function()
    scene(function(plan)
      assert_refused(plan {}, 2, 'one of SCRIPT and %-%-request')
      assert_refused(plan { 'topo.lua', '--request', 'x' }, 2, 'one of SCRIPT and %-%-request')
      assert_refused(plan { 'topo.lua', '--repacking', 'round_robin' }, 2, 'needs %-%-from')
      assert_refused(plan { '--request', '-', '--from', '-' }, 2, 'can not both be standard input')
      assert_refused(plan { 'topo.lua', '--limit', 'long' }, 2, 'long')
      assert_refused(plan { 'nope.lua' }, 3, 'no such file')
      assert_refused(plan { 'topo.lua', '--from', 'nope.json' }, 3, 'nope.json')
      assert_refused(plan { 'topo.lua', '--packing', './nope.lua' }, 3, 'no such file')
      assert_refused(plan { 'topo.lua', '--packing', 'nope' }, 7, 'no packer of that name')
    end)
  end)

  it('tells errors as one JSON object', function()
    scene(function(plan)
      local r = plan { 'topo.lua', '--containers', '9', '-o', 'json' }
      assert.equal(7, r.code)
      assert.equal('', r.stdout)
      local document = assert(json.decode(r.stderr))
      assert.equal('invalid', document.error.code)
    end)
  end)
end)

describe('streamlua plan with bad input', function()
  local function request(text, options)
    local r
    scene(function(plan)
      options = options or {}
      options.stdin = text
      r = plan({ '--request', '-', '-o', 'table' }, options)
    end)
    return r
  end

  it('refuses requests that are no requests', function()
    for text, pattern in pairs {
      [''] = 'invalid JSON',
      ['5'] = 'must be a table, got 5',
      ['[]'] = 'topology must be a name, got null',
      ['null'] = 'must be a table, got null',
      [REQUEST:sub(1, 150)] = 'invalid JSON',
      [REQUEST .. 'x'] = 'invalid JSON',
      [(REQUEST:gsub('"topology"', '"topologie":1,"topology"'))] =
        "unknown key 'topologie' %(did you mean 'topology'%?%)",
      [(REQUEST:gsub('"kind":"bolt"', '"kind":"bolt","rma":5'))] = "unknown key 'rma'",
      [(REQUEST:gsub('"name":"bolt"', '"name":"spout"'))] =
        "components%[2%]%.name is 'spout', as components%[1%] is",
      [(REQUEST:gsub('"parallelism":3', '"parallelism":3,"ram":-1'))] = 'components%[2%]%.ram must',
      [(REQUEST:gsub('"parallelism":3', '"parallelism":3,"cpu":NaN'))] = 'invalid JSON',
      [(REQUEST:gsub('"parallelism":3', '"parallelism":3,"cpu":1e999'))] = 'components%[2%]%.cpu must',
      [(REQUEST:gsub('"parallelism":3', '"parallelism":30000000'))] = 'parallelism must be',
      [(REQUEST:gsub('"components":%b[]', '"components":[]'))] = 'at least one component',
      [(REQUEST:gsub(',"components":%b[]', ''))] = 'at least one component, got null',
      [(REQUEST:gsub('}$', ',"changes":{"bolt":1}}'))] = 'need the current plan',
      [(REQUEST:gsub('"config":{', '"config":{"contaners":3,'))] = "did you mean 'containers'",
    } do
      assert_refused(request(text), 7, pattern)
    end
  end)

  it('refuses a plan that contradicts itself or its request, fault by fault', function()
    scene(function(plan, write)
      local first = plan { 'topo.lua', '--packing', 'first_fit_decreasing', '-o', 'json' }.stdout
      for change, pattern in pairs {
        ['"topology":"t"|"topology":"u"'] = "topology is 'u', the request is for 't'",
        ['"task":2|"task":1'] = 'is 1, which is taken by another instance',
        ['"component":"bolt"|"component":"sink"'] = "'sink', which the request does not have",
        ['"id":2|"id":1'] = 'id is 1, which containers%[1%] has',
        ['"index":1|"index":0'] = 'index is 0, which another instance',
        ['"cpu":4.0|"cpu":-4'] = 'cpu must be a number of cores',
        ['"ram":4294967296|"ram":4'] = 'its instances need 3221225472',
        ['"version":1|"version":0'] = 'version must be a whole number',
        ['"containers":%[|"bins":0,"containers":['] = "unknown key 'bins'",
      } do
        local from, to = change:match('^(.*)|(.*)$')
        write('bad.json', (first:gsub(from, to)))
        assert_refused(plan { 'topo.lua', '--from', 'bad.json', '--parallelism', 'bolt=4' }, 7,
          pattern)
      end
      write('half.json', first:sub(1, #first / 2))
      assert_refused(plan { 'topo.lua', '--from', 'half.json', '--parallelism', 'bolt=4' }, 7,
        'half%.json:1: invalid JSON')
    end)
  end)

  it('refuses documents that are too large or too deep at once', function()
    scene(function(plan, write, folder)
      local file = assert(io.open(folder .. '/huge.json', 'wb'))
      file:seek('set', 300 * 2 ^ 20)
      file:write('}')
      file:close()
      assert_refused(plan({ '--request', 'huge.json' }), 7,
        'larger than 268435456 bytes')
      write('deep.json', '{"topology":' .. ('['):rep(10000) .. (']'):rep(10000) .. '}')
      assert_refused(plan({ '--request', 'deep.json' }), 7, 'nested too deeply')
    end)
  end)

  it('refuses a script that loads for ever', function()
    scene(function(plan, write)
      write('hang.lua', 'while true do end')
      assert_refused(plan { 'hang.lua', '--timeout', '300ms' }, 7, 'still loading after 300ms')
      write('raise.lua', '\nerror "boom"')
      assert_refused(plan { 'raise.lua' }, 7, 'raise%.lua:2: boom')
    end)
  end)
end)

describe('streamlua plan with a custom packer', function()
  local GOOD = [[
return { pack = function(request)
  local list, task, sum = {}, 0, 0
  for _, component in ipairs(request.components) do
    for index = 0, component.parallelism - 1 do
      task = task + 1
      list[task] = { component = component.name, task = task, index = index, cpu = 1, ram = 0,
        disk = 0 }
      sum = sum + 1
    end
  end
  return { containers = { { id = 1, cpu = sum, ram = 0, disk = 0, instances = list } } }
end }]]

  it('prints its plan; the packer may write to standard error', function()
    scene(function(plan, write)
      write('mine.lua', 'io.stderr:write("loading\\n")\n' .. GOOD)
      for _, name in ipairs { 'mine', './mine.lua', 'mine.lua' } do
        local r = plan { 'topo.lua', '--packing', name, '-o', 'json' }
        assert.equal(0, r.code, r.stderr)
        local text, document = layout(r.stdout)
        assert.equal('1[S0#1 S1#2 S2#3 S3#4 B0#5 B1#6 B2#7]', text)
        assert.equal('mine', document.packing)
        assert.matches('loading', r.stderr)
      end
    end)
  end)

  it('is refused when it prints or forks', function()
    scene(function(plan, write)
      write('mine.lua', 'print "loading"\n' .. GOOD)
      assert_refused(plan { 'topo.lua', '--packing', 'mine' }, 7,
        'mine%.lua:1: it prints to standard output')
      write('mine.lua', 'local ffi = require "ffi"\nffi.C.write(1, "{}", 2)\n' .. GOOD)
      assert_refused(plan { 'topo.lua', '--packing', 'mine' }, 7,
        "packer './mine%.lua' printed to standard output %(\"{}\"%)")
      write('mine.lua', 'local ffi = require "ffi"\nffi.C.fork()\n' .. GOOD)
      assert_refused(plan { 'topo.lua', '--packing', 'mine' }, 7, 'another process %(a fork%)')
    end)
  end)

  it('is killed when it does not end', function()
    scene(function(plan, write)
      write('loop.lua', 'return { pack = function() while true do end end }')
      local r = plan({ 'topo.lua', '--packing', 'loop.lua', '--limit', '1s' })
      assert_refused(r, 7, 'ran longer than its limit of 1 s and was killed')
    end)
  end)

  it('is refused for whatever else it does wrong', function()
    scene(function(plan, write)
      for text, pattern in pairs {
        ['return { pack = function() end }'] = 'returned nothing',
        ['return { pack = function()\nerror "boom" end }'] = 'bad%.lua:2: boom',
        ['return { pack = function(r)\nreturn r.nope.x end }'] = "bad%.lua:2: .*nope",
        ['return { pack = function() error({}) end }'] = 'bad%.lua:1: .*table value',
        ['return { pack = function() local t = {} t.containers = t return t end }'] =
          'contains itself',
        ['return { pack = function() return { containers = { { id = 1, f = print } } } end }'] =
          'f is a function',
        ['return { pack = function() os.exit(0) end }'] = 'ended its process %(exit code 0%)',
        ['return { pack = function() return {} end }'] = 'at least one container',
        ['return 7'] = 'it returns a number',
        ['return {'] = 'bad%.lua:1: ',
      } do
        write('bad.lua', text)
        assert_refused(plan({ 'topo.lua', '--packing', 'bad.lua' }), 7, pattern)
      end
    end)
  end)

  it('is refused when it allocates for ever', function()
    if process.build == 'asan' or process.build == 'tsan' then
      pending('a sanitizer reserves more address space than any limit allows')
      return
    end
    scene(function(plan, write)
      write('hog.lua', 'return { pack = function() local t while true do t = { t } end end }')
      assert_refused(plan { 'topo.lua', '--packing', 'hog.lua', '--limit', '60s' }, 7,
        'needed more memory than its limit of 1 GiB')
    end)
  end)
end)
