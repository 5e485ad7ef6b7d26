/* The deadline of a process: a thread that sleeps until told not to, and else ends everything. */

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"

struct deadline {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cleared;
    struct timespec until;
    char *text;
    int32_t code;
    bool is_cleared;
};

/* One a process; only the main thread sets and clears it. */
static struct deadline *current;

static void *
deadline_main(void *argument)
{
    struct deadline *self = argument;
    int rc = 0;
    pthread_mutex_lock(&self->lock);
    while (!self->is_cleared && rc == 0) {
        rc = pthread_cond_timedwait(&self->cleared, &self->lock, &self->until);
    }
    if (!self->is_cleared) {
        /* The lock is kept: a clear that comes now waits for the end. */
        ssize_t written = write(STDERR_FILENO, self->text, strlen(self->text));
        (void)written;
        sl_abi_process_exit(self->code);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void
deadline_free(struct deadline *self)
{
    pthread_mutex_destroy(&self->lock);
    pthread_cond_destroy(&self->cleared);
    sl_free(self->text);
    sl_free(self);
}

int32_t
sl_abi_deadline_set(double ms, const char *text, int32_t code)
{
    if (text == NULL || !(ms > 0)) {
        return sl_err_set(SL_EINVAL, "a deadline needs a text and a time above 0");
    }
    sl_abi_deadline_clear();
    struct deadline *self = sl_calloc(1, sizeof(*self));
    self->text = sl_strdup(text);
    self->code = code;
    clock_gettime(CLOCK_MONOTONIC, &self->until);
    /* Centuries are as good as for ever, and fit. */
    double nanoseconds = fmin(ms, 1e13) * 1e6 + (double)self->until.tv_nsec;
    self->until.tv_sec += (time_t)(nanoseconds / 1e9);
    self->until.tv_nsec = (long)fmod(nanoseconds, 1e9);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->cleared, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&self->lock, NULL);
    int status = pthread_create(&self->thread, NULL, deadline_main, self);
    if (status != 0) {
        deadline_free(self);
        errno = status;
        return sl_err_set(SL_ESYS, "start the thread of a deadline");
    }
    current = self;
    return 0;
}

void
sl_abi_deadline_clear(void)
{
    struct deadline *self = current;
    if (self == NULL) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->is_cleared = true;
    pthread_cond_signal(&self->cleared);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    deadline_free(self);
    current = NULL;
}
