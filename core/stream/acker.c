/*
 * Acker tasks (`ackers = N`), as in JStorm and Storm: a root's tree is kept by the acker that its
 * id hashes to.  An entry is made by whatever comes first, init, ack or fail, so a fail before the
 * init is remembered (Storm; JStorm forgets it).  When the init is there, a value of 0 completes
 * the tree and a fail ends it; the spout's executor is told.  Entries that nobody finishes are
 * forgotten after the same rounds as in the spout, which fails them itself.  A tree that completes
 * while its entry is marked failed has failed.
 */

#include "base/alloc.h"
#include "stream/stream_priv.h"

enum {
    INITIAL_SLOTS = 1024,
};

struct sl__acker *
sl__acker_new(struct sl__task *task)
{
    struct sl__acker *self = sl_calloc(1, sizeof(*self));
    self->task = task;
    self->entries = sl_calloc(INITIAL_SLOTS, sizeof(*self->entries));
    self->mask = INITIAL_SLOTS - 1;
    return self;
}

void
sl__acker_free(struct sl__acker *self)
{
    if (self != NULL) {
        sl_free(self->entries);
        sl_free(self);
    }
}

static uint32_t
entry_home(const struct sl__acker *self, uint64_t root)
{
    return (uint32_t)(sl_mix64(root) >> 32) & self->mask;
}

/* The entry of the root or the empty place where it belongs (root 0). */
static struct sl__acker_entry *
entry_find(struct sl__acker *self, uint64_t root)
{
    uint32_t at = entry_home(self, root);
    while (self->entries[at].root != 0 && self->entries[at].root != root) {
        at = (at + 1) & self->mask;
    }
    return &self->entries[at];
}

static void
acker_grow(struct sl__acker *self)
{
    struct sl__acker_entry *old = self->entries;
    uint32_t old_count = self->mask + 1;
    self->mask = old_count * 2 - 1;
    self->entries = sl_calloc((size_t)old_count * 2, sizeof(*self->entries));
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i].root != 0) {
            *entry_find(self, old[i].root) = old[i];
        }
    }
    sl_free(old);
}

/* Closes the gap so that every entry stays reachable from its home without a free place between. */
static void
entry_remove(struct sl__acker *self, struct sl__acker_entry *entry)
{
    uint32_t gap = (uint32_t)(entry - self->entries);
    uint32_t at = gap;
    for (;;) {
        at = (at + 1) & self->mask;
        if (self->entries[at].root == 0) {
            break;
        }
        uint32_t home = entry_home(self, self->entries[at].root);
        if (((at - home) & self->mask) >= ((at - gap) & self->mask)) {
            self->entries[gap] = self->entries[at];
            gap = at;
        }
    }
    self->entries[gap].root = 0;
    self->count--;
}

static struct sl__acker_entry *
entry_put(struct sl__acker *self, uint64_t root)
{
    struct sl__acker_entry *entry = entry_find(self, root);
    if (entry->root == 0) {
        if ((self->count + 1) * 4 > (self->mask + 1) * 3) {
            acker_grow(self);
            entry = entry_find(self, root);
        }
        *entry = (struct sl__acker_entry){.root = root, .round = self->task->executor->round};
        self->count++;
    }
    return entry;
}

void
sl__acker_apply(struct sl__acker *self, const struct sl__ack *ack)
{
    struct sl_executor *executor = self->task->executor;
    struct sl__acker_entry *entry = entry_put(self, ack->root);
    switch ((enum sl__ack_op)ack->op) {
    case SL__INIT:
        entry->is_init = 1;
        entry->value ^= ack->value;
        break;
    case SL__ACK:
        entry->value ^= ack->value;
        break;
    case SL__FAIL:
        entry->has_failed = 1;
        entry->round = executor->round;
        break;
    case SL__RESET:
        entry->round = executor->round;
        sl__ack_tell_spout(executor, ack->root, SL__RESET);
        break;
    case SL__DONE:
    case SL__DONE_FAILED:
        break;
    }
    sl__count(&self->task->io.executed, 1);
    if (entry->is_init && (entry->has_failed || entry->value == 0)) {
        bool has_failed = entry->has_failed;
        entry_remove(self, entry);
        sl__ack_tell_spout(executor, ack->root, has_failed ? SL__DONE_FAILED : SL__DONE);
    }
}

void
sl__acker_expire(struct sl__acker *self)
{
    uint32_t now = self->task->executor->round;
    for (uint32_t at = 0; at <= self->mask; at++) {
        /* Removal moves a later entry here: look at the place again. */
        while (self->entries[at].root != 0 && now - self->entries[at].round > SL__ROUNDS) {
            entry_remove(self, &self->entries[at]);
        }
    }
}
