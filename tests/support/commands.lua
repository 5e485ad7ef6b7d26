--- Commands around one topology, in the folder of the present test, on a state manager of its own.
--
--     local commands = require 'support.commands'
--     local folder, env = commands.open('counts')     -- before each; what starts later sees changes of `env`
--     commands.ok('submit', script)
--     commands.until_described(commands.all_run)
--     commands.close()                                -- after each, whatever happened

local assert = require 'luassert'
local eventually = require 'support.eventually'
local files = require 'support.files'
local json = require 'streamlua.json'
local posix = { signal = require 'posix.signal' }
local process = require 'support.process'
local processes = require 'support.processes'

local M = {}

local topology, folder, state, env, daemons

--- A new folder and state manager; commands are about the topology of this name. Options: `state`, the URL of
--- a state manager that is there; `env`, what is set besides.
---@param name string
---@param options table?
---@return string folder
---@return table env
function M.open(name, options)
  options = options or {}
  topology, folder = name, files.folder()
  state = options.state or 'localfs:' .. folder .. '/state'
  env = { STREAMLUA_STATE = state }
  for key, value in pairs(options.env or {}) do env[key] = value end
  daemons = {}
  return folder, env
end

--- Kills the daemons and the processes that are left, and removes the folder.
function M.close()
  for _, started in ipairs(daemons) do started:signal('KILL') end
  for _, item in ipairs(M.processes()) do posix.signal.kill(item.pid, posix.signal.SIGKILL) end
  for _, started in ipairs(daemons) do started:wait() end
  files.clean()
end

--- Starts a command, as process.start does.
---@param args string[]
---@param options table?
function M.start(args, options)
  options = options or {}
  options.env, options.cwd = env, folder
  return process.start(args, options)
end

--- Starts a command that runs until close; it also ends with the spec, when that is killed because it takes too
--- long.
function M.daemon(...)
  return M.keep(M.start({ '--pdeathsig', 'KILL', process.binary, ... }, { program = 'setpriv' }))
end

--- Has close end something that was started; returns it.
function M.keep(started)
  daemons[#daemons + 1] = started
  return started
end

--- Runs a command and gives {code=, stdout=, stderr=}.
function M.run(...) return M.start({ ... }):wait() end

--- Runs a command that must succeed.
function M.ok(...)
  local result = M.run(...)
  assert.equal(0, result.code, result.stdout .. result.stderr)
  return result
end

--- What a command that must succeed prints as JSON.
function M.document(...) return assert(json.decode(M.ok(...).stdout)) end

--- Processes of topologies on this state manager: {pid=, role=, text=}, those of one role only when it
--- is given.
---@param role string?
function M.processes(role) return processes.of(state, role) end

--- The process of a role, nil when there is none.
---@param role string
---@return integer? pid
function M.pid_of(role)
  local found = M.processes(role)[1]
  return found and found.pid
end

--- Asks fn again and again until it gives something; returns that. What is named does not become so: an error.
---@param what string
---@param fn fun(): any
function M.eventually(what, fn)
  local value = eventually(fn)
  if value then return value end
  error(what .. ' does not become so: ' .. M.run('describe', topology).stdout)
end

--- What describe says now; false when it can not say it.
function M.described()
  local result = M.run('describe', topology, '-o', 'json')
  return result.code == 0 and json.decode(result.stdout)
end

--- Describes the topology until it is as wanted, and returns that.
---@param wanted fun(described: table): any
function M.until_described(wanted)
  return M.eventually(topology, function()
    local described = M.described()
    return described and wanted(described) and described
  end)
end

--- It runs, and all its containers do.
function M.all_run(described)
  for _, container in ipairs(described.containers) do
    if container.state ~= 'RUNNING' then return false end
  end
  return described.state == 'RUNNING'
end

--- A field of all containers, by their ids.
function M.by_id(described, key)
  local list = {}
  for _, container in ipairs(described.containers) do list[container.id] = container[key] end
  return list
end

return M
