--- Constants of the component API that several modules share.
--
--     assert(tostring(require('streamlua.runtime.constants').DONE) == 'streamlua.DONE')

local M = {}

--- What `next_tuple` returns when its source is exhausted.
M.DONE = setmetatable({}, { __tostring = function() return 'streamlua.DONE' end })

return M
