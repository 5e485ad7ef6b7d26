-- The tasks of one process of a topology that spans several: from plan to plan, with their keyed state.
local abi = require 'streamlua.abi'
local files = require 'support.files'
local load = require 'streamlua.topology.load'
local plans = require 'streamlua.runtime.plan'
local sites = require 'streamlua.runtime.site'
local states = require 'streamlua.runtime.state'
local workers = require 'streamlua.runtime.worker'

local C, ffi = abi.C, abi.ffi

local KEYS, NUMBERS, GROUPS = 500, 5000, 16

local SCRIPT = ([[
local streamlua = require 'streamlua'
local t = streamlua.topology('site', { key_groups = %d })
t:spout('numbers', streamlua.spout {
  fields = { 'key' },
  next_tuple = function(self, collector)
    self.n = (self.n or 0) + 1
    if self.n > %d then return streamlua.DONE end
    collector:emit({ 'key ' .. self.n %% %d }, { id = self.n })
  end,
})
t:bolt('count', streamlua.bolt {
  fields = { 'key' },
  prepare = function(self, context)
    if context.index == 9 then error('index 9 can not be') end
    self.counts, self.large = context:state('counts'), context:state('large')
    self.huge = context:state('huge')
  end,
  execute = function(self, tuple)
    self.counts:add(tuple.key, 1)
    self.large:put(tuple.key, ('x'):rep(1000))
    if tuple.key == 'key 7' and not self.huge:get('key 7') then
      self.huge:put('key 7', ('0123456789'):rep(200000))
    end
  end,
}, { parallelism = 2 }):fields('numbers', { 'key' })
return t
]]):format(GROUPS, NUMBERS, KEYS)

local site, worker, plan
-- States that have come, by the version of the plan that they are for.
local coming

-- Hears events until `kind` has come from every executor.
local function await(kind)
  local heard, count = {}, 0
  while count < plan.executors do
    local event = assert(worker:wait(120000), 'no event within 2 minutes')
    assert.is_not.equal(C.SL_EVENT_BROKEN, event.kind, event.text)
    if event.kind == kind and not heard[event.executor] then
      heard[event.executor], count = true, count + 1
    end
  end
end

local function start(text, set)
  local path = files.write('site.lua', text or SCRIPT)
  local topology = assert(load.script(path, { set = set }))
  plan = plans.new(topology, { executors = 2, is_site = true })
  worker = workers.new(plan, { remote_window = 65536 })
  worker:start({ script = path, set = set, log = { level = 'info' } })
  await(C.SL_EVENT_READY)
  coming = {}
  site = sites.new({ worker = worker, plan = plan, container = 1, drain_ms = 5000,
    next_staged = function(version) return table.remove(coming[version] or {}) end })
end

local function stop()
  worker:command(C.SL_COMMAND_STOP)
  await(C.SL_EVENT_STOPPED)
  worker:join()
  worker:free()
  files.clean()
end

-- A plan with `count` tasks of the bolt: ids from 2 on, those in `there` in container 2.
local function physical(version, count, there)
  local made = { version = version, is_active = false, containers = { [1] = 'aa', [2] = 'bb' },
    tasks = { [1] = { id = 1, component = 'numbers', index = 0, container = 1 } }, groups = {} }
  for i = 1, count do
    made.tasks[1 + i] = { id = 1 + i, component = 'count', index = i - 1,
      container = there and there[1 + i] and 2 or 1 }
  end
  local owners = {}
  for group = 1, GROUPS do owners[group] = 2 + (group - 1) % count end
  made.groups.count = owners
  return made
end

