-- The XOR tracker against a naive one: random topologies whose bolts emit, anchor, ack, fail and
-- forget at random. The naive tracker keeps, for each root, the set of its tuples that are not acked.

local streamlua = require 'streamlua'
local ways = require 'support.ways'

-- A generator of its own for every case, so that a failing one can be run again.
local function generator(seed)
  local state = seed * 2654435761 % 4294967296
  return function(n)
    state = (state * 1664525 + 1013904223) % 4294967296
    return math.floor(state / 65536) % n
  end
end

-- The naive tracker: open[id] = number of tuples of the root that are not acked.
local Oracle = {}
Oracle.__index = Oracle

local function new_oracle() return setmetatable({ open = {}, failed = {}, last = 0 }, Oracle) end

-- A new tuple that hangs on roots; returns its number.
function Oracle:add(roots)
  self.last = self.last + 1
  for root in pairs(roots) do self.open[root] = (self.open[root] or 0) + 1 end
  return self.last
end

function Oracle:ack(roots)
  for root in pairs(roots) do self.open[root] = self.open[root] - 1 end
end

function Oracle:fail(roots)
  for root in pairs(roots) do self.failed[root] = true end
end

-- What the spout should hear in the end.
function Oracle:verdict(ids)
  local acked, failed = {}, {}
  for _, id in ipairs(ids) do
    if self.failed[id] or (self.open[id] or 0) > 0 then
      failed[#failed + 1] = id
    else
      acked[#acked + 1] = id
    end
  end
  return acked, failed
end

local function union(first, second)
  local out = {}
  for root in pairs(first) do out[root] = true end
  for root in pairs(second) do out[root] = true end
  return out
end

-- Tuples carry the roots that they hang on, as a text of ids, so that the oracle knows them.
local function text_of(roots)
  local list = {}
  for root in pairs(roots) do list[#list + 1] = root end
  table.sort(list)
  return table.concat(list, ' ')
end

local function roots_of(text)
  local roots = {}
  for root in text:gmatch('%S+') do roots[root] = true end
  return roots
end

local LIMIT = 6

-- How many copies a reader's grouping makes of a tuple.
local groupings = {
  { 'shuffle', copies = function() return 1 end },
  { 'fields', copies = function() return 1 end },
  { 'all', copies = function(parallelism) return parallelism end },
  { 'global', copies = function() return 1 end },
  { 'partial_key', copies = function() return 1 end },
}

-- A bolt that settles each tuple in one of several ways, sometimes late. `random` decides.
local function bolt_with_manual_acks(case, name)
  local random, oracle = case.random, case.oracle
  local function emit(collector, anchors, depth)
    local roots, list = {}, {}
    for _, kept in ipairs(anchors) do
      roots = union(roots, kept.roots)
      list[#list + 1] = kept.tuple
    end
    for _ = 1, case.copies[name] do oracle:add(roots) end
    collector:emit({ text_of(roots), depth + 1, random(1000) }, { anchors = list })
  end
  local function settle(collector, kept)
    local what = random(case.fail_share)
    if what == 0 then
      oracle:fail(kept.roots)
      collector:fail(kept.tuple)
    elseif what == 1 then
      -- Forgotten: its roots time out.
      return
    else
      oracle:ack(kept.roots)
      collector:ack(kept.tuple)
    end
    -- Late settlements change nothing.
    if random(5) == 0 then collector:ack(kept.tuple) end
    if random(5) == 0 then collector:fail(kept.tuple) end
  end
  return streamlua.bolt {
    fields = { 'roots', 'depth', 'key' },
    manual_ack = true,
    execute = function(self, tuple, collector)
      self.kept = self.kept or {}
      local kept = { tuple = tuple, roots = roots_of(tuple.roots) }
      self.kept[#self.kept + 1] = kept
      for _ = 1, tuple.depth < LIMIT and random(3) or 0 do
        local anchors = {}
        for _ = 1, random(4) do anchors[#anchors + 1] = self.kept[random(#self.kept) + 1] end
        emit(collector, anchors, tuple.depth)
      end
      while #self.kept > random(6) do
        settle(collector, table.remove(self.kept, random(#self.kept) + 1))
      end
    end,
    finish = function(self, collector)
      -- Only the time-out can have ended their roots: this comes too late.
      for _, rest in ipairs(self.kept or {}) do collector:ack(rest.tuple) end
      self.kept = {}
    end,
  }
end

-- A bolt that acks automatically, and sometimes raises after it has emitted.
local function bolt_with_automatic_acks(case, name)
  local random, oracle = case.random, case.oracle
  return streamlua.bolt {
    fields = { 'roots', 'depth', 'key' },
    execute = function(_, tuple, collector)
      local roots = roots_of(tuple.roots)
      for _ = 1, tuple.depth < LIMIT and random(3) or 0 do
        local options
        local own = roots
        local kind = random(6)
        if kind == 0 then
          options, own = { anchors = {} }, {}
        elseif kind == 1 then
          options = { anchors = { tuple } }
        elseif kind == 2 then
          options = { anchors = { tuple, tuple } }
        end
        for _ = 1, case.copies[name] do oracle:add(own) end
        collector:emit({ text_of(own), tuple.depth + 1, random(1000) }, options)
      end
      if random(case.fail_share * 2) == 0 then
        oracle:fail(roots)
        error('at random')
      end
      oracle:ack(roots)
    end,
  }
end

-- Spouts s1.., bolts b1..; each bolt reads some of those before it, so there is no cycle.
local function build(case)
  local random = case.random
  local t = streamlua.topology('oracle', { message_timeout = '10s' })
  local sources = {}
  for i = 1, 1 + random(2) do
    local name = 's' .. i
    t:spout(name, streamlua.spout {
      fields = { 'roots', 'depth', 'key' }, next_tuple = function() return false end,
    })
    sources[#sources + 1] = name
    case.copies[name] = 0
    case.spouts[#case.spouts + 1] = name
  end
  for i = 1, 2 + random(4) do
    local name = 'b' .. i
    local parallelism = 1 + random(3)
    case.copies[name] = 0
    local make = random(2) == 0 and bolt_with_manual_acks or bolt_with_automatic_acks
    local declarer = t:bolt(name, make(case, name), { parallelism = parallelism })
    local first = random(#sources) + 1
    for k = 1, #sources do
      if k == first or random(3) == 0 then
        local grouping = groupings[random(#groupings) + 1]
        local kind = grouping[1]
        if kind == 'fields' or kind == 'partial_key' then
          declarer[kind](declarer, sources[k], { 'key' })
        else
          declarer[kind](declarer, sources[k])
        end
        case.copies[sources[k]] = case.copies[sources[k]] + grouping.copies(parallelism)
      end
    end
    sources[#sources + 1] = name
  end
  return t
end

ways.describe('the tracker of roots', function(way)
  it('agrees with a naive one on random topologies', function()
    local acked_count, failed_count = 0, 0
    for seed = 1, 25 do
      local random = generator(seed)
      local case = { random = random, oracle = new_oracle(), copies = {}, spouts = {},
        fail_share = ({ 8, 40, 1000 })[random(3) + 1] }
      local t = build(case)
      local mocks = {}
      local ids = {}
      for _, spout in ipairs(case.spouts) do
        mocks[spout], ids[spout] = {}, {}
        for i = 1, 40 do
          local id = spout .. '.' .. i
          ids[spout][i] = id
          mocks[spout][i] = { values = { id, 0, random(1000) }, id = id }
          for _ = 1, case.copies[spout] do case.oracle:add({ [id] = true }) end
        end
      end
      local cluster = way.run(t, { mock = mocks }):wait()
      -- What was forgotten fails in time; whoever finishes then settles what it still has.
      cluster:advance('16s')
      for _, spout in ipairs(case.spouts) do
        local acked, failed = case.oracle:verdict(ids[spout])
        assert.same(ways.sorted(acked), ways.sorted(cluster:acked(spout)), 'seed ' .. seed)
        assert.same(ways.sorted(failed), ways.sorted(cluster:failed(spout)), 'seed ' .. seed)
        assert.equal(0, cluster:stats()[spout].pending)
        acked_count, failed_count = acked_count + #acked, failed_count + #failed
      end
      way.clean()
    end
    -- Neither verdict is rare.
    assert.is_true(acked_count > 300 and failed_count > 300, acked_count .. ' ' .. failed_count)
  end)
end)
