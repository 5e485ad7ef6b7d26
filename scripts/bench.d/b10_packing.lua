-- B10, packing: every packer on 10^3 to 10^6 instances, first plan and a change of 1 %.
--
-- The request has 20 components of different sizes. Times are those of the core on its arrays; `lua`
-- is the same call from documents to documents. The limit beside a time is a sort of that many
-- numbers. `bins` is the number of containers over the least that the sum of the needs allows,
-- `growth` the exponent e of time ~ n^e from 10^4 on.

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

-- Highest resident set of this process since the last call, above what it was then, in MB.
local function peak_since_start()
  local function field(name)
    local file = assert(io.open('/proc/self/status', 'r'))
    local text = file:read('*a')
    file:close()
    return tonumber(text:match(name .. ':%s*(%d+)')) / 1024
  end
  local file = io.open('/proc/self/clear_refs', 'w')
  if file then
    file:write('5')
    file:close()
  end
  local before = field('VmRSS')
  return function() return math.max(0, field('VmHWM') - before) end
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

local function figure(bench, variant, name, value, unit, more)
  local line = more or {}
  line.variant, line.name, line.value, line.unit = variant, name, value, unit
  bench:report(line)
end

local function measure(bench, packer, n, limit, step, request)
  local rounds = n >= 1e6 and 2 or 5
  local variant = ('%s-%s-1e%d'):format(SHORT[packer], step, math.floor(math.log10(n) + 0.5))
  local name = ('%s %s, n = %d'):format(packer, step, n)
  local prepared = native.prepare(request)
  collectgarbage()
  local peak = peak_since_start()
  local seconds, containers = core_seconds(bench, prepared, packer)
  local megabytes = peak()
  seconds = bench:least(rounds, function()
    return math.min(seconds, (core_seconds(bench, prepared, packer)))
  end)
  local target = packer == 'first_fit_decreasing' and n == 1e5 and TARGETS[step] or nil
  figure(bench, variant, name .. ', core', seconds, 's', { limit = limit, target = target,
    better = 'less' })
  figure(bench, variant, name .. ', lua', lua_seconds(bench, rounds, request, packer), 's',
    { limit = limit })
  figure(bench, variant, name, n / seconds, 'inst/s')
  figure(bench, variant, name .. ', peak', megabytes, 'MB')
  return seconds, containers
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
          figure(bench, ('%s-1e%d'):format(SHORT[packer], power), packer .. ' bins',
            containers / least_containers(request), 'x least')
        end
        local change = change_of(request, assert(native.pack(request, packer)))
        repack_times[power] = measure(bench, packer, n, limits[power], 'repack', change)
      end
      figure(bench, SHORT[packer] .. '-pack', packer .. ' pack growth', exponent(pack_times), 'e')
      figure(bench, SHORT[packer] .. '-repack', packer .. ' repack growth', exponent(repack_times),
        'e')
    end
  end,
}
