-- Custom schedulers: Lua files that return { name=, assign=function(request) return assignment end }.
--
--   local custom = require 'streamlua.scheduling.custom'
--   local path = assert(custom.find('rack-spread'))
--   local scheduler = assert(custom.load(path))
--   local assignment, err = custom.call(scheduler, request)                -- in this process
--   local assignment, err = custom.run(path, request, { seconds = 10 })    -- in a child, with limits
--
-- The code gets a copy of the request in normal form and may do with it what it likes. What it
-- returns is checked as a built-in's result is: nothing of a faulty one is used.

local custom = require 'streamlua.custom'
local document = require 'streamlua.scheduling.document'
local err = require 'streamlua.err'
local native = require 'streamlua.scheduling.native'

local M = {}

local SCHEDULER = { what = 'scheduler', folder = 'schedulers', shape = '{ name=, assign= }',
  functions = { 'assign' }, built_in = native.names,
  command = { 'schedule', '--request', '-', '--scheduler' } }

function SCHEDULER.fault(value)
  if type(value.assign) == 'function' then return nil end
  return ('its assign is %s, it must be a function'):format(
    value.assign == nil and 'missing' or 'a ' .. type(value.assign))
end

--- The file of a custom scheduler, by name or path (streamlua.custom.find).
function M.find(text, options) return custom.find(SCHEDULER, text, options) end

--- Loads the file of a custom scheduler: {name=, assign=, path=} (streamlua.custom.load).
function M.load(path) return custom.load(SCHEDULER, path) end

--- Checks what a scheduler returned and fills in topology, scheduler and hosts where they are
--- missing.
---@param result any
---@param request table normal form
---@param name string of the scheduler
---@return table? assignment
---@return streamlua.Error?
function M.check(result, request, name)
  if result == nil then
    return nil, err.new('EUSER',
      ("scheduler '%s' returned nothing; it must return an assignment"):format(name))
  end
  local assignment, fault = document.assignment(result, {
    request = request, scheduler = name, what = ("assignment of scheduler '%s'"):format(name),
  })
  if not assignment then
    fault.code = 'EUSER'
    return nil, fault
  end
  -- Its name is what made it, whatever it says.
  assignment.scheduler = name
  assignment.components = nil
  return assignment
end

--- Runs a loaded scheduler in this process, without limits.
---@param scheduler table of `load`
---@param request table normal form
---@return table? assignment
---@return streamlua.Error?
function M.call(scheduler, request)
  local result, fault = custom.call(scheduler.assign, request)
  if fault then return nil, fault end
  return M.check(result, request, scheduler.name)
end

--- What the child of `run` does. Never returns.
---@param path string
---@param request table normal form
function M.serve(path, request)
  custom.serve(SCHEDULER, path, function(scheduler) return scheduler.assign end, request)
end

--- Runs a scheduler's file in a child process with limits.
---@param path string
---@param request table normal form
---@param limits table? {seconds=, memory=}
---@return table? assignment
---@return streamlua.Error?
function M.run(path, request, limits)
  local reply, fault = custom.run(SCHEDULER, path, request, limits)
  if not reply then return nil, fault end
  return M.check(reply.result, request, reply.name)
end

return M
