#pragma once
/*
 * A crew of threads that work for one owner, and their mailboxes: one for each member, one that all
 * members share, and the owner's.
 *
 *     owner ── send(member) ──> own mailbox ──┐
 *           ── send(any) ─────> shared ───────┴> receive      (first the own, then the shared one)
 *           <───────────────── post ──────────── member
 *
 * Messages are bytes, copied on the way in. A mailbox keeps the order of what it gets.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch/crew.abi.h"

/* What a member's thread runs. */
typedef void (*sl_crew_main_fn)(struct sl_crew *crew, int32_t member);

/* Tells the owner that there is a message, from any thread. */
typedef void (*sl_crew_wake_fn)(void *ctx);

/* A crew of `members` (>= 1) without threads; NULL with SL_EINVAL. */
struct sl_crew *sl_crew_new(int32_t members);

/* Frees a crew whose threads have been joined, with all messages. NULL is fine. */
void sl_crew_free(struct sl_crew *self);

/* The text that every member reads when it starts; borrowed by the reader. */
void sl_crew_set_boot(struct sl_crew *self, const void *text, size_t len);
const void *sl_crew_boot(const struct sl_crew *self, size_t *len);

/* Whom to wake when the owner gets a message; NULL: nobody. Not while threads run. */
void sl_crew_set_wake(struct sl_crew *self, sl_crew_wake_fn wake, void *ctx);

/* Takes what a member posts in the owner's place, on the member's thread. */
typedef void (*sl_crew_forward_fn)(void *ctx, int32_t member, int32_t kind, const void *bytes,
                                   size_t len);

/*
 * From now on messages of kinds above 0 go to `forward` and not to the owner; NULL: to the owner.
 * Kind 0 says that a member can not go on, which concerns this process.
 * When it returns no call of the one before is under way.
 */
void sl_crew_set_forward(struct sl_crew *self, sl_crew_forward_fn forward, void *ctx);

/* Starts all threads. SL_ESYS when one can not be started: those that were are joined. */
int sl_crew_start(struct sl_crew *self, sl_crew_main_fn main);

/* Sends to a member, or to any (SL_CREW_ANY). SL_EINVAL for a member that does not exist. */
int sl_crew_send(struct sl_crew *self, int32_t member, int32_t kind, const void *bytes, size_t len);

/*
 * A member's next message, waiting at most timeout_ms (negative: as long as it takes). Returns 1
 * with *message, 0 when there is none, SL_ECLOSED when the crew has been closed and the member's
 * own mailbox is empty. With takes_shared false only its own mailbox counts.
 */
int sl_crew_receive(struct sl_crew *self, int32_t member, bool takes_shared, int64_t timeout_ms,
                    struct sl_crew_message *message);

/* Sends to the owner, from any thread. */
void sl_crew_post(struct sl_crew *self, int32_t member, int32_t kind, const void *bytes,
                  size_t len);

/* The owner's next message, likewise: 1 or 0. */
int sl_crew_take(struct sl_crew *self, int64_t timeout_ms, struct sl_crew_message *message);

/* Lets no member wait any more. */
void sl_crew_close(struct sl_crew *self);

/* Whether the crew has been closed. Any thread. */
bool sl_crew_is_closed(const struct sl_crew *self);

/* Joins all threads, which must end; see SL_CREW_ENDED. */
void sl_crew_join(struct sl_crew *self);
