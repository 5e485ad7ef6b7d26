#include "main/low_memory.h"

#if defined(__has_feature)
#define SL_IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SL_IS_SANITIZED 1
#else
#define SL_IS_SANITIZED 0
#endif

#if defined(__x86_64__) && !SL_IS_SANITIZED

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lua.h>

static const uintptr_t LIMIT = UINT64_C(1) << 32;
/* The compiler's code has to lie so near to the library's. */
static const uintptr_t JUMP_RANGE = UINT64_C(1) << 31;

static void *
map(void *address, size_t bytes, int protection, int flags)
{
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, -1, 0);
}

static bool
is_near_code(const void *address)
{
    uintptr_t code = (uintptr_t)&lua_newstate;
    uintptr_t at = (uintptr_t)address;
    return (at > code ? at - code : code - at) < JUMP_RANGE;
}

/* Anonymous memory below the limit, at the wanted address if that is free; NULL when there is none.
 */
static void *
map_low(void *wanted, size_t bytes, int protection, int flags)
{
    if (wanted != NULL && (uintptr_t)wanted + bytes <= LIMIT) {
        void *place = map(wanted, bytes, protection, flags);
        if (place != MAP_FAILED && (uintptr_t)place + bytes <= LIMIT) {
            return place;
        }
        if (place != MAP_FAILED) {
            munmap(place, bytes);
        }
    }
    void *place = map(NULL, bytes, protection, flags | MAP_32BIT);
    return place != MAP_FAILED ? place : NULL;
}

__attribute__((visibility("default"))) void *mmap64(void *, size_t, int, int, int, off64_t);
__attribute__((visibility("default"))) void *mremap(void *, size_t, size_t, int, ...);

void *
mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    if ((flags & MAP_ANONYMOUS) != 0 && (flags & MAP_FIXED) == 0 && (protection & PROT_EXEC) == 0 &&
        !is_near_code(address)) {
        void *place = map_low(address, bytes, protection, flags);
        if (place != NULL) {
            return place;
        }
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

void *
mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    if ((uintptr_t)old >= LIMIT || flags != MREMAP_MAYMOVE) {
        return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, NULL);
    }
    void *place = (void *)syscall(SYS_mremap, old, old_bytes, bytes, 0, NULL);
    if (place != MAP_FAILED) {
        return place;
    }
    void *target = map_low(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (target == NULL) {
        return (void *)syscall(SYS_mremap, old, old_bytes, bytes, MREMAP_MAYMOVE, NULL);
    }
    place =
        (void *)syscall(SYS_mremap, old, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (place == MAP_FAILED) {
        munmap(target, bytes);
    }
    return place;
}

#endif
