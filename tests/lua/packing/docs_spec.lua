-- The Lua of docs/packing.md runs as it stands. labels: short
local packing = require 'streamlua.packing'
local process = require 'support.process'

describe('docs/packing.md', function()
  local blocks = {}
  local text = process.read_file('docs/packing.md')
  for code in text:gmatch('```lua\n(.-)```') do blocks[#blocks + 1] = code end
  local documents = {}
  for code in text:gmatch('```json\n(.-)```') do documents[#documents + 1] = code end

  it('shows a packer that packs', function()
    process.with_folder(function(folder)
      process.write_file(folder .. '/one.lua', blocks[1])
      local plan = assert(packing.pack({ topology = 't', components = {
        { name = 's', kind = 'spout', parallelism = 3 } } }, folder .. '/one.lua'))
      assert.equal('one', plan.packing)
      assert.equal(4, plan.containers[1].cpu)
    end)
  end)

  it('shows calls that work', function()
    local written, printed = {}, {}
    local chunk = assert(loadstring(blocks[2]))
    setfenv(chunk, setmetatable({
      io = { write = function(part) written[#written + 1] = part end },
      print = function(value) printed[#printed + 1] = value end,
    }, { __index = _G }))
    chunk()
    assert.matches('^Total number of containers: 1\n', written[1])
    assert.same({ 2 }, printed)
  end)

  it('shows documents that are valid', function()
    local json = require 'streamlua.json'
    assert(packing.pack(assert(json.decode(documents[1]))))
    assert(packing.validate_plan(assert(json.decode(documents[2]))))
  end)
end)
