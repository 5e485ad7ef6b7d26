--- Sources that watch folders: every batch takes the files that appeared since the last one.
--
-- A file is taken iff the filter accepts its name, its time of modification is above the threshold and
-- not after the batch time, and it was not taken before. The threshold is the time when the stream was
-- made (0 with new_files_only = false) or the batch time less the remember time, whichever is later. What
-- is taken is a name and a size: what is appended later is not read. Each file that is not taken is
-- reported once with the reason.

local lfs = require 'lfs'
local abi = require 'streamlua.abi'
local libc = require 'streamlua.connectors.libc'
local rdds = require 'streamlua.streaming.rdd'
local site = require 'streamlua.streaming.site'
local sources = require 'streamlua.streaming.source'
local streams = require 'streamlua.streaming.stream'
local tasks = require 'streamlua.streaming.task'

local C = abi.C

local M = {}

---------------------------------------------------------------------------------------------------
-- reading, in tasks

local function read_whole(path, size)
  local file, problem = io.open(path, 'rb')
  if not file then error(("file '%s': %s"):format(path, problem), 0) end
  local text = size > 0 and file:read(size) or ''
  file:close()
  if not text then error(("file '%s' can not be read"):format(path), 0) end
  return text
end

tasks.register('text_file', function(_, tree)
  local text = read_whole(tree.path, tree.size)
  local items, n, from = {}, 0, 1
  local find, sub = string.find, string.sub
  while from <= #text do
    local at = find(text, '\n', from, true) or #text + 1
    n = n + 1
    items[n] = sub(text, from, at - 1)
    from = at + 1
  end
  return { n = n, items = items }
end)

