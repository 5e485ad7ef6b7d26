--- What a member of a crew runs, in a Lua state of its own: it evaluates the script, so that it has the
--- program's functions by the same numbers as the driver, and does what the driver sends.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local load = require 'streamlua.topology.load'
local message = require 'streamlua.streaming.message'
local mode = require 'streamlua.streaming.mode'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local tasks = require 'streamlua.streaming.task'
local wire = require 'streamlua.streaming.wire'

local C, ffi = abi.C, abi.ffi

local function boot_of(crew)
  local size = ffi.new('size_t[1]')
  local text = C.sl_abi_crew_boot(crew, size)
  return buffer.decode(ffi.string(text, size[0]))
end

-- An env that runs the tasks of this member's own datasets here.
local function env_of(context)
  local env = rdds.inline({ default_partitions = context.default_partitions })
  env.fetch = wire.fetch
  return env
end

local function poster(crew, member)
  return function(kind, document)
    local bytes = document and wire.encode(document) or ''
    C.sl_abi_crew_post(crew, member, kind, bytes, #bytes)
  end
end

-- Runs what a message asks for and answers.
local function answer(post, id, fn, ...)
  local ok, result = xpcall(fn, function(raised) return site.raised(raised) end, ...)
  local reply = { id = id }
  if ok then reply.result = result else reply.failure = result end
  local packed, problem = pcall(post, message.RESULT, reply)
  if not packed then post(message.RESULT, { id = id, failure = site.raised(problem) }) end
end

local function handlers_of(context, post, crew, member)
  local env = env_of(context)
  local task_env = { fetch = wire.fetch, store = wire.store }
  return {
    [message.TASK] = function(bytes)
      local document = wire.unpack(context, bytes)
      answer(post, document.id, tasks.run, task_env, document.task)
    end,
    [message.OUTPUT] = function(bytes)
      local document = wire.unpack(context, bytes)
      answer(post, document.id, function()
        local stream = context.streams[document.node]
        stream:run_job(rdds.of_blocks(env, document.blocks), document.time)
        -- A batch that is complete has been seen.
        io.stdout:flush()
      end)
    end,
    [message.RECEIVE] = function(bytes)
      local document = buffer.decode(bytes)
      require('streamlua.streaming.receive').run(context, document, {
        crew = crew, member = member, post = post,
      })
    end,
  }
end

--- Runs a member.
---@param crew lightuserdata struct sl_crew *
---@param member integer
return function(crew, member)
  crew = ffi.cast('struct sl_crew *', crew)
  local boot = boot_of(crew)
  -- luacheck: globals print
  print = require 'streamlua.runtime.print'
  mode.is_member = true
  local context, failure = load.script(boot.script, { set = boot.set, defaults = boot.defaults })
  if not context then error(tostring(failure), 0) end
  -- Records live for one task; a collector that runs less often does less.
  collectgarbage('setpause', 400)
  local post = poster(crew, member)
  context.env = env_of(context)
  context.remote = { stop = function(options) post(message.STOP, options or {}) end }
  context.warner = function(text) post(message.WARNING, { text = text }) end
  local handlers = handlers_of(context, post, crew, member)
  post(message.READY)
  local received = ffi.new('struct sl_crew_message')
  local takes_shared = member < boot.executors and 1 or 0
  while C.sl_abi_crew_receive(crew, member, takes_shared, -1, received) == 1 do
    local handler = handlers[received.kind]
    if handler then handler(ffi.string(received.bytes, received.len)) end
  end
end
