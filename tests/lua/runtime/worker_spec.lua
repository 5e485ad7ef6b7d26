-- labels: short
-- A worker with real threads whose tasks change while tuples flow.
local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local files = require 'support.files'
local load = require 'streamlua.topology.load'
local plans = require 'streamlua.runtime.plan'
local workers = require 'streamlua.runtime.worker'

local C = abi.C

-- Spouts number their tuples for each key; counting tasks see that no number of a (spout, key) comes
-- twice or out of order, and tell of the last ones at the end.
local SCRIPT = [[
local streamlua = require 'streamlua'
local t = streamlua.topology('live', { CONFIG, max_spout_pending = 500, break_task = 77 })
t:spout('numbers', streamlua.spout {
  fields = { 'key', 'n' },
  open = function(self) self.next, self.count = {}, 0 end,
  next_tuple = function(self, collector)
    local key = self.count % 50
    self.count = self.count + 1
    local n = (self.next[key] or 0) + 1
    self.next[key] = n
    collector:emit({ key, n }, { id = self.count })
  end,
}, { parallelism = 2 })
t:bolt('count', streamlua.bolt {
  fields = { 'key', 'n' },
  prepare = function(self, context)
    self.context, self.last = context, {}
    self.seen = context:counter('seen')
    if context.config.break_task == context.task then error('this task does not open') end
  end,
  execute = function(self, tuple, collector)
    local id = streamlua.tuple.task(tuple) * 1000 + tuple.key
    if tuple.n <= (self.last[id] or 0) then
      collector:report_error(('key %d: %d after %d'):format(tuple.key, tuple.n, self.last[id]))
    end
    self.last[id] = tuple.n
    self.seen:inc()
    collector:emit({ tuple.key, 1 })
  end,
  finish = function(self) self.context:counter('finished'):inc() end,
  cleanup = function(self) self.context:counter('cleaned'):inc() end,
}, { parallelism = 2 }):fields('numbers', { 'key' })
t:bolt('sum', streamlua.bolt {
  fields = {},
  prepare = function(self, context) self.seen, self.context = context:counter('seen'), context end,
  execute = function(self) self.seen:inc() end,
  finish = function(self) self.context:counter('finished'):inc() end,
}):shuffle('count')
return t
]]

-- Constant garbage collection makes everything a hundred times slower.
local is_slow = os.getenv('SL_GC') == 'stress'
local FLOW = is_slow and 200 or 2000
local EVENT_MS = is_slow and 200000 or 20000

