/* Crews over several processes for Lua: checks arguments and calls room cluster. */

#include "cluster/crew_link.h"

#include "abi/abi.h"
#include "base/err.h"

static int
missing(void)
{
    return sl_err_set(SL_EINVAL, "a pointer is NULL");
}

struct sl_crew_link *
sl_abi_crew_link_new(struct sl_worker *worker, struct sl_crew *crew)
{
    if (worker == NULL || crew == NULL) {
        missing();
        return NULL;
    }
    return sl_crew_link_new(worker, crew);
}

void
sl_abi_crew_link_free(struct sl_crew_link *link)
{
    sl_crew_link_free(link);
}

int32_t
sl_abi_crew_link_serve(struct sl_crew_link *link, int32_t peer)
{
    if (link == NULL) {
        return missing();
    }
    sl_crew_link_serve(link, peer);
    return 0;
}

int32_t
sl_abi_crew_link_send(struct sl_crew_link *link, int32_t peer, int32_t member, int32_t kind,
                      const char *bytes, size_t len)
{
    if (link == NULL || (bytes == NULL && len > 0)) {
        return missing();
    }
    return sl_crew_link_send(link, peer, member, kind, bytes, len);
}

static void
wake_context(void *ctx)
{
    sl_abi_streaming_wake(ctx);
}

int32_t
sl_abi_worker_wakes(struct sl_worker *worker, struct sl_streaming *context)
{
    if (worker == NULL) {
        return missing();
    }
    sl_worker_set_wake(worker, context != NULL ? wake_context : NULL, context);
    return 0;
}
