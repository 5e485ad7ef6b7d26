#include "cluster/local_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COMMAND_LINE_MAX = 16 * 1024, ARGUMENTS_MAX = 32 };

/* Reads the arguments of a process of ours; 0 when there are none. */
static size_t
read_arguments(int64_t pid, char *text, const char **arguments)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%lld/cmdline", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t size = fstat(fd, &status) == 0 && status.st_uid == geteuid()
                       ? read(fd, text, COMMAND_LINE_MAX - 1)
                       : -1;
    close(fd);
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

void
sl_local_processes_each(const char *state_url, const char *topology, sl_local_process_fn fn,
                        void *ctx)
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
        if (count < 6 || !is_role(arguments[1])) {
            continue;
        }
        const char *url = option_of(arguments, count, "--state");
        const char *name = option_of(arguments, count, "--topology");
        const char *container = option_of(arguments, count, "--container");
        if (url != NULL && name != NULL && strcmp(url, state_url) == 0 &&
            strcmp(name, topology) == 0) {
            fn(ctx, pid, arguments[1], container != NULL ? atoi(container) : -1);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
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
