-- C1, control plane: calls and one-way messages over loopback beside raw libuv TCP of the same run,
-- slot requests through pool and slot manager in one process, registrations of supervisors, heartbeats.
--
-- The work is done by build/tests/bench/bench_control (tests/bench/bench_control.c). Raw libuv echoes
-- payloads of the same size with as many under way, in one of three ways: `each` message is written
-- alone, by a system call of its own; `framed` writes, reads and checks a frame a message, copies its
-- payload, and gathers what a turn sends into one write, as rpc does; `gathered` does nothing for a
-- message but to count it. What rpc does on top of `framed`: envelope, endpoint, token, request id,
-- deadline and callback of every call. Registrations and heartbeats have both sides in one process and
-- are an upper bound therefore.

local PROGRAM = 'build/tests/bench/bench_control'

-- Figures of one run of the program; `names` are its parts.
local function measure(quick, names)
  local pipe = assert(io.popen(('%s %s %s 2>&1'):format(PROGRAM, quick and '--quick' or '', names)))
  local figures, rest = {}, {}
  for line in pipe:lines() do
    local name, value = line:match('^([%w_]+) ([%d.]+)$')
    if name then
      figures[name] = tonumber(value)
    else
      rest[#rest + 1] = line
    end
  end
  pipe:close()
  assert(next(figures), PROGRAM .. ': ' .. table.concat(rest, '\n'))
  return figures
end

-- The best of several rounds, of the limits too: what neighbours take from one round is not counted.
local function best_of(rounds, quick, names)
  local best = {}
  for _ = 1, rounds do
    for name, value in pairs(measure(quick, names)) do
      best[name] = math.max(best[name] or 0, value)
    end
  end
  return best
end

local function run(bench)
  local f = best_of(bench.quick and 1 or 5, bench.quick, 'calls one_way round_trips slots')
  for name, value in pairs(measure(bench.quick, 'registrations')) do f[name] = value end
  local calls = 'rpc calls, 512 under way'
  bench:report { variant = 'calls/each', name = calls, value = f.rpc_messages, unit = '/s',
    limit = f.raw_each_messages, target = 0.6 * f.raw_each_messages }
  bench:report { variant = 'calls/framed', name = calls, value = f.rpc_messages, unit = '/s',
    limit = f.raw_framed_messages, target = 0.6 * f.raw_framed_messages }
  bench:report { variant = 'calls/gathered', name = calls, value = f.rpc_messages, unit = '/s',
    limit = f.raw_gathered_messages }
  bench:report { variant = 'one way/framed', name = 'rpc messages without an answer',
    value = f.rpc_one_way, unit = '/s', limit = f.raw_framed_one_way,
    target = 0.6 * f.raw_framed_one_way }
  bench:report { variant = 'round trips/framed', name = 'rpc calls, one under way',
    value = f.rpc_round_trips, unit = '/s', limit = f.raw_round_trips,
    target = 0.6 * f.raw_round_trips }
  bench:report { variant = 'slots', name = 'slot requests, pool and manager',
    value = f.slot_requests, unit = '/s', target = 50000 }
  bench:report { variant = 'registration', name = f.registrations .. ' supervisors register',
    value = f.registration_seconds, unit = 's', target = f.registrations == 1000 and 2 or nil,
    better = 'less' }
  bench:report { variant = 'heartbeats', name = '10,000 heartbeats at 10 s, of one core, counted up',
    value = f.heartbeat_cpu_seconds * 10000 / 10 * 100, unit = '%', target = 20, better = 'less' }
end

return { id = 'C1', name = 'control plane', run = run }
