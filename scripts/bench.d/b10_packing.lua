-- B10, packing: every packer on 10^3 to 10^6 instances, first plan and a change of 1 %.
--
-- The request has 20 components of different sizes. Times are those of the core on its arrays; `lua`
-- is the same call from documents to documents. The limit beside a time is a sort of that many
-- numbers. `bins` is the number of containers over the least that the sum of the needs allows,
-- `growth` the exponent e of time ~ n^e from 10^4 on. `distinct` has as many components as instances,
-- with needs that fill one dimension of a container and leave room in others.

local abi = require 'streamlua.abi'
local document = require 'streamlua.packing.document'
local native = require 'streamlua.packing.native'

local C, ffi = abi.C, abi.ffi

local COMPONENTS = 20
local MAX_INSTANCES = 20
local SHORT = { round_robin = 'rr', first_fit_decreasing = 'ffd', resource_compliant_rr = 'rcrr' }
local TARGETS = { pack = 0.150, repack = 0.050 }

local function request_of(n, packer)
  local components = {}
  for i = 1, COMPONENTS do
    components[i] = { name = 'c' .. i, kind = i <= 4 and 'spout' or 'bolt',
      parallelism = n / COMPONENTS, cpu = 0.5 + i % 5 * 0.5, ram = (i % 7 + 1) * 2 ^ 28 }
  end
  -- Round robin has no capacity of its own: it is asked for eight instances a container.
  local config = { container_max_instances = MAX_INSTANCES,
    containers = packer == 'round_robin' and n / 8 or 1 }
  return assert(document.request { topology = 't', config = config, components = components })
end

-- The same request with the plan it gave and 1 % of the instances changed, half up and half down.
local function change_of(request, plan)
  local change = {}
  for key, value in pairs(request) do change[key] = value end
  change.current, change.changes = plan, {}
  for i, component in ipairs(request.components) do
    local step = math.max(1, math.floor(component.parallelism / 100))
    change.changes[component.name] = i % 2 == 0 and step or -step
  end
  return change
end

-- Least containers by the sum of the needs: capacity 20 of each, 2 of it padding.
local function least_containers(request)
  local cpu, ram, count = 0, 0, 0
  for _, component in ipairs(request.components) do
    cpu = cpu + component.cpu * component.parallelism
    ram = ram + component.ram * component.parallelism
    count = count + component.parallelism
  end
  local room = MAX_INSTANCES * 0.9
  return math.ceil(math.max(cpu / room, ram / (room * 2 ^ 30), count / room))
end

local function core_seconds(bench, prepared, packer)
  local out = ffi.new('struct sl_packing_plan *[1]')
  local before = bench:now()
  local rc = C.sl_abi_packing_pack(native.packers[packer], prepared.struct, out)
  local seconds = bench:now() - before
  assert(rc == 0, ffi.string(C.sl_error_message()))
  local containers = out[0].container_count
  C.sl_abi_packing_plan_free(out[0])
  return seconds, containers
end

-- A merge sort of n random numbers, which the JIT compiles to about what a C library needs.
local function sort_seconds(bench, n)
  local a, b = ffi.new('double[?]', n), ffi.new('double[?]', n)
  local state = 1
  for i = 0, n - 1 do
    state = state * 16807 % 2147483647
    a[i] = state
  end
  local before = bench:now()
  local width = 1
  while width < n do
    for low = 0, n - 1, 2 * width do
      local i, middle = low, math.min(low + width, n)
      local j, high = middle, math.min(low + 2 * width, n)
      for k = low, high - 1 do
        if i < middle and (j >= high or a[i] <= a[j]) then
          b[k], i = a[i], i + 1
        else
          b[k], j = a[j], j + 1
        end
      end
    end
    a, b = b, a
    width = width * 2
  end
  return bench:now() - before
end

local function lua_seconds(bench, rounds, request, packer)
  return bench:least(rounds, function()
    collectgarbage()
    local before = bench:now()
    assert(native.pack(request, packer))
    return bench:now() - before
  end)
