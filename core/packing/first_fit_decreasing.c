/*
 * First fit decreasing: components by need, descending; each instance into the container with the
 * lowest id that it fits into, else into a new one (highest id + 1). What is placed never moves.
 */
#include "packing/packer.h"

/* Fills the container at this position with instances of the component; returns how many. */
static int32_t
fill(struct sl_packing_builder *builder, struct sl_fit_index *index, int32_t position,
     int32_t component, int32_t most)
{
    struct sl_resource need = sl_packing_need(&builder->components[component]);
    struct sl_fit_node leaf = index->leaves[position];
    int32_t placed = 0;
    while (placed < most && sl_fit_node_holds(&leaf, need)) {
        sl_packing_builder_put(builder, position, component);
        leaf = sl_fit_node_less(leaf, need);
        placed++;
    }
    sl_fit_index_set(index, position, leaf);
    return placed;
}

int
sl_packing_first_fit(const struct sl_packing_job *job, struct sl_packing_builder *builder)
{
    struct sl_fit_index index;
    sl_packing_index_builder(builder, &index);
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        struct sl_resource need = job->needs[component];
        /* Room only shrinks here, so what was too full for the component stays too full for it. */
        int32_t from = 0;
        for (int32_t left = job->up[component]; left > 0;) {
            int32_t position = sl_fit_index_find(&index, from, need);
            if (position < 0) {
                position = sl_packing_builder_open(builder, sl_packing_builder_next_id(builder));
                sl_fit_index_append(
                    &index, sl_fit_node_of(&builder->limits, (struct sl_resource){0, 0, 0}, 0));
            }
            left -= fill(builder, &index, position, component, left);
            from = position;
        }
    }
    sl_fit_index_destroy(&index);
    return 0;
}
