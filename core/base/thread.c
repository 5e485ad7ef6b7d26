#include "base/thread.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum {
    STACK_LEAST = 8 << 20,
    STACK_MOST = 64 << 20,
    GUARD_BYTES = 64 << 10,
};

#ifdef MAP_32BIT

/* As much as the main thread would have. */
static size_t
stack_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < STACK_LEAST) {
        return STACK_LEAST;
    }
    return limit.rlim_cur > STACK_MOST ? STACK_MOST : (size_t)limit.rlim_cur & ~(size_t)0xfff;
}

/* Maps a stack with a guard below it; leaves mapping NULL when there is no room down there. */
static void
map_low_stack(struct sl_thread *self)
{
    size_t bytes = stack_bytes() + GUARD_BYTES;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_32BIT, -1, 0);
    if (base == MAP_FAILED) {
        return;
    }
    if (mprotect(base, GUARD_BYTES, PROT_NONE) != 0) {
        munmap(base, bytes);
        return;
    }
    self->mapping = base;
    self->mapping_bytes = bytes;
}

#else

static void
map_low_stack(struct sl_thread *self)
{
    (void)self;
}

#endif

static int
start_on_mapping(struct sl_thread *self, void *(*main)(void *), void *argument)
{
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0) {
        return rc;
    }
    rc = pthread_attr_setstack(&attributes, (uint8_t *)self->mapping + GUARD_BYTES,
                               self->mapping_bytes - GUARD_BYTES);
    if (rc == 0) {
        rc = pthread_create(&self->id, &attributes, main, argument);
    }
    pthread_attr_destroy(&attributes);
    return rc;
}

static void
unmap(struct sl_thread *self)
{
    if (self->mapping != NULL) {
        munmap(self->mapping, self->mapping_bytes);
        self->mapping = NULL;
    }
}

int
sl_thread_start(struct sl_thread *self, void *(*main)(void *), void *argument)
{
    *self = (struct sl_thread){0};
    map_low_stack(self);
    if (self->mapping == NULL) {
        return pthread_create(&self->id, NULL, main, argument);
    }
    int rc = start_on_mapping(self, main, argument);
    if (rc != 0) {
        unmap(self);
    }
    return rc;
}

void
sl_thread_join(struct sl_thread *self)
{
    pthread_join(self->id, NULL);
    unmap(self);
}
