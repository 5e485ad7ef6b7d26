/* Dry runs of updates: how many key groups would move, and how many bytes of state. Nothing stops
 * for it, and nothing changes by it. */
#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_update_priv.h"

enum { MEASURE_MS = 10000 };

struct sl__tm_measure {
    struct sl_topology_master *master;
    struct sl_list_node node;
    struct sl_rpc_request *request;
    struct sl__tm_plan *next;
    struct sl__moves moves;
    size_t open;
    struct sl_update_result result;
    struct sl_timer timer;
};

static void
measure_free(struct sl__tm_measure *measure)
{
    sl_timer_stop(&measure->timer);
    sl_list_remove(&measure->node);
    sl__moves_destroy(&measure->moves);
    sl__tm_plan_free(measure->next);
    sl_free(measure);
}

static void
reply(struct sl__tm_measure *measure)
{
    struct sl_buf out = {0};
    measure->result.groups_moved = measure->moves.groups;
    sl_update_result_encode(&measure->result, &out);
    sl_rpc_reply(measure->request, out.data, out.size);
    sl_buf_destroy(&out);
    measure_free(measure);
}

static void
refuse(struct sl__tm_measure *measure, int code, const char *reason)
{
    sl_rpc_refuse(measure->request, SL_RPC_FAILURE, code, "%s", reason);
    measure_free(measure);
}

static void
measured(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__transfer *transfer = ctx;
    struct sl__tm_measure *measure = transfer->measure;
    uint64_t bytes;
    transfer->call = 0;
    if (result->status != SL_RPC_SUCCESS) {
        refuse(measure, result->code, result->reason);
        return;
    }
    int rc = sl_worker_measured_decode(result->body, result->size, &bytes);
    if (rc != 0) {
        refuse(measure, rc, sl_err_last()->msg);
        return;
    }
    measure->result.bytes_moved += bytes;
    if (--measure->open == 0) {
        reply(measure);
    }
}

/* A worker that is lost does not answer. */
static void
measure_is_late(void *ctx, uint64_t ticket)
{
    (void)ticket;
    refuse(ctx, SL_ETIMEOUT, "a worker does not say how much state it has");
}

void
sl__tm_measure_start(struct sl_topology_master *self, struct sl_rpc_request *request,
                     struct sl__tm_plan *take_next)
{
    struct sl__tm_measure *measure = sl_calloc(1, sizeof(*measure));
    measure->master = self;
    measure->request = request;
    measure->next = take_next;
    measure->result.reason = "";
    measure->result.from_version = self->plan->stored.version;
    measure->result.to_version = take_next->stored.version;
    sl_list_push_back(&self->measures, &measure->node);
    sl_timer_start(self->loop, &measure->timer, MEASURE_MS, measure_is_late, measure);
    sl__moves_plan(&measure->moves, self, take_next);
    measure->open = measure->moves.transfers.count;
    if (measure->open == 0) {
        reply(measure);
        return;
    }
    for (size_t i = 0; i < measure->moves.transfers.count; i++) {
        measure->moves.transfers.items[i]->measure = measure;
        sl__transfer_measure(measure->moves.transfers.items[i], measured);
    }
}

void
sl__tm_measures_abandon(struct sl_topology_master *self)
{
    sl_list_each(&self->measures, it)
    {
        refuse(sl_container_of(it, struct sl__tm_measure, node), SL_ECANCELED,
               "the topology master ends");
    }
}
