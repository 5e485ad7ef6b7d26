/* Threads and mailboxes of a crew. */

#include "batch/crew.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/thread.h"

struct letter {
    struct letter *next;
    size_t len;
    int32_t kind;
    int32_t member;
    uint8_t bytes[];
};

/* A queue of letters; the crew's lock guards it. */
struct mailbox {
    struct letter *first;
    struct letter **last;
    /* Who waits for it. */
    pthread_cond_t filled;
    /* What its reader got last; the reader frees it with the next one. */
    struct letter *read;
};

struct member {
    struct sl_crew *crew;
    sl_crew_main_fn main;
    struct mailbox mailbox;
    struct sl_thread thread;
    int32_t index;
    bool has_thread;
    /* It waits for a message that any member may take, and was not woken for one yet. */
    bool is_idle;
};

struct sl_crew {
    pthread_mutex_t lock;
    struct mailbox shared;
    struct mailbox owner;
    struct member *members;
    int32_t member_count;
    bool is_closed;
    sl_crew_wake_fn wake;
    void *wake_ctx;
    /* Guards the two below, and is held while one is called. */
    pthread_rwlock_t forward_lock;
    sl_crew_forward_fn forward;
    void *forward_ctx;
    void *boot;
    size_t boot_len;
};

static void
mailbox_create(struct mailbox *self)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->filled, &attributes);
    pthread_condattr_destroy(&attributes);
    self->first = NULL;
    self->last = &self->first;
    self->read = NULL;
}

static void
mailbox_destroy(struct mailbox *self)
{
    while (self->first != NULL) {
        struct letter *letter = self->first;
        self->first = letter->next;
        sl_free(letter);
    }
    sl_free(self->read);
    pthread_cond_destroy(&self->filled);
}

static void
mailbox_put(struct mailbox *self, struct letter *letter)
{
    *self->last = letter;
    self->last = &letter->next;
}

static struct letter *
mailbox_pop(struct mailbox *self)
{
    struct letter *letter = self->first;
    if (letter != NULL) {
        self->first = letter->next;
        if (self->first == NULL) {
            self->last = &self->first;
        }
    }
    return letter;
}

static struct letter *
letter_new(int32_t member, int32_t kind, const void *bytes, size_t len)
{
    struct letter *letter = sl_alloc(sizeof(*letter) + len);
    letter->next = NULL;
    letter->len = len;
    letter->kind = kind;
    letter->member = member;
    if (len > 0) {
        memcpy(letter->bytes, bytes, len);
    }
    return letter;
}

/* Gives a letter to its reader, who had another one before. */
static int
deliver(struct mailbox *reader, struct letter *letter, struct sl_crew_message *message)
{
    sl_free(reader->read);
    reader->read = letter;
    *message =
        (struct sl_crew_message){letter->bytes, (int64_t)letter->len, letter->kind, letter->member};
    return 1;
}

