-- Keeps tasks that talk to each other on one node: the fewest edges between nodes, weighted by
-- measured rates when the request has them.
--
--   streamlua schedule topo.lua --cluster-file cluster.lua --scheduler traffic-aware
--
-- An edge is a pair of tasks, one of which reads the other's component. `rates` of the request is a
-- list of {from=, to=, rate=}: tuples a second between two components. Sizes of workers stay within
-- one. Tasks of one component are alike, so the cost depends only on how many tasks of each
-- component a node has; from a first filling those numbers are exchanged as long as it pays.

local toolkit = require 'streamlua.scheduling.toolkit'

local MAX_ROUNDS = 1000
local LEAST_GAIN = 1e-9
-- Up to this many bins all pairs are compared, beyond each bin with its next ones.
local MAX_BINS, NEAR = 24, 8

-- Traffic between one task of a and one task of b, by component; symmetric.
local function weights(state)
  local size, w = {}, {}
  for _, component in ipairs(state.request.components) do
    size[component.name] = #component.tasks
    w[component.name] = {}
  end
  for _, edge in ipairs(state.edges) do
    local per_pair = edge.rate / math.max(size[edge.from] * size[edge.to], 1)
    w[edge.from][edge.to] = (w[edge.from][edge.to] or 0) + per_pair
    if edge.from ~= edge.to then w[edge.to][edge.from] = (w[edge.to][edge.from] or 0) + per_pair end
  end
  return w
end

-- Traffic of one task of `component` with what `count` (tasks by component) has.
local function attraction(w, component, count)
  local sum = 0
  for other, weight in pairs(w[component]) do sum = sum + weight * (count[other] or 0) end
  return sum
end