end

local function measure(bench, packer, n, limit, step, request)
  local rounds = n >= 1e6 and 2 or 5
  local variant = ('%s-%s-1e%d'):format(SHORT[packer], step, math.floor(math.log10(n) + 0.5))
  local name = ('%s %s, n = %d'):format(packer, step, n)
  local prepared = native.prepare(request)
  collectgarbage()
  local peak = bench.peak()
  local seconds, containers = core_seconds(bench, prepared, packer)
  local megabytes = peak()
  seconds = bench:least(rounds, function()
    return math.min(seconds, (core_seconds(bench, prepared, packer)))
  end)
  local target = packer == 'first_fit_decreasing' and n == 1e5 and TARGETS[step] or nil
  bench:figure(variant, name .. ', core', seconds, 's', { limit = limit, target = target,
    better = 'less' })
  bench:figure(variant, name .. ', lua', lua_seconds(bench, rounds, request, packer), 's',
    { limit = limit })
  bench:figure(variant, name, n / seconds, 'inst/s')
  bench:figure(variant, name .. ', peak', megabytes, 'MB')
  return seconds, containers
end

-- Components of one instance each: much CPU and RAM, little of one, or of neither.
local function distinct_request(n)
  local components, state = {}, 1
  for i = 1, n do
    state = state * 16807 % 2147483647
    local part, kind = state / 2147483647, i % 10
    local cpu = kind < 5 and 2.5 or kind < 7 and 16 or 3
    local ram = kind < 7 and 6 or 1
    components[i] = { name = 'c' .. i, kind = 'bolt', parallelism = 1, cpu = cpu + part,
      ram = math.floor((ram + part / 4) * 2 ^ 30), disk = 0 }
  end
  return assert(document.request { topology = 't', components = components, config = {
    container_max_instances = 20, container_cpu = 20, container_ram = 20 * 2 ^ 30 } })
end

local function measure_distinct(bench, packer)
  local times = {}
  for power = 3, 5 do
    local prepared = native.prepare(distinct_request(10 ^ power))
    collectgarbage()
    times[power] = bench:least(2, function() return (core_seconds(bench, prepared, packer)) end)
    bench:figure(('%s-distinct-1e%d'):format(SHORT[packer], power),
      ('%s distinct, n = %d, core'):format(packer, 10 ^ power), times[power], 's')
  end
  bench:figure(SHORT[packer] .. '-distinct', packer .. ' distinct growth',
    math.log10(times[5] / times[4]), 'e')
end

local function exponent(times)
  local first, last
  for n = 4, 6 do
    if times[n] then
      first = first or n
      last = n
    end
  end
  if not first or first == last then return nil end
  return math.log10(times[last] / times[first]) / (last - first)
end

return {
  id = 'B10',
  name = 'packing',
  run = function(bench)
    local last = bench.quick and 5 or 6
    local limits = {}
    for power = 3, last do
      limits[power] = bench:least(3, function() return sort_seconds(bench, 10 ^ power) end)
    end
    for _, packer in ipairs(native.names) do
      local pack_times, repack_times = {}, {}
      for power = 3, last do
        local n = 10 ^ power
        local request = request_of(n, packer)
        local containers
        pack_times[power], containers = measure(bench, packer, n, limits[power], 'pack', request)
        if packer ~= 'round_robin' then
          bench:figure(('%s-1e%d'):format(SHORT[packer], power), packer .. ' bins',
            containers / least_containers(request), 'x least')
        end
        local change = change_of(request, assert(native.pack(request, packer)))
        repack_times[power] = measure(bench, packer, n, limits[power], 'repack', change)
      end
      if packer ~= 'round_robin' then measure_distinct(bench, packer) end
      bench:figure(SHORT[packer] .. '-pack', packer .. ' pack growth', exponent(pack_times), 'e')
      bench:figure(SHORT[packer] .. '-repack', packer .. ' repack growth', exponent(repack_times),
        'e')
    end
  end,
}
