-- Packing: which instances share a container, as plain documents.
--
--   local packing = require 'streamlua.packing'
--   local request = assert(packing.validate_request {
--     topology = 't', components = { { name = 's', kind = 'spout', parallelism = 4 } } })
--   local plan = assert(packing.pack(request, 'first_fit_decreasing'))
--   local grown = assert(packing.repack(plan, { s = 2 }, { request = request }))
--   print(packing.render_update(plan, grown))
--
-- Documents are those of docs/packing.md. A function that fails returns nil and an error of
-- streamlua.err: EINVAL (a faulty document, with `faults`), EUNSATISFIABLE (no such plan), EUSER (a
-- custom packer). Custom packers run in this process here and in a child with limits when
-- `options.limits` is given.

local custom = require 'streamlua.packing.custom'
local diff = require 'streamlua.packing.diff'
local document = require 'streamlua.packing.document'
local native = require 'streamlua.packing.native'
local render = require 'streamlua.packing.render'

local M = {}

--- The packer of a first plan and the one of changes, when nothing names another.
M.DEFAULT_PACKING = 'round_robin'
M.DEFAULT_REPACKING = 'first_fit_decreasing'

--- Names of the built-in packers.
M.names = native.names

--- Checks a request and returns its normal form; every fault is in the error.
---@param request any
---@return table? request
---@return streamlua.Error?
function M.validate_request(request) return document.request(request) end

--- Checks a plan and returns its normal form. Options as for streamlua.packing.document.plan.
---@param plan any
---@param options table?
---@return table? plan
---@return streamlua.Error?
function M.validate_plan(plan, options)
  options = options or {}
  options.what = options.what == nil and 'plan' or options.what
  return document.plan(plan, options)
end

--- A packer by name or path: a built-in {name=, builtin=true} or a custom one {name=, pack=,
--- repack=, path=}; `:reload()` reads the file again.
---@param text string
---@param options table? {folder= of the topology's script}
---@return table? packer
---@return streamlua.Error?
function M.packer(text, options)
  if native.packers[text] then
    return { name = text, builtin = true, reload = function(self) return self end }
  end
  local path, fault = custom.find(text, options)
  if not path then return nil, fault end
  local packer
  packer, fault = custom.load(path)
  if not packer then return nil, fault end
  function packer.reload(self)
    local again, why = custom.load(self.path)
    if not again then error(why, 2) end
    self.name, self.pack, self.repack = again.name, again.pack, again.repack
    return self
  end
  return packer
end

-- Runs a packer - a name, a path, or a table of M.packer - on a request in normal form.
local function run(request, packer, options)
  options = options or {}
  if type(packer) == 'string' then
    if native.packers[packer] then return native.pack(request, packer) end
    if options.limits then
      local path, fault = custom.find(packer, options)
      if not path then return nil, fault end
      return custom.run(path, request, options.limits)
    end
    local fault
    packer, fault = M.packer(packer, options)
    if not packer then return nil, fault end
  end
  if packer.builtin then return native.pack(request, packer.name) end
  if options.limits and packer.path then
    return custom.run(packer.path, request, options.limits)
  end
  return custom.call(packer, request)
end

--- Packs or repacks a request, by whether it has a current plan. The packer is a name, a path or a
--- packer of `M.packer`; without one the config's, else the default.
---@param request table document
---@param packer string|table|nil
---@param options table? {limits = {seconds=, memory=}, folder=}
---@return table? plan
---@return table|streamlua.Error|nil warnings of a built-in packer, or the error
function M.plan(request, packer, options)
  local normal, fault = document.request(request)
  if not normal then return nil, fault end
  return run(normal, packer or M.default_packer(normal), options)
end

--- The packer that a request's config names, else the default.
---@param request table normal form
---@return string
function M.default_packer(request)
  if request.current then return request.config.repacking or M.DEFAULT_REPACKING end
  return request.config.packing or M.DEFAULT_PACKING
end

--- A first plan. The request's current plan, if it has one, is left out.
---@param request table document
---@param packer string|table|nil
---@param options table? as for M.plan
---@return table? plan
---@return table|streamlua.Error|nil
function M.pack(request, packer, options)
  local fresh = {}
  for key, value in pairs(request) do fresh[key] = value end
  fresh.current, fresh.changes = nil, nil
  return M.plan(fresh, packer, options)
end

-- A request that fits a plan when there is none: its components as they are, with what their first
-- instance has.
local function request_of_plan(plan)
  local request = { topology = plan.topology, config = {}, components = {} }
  local by_name = {}
  local instances = {}
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do instances[#instances + 1] = instance end
  end
  table.sort(instances, function(a, b) return a.task < b.task end)
  for _, instance in ipairs(instances) do
    local component = by_name[instance.component]
    if not component then
      component = { name = instance.component, kind = instance.component:find('^__') and 'system'
        or 'bolt', parallelism = 0, cpu = instance.cpu, ram = instance.ram, disk = instance.disk }
      by_name[component.name] = component
      request.components[#request.components + 1] = component
    end
    component.parallelism = component.parallelism + 1
  end
  return request
end

--- Changes a plan. `changes` are signed by component; options: `request` the plan was made from
--- (without it, components are taken as the plan shows them), `repacker`, `containers`, `limits`,
--- `folder`.
---@param plan table document
---@param changes table<string, integer>?
---@param options table?
---@return table? plan
---@return table|streamlua.Error|nil
function M.repack(plan, changes, options)
  options = options or {}
  local current, fault = document.plan(plan, { what = 'plan' })
  if not current then return nil, fault end
  local request = {}
  for key, value in pairs(options.request or request_of_plan(current)) do request[key] = value end
  request.current, request.changes, request.containers = current, changes, options.containers
  return M.plan(request, options.repacker, options)
end

--- How one plan becomes another: {containers, instances, kept, moved, started, stopped}.
---@param old table document
---@param new table document
---@return table? delta
---@return streamlua.Error?
function M.delta(old, new)
  local before, after, fault
  before, fault = document.plan(old, { what = 'old plan' })
  if not before then return nil, fault end
  after, fault = document.plan(new, { what = 'new plan' })
  if not after then return nil, fault end
  return native.delta(before, after)
end

--- The dry-run document of a change (docs/packing.md), without `groups_moved`.
---@param old table plan
---@param new table plan
---@param changes table<string, integer>
---@return table? document
---@return streamlua.Error?
function M.update_document(old, new, changes)
  local delta, fault = M.delta(old, new)
  if not delta then return nil, fault end
  local containers = {}
  for k, entry in ipairs(delta.containers) do
    containers[k] = { id = entry.id, state = entry.state, added = entry.added,
      removed = entry.removed }
  end
  return {
    topology = new.topology, repacking = new.packing, from_version = old.version, old = old,
    new = new, changes = changes or {}, containers = containers, kept = delta.kept,
    moved = delta.moved, started = delta.started, stopped = delta.stopped,
  }
end

M.request_from_topology = require('streamlua.packing.topology').request
M.diff = diff.diff
M.render = render.plan
M.render_update = render.update
M.to_json = render.json

return M
