--- What an executor's thread runs, in a Lua state of its own: it evaluates the script, makes the same
--- plan as the worker's owner, attaches its tasks, and runs turns until it is stopped.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local advisor = require 'streamlua.runtime.advisor'
local executors = require 'streamlua.runtime.executor'
local load = require 'streamlua.topology.load'
local log = require 'streamlua.runtime.log'
local plans = require 'streamlua.runtime.plan'

local C, ffi = abi.C, abi.ffi

local function boot_of(worker)
  local size = ffi.new('size_t[1]')
  local text = C.sl_abi_worker_boot(worker, size)
  return buffer.decode(ffi.string(text, size[0]))
end

local function post(worker, executor, kind, text)
  C.sl_abi_worker_post(worker, kind, -1, C.sl_abi_executor_index(executor), text, #text)
end

--- Runs an executor.
---@param worker lightuserdata struct sl_worker *
---@param pointer lightuserdata struct sl_executor *
return function(worker, pointer)
  worker = ffi.cast('struct sl_worker *', worker)
  pointer = ffi.cast('struct sl_executor *', pointer)
  local boot = boot_of(worker)
  -- luacheck: globals print
  print = require 'streamlua.runtime.print'
  local topology, err = load.script(boot.script, { set = boot.set, defaults = boot.defaults })
  if not topology then
    local place = (err.file or boot.script) .. (err.line and (':%d'):format(err.line) or '')
    error(('%s: %s'):format(place, err.message), 0)
  end
  local plan = plans.new(topology, { executors = boot.executors, is_site = boot.is_site })
  advisor.start()
  local executor = executors.new({
    worker = worker,
    index = C.sl_abi_executor_index(pointer),
    plan = plan,
    may_block = true,
    verbose = boot.verbose,
    write_log = log.writer(boot.log),
  })
  post(worker, pointer, C.SL_EVENT_READY, '')
  executor:run()
  executor:close()
  local report = executor:report()
  report.advice = advisor.report()
  post(worker, pointer, C.SL_EVENT_REPORT, buffer.encode(report))
end
