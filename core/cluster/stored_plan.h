#pragma once
/*
 * The packing plan as the state manager keeps it (proto/plan.proto): the plan of the packing room
 * with the names of its components, the slots of its containers, and the owner of each key group.
 * It is the only truth about parallelism; every change makes a new version.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/control.h"

enum {
    SL_STORED_PLAN_FORMAT = 1,
    SL_STORED_PLAN_BYTES_MAX = 64 * 1024 * 1024,
};

/* Appends the bytes. SL_ELIMIT when they are too many. */
int sl_stored_plan_encode(const struct sl_stored_plan *plan, struct sl_buf *out);

/*
 * Reads a plan; everything lies in the arena. SL_EPROTO, SL_ELIMIT, or SL_EINVAL for a plan that is
 * not well-formed (sl_packing_plan_check), whose names are no names, or whose key groups belong to
 * tasks that are not the component's.
 */
int sl_stored_plan_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_stored_plan *plan);

/* Position of a component, or -1. */
int32_t sl_stored_plan_component(const struct sl_stored_plan *plan, const char *name);
