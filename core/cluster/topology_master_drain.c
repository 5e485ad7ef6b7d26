/*
 * When is nothing in flight? Spouts are paused; each worker answers when nothing waits there that
 * it knows of. Frames between workers may still be under way, so rounds are asked until they agree:
 * everybody quiet, the same numbers of frames as in the round before, and as many received as sent.
 * Frames that a worker took with it when it died are counted for ever; then several equal rounds,
 * each a pause apart, have to do.  That no root is left needs no second look: paused spouts make
 * none.
 */
#include "base/err.h"
#include "cluster/topology_master_priv.h"

enum {
    PAUSE_MS = 2,
    ROUNDS = 2,
    /* With frames that were lost at some time. */
    ROUNDS_UNEQUAL = 8,
};

static void start_round(struct sl_topology_master *self);

static void
finish(struct sl__tm_drain *drain, int status)
{
    void (*done)(void *ctx, int status) = drain->done;
    drain->is_running = false;
    sl_timer_stop(&drain->timer);
    done(drain->ctx, status);
}

static void
next_round(void *ctx, uint64_t ticket)
{
    (void)ticket;
    start_round(ctx);
}

static void
round_over(struct sl_topology_master *self)
{
    struct sl__tm_drain *drain = &self->drain;
    bool is_alike = drain->is_quiet && drain->sent == drain->last_sent &&
                    drain->received == drain->last_received;
    drain->alike = is_alike ? drain->alike + 1 : (drain->is_quiet ? 1 : 0);
    drain->last_sent = drain->sent;
    drain->last_received = drain->received;
    uint32_t wanted = drain->sent == drain->received ? ROUNDS : ROUNDS_UNEQUAL;
    if (drain->until == SL__DRAIN_ROOTS ? drain->is_quiet : drain->alike >= wanted) {
        finish(drain, 0);
    } else if (sl_loop_now_ms(self->loop) >= drain->until_ms) {
        finish(drain, SL_ETIMEOUT);
    } else {
        sl_timer_start(self->loop, &drain->timer, PAUSE_MS, next_round, self);
    }
}

static void
drained(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_topology_master *self = ctx;
    struct sl__tm_drain *drain = &self->drain;
    struct sl_worker_drained answer = {0};
    if (!drain->is_running) {
        return;
    }
    if (result->status != SL_RPC_SUCCESS ||
        sl_worker_drained_decode(result->body, result->size, &answer) != 0) {
        drain->is_quiet = false;
    }
    drain->sent += answer.sent;
    drain->received += answer.received;
    uint64_t left = answer.roots + (drain->until == SL__DRAIN_ROOTS ? 0 : answer.waiting);
    drain->left += left;
    drain->is_quiet = drain->is_quiet && left == 0;
    if (--drain->open == 0) {
        round_over(self);
    }
}

static void
start_round(struct sl_topology_master *self)
{
    struct sl__tm_drain *drain = &self->drain;
    struct sl_buf body = {0};
    uint64_t now = sl_loop_now_ms(self->loop);
    uint64_t left = drain->until_ms > now ? drain->until_ms - now : 0;
    drain->sent = 0;
    drain->received = 0;
    drain->left = 0;
    drain->is_quiet = true;
    struct sl_worker_drain wanted = {
        .time_limit_ms = left,
        .is_last = self->phase == SL__TM_ENDING,
        .only_roots = drain->until == SL__DRAIN_ROOTS,
        .may_stay = drain->until == SL__DRAIN_OWNERS,
    };
    sl_worker_drain_encode(&wanted, &body);
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        if (worker != NULL && worker->is_registered) {
            drain->open++;
            /* The worker answers at its limit; ours is a little later. */
            sl_rpc_call(worker->peer.gateway, SL_WORKER_DRAIN, body.data, body.size, left + 1000,
                        drained, self);
        }
    }
    sl_buf_destroy(&body);
    if (drain->open == 0) {
        sl_timer_start(self->loop, &drain->timer, PAUSE_MS, next_round, self);
        round_over(self);
    }
}

void
sl__tm_drain_start(struct sl_topology_master *self, uint64_t limit_ms,
                   enum sl__tm_drain_until until, void (*done)(void *ctx, int status), void *ctx)
{
    struct sl__tm_drain *drain = &self->drain;
    drain->is_running = true;
    drain->until_ms = sl_loop_now_ms(self->loop) + limit_ms;
    drain->until = until;
    drain->open = 0;
    drain->alike = 0;
    drain->done = done;
    drain->ctx = ctx;
    /* In a turn of its own, as all answers are. */
    sl_timer_start(self->loop, &drain->timer, 0, next_round, self);
}

void
sl__tm_drain_stop(struct sl_topology_master *self)
{
    self->drain.is_running = false;
    sl_timer_stop(&self->drain.timer);
}