tasks.register('binary_file', function(_, tree)
  local text = read_whole(tree.path, tree.size)
  if #text % tree.length ~= 0 then
    error(("file '%s': %d bytes are no multiple of the record length %d"):format(tree.path, #text,
      tree.length), 0)
  end
  local items = {}
  for i = 1, #text / tree.length do
    items[i] = text:sub((i - 1) * tree.length + 1, i * tree.length)
  end
  return { n = #items, items = items }
end)

---------------------------------------------------------------------------------------------------
-- choosing

local function is_hidden(name) return name:sub(1, 1) == '.' end

-- Says once of a file why it is not taken.
local function note(self, path, why, ...)
  local text = why:format(...)
  if self.noted[path] == text then return end
  self.noted[path] = text
  self.context:note("%s: file '%s' is not taken: %s", self.node_name, path, text)
end

-- Whether a file is one of this batch; the reason why not is noted.
local function is_chosen(self, name, path, stat, time, threshold)
  local known = self.taken[path]
  if known then
    if known.size ~= stat.size or known.modified_ms ~= stat.modified_ms then
      note(self, path, 'it was taken at %d ms with %d bytes; what came later is ignored', known.time,
        known.size)
    end
    return false
  end
  local is_accepted
  if self.accepts then is_accepted = self.accepts(path) else is_accepted = not is_hidden(name) end
  if not is_accepted then
    note(self, path, 'the filter refuses it')
  elseif stat.modified_ms <= threshold then
    note(self, path, 'it was modified at %d ms, not after %d ms', stat.modified_ms, threshold)
  elseif stat.modified_ms > time then
    note(self, path, 'it was modified at %d ms, after the batch: it waits', stat.modified_ms)
  else
    return true
  end
  return false
end

local function list_folder(self, folder, time, threshold, out)
  local prefix = folder:sub(-1) == '/' and folder or folder .. '/'
  local ok, iterate, state = pcall(lfs.dir, folder)
  if not ok then
    self.context:warn("%s: folder '%s' can not be listed: %s", self.node_name, folder, tostring(iterate))
    return
  end
  for name in iterate, state do
    if name ~= '.' and name ~= '..' then
      local path = prefix .. name
      local stat = libc.stat(path)
      -- A file that vanished meanwhile, and folders within, are no files of this one.
      if stat and stat.kind == 'file' and is_chosen(self, name, path, stat, time, threshold) then
        out[#out + 1] = { path = path, size = stat.size, modified_ms = stat.modified_ms, time = time }
      end
    end
  end
end

-- Forgets what is older than the remember time.
local function forget(self, time)
  for path, file in pairs(self.taken) do
    if file.time <= time - self.remember_files_ms then
      self.taken[path] = nil
      self.noted[path] = nil
    end
  end
end

local function choose(self, time)
  forget(self, time)
  local threshold = math.max(self.initial_ms, time - self.remember_files_ms)
  local folders, others = {}, 0
  for _, path in ipairs(libc.glob(self.pattern)) do
    local stat = libc.stat(path)
    if stat and stat.kind == 'directory' then
      folders[#folders + 1] = path
    else
      others = others + 1
    end
  end
  if #folders == 0 then
    self.context:warn("%s: '%s' matches no folder%s: the batch is empty", self.node_name, self.pattern,
      others > 0 and ', only files; name the folder they are in' or '')
  end
  local chosen = {}
  for _, folder in ipairs(folders) do list_folder(self, folder, time, threshold, chosen) end
  table.sort(chosen, function(a, b)
    if a.modified_ms ~= b.modified_ms then return a.modified_ms < b.modified_ms end
    return a.path < b.path
  end)
  for _, file in ipairs(chosen) do
    self.taken[file.path] = file
    self.noted[file.path] = nil
  end
  return chosen
end

---------------------------------------------------------------------------------------------------
-- lists of files as texts of checkpoints: "<size> <modified> <path>" a line

local function encode(files)
  local lines = {}
  for i, file in ipairs(files) do
    lines[i] = ('%d %d %s'):format(file.size, file.modified_ms, (file.path:gsub('[\\\n]', function(c)
      return c == '\n' and '\\n' or '\\\\'
    end)))
  end
  return table.concat(lines, '\n')
end

local function decode(text, time)
  local files = {}
  for line in text:gmatch('[^\n]+') do
    local size, modified, path = line:match('^(%d+) (%d+) (.*)$')
    if size then
      files[#files + 1] = { size = tonumber(size), modified_ms = tonumber(modified), time = time,
        path = (path:gsub('\\(.)', function(c) return c == 'n' and '\n' or c end)) }
    end
  end
  return files
end

M.encode, M.decode = encode, decode

-- The files that a checkpoint knows of this batch.
local function restored(self, time)
  local saved = self.restored_files
  return saved and saved[time]
end

--- Takes over the lists of files of a checkpoint.
function M.restore(stream, lists, section)
  -- What came while the program was down is new to it.
  stream.initial_ms = section and section.initial_ms or stream.initial_ms
  stream.restored_files = {}
  for time, text in pairs(lists) do
    local files = decode(text, time)
    stream.restored_files[time] = files
    for _, file in ipairs(files) do stream.taken[file.path] = file end
  end
end

---------------------------------------------------------------------------------------------------
-- the streams

local SCAN_BYTES = 16 * 1024 * 1024

-- Records of the files for reports, when they are quickly counted; else 0.
local function count_records(self, files)
  local bytes, count = 0, 0
  for _, file in ipairs(files) do bytes = bytes + file.size end
  if bytes > SCAN_BYTES then return 0 end
  if self.record_length then return math.floor(bytes / self.record_length) end
  for _, file in ipairs(files) do
    local ok, text = pcall(read_whole, file.path, file.size)
    if ok then
      local _, lines = text:gsub('\n', '')
      if #text > 0 and text:sub(-1) ~= '\n' then lines = lines + 1 end
      count = count + lines
    end
  end
  return count
end

local function compute(self, time)
  local files = restored(self, time) or choose(self, time)
  local context = self.context
  local names = {}
  for i, file in ipairs(files) do names[i] = file.path end
  context:report_input(self, time, count_records(self, files), table.concat(names, '\n'))
  if context.checkpoint_dir then
    streams.check_c(self.op, C.sl_abi_streaming_saved(context.handle, self.node, time, encode(files)))
  end
  return rdds.custom(context.env, #files, {
    make_ready = function() end,
    make_tree = function(_, p)
      return { op = self.tree_op, path = files[p].path, size = files[p].size, length = self.record_length }
    end,
  })
end

local OPTIONS = { filter = true, new_files_only = true, remember = true }

local function watch(context, op, pattern, options, fields)
  if type(pattern) ~= 'string' or pattern == '' then
    site.raise('%s: expected a folder or a glob of folders, got %s', op, type(pattern))
  end
  options = options or {}
  for name in pairs(options) do
    if not OPTIONS[name] then site.raise("%s: there is no option '%s'", op, tostring(name)) end
  end
  if options.filter ~= nil then streams.check_function(op .. ': filter', options.filter) end
  local remember_ms = options.remember ~= nil and streams.duration_ms(op .. ': remember', options.remember)
    or 60000
  fields.pattern = pattern
  fields.accepts = options.filter
  fields.initial_ms = options.new_files_only == false and 0 or context:now()
  fields.remember_files_ms = context.batch_ms * math.ceil(remember_ms / context.batch_ms)
  -- What was taken, by path, and what was said of the files that were not.
  fields.taken, fields.noted = {}, {}
  fields.compute = compute
  fields.is_file_source = true
  return sources.make(context, op, fields)
end

--- The lines of text files that appear in a folder, or in all folders that a glob matches.
---@param pattern string
---@param options? { filter?: fun(path: string): boolean, new_files_only?: boolean, remember?: number|string }
function sources.METHODS.text_file_stream(context, pattern, options)
  return watch(context, 'text_file_stream', pattern, options, { tree_op = 'text_file' })
end

--- Records of `length` bytes from binary files; a file whose length does not fit fails its batch.
---@param pattern string
---@param length integer
---@param options? table as text_file_stream takes
function sources.METHODS.binary_records_stream(context, pattern, length, options)
  if type(length) ~= 'number' or length < 1 or length ~= math.floor(length) then
    site.raise('binary_records_stream: the length of records must be a whole number from 1 on')
  end
  return watch(context, 'binary_records_stream', pattern, options,
    { tree_op = 'binary_file', record_length = length })
end

return M
