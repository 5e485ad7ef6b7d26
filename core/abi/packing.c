#include "packing/packing.h"

#include <stddef.h>

#include "abi/abi.h"
#include "base/err.h"

int32_t
sl_abi_packing_pack(int32_t packer, const struct sl_packing_request *request,
                    struct sl_packing_plan **plan)
{
    if (request == NULL || plan == NULL) {
        return sl_err_set(SL_EINVAL, "packing: a request and a place for the plan are needed");
    }
    return sl_packing_pack(packer, request, plan);
}

void
sl_abi_packing_plan_free(struct sl_packing_plan *plan)
{
    sl_packing_plan_free(plan);
}

const char *
sl_abi_packing_packer_name(int32_t packer)
{
    return sl_packing_packer_name(packer);
}

int32_t
sl_abi_packing_delta_new(const struct sl_packing_plan *old_plan,
                         const struct sl_packing_plan *new_plan, int32_t component_count,
                         struct sl_packing_delta **delta)
{
    if (old_plan == NULL || new_plan == NULL || delta == NULL || component_count < 1) {
        return sl_err_set(SL_EINVAL, "packing: two plans and a place for the delta are needed");
    }
    return sl_packing_delta_new(old_plan, new_plan, component_count, delta);
}

void
sl_abi_packing_delta_free(struct sl_packing_delta *delta)
{
    sl_packing_delta_free(delta);
}