describe('streamlua.runtime.worker', function()
  after_each(files.clean)

  local function start(executors, config)
    local path = files.write('live.lua', (SCRIPT:gsub('CONFIG', config)))
    local topology = assert(load.script(path))
    local worker = workers.new(plans.new(topology, { executors = executors }))
    worker:start({ script = path, log = { level = 'error' } })
    local run = { worker = worker, errors = {}, reports = {}, finished = 0 }
    function run.hear(event)
      if event.kind == C.SL_EVENT_ERROR or event.kind == C.SL_EVENT_BROKEN then
        run.errors[#run.errors + 1] = event.text
      elseif event.kind == C.SL_EVENT_FINISHED then
        run.finished = run.finished + 1
      elseif event.kind == C.SL_EVENT_RESUMED then
        run.finished = run.finished - 1
      elseif event.kind == C.SL_EVENT_REPORT then
        for id, report in pairs(buffer.decode(event.text).tasks) do run.reports[tonumber(id)] = report end
      end
      return event.kind
    end
    -- Hears events until `count` of a kind have come.
    function run.await(kind, count)
      while count > 0 do
        local event = assert(worker:wait(EVENT_MS), 'no event for long')
        if run.hear(event) == kind then count = count - 1 end
      end
    end
    run.await(C.SL_EVENT_READY, executors)
    worker:command(C.SL_COMMAND_ACTIVATE)
    run.options = { on_event = run.hear }
    return run
  end

  -- Until the spouts have had that many more tuples acked.
  local function flow(run, count)
    local goal = run.worker:stats().numbers.acked + count
    repeat
      local event = run.worker:wait(1)
      if event then run.hear(event) end
    until run.worker:stats().numbers.acked >= goal
  end

  local function finish(run)
    local executors = run.worker.plan.executors
    run.worker:command(C.SL_COMMAND_DRAIN)
    while run.finished < executors do run.hear(assert(run.worker:wait(EVENT_MS), 'it does not end')) end
    local stats = run.worker:stats()
    run.worker:command(C.SL_COMMAND_STOP)
    run.await(C.SL_EVENT_STOPPED, executors)
    run.worker:join()
    run.worker:free()
    return stats
  end

  local function check_totals(run, stats)
    assert.same({}, run.errors)
    assert.equal(0, stats.numbers.failed)
    assert.equal(stats.numbers.emitted, stats.numbers.acked)
    assert.equal(stats.numbers.emitted, stats.count.executed)
    assert.equal(stats.numbers.emitted, stats.sum.executed)
    assert.equal(0, stats.numbers.pending)
  end

  local function ids(run, name)
    local list = {}
    for i, id in ipairs(run.worker.plan.by_name[name].tasks) do list[i] = id end
    return list
  end

  local cases = { { 1, 'ackers = 0' }, { 2, 'ackers = 2' }, { 2, 'ackers = 0' }, { 3, 'ackers = 0' },
    { 2, 'acking = false' } }
  for i = 1, is_slow and 2 or #cases do
    local case = cases[i]
    local executors, config = unpack(case)
    it(('adds two tasks and removes one while tuples flow, %d executors and %s'):format(executors,
      config), function()
      local run = start(executors, config)
      flow(run, FLOW)
      local before = ids(run, 'count')
      local last = run.worker.last_id
      assert(run.worker:change({ add = { { component = 'count' }, { component = 'count' } } },
        run.options))
      assert.same({ before[1], before[2], last + 1, last + 2 }, ids(run, 'count'))
      flow(run, FLOW)
      assert(run.worker:remove_task(before[1], run.options))
      assert.same({ before[2], last + 1, last + 2 }, ids(run, 'count'))
      flow(run, FLOW)
      assert.equal(last + 3, run.worker:add_task({ component = 'numbers' }, run.options))
      flow(run, FLOW)
      assert(run.worker:remove_task(last + 3, run.options))
      local stats = finish(run)
      check_totals(run, stats)
      local seen = 0
      for _, id in ipairs({ before[1], before[2], last + 1, last + 2 }) do
        local metrics = run.reports[id].metrics
        assert.is_true(metrics.seen > 0, 'task ' .. id)
        seen = seen + metrics.seen
        assert.equal(1, metrics.cleaned)
        -- A task that was removed is cleaned up, its input has not ended.
        assert.equal(id ~= before[1] and 1 or nil, metrics.finished)
      end
      assert.equal(stats.numbers.emitted, seen)
      assert.equal(1, run.reports[ids(run, 'sum')[1]].metrics.finished)
    end)
  end

  it('moves as few key groups as possible', function()
    local run = start(2, 'acking = true')
    local count = run.worker.plan.by_name.count
    local before = count.groups
    assert(run.worker:add_task({ component = 'count', executor = 1 }, run.options))
    local moved = 0
    for group, owner in ipairs(count.groups) do
      if owner ~= before[group] then
        moved = moved + 1
        assert.equal(run.worker.last_id, owner)
      end
    end
    assert.equal(math.floor(#before / 3), moved)
    check_totals(run, finish(run))
  end)

  it('takes given owners of key groups', function()
    local run = start(2, 'acking = true')
    local count = run.worker.plan.by_name.count
    local groups = {}
    for group in ipairs(count.groups) do groups[group] = count.tasks[2] end
    assert(run.worker:change({ remove = { count.tasks[1] }, groups = { count = groups } }, run.options))
    assert.same(groups, count.groups)
    check_totals(run, finish(run))
  end)

  it('takes a task back that does not open, and everything goes on', function()
    local run = start(2, 'acking = true')
    flow(run, 500)
    local before = ids(run, 'count')
    local ok, failure = run.worker:add_task({ component = 'count', id = 77 }, run.options)
    assert.is_nil(ok)
    assert.equal('EUSER', failure.code)
    assert.match('this task does not open', failure.message)
    assert.same(before, ids(run, 'count'))
    flow(run, 500)
    assert(run.worker:add_task({ component = 'count', id = 78 }, run.options))
    flow(run, 500)
    check_totals(run, finish(run))
  end)

  it('refuses what does not fit before anything is touched', function()
    local run = start(2, 'acking = true')
    local worker = run.worker
    local count = ids(run, 'count')
    local function refused(change, code, text)
      local ok, failure = worker:change(change, run.options)
      assert.is_nil(ok)
      assert.equal(code, failure.code)
      assert.match(text, failure.message, 1, true)
    end
    refused({ add = { { component = 'nobody' } } }, 'ENOTFOUND', "no component 'nobody'")
    refused({ add = { { component = 'count', id = count[1] } } }, 'EEXIST', 'already')
    refused({ add = { { component = 'count' }, { component = 'count', id = 1e6 } } }, 'EINVAL', 'task')
    refused({ add = { { component = 'count', executor = 9 } } }, 'EINVAL', 'executor 9')
    refused({ remove = { 12345 } }, 'ENOTFOUND', 'no task 12345')
    refused({ remove = count }, 'EINVAL', "component 'count' must keep a task")
    refused({ remove = { count[1] }, groups = { count = { 1 } } }, 'EINVAL', 'key groups, not 1')
    local groups = {}
    for i = 1, #worker.plan.by_name.count.groups do groups[i] = count[1] end
    refused({ remove = { count[1] }, groups = { count = groups } }, 'EINVAL', 'which is none of it')
    assert.same(count, ids(run, 'count'))
    flow(run, 500)
    check_totals(run, finish(run))
  end)
end)
