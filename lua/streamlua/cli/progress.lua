-- Progress on standard error: on a terminal a block of lines that is drawn again in place, else
-- plain lines at a slower pace. Never on standard output.
--
--   local p = progress.new({ file = io.stderr })
--   p:components({ { name = 'split', rate = 1.2e6, latency_ms = 0.4, queue = 12, failed = 0 } })
--   p:phase('[3/8] containers started', '1.10s  1/1 registered')
--   p:close()

local libc = require 'streamlua.connectors.libc'
local output = require 'streamlua.cli.output'

local M = {}

local Progress = {}
Progress.__index = Progress

--- Makes a progress display.
---@param options table? {file=io.stderr, terminal=bool (asked when nil), color=, quiet=,
---  clock=function returning seconds, interval_s= least time between two blocks}
function M.new(options)
  options = options or {}
  local file = options.file or io.stderr
  local terminal = options.terminal
  if terminal == nil then
    terminal = file == io.stderr and libc.is_terminal(2)
  end
  local self = {
    file = file,
    terminal = terminal,
    color = options.color and true or false,
    quiet = options.quiet and true or false,
    clock = options.clock or function() return libc.clock_s('mono') end,
    interval_s = options.interval_s or (terminal and 0.2 or 5),
    columns = options.columns or (terminal and libc.columns(2)) or 100,
    drawn = 0,
  }
  return setmetatable(self, Progress)
end

--- 1234567 -> "1.23M": three digits are enough to watch.
---@param number number?
---@return string
function M.short(number)
  if number == nil then
    return '-'
  end
  for _, unit in ipairs({ { 1e9, 'G' }, { 1e6, 'M' }, { 1e4, 'k' } }) do
    if math.abs(number) >= unit[1] then
      return ('%.3g%s'):format(number / (unit[2] == 'k' and 1e3 or unit[1]), unit[2])
    end
  end
  return number == math.floor(number) and ('%d'):format(number) or ('%.1f'):format(number)
end

local function latency_text(ms)
  return ms and (ms < 1 and ('%.3gms'):format(ms) or ('%.4gms'):format(ms)) or '-'
end

local function erase(self)
  if self.drawn > 0 then
    self.file:write(('\27[%dA\27[J'):format(self.drawn))
    self.drawn = 0
  end
end

-- A line longer than the terminal would wrap and break the count of lines to erase.
local function clip(text, columns)
  return output.width(text) > columns and text:sub(1, columns) or text
end

local function block_of(rows)
  local cells = {}
  for i, row in ipairs(rows) do
    cells[i] = { row.name, M.short(row.rate), latency_text(row.latency_ms), M.short(row.queue),
      M.short(row.failed or 0) }
  end
  local right = 'right'
  return output.table_text({ 'COMPONENT', { title = 'TUPLES/S', align = right },
    { title = 'LATENCY', align = right }, { title = 'QUEUE', align = right },
    { title = 'FAILED', align = right } }, cells)
end

local function line_of(row)
  return ('%s: %s tuples/s, latency %s, queue %s, failed %s'):format(row.name, M.short(row.rate),
    latency_text(row.latency_ms), M.short(row.queue), M.short(row.failed or 0))
end

--- Shows one row a component: {name=, rate= tuples/s, latency_ms=, queue=, failed=}. Calls that
--- come faster than the interval are dropped.
---@param rows table[]
---@param options table? {force=true}
---@return boolean shown
function Progress:components(rows, options)
  local now = self.clock()
  if self.quiet or (self.last and now - self.last < self.interval_s
      and not (options and options.force)) then
    return false
  end
  self.last = now
  if not self.terminal then
    for _, row in ipairs(rows) do
      self.file:write(line_of(row), '\n')
    end
  else
    erase(self)
    for line in block_of(rows):gmatch('[^\n]+') do
      line = clip(line, self.columns)
      self.file:write(output.paint(self.color and self.drawn == 0, 'bold', line), '\n')
      self.drawn = self.drawn + 1
    end
  end
  self.file:flush()
  return true
end

--- One line that stays: a phase that is over, or a note between blocks.
---@param text string
---@param detail string?
function Progress:phase(text, detail)
  if self.quiet then
    return
  end
  erase(self)
  self.file:write(detail and ('%-30s %s'):format(text, detail) or text, '\n')
  self.file:flush()
end

--- A line on a terminal that the next call replaces: what is going on right now.
---@param text string
function Progress:status(text)
  if self.quiet or not self.terminal then
    return
  end
  erase(self)
  self.file:write(clip(text, self.columns), '\n')
  self.drawn = 1
  self.file:flush()
end

--- Ends the display; the last block stays unless `erase` is asked for.
---@param options table? {erase=true}
function Progress:close(options)
  if options and options.erase and not self.quiet then
    erase(self)
    self.file:flush()
  end
  self.drawn = 0
end

return M
