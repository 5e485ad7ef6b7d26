-- Analyses the access log of a web server: the most requested paths, and the sessions of each client.
--
--     streamlua run scripts/topologies/access_log.lua
--     streamlua run scripts/topologies/access_log.lua --set input=/var/log/nginx/access.log
--     streamlua run scripts/topologies/access_log.lua --set top=3 --set gap=10m
--
--                           ┌──fields(path)────> paths ────┐
--     lines ──global──> parse                              ├──global──> report
--                           ├──fields(client)──> sessions ─┤
--                           └──bad─────────────────────────┘
--
-- The input is in the common or combined format; without one, data/access.log beside this file is read.
-- A session is a run of requests of one client without a pause longer than `gap`. Requests reach their
-- session in the order of the log, because one task parses and a client always goes to the same task.

local streamlua = require 'streamlua'
local units = require 'streamlua.units'

local byte, find, sub, floor = string.byte, string.find, string.sub, math.floor

local t = streamlua.topology('access_log', {
  top = 5,
  gap = '30m',
})

local MONTHS = { Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8, Sep = 9,
  Oct = 10, Nov = 11, Dec = 12 }

-- Days from 1970-01-01 to a date; years are counted from March, so that the leap day comes last.
local function days(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 9
  else
    month = month - 3
  end
  return 365 * year + floor(year / 4) - floor(year / 100) + floor(year / 400)
    + floor((153 * month + 2) / 5) + day - 719469
end

-- The number whose digits are at `from` to `to`, nil when there is anything else. (The JIT compiles
-- tonumber only for texts that are numbers.)
local function number_at(text, from, to)
  local number = 0
  for i = from, to do
    local digit = (byte(text, i) or 0) - 48
    if digit < 0 or digit > 9 then return nil end
    number = number * 10 + digit
  end
  return number
end

-- '10/Oct/2023:13:55:36 +0200' to seconds since the epoch; nil when it is none.
local function parse_time(text)
  local day, month, year = number_at(text, 1, 2), MONTHS[sub(text, 4, 6)], number_at(text, 8, 11)
  local hour, minute, second = number_at(text, 13, 14), number_at(text, 16, 17),
    number_at(text, 19, 20)
  local zone_hour, zone_minute = number_at(text, 23, 24), number_at(text, 25, 26)
  if not (day and month and year and hour and minute and second and zone_hour and zone_minute) then
    return nil
  end
  local zone = zone_hour * 3600 + zone_minute * 60
  if sub(text, 22, 22) == '-' then zone = -zone end
  return days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone
end

-- Client, seconds and path of a line, or nil. Plain searches only: the JIT compiles them.
local function parse_line(line)
  local client_end = find(line, ' ', 1, true)
  local time_at = find(line, '[', 1, true)
  if not client_end or not time_at then return nil end
  local time = parse_time(sub(line, time_at + 1, time_at + 26))
  local request_at = find(line, '"', time_at, true)
  local method_end = request_at and find(line, ' ', request_at, true)
  local path_end = method_end and find(line, ' ', method_end + 1, true)
  if not time or not path_end then return nil end
  local query = find(line, '?', method_end, true)
  if query and query < path_end then path_end = query end
  return sub(line, 1, client_end - 1), time, sub(line, method_end + 1, path_end - 1)
end

local parse = streamlua.bolt {
  streams = { default = { 'client', 'time', 'path' }, bad = { 'line' } },
  execute = function(_, tuple, collector)
    local client, time, path = parse_line(tuple.line)
    if client then
      collector:emit({ client, time, path })
    else
      collector:emit({ tuple.line }, { stream = 'bad' })
    end
  end,
}

local function is_before(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[1] < b[1]
end

-- The first `top` of a list of { name, count }.
local function best(list, top)
  table.sort(list, is_before)
  for i = #list, top + 1, -1 do list[i] = nil end
  return list
end

-- A path is counted by one task alone, so the best of all are among the best of each task.
local paths = streamlua.bolt {
  fields = { 'path', 'requests' },
  prepare = function(self, context)
    self.counts, self.top = context:state('counts'), context.config.top
  end,
  execute = function(self, tuple) self.counts:add(tuple.path, 1) end,
  finish = function(self, collector)
    local list = {}
    for path, requests in self.counts:each() do list[#list + 1] = { path, requests } end
    for _, entry in ipairs(best(list, self.top)) do collector:emit(entry) end
  end,
}

local sessions = streamlua.bolt {
  fields = { 'client', 'first', 'last', 'requests' },
  prepare = function(self, context)
    self.first, self.last = context:state('first'), context:state('last')
    self.requests = context:state('requests')
    self.gap = assert(units.parse_duration(context.config.gap))
  end,
  close_session = function(self, client, last, collector)
    collector:emit({ client, self.first:get(client), last, self.requests:get(client) })
  end,
  execute = function(self, tuple, collector)
    local client, time = tuple.client, tuple.time
    local last = self.last:get(client)
    if last and time - last > self.gap then
      self:close_session(client, last, collector)
      last = nil
    end
    if not last then
      self.first:put(client, time)
      self.requests:put(client, 0)
    end
    self.last:put(client, time)
    self.requests:add(client, 1)
  end,
  finish = function(self, collector)
    for client, last in self.last:each() do self:close_session(client, last, collector) end
  end,
}

local report = streamlua.bolt {
  prepare = function(self, context)
    self.paths, self.clients, self.names, self.bad = {}, {}, {}, 0
    self.top = context.config.top
  end,
  execute = function(self, tuple)
    if streamlua.tuple.component(tuple) == 'paths' then
      self.paths[#self.paths + 1] = { tuple.path, tuple.requests }
    elseif streamlua.tuple.component(tuple) == 'sessions' then
      local client = self.clients[tuple.client]
      if not client then
        client = { sessions = 0, requests = 0, seconds = 0 }
        self.clients[tuple.client] = client
        self.names[#self.names + 1] = tuple.client
      end
      client.sessions = client.sessions + 1
      client.requests = client.requests + tuple.requests
      client.seconds = client.seconds + tuple.last - tuple.first
    else
      self.bad = self.bad + 1
    end
  end,
  finish = function(self)
    print('requests  path')
    for _, entry in ipairs(best(self.paths, self.top)) do
      print(('%8d  %s'):format(entry[2], entry[1]))
    end
    print('sessions  requests  seconds  client')
    table.sort(self.names)
    for _, name in ipairs(self.names) do
      local client = self.clients[name]
      print(('%8d  %8d  %7d  %s'):format(client.sessions, client.requests, client.seconds, name))
    end
    print(('lines that are no requests: %d'):format(self.bad))
  end,
}

t:spout('lines', streamlua.io.lines { path = t.config.input or streamlua.file('data/access.log') })
t:bolt('parse', parse):global('lines')
t:bolt('paths', paths, { parallelism = 2 }):fields('parse', { 'path' })
t:bolt('sessions', sessions, { parallelism = 2 }):fields('parse', { 'client' })
t:bolt('report', report):global('paths'):global('sessions'):global('parse', 'bad')
return t
