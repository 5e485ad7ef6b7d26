--- The collector of a task: emit, ack, fail, reset_timeout, report_error.
--
-- A tuple names what it is anchored on by its origin (streamlua.runtime.tuple): a bolt that acks
-- automatically can anchor on tuples of the turn that runs, older ones are acked already; a bolt with
-- manual acks can anchor on every tuple that it has not settled.

local abi = require 'streamlua.abi'
local emit = require 'streamlua.runtime.emit'
local err = require 'streamlua.err'
local key = require 'streamlua.runtime.key'
local raised = require 'streamlua.runtime.raised'
local tuples = require 'streamlua.runtime.tuple'

local C = abi.C
local ipairs = ipairs
local tostring, type = tostring, type

local M = {}

-- Raises at the place in the user's code that called into the runtime.
local function user_error(message)
  local level = 2
  local info = debug.getinfo(level, 'Sl')
  while info and not raised.is_entry(info.source)
    and not (info.currentline > 0 and raised.is_user_code(info.source)) do
    level = level + 1
    info = debug.getinfo(level, 'Sl')
  end
  if info and not raised.is_entry(info.source) then
    message = ('%s:%d: %s'):format(info.source:sub(2), info.currentline, message)
  end
  error(message, 0)
end
M.user_error = user_error

-- The most bytes of one tuple; sizes in C are 32 bits.
local MOST_BYTES = 1024 * 1024 * 1024

--- Raises when a tuple is larger than one may be.
local function too_large(need)
  if need > MOST_BYTES then
    user_error(('emit: a tuple of %.0f bytes; the most is %d'):format(need, MOST_BYTES))
  end
end
M.too_large = too_large

local function describe_stream(rt, stream)
  return ("component '%s', stream '%s'"):format(rt.component.name, stream.name)
end

-- What the generated text of emit.lua calls.
local function helpers(rt, stream, executor)
  local task = rt.task
  local where = describe_stream(rt, stream)
  local h = {
    flush = function(outbox, need) executor:flush(outbox, need) end,
    await_root = function() executor:await_root(rt) end,
    ids = rt.ids,
    texts = executor.texts,
    keep = rt.keep and function(slot, id, values, options)
      rt.keep(slot, id, values, stream, options)
    end or nil,
  }
  function h.bad_values(values)
    user_error(('emit: %s: values must be a table, got %s'):format(where, type(values)))
  end
  function h.too_many()
    user_error(('emit: %s: more values than fields (%s)'):format(where,
      table.concat(stream.fields, ', ')))
  end
  function h.bad_id(id)
    user_error(('emit: %s: id must be a string or a number, got %s'):format(where, type(id)))
  end
  function h.bad_options(options)
    user_error(('emit: %s: options must be a table, got %s'):format(where, type(options)))
  end
  function h.other(item, field)
    local bytes, problem = emit.other_bytes(item)
    if not bytes then
      user_error(("emit: %s: field '%s': %s can not be emitted"):format(where,
        stream.fields[field], problem))
    end
    return bytes
  end
  h.put_other = emit.put_other
  h.too_large = too_large
  function h.no_memory()
    local _, failure = err.last()
    user_error('emit: ' .. tostring(failure))
  end
  function h.hash(item, field)
    local hash, problem = key.hash(item)
    if not hash then
      user_error(("emit: %s: field '%s': %s can not be a key"):format(where,
        stream.fields[field], problem))
    end
    return hash
  end
  -- A custom grouping names one task or several of the reader's.
  function h.choose_custom(emitter, index, values)
    local reader = rt.plan.readers_of[stream.index][index + 1]
    local chosen = reader.fn(values, reader.component.tasks)
    if chosen == nil then
      user_error(("emit: %s: the custom grouping of '%s' returned nothing; it returns a task or a list of "
        .. 'tasks, {} for none'):format(where, reader.component.name))
    end
    if type(chosen) ~= 'table' then chosen = { chosen } end
    for _, id in ipairs(chosen) do
      if type(id) ~= 'number' or C.sl_abi_emitter_add_task(emitter, index, id) ~= 0 then
        user_error(("emit: %s: the custom grouping of '%s' chose task %s, which is none of its")
          :format(where, reader.component.name, tostring(id)))
      end
    end
  end
  function h.choose_task(emitter, options)
    local id = options and options.task
    if type(id) ~= 'number' then
      user_error(('emit: %s: a direct stream needs options.task'):format(where))
    end
    for index = 0, emitter.route_count - 1 do
      if C.sl_abi_emitter_add_task(emitter, index, id) == 0 then return end
    end
    user_error(('emit: %s: task %d does not read it'):format(where, id))
  end
  -- Anchors of a bolt's tuple: the one being executed, or those the user lists.
  function h.add_anchors(options)
    local anchors = options and options.anchors
    if anchors == nil then
      if rt.held == nil then
        C.sl_abi_anchors_add_current(task)
      elseif rt.held >= 0 then
        C.sl_abi_anchors_add_held(task, rt.held)
      end
      return
    end
    if type(anchors) ~= 'table' then
      user_error(('emit: %s: anchors must be a list of tuples'):format(where))
    end
    for _, tuple in ipairs(anchors) do
      local origin = tuples.origin(tuple)
      if not origin then
        user_error(('emit: %s: an anchor must be a tuple that was executed'):format(where))
      end
      if origin.handle >= 0 then
        C.sl_abi_anchors_add_held(task, origin.handle)
      elseif origin == rt.meta then
        C.sl_abi_anchors_add_current(task)
      end
    end
  end
  return h
