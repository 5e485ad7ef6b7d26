-- `streamlua schedule`: the real binary, its options, exit codes and bad input. timeout: 240
local json = require 'streamlua.json'
local process = require 'support.process'

local SCRIPT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('wc', { workers = 3, ackers = 1 })
local spout = streamlua.spout { fields = { 'line' }, next_tuple = function() end }
local bolt = streamlua.bolt { fields = { 'word' }, execute = function() end }
t:spout('spout', spout, { parallelism = 2 })
t:bolt('split', bolt, { parallelism = 3 }):shuffle('spout')
t:bolt('count', bolt, { parallelism = 3 }):fields('split', { 'word' })
return t
]]

local REQUEST = [[{"topology":"wc","mode":"new","workers":3,"master_alone":null,"reserve_workers":0,
 "components":[{"name":"spout","kind":"spout","inputs":[],"tasks":[9,10]},
  {"name":"split","kind":"bolt","inputs":["spout"],"tasks":[1,2,3]},
  {"name":"count","kind":"bolt","inputs":["split"],"tasks":[4,5,6]},
  {"name":"__acker","kind":"system","inputs":[],"tasks":[7]},
  {"name":"__topology_master","kind":"system","inputs":[],"tasks":[8]}],
 "isolation":[],"user_workers":[],"on_different_nodes":[],"use_old_assignment":false,
 "cluster":{"supervisors":[
  {"id":"s1","host":"h1","ports":[6800,6801,6802,6803],"used":[],"cpu":4,"ram":8589934592},
  {"id":"s2","host":"h2","ports":[6800,6801,6802,6803],"used":[]},
  {"id":"s3","host":"h3","ports":[6800,6801,6802,6803],"used":[]}]},
 "previous":null,"dead_tasks":[],"unstopped_tasks":[],"plan":null}]]

local C1 = { topology = 'wc', scheduler = 'balanced', workers = {
  { supervisor = 's1', host = 'h1', port = 6800, tasks = { 1, 4, 8, 9 } },
  { supervisor = 's2', host = 'h2', port = 6800, tasks = { 2, 5, 10 } },
  { supervisor = 's3', host = 'h3', port = 6800, tasks = { 3, 6, 7 } } } }