static struct timespec
deadline_of(int64_t timeout_ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += timeout_ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Waits for a change of the mailbox; false when the deadline passed. The lock is held. */
static bool
await(struct sl_crew *self, struct mailbox *mailbox, int64_t timeout_ms,
      const struct timespec *deadline)
{
    if (timeout_ms < 0) {
        pthread_cond_wait(&mailbox->filled, &self->lock);
        return true;
    }
    return timeout_ms > 0 &&
           pthread_cond_timedwait(&mailbox->filled, &self->lock, deadline) != ETIMEDOUT;
}

struct sl_crew *
sl_crew_new(int32_t members)
{
    if (members < 1) {
        sl_err_set(SL_EINVAL, "a crew needs a member");
        return NULL;
    }
    struct sl_crew *self = sl_calloc(1, sizeof(*self));
    pthread_mutex_init(&self->lock, NULL);
    pthread_rwlock_init(&self->forward_lock, NULL);
    mailbox_create(&self->shared);
    mailbox_create(&self->owner);
    self->members = sl_calloc((size_t)members, sizeof(*self->members));
    self->member_count = members;
    for (int32_t i = 0; i < members; i++) {
        self->members[i].crew = self;
        self->members[i].index = i;
        mailbox_create(&self->members[i].mailbox);
    }
    return self;
}

void
sl_crew_free(struct sl_crew *self)
{
    if (self == NULL) {
        return;
    }
    sl_crew_close(self);
    sl_crew_join(self);
    for (int32_t i = 0; i < self->member_count; i++) {
        mailbox_destroy(&self->members[i].mailbox);
    }
    mailbox_destroy(&self->shared);
    mailbox_destroy(&self->owner);
    pthread_mutex_destroy(&self->lock);
    pthread_rwlock_destroy(&self->forward_lock);
    sl_free(self->members);
    sl_free(self->boot);
    sl_free(self);
}

void
sl_crew_set_boot(struct sl_crew *self, const void *text, size_t len)
{
    sl_free(self->boot);
    self->boot = sl_alloc(len + 1);
    memcpy(self->boot, text, len);
    self->boot_len = len;
}

const void *
sl_crew_boot(const struct sl_crew *self, size_t *len)
{
    *len = self->boot_len;
    return self->boot;
}

void
sl_crew_set_wake(struct sl_crew *self, sl_crew_wake_fn wake, void *ctx)
{
    self->wake = wake;
    self->wake_ctx = ctx;
}

void
sl_crew_set_forward(struct sl_crew *self, sl_crew_forward_fn forward, void *ctx)
{
    pthread_rwlock_wrlock(&self->forward_lock);
    self->forward = forward;
    self->forward_ctx = ctx;
    pthread_rwlock_unlock(&self->forward_lock);
}

static void *
member_main(void *argument)
{
    struct member *member = argument;
    member->main(member->crew, member->index);
    sl_crew_post(member->crew, member->index, SL_CREW_ENDED, NULL, 0);
    return NULL;
}

int
sl_crew_start(struct sl_crew *self, sl_crew_main_fn main)
{
    for (int32_t i = 0; i < self->member_count; i++) {
        struct member *member = &self->members[i];
        member->main = main;
        int rc = sl_thread_start(&member->thread, member_main, member);
        if (rc != 0) {
            sl_crew_close(self);
            sl_crew_join(self);
            errno = rc;
            return sl_err_set(SL_ESYS, "start thread %d of a crew", i);
        }
        member->has_thread = true;
    }
    return 0;
}

/* A member to wake for a message that any may take; NULL when all are at work: whoever is done
 * first looks again before it waits. */
static struct member *
take_idle(struct sl_crew *self)
{
    for (int32_t i = 0; i < self->member_count; i++) {
        if (self->members[i].is_idle) {
            self->members[i].is_idle = false;
            return &self->members[i];
        }
    }
    return NULL;
}

int
sl_crew_send(struct sl_crew *self, int32_t member, int32_t kind, const void *bytes, size_t len)
{
    if (member < SL_CREW_ANY || member >= self->member_count) {
        return sl_err_set(SL_EINVAL, "a crew of %d has no member %d", self->member_count, member);
    }
    struct letter *letter = letter_new(member, kind, bytes, len);
    struct member *woken = NULL;
    pthread_mutex_lock(&self->lock);
    if (member == SL_CREW_ANY) {
        mailbox_put(&self->shared, letter);
        woken = take_idle(self);
    } else {
        mailbox_put(&self->members[member].mailbox, letter);
        woken = &self->members[member];
        woken->is_idle = false;
    }
    pthread_mutex_unlock(&self->lock);
    /* After the lock, which the member would run into otherwise. */
    if (woken != NULL) {
        pthread_cond_signal(&woken->mailbox.filled);
    }
    return 0;
}

int
sl_crew_receive(struct sl_crew *self, int32_t member, bool takes_shared, int64_t timeout_ms,
                struct sl_crew_message *message)
{
    if (member < 0 || member >= self->member_count) {
        return sl_err_set(SL_EINVAL, "a crew of %d has no member %d", self->member_count, member);
    }
    struct mailbox *own = &self->members[member].mailbox;
    struct timespec deadline = deadline_of(timeout_ms < 0 ? 0 : timeout_ms);
    struct member *next = NULL;
    int rc = 0;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        struct letter *letter = mailbox_pop(own);
        if (letter == NULL && takes_shared) {
            letter = mailbox_pop(&self->shared);
        }
        if (letter != NULL) {
            rc = deliver(own, letter, message);
            /* It may have been woken for more than the one it takes. */
            next = self->shared.first != NULL ? take_idle(self) : NULL;
            break;
        }
        if (self->is_closed) {
            rc = sl_err_set(SL_ECLOSED, "the crew has been closed");
            break;
        }
        self->members[member].is_idle = takes_shared;
        bool is_over = !await(self, own, timeout_ms, &deadline);
        /* Woken for a shared message and out of time at once: the message is for it all the same.
         */
        bool was_chosen = takes_shared && !self->members[member].is_idle;
        self->members[member].is_idle = false;
        if (is_over && !was_chosen) {
            break;
        }
    }
    pthread_mutex_unlock(&self->lock);
    if (next != NULL) {
        pthread_cond_signal(&next->mailbox.filled);
    }
    return rc;
}

