--- Checkpoints: what is written of a program, and how the next run of its script takes it over.
--
-- No function is stored. The script runs again and declares the same streams; state comes back by the
-- names of streams, the batches that were not complete run again. What differs from the run that wrote
-- the checkpoint is said, and a state that no stream asks for any more is refused.

local buffer = require 'string.buffer'
local lfs = require 'lfs'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'
local mode = require 'streamlua.streaming.mode'
local site = require 'streamlua.streaming.site'
local states = require 'streamlua.streaming.state'
local tasks = require 'streamlua.streaming.task'

local C, ffi = abi.C, abi.ffi

local M = {}

---------------------------------------------------------------------------------------------------
-- saving state

local function file_of(context, stream, time)
  local name = stream.node_name:gsub('[^%w%-_.]', function(c) return ('%%%02x'):format(c:byte()) end)
  return ('%s/state/%s-%d'):format(context.checkpoint_dir, name, time)
end

tasks.register_sink('save_state', function(_, _, spec)
  require('streamlua.streaming.state_map').save(spec.maps, spec.path)
  return true
end)

local function save(context, made)
  local stream = made.stream
  local tables = states.tables_of(stream)
  for p = 1, stream.partitions do
    -- A partition that is ahead or behind has no whole version to save.
    if tables.applied[p] ~= made.time then return end
  end
  local maps = {}
  for p = 1, stream.partitions do maps[p] = tables.maps[p].address end
  lfs.mkdir(context.checkpoint_dir .. '/state')
  local path = file_of(context, stream, made.time)
  context.env:run({ { tree = { op = 'nothing' }, sink = { kind = 'save_state', maps = maps, path = path } } })
  if C.sl_abi_streaming_saved(context.handle, stream.node, made.time, path) < 0 then
    local _, failure = err.last()
    error(failure, 0)
  end
  made.must_save = false
  require('streamlua.streaming.state_map').sweep(context.checkpoint_dir .. '/state')
end

--- Completes a batch: every state of it comes about also where no job has asked for it, and those at
--- their interval are saved. Raises what user code raises.
function M.complete(context, time)
  local versions = context.versions[time]
  if not versions then return end
  context.versions[time] = nil
  for _, made in ipairs(versions) do
    made:make_ready()
    if made.must_save and context.checkpoint_dir then save(context, made) end
  end
end

--- Saves the newest states whatever their interval, at a graceful stop.
function M.save_all(context, time)
  for _, stream in pairs(context.streams) do
    if stream.task_of and stream.newest and stream.newest.is_ready and stream.newest.time <= time then
      local ok, raised = pcall(save, context, stream.newest)
      if not ok then context:warn('%s can not be saved: %s', stream.node_name, site.raised(raised)) end
    end
  end
end

---------------------------------------------------------------------------------------------------
-- the program's own section

--- Settings whose value a checkpoint keeps for a run that does not set them.
M.SETTINGS = { 'default_partitions', 'concurrent_jobs', 'max_rate', 'initial_rate', 'back_pressure',
  'write_ahead_log', 'skip_down_time', 'catch_up', 'retained_batches' }

--- The bytes of this program's section.
---@return string
function M.section(context)
  local list = {}
  for node = 0, context.made - 1 do
    local stream = context.streams[node]
    if stream then
      list[#list + 1] = { name = stream.node_name, op = stream.op, partitions = stream.partitions,
        initial_ms = stream.initial_ms }
    end
  end
  return buffer.encode({ version = 1, streams = list, settings = context.settings })
end

local function section_of(info)
  if info.extra == nil or info.extra_len == 0 then return {} end
  local ok, section = pcall(buffer.decode, ffi.string(info.extra, info.extra_len))
  return ok and type(section) == 'table' and section or {}
end

