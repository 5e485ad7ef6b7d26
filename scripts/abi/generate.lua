--- Writes abi/abi.h, abi_text.c and abi_layout.c from the bare headers.
-- Usage: luajit scripts/abi/generate.lua ROOT OUTPUT_FOLDER

local root, folder = arg[1], arg[2]
local header = dofile(root .. '/scripts/abi/bare_header.lua')

local function write(name, lines)
  local file = assert(io.open(folder .. '/' .. name, 'wb'))
  assert(file:write(table.concat(lines, '\n'), '\n'))
  assert(file:close())
end

-- Structs of a room come through the room's wrapper; the prototypes are exported here.
local function abi_h()
  local out = {
    '#pragma once', '',
    '#include <stdbool.h>', '#include <stddef.h>', '#include <stdint.h>', '',
  }
  for _, path in ipairs(header.order(root)) do
    if path:find('^abi/') then
      out[#out + 1] = '#pragma GCC visibility push(default)'
      out[#out + 1] = '#include "' .. path .. '"'
      out[#out + 1] = '#pragma GCC visibility pop'
    else
      out[#out + 1] = '#include "' .. path:gsub('%.abi%.h$', '.h') .. '"'
    end
  end
  return out
end

local ESCAPES = { ['\\'] = '\\\\', ['"'] = '\\"', ['\t'] = '\\t', ['\r'] = '\\r', ['?'] = '\\?' }

local function abi_text()
  local out = { '#include "abi/abi.h"', '', 'const char *', 'sl_abi_text(void)', '{',
    '    static const char text[] =' }
  for line in header.text(root):gmatch('([^\n]*)\n') do
    out[#out + 1] = '        "' .. line:gsub('[\\"\t\r?]', ESCAPES) .. '\\n"'
  end
  out[#out + 1] = '        "";'
  out[#out + 1] = '    return text;'
  out[#out + 1] = '}'
  return out
end

local function abi_layout()
  local out = { '#include "abi/abi.h"', '', 'static const struct sl_abi_layout LAYOUTS[] = {' }
  for _, d in ipairs(header.parse(header.text(root))) do
    if (d.kind == 'struct' or d.kind == 'union') and d.name ~= '' then
      local ctype = d.kind .. ' ' .. d.name
      out[#out + 1] = ('    {"%s", "", 0, (uint32_t)sizeof(%s)},'):format(ctype, ctype)
      for _, field in ipairs(d.fields) do
        if not field.bitfield then
          local size = field.flexible and '0'
            or ('(uint32_t)sizeof(((%s *)0)->%s)'):format(ctype, field.name)
          out[#out + 1] = ('    {"%s", "%s", (uint32_t)offsetof(%s, %s), %s},'):format(
            ctype, field.name, ctype, field.name, size)
        end
      end
    end
  end
  for _, line in ipairs {
    '};', '',
    'int32_t', 'sl_abi_layout_count(void)', '{',
    '    return (int32_t)(sizeof(LAYOUTS) / sizeof(LAYOUTS[0]));', '}', '',
    'const struct sl_abi_layout *', 'sl_abi_layouts(void)', '{', '    return LAYOUTS;', '}',
  } do out[#out + 1] = line end
  return out
end

write('abi/abi.h', abi_h())
write('abi_text.c', abi_text())
write('abi_layout.c', abi_layout())
