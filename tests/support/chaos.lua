--- scripts/chaos in tests: kinds of harm that it knows, each done once, with its oracles.
--
--     local chaos = require 'support.chaos'
--     local missing = chaos.run({ '--zookeeper', '3' }, { 'kill a ZooKeeper member', 'stop the leading master' })
--     if missing then pending(missing) end
--     chaos.clean()                               -- after each test

local files = require 'support.files'
local posix = { signal = require 'posix.signal' }
local process = require 'support.process'
local processes = require 'support.processes'

local M = {}

--- Does this harm. Raises what is wrong; returns why some of it is impossible here, else nil.
---@param options string[] of scripts/chaos
---@param faults string[] their names
---@return string?
function M.run(options, faults)
  local words = { 'exec', 'scripts/lib/chaos.lua', '--seed', '1', '--faults', table.concat(faults, ',') }
  for _, word in ipairs(options) do words[#words + 1] = word end
  local result = process.run(words, { timeout = 320, env = { TMPDIR = files.folder() } })
  local reason = result.stderr:match('skipped: ([^\n]+)')
  local is_fine = result.code == 0
    and (reason or result.stderr:find(('%d rounds, [^\n]+: no violation'):format(#faults)))
  if not is_fine then error(result.stderr, 0) end
  return reason
end

--- Ends what a run that failed has left.
function M.clean()
  for _, item in ipairs(processes.of(files.folder())) do
    posix.signal.kill(item.pid, posix.signal.SIGKILL)
  end
  files.clean()
end

return M