-- Calls fn(folder, run) with the script, a cluster, the request of C1 and its assignment there.
local function in_folder(fn)
  process.with_folder(function(folder)
    process.write_file(folder .. '/wc.lua', SCRIPT)
    process.write_file(folder .. '/cluster.lua', 'return { supervisors = 3, slots = 4 }')
    process.write_file(folder .. '/request.json', REQUEST)
    process.write_file(folder .. '/c1.json', assert(json.encode(C1)))
    local function run(args, options)
      options = options or {}
      options.cwd = folder
      options.env = { XDG_CONFIG_HOME = folder, XDG_STATE_HOME = folder, STREAMLUA_OUTPUT = false,
        NO_COLOR = '1' }
      local words = { 'schedule' }
      for word in args:gmatch('%S+') do words[#words + 1] = word end
      return process.run(words, options)
    end
    fn(folder, run)
  end)
end

local function decoded(r)
  assert.equal(0, r.code, r.stderr)
  return assert(json.decode(r.stdout))
end

local function layout(assignment)
  local parts = {}
  for i, worker in ipairs(assignment.workers) do
    parts[i] = ('%s:%d %s'):format(worker.supervisor, worker.port, table.concat(worker.tasks, ','))
  end
  return table.concat(parts, '; ')
end

-- One clear error, nothing on standard output.
local function refused(r, code, words)
  assert.equal(code, r.code, r.stdout .. r.stderr)
  assert.equal('', r.stdout)
  assert.truthy(r.stderr:find('error: ', 1, true), r.stderr)
  assert.truthy(r.stderr:find(words, 1, true), r.stderr)
  local _, lines = r.stderr:gsub('error: ', '')
  assert.equal(1, lines, r.stderr)
end

describe('streamlua schedule', function()
  it('prints keys in the documented order', function()
    in_folder(function(folder, run)
      local text = run('--request request.json -o json').stdout
      assert.equal('{"topology":"wc","scheduler":"balanced","workers":[{"supervisor":"s1","host":"h1",'
        .. '"port":6800,"tasks":[1,4,8,9]},', text:sub(1, 113))
      process.write_file(folder .. '/a.json', text)
      assert.matches('^{"topology":"wc","mode":"new","workers":3,"master_alone":null,'
        .. '"reserve_workers":0,"components":%[{"name":"spout","kind":"spout","inputs":%[%],'
        .. '"tasks":%[9,10%]}', run('--request request.json --print-request').stdout)
      assert.matches('^{"kind":"assignment","same":true,"topology":"wc","kept":10,', process.run(
        { 'diff', 'a.json', 'a.json', '-o', 'json' }, { cwd = folder }).stdout)
    end)
  end)

  it('takes a cluster in place of its file', function()
    in_folder(function(_, run)
      assert.same(C1, decoded(run("wc.lua --cluster-file {supervisors=3,slots=4} -o json")))
    end)
  end)

  it('assigns row C1 exactly, from a request and from a script', function()
    in_folder(function(_, run)
      assert.same(C1, decoded(run('--request request.json -o json')))
      assert.same(C1, decoded(run('--request - -o json', { stdin = REQUEST })))
      assert.same(C1, decoded(run('wc.lua --cluster-file cluster.lua -o json')))
    end)
  end)

  it('keeps and reassigns as rows R1 and R3 say; minimal moves no more and ends within 1', function()
    in_folder(function(folder, run)
      local base = 'wc.lua --cluster-file cluster.lua --previous c1.json -o json '
      assert.equal('s1:6800 1,4,8,9; s2:6800 2,5,10,11; s3:6800 3,6,7,12',
        layout(decoded(run(base .. '--mode keep --parallelism count=5'))))
      assert.equal('s1:6800 1,4,8,9; s2:6800 2,5,10,11; s3:6800 3,6,7,12',
        layout(decoded(run(base .. '--parallelism count=+2'))))
      assert.equal('s1:6800 1,9; s1:6801 4,7; s2:6800 2,5,10; s3:6800 3,6,8',
        layout(decoded(run(base .. '--mode reassign --set workers=4'))))
      local minimal = decoded(run(base .. '--mode minimal --set workers=4'))
      local before, moved = {}, 0
      for _, worker in ipairs(C1.workers) do
        for _, task in ipairs(worker.tasks) do before[task] = worker.supervisor .. worker.port end
      end
      for _, worker in ipairs(minimal.workers) do
        assert.is_true(#worker.tasks == 2 or #worker.tasks == 3)
        for _, task in ipairs(worker.tasks) do
          moved = moved + (before[task] ~= worker.supervisor .. worker.port and 1 or 0)
        end
      end
      assert.equal(4, #minimal.workers)
      assert.equal(2, moved)
      -- The same from a request.
      process.write_file(folder .. '/grown.json', (REQUEST:gsub('"mode":"new"', '"mode":"reassign"')
        :gsub('"workers":3', '"workers":4'):gsub('"previous":null', function()
          return '"previous":' .. json.encode(C1)
        end)))
      assert.equal('s1:6800 1,9; s1:6801 4,7; s2:6800 2,5,10; s3:6800 3,6,8',
        layout(decoded(run('--request grown.json -o json'))))
    end)
  end)

  it('replaces dead workers, and has nothing to do without any', function()
    in_folder(function(_, run)
      local base = 'wc.lua --cluster-file cluster.lua --previous c1.json -o json '
      local expected = 's1:6800 1,4,8,9; s1:6801 2,5,10; s3:6800 3,6,7'
      assert.equal(expected, layout(decoded(run(base .. '--mode monitor --dead s2:6800'))))
      assert.equal(expected, layout(decoded(run(base .. '--dead s2:6800'))))
      base = base:gsub('%-o json ', '')
      refused(run(base .. '--mode monitor'), 4, 'nothing needs assigning')
      refused(run(base .. '--mode monitor --dead s2:6801'), 7, 's2:6801')
      refused(run(base .. '--dead s2'), 2, 'SUPERVISOR:PORT')
    end)
  end)

  it('prints the request that it would assign', function()
    in_folder(function(folder, run)
      local request = decoded(run('wc.lua --cluster-file cluster.lua --print-request'))
      assert.equal('new', request.mode)
      assert.equal(json.null, request.previous)
      assert.same({ 9, 10 }, request.components[5].tasks)
      local r = run('wc.lua --cluster-file cluster.lua --print-request -o json')
      process.write_file(folder .. '/printed.json', r.stdout)
      assert.same(C1, decoded(run('--request printed.json -o json')))
    end)
  end)

  it('shows tables for people', function()
    in_folder(function(_, run)
      local r = run('wc.lua --cluster-file cluster.lua')
      assert.equal(0, r.code, r.stderr)
      assert.truthy(r.stdout:find('split 1  count 4  __topology_master 8  spout 9', 1, true))
      assert.truthy(r.stdout:find('3 workers on 3 supervisors', 1, true))
      assert.truthy(r.stdout:find('cross_node_edges', 1, true))
    end)
  end)

  it('knows all built-in schedulers', function()
    in_folder(function(_, run)
      for _, name in ipairs({ 'balanced', 'even', 'round_robin', 'packed' }) do
        local assignment = decoded(run('wc.lua --cluster-file cluster.lua -o json --scheduler '
          .. name))
        assert.equal(name, assignment.scheduler)
        assert.equal(3, #assignment.workers)
      end
    end)
  end)

  it('compares assignments with diff', function()
    in_folder(function(folder, run)
      local r = run('wc.lua --cluster-file cluster.lua --previous c1.json --mode reassign '
        .. '--set workers=4 -o json')
      process.write_file(folder .. '/next.json', r.stdout)
      local same = process.run({ 'diff', 'c1.json', 'c1.json' }, { cwd = folder })
      assert.equal(0, same.code, same.stderr)
      assert.equal('', same.stdout)
      local other = process.run({ 'diff', 'c1.json', 'next.json', '-o', 'json' }, { cwd = folder })
      assert.equal(1, other.code, other.stderr)
      local delta = json.decode(other.stdout)
      assert.equal(3, delta.moved)
      assert.equal('s1:6801', delta.moves[1].to)
    end)
  end)
end)

describe('streamlua schedule refuses', function()
  it('a usage that makes no sense with 2', function()
    in_folder(function(_, run)
      refused(run(''), 2, 'SCRIPT and --request')
      refused(run('wc.lua --request request.json'), 2, 'SCRIPT and --request')
      refused(run('wc.lua'), 2, '--cluster-file')
      refused(run('wc.lua --cluster-file cluster.lua --mode keep'), 2, '--previous')
      refused(run('wc.lua --cluster-file cluster.lua --mode fast'), 2, '--mode')
      refused(run('--request - --previous -'), 2, 'standard input')
      refused(run('--request request.json --limit soon'), 2, 'soon')
      refused(run('wc.lua --cluster-file cluster.lua --parallelism count'), 2, 'count')
    end)
  end)

  it('files that are missing with 3', function()
    in_folder(function(_, run)
      refused(run('--request none.json'), 3, 'none.json')
      refused(run('none.lua --cluster-file cluster.lua'), 3, 'none.lua')
      refused(run('wc.lua --cluster-file none.lua'), 3, 'none.lua')
      refused(run('wc.lua --cluster-file cluster.lua --previous none.json'), 3, 'none.json')
      refused(run('--request request.json --scheduler ./none.lua'), 3, 'none.lua')
    end)
  end)

  local function changed(pattern, replacement)
    local text, n = REQUEST:gsub(pattern, replacement)
    assert(n > 0, pattern)
    return text
  end

  it('faulty requests with 7, each with what is wrong', function()
    local rows = {
      { changed('"mode"', '"colour":1,"mode"'), "unknown key 'colour'" },
      { changed('"components"', '"parts"'), 'components must be a list' },
      { changed('%[4,5,6%]', '[4,5,3]'), "has task 3, which 'split' has already" },
      { changed('"cpu":4', '"cpu":-4'), 'cpu must be a number of cores' },
      { changed('"cpu":4', '"cpu":NaN'), 'invalid JSON' },
      { changed('"id":"s2"', '"id":"s1"'), "is 's1', as supervisors[1] is" },
      { changed('6801,6802', '6802,6802'), "has 6802 twice" },
      { changed('"user_workers":%[%]', '"user_workers":[{"host":"h9","components":{"count":3}}]'),
        'host h9' },
      { changed('"workers":3', '"workers":13'), 'not enough slots' },
      { changed('"isolation":%[%]', '"isolation":["h7"]'), 'h7' },
      { changed('"mode":"new"', '"mode":"keep"'), 'previous must be given' },
      { REQUEST:sub(1, #REQUEST / 2), 'invalid JSON' },
      { '', 'invalid JSON' },
      { '[1,2]', 'unknown key' },
      { ('['):rep(10000) .. (']'):rep(10000), 'nested too deeply' },
      { changed('"plan":null', '"plan":{"topology":"wc","version":1,"packing":"x","containers":7}'),
        'plan: ' },
    }
    in_folder(function(folder, run)
      for _, row in ipairs(rows) do
        process.write_file(folder .. '/bad.json', row[1])
        local scheduler = row[2] == 'not enough slots' and ' --set x=1' or ''
        local r = run('--request bad.json -o table' .. scheduler)
        if row[2] == 'not enough slots' then
          -- Thirteen workers are more than the nine tasks; the cluster must be made smaller.
          process.write_file(folder .. '/small.lua', 'return { supervisors = 1, slots = 4 }')
          r = run('--request bad.json --cluster-file small.lua')
        end
        refused(r, 7, row[2])
      end
    end)
  end)

  it('C20: more user workers than workers, with 7 and the numbers', function()
    in_folder(function(folder, run)
      process.write_file(folder .. '/bad.json', (changed('"workers":3', '"workers":2')
        :gsub('"user_workers":%[%]', '"user_workers":[{"host":"h1","components":{"spout":1}},'
          .. '{"host":"h2","components":{"split":1}},{"host":"h3","components":{"count":1}}]')))
      refused(run('--request bad.json'), 7, '3 user workers, but only 2 workers')
    end)
  end)

  it('a plan that contradicts its request with 7', function()
    in_folder(function(folder, run)
      local plan = '{"topology":"wc","version":1,"packing":"x","containers":[{"id":1,"cpu":1,"ram":1,'
        .. '"disk":1,"instances":[{"component":"split","task":77,"index":0,"cpu":1,"ram":1,'
        .. '"disk":1}]}]}'
      process.write_file(folder .. '/bad.json', changed('"plan":null', '"plan":' .. plan))
      refused(run('--request bad.json --scheduler packed'), 7, 'task 77')
      refused(run('--request request.json --scheduler packed'), 7, 'packing plan')
    end)
  end)

  it('unknown schedulers with 7', function()
    in_folder(function(_, run)
      refused(run('--request request.json --scheduler balansed'), 7, 'balanced')
    end)
  end)

  it('300 MiB of JSON', function()
    in_folder(function(folder, run)
      local file = assert(io.open(folder .. '/large.json', 'wb'))
      file:seek('set', 300 * 1024 * 1024)
      file:write(' ')
      file:close()
      refused(run('--request large.json'), 7, 'larger than')
    end)
  end)

  it('tells errors as one JSON object', function()
    in_folder(function(_, run)
      local r = run('--request request.json --scheduler balansed -o json')
      assert.equal(7, r.code)
      assert.equal('', r.stdout)
      assert.equal('invalid', json.decode(r.stderr).error.code)
    end)
  end)

  it('a script that loads for ever with 7', function()
    in_folder(function(folder, run)
      process.write_file(folder .. '/loop.lua', 'while true do end')
      refused(run('loop.lua --cluster-file cluster.lua --timeout 0.5'), 7, 'still loading')
    end)
  end)
end)

describe('a custom scheduler of streamlua schedule', function()
  local function with(text, args, check)
    in_folder(function(folder, run)
      process.write_file(folder .. '/mine.lua', text)
      check(run('--request request.json --scheduler mine.lua ' .. args), folder, run)
    end)
  end

  local HEAD = "return { name = 'mine', assign = function(request)\n"

  it('assigns, by path and by name', function()
    local text = HEAD .. [[
      local tasks = {}
      for _, c in ipairs(request.components) do
        for _, task in ipairs(c.tasks) do tasks[#tasks + 1] = task end
      end
      io.stderr:write('hello from the scheduler\n')
      return { workers = { { supervisor = 's2', port = 6801, tasks = tasks } } }
    end }]]
    with(text, '-o json', function(r, _, run)
      local assignment = decoded(r)
      assert.equal('mine', assignment.scheduler)
      assert.equal('s2:6801 1,2,3,4,5,6,7,8,9,10', layout(assignment))
      assert.truthy(r.stderr:find('hello from the scheduler', 1, true))
      assert.equal('s2:6801 1,2,3,4,5,6,7,8,9,10', layout(decoded(
        run('wc.lua --cluster-file cluster.lua --scheduler mine -o json'))))
    end)
  end)

  it('is found among the shipped ones by name', function()
    in_folder(function(_, run)
      assert.equal('rack-spread', decoded(run('--request request.json --scheduler rack-spread -o json'))
        .scheduler)
    end)
  end)

  it('that loops for ever is killed within its limit', function()
    with(HEAD .. 'while true do end end }', '--limit 1s', function(r)
      refused(r, 7, 'ran longer than its limit of 1 s and was killed')
    end)
    with('while true do end', '--limit 500ms', function(r)
      refused(r, 7, 'was killed')
    end)
  end)

  it('that can not be stopped by pcall is killed, too', function()
    with(HEAD .. 'while true do pcall(function() while true do end end) end end }', '--limit 0.5',
      function(r) refused(r, 7, 'was killed') end)
  end)

  it('that allocates for ever meets its memory limit', function()
    with(HEAD .. [[local list = {}
      while true do list[#list + 1] = ('x'):rep(1024 * 1024) .. #list end end }]], '--limit 30s',
      function(r) refused(r, 7, process.build == 'asan' and 'scheduler' or 'memory') end)
  end)

  it('that raises shows file and line', function()
    with(HEAD .. '\n  error("no idea")\nend }', '', function(r)
      refused(r, 7, 'mine.lua:3: no idea')
    end)
    with(HEAD .. '  local x = nil\n  return x.workers\nend }', '', function(r)
      refused(r, 7, 'mine.lua:3:')
    end)
  end)

  it('that returns nothing, a cycle or a function is refused', function()
    with(HEAD .. 'end }', '', function(r) refused(r, 7, 'returned nothing') end)
    with(HEAD .. 'local t = {} t.workers = t return t end }', '', function(r)
      refused(r, 7, 'contains itself')
    end)
    with(HEAD .. 'return { workers = { print } } end }', '', function(r)
      refused(r, 7, 'is a function')
    end)
  end)

  it('is held to what a built-in promises', function()
    with(HEAD .. "return { workers = { { supervisor = 's9', port = 1, tasks = { 1 } } } } end }", '',
      function(r)
        refused(r, 7, "'s9', which the cluster does not have")
        assert.truthy(r.stderr:find("leave out task 10 of 'spout'", 1, true))
      end)
  end)

  it('that ends its process is refused', function()
    with(HEAD .. 'os.exit(0) end }', '', function(r) refused(r, 7, 'ended its process') end)
  end)

  it('that forks is refused', function()
    with(HEAD .. [[
      local ffi = require 'ffi'
      if ffi.C.fork() == 0 then while true do end end
      return { workers = {} }
    end }]], '', function(r) refused(r, 7, 'another process (a fork)') end)
    with(HEAD .. "os.execute('true &') end }", '', function(r)
      refused(r, 7, 'mine.lua:2: it starts another process (a fork)')
    end)
  end)

  it('that prints is refused, with the line', function()
    with(HEAD .. "print('{}') return { workers = {} } end }", '', function(r)
      refused(r, 7, 'mine.lua:2: it prints to standard output')
    end)
    with("io.write('{}')\n" .. HEAD .. 'return { workers = {} } end }', '', function(r)
      refused(r, 7, 'mine.lua:1: it prints to standard output')
    end)
  end)

  it('shows a traceback only with -v', function()
    with(HEAD .. 'error("no idea") end }', '-v', function(r)
      assert.equal(7, r.code)
      assert.truthy(r.stderr:find('stack traceback', 1, true), r.stderr)
    end)
    with(HEAD .. 'error("no idea") end }', '', function(r)
      assert.is_nil(r.stderr:find('stack traceback', 1, true))
    end)
  end)
end)
