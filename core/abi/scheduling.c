#include "scheduling/scheduling.h"

#include "abi/abi.h"
#include "base/err.h"

int32_t
sl_scheduling_assign(const struct sl_sched_request *request, int32_t scheduler,
                     struct sl_sched_result *result)
{
    if (request == NULL || result == NULL) {
        return sl_err_set(SL_EINVAL, "scheduling: a null pointer was given");
    }
    return sl_sched_assign(request, scheduler, result);
}

void
sl_scheduling_result_free(struct sl_sched_result *result)
{
    if (result != NULL) {
        sl_sched_result_destroy(result);
    }
}
