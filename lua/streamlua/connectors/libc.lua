-- The part of the C library that connectors and the command line use: descriptors, poll, memory
-- search, globs, terminals. This is the only `ffi.cdef` of these names (the house rule: one module
-- a foreign library). Everything here is a thin call; errors come back as `nil, message, errno`.
--
--   local libc = require 'streamlua.connectors.libc'
--   local fd = assert(libc.open('/etc/hostname'))
--   libc.close(fd)

local ffi = require 'ffi'
local bit = require 'bit'

local M = {}

ffi.cdef [[
int open(const char *path, int flags, ...);
int close(int fd);
ssize_t read(int fd, void *data, size_t size);
ssize_t write(int fd, const void *data, size_t size);
int64_t lseek64(int fd, int64_t offset, int whence);
void *memchr(const void *data, int byte, size_t size);
void *memmove(void *to, const void *from, size_t size);
char *strerror(int code);
int isatty(int fd);
int access(const char *path, int mode);
int getpid(void);
int mkdir(const char *path, unsigned int mode);
int unlink(const char *path);
char *realpath(const char *path, char *resolved);
void *malloc(size_t size);
void *realloc(void *data, size_t size);
void free(void *data);
int raise(int signal);
void *signal(int signal, void *handler);
struct sl_libc_pollfd { int fd; short events; short revents; };
int poll(struct sl_libc_pollfd *fds, unsigned long count, int timeout_ms);
struct sl_libc_winsize { unsigned short rows, columns, x, y; };
int ioctl(int fd, unsigned long request, ...);
struct sl_libc_glob {
  size_t count;
  char **paths;
  size_t offset;
  int flags;
  void *hooks[5];
};
int glob(const char *pattern, int flags, void *on_error, struct sl_libc_glob *result);
void globfree(struct sl_libc_glob *result);
struct sl_libc_statx_time { int64_t sec; uint32_t nsec; int32_t reserved; };
struct sl_libc_statx {
  uint32_t mask, block_size;
  uint64_t attributes;
  uint32_t links, uid, gid;
  uint16_t mode, spare0;
  uint64_t inode, size, blocks, attributes_mask;
  struct sl_libc_statx_time accessed, born, changed, modified;
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
  uint64_t spare[14];
};
int statx(int directory, const char *path, int flags, unsigned int mask,
          struct sl_libc_statx *result);
struct sl_libc_rlimit { uint64_t current, maximum; };
int getrlimit(int resource, struct sl_libc_rlimit *limit);
struct sl_libc_timespec { int64_t sec; long nsec; };
int clock_gettime(int clock, struct sl_libc_timespec *time);
]]

local C = ffi.C
M.C = C

local O_RDONLY, O_CLOEXEC = 0, 0x80000
local AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
local STATX_BASIC = 0x7ff
local TYPE_MASK, TYPE_DIRECTORY, TYPE_REGULAR = 0xf000, 0x4000, 0x8000
local POLLIN = 1

M.EINTR, M.EAGAIN, M.ENOENT, M.EPIPE = 4, 11, 2, 32
M.SEEK_SET = 0
M.SIGPIPE = 13

--- Text of an errno value.
---@param code integer
---@return string
function M.message(code)
  return ffi.string(C.strerror(code))
end

local function failure()
  local code = ffi.errno()
  return nil, M.message(code), code
end

--- Opens a file for reading.
---@param path string
---@return integer? descriptor
---@return string? message
---@return integer? errno
function M.open(path)
  local fd = C.open(path, bit.bor(O_RDONLY, O_CLOEXEC))
  if fd < 0 then
    return failure()
  end
  return fd
end

--- Closes a descriptor; an error of close is of no use to a reader and is ignored.
function M.close(fd)
  C.close(fd)
end

local pollfd = ffi.new('struct sl_libc_pollfd[1]')

--- True when `read` of the descriptor would not block: data, an end or an error is there.
---@param fd integer
---@param timeout_ms integer? 0 when missing
---@return boolean
function M.readable(fd, timeout_ms)
  pollfd[0].fd = fd
  pollfd[0].events = POLLIN
  pollfd[0].revents = 0
  return C.poll(pollfd, 1, timeout_ms or 0) > 0 and pollfd[0].revents ~= 0
end

local function stat_of(directory, path, flags)
  local result = ffi.new('struct sl_libc_statx')
  if C.statx(directory, path, flags, STATX_BASIC, result) ~= 0 then
    return failure()
  end
  local kind = bit.band(result.mode, TYPE_MASK)
  return {
    size = tonumber(result.size),
    -- Device and inode identify a file; text keeps all 64 bits.
    identity = ('%d:%d:%s'):format(result.dev_major, result.dev_minor, tostring(result.inode)),
    kind = kind == TYPE_DIRECTORY and 'directory' or kind == TYPE_REGULAR and 'file' or 'other',
    modified_s = tonumber(result.modified.sec),
    mode = bit.band(result.mode, 0xfff),
  }
end

--- Size (bytes), identity, kind ('file', 'directory', 'other'), mode bits and modification time
--- (seconds) of a path, symbolic links followed.
function M.stat(path)
  return stat_of(AT_FDCWD, path, 0)
end

--- The same for an open descriptor.
function M.fstat(fd)
  return stat_of(fd, '', AT_EMPTY_PATH)
end

--- Moves the read position to `offset` bytes from the start.
function M.seek(fd, offset)
  if C.lseek64(fd, offset, M.SEEK_SET) < 0 then
    return failure()
  end
  return true
end

--- Paths that match a shell pattern, sorted; an empty list when none does.
---@param pattern string
---@return string[]
function M.glob(pattern)
  local result = ffi.new('struct sl_libc_glob')
  local paths = {}
  if C.glob(pattern, 0, nil, result) == 0 then
    for i = 0, tonumber(result.count) - 1 do
      paths[#paths + 1] = ffi.string(result.paths[i])
    end
  end
  C.globfree(result)
  return paths
end

--- True when the descriptor is a terminal.
function M.is_terminal(fd)
  return C.isatty(fd) == 1
end

--- Columns of the terminal behind a descriptor, or nil.
function M.columns(fd)
  local size = ffi.new('struct sl_libc_winsize')
  local TIOCGWINSZ = 0x5413
  if C.ioctl(fd, TIOCGWINSZ, size) == 0 and size.columns > 0 then
    return size.columns
  end
end

--- Path without symbolic links, or nil and the reason.
function M.realpath(path)
  local resolved = C.realpath(path, nil)
  if resolved == nil then
    return failure()
  end
  local text = ffi.string(resolved)
  C.free(resolved)
  return text
end

--- Limit on open descriptors: the one in force and the highest allowed.
---@return number current, number maximum
function M.descriptor_limit()
  local RLIMIT_NOFILE = 7
  local limit = ffi.new('struct sl_libc_rlimit')
  C.getrlimit(RLIMIT_NOFILE, limit)
  return tonumber(limit.current), tonumber(limit.maximum)
end

--- Seconds of a clock: 'wall' (since the epoch) or 'mono'.
function M.clock_s(name)
  local time = ffi.new('struct sl_libc_timespec')
  C.clock_gettime(name == 'wall' and 0 or 1, time)
  return tonumber(time.sec) + tonumber(time.nsec) / 1e9
end

--- Ends the process the way a filter ends whose reader went away: quietly, by SIGPIPE.
function M.end_by_broken_pipe()
  C.signal(M.SIGPIPE, nil)
  C.raise(M.SIGPIPE)
end

return M
