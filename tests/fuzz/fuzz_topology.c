/*
 * labels: short
 * Decodes bytes as a topology. What decodes must validate without harm and survive a round trip.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "topology/system.h"
#include "topology/topology_codec.h"
#include "topology/validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_topology *t = sl_topology_decode_new(data, size);
    if (t == NULL) {
        return 0;
    }
    struct sl_buf bytes = {0};
    sl_assert_eq(sl_topology_encode(t, &bytes), 0);
    struct sl_topology *back = sl_topology_decode_new(bytes.data, bytes.size);
    sl_assert(back != NULL && sl_topology_equal(t, back));
    if (!t->is_system) {
        struct sl_system_config config = {1};
        sl_topology_problems_free(sl_topology_validate_new(t));
        sl_topology_free(sl_system_topology_new(t, &config));
    }
    sl_topology_free(back);
    sl_topology_free(t);
    sl_buf_destroy(&bytes);
    return 0;
}