end

local function origin_of(rt, tuple, verb)
  local origin = tuples.origin(tuple)
  if not origin then
    user_error(("%s: component '%s': not a tuple that was executed"):format(verb,
      rt.component.name))
  end
  return origin
end

-- acked and failed by the user: only bolts with manual acks.
local function settle(rt, verb, has_failed)
  return function(_, tuple)
    if rt.held == nil then
      user_error(("%s: component '%s' acks automatically; set manual_ack = true"):format(verb,
        rt.component.name))
    end
    local handle = origin_of(rt, tuple, verb).handle
    if handle >= 0 then C.sl_abi_held_settle(rt.task, handle, has_failed) end
  end
end

local function reset_timeout(rt)
  return function(_, tuple)
    local origin = origin_of(rt, tuple, 'reset_timeout')
    if origin.handle >= 0 then
      C.sl_abi_held_reset(rt.task, origin.handle)
    elseif origin == rt.meta then
      C.sl_abi_task_reset(rt.task)
    end
  end
end

-- emit, and what gives it the functions of the streams. User code may keep `emit` itself, so it stays
-- the same when the routes change. The default stream comes first, since it is what hot code uses.
local function emit_method(rt)
  local by_name, default
  local function named(values, options)
    local fn = by_name[options.stream]
    if not fn then
      user_error(("emit: component '%s' has no stream '%s'"):format(rt.component.name,
        tostring(options.stream)))
    end
    return fn(values, options)
  end
  local function emit_to(_, values, options)
    if options ~= nil and type(options) == 'table' then
      if options.stream ~= nil then return named(values, options) end
      if options.task ~= nil and not rt.is_default_direct then
        user_error(("emit: component '%s': its default stream is not direct"):format(
          rt.component.name))
      end
    end
    return default(values, options)
  end
  local function set_streams(functions)
    by_name = functions
    default = functions.default or function()
      user_error(("emit: component '%s' declares no default stream"):format(rt.component.name))
    end
  end
  return emit_to, set_streams
end

-- An emit function that also tells the tap; what a replay emits again was told before.
local function tapped(rt, stream, fn)
  local tap = rt.tap
  return function(values, options)
    fn(values, options)
    if not (rt.replays and rt.replays.emitting) then tap.emitted(rt, stream, values) end
  end
end

--- Gives the collector of a task its emit functions; again whenever the routes change.
---@param rt table the task at run time; see streamlua.runtime.task
---@param executor table
function M.route(rt, executor)
  local by_name = {}
  for i, stream in ipairs(rt.component.streams) do
    local emitter = C.sl_abi_task_emitter(rt.task, i - 1)
    local fn = emit.generate(rt.task, emitter, rt.component.kind, helpers(rt, stream, executor))
    by_name[stream.name] = rt.tap and tapped(rt, stream, fn) or fn
    if stream.name == 'default' then rt.is_default_direct = stream.is_direct end
  end
  rt.emit_by_stream = by_name
  rt.set_streams(by_name)
end

--- The task has been removed: whoever kept its collector gets errors from it.
---@param rt table
function M.cut(rt)
  local function gone()
    user_error(("emit: the task of component '%s' has been removed"):format(rt.component.name))
  end
  rt.emit_by_stream = setmetatable({ default = gone }, { __index = function() return gone end })
  rt.set_streams(rt.emit_by_stream)
end

--- A collector without emit functions yet.
function M.new(rt)
  local collector = {
    report_error = function(_, told) rt.report_error(told) end,
    reset_timeout = reset_timeout(rt),
  }
  if rt.component.kind == 'bolt' then
    collector.ack = settle(rt, 'ack', 0)
    collector.fail = settle(rt, 'fail', 1)
  end
  collector.emit, rt.set_streams = emit_method(rt)
  return collector
end

return M
