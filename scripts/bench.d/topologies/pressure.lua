-- B13: a bolt that is far slower than its spout, and beside it a stream that has nothing to do with
-- it, on an executor of its own.
--
--     streamlua run pressure.lua --executors 2 --set mode=both --set seconds=1
--
-- `mode` is both, sibling (only the other stream) or idle (nothing is emitted). It prints the highest
-- resident memory of the process in KiB, and how many tuples of the sibling stream were executed.

local streamlua = require 'streamlua'
local ffi = require 'ffi'
local clock = require 'clock'

ffi.cdef 'int sl_bench_pause(void *none, unsigned long count, int ms) __asm__("poll");'

local t = streamlua.topology('pressure', { mode = 'both', seconds = 1 })
local mode, seconds = t.config.mode, t.config.seconds
local mono = clock.mono
local DONE = streamlua.DONE

local function source(is_on)
  return streamlua.spout {
    fields = { 'key', 'text' },
    open = function(self) self.i = 0 end,
    activate = function(self) self.finish_at = mono() + seconds end,
    next_tuple = function(self, collector)
      local i = self.i + 1
      self.i = i
      if i % 64 == 0 and mono() > self.finish_at then return DONE end
      if is_on then
        collector:emit({ i, 'a tuple with some text in it' })
      elseif mono() > self.finish_at then
        return DONE
      end
    end,
  }
end

-- A thousand tuples a second, while the sources emit; then it takes what is left without waiting.
local slow = streamlua.bolt {
  prepare = function(self) self.finish_at = mono() + seconds end,
  execute = function(self)
    if mono() < self.finish_at then ffi.C.sl_bench_pause(nil, 0, 1) end
  end,
}

local function highest_resident()
  for line in io.lines('/proc/self/status') do
    local kib = line:match('^VmHWM:%s*(%d+)')
    if kib then return tonumber(kib) end
  end
end

local sibling = streamlua.bolt {
  prepare = function(self) self.count = 0 end,
  execute = function(self) self.count = self.count + 1 end,
  finish = function(self)
    print('sibling', self.count)
    print('resident_kib', highest_resident())
  end,
}

t:spout('source', source(mode == 'both'))
t:spout('sibling-source', source(mode ~= 'idle'))
t:bolt('slow', slow):shuffle('source')
t:bolt('sibling', sibling):shuffle('sibling-source')
return t