-- How many nodes the components need that must run on different ones.
local function nodes_needed(state)
  local most = 1
  for _, component in ipairs(state.request.components) do
    if state.is_spread[component.name] then most = math.max(most, #component.tasks) end
  end
  return most
end

-- Workers to open go where most fit beside each other: few nodes mean few edges between nodes. First
-- as many nodes as are needed, then those that have workers already; the most free ports first.
local function open_workers(state)
  local needed, used = nodes_needed(state), 0
  for _, node in ipairs(state.nodes) do used = used + (node.workers > 0 and 1 or 0) end
  local function queue(wants_used)
    return toolkit.queue(state.nodes, function(node)
      return { (node.workers > 0) == wants_used and 0 or 1, -#node.free }
    end, function(node) return state:has_room(node) end)
  end
  local nodes = queue(used >= needed)
  while state.workers_to_open > 0 do
    local node = nodes:best()
    local is_new = node and node.workers == 0
    state:open(node)
    used = used + (is_new and 1 or 0)
    if is_new and used == needed then nodes = queue(true) end
  end
end

-- Bins {count= tasks by component, room=, tasks=, node=}: first nodes, then workers of a node.
local function fill(state, bins, tasks, w)
  local component, queue
  for _, task in ipairs(tasks) do
    if task.component ~= component then
      component = task.component
      queue = toolkit.queue(bins, function(bin)
        return { -attraction(w, task.component, bin.count), -bin.room }
      end, function(bin)
        return bin.room > 0 and state:may_put(bin.node, task.component)
          and not (state.is_spread[task.component] and bin.count[task.component])
      end)
    end
    local best = queue:best()
    if not best then
      error(("no node is left for another task of '%s'"):format(task.component), 0)
    end
    best.room = best.room - 1
    best.count[task.component] = (best.count[task.component] or 0) + 1
    best.list[task.component] = best.list[task.component] or {}
    table.insert(best.list[task.component], task)
  end
end

-- Traffic of one task of each of these components with a bin.
local function pulls(w, names, bin)
  local list = {}
  for i, name in ipairs(names) do list[i] = attraction(w, name, bin.count) end
  return list
end

local function exchange(x, y, a, b)
  local task_a, task_b = table.remove(x.list[a]), table.remove(y.list[b])
  x.count[a], y.count[b] = x.count[a] - 1, y.count[b] - 1
  x.count[b], y.count[a] = (x.count[b] or 0) + 1, (y.count[a] or 0) + 1
  x.list[b], y.list[a] = x.list[b] or {}, y.list[a] or {}
  table.insert(x.list[b], task_b)
  table.insert(y.list[a], task_a)
end

local function names_in(bin)
  local names = {}
  for name, list in pairs(bin.list) do
    if #list > 0 then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- The exchange between two bins that saves most, and more than `least`: a task of a in x for one of b
-- in y. Returns a, b and what it saves, or nil.
local function best_exchange(state, w, x, y, names_x, names_y, least)
  local best_a, best_b
  local a_here, a_there = pulls(w, names_x, x), pulls(w, names_x, y)
  local b_here, b_there = pulls(w, names_y, y), pulls(w, names_y, x)
  for i, a in ipairs(names_x) do
    local own = w[a]
    local own_a = own[a] or 0
    for k, b in ipairs(names_y) do
      if a ~= b and not state.is_spread[a] and not state.is_spread[b] then
        -- Neither is where the other was any more; and a task is no edge to itself.
        local saved = a_there[i] + b_there[k] - (a_here[i] + b_here[k]) - 2 * (own[b] or 0) + own_a
          + (w[b][b] or 0)
        if saved > least then best_a, best_b, least = a, b, saved end
      end
    end
  end
  return best_a, best_b, least
end

-- Exchanges the pair that saves most until none saves anything.
local function improve_all(state, bins, w)
  for _ = 1, MAX_ROUNDS do
    local best, best_gain = nil, LEAST_GAIN
    local names = {}
    for i, bin in ipairs(bins) do names[i] = names_in(bin) end
    for i, x in ipairs(bins) do
      for k = i + 1, #bins do
        local a, b, saved = best_exchange(state, w, x, bins[k], names[i], names[k], best_gain)
        if a then best, best_gain = { x, bins[k], a, b }, saved end
      end
    end
    if not best then return end
    exchange(unpack(best))
  end
end

-- The same for many bins: each with its next ones only, which are filled with what talks to it.
local function improve_near(state, bins, w)
  for i, x in ipairs(bins) do
    for k = i + 1, math.min(i + NEAR, #bins) do
      local y = bins[k]
      for _ = 1, NEAR do
        local a, b = best_exchange(state, w, x, y, names_in(x), names_in(y), LEAST_GAIN)
        if not a then break end
        exchange(x, y, a, b)
      end
    end
  end
end

local function improve(state, bins, w)
  local go = #bins <= MAX_BINS and improve_all or improve_near
  go(state, bins, w)
end

-- Components on different nodes first, then those that talk most.
local function in_order(state, w)
  local total, order = {}, {}
  for name, others in pairs(w) do
    total[name] = 0
    for _, weight in pairs(others) do total[name] = total[name] + weight end
  end
  for i, task in ipairs(state.tasks) do order[i] = task end
  table.sort(order, function(a, b)
    local left, right = total[a.component], total[b.component]
    local is_spread = state.is_spread[a.component]
    if is_spread ~= state.is_spread[b.component] then return is_spread == true end
    if left ~= right then return left > right end
    return a.id < b.id
  end)
  return order
end

local function tasks_of(bin)
  local list = {}
  for _, name in ipairs(names_in(bin)) do
    for _, task in ipairs(bin.list[name]) do list[#list + 1] = task end
  end
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

-- How many more tasks each worker gets so that sizes end within one where they can.
local function rooms(state)
  local placed = #state.tasks
  for _, worker in ipairs(state.workers) do placed = placed + #worker.tasks end
  local room, left = {}, #state.tasks
  local target = math.floor(placed / math.max(#state.workers, 1))
  for _, worker in ipairs(state.workers) do
    room[worker] = math.min(math.max(target - #worker.tasks, 0), left)
    left = left - room[worker]
  end
  local queue = toolkit.queue(state.workers, function(worker)
    return { #worker.tasks + room[worker] }
  end)
  while left > 0 do
    local least = queue:best()
    room[least], left = room[least] + 1, left - 1
  end
  return room
end

local function bin_of(node) return { node = node, count = {}, list = {}, room = 0 } end

return {
  name = 'traffic-aware',
  assign = function(request)
    local state = toolkit.start(request)
    local w = weights(state)
    open_workers(state)
    local room = rooms(state)
    local bins, bin_on = {}, {}
    for _, worker in ipairs(state.workers) do
      local bin = bin_on[worker.node]
      if not bin then
        bin = bin_of(worker.node)
        bin.workers = {}
        bin_on[worker.node] = bin
        bins[#bins + 1] = bin
      end
      bin.room = bin.room + room[worker]
      bin.workers[#bin.workers + 1] = worker
      for name, n in pairs(worker.count) do bin.count[name] = (bin.count[name] or 0) + n end
    end
    fill(state, bins, in_order(state, w), w)
    improve(state, bins, w)
    for _, bin in ipairs(bins) do
      local inner = {}
      for i, worker in ipairs(bin.workers) do
        inner[i] = bin_of(worker.node)
        inner[i].room, inner[i].worker = room[worker], worker
        for name, n in pairs(worker.count) do inner[i].count[name] = n end
      end
      fill(setmetatable({ is_spread = {}, may_put = function() return true end }, nil), inner,
        tasks_of(bin), w)
      improve({ is_spread = {} }, inner, w)
      for _, part in ipairs(inner) do
        for _, task in ipairs(tasks_of(part)) do state:put(part.worker, task) end
      end
    end
    return state:finish()
  end,
}
