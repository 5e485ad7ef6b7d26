/* Sleeping executors and the bell that wakes them: a futex that is rung only for a sleeper. */

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stream/stream_priv.h"

static long
futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/*
 * Called after something was published for the executor.  The fence orders that publication before
 * the look at is_asleep; the sleeper orders is_asleep before its last look for work. So one of the
 * two sees the other.
 */
void
sl__executor_ring_bell(struct sl_executor *executor)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    /* Only the first one rings: until the sleeper runs again, others need not call the kernel. */
    if (__atomic_load_n(&executor->is_asleep, __ATOMIC_SEQ_CST) == 0 ||
        __atomic_exchange_n(&executor->is_asleep, 0, __ATOMIC_SEQ_CST) == 0) {
        return;
    }
    if (executor->wake != NULL) {
        executor->wake(executor->wake_ctx);
        return;
    }
    __atomic_add_fetch(&executor->bell, 1, __ATOMIC_SEQ_CST);
    futex(&executor->bell, FUTEX_WAKE, 1, NULL);
}

/* Sleeps until the bell rings or `deadline_ns` (executor's clock; UINT64_MAX = none) has passed. */
void
sl__park(struct sl_executor *executor, uint64_t deadline_ns)
{
    struct timespec timeout;
    struct timespec *limit = NULL;
    if (deadline_ns != UINT64_MAX) {
        uint64_t left = deadline_ns > executor->now_ns ? deadline_ns - executor->now_ns : 0;
        timeout.tv_sec = (time_t)(left / 1000000000u);
        timeout.tv_nsec = (long)(left % 1000000000u);
        limit = &timeout;
    }
    futex(&executor->bell, FUTEX_WAIT, executor->bell_seen, limit);
}