-- All pieces of groups, or of a task.
local function export_all(groups, task)
  local all, cursor, calls = {}, '', 0
  repeat
    local pieces, following = site:export('count', groups, task or 0, cursor)
    assert(pieces, tostring(following))
    for _, piece in ipairs(pieces) do all[#all + 1] = piece end
    cursor, calls = following, calls + 1
  until cursor == ''
  return all, calls
end

local function every_group()
  local list = {}
  for group = 0, GROUPS - 1 do list[group + 1] = group end
  return list
end

-- The counts by key that pieces hold.
local function counts_of(pieces)
  local state = assert(states.new({ name = 'counts', key_groups = GROUPS }))
  for _, piece in ipairs(pieces) do
    if piece.state == 'counts' then assert(state:import(piece.entries)) end
  end
  local counts, sum = {}, 0
  for key, count in state:each() do counts[key], sum = count, sum + count end
  return counts, sum, state:size()
end

local function check_counts()
  local _, sum, size = counts_of((export_all(every_group())))
  assert.equal(NUMBERS, sum)
  assert.equal(KEYS, size)
end

-- Groups whose owner changes.
local function moved(before, after)
  local list = {}
  for i = 1, GROUPS do
    if before.groups.count[i] ~= after.groups.count[i] then list[#list + 1] = i - 1 end
  end
  return list
end

-- Has pieces come for a plan, to the tasks that own their groups in it.
local function stage(after, pieces)
  local tables, parts = {}, {}
  for _, piece in ipairs(pieces) do
    local owner = after.groups.count[piece.group + 1]
    local id = owner .. piece.state
    tables[id] = tables[id] or { component = 'count', state = piece.state, task = owner,
      of = assert(states.new({ name = piece.state, key_groups = GROUPS })) }
    parts[#parts + 1] = piece.entries
    if piece.count > 0 then
      assert.equal(piece.count, assert(tables[id].of:import(table.concat(parts))).entries)
      parts = {}
    end
  end
  local list = {}
  for _, item in pairs(tables) do
    item.handle = item.of.handle
    list[#list + 1] = item
  end
  coming[after.version] = list
end

local function change(before, after)
  stage(after, (export_all(moved(before, after))))
  return site:apply(after)
end

-- What a task holds, all groups taken together.
local function size_of(task)
  local _, _, size = counts_of((export_all({}, task)))
  return size
end

describe('site', function()
  local first

  before_each(function()
    start()
    first = physical(1, 2)
    assert(site:apply(first))
    assert(site:set_active(true))
    -- Its end is told by an event; executors without tasks had told theirs before.
    while worker:stats().numbers.acked < NUMBERS do worker:wait(1000) end
    assert(site:set_active(false))
  end)
  after_each(stop)

  it('runs the tasks of a plan and exports their state in pieces', function()
    check_counts()
    local pieces, calls = export_all(every_group())
    local bytes = 0
    local whole, entries, described = ffi.new('struct sl_keyed_summary'), 0, 0
    for _, piece in ipairs(pieces) do
      bytes, entries = bytes + #piece.entries, entries + piece.count
      if piece.whole then
        ffi.copy(whole, piece.whole, ffi.sizeof(whole))
        described = described + tonumber(whole.entries)
      end
    end
    assert.equal(entries, described)
    local measured = assert(site:measure('count', every_group(), 0))
    assert.is_true(measured <= bytes and measured > bytes * 0.9)
    -- 500 values of 1000 bytes do not fit into one answer.
    assert.is_true(calls > 1, calls)
    for _, piece in ipairs(pieces) do assert.is_true(#piece.entries <= 400 * 1024) end
  end)

  it('moves key groups to new tasks, and drops them where they were at the commit', function()
    local second = physical(2, 4)
    assert(change(first, second))
    check_counts()
    assert.is_true(size_of(2) > 200)
    assert(site:set_active(true))
    check_counts()
    local sum = 0
    for task = 2, 5 do
      local size = size_of(task)
      assert.is_true(size > 50 and size < 200, size)
      sum = sum + size
    end
    assert.equal(KEYS, sum)
  end)

  it('has the state of before when a plan is taken back', function()
    local third = physical(3, 1)
    assert(change(first, third))
    check_counts()
    -- Another worker could not: the plan of before comes again, with the task that had left.
    assert(site:apply(first))
    assert(site:set_active(true))
    check_counts()
    assert.equal(KEYS, size_of(2) + size_of(3))
  end)

  it('shrinks and grows again without losing a count', function()
    local before = first
    for version, count in ipairs({ 1, 3, 2, 4, 1 }) do
      local after = physical(version + 1, count)
      assert(change(before, after))
      assert(site:set_active(true))
      assert(site:set_active(false))
      check_counts()
      before = after
    end
  end)

  it('keeps what it had when a new task can not open', function()
    local wrong = physical(2, 10)
    local ok, failure = change(first, wrong)
    assert.is_nil(ok)
    assert.equal('EUSER', failure.code)
    assert.matches('^count%[9%]: .*index 9 can not be', failure.message)
    assert(site:set_active(true))
    check_counts()
    assert(change(first, physical(3, 3)))
    check_counts()
  end)

  it('refuses a plan whose task ids change their meaning', function()
    local wrong = physical(2, 2)
    wrong.tasks[2].index = 7
    local ok, failure = site:apply(wrong)
    assert.is_nil(ok)
    assert.equal('EINVAL', failure.code)
    wrong = physical(2, 2)
    wrong.tasks[9] = { id = 9, component = 'nobody', index = 0, container = 1 }
    ok, failure = site:apply(wrong)
    assert.is_nil(ok)
    assert.equal('ENOTFOUND', failure.code)
  end)

  it('moves an entry that is larger than any message', function()
    local function huge()
      local parts, largest = {}, 0
      for _, piece in ipairs(export_all(every_group())) do
        if piece.state == 'huge' then
          parts[#parts + 1] = piece.entries
          largest = math.max(largest, #piece.entries)
        end
      end
      local state = assert(states.new({ name = 'huge', key_groups = GROUPS }))
      assert.equal(1, assert(state:import(table.concat(parts))).entries)
      assert.is_true(largest <= 400 * 1024 and #parts > 4)
      return state:get('key 7')
    end
    local value = ('0123456789'):rep(200000)
    assert.is_true(huge() == value)
    local third = physical(2, 3)
    local group
    for _, piece in ipairs(export_all(every_group())) do
      if piece.state == 'huge' then group = piece.group end
    end
    third.groups.count[group + 1] = first.groups.count[group + 1] == 2 and 3 or 2
    assert(change(first, third))
    assert(site:set_active(true))
    assert(site:set_active(false))
    assert.is_true(huge() == value)
  end)

  it('lets a task go to another process and takes it back', function()
    local away = physical(2, 2, { [3] = true })
    local pieces = export_all(every_group())
    assert(site:apply(away))
    assert(site:set_active(true))
    assert(site:set_active(false))
    assert.equal(0, size_of(3))
    local back = physical(3, 2)
    local mine = {}
    for _, piece in ipairs(pieces) do
      if away.groups.count[piece.group + 1] == 3 then mine[#mine + 1] = piece end
    end
    stage(back, mine)
    assert(site:apply(back))
    assert(site:set_active(true))
    check_counts()
  end)
end)

describe('ackers', function()
  -- A plan with one of them, in this container.
  local function with_acker(version, container, count)
    local made = physical(version, count or 2)
    made.tasks[20] = { id = 20, component = '__acker', index = 0, container = container }
    return made
  end

  before_each(function() start(nil, { ackers = 1 }) end)
  after_each(stop)

  it('go to another process and come back', function()
    assert(site:apply(with_acker(1, 1)))
    assert(site:apply(with_acker(2, 2)))
    assert(site:apply(with_acker(3, 1)))
    assert(site:set_active(true))
    while worker:stats().numbers.acked < NUMBERS do worker:wait(1000) end
    assert(site:set_active(false))
    check_counts()
  end)

  it('stay where they are when what came with them can not open', function()
    assert(site:apply(with_acker(1, 2)))
    local ok, failure = site:apply(with_acker(2, 1, 10))
    assert.is_nil(ok)
    assert.equal('EUSER', failure.code)
    assert(site:apply(with_acker(3, 1)))
    assert(site:set_active(true))
    while worker:stats().numbers.acked < NUMBERS do worker:wait(1000) end
  end)

  it('are as many as at first', function()
    assert(site:apply(with_acker(1, 1)))
    for _, wrong in ipairs({ physical(2, 2), with_acker(2, 1) }) do
      if wrong.tasks[20] then
        wrong.tasks[21] = { id = 21, component = '__acker', index = 1, container = 2 }
      end
      local ok, failure = site:apply(wrong)
      assert.is_nil(ok)
      assert.equal('EINVAL', failure.code)
      assert.matches('ackers can not change while tasks run', failure.message)
    end
  end)
end)

describe('tasks of the next plan', function()
  -- Everything that has happened, a line each.
  local trace

  local LIVELY = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('site', { key_groups = 4, trace = '' })
local function told(self, what)
  if self.has_told[what] then return end
  self.has_told[what] = true
  local file = assert(io.open(self.config.trace, 'a'))
  file:write(self.component, ' ', self.index, ' ', what, '\n')
  file:close()
end
local function begin(self, context)
  self.component, self.index, self.config, self.has_told = context.component, context.index, context.config, {}
  told(self, 'opened')
  if context.index == 9 then error('index 9 can not be') end
end
t:spout('numbers', streamlua.spout {
  fields = { 'n' },
  open = begin,
  activate = function(self) told(self, 'activated') end,
  deactivate = function(self) told(self, 'deactivated') end,
  close = function(self) told(self, 'closed') end,
  next_tuple = function(self, collector)
    told(self, 'called')
    collector:emit({ 1 })
  end,
})
t:bolt('clock', streamlua.bolt {
  fields = { 'n' }, tick_every = 0.001,
  prepare = begin,
  execute = function() end,
  tick = function(self, collector)
    told(self, 'ticked')
    collector:emit({ 1 })
  end,
  cleanup = function(self) told(self, 'closed') end,
}):shuffle('numbers')
return t
]]

  local function happened(line)
    for found in io.lines(trace) do
      if found == line then return true end
    end
    return false
  end

  local function until_happened(...)
    for _, line in ipairs({ ... }) do
      while not happened(line) do worker:wait(1) end
    end
  end

  local function lively(version, count)
    local made = { version = version, is_active = false, containers = { [1] = 'aa' }, coming = {},
      tasks = {}, groups = {} }
    for i = 1, count do
      made.tasks[2 * i - 1] = { id = 2 * i - 1, component = 'clock', index = i - 1, container = 1 }
      made.tasks[2 * i] = { id = 2 * i, component = 'numbers', index = i - 1, container = 1 }
    end
    return made
  end

  -- The first plan with the second tasks coming, of this index.
  local function bridge(index)
    local made = lively(1, 1)
    made.is_active = true
    made.coming = { [3] = { id = 3, component = 'clock', index = index or 1, container = 1 },
      [4] = { id = 4, component = 'numbers', index = index or 1, container = 1 } }
    return made
  end

  -- Has the second tasks made ready, and stops everything for the second plan.
  local function prepare()
    assert(site:apply(bridge()))
    assert(site:make_ready(bridge()))
    assert.is_true(happened('numbers 1 opened') and happened('clock 1 opened'))
    assert(site:set_active(false))
    assert(site:set_active(false, true))
    local second = lively(2, 2)
    second.is_held = true
    assert(site:apply(second))
    assert(site:set_active(false, true))
  end

  before_each(function()
    trace = files.write('trace', '')
    start(LIVELY, { trace = trace })
    assert(site:apply(lively(1, 1)))
    assert(site:set_active(true))
    until_happened('numbers 0 called', 'clock 0 ticked')
  end)
  after_each(stop)

  it('are opened before anything stops, and begin when nothing is held', function()
    prepare()
    for _, what in ipairs({ 'activated', 'called', 'deactivated' }) do
      assert.is_false(happened('numbers 1 ' .. what))
    end
    assert.is_false(happened('clock 1 ticked'))
    assert(site:set_active(true))
    until_happened('numbers 1 activated', 'numbers 1 called', 'clock 1 ticked')
    assert.is_false(happened('numbers 1 closed'))
  end)

  it('tick in a topology that stays paused, and are not called', function()
    assert(site:set_active(false))
    prepare()
    assert.is_false(happened('clock 1 ticked'))
    assert(site:set_active(false))
    until_happened('clock 1 ticked')
    assert.is_false(happened('numbers 1 called') or happened('numbers 1 activated'))
  end)

  it('are closed when that plan does not come', function()
    assert(site:apply(bridge()))
    assert(site:make_ready(bridge()))
    local first = lively(1, 1)
    first.is_active = true
    assert(site:apply(first))
    assert(site:set_active(true))
    until_happened('numbers 1 closed', 'clock 1 closed')
    assert.is_false(happened('numbers 1 called') or happened('clock 1 ticked'))
  end)

  it('are none when one of them can not open', function()
    assert(site:apply(bridge(9)))
    local ok, failure = site:make_ready(bridge(9))
    assert.is_nil(ok)
    assert.equal('EUSER', failure.code)
    assert.matches('index 9 can not be', failure.message)
    assert(site:apply(bridge()))
    assert(site:make_ready(bridge()))
    assert.is_true(happened('numbers 1 opened') and happened('clock 1 opened'))
  end)
end)

describe('plans as text', function()
  it('are read', function()
    local read = sites.parse('plan 7 1\ncontainer 1 00ff\ncontainer 2 -\ntask 3 a.b 0 1\ntask 4 c 12 2\n'
      .. 'coming 5 c 13 1\ngroups c 4 4 5\n')
    assert.same({
      version = 7, is_active = true, is_held = false, containers = { '00ff', '-' },
      tasks = { [3] = { id = 3, component = 'a.b', index = 0, container = 1 },
        [4] = { id = 4, component = 'c', index = 12, container = 2 } },
      coming = { [5] = { id = 5, component = 'c', index = 13, container = 1 } },
      groups = { c = { 4, 4, 5 } },
    }, read)
    read = sites.parse('plan 8 0 held\n')
    assert.is_true(read.is_held)
    assert.is_false(read.is_active)
  end)
end)
