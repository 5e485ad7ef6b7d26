-- B15: the state manager on a directory and on a ZooKeeper server of its own, each beside what lies
-- below it in the same run: appending and synchronising records, and the bare client library.

local program = 'build/tests/bench/bench_state'

local FIGURES = { 'set_1', 'set_64', 'get_1', 'get_64' }

local function rates(ms, what)
  local pipe = assert(io.popen(('exec %s %d %s 2>&1'):format(program, ms, what)))
  local out, text = {}, {}
  for line in pipe:lines() do
    local name, value = line:match('^(%S+) ([%d.]+)$')
    if name then out[name] = tonumber(value) else text[#text + 1] = line end
  end
  pipe:close()
  if not next(out) then return nil, table.concat(text, '\n') end
  return out
end

return {
  id = 'B15',
  name = 'state manager',
  run = function(bench)
    for _, what in ipairs { 'localfs', 'zookeeper' } do
      local out, why = rates(bench.quick and 150 or 2000, what)
      if not out and why ~= '' then error(why, 0) end
      for _, name in ipairs(out and FIGURES or {}) do
        bench:report { variant = what .. '_' .. name, value = out[name], unit = 'operations/s',
          limit = out['raw_' .. name] }
      end
    end
  end,
}
