-- What ZooKeeper servers wrote down of a cluster, in their order, judged: nobody wrote as the leader of
-- something who was not it at that moment, and in the end nothing of the topologies is left.
--
--     local nodes = transactions.replay(transactions.read(ensemble:logs()), root)
--
-- The files are those of ZooKeeper 3.5 and later: a header, then for each transaction a checksum, a length,
-- the header and the body of the transaction in ZooKeeper's encoding (big-endian), and the letter B.

local M = {}

local CREATES = { [1] = true, [15] = true }
local DELETE, SET, MULTI, CLOSE_SESSION = 2, 5, 14, -11
local FILE_HEADER, RECORD_HEADER = 16, 12

local Reader = {}
Reader.__index = Reader

function Reader:bytes(count)
  local text = self.text:sub(self.at, self.at + count - 1)
  self.at = self.at + count
  return text
end

function Reader:int()
  local a, b, c, d = self.text:byte(self.at, self.at + 3)
  self.at = self.at + 4
  local value = ((a * 256 + b) * 256 + c) * 256 + d
  return value < 2 ^ 31 and value or value - 2 ^ 32
end

function Reader:buffer() return self:bytes(math.max(self:int(), 0)) end

local function reader(text, at) return setmetatable({ text = text, at = at or 1 }, Reader) end

local read_body

local function read_create(from)
  local op = { kind = 'create', path = from:buffer() }
  from:buffer()
  -- Who may do what.
  for _ = 1, from:int() do
    from:int()
    from:buffer()
    from:buffer()
  end
  op.is_ephemeral = from:bytes(1) == '\1'
  return op
end

-- Adds what a transaction did; one that failed did nothing.
function read_body(kind, from, ops)
  if CREATES[kind] then
    ops[#ops + 1] = read_create(from)
  elseif kind == DELETE then
    ops[#ops + 1] = { kind = 'delete', path = from:buffer() }
  elseif kind == SET then
    ops[#ops + 1] = { kind = 'set', path = from:buffer() }
  elseif kind == CLOSE_SESSION then
    ops[#ops + 1] = { kind = 'close' }
  elseif kind == MULTI then
    for _ = 1, from:int() do
      local inner = from:int()
      read_body(inner, reader(from:buffer()), ops)
    end
  end
end

local function read_file(path, by_id)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  local at = FILE_HEADER + 1
  while at + RECORD_HEADER < #text do
    local size = reader(text, at + 8):int()
    -- Files are made larger than what is in them, and a server that is killed may leave half a record.
    if size <= 0 or text:sub(at + RECORD_HEADER + size, at + RECORD_HEADER + size) ~= 'B' then break end
    local from = reader(text, at + RECORD_HEADER)
    local transaction = { session = from:bytes(8), ops = {} }
    from:int()
    transaction.id = from:bytes(8)
    from:bytes(8)
    local kind = from:int()
    read_body(kind, from, transaction.ops)
    by_id[transaction.id] = transaction
    at = at + RECORD_HEADER + size + 1
  end
end

--- Transactions that were carried out, in their order: those that most members wrote down. A leader that
--- lost the others may have written some that never were.
---@param members string[][] the files of each member
---@return table[] transactions {id=, session=, ops=}
function M.read(members)
  local counts, by_id, list = {}, {}, {}
  for _, paths in ipairs(members) do
    local own = {}
    for _, path in ipairs(paths) do read_file(path, own) end
    for id, transaction in pairs(own) do
      counts[id], by_id[id] = (counts[id] or 0) + 1, transaction
    end
  end
  for id, transaction in pairs(by_id) do
    if 2 * counts[id] > #members then list[#list + 1] = transaction end
  end
  -- Eight bytes each, the first one the highest.
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

-- The folder of the lock whose holder alone may write a path; nil for what is nobody's.
local function lock_of(path, session, candidates)
  local part, topology = path:match('^/(%a+)/([^/]+)')
  if part == 'plans' or part == 'physicalplans' or part == 'executionstates' then
    -- Changed by the topology's own master, made, moved and removed by those of the cluster.
    return candidates['/leaders/master/lock'][session] and '/leaders/master/lock'
      or '/leaders/topology/' .. topology .. '/lock'
  end
  if part == 'topologies' or part == 'packages' or part == 'schedulings' or part == 'backups' then
    return '/leaders/master/lock'
  end
end

-- Which sessions ever stood for which lock.
local function find_candidates(list, root)
  local candidates = { ['/leaders/master/lock'] = {} }
  for _, transaction in ipairs(list) do
    for _, op in ipairs(transaction.ops) do
      local folder = op.kind == 'create' and op.path:sub(#root + 1):match('^(/leaders/.*/lock)/')
      if folder then
        candidates[folder] = candidates[folder] or {}
        candidates[folder][transaction.session] = true
      end
    end
  end
  return candidates
end

-- The session that holds a lock: the one of the lowest child.
local function holder(nodes, folder)
  local lowest, session
  for path, owner in pairs(nodes) do
    if path:sub(1, #folder + 1) == folder .. '/' then
      local number = tonumber(path:match('(%d+)$'))
      if not lowest or number < lowest then lowest, session = number, owner end
    end
  end
  return session
end

local function apply(nodes, op, session)
  if op.kind == 'create' then
    nodes[op.path] = op.is_ephemeral and session or ''
  elseif op.kind == 'delete' then
    nodes[op.path] = nil
  elseif op.kind == 'close' then
    for path, owner in pairs(nodes) do
      if owner == session then nodes[path] = nil end
    end
  end
end

local function hexadecimal(text)
  return (text:gsub('.', function(byte) return ('%02x'):format(byte:byte()) end))
end

--- Nodes below the root after all of these transactions: path -> session of an ephemeral one, else ''.
--- Raises when somebody wrote who was not the leader.
---@param list table[]
---@param root string
---@return table<string, string>
function M.replay(list, root)
  local candidates, nodes = find_candidates(list, root), {}
  for _, transaction in ipairs(list) do
    local done = {}
    for i, op in ipairs(transaction.ops) do
      done[i] = { kind = op.kind, path = op.path and op.path:sub(#root + 1), is_ephemeral = op.is_ephemeral }
      local path = done[i].path
      local folder = path and path:find('^/%a+/[^/]') and lock_of(path, transaction.session, candidates)
      if folder and holder(nodes, folder) ~= transaction.session then
        error(('transaction %s: session %s changed %s (%s) and does not hold %s'):format(
          hexadecimal(transaction.id), hexadecimal(transaction.session), path, op.kind, folder), 0)
      end
    end
    for _, op in ipairs(done) do apply(nodes, op, transaction.session) end
  end
  return nodes
end

return M
