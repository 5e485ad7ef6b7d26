--- A running cluster at the prompt: what `connect` returns. It only looks.

local conf = require 'streamlua.conf'
local documents = require 'streamlua.cluster.documents'
local running = require 'streamlua.cli.running'

local M = {}

---@class streamlua.repl.Live
---@field cluster string its name
local Live = {}
Live.__index = Live

function Live:__tostring() return ("cluster '%s'"):format(self.cluster) end

-- The context of a cluster, which is not for printing.
local context_by_live = setmetatable({}, { __mode = 'k' })

-- The session's context with the settings of another cluster.
local function context_of(session_context, cluster)
  if cluster == nil then return session_context end
  local globals, options = {}, {}
  for key, value in pairs(session_context.conf_options) do options[key] = value end
  for key, value in pairs(options.globals or {}) do globals[key] = value end
  globals.cluster = { value = cluster, origin = 'flag', name = 'connect' }
  options.globals = globals
  return setmetatable({ settings = conf.load(options).values }, { __index = session_context })
end

local function read(self, fn)
  local context = context_by_live[self]
  return running.with_client(context, function(client) return fn(client, context) end,
    { reader = true })
end

local function loaded(context, client, name)
  if type(name) ~= 'string' then
    error('expected the name of a topology, got ' .. type(name), 0)
  end
  local topology = running.check(context, name, client:load(name))
  if not (topology.plan and topology.execution) then
    context:fail('failed', running.label(name), 'what is stored of it is not whole')
  end
  return topology
end

--- The running topologies: {name=, state=, plan_version=, containers=, tasks=, uptime_s=} each.
---@return table[]
function Live:list()
  return read(self, function(client, context) return context:check(documents.list(client)) end)
end

--- A running topology: the document of `streamlua describe`.
---@param name string
---@return table
function Live:describe(name)
  return read(self, function(client, context)
    local topology = loaded(context, client, name)
    return documents.describe(topology, (client:status(name)))
  end)
end

--- The plan in force of a running topology.
---@param name string
---@return table
function Live:plan(name)
  return read(self, function(client, context) return loaded(context, client, name).plan end)
end

--- The plans in force of all running topologies, by name.
---@return table<string, table>
function Live:plans()
  return read(self, function(client, context)
    local plans = {}
    for _, name in ipairs(context:check(client:names())) do
      local topology = client:load(name)
      plans[name] = topology and topology.plan
    end
    return plans
  end)
end

--- Looks for a cluster; raises when it can not be reached.
---@param session_context table
---@param cluster string? its name; nil is that of the session
---@return streamlua.repl.Live
function M.connect(session_context, cluster)
  local context = context_of(session_context, cluster)
  local live = setmetatable({ cluster = context.settings.cluster }, Live)
  context_by_live[live] = context
  live:list()
  return live
end

return M
