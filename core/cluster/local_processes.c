#include "cluster/local_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    COMMAND_LINE_MAX = 16 * 1024,
    ARGUMENTS_MAX = 32,
    /* How long a process may take to begin, once the kernel has its program. */
    BEGIN_MS = 10000,
};

/* Reads the command line of a process of ours; -1 when it is none. */
static ssize_t
read_command_line(int64_t pid, char *text)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%lld/cmdline", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t size = fstat(fd, &status) == 0 && status.st_uid == geteuid()
                       ? read(fd, text, COMMAND_LINE_MAX - 1)
                       : -1;
    close(fd);
    return size;
}

/* The process has the program of this one. */
static bool
is_of_this_program(int64_t pid)
{
    char path[64];
    struct stat its;
    struct stat ours;
    snprintf(path, sizeof(path), "/proc/%lld/exe", (long long)pid);
    return stat(path, &its) == 0 && stat("/proc/self/exe", &ours) == 0 &&
           its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/*
 * Reads the arguments of a process of ours; 0 when there are none. Between two steps of execve() a
 * process has its program and no command line yet, for as long as it has to wait for a processor
 * there, while whoever started it knows already that it runs: that is waited for.
 */
static size_t
read_arguments(int64_t pid, char *text, const char **arguments)
{
    ssize_t size = read_command_line(pid, text);
    for (int i = 0; size == 0 && i < BEGIN_MS && is_of_this_program(pid); i++) {
        poll(NULL, 0, 1);
        size = read_command_line(pid, text);
    }
    size_t count = 0;
    for (ssize_t at = 0; at < size && count < ARGUMENTS_MAX;) {
        text[size] = '\0';
        arguments[count++] = text + at;
        at += (ssize_t)strlen(text + at) + 1;
    }
    return count;
}

static const char *
option_of(const char *const *arguments, size_t count, const char *name)
{
    for (size_t i = 2; i + 1 < count; i++) {
        if (strcmp(arguments[i], name) == 0) {
            return arguments[i + 1];
        }
    }
    return NULL;
}

static bool
is_role(const char *text)
{
    return strcmp(text, SL_ROLE_GUARDIAN) == 0 || strcmp(text, SL_ROLE_TOPOLOGY_MASTER) == 0 ||
           strcmp(text, SL_ROLE_WORKER) == 0;
}

/* Calls fn with the arguments of every process of ours that has a role. */
static void
each_role(void (*fn)(void *ctx, int64_t pid, const char *const *arguments, size_t count), void *ctx)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    char text[COMMAND_LINE_MAX];
    const char *arguments[ARGUMENTS_MAX];
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0])) {
            continue;
        }
        int64_t pid = strtoll(entry->d_name, NULL, 10);
        size_t count = read_arguments(pid, text, arguments);
        if (count >= 6 && is_role(arguments[1])) {
            fn(ctx, pid, arguments, count);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

static bool
is_option(const char *const *arguments, size_t count, const char *name, const char *wanted)
{
    const char *value = option_of(arguments, count, name);
    return value != NULL && strcmp(value, wanted) == 0;
}

struct each_call {
    const char *state_url;
    const char *name;
    sl_local_process_fn fn;
    void (*supervised_fn)(void *ctx, int64_t pid);
    void *ctx;
};

static void
each_of_topology(void *ctx, int64_t pid, const char *const *arguments, size_t count)
{
    const struct each_call *call = ctx;
    const char *container = option_of(arguments, count, "--container");
    if (is_option(arguments, count, "--state", call->state_url) &&
        is_option(arguments, count, "--topology", call->name)) {
        call->fn(call->ctx, pid, arguments[1], container != NULL ? atoi(container) : -1);
    }
}

void
sl_local_processes_each(const char *state_url, const char *topology, sl_local_process_fn fn,
                        void *ctx)
{
    struct each_call call = {.state_url = state_url, .name = topology, .fn = fn, .ctx = ctx};
    each_role(each_of_topology, &call);
}

static void
each_of_supervisor(void *ctx, int64_t pid, const char *const *arguments, size_t count)
{
    const struct each_call *call = ctx;
    if (is_option(arguments, count, "--state", call->state_url) &&
        is_option(arguments, count, "--supervisor", call->name)) {
        call->supervised_fn(call->ctx, pid);
    }
}

void
sl_local_processes_of_supervisor(const char *state_url, const char *supervisor,
                                 void (*fn)(void *ctx, int64_t pid), void *ctx)
{
    struct each_call call = {
        .state_url = state_url, .name = supervisor, .supervised_fn = fn, .ctx = ctx};
    each_role(each_of_supervisor, &call);
}

int
sl_local_process_watch(int64_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return fd;
}

static ssize_t
read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[count > 0 ? count : 0] = '\0';
    return count;
}

uint64_t
sl_local_process_start(int64_t pid)
{
    /* Field 22; the name, field 2, may have blanks and brackets in it. */
    enum { FIELDS_BEHIND_NAME = 20 };
    char path[64];
    char text[1024];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    if (read_file(path, text, sizeof(text)) <= 0) {
        return 0;
    }
    char *at = strrchr(text, ')');
    for (int i = 0; at != NULL && i < FIELDS_BEHIND_NAME; i++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

void
sl_local_boot_id(char text[SL_BOOT_ID_SIZE])
{
    read_file("/proc/sys/kernel/random/boot_id", text, SL_BOOT_ID_SIZE);
    text[strcspn(text, " \n")] = '\0';
    if (text[0] == '\0') {
        snprintf(text, SL_BOOT_ID_SIZE, "-");
    }
}
