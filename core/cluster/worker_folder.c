#include "cluster/worker_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"

#define PREFIX "streamlua-code-"

enum {
    /* Descriptors that removing one folder may use. */
    DEPTH = 16,
    /* Another worker may take a new folder for a dead one's before it is locked. */
    ATTEMPTS = 16,
};

static const char *
parent_folder(void)
{
    const char *parent = getenv("TMPDIR");
    return parent != NULL && parent[0] != '\0' ? parent : "/tmp";
}

static char *
join_dup(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *joined = sl_alloc(size);
    snprintf(joined, size, "%s/%s", folder, name);
    return joined;
}

static int
remove_entry(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)stat;
    (void)kind;
    (void)walk;
    remove(path);
    return 0;
}

static void
remove_tree(const char *path)
{
    nftw(path, remove_entry, DEPTH, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* A descriptor that holds the folder, or -1: it is somebody else's, held, or gone. */
static int
lock_folder(const char *path)
{
    struct stat stat;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &stat) == 0 && stat.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstat(fd, &stat) == 0 && stat.st_nlink > 0) {
        return fd;
    }
    close(fd);
    return -1;
}

static void
sweep(const char *parent)
{
    DIR *dir = opendir(parent);
    if (dir == NULL) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) != 0) {
            continue;
        }
        char *path = join_dup(parent, entry->d_name);
        int fd = lock_folder(path);
        if (fd >= 0) {
            remove_tree(path);
            close(fd);
        }
        sl_free(path);
    }
    closedir(dir);
}

int
sl_worker_folder_open(struct sl_worker_folder *self)
{
    const char *parent = parent_folder();
    *self = (struct sl_worker_folder){.lock_fd = -1};
    sweep(parent);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        self->path = join_dup(parent, PREFIX "XXXXXX");
        if (mkdtemp(self->path) == NULL) {
            int rc = sl_err_set(SL_ESYS, "make the folder %s", self->path);
            sl_free(self->path);
            self->path = NULL;
            return rc;
        }
        self->lock_fd = lock_folder(self->path);
        if (self->lock_fd >= 0) {
            return 0;
        }
        sl_free(self->path);
        self->path = NULL;
    }
    return sl_err_set(SL_ESYS, "hold a folder in %s", parent);
}

void
sl_worker_folder_close(struct sl_worker_folder *self)
{
    if (self->path == NULL) {
        return;
    }
    remove_tree(self->path);
    close(self->lock_fd);
    sl_free(self->path);
    self->path = NULL;
}
