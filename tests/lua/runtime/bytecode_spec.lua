-- labels: short
local bytecode = require 'streamlua.runtime.bytecode'

local global = {}

describe('streamlua.runtime.bytecode', function()
  it('finds the loops in a function', function()
    assert.is_false(bytecode.has_loop(function(_, tuple, collector) collector:emit(tuple) end))
    assert.is_true(bytecode.has_loop(function() for _ = 1, 2 do global.x = 1 end end))
    assert.is_true(bytecode.has_loop(function(_, t) for _ in pairs(t) do global.x = 1 end end))
    assert.is_true(bytecode.has_loop(function(_, t) while t.x do t.x = t.y end end))
    assert.is_true(bytecode.has_loop(function(_, t) repeat t.x = t.y until t.x end))
    assert.is_false(bytecode.has_loop(print))
  end)

  it('finds loops that were compiled before', function()
    local function loop(n)
      local sum = 0
      for i = 1, n do sum = sum + i end
      return sum
    end
    loop(1000)
    loop(1000)
    assert.is_true(bytecode.has_loop(loop))
  end)

  it('knows functions that only read fields of their second argument', function()
    local readers = {
      function(_, tuple, collector) collector:emit({ tuple.word, tuple[1] }) end,
      function(_, tuple) for word in tuple.line:gmatch('%S+') do global.word = word end end,
      function(self, tuple) self.last = tuple.word end,
      function(_, tuple, collector, name) for _ = 1, 3 do collector:emit({ tuple[name] }) end end,
      function(_, tuple) if tuple.word == 'x' then return tuple.word end return 1, tuple.word end,
      function(self) return self end,
      function() return 1 end,
      function(_, tuple) return tuple.a .. tuple.b end,
      function(self, tuple) return self:get(tuple.word, tuple[2]) end,
    }
    for i, fn in ipairs(readers) do
      assert.is_true(bytecode.only_reads_second(fn), 'function ' .. i)
    end
  end)

  it('knows functions through which their second argument can be kept or changed', function()
    local keepers = {
      function(_, tuple, collector) collector:emit(tuple) end,
      function(self, tuple) self.last = tuple end,
      function(self, tuple) self[1] = tuple end,
      function(self, tuple) self[tuple] = true end,
      function(self, tuple) return self[tuple] end,
      function(_, tuple) return tuple end,
      function(self, tuple) return self, tuple end,
      function(_, tuple) return print(tuple) end,
      function(_, tuple) global = tuple end,
      function(_, tuple) return { tuple } end,
      function(_, tuple) return { inner = tuple } end,
      function(_, tuple) local other = tuple; return other.x end,
      function(_, tuple) return function() return tuple.word end end,
      function(_, tuple) tuple.word = 1 end,
      function(_, tuple, name) tuple[name] = 1 end,
      function(_, tuple) tuple[1] = 1 end,
      function(_, tuple) return tuple:word() end,
      function(_, tuple) for key in pairs(tuple) do global[key] = 1 end end,
      function(_, tuple) return tuple == global end,
      function(_, tuple) return tuple and 1 end,
      function(_, tuple) return #tuple end,
      function(_, tuple) return -tuple end,
      function(_, tuple) return tuple .. 'x' end,
      function(_, tuple) return 'x' .. tuple end,
      function(_, tuple) return tuple + 1 end,
      function(_, tuple) if global.x then tuple = {} end; return tuple.word end,
      function(_, tuple) if global.x then tuple = nil end; return tuple.word end,
      function(_, ...) return (...) end,
      function(...) return select(2, ...) end,
      print,
    }
    for i, fn in ipairs(keepers) do
      assert.is_false(bytecode.only_reads_second(fn), 'function ' .. i)
    end
  end)
end)
