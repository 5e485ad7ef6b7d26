--- What an executor does on SL_COMMAND_TELL: keyed state that moves with its key groups, or with its task;
--- tasks of the next plan, and what waits until all processes have it.
--
-- Requests and answers are tables in buffer encoding. An export gives pieces of at most so many bytes and
-- says where it stopped; nothing changes by it. States that have come are adopted: their groups replace
-- those of the task. What a task has of groups that are not its own any more, and the state of tasks that
-- have left, stays until the commit, so that the plan of before can come back.

local buffer = require 'string.buffer'
local abi = require 'streamlua.abi'
local err = require 'streamlua.err'

local C, ffi = abi.C, abi.ffi

local M = {}

-- A section of an export: u32 group, u32 count, then the entries.
local HEADER_BYTES = 8
-- What a piece takes in a message beside its entries.
local PIECE_BYTES = 128
local header_t = ffi.typeof('uint32_t[2]')
local count_out, length_out = ffi.new('uint32_t[1]'), ffi.new('size_t[1]')
local summary_t = ffi.typeof('struct sl_keyed_summary')

local function sorted_names(states)
  local names = {}
  for name in pairs(states) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- The next entries of a section from an offset on: their bytes and number; at most `most` bytes, but one
-- entry at least.
local function fit(bytes, offset, most)
  local from = ffi.cast('const uint8_t *', bytes) + HEADER_BYTES + offset
  return tonumber(C.sl_keyed_entries_fit(from, #bytes - HEADER_BYTES - offset, most, count_out)), count_out[0]
end

-- A group of a state as bytes, with its summary as bytes. That of an export that goes on is still there: a
-- large group is not made anew for each answer.
local function section_of(self, task, name, group, is_first)
  local kept = self.exported
  if is_first or not kept or kept.task ~= task or kept.name ~= name or kept.group ~= group then
    local summary = summary_t()
    local bytes = C.sl_keyed_export(self.tasks[task].states[name].handle, group, length_out, summary)
    if bytes == nil then error(tostring(select(2, err.last())), 0) end
    kept = { task = task, name = name, group = group, bytes = ffi.string(bytes, length_out[0]),
      whole = ffi.string(summary, ffi.sizeof(summary_t)) }
    self.exported = kept
  end
  return kept
end

--- Exports groups of tasks: request.groups = {{group, task}, ...} from position request.at = {group,
--- state, offset, sent} on. Returns { pieces = {{state=, group=, count=, entries=, whole=}}, at = position
--- or nil }. An entry that is larger than an answer comes in several pieces; all but its last one have a
--- count of 0. The first piece of a group has the summary of all of it.
local function export(self, request)
  local pieces, left = {}, request.most
  local at, name_at, offset, sent = unpack(request.at)
  local function add(section, count, entries)
    pieces[#pieces + 1] = { state = section.name, group = section.group, count = count, entries = entries,
      whole = offset + sent == 0 and section.whole or nil }
    left = left - #entries - PIECE_BYTES
  end
  while at <= #request.groups do
    local group, task = unpack(request.groups[at])
    local rt = self.tasks[task]
    local names = rt and sorted_names(rt.states) or {}
    while name_at <= #names do
      local section = section_of(self, task, names[name_at], group, offset + sent == 0)
      local bytes = section.bytes
      while offset < #bytes - HEADER_BYTES do
        local size, count = fit(bytes, offset, math.max(left, 1))
        local is_large = size > request.most
        if #pieces > 0 and (is_large or size > left) then
          return { pieces = pieces, at = { at, name_at, offset, sent } }
        end
        local header = ffi.string(header_t(group, count), HEADER_BYTES)
        local first = HEADER_BYTES + offset + 1
        if not is_large then
          add(section, count, header .. bytes:sub(first, first + size - 1))
        else
          local part = math.min(request.most, size - sent)
          local is_last = sent + part == size
          add(section, is_last and 1 or 0,
            (sent == 0 and header or '') .. bytes:sub(first + sent, first + sent + part - 1))
          if not is_last then
            return { pieces = pieces, at = { at, name_at, offset, sent + part } }
          end
        end
        offset, sent = offset + size, 0
      end
      name_at, offset = name_at + 1, 0
    end
    at, name_at, offset = at + 1, 1, 0
  end
  self.exported = nil
  return { pieces = pieces }
end

--- Bytes of entries of request.groups = {{group, task}, ...}.
local function measure(self, request)
  local bytes = 0
  for _, item in ipairs(request.groups) do
    local rt = self.tasks[item[2]]
    for _, state in pairs(rt and rt.states or {}) do
      bytes = bytes + assert(state:export_size(item[1])) - HEADER_BYTES
    end
  end
  return { bytes = bytes }
end

--- Gives tasks the states request.tables = {{task=, state=, address=}} in place of what they have of the
--- groups in them. Those that have it are empty then.
local function adopt(self, request)
  for _, item in ipairs(request.tables) do
    local rt = assert(self.tasks[item.task], 'the task is not here')
    local from = ffi.cast('struct sl_keyed *', ffi.cast('uintptr_t', item.address))
    if C.sl_keyed_take(rt.context:state(item.state).handle, from) < 0 then
      error(tostring(select(2, err.last())), 0)
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

--- Attaches and opens request.tasks; they begin nothing before they are let.
local function ready(self, request)
  for _, id in ipairs(request.tasks) do
    local problem = self:add(id, true)
    if problem then error(problem, 0) end
  end
  return {}
end

local function hold(self, request)
  self:hold(request.is_held, request.has_way)
  return {}
end

local requests = { export = export, measure = measure, adopt = adopt, commit = commit, ready = ready,
  hold = hold }

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
