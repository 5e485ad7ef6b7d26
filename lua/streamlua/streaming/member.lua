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

-- The dataset of an output operation: its records are asked for when they are needed.
local function remote_dataset(env, partitions, ask)
  local made = rdds.custom(env, partitions, {
    make_ready = function(self)
      if self.blocks then return end
      self.blocks, self.is_borrowed = ask('blocks').blocks, true
    end,
    make_tree = function(self, p) return { op = 'block', block = self.blocks[p] } end,
  })
  local Rdd = rdds.Rdd
  made.count = function(self)
    if self.blocks then return Rdd.count(self) end
    return ask('count').count
  end
  made.take = function(self, n)
    if self.blocks or type(n) ~= 'number' or n < 1 then return Rdd.take(self, n) end
    return ask('take', n).items
  end
  return made
end

local function handlers_of(context, post, crew, member, boot)
  local env = env_of(context)
  local task_env = { fetch = wire.fetch, store = boot.is_host and wire.store_inline or wire.store }
  local received = ffi.new('struct sl_crew_message')
  -- Messages that came while an operation waited for what it asked for.
  local later = {}

  local function await_answer()
    while true do
      if C.sl_abi_crew_receive(crew, member, 0, -1, received) ~= 1 then error('the run is ending', 0) end
      local bytes = ffi.string(received.bytes, received.len)
      if received.kind == message.GIVE then return wire.unpack(context, bytes) end
      later[#later + 1] = { received.kind, bytes }
    end
  end

  local function asker(output)
    return function(what, n)
      post(message.ASK, { output = output, what = what, n = n })
      local answered = await_answer()
      if answered.failure then error(answered.failure, 0) end
      return answered
    end
  end

  return {
    later = later,
    [message.TASK] = function(bytes)
      local document = wire.unpack(context, bytes)
      answer(post, document.id, tasks.run, task_env, document.task)
    end,
    [message.OUTPUT] = function(bytes)
      local document = wire.unpack(context, bytes)
      answer(post, document.id, function()
        local stream = context.streams[document.node]
        stream:run_job(remote_dataset(env, document.partitions, asker(document.output)), document.time)
        -- A batch that is complete has been seen.
        io.stdout:flush()
      end)
    end,
    [message.GIVEN_UP] = function() post(message.BROKEN, 'the driver could not reach it') end,
    [message.RECEIVE] = function(bytes)
      local document = buffer.decode(bytes)
      require('streamlua.streaming.receive').run(context, document, {
        crew = crew, member = member, post = post, is_host = boot.is_host,
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
  local handlers = handlers_of(context, post, crew, member, boot)
  post(message.READY)
  local received = ffi.new('struct sl_crew_message')
  local takes_shared = member < boot.executors and 1 or 0
  while C.sl_abi_crew_receive(crew, member, takes_shared, -1, received) == 1 do
    local handler = handlers[received.kind]
    if handler then handler(ffi.string(received.bytes, received.len)) end
    while #handlers.later > 0 do
      local kind, bytes = unpack(table.remove(handlers.later, 1))
      handlers[kind](bytes)
    end
  end
end
