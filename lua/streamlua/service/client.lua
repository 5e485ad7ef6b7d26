-- A client of an HTTP API, with the functions of a client of a cluster (streamlua.cluster): commands
-- do not see which of them they have.
--
--   local service = require 'streamlua.service.client'
--   local client = assert(service.open({ url = 'http://127.0.0.1:9000' }))
--   for _, name in ipairs(assert(client:names())) do print(name) end

local abi = require 'streamlua.abi'
local base64 = require 'streamlua.service.base64'
local curl = require 'streamlua.service.curl'
local err = require 'streamlua.err'
local form = require 'streamlua.service.form'
local json = require 'streamlua.json'
local native = require 'streamlua.topology.native'

local C, ffi = abi.C, abi.ffi

local M = {}

-- How much longer than the server a client waits, and what a look may take.
local MARGIN_MS, LOOK_MS = 30000, 60000
-- What an update may take besides waiting for the lock and draining.
local UPDATE_MS = 240000
-- How often it is asked how far an update is, and how long an answer to that may take.
local PROGRESS_MS, PROGRESS_LIMIT_MS = 300, 10000

local Client = {}
Client.__index = Client

--- Opens a client. Options: `url`, `secret` (of the cluster), `progress` (called with a line about what is
--- going on).
---@param options table
---@return table? client
---@return streamlua.Error?
function M.open(options)
  local url = options.url:gsub('/+$', '')
  local prefix = url:match('^https?://[^/]+(.*)$')
  if not prefix then
    return nil, err.new('EINVAL', ("service URL '%s': http://HOST:PORT is expected"):format(
      options.url))
  end
  return setmetatable({ url = url, prefix = prefix, secret = options.secret or '',
    progress = options.progress }, Client)
end

--- Nothing is open between requests.
function Client.close() end

