#pragma once
/*
 * Scaling down: takes instances out of a plan in the order of sl_packing_removal_scorers, without
 * sorting all containers again for each of them.
 */

#include <stdint.h>

#include "packing/builder.h"

/*
 * Removes `count` instances of the component, each the one with the highest index of the container
 * that is first in the order at that moment. SL_EUNSATISFIABLE when there are fewer; nothing is
 * removed then. O(instances + count log containers).
 */
int sl_packing_removal_run(struct sl_packing_builder *builder, int32_t component, int32_t count);
