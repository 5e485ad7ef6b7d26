-- HTTP requests by libcurl, which is loaded with this module: only commands that talk to an HTTP
-- API need it. No function of Lua is called from C: the answer is written to a stream in memory.
--
--   local curl = require 'streamlua.service.curl'
--   local answer, failure = curl.request({ method = 'GET', url = 'http://127.0.0.1:9000/api/v1/version',
--     headers = {}, timeout_ms = 1000 })
--   assert(answer.status == 200)

local ffi = require 'ffi'

local err = require 'streamlua.err'
local libc = require 'streamlua.connectors.libc'

-- The part of libcurl and of the C library that is used.
ffi.cdef [[
typedef struct sl_curl sl_curl;
struct sl_curl_list { char *data; struct sl_curl_list *next; };
sl_curl *curl_easy_init(void);
int curl_easy_setopt(sl_curl *handle, int option, ...);
int curl_easy_perform(sl_curl *handle);
int curl_easy_getinfo(sl_curl *handle, int info, ...);
void curl_easy_cleanup(sl_curl *handle);
const char *curl_easy_strerror(int code);
typedef struct sl_curl_multi sl_curl_multi;
struct sl_curl_message { int kind; sl_curl *easy; union { void *whatever; int result; } data; };
sl_curl_multi *curl_multi_init(void);
int curl_multi_add_handle(sl_curl_multi *multi, sl_curl *handle);
int curl_multi_remove_handle(sl_curl_multi *multi, sl_curl *handle);
int curl_multi_perform(sl_curl_multi *multi, int *running);
int curl_multi_poll(sl_curl_multi *multi, void *extra, unsigned count, int timeout_ms, int *ready);
struct sl_curl_message *curl_multi_info_read(sl_curl_multi *multi, int *left);
int curl_multi_cleanup(sl_curl_multi *multi);
struct sl_curl_list *curl_slist_append(struct sl_curl_list *list, const char *text);
void curl_slist_free_all(struct sl_curl_list *list);
void *open_memstream(char **data, size_t *size);
int fclose(void *stream);
]]

local M = {}

local OPTION = { URL = 10002, WRITEDATA = 10001, ERRORBUFFER = 10010, POSTFIELDS = 10015,
  HTTPHEADER = 10023, HEADERDATA = 10029, CUSTOMREQUEST = 10036, NOPROXY = 10177, NOSIGNAL = 99,
  TIMEOUT_MS = 155, CONNECTTIMEOUT_MS = 156, PROTOCOLS = 181, POSTFIELDSIZE = 30120 }
-- http and https.
local PROTOCOLS = 3
local RESPONSE_CODE = 0x200002
local CONNECT_MS = 10000
-- What libcurl says of a server that is not there, and of one that does not answer in time.
local UNREACHABLE = { [5] = true, [6] = true, [7] = true, [35] = true, [52] = true, [55] = true,
  [56] = true }
local TIMED_OUT = 28

local library

local function load()
  if library then return library end
  local ok, result = pcall(ffi.load, 'libcurl.so.4')
  if not ok then
    return nil, err.new('EUNAVAIL', 'libcurl.so.4 is not installed (Debian: libcurl4)')
  end
  library = result
  return library
end

-- A stream that collects what is written to it.
local function stream_new()
  local data, size = ffi.new('char *[1]'), ffi.new('size_t[1]')
  return { data = data, size = size, file = ffi.C.open_memstream(data, size) }
end

local function stream_text(stream)
  ffi.C.fclose(stream.file)
  local text = ffi.string(stream.data[0], stream.size[0])
  ffi.C.free(stream.data[0])
  return text
end

local function set(handle, name, value)
  library.curl_easy_setopt(handle, OPTION[name], value)
end

local function set_number(handle, name, value) set(handle, name, ffi.cast('long', value)) end

