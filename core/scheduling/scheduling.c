#include "scheduling/scheduling.h"

#include <string.h>

#include "base/err.h"
#include "scheduling/balanced.h"
#include "scheduling/even.h"
#include "scheduling/packed.h"

int
sl_sched_assign(const struct sl_sched_request *request, int scheduler,
                struct sl_sched_result *result)
{
    memset(result, 0, sizeof(*result));
    if (request->task_count == 0) {
        return sl_err_set(SL_EINVAL, "the request has no tasks");
    }
    int rc = 0;
    switch (scheduler) {
    case SL_SCHED_BALANCED:
        rc = sl_sched_balanced(request, result);
        break;
    case SL_SCHED_EVEN:
        rc = sl_sched_even(request, result);
        break;
    case SL_SCHED_ROUND_ROBIN:
        rc = sl_sched_round_robin(request, result);
        break;
    case SL_SCHED_PACKED:
        rc = sl_sched_packed(request, result);
        break;
    default:
        return sl_err_set(SL_EINVAL, "scheduler %d does not exist", scheduler);
    }
    if (rc != 0) {
        sl_sched_result_destroy(result);
    }
    return rc;
}