/* True when somebody else takes the message. */
static bool
forward(struct sl_crew *self, int32_t member, int32_t kind, const void *bytes, size_t len)
{
    if (kind <= 0) {
        return false;
    }
    pthread_rwlock_rdlock(&self->forward_lock);
    bool is_taken = self->forward != NULL;
    if (is_taken) {
        self->forward(self->forward_ctx, member, kind, bytes, len);
    }
    pthread_rwlock_unlock(&self->forward_lock);
    return is_taken;
}

void
sl_crew_post(struct sl_crew *self, int32_t member, int32_t kind, const void *bytes, size_t len)
{
    if (forward(self, member, kind, bytes, len)) {
        return;
    }
    struct letter *letter = letter_new(member, kind, bytes, len);
    pthread_mutex_lock(&self->lock);
    mailbox_put(&self->owner, letter);
    pthread_mutex_unlock(&self->lock);
    pthread_cond_signal(&self->owner.filled);
    if (self->wake != NULL) {
        self->wake(self->wake_ctx);
    }
}

int
sl_crew_take(struct sl_crew *self, int64_t timeout_ms, struct sl_crew_message *message)
{
    struct timespec deadline = deadline_of(timeout_ms < 0 ? 0 : timeout_ms);
    int rc = 0;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        struct letter *letter = mailbox_pop(&self->owner);
        if (letter != NULL) {
            rc = deliver(&self->owner, letter, message);
            break;
        }
        if (!await(self, &self->owner, timeout_ms, &deadline)) {
            break;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

void
sl_crew_close(struct sl_crew *self)
{
    pthread_mutex_lock(&self->lock);
    self->is_closed = true;
    for (int32_t i = 0; i < self->member_count; i++) {
        pthread_cond_broadcast(&self->members[i].mailbox.filled);
    }
    pthread_mutex_unlock(&self->lock);
}

bool
sl_crew_is_closed(const struct sl_crew *self)
{
    struct sl_crew *mutable_self = (struct sl_crew *)(uintptr_t)self;
    pthread_mutex_lock(&mutable_self->lock);
    bool is_closed = self->is_closed;
    pthread_mutex_unlock(&mutable_self->lock);
    return is_closed;
}

void
sl_crew_join(struct sl_crew *self)
{
    for (int32_t i = 0; i < self->member_count; i++) {
        struct member *member = &self->members[i];
        if (member->has_thread) {
            sl_thread_join(&member->thread);
            member->has_thread = false;
        }
    }
}