local function failure_of(code, text)
  local word = #text > 0 and text or ffi.string(library.curl_easy_strerror(code))
  return err.new(code == TIMED_OUT and 'ETIMEOUT' or UNREACHABLE[code] and 'EUNAVAIL' or 'EIO', word)
end

-- Header lines of the last answer, names in lower case.
local function headers_of(text)
  local headers = {}
  for name, value in text:gmatch('\n([%w%-]+):[ \t]*([^\r\n]*)') do headers[name:lower()] = value end
  return headers
end

-- The transfer, with a function that is called again and again until it is over.
local function transfer_with(handle, every_ms, meanwhile)
  local multi, running = library.curl_multi_init(), ffi.new('int[1]')
  local next_s = libc.clock_s('mono') + every_ms / 1000
  library.curl_multi_add_handle(multi, handle)
  repeat
    library.curl_multi_perform(multi, running)
    local left_ms = math.max(0, math.ceil((next_s - libc.clock_s('mono')) * 1000))
    if running[0] > 0 then library.curl_multi_poll(multi, nil, 0, left_ms, nil) end
    if libc.clock_s('mono') >= next_s then
      meanwhile()
      next_s = libc.clock_s('mono') + every_ms / 1000
    end
  until running[0] == 0
  local message = library.curl_multi_info_read(multi, running)
  local code = message ~= nil and message.data.result or 0
  library.curl_multi_remove_handle(multi, handle)
  library.curl_multi_cleanup(multi)
  return code
end

local function perform(handle, request, keep)
  local body, head = stream_new(), stream_new()
  local message, list = ffi.new('char[256]'), nil
  for _, line in ipairs(request.headers or {}) do list = library.curl_slist_append(list, line) end
  keep[1], keep[2] = message, list
  set(handle, 'URL', ffi.cast('const char *', request.url))
  set(handle, 'CUSTOMREQUEST', ffi.cast('const char *', request.method))
  set(handle, 'WRITEDATA', body.file)
  set(handle, 'HEADERDATA', head.file)
  set(handle, 'ERRORBUFFER', message)
  set(handle, 'HTTPHEADER', list)
  set(handle, 'NOPROXY', ffi.cast('const char *', '*'))
  set_number(handle, 'NOSIGNAL', 1)
  set_number(handle, 'PROTOCOLS', PROTOCOLS)
  set_number(handle, 'CONNECTTIMEOUT_MS', math.min(CONNECT_MS, request.timeout_ms))
  set_number(handle, 'TIMEOUT_MS', request.timeout_ms)
  if request.body then
    set(handle, 'POSTFIELDSIZE', ffi.cast('int64_t', #request.body))
    set(handle, 'POSTFIELDS', ffi.cast('const char *', request.body))
  end
  local code = request.meanwhile and transfer_with(handle, request.every_ms, request.meanwhile)
    or library.curl_easy_perform(handle)
  local status = ffi.new('long[1]')
  library.curl_easy_getinfo(handle, RESPONSE_CODE, status)
  library.curl_slist_free_all(list)
  local answer = { status = tonumber(status[0]), body = stream_text(body) }
  answer.headers = headers_of(stream_text(head))
  if code ~= 0 then return nil, failure_of(code, ffi.string(message)) end
  return answer
end

--- One request: {method=, url=, headers= list of lines, body=, timeout_ms=}, and with `meanwhile` a function
--- that is called each `every_ms` while the answer is not there. The answer is {status=, headers= by name
--- in lower case, body=}. EUNAVAIL: no such server; ETIMEOUT.
---@param request table
---@return table? answer
---@return streamlua.Error?
function M.request(request)
  local found, failure = load()
  if not found then return nil, failure end
  local handle = found.curl_easy_init()
  if handle == nil then return nil, err.new('EIO', 'libcurl does not start') end
  local keep = {}
  local answer
  answer, failure = perform(handle, request, keep)
  found.curl_easy_cleanup(handle)
  return answer, failure
end

return M
