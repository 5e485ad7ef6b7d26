-- The code of a topology as it is shipped: the script, the Lua modules that it loaded from beside it and
-- other files that it asked for, and the config it was submitted with. Plain data, so that it can come
-- from the child process that loaded the script.
--
--   local package = require 'streamlua.cluster.package'
--   local code = assert(package.build('topo.lua', load.modules(), { set = {}, defaults = {} }))
--   local struct, keep = package.to_struct(code)

local abi = require 'streamlua.abi'
local canonical = require 'streamlua.topology.canonical'
local err = require 'streamlua.err'
local libc = require 'streamlua.connectors.libc'

local C, ffi = abi.C, abi.ffi

local M = {}

local function read(path)
  local file, message = io.open(path, 'rb')
  if not file then return nil, err.new('EIO', message) end
  local text = file:read('*a')
  file:close()
  return text
end

-- Where a module stands in the package: it is found there as it was found beside the script.
local function module_path(name, path)
  local relative = name:gsub('%.', '/')
  return relative .. (path:find('/init%.lua$') and '/init.lua' or '.lua')
end

--- Reads the files of a topology. `modules` are those of streamlua.topology.load, by name; options
--- {set=, defaults=} are the config over and below the script's own, {files=} its other files.
---@param script string path
---@param modules table<string, string>
---@param options table
---@return table? code {script=, files= list of {path=, content=} sorted by path, overrides=,
---  defaults=}
---@return streamlua.Error?
function M.build(script, modules, options)
  local name = script:match('([^/]+)$')
  local paths = { [name] = script }
  for module, path in pairs(modules) do paths[module_path(module, path)] = path end
  for path, source in pairs(options.files or {}) do paths[path] = source end
  local files = {}
  for path, source in pairs(paths) do
    local content, failure = read(source)
    if not content then return nil, failure end
    files[#files + 1] = { path = path, content = content }
  end
  table.sort(files, function(a, b) return a.path < b.path end)
  local code = { script = name, files = files }
  for key, value in pairs({ overrides = options.set or {}, defaults = options.defaults or {} }) do
    local text, message = canonical.encode(value)
    if not text then return nil, err.new('EINVAL', message) end
    code[key] = text
  end
  return code
end

--- A package as the core takes it; keep the second result, and the code, while it is used.
---@param code table
---@return ffi.cdata* struct
---@return table keep
function M.to_struct(code)
  local files = ffi.new('struct sl_package_file[?]', #code.files)
  for i, file in ipairs(code.files) do
    files[i - 1].path, files[i - 1].size = file.path, #file.content
    files[i - 1].content = ffi.cast('const uint8_t *', file.content)
  end
  local struct = ffi.new('struct sl_package')
  struct.script, struct.files, struct.file_count = code.script, files, #code.files
  struct.overrides, struct.overrides_size = code.overrides, #code.overrides
  struct.defaults, struct.defaults_size = code.defaults, #code.defaults
  return struct, { files, code }
end

--- The code that a struct of the core holds.
---@param struct ffi.cdata*
---@return table code
function M.from_struct(struct)
  local files = {}
  for i = 0, tonumber(struct.file_count) - 1 do
    local file = struct.files[i]
    files[i + 1] = { path = ffi.string(file.path), content = ffi.string(file.content, file.size) }
  end
  return { script = ffi.string(struct.script), files = files,
    overrides = ffi.string(struct.overrides, struct.overrides_size),
    defaults = ffi.string(struct.defaults, struct.defaults_size) }
end

--- Writes the files of a package below a folder, which exists.
---@param code table
---@param folder string
---@return string? script path of the script
---@return streamlua.Error?
function M.unpack(code, folder)
  for _, item in ipairs(code.files) do
    local path = folder
    for part in item.path:gmatch('([^/]+)/') do
      path = path .. '/' .. part
      libc.C.mkdir(path, 448)
    end
    local file, message = io.open(folder .. '/' .. item.path, 'wb')
    local ok = file ~= nil
    if file then
      ok, message = file:write(item.content)
      file:close()
    end
    if not ok then return nil, err.new('EIO', message) end
  end
  return folder .. '/' .. code.script
end

--- SHA-256 of a package's files: the same code gives the same, whatever the config.
---@param code table
---@return string? hash
---@return streamlua.Error?
function M.hash(code)
  local struct, keep = M.to_struct(code)
  local hash = C.sl_abi_package_hash(struct)
  if hash == nil then return err.last() end
  return ffi.string(hash), keep and nil
end

return M
