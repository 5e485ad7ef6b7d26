#pragma once
/*
 * The packing room: pure functions from a request to a plan. No clock, no randomness, no log; the
 * same request gives the same plan. The rules are those of Apache Heron's packing algorithms with
 * the repairs that README.md of this folder names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packing/packing.abi.h"

/*
 * Packs (current is NULL) or repacks a request with an sl_packing_packer. On success *plan is a new
 * plan, owned by the caller. SL_EINVAL: the request is malformed; SL_ELIMIT, SL_ERANGE: too large;
 * SL_EUNSATISFIABLE: no plan, the message names component, resource, need and room. *plan is NULL
 * after a failure.
 */
int sl_packing_pack(int packer, const struct sl_packing_request *request,
                    struct sl_packing_plan **plan);

/* "round_robin" and so on; NULL for an unknown packer. Static text. */
const char *sl_packing_packer_name(int packer);

/* Releases a plan that sl_packing_pack or sl_packing_plan_new made; NULL is fine. */
void sl_packing_plan_free(struct sl_packing_plan *plan);

/* A plan with zeroed arrays of these sizes, owned by the caller. */
struct sl_packing_plan *sl_packing_plan_new(int32_t container_count, int32_t instance_count,
                                            int32_t warning_count);

/*
 * Checks that a plan is well-formed: ids and tasks unique and positive, indexes unique within their
 * component, ranges of instances that cover the array exactly once, no empty container, finite
 * resources, components below component_count. Returns 0 or SL_EINVAL with the first fault.
 */
int sl_packing_plan_check(const struct sl_packing_plan *plan, int32_t component_count);

/* Puts containers into the order of their ids and instances into the order of their tasks. */
void sl_packing_plan_sort(struct sl_packing_plan *plan);

/* Splits signed changes into what grows and what shrinks, both as counts >= 0. */
void sl_packing_changes_split(const int32_t *changes, int32_t count, int32_t *up, int32_t *down);

/*
 * Compares two well-formed plans whose components have the same numbers. *delta is owned by the
 * caller. SL_EINVAL when one of them is malformed.
 */
int sl_packing_delta_new(const struct sl_packing_plan *old_plan,
                         const struct sl_packing_plan *new_plan, int32_t component_count,
                         struct sl_packing_delta **delta);

/* Releases a delta; NULL is fine. */
void sl_packing_delta_free(struct sl_packing_delta *delta);
