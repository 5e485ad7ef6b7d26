-- Custom packers: Lua files that return { name=, pack=function(request) return plan end, repack= }.
--
--   local custom = require 'streamlua.packing.custom'
--   local path = assert(custom.find('spread', { folder = 'scripts' }))
--   local packer = assert(custom.load(path))
--   local plan, err = custom.call(packer, request)          -- in this process
--   local plan, err = custom.run(path, request, { seconds = 10 })   -- in a child, with limits
--
-- The code gets a copy of the request in normal form and may do with it what it likes. What it
-- returns is checked like any plan: nothing of a faulty result is used.

local custom = require 'streamlua.custom'
local document = require 'streamlua.packing.document'
local err = require 'streamlua.err'
local native = require 'streamlua.packing.native'

local M = {}

local PACKER = { what = 'packer', folder = 'packers', shape = '{ name=, pack=, repack= }',
  functions = { 'pack', 'repack' }, built_in = native.names,
  command = { 'plan', '--request', '-', '--packing' } }

function PACKER.fault(value)
  for _, key in ipairs(PACKER.functions) do
    if value[key] ~= nil and type(value[key]) ~= 'function' then
      return ('its %s is a %s, it must be a function'):format(key, type(value[key]))
    end
  end
  if not value.pack and not value.repack then return 'it has neither a pack nor a repack function' end
end

--- The file of a custom packer, by name or path (streamlua.custom.find).
function M.find(text, options) return custom.find(PACKER, text, options) end

--- Loads the file of a custom packer: {name=, pack=, repack=, path=} (streamlua.custom.load).
function M.load(path) return custom.load(PACKER, path) end

local function function_of(packer, request)
  local key = request.current and 'repack' or 'pack'
  if packer[key] then return packer[key] end
  return nil, err.new('EUSER', ("packer '%s' has no %s function"):format(packer.name, key))
end

--- Checks what a packer returned and fills in topology, version and packing where they are missing.
---@param result any
---@param request table normal form
---@param name string of the packer
---@return table? plan
---@return streamlua.Error?
function M.check(result, request, name)
  if result == nil then
    return nil, err.new('EUSER', ("packer '%s' returned nothing; it must return a plan"):format(name))
  end
  local plan, fault = document.plan(result, {
    request = request, wanted = document.wanted(request), what = ("plan of packer '%s'"):format(name),
    defaults = { topology = request.topology, packing = name,
      version = request.current and request.current.version + 1 or 1 },
  })
  if not plan then fault.code = 'EUSER' end
  return plan, fault
end

--- Runs a loaded packer in this process, without limits.
---@param packer table of `load`
---@param request table normal form
---@return table? plan
---@return streamlua.Error?
function M.call(packer, request)
  local fn, fault = function_of(packer, request)
  local result
  if fn then result, fault = custom.call(fn, request) end
  if fault then return nil, fault end
  return M.check(result, request, packer.name)
end

--- What the child of `run` does. Never returns.
---@param path string
---@param request table normal form
function M.serve(path, request)
  custom.serve(PACKER, path, function(packer) return function_of(packer, request) end, request)
end

--- Runs a packer's file in a child process with limits.
---@param path string
---@param request table normal form
---@param limits table? {seconds=, memory=}
---@return table? plan
---@return streamlua.Error?
function M.run(path, request, limits)
  local reply, fault = custom.run(PACKER, path, request, limits)
  if not reply then return nil, fault end
  return M.check(reply.result, request, reply.name)
end

return M
