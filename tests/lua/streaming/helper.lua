--- Helpers of the specs of DStreams: batches as the reference writes them.
--
--     helper.sets(out)     each batch as one text, sorted: "a2 b1"

local streaming = require 'streamlua.streaming'

local files = require 'support.files'
local lfs = require 'lfs'
local stdlib = require 'posix.stdlib'

local M = {}

local folder

--- A folder of the present test, in memory where the system has such a place: checkpoints are synced to
--- their disk many times a test.
function M.folder()
  if not folder then
    local base = lfs.attributes('/dev/shm', 'mode') == 'directory' and '/dev/shm' or os.getenv('TMPDIR') or '/tmp'
    folder = assert(stdlib.mkdtemp(base .. '/streamlua-XXXXXX'))
  end
  return folder
end

--- Writes a file in a folder, which is made.
function M.write(dir, name, text)
  lfs.mkdir(dir)
  local file = assert(io.open(dir .. '/' .. name, 'wb'))
  file:write(text)
  file:close()
end

--- Ends what a test that failed left running, and removes its folder.
function M.clean()
  local left = streaming.active()
  if left then left:stop() end
  if folder then files.remove(folder) end
  folder = nil
end

local function text_of(item)
  if item == streaming.NONE then return 'nil' end
  if type(item) == 'table' then
    local parts = {}
    for i = 1, #item do parts[i] = text_of(item[i]) end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  return tostring(item)
end

--- A record: pairs as "key:value".
local function record_text(record)
  if type(record) == 'table' and #record == 2 and type(record[1]) ~= 'table' then
    return ('%s:%s'):format(record[1], text_of(record[2]))
  end
  return text_of(record)
end

--- Each batch as a text; sorted unless ordered.
function M.texts(out, is_ordered)
  local texts = {}
  for i, batch in ipairs(out) do
    local parts = {}
    for j, record in ipairs(batch) do parts[j] = record_text(record) end
    if not is_ordered then table.sort(parts) end
    texts[i] = table.concat(parts, ' ')
  end
  return texts
end

--- Words "a,a,b" as a list; '' = an empty batch, '""' = an empty word, 'nil' = no dataset.
local function words(text)
  if text == 'nil' then return false end
  local list = {}
  for word in text:gmatch('[^,%s]+') do
    if word == '""' then word = '' end
    list[#list + 1] = tonumber(word) or word
  end
  return list
end

--- Batches written "a,b / c / {} / nil".
function M.batches(text)
  local lists = {}
  for batch in (text .. '/'):gmatch('%s*(.-)%s*/') do
    lists[#lists + 1] = words(batch == '{}' and '' or batch)
  end
  return lists
end

--- Expected batches written "a:2 b:1 / {}": sorted texts.
function M.expected(text)
  local out = {}
  for batch in (text .. '/'):gmatch('%s*(.-)%s*/') do
    local parts = {}
    if batch ~= '{}' then
      for part in batch:gmatch('%S+') do
        parts[#parts + 1] = part:gsub('^"":', ':')
      end
    end
    table.sort(parts)
    out[#out + 1] = table.concat(parts, ' ')
  end
  return out
end

function M.pair_with_one(word) return { word, 1 } end
function M.add(a, b) return a + b end
function M.subtract(a, b) return a - b end

return M
