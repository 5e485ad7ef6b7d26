/* Crews for Lua: checks arguments and calls room batch. */

#include "batch/crew.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include "abi/abi.h"
#include "abi/engine.h"
#include "base/err.h"
#include "base/thread.h"

static sl_crew_main_fn crew_main;

void
sl_engine_set_crew_main(sl_crew_main_fn main)
{
    crew_main = main;
}

static int
missing(void)
{
    return sl_err_set(SL_EINVAL, "a pointer is NULL");
}

/*
 * Signals: a handler may only post a semaphore. A thread waits for it and tells the owner of the
 * crew; the process has one crew at a time that hears of signals.
 */
static struct {
    struct sl_thread thread;
    struct sl_crew *crew;
    sem_t caught;
    int number;
    bool is_ending;
} watcher;

static void
on_signal(int number)
{
    __atomic_store_n(&watcher.number, number, __ATOMIC_SEQ_CST);
    sem_post(&watcher.caught);
}

static void *
watch(void *argument)
{
    (void)argument;
    for (;;) {
        while (sem_wait(&watcher.caught) != 0) {
        }
        if (__atomic_load_n(&watcher.is_ending, __ATOMIC_SEQ_CST)) {
            return NULL;
        }
        int number = __atomic_load_n(&watcher.number, __ATOMIC_SEQ_CST);
        sl_crew_post(watcher.crew, number, SL_CREW_SIGNAL, NULL, 0);
    }
}

static int
handle_signals(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0) {
        return sl_err_set(SL_ESYS, "catch signals");
    }
    return 0;
}

static int
stop_watching(void)
{
    if (watcher.crew == NULL) {
        return 0;
    }
    int rc = handle_signals(SIG_DFL);
    __atomic_store_n(&watcher.is_ending, true, __ATOMIC_SEQ_CST);
    sem_post(&watcher.caught);
    sl_thread_join(&watcher.thread);
    sem_destroy(&watcher.caught);
    watcher.crew = NULL;
    return rc;
}

int32_t
sl_abi_crew_catch_signals(struct sl_crew *crew)
{
    int rc = stop_watching();
    if (rc != 0 || crew == NULL) {
        return rc;
    }
    watcher.crew = crew;
    watcher.is_ending = false;
    sem_init(&watcher.caught, 0, 0);
    rc = sl_thread_start(&watcher.thread, watch, NULL);
    if (rc != 0) {
        sem_destroy(&watcher.caught);
        watcher.crew = NULL;
        errno = rc;
        return sl_err_set(SL_ESYS, "start the thread that hears of signals");
    }
    return handle_signals(on_signal);
}

struct sl_crew *
sl_abi_crew_new(int32_t members)
{
    return sl_crew_new(members);
}

void
sl_abi_crew_free(struct sl_crew *crew)
{
    if (crew != NULL && watcher.crew == crew) {
        stop_watching();
    }
    sl_crew_free(crew);
}

int32_t
sl_abi_crew_set_boot(struct sl_crew *crew, const char *text, size_t len)
{
    if (crew == NULL || text == NULL) {
        return missing();
    }
    sl_crew_set_boot(crew, text, len);
    return 0;
}

const char *
sl_abi_crew_boot(const struct sl_crew *crew, size_t *len)
{
    if (crew == NULL || len == NULL) {
        missing();
        return NULL;
    }
    return sl_crew_boot(crew, len);
}

static void
wake_context(void *ctx)
{
    sl_abi_streaming_wake(ctx);
}

int32_t
sl_abi_crew_wakes(struct sl_crew *crew, struct sl_streaming *context)
{
    if (crew == NULL) {
        return missing();
    }
    sl_crew_set_wake(crew, context != NULL ? wake_context : NULL, context);
    return 0;
}

int32_t
sl_abi_crew_start(struct sl_crew *crew)
{
    if (crew == NULL) {
        return missing();
    }
    if (crew_main == NULL) {
        return sl_err_set(SL_EUNAVAIL, "only the streamlua program starts threads with Lua");
    }
    return sl_crew_start(crew, crew_main);
}

int32_t
sl_abi_crew_send(struct sl_crew *crew, int32_t member, int32_t kind, const char *bytes, size_t len)
{
    if (crew == NULL || (bytes == NULL && len > 0)) {
        return missing();
    }
    return sl_crew_send(crew, member, kind, bytes, len);
}

int32_t
sl_abi_crew_receive(struct sl_crew *crew, int32_t member, int32_t takes_shared, double timeout_ms,
                    struct sl_crew_message *message)
{
    if (crew == NULL || message == NULL) {
        return missing();
    }
    return sl_crew_receive(crew, member, takes_shared != 0, (int64_t)timeout_ms, message);
}

int32_t
sl_abi_crew_post(struct sl_crew *crew, int32_t member, int32_t kind, const char *bytes, size_t len)
{
    if (crew == NULL || (bytes == NULL && len > 0)) {
        return missing();
    }
    sl_crew_post(crew, member, kind, bytes, len);
    return 0;
}

int32_t
sl_abi_crew_take(struct sl_crew *crew, double timeout_ms, struct sl_crew_message *message)
{
    if (crew == NULL || message == NULL) {
        return missing();
    }
    return sl_crew_take(crew, (int64_t)timeout_ms, message);
}

int32_t
sl_abi_crew_close(struct sl_crew *crew)
{
    if (crew == NULL) {
        return missing();
    }
    sl_crew_close(crew);
    return 0;
}
