--- The command line: `require 'streamlua.cli'.main(argv)` returns the exit code.

local M = {}

-- `exec SCRIPT [ARG ...]`: a Lua program with the library at hand.
local function exec(argv)
  local script = argv[2]
  local chunk, message = loadfile(script)
  if not chunk then
    io.stderr:write('error: ', message, '\n')
    return 1
  end
  _G.arg = { [0] = script, unpack(argv, 3) }
  local ok, failure = pcall(chunk, unpack(argv, 3))
  if not ok then
    io.stderr:write('error: ', tostring(failure), '\n')
    return 1
  end
  return 0
end

---@param argv table arguments as Lua's `arg`: [0] is the program
---@return integer exit code
function M.main(argv)
  if argv[1] == 'exec' and argv[2] then return exec(argv) end
  io.stderr:write('error: unknown command: ', tostring(argv[1]), '\n')
  return 2
end

return M
