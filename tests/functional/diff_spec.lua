-- `streamlua diff` on plans: exit 0 same, 1 differ, 2 and more failed.
local json = require 'streamlua.json'
local process = require 'support.process'

local REQUEST = [[{"topology":"t","config":{"container_max_instances":4},"components":[
 {"name":"spout","kind":"spout","parallelism":4},{"name":"bolt","kind":"bolt","parallelism":3}]}]]

local function scene(fn)
  process.with_folder(function(folder)
    local function run(args, stdin) return process.run(args, { cwd = folder, stdin = stdin }) end
    local first = run({ 'plan', '--request', '-', '--packing', 'first_fit_decreasing', '-o', 'json' },
      REQUEST)
    assert.equal(0, first.code, first.stderr)
    process.write_file(folder .. '/a.json', first.stdout)
    process.write_file(folder .. '/request.json', REQUEST)
    local second = run { 'plan', '--request', 'request.json', '--from', 'a.json', '--parallelism',
      'bolt=+5,spout=-1', '-o', 'json' }
    assert.equal(0, second.code, second.stderr)
    process.write_file(folder .. '/b.json', second.stdout)
    fn(function(...) return run { 'diff', ... } end, folder, first.stdout)
  end)
end

describe('streamlua diff', function()
  it('prints nothing and ends with 0 when two plans are the same', function()
    scene(function(diff, folder, text)
      local r = diff('a.json', 'a.json')
      assert.equal(0, r.code)
      assert.equal('', r.stdout)
      assert.equal('', r.stderr)
      -- Neither the order of things nor the version is a difference.
      local plan = assert(json.decode(text))
      plan.version = 9
      plan.containers[1], plan.containers[3] = plan.containers[3], plan.containers[1]
      local list = plan.containers[2].instances
      list[1], list[2] = list[2], list[1]
      process.write_file(folder .. '/c.json', assert(json.encode(plan)))
      assert.equal(0, diff('a.json', 'c.json').code)
    end)
  end)

  it('prints what differs and ends with 1', function()
    scene(function(diff)
      local r = diff('a.json', 'b.json', '--color', 'never')
      assert.equal(1, r.code)
      assert.matches('Container 1 MODIFIED', r.stdout)
      assert.matches('Container 2 UNAFFECTED', r.stdout)
      assert.matches('\n6 kept, 0 moved, 5 started, 1 stopped\n$', r.stdout)
      r = diff('a.json', 'b.json', '-o', 'json')
      assert.equal(1, r.code)
      local document = assert(json.decode(r.stdout))
      assert.equal(6, document.kept)
      assert.equal(5, document.started)
      assert.equal(1, document.stopped)
      assert.equal(0, document.moved)
      assert.equal('MODIFIED', document.containers[1].state)
      assert.equal(1, #document.containers[1].removed)
      assert.is_false(document.same)
    end)
  end)

  it('sees a slot that changed', function()
    scene(function(diff, folder, text)
      local plan = assert(json.decode(text))
      plan.containers[1].supervisor, plan.containers[1].host, plan.containers[1].port = 's', 'h', 1
      process.write_file(folder .. '/c.json', assert(json.encode(plan)))
      assert.equal(1, diff('a.json', 'c.json').code)
    end)
  end)

  it('ends with 2 or more when there is nothing to compare', function()
    scene(function(diff, folder)
      process.write_file(folder .. '/half.json', '{"containers":[')
      process.write_file(folder .. '/other.json', '{"x":1}')
      process.write_file(folder .. '/bad.json', '{"topology":"t","containers":[{"id":1}]}')
      process.write_file(folder .. '/assignment.json',
        '{"topology":"t","scheduler":"balanced","workers":[]}')
      for _, case in ipairs {
        { 3, 'No such file', 'a.json', 'nope.json' },
        { 7, 'invalid JSON', 'a.json', 'half.json' },
        { 7, 'neither a plan', 'other.json', 'a.json' },
        { 7, 'bad%.json.*containers%[1%]%.cpu must', 'a.json', 'bad.json' },
        { 7, 'there is nothing to compare', 'a.json', 'assignment.json' },
        { 2, "missing argument 'new'", 'a.json' },
      } do
        local r = diff(unpack(case, 3))
        assert.equal(case[1], r.code, r.stderr)
        assert.equal('', r.stdout)
        assert.matches(case[2], r.stderr)
      end
    end)
  end)
end)
