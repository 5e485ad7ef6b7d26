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
int fork(void);
int pipe2(int *ends, int flags);
int dup2(int from, int to);
int waitpid(int pid, int *status, int options);
int kill(int pid, int signal);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
void _exit(int code);
int mkdir(const char *path, unsigned int mode);
int unlink(const char *path);
char *realpath(const char *path, char *resolved);
long sysconf(int name);
void *malloc(size_t size);
void *realloc(void *data, size_t size);
void free(void *data);
int raise(int signal);
void *signal(int signal, void *handler);
struct sl_libc_pollfd { int fd; short events; short revents; };
int inotify_init1(int flags);
int inotify_add_watch(int fd, const char *path, uint32_t mask);
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
int setrlimit(int resource, const struct sl_libc_rlimit *limit);
struct sl_libc_timespec { int64_t sec; long nsec; };
int clock_gettime(int clock, struct sl_libc_timespec *time);
int fcntl(int fd, int command, ...);
int memfd_create(const char *name, unsigned int flags);
struct sl_libc_siginfo { int signal, error, code, reserved, pid, rest[27]; };
struct sl_libc_rusage { int64_t times[4]; int64_t resident_kib; int64_t rest[13]; };
int getrusage(int who, struct sl_libc_rusage *usage);
struct sl_libc_filter { uint16_t code; uint8_t if_true, if_false; uint32_t value; };
struct sl_libc_filter_program { unsigned short length; struct sl_libc_filter *code; };
int waitid(int kind, unsigned int id, struct sl_libc_siginfo *info, int options);
extern char **environ;
struct sl_libc_spawn_attr { uint64_t opaque[64]; };
struct sl_libc_spawn_files { uint64_t opaque[16]; };
int setenv(const char *name, const char *value, int overwrite);
int posix_spawnp(int *pid, const char *file, const struct sl_libc_spawn_files *files,
                 const struct sl_libc_spawn_attr *attr, char *const argv[], char *const envp[]);
int posix_spawnattr_init(struct sl_libc_spawn_attr *attr);
int posix_spawnattr_destroy(struct sl_libc_spawn_attr *attr);
int posix_spawnattr_setflags(struct sl_libc_spawn_attr *attr, short flags);
int posix_spawnattr_setpgroup(struct sl_libc_spawn_attr *attr, int group);
int posix_spawn_file_actions_init(struct sl_libc_spawn_files *files);
int posix_spawn_file_actions_destroy(struct sl_libc_spawn_files *files);
int posix_spawn_file_actions_adddup2(struct sl_libc_spawn_files *files, int fd, int to);
int posix_spawn_file_actions_addclosefrom_np(struct sl_libc_spawn_files *files, int from);
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
M.SIGPIPE, M.SIGKILL = 13, 9

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
    modified_ms = tonumber(result.modified.sec) * 1000 + math.floor(result.modified.nsec / 1000000),
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

-- Of <unistd.h>.
local PROCESSORS_ONLINE = 84

--- How many processors this machine has; at least 1.
---@return integer
function M.processors() return math.max(1, tonumber(C.sysconf(PROCESSORS_ONLINE))) end

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

--- A pipe: the end to read from and the end to write to, closed by programs that are started.
---@return integer? reader
---@return integer|string writer or the message
---@return integer? errno
function M.pipe()
  local ends = ffi.new('int[2]')
  if C.pipe2(ends, O_CLOEXEC) ~= 0 then
    return failure()
  end
  return ends[0], ends[1]
end

--- Splits the process: 0 in the child, the child's pid in the parent. The child ends itself with
--- `exit`, and is killed when the parent dies.
---@return integer? pid
---@return string? message
---@return integer? errno
function M.fork()
  local PR_SET_PDEATHSIG = 1
  -- What is buffered now must not be written twice.
  io.stdout:flush()
  io.stderr:flush()
  local pid = C.fork()
  if pid < 0 then
    return failure()
  elseif pid == 0 then
    C.prctl(PR_SET_PDEATHSIG, M.SIGKILL, 0, 0, 0)
  end
  return pid