-- The line that proves the secret; docs/cli.md tells its form.
local function proof(self, method, target, body)
  local nonce = ffi.string(C.sl_abi_http_nonce())
  local hash = ffi.string(C.sl_abi_http_hash(ffi.cast('const uint8_t *', body), #body))
  local time = ('%d'):format(os.time())
  local text = table.concat({ 'streamlua request', method, target, time, nonce, hash, '' }, '\n')
  local mac = ffi.string(C.sl_abi_http_mac(self.secret, text, #text))
  return ('Authorization: streamlua-hmac time=%s, nonce=%s, body=%s, mac=%s'):format(time, nonce,
    hash, mac), nonce
end

local function is_proven(self, nonce, answer)
  local hash = ffi.string(C.sl_abi_http_hash(ffi.cast('const uint8_t *', answer.body),
    #answer.body))
  local text = table.concat({ 'streamlua answer', nonce, ('%d'):format(answer.status), hash, '' },
    '\n')
  return ffi.string(C.sl_abi_http_mac(self.secret, text, #text))
    == answer.headers['streamlua-proof']
end

-- The error of an answer: in the words and with the code of the core where they are given.
local function failure_of(self, answer, document)
  local found = type(document) == 'table' and document.error
  if type(found) ~= 'table' or type(found.message) ~= 'string' then
    return err.new('EUNAVAIL', ('%s answers with status %d and no document'):format(self.url,
      answer.status))
  end
  if type(found.reason) == 'string' then
    return err.new(found.reason, tostring(found.detail or found.message))
  end
  local errors = require 'streamlua.cli.error'
  return errors.new(found.code, found.message, nil, found.hint)
end

-- One request; the answer's document. options: body, type, timeout_ms.
local function call(self, method, path, options)
  local body = options and options.body or ''
  local target = self.prefix .. path
  local headers, nonce = { 'Expect:', 'Accept: application/json' }, nil
  if self.secret ~= '' then headers[3], nonce = proof(self, method, target, body) end
  if options and options.type then headers[#headers + 1] = 'Content-Type: ' .. options.type end
  local answer, failure = curl.request({ method = method, url = self.url .. path,
    headers = headers, body = method ~= 'GET' and body or nil,
    timeout_ms = options and options.timeout_ms or LOOK_MS,
    meanwhile = options and options.meanwhile, every_ms = PROGRESS_MS })
  if not answer then
    failure.message = ('%s: %s'):format(self.url, failure.message)
    return nil, failure
  end
  if nonce and answer.status ~= 401 and not is_proven(self, nonce, answer) then
    return nil, err.new('EUNAVAIL', self.url .. ' does not know the secret of this cluster')
  end
  local document = json.decode(answer.body)
  if answer.status < 200 or answer.status > 299 or type(document) ~= 'table' then
    return nil, failure_of(self, answer, document), document
  end
  return document
end

local function topology_path(name, rest)
  return '/api/v1/topologies/' .. form.encode(name) .. (rest or '')
end

local function post_json(self, path, value, timeout_ms, meanwhile)
  local text, failure = json.encode(value)
  if not text then return nil, err.new('EINVAL', tostring(failure)) end
  return call(self, 'POST', path, { body = text, type = 'application/json',
    timeout_ms = timeout_ms, meanwhile = meanwhile })
end

--- What the API serves: {cluster=, launcher=, scheduler=}.
function Client:cluster() return call(self, 'GET', '/api/v1/cluster') end

--- As streamlua.cluster's.
function Client:names()
  local document, failure = call(self, 'GET', '/api/v1/topologies')
  if not document then return nil, failure end
  local names = {}
  for i, item in ipairs(document.topologies) do names[i] = item.name end
  return names
end

--- What `streamlua list` says of each topology.
function Client:list()
  local document, failure = call(self, 'GET', '/api/v1/topologies')
  return document and document.topologies, failure
end

--- As streamlua.cluster's.
function Client:load(name)
  local topology, failure = call(self, 'GET', topology_path(name, '/stored'))
  if not topology then return nil, failure end
  topology.definition = base64.decode(topology.definition or '')
  local handle
  handle, failure = native.decode(topology.definition or '')
  if not handle then return nil, failure end
  topology.described, failure = native.describe(handle)
  if not topology.described then return nil, failure end
  return topology
end

--- As streamlua.cluster's.
function Client:package(name)
  local code, failure = call(self, 'GET', topology_path(name, '/package'))
  if not code then return nil, failure end
  for _, file in ipairs(code.files) do file.content = base64.decode(file.content) end
  return code
end

--- As streamlua.cluster's.
function Client:status(name)
  return call(self, 'GET', topology_path(name, '/status'))
end

--- As streamlua.cluster's.
function Client:submit(wanted)
  local code = wanted.package
  local parts = {
    { name = 'name', content = wanted.name },
    { name = 'definition', filename = 'definition', content = wanted.definition },
    { name = 'plan', content = assert(json.encode(wanted.plan)) },
    { name = 'components', content = assert(json.encode(json.array(wanted.components))) },
    { name = 'cwd', content = wanted.cwd }, { name = 'user', content = wanted.user },
    { name = 'deactivated', content = tostring(not wanted.active) },
    { name = 'timeout', content = ('%dms'):format(wanted.timeout_ms) },
    { name = 'script', content = code.script }, { name = 'overrides', content = code.overrides },
    { name = 'defaults', content = code.defaults },
  }
  if wanted.schedule then
    parts[#parts + 1] = { name = 'schedule', content = assert(json.encode(wanted.schedule)) }
  end
  for _, file in ipairs(code.files) do
    parts[#parts + 1] = { name = 'file', filename = file.path, content = file.content }
  end
  local body, content_type = form.multipart_text(parts,
    'streamlua-' .. ffi.string(C.sl_abi_http_nonce()))
  local document, failure = call(self, 'POST', '/api/v1/topologies',
    { body = body, type = content_type, timeout_ms = wanted.timeout_ms + MARGIN_MS })
  return document and true, failure
end

--- As streamlua.cluster's.
function Client:set_active(name, active, timeout_ms)
  local document, failure = call(self, 'POST', topology_path(name, ('/%s?timeout=%dms'):format(
    active and 'activate' or 'deactivate', timeout_ms)), { timeout_ms = timeout_ms + MARGIN_MS })
  if not document then return nil, failure end
  return document.changed
end

--- As streamlua.cluster's.
function Client:restart(name, container, timeout_ms)
  local document, failure = post_json(self, '/restart',
    { topology = name, container = container, timeout_ms = timeout_ms }, timeout_ms + MARGIN_MS)
  return document and true, failure
end

-- A function that tells what happened to a topology since it was called last; nil when nobody wants to
-- know, or it can not be told.
local function progress_of(self, name)
  local path, limit = topology_path(name, '/status'), { timeout_ms = PROGRESS_LIMIT_MS }
  local status = self.progress and call(self, 'GET', path, limit)
  local seen = status and status.event_count
  return seen and function()
    status = call(self, 'GET', path, limit)
    for i = 1, status and #status.events or 0 do
      if status.event_count - #status.events + i > seen then self.progress(status.events[i].text) end
    end
    seen = status and status.event_count or seen
  end
end

--- As streamlua.cluster's. What happens meanwhile is told while it does.
function Client:update(current, proposed, components, options)
  local wait_ms = options.lock_ms + options.drain_ms + UPDATE_MS
  local tell = not options.dry_run and progress_of(self, current.topology) or nil
  local document, failure, whole = post_json(self, '/update', { current = current,
    proposed = proposed, components = json.array(components), options = options }, wait_ms, tell)
  if tell then tell() end
  if type(whole) == 'table' and whole.result then return whole.result end
  return document and document.result, failure
end

--- As streamlua.cluster's.
function Client:kill(name, wait_ms, timeout_ms, purge)
  local document, failure = post_json(self, '/kill',
    { topology = name, wait_ms = wait_ms, timeout_ms = timeout_ms, purge = purge or false },
    wait_ms + timeout_ms + MARGIN_MS)
  return document and true, failure
end

--- As streamlua.cluster's.
function Client:logs(name, options)
  local query = {}
  for _, key in ipairs({ 'container', 'tail' }) do
    if options[key] then query[#query + 1] = ('%s=%d'):format(key, options[key]) end
  end
  for id, at in pairs(options.after or {}) do
    query[#query + 1] = ('after=%d:%d'):format(id, at)
  end
  if options.wait_ms then query[#query + 1] = ('wait=%dms'):format(options.wait_ms) end
  local document, failure = call(self, 'GET', topology_path(name, '/logs?'
    .. table.concat(query, '&')), { timeout_ms = LOOK_MS + (options.wait_ms or 0) })
  return document and document.logs, failure
end

return M
