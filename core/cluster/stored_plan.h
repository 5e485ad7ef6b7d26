#pragma once
/*
 * The packing plan as the state manager keeps it (proto/plan.proto): the plan of the packing room
 * with the names of its components, the slots of its containers, and the owner of each key group.
 * It is the only truth about parallelism; every change makes a new version.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "packing/packing.h"

enum {
    SL_STORED_PLAN_FORMAT = 1,
    SL_STORED_PLAN_BYTES_MAX = 64 * 1024 * 1024,
};

/* A component of a plan. */
struct sl_plan_component {
    const char *name;
    /* The owner (a task) of each key group; NULL and 0 when nothing reads it by key. */
    int32_t *key_groups;
    uint32_t key_group_count;
};

/* Where a container runs; "" and 0 where there are no slots. */
struct sl_plan_slot {
    const char *supervisor;
    const char *host;
    uint32_t port;
};

struct sl_stored_plan {
    const char *topology;
    uint64_t version;
    const char *packing;
    struct sl_plan_component *components;
    int32_t component_count;
    /* Instances name components by their position above. */
    struct sl_packing_plan plan;
    /* One for each container of the plan. */
    struct sl_plan_slot *slots;
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
