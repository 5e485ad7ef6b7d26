--- What an executor does on SL_COMMAND_TELL: keyed state that moves with its key groups, or with its task.
--
-- Requests and answers are tables in buffer encoding. An export gives pieces of at most so many bytes and
-- says where it stopped; nothing changes by it. An import clears each group that it is about to fill. What
-- a task has of groups that are not its own any more, and the state of tasks that have left, stays until
-- the commit, so that the plan of before can come back.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'

local C, ffi = abi.C, abi.ffi

local M = {}

-- A section of an export: u32 group, u32 count, then the entries.
local HEADER_BYTES = 8
local header_t = ffi.typeof('uint32_t[2]')
local count_out = ffi.new('uint32_t[1]')

local function sorted_names(states)
  local names = {}
  for name in pairs(states) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- The next entries of a section from an offset on, at most `most` bytes but one at least.
local function cut(bytes, offset, most, group)
  local from = ffi.cast('const uint8_t *', bytes) + HEADER_BYTES + offset
  local size = tonumber(C.sl_keyed_entries_fit(from, #bytes - HEADER_BYTES - offset, most, count_out))
  if size < 0 then error(('an entry of %d bytes or more is too large to be moved'):format(most), 0) end
  local header = ffi.string(header_t(group, count_out[0]), HEADER_BYTES)
  local first = HEADER_BYTES + offset + 1
  return header .. bytes:sub(first, first + size - 1), size, count_out[0]
end

--- Exports groups of tasks: request.groups = {{group, task}, ...} from position request.at = {group,
--- state, offset}. Returns { pieces = {{state=, group=, count=, entries=}}, at = position or nil }.
local function export(self, request)
  local pieces, left = {}, request.most
  local at, name_at, offset = unpack(request.at)
  while at <= #request.groups do
    local group, task = unpack(request.groups[at])
    local rt = self.tasks[task]
    local names = rt and sorted_names(rt.states) or {}
    while name_at <= #names do
      local bytes = assert(rt.states[names[name_at]]:export_group(group))
      while offset < #bytes - HEADER_BYTES do
        local entries, size, count = cut(bytes, offset, math.min(request.limit, math.max(left, 1)), group)
        if size > left and #pieces > 0 then
          return { pieces = pieces, at = { at, name_at, offset } }
        elseif size > request.limit then
          error(('an entry of %d bytes is too large to be moved'):format(size), 0)
        end
        pieces[#pieces + 1] = { state = names[name_at], group = group, count = count, entries = entries }
        left, offset = left - size, offset + size
      end
      name_at, offset = name_at + 1, 0
    end
    at, name_at, offset = at + 1, 1, 0
  end
  return { pieces = pieces }
end

--- Imports request.pieces = {{task=, state=, group=, count=, entries=}}.
local function import(self, request)
  local cleared = {}
  for _, piece in ipairs(request.pieces) do
    local rt = assert(self.tasks[piece.task], 'the task is not here')
    local state = rt.context:state(piece.state)
    local id = ('%d %d %s'):format(piece.task, piece.group, piece.state)
    if not cleared[id] then
      cleared[id] = true
      state:clear_group(piece.group)
    end
    local summary = assert(state:import(piece.entries))
    if summary.entries ~= piece.count then
      error(('%d entries came as %d'):format(piece.count, summary.entries), 0)
    end
  end
  return {}
end

--- Drops what tasks have of groups that request.owners ({[component] = {task, ...}}) gives to others, and
--- the state of tasks that have left.
local function commit(self, request)
  self.kept = {}
  for id, rt in pairs(self.tasks) do
    local owners = request.owners[rt.component.name]
    for _, state in pairs(owners and rt.states or {}) do
      for group = 0, #owners - 1 do
        if owners[group + 1] ~= id then state:clear_group(group) end
      end
    end
  end
  return {}
end

local requests = { export = export, import = import, commit = commit }

--- Does what a text says. Returns the answer: { value = table } or { problem = text }.
---@param executor table streamlua.runtime.executor
---@param text string
---@return string
function M.answer(executor, text)
  local request = buffer.decode(text)
  local ok, value = pcall(requests[request.what], executor, request)
  return buffer.encode(ok and { value = value } or { problem = tostring(value) })
end

return M
