#pragma once
/*
 * Joins a crew with the crews of other processes over the connections of a worker.  One process has
 * the owner (the driver of a stream program); in the others the crew works for that owner:
 *
 *     owner -- sl_crew_link_send --> message --> crew of a process that serves --> member
 *     owner <-- sl_crew_take <------ message <-- what the member posts
 *
 * A message is i32 member, i32 kind, the bytes; numbers are little-endian.  The owner gets a
 * message with the sender's container as its member, and hears of connections (SL_CREW_PEER).
 */

#include <stddef.h>
#include <stdint.h>

#include "batch/crew.h"
#include "stream/worker.h"

struct sl_crew_link;

enum {
    /* Works for nobody elsewhere: this process has the owner. */
    SL_CREW_LINK_OWNER = -1,
};

/* Joins a crew; worker (which has a lane) and crew are borrowed.  Before the worker has a role. */
struct sl_crew_link *sl_crew_link_new(struct sl_worker *worker, struct sl_crew *crew);
/* After the role was freed.  The crew posts to its owner again.  NULL is fine. */
void sl_crew_link_free(struct sl_crew_link *self);

/*
 * From now on the crew works for the owner in container `peer`, and hears nobody else; for
 * SL_CREW_LINK_OWNER its owner is here.  Any thread.
 */
void sl_crew_link_serve(struct sl_crew_link *self, int32_t peer);

/*
 * Any thread: sends to a member of the crew in container `peer` (SL_CREW_ANY: any), or, in a
 * process that serves, to the owner there.  SL_EINVAL, SL_ELIMIT as sl_remote_send.
 */
int sl_crew_link_send(struct sl_crew_link *self, int32_t peer, int32_t member, int32_t kind,
                      const void *bytes, size_t len);