--- A hash of a script's text, '' when it can not be read.
function M.script_hash(path)
  local file = path and io.open(path, 'rb')
  if not file then return '' end
  local text = file:read('*a') or ''
  file:close()
  return ('%016x'):format(C.sl_keyhash_string(text, #text))
end

---------------------------------------------------------------------------------------------------
-- reading

--- The newest usable checkpoint of a folder: {pointer, info, section}; nil when there is none, nil and
--- an error when there are files and none can be read.
---@param dir string
function M.read(dir)
  local pointer = C.sl_abi_checkpoint_read(dir)
  if pointer == nil then
    local _, failure = err.last()
    if failure.code == 'ENOTFOUND' then return nil end
    return nil, failure
  end
  local info = ffi.new('struct sl_checkpoint_info')
  pointer = ffi.gc(pointer, C.sl_abi_checkpoint_free)
  C.sl_abi_checkpoint_get(pointer, info)
  return {
    dir = dir,
    pointer = pointer,
    time = tonumber(info.time),
    batch_ms = tonumber(info.batch_ms),
    name = info.name ~= nil and ffi.string(info.name) or '',
    script = info.script ~= nil and ffi.string(info.script) or '',
    script_hash = info.script_hash ~= nil and ffi.string(info.script_hash) or '',
    section = section_of(info),
  }
end

-- The checkpoint that contexts made now are going to take over; see M.during.
local current

--- Runs fn; contexts with this checkpoint's folder that it makes take the batch interval and the settings
--- that they do not set from the checkpoint.
function M.during(checkpoint, fn, ...)
  local before = current
  current = checkpoint
  local ok, result = pcall(fn, ...)
  current = before
  if not ok then error(result, 0) end
  return result
end

--- The checkpoint that a context with this folder is to take over, nil when none.
function M.for_context(dir)
  if current then return current end
  if not mode.is_automatic or not dir then return nil end
  local checkpoint, failure = M.read(dir)
  if failure then
    site.raise("checkpoint folder '%s': %s; delete it to start anew", dir, tostring(failure))
  end
  return checkpoint
end

--- Puts the settings of a checkpoint where the program sets none. Returns what differs, as texts.
function M.merge_settings(checkpoint, options)
  local stored, differences = checkpoint.section.settings or {}, {}
  for _, name in ipairs(M.SETTINGS) do
    if options[name] == nil then
      options[name] = stored[name]
    elseif stored[name] ~= nil and stored[name] ~= options[name] then
      differences[#differences + 1] = ('%s was %s and is %s'):format(name, tostring(stored[name]),
        tostring(options[name]))
    end
  end
  return differences
end

---------------------------------------------------------------------------------------------------
-- taking over

local function report_differences(context, checkpoint)
  for _, text in ipairs(context.differences or {}) do context:warn('since the checkpoint: %s', text) end
  if checkpoint.script_hash ~= '' and context.script_hash ~= ''
    and checkpoint.script_hash ~= context.script_hash then
    context:warn('since the checkpoint: the script has changed; its functions are those of now')
  end
  local before = {}
  for _, stream in ipairs(checkpoint.section.streams or {}) do before[stream.name] = stream end
  for node = 0, context.made - 1 do
    local stream = context.streams[node]
    local old = stream and before[stream.node_name]
    if stream and not old then
      context:warn('since the checkpoint: stream %s (%s) is new', stream.node_name, stream.call_site)
    elseif old then
      before[stream.node_name] = nil
      if old.op ~= stream.op then
        context:warn('since the checkpoint: stream %s was made by %s and is by %s', stream.node_name, old.op,
          stream.op)
      elseif old.partitions ~= stream.partitions then
        context:warn('since the checkpoint: stream %s had %s partitions and has %s', stream.node_name,
          tostring(old.partitions), tostring(stream.partitions))
      end
    end
  end
  local gone = {}
  for name in pairs(before) do gone[#gone + 1] = name end
  table.sort(gone)
  for _, name in ipairs(gone) do context:warn('since the checkpoint: stream %s is gone', name) end
end

local saved_out = ffi.new('struct sl_streaming_saved')

-- What a checkpoint says was saved of a stream: time -> text.
local function saved_of(context, stream)
  local list = {}
  local index = 0
  while C.sl_abi_streaming_saved_get(context.handle, stream.node, index, saved_out) == 0 do
    list[tonumber(saved_out.time)] = ffi.string(saved_out.text)
    index = index + 1
  end
  C.sl_error_clear()
  return list
end

-- The oldest batch that runs again.
local function first_rerun(checkpoint)
  local first, time = checkpoint.time, ffi.new('int64_t[1]')
  local index = 0
  while C.sl_abi_checkpoint_pending(checkpoint.pointer, index, time) == 0 do
    first = math.min(first, tonumber(time[0]))
    index = index + 1
  end
  C.sl_error_clear()
  return first
end

-- State goes forward only: the newest that is not past the first batch to run again, if there is one.
local function load_state(context, stream, saved, first)
  local newest, oldest
  for time in pairs(saved) do
    if time <= first and (not newest or time > newest) then newest = time end
    if not oldest or time < oldest then oldest = time end
  end
  if not newest and oldest then
    context:warn('batches before %d ms can not run again: the state of %s before it is gone', oldest,
      stream.node_name)
  end
  newest = newest or oldest
  if not newest then return end
  local path = saved[newest]
  if not lfs.attributes(path, 'mode') then
    path = context.checkpoint_dir .. '/state/' .. path:match('[^/]*$')
  end
  local made = states.restore(stream, newest, path)
  context:remember_dataset(stream, newest, made)
end

--- Takes a checkpoint over into a context that has been declared in full. Raises when the checkpoint is
--- of another program or has state that no stream asks for.
function M.restore(context, checkpoint)
  local function refuse(text, ...)
    error(("the checkpoint in '%s' %s"):format(checkpoint.dir, text:format(...)), 0)
  end
  if checkpoint.name ~= context.name then
    refuse("belongs to program '%s', this is '%s'; use another folder", checkpoint.name, context.name)
  end
  if C.sl_abi_streaming_restore(context.handle, checkpoint.pointer,
    context.drops_missing_state and 1 or 0) < 0 then
    local _, failure = err.last()
    refuse('can not be taken over: %s', tostring(failure))
  end
  report_differences(context, checkpoint)
  local first = first_rerun(checkpoint)
  local sections = {}
  for _, section in ipairs(checkpoint.section.streams or {}) do sections[section.name] = section end
  for node = 0, context.made - 1 do
    local stream = context.streams[node]
    if stream.task_of then
      load_state(context, stream, saved_of(context, stream), first)
    elseif stream.is_file_source then
      require('streamlua.streaming.file_source').restore(stream, saved_of(context, stream),
        sections[stream.node_name])
    end
  end
  -- A manual clock goes on where the checkpoint ends, at the earliest.
  if context.clock and context.clock:now() < checkpoint.time then context.clock:move(checkpoint.time) end
  context.is_restored = true
end

--- The context of a checkpoint folder: what `create` declares with what the checkpoint holds, or, without
--- a checkpoint, just what it declares. create_on_error: also when no file of the folder is usable.
---@param dir string
---@param create fun(): streamlua.StreamingContext
---@param options? { create_on_error?: boolean }
function M.get_or_create(dir, create, options)
  if type(dir) ~= 'string' or dir == '' then site.raise('get_or_create: expected a folder, got %s', type(dir)) end
  if type(create) ~= 'function' then
    site.raise('get_or_create: expected a function that makes the context, got %s', type(create))
  end
  local function made_by(checkpoint)
    local context = checkpoint and M.during(checkpoint, create) or create()
    if type(context) ~= 'table' or getmetatable(context) == nil
      or getmetatable(context).__streamlua ~= 'streaming' then
      site.raise('get_or_create: the function must return its context, got %s', type(context))
    end
    return context
  end
  -- A thread of a run declares only.
  if mode.is_member then return made_by(nil) end
  local checkpoint, failure = M.read(dir)
  if failure and not (options and options.create_on_error) then
    site.raise("get_or_create: no checkpoint in '%s' can be read: %s", dir, tostring(failure))
  end
  if not checkpoint then return made_by(nil) end
  local context = made_by(checkpoint)
  local ok, raised = pcall(M.restore, context, checkpoint)
  if not ok then site.raise('get_or_create: %s', site.raised(raised)) end
  return context
end

return M
