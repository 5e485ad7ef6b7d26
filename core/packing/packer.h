#pragma once
/*
 * What the packers share: the checked request, the order of components, placing by rule, and the
 * steps of a packer that starts from a plan.
 */

#include <stdint.h>

#include "packing/builder.h"
#include "packing/fit_index.h"
#include "packing/packing.h"

struct sl_packing_job {
    const struct sl_packing_request *request;
    int packer;
    struct sl_packing_limits limits;
    /* What one instance of each component needs. */
    struct sl_resource *needs;
    /* Positions of the components in the order in which this packer treats them. */
    int32_t *order;
    /* Instances to add and to remove, by component. For a first plan: all and none. */
    int32_t *up;
    int32_t *down;
    /* Instances of each component in the plan that is wanted, and their sum. */
    int32_t *wanted;
    int32_t total;
};

/* The order of round robin: RAM as configured, descending; ties: spouts, then declaration. */
void sl_packing_order_by_configured_ram(struct sl_packing_job *job);
/* Needed RAM and CPU, descending, whichever the request sorts by first; ties as above. */
void sl_packing_order_by_need(struct sl_packing_job *job);
/* Spouts, then declaration. */
void sl_packing_order_by_declaration(struct sl_packing_job *job);

/* A plan from nothing by round robin, into `containers` containers. */
int sl_packing_round_robin(const struct sl_packing_job *job, int64_t containers,
                           struct sl_packing_plan **plan);
/* Containers that round robin packs into: the request's, or in proportion when it repacks. */
int sl_packing_round_robin_containers(const struct sl_packing_job *job, int64_t *containers);

/* Add what the job wants to a builder, from which the removals are done. */
int sl_packing_first_fit(const struct sl_packing_job *job, struct sl_packing_builder *builder);
int sl_packing_compliant_pack(const struct sl_packing_job *job, struct sl_packing_builder *builder);
int sl_packing_compliant_repack(const struct sl_packing_job *job,
                                struct sl_packing_builder *builder);

/* Opens or empties containers until there are exactly `containers`. SL_EUNSATISFIABLE if not. */
int sl_packing_container_count_hold(const struct sl_packing_job *job,
                                    struct sl_packing_builder *builder, int32_t containers);

/* The refusal of a container count above the number of instances. */
int sl_packing_container_count_refuse(const struct sl_packing_job *job, int64_t containers);

/* A fit index over all containers of the builder; destroy it. */
void sl_packing_index_builder(const struct sl_packing_builder *builder, struct sl_fit_index *index);
