-- Where the files of this installation are: the Lua tree and, beside it, conf/.
-- The Lua tree is where this very module was loaded from, so a build tree, an installation and
-- STREAMLUA_HOME need no separate rules here.
--
--   local home = require 'streamlua.home'
--   print(home.lua_directory(), home.conf_directory())

local M = {}

local function own_path()
  local source = debug.getinfo(1, 'S').source
  return source:sub(1, 1) == '@' and source:sub(2) or nil
end

local function exists(path)
  local file = io.open(path, 'r')
  if file then
    file:close()
  end
  return file ~= nil
end

--- Directory that holds streamlua/init.lua, without a slash at the end; nil when the Lua tree is
--- not made of files.
---@return string?
function M.lua_directory()
  local path = own_path()
  local directory = path and path:match('^(.*)/streamlua/home%.lua$')
  if not directory and path == 'streamlua/home.lua' then
    directory = '.'
  end
  return directory
end

--- Directory of the shipped cluster configurations, nil when there is none.
---@return string?
function M.conf_directory()
  local places = {}
  local environment = os.getenv('STREAMLUA_HOME')
  if environment and environment ~= '' then
    places[#places + 1] = environment .. '/conf'
    places[#places + 1] = environment .. '/share/streamlua/conf'
  end
  local lua = M.lua_directory()
  if lua then
    places[#places + 1] = lua .. '/../conf'
    places[#places + 1] = lua .. '/conf'
  end
  for _, place in ipairs(places) do
    if exists(place .. '/local.lua') then
      return place
    end
  end
end

--- The state directory's parent that XDG names: $XDG_STATE_HOME or ~/.local/state.
---@return string
function M.state_home()
  local state = os.getenv('XDG_STATE_HOME')
  if state and state:sub(1, 1) == '/' then
    return state
  end
  return (os.getenv('HOME') or '.') .. '/.local/state'
end

--- The user's configuration directory: $XDG_CONFIG_HOME or ~/.config, nil without a home.
---@return string?
function M.config_home()
  local config = os.getenv('XDG_CONFIG_HOME')
  if config and config:sub(1, 1) == '/' then
    return config
  end
  local user = os.getenv('HOME')
  return user and user .. '/.config'
end

return M
