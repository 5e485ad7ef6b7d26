#pragma once
/*
 * Scaling down: takes instances out of a plan in the order of sl_packing_removal_scorers, without
 * sorting all containers again for each of them.
 */

#include <stdint.h>

#include "packing/builder.h"

/* The items of a builder by component. Removing keeps it valid, adding and pruning do not. */
struct sl_packing_removal {
    struct sl_packing_builder *builder;
    /* items[starts[c] .. starts[c + 1] - 1] are those of component c. */
    int32_t *items;
    int32_t *starts;
};

void sl_packing_removal_create(struct sl_packing_removal *self, struct sl_packing_builder *builder);
void sl_packing_removal_destroy(struct sl_packing_removal *self);

/*
 * Removes `count` instances of the component, each the one with the highest index of the container
 * that is first in the order at that moment. SL_EUNSATISFIABLE when there are fewer; nothing is
 * removed then. O(m log m) for m instances of the component.
 */
int sl_packing_removal_run(struct sl_packing_removal *self, int32_t component, int32_t count);

/* As sl_packing_removal_run, but the instances with the highest task ids go. */
int sl_packing_removal_run_highest(struct sl_packing_removal *self, int32_t component,
                                   int32_t count);
