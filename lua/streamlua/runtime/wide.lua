--- Texts that are made for the fields of a stream: a form for one field is written out for each of them,
--- or, where that would be too long for a Lua function, once in a loop over the fields.
--
--     local wide = require 'streamlua.runtime.wide'
--     assert(wide.written_out.each(2, 'v# = s[@]') == 'v1 = s[0]\nv2 = s[1]')
--     assert(wide.looped.each(2, 'v# = s[@]') == 'for i = 1, 2 do\nv[i] = s[i - 1]\nend')
--
-- In a form # is the number of the field, @ that number less 1, and v#, b# are what the text holds of
-- the field: locals, or items of tables.

local abi = require 'streamlua.abi'

local C = abi.C

local M = {}

--- The most fields of a stream, and of a grouping, that are written out.
M.FIELDS_MOST, M.KEYS_MOST = 64, 8

--- Whether what is emitted takes loops.
---@param emitter ffi.cdata* struct sl_emitter *
---@return boolean
function M.is_wide(emitter)
  if emitter.field_count > M.FIELDS_MOST then return true end
  for i = 0, emitter.route_count - 1 do
    if C.sl_abi_emitter_route(emitter, i).key_count > M.KEYS_MOST then return true end
  end
  return false
end

local function fill(form, number, before)
  return (form:gsub('#', number):gsub('@', before))
end

-- `from` to `to`, each by the form.
local function write_out(form, from, to, separator)
  local out = {}
  for i = from, to do out[#out + 1] = fill(form, i, i - 1) end
  return table.concat(out, separator or '\n')
end

local function in_tables(form) return (form:gsub('%f[%w]([vb])#', '%1[#]')) end

local function loop(form, from, to)
  if from > to then return '' end
  return ('for i = %d, %d do\n%s\nend'):format(from, to, fill(in_tables(form), 'i', 'i - 1'))
end

-- The form for every field but one, which has its own.
local function each(repeated, at_one)
  return function(count, form, special, special_form)
    if not special then return repeated(form, 1, count) end
    return table.concat({ repeated(form, 1, special - 1), at_one(special_form, special),
      repeated(form, special + 1, count) }, '\n')
  end
end

M.written_out = {
  each = each(write_out, function(form, i) return fill(form, i, i - 1) end),
  --- What a text calls the value of a field.
  value = function(i) return 'v' .. i end,
  --- Takes the values out of the user's table and declares what else is held of them.
  declare = function(count)
    if count == 0 then return '' end
    return ('local %s = %s\nlocal %s'):format(write_out('v#', 1, count, ', '),
      write_out('values[#]', 1, count, ', '), write_out('b#', 1, count, ', '))
  end,
}

M.looped = {
  each = each(loop, function(form, i) return fill(in_tables(form), i, i - 1) end),
  value = function(i) return ('v[%d]'):format(i) end,
  declare = function(count)
    return ('local v, b = new_table(%d, 0), {}\n'):format(count) .. loop('v# = values[#]', 1, count)
  end,
}

return M
