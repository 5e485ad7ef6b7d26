/* Events: what executors and signals tell the owner of a worker. */

#include <errno.h>
#include <time.h>

#include "base/alloc.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"

void
sl_worker_post(struct sl_worker *self, int32_t kind, int32_t task, int32_t executor,
               const char *text, size_t len)
{
    pthread_mutex_lock(&self->event_lock);
    if (kind == SL_EVENT_ERROR && self->event_count >= SL__EVENT_MAX) {
        self->events_dropped++;
        pthread_mutex_unlock(&self->event_lock);
        return;
    }
    if (kind == SL_EVENT_ERROR && len > SL__ERROR_TEXT_MOST) {
        len = SL__ERROR_TEXT_MOST;
    }
    struct sl__event *event = sl_alloc(sizeof(*event));
    *event = (struct sl__event){kind, task, executor, NULL, len, NULL};
    event->text = sl_alloc(len + 1);
    if (len > 0) {
        memcpy(event->text, text, len);
    }
    event->text[len] = '\0';
    if (self->events_last != NULL) {
        self->events_last->next = event;
    } else {
        self->events = event;
    }
    self->events_last = event;
    self->event_count++;
    if (self->on_event != NULL) {
        self->on_event(self->on_event_ctx);
    }
    pthread_mutex_unlock(&self->event_lock);
    sem_post(&self->wake);
}

void
sl_worker_set_wake(struct sl_worker *self, void (*wake)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&self->event_lock);
    self->on_event = wake;
    self->on_event_ctx = ctx;
    pthread_mutex_unlock(&self->event_lock);
}

void
sl_worker_signal(struct sl_worker *self, int signal_number)
{
    __atomic_store_n(&self->signal_number, signal_number, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&self->signal_count, 1, __ATOMIC_SEQ_CST);
    sem_post(&self->wake);
}

static bool
take_signal(struct sl_worker *self, struct sl_event *out)
{
    if (__atomic_load_n(&self->signal_count, __ATOMIC_SEQ_CST) == self->signals_taken) {
        return false;
    }
    self->signals_taken++;
    *out = (struct sl_event){.kind = SL_EVENT_SIGNAL,
                             .task = __atomic_load_n(&self->signal_number, __ATOMIC_SEQ_CST),
                             .executor = -1,
                             .text = ""};
    return true;
}

static bool
take_event(struct sl_worker *self, struct sl_event *out)
{
    if (take_signal(self, out)) {
        return true;
    }
    pthread_mutex_lock(&self->event_lock);
    struct sl__event *event = self->events;
    if (event != NULL) {
        self->events = event->next;
        self->event_count--;
        if (self->events == NULL) {
            self->events_last = NULL;
        }
    }
    pthread_mutex_unlock(&self->event_lock);
    if (event == NULL) {
        return false;
    }
    sl_free(self->taken_text);
    self->taken_text = event->text;
    *out = (struct sl_event){event->kind, event->task, event->executor, (int32_t)event->len,
                             event->text};
    sl_free(event);
    return true;
}

int
sl_worker_wait(struct sl_worker *self, double timeout_ms, struct sl_event *out)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    /* A year and "for ever" are the same to sem_clockwait, but for its range. */
    timeout_ms = timeout_ms > 3e10 ? 3e10 : timeout_ms;
    double nanoseconds = (double)until.tv_nsec + (timeout_ms > 0 ? timeout_ms : 0) * 1e6;
    until.tv_sec += (time_t)(nanoseconds / 1e9);
    until.tv_nsec = (long)(nanoseconds - (double)(int64_t)(nanoseconds / 1e9) * 1e9);
    out->kind = 0;
    for (;;) {
        if (take_event(self, out)) {
            return 1;
        }
        int rc = timeout_ms < 0 ? sem_wait(&self->wake)
                                : sem_clockwait(&self->wake, CLOCK_MONOTONIC, &until);
        if (rc != 0 && errno == ETIMEDOUT) {
            return take_event(self, out);
        }
    }
}
