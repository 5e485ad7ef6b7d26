--- Counters, gauges and histograms of a task, by name.
--
--     local metrics = require('streamlua.runtime.metrics').new()
--     metrics:counter('seen'):inc(2)
--     assert(metrics:counter('seen'):value() == 2)

local abi = require 'streamlua.abi'

local json = require 'streamlua.json'

local C, ffi = abi.C, abi.ffi
local error, tonumber, type = error, tonumber, type

local M = {}

-- What user code gives as a number, as one.
local function number_of(x, what)
  if type(x) == 'number' then return x end
  local number = type(x) == 'cdata' and tonumber(x)
  if not number then error(('%s: expected a number, got %s'):format(what, type(x)), 3) end
  return number
end

---@class streamlua.Counter
local Counter = {}
Counter.__index = Counter

--- Adds n (default 1).
---@param n? number
function Counter:inc(n)
  self._value = self._value + (n == nil and 1 or number_of(n, 'counter:inc'))
end

--- What it counted so far.
---@return number
function Counter:value() return self._value end

---@class streamlua.Gauge
local Gauge = {}
Gauge.__index = Gauge

--- Sets it to a number.
---@param x number
function Gauge:set(x) self._value = number_of(x, 'gauge:set') end

--- What it was set to last; 0 before.
---@return number
function Gauge:value() return self._value end

---@class streamlua.Histogram
local Histogram = {}
Histogram.__index = Histogram

--- Counts a number; it is kept with three decimals and an error of 1/64.
---@param x number
function Histogram:record(x)
  C.sl_abi_histogram_record(self._pointer, number_of(x, 'histogram:record') * 1000)
end

--- The value below which a share q (0..1) lies; nil without any.
---@param q number
---@return number?
function Histogram:quantile(q)
  q = number_of(q, 'histogram:quantile')
  if self:count() == 0 then return nil end
  return C.sl_abi_histogram_quantile(self._pointer, q) / 1000
end

--- The mean of all numbers; 0 without any.
---@return number
function Histogram:mean() return C.sl_abi_histogram_mean(self._pointer) / 1000 end

--- How many numbers it counted.
---@return integer
function Histogram:count() return C.sl_abi_histogram_count(self._pointer) end

local Metrics = {}
Metrics.__index = Metrics

local function named(self, kind, name, make)
  if type(name) ~= 'string' then
    error(('%s: its name must be a string, got %s'):format(kind, type(name)), 3)
  end
  local items = self._items
  local found = items[name]
  if not found then
    found = make()
    found.kind = kind
    items[name] = found
    self._names[#self._names + 1] = name
  elseif found.kind ~= kind then
    error(("%s: '%s' is a %s already"):format(kind, name, found.kind), 3)
  end
  return found
end

--- The counter of this name, made when it is asked for first.
---@param name string
---@return streamlua.Counter
function Metrics:counter(name)
  return named(self, 'counter', name, function() return setmetatable({ _value = 0 }, Counter) end)
end

--- The gauge of this name, likewise.
---@param name string
---@return streamlua.Gauge
function Metrics:gauge(name)
  return named(self, 'gauge', name, function() return setmetatable({ _value = 0 }, Gauge) end)
end

--- The histogram of this name, likewise.
---@param name string
---@return streamlua.Histogram
function Metrics:histogram(name)
  return named(self, 'histogram', name, function()
    local pointer = ffi.gc(C.sl_abi_histogram_new(), C.sl_abi_histogram_free)
    return setmetatable({ _pointer = pointer }, Histogram)
  end)
end

-- A number as documents can hold it: they know neither infinity nor NaN.
local function finite(x) return x - x == 0 and x or json.null end

--- All of them as data: { name = number or {count, mean, p50, p99} }, empty when there are none. What
--- is no finite number is null.
function Metrics:totable()
  local out = {}
  for _, name in ipairs(self._names) do
    local item = self._items[name]
    if item.kind == 'histogram' then
      out[name] = { count = item:count(), mean = item:mean(), p50 = item:quantile(0.5),
        p99 = item:quantile(0.99) }
    else
      out[name] = finite(item:value())
    end
  end
  return out
end

--- A task's metrics: none yet.
---@return table metrics
function M.new() return setmetatable({ _items = {}, _names = {} }, Metrics) end

return M