end

--- Ends the process at once: no exit handlers, no buffers flushed.
function M.exit(code)
  C._exit(code)
end

--- A new name of a descriptor, closed by programs that are started.
---@return integer? fd
---@return string? message
---@return integer? errno
function M.dup(fd)
  local F_DUPFD_CLOEXEC = 1030
  local copy = C.fcntl(fd, F_DUPFD_CLOEXEC, ffi.cast('int', 3))
  if copy < 0 then
    return failure()
  end
  return copy
end

--- Makes descriptor `to` another name of `from`.
function M.dup2(from, to)
  if C.dup2(from, to) < 0 then
    return failure()
  end
  return to
end

--- Writes all of a text.
---@return boolean? ok
---@return string? message
---@return integer? errno
function M.write_all(fd, text)
  local at = 0
  while at < #text do
    local n = tonumber(C.write(fd, ffi.cast('const char *', text) + at, #text - at))
    if n < 0 and ffi.errno() ~= M.EINTR then
      return failure()
    end
    at = at + math.max(n, 0)
  end
  return true
end

local READ_SIZE = 65536

--- Reads what is there, at most 64 KiB; '' at the end.
---@return string? text
---@return string? message
---@return integer? errno
function M.read_some(fd)
  local buffer = ffi.new('char[?]', READ_SIZE)
  local n = tonumber(C.read(fd, buffer, READ_SIZE))
  if n < 0 then
    return failure()
  end
  return ffi.string(buffer, n)
end

--- A descriptor that can be read when a file given to `watch_file` was written to.
---@return integer? fd
---@return string? message
---@return integer? errno
function M.watch_files()
  local fd = C.inotify_init1(O_CLOEXEC)
  if fd < 0 then return failure() end
  return fd
end

--- Has a descriptor of `watch_files` tell of writes to a file.
---@return boolean? done
---@return string? message
---@return integer? errno
function M.watch_file(fd, path)
  if C.inotify_add_watch(fd, path, 2) < 0 then return failure() end
  return true
end

--- Sends a signal.
function M.kill(pid, signal)
  C.kill(pid, signal)
end

--- Waits for a child. Returns how it ended: 'exited' and its code, or 'killed' and the signal.
---@return string? how
---@return integer|string code
function M.wait(pid)
  local status = ffi.new('int[1]')
  while C.waitpid(pid, status, 0) < 0 do
    if ffi.errno() ~= M.EINTR then
      return failure()
    end
  end
  local signal = bit.band(status[0], 0x7f)
  if signal == 0 then
    return 'exited', bit.band(bit.rshift(status[0], 8), 0xff)
  end
  return 'killed', signal
end

--- Limits the memory that the process may add from now on, in bytes. Does nothing where the present
--- use can not tell (under a sanitizer, whose shadow counts as memory).
function M.limit_memory(bytes)
  local RLIMIT_DATA, PLAUSIBLE = 2, 2 ^ 36
  local file = io.open('/proc/self/statm')
  local text = file and file:read('*a') or ''
  if file then
    file:close()
  end
  local data = tonumber(text:match('^%d+ %d+ %d+ %d+ %d+ (%d+)'))
  if not data or data * 4096 > PLAUSIBLE then
    return
  end
  local limit = ffi.new('struct sl_libc_rlimit')
  if C.getrlimit(RLIMIT_DATA, limit) == 0 then
    limit.current = data * 4096 + bytes
    if limit.maximum < limit.current then
      limit.current = limit.maximum
    end
    C.setrlimit(RLIMIT_DATA, limit)
  end
end

--- Ends the process the way a filter ends whose reader went away: quietly, by SIGPIPE.
function M.end_by_broken_pipe()
  C.signal(M.SIGPIPE, nil)
  C.raise(M.SIGPIPE)
end

return M
