#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cluster/master_messages.h"
#include "cluster/runtime_priv.h"
#include "state/leader.h"
#include "state/watch.h"

/* Calls of a topology master or of the leading master, which are found in the state manager anew
 * for each. */

enum {
    /* How long a command waits for a topology master when no process could start one. */
    STEP_MS = 500,
    RETRY_MS = 50,
};

static void
leader_told(void *ctx, const struct sl_state_leader_info *info)
{
    struct sl_runtime *self = ctx;
    self->is_leader_known = info != NULL;
    if (info != NULL) {
        snprintf(self->leader_address, sizeof(self->leader_address), "%s", info->address);
        self->leader_token = info->token;
    }
}

/* Waits until somebody leads the topology; SL_EUNAVAIL when nobody does within the limit. */
static int
find_leader(struct sl_runtime *self, const char *topology, uint64_t limit_ms)
{
    char path[SL_STATE_PATH_MAX + 1];
    bool is_master = self->place == SL__RT_MASTER;
    self->is_leader_known = false;
    snprintf(self->leader_endpoint, sizeof(self->leader_endpoint), "%s%.64s",
             is_master ? SL_ENDPOINT_MASTER : SL_ENDPOINT_TOPOLOGY_MASTER,
             is_master ? "" : topology);
    snprintf(path, sizeof(path), "%s", SL_LAYOUT_MASTER_LEADER);
    struct sl_state_leader_listener *leader = sl_state_leader_listener_new(
        self->store, is_master ? path : sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, topology),
        leader_told, self);
    bool is_found = sl__rt_wait(self, &self->is_leader_known, limit_ms);
    sl_state_leader_listener_free(leader);
    if (!is_found && is_master) {
        return sl_err_set(SL_EUNAVAIL, "no master leads the cluster at present");
    }
    return is_found ? 0 : sl_err_set(SL_EUNAVAIL, "no process leads %s at present", topology);
}

static void
scheduler_seen(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_runtime *self = ctx;
    struct sl_state_leader_info info;
    if (status == 0 && sl_state_leader_info_decode(result->value, result->size, &info) == 0) {
        leader_told(self, &info);
        snprintf(self->leader_endpoint, sizeof(self->leader_endpoint), "%.*s", SL_RPC_NAME_MAX,
                 info.id);
    }
}

/* Waits until the scheduler's endpoint is published. */
static int
find_scheduler(struct sl_runtime *self, const char *topology, uint64_t limit_ms)
{
    char path[SL_STATE_PATH_MAX + 1];
    self->is_leader_known = false;
    struct sl_state_watch *watch = sl_state_watch_new(
        self->store, SL_STATE_GET, sl_layout_path(path, SL_LAYOUT_SCHEDULER, topology),
        scheduler_seen, self);
    bool is_found = sl__rt_wait(self, &self->is_leader_known, limit_ms);
    sl_state_watch_free(watch);
    return is_found ? 0
                    : sl_err_set(SL_EUNAVAIL,
                                 "its scheduler can not be asked: there is no location of it in "
                                 "the state manager (%s)",
                                 path);
}

static int
find_endpoint(struct sl_runtime *self, const char *topology, uint64_t limit_ms)
{
    return self->place == SL__RT_SCHEDULER ? find_scheduler(self, topology, limit_ms)
                                           : find_leader(self, topology, limit_ms);
}

static void
call_done(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_runtime *self = ctx;
    struct sl__rt_outcome *outcome = &self->outcome;
    outcome->is_done = true;
    outcome->rpc = result->status;
    outcome->status = result->code;
    snprintf(outcome->reason, sizeof(outcome->reason), "%s", result->reason);
    sl_buf_clear(&outcome->value);
    if (result->size > 0) {
        sl_buf_append(&outcome->value, result->body, result->size);
    }
}

int
sl__rt_connect(struct sl_runtime *self, struct sl_rpc_gateway **gateway)
{
    return sl_rpc_connect(self->rpc, self->leader_address, self->leader_endpoint,
                          self->leader_token, gateway);
}

/* The two do not have the same secret. */
static bool
is_foreign(const struct sl__rt_outcome *outcome)
{
    return outcome->rpc == SL_RPC_UNREACHABLE && outcome->status == SL_EFENCED;
}

/* One call of what find_endpoint found. */
static int
call_once(struct sl_runtime *self, const char *topology, uint32_t method, const struct sl_buf *body,
          uint64_t limit_ms)
{
    struct sl_rpc_gateway *gateway = NULL;
    int rc = sl__rt_connect(self, &gateway);
    if (rc != 0) {
        return rc;
    }
    sl__rt_begin(self);
    sl_rpc_call(gateway, method, body->data, body->size, limit_ms, call_done, self);
    sl__rt_wait(self, &self->outcome.is_done, limit_ms + 1000);
    sl_rpc_gateway_free(gateway);
    if (!self->outcome.is_done) {
        return self->place == SL__RT_MASTER
                   ? sl_err_set(SL_ETIMEOUT, "the master does not answer")
                   : sl_err_set(SL_ETIMEOUT, "the topology master of %s does not answer", topology);
    }
    if (self->outcome.rpc == SL_RPC_SUCCESS) {
        return 0;
    }
    return sl_err_set(is_foreign(&self->outcome) ? SL_EINVAL : self->outcome.status, "%s",
                      self->outcome.reason);
}

static bool
is_worth_another_try(const struct sl__rt_outcome *outcome)
{
    return outcome->rpc == SL_RPC_STALE_TOKEN ||
           (outcome->rpc == SL_RPC_UNREACHABLE && !is_foreign(outcome)) ||
           (outcome->rpc == SL_RPC_FAILURE && outcome->status == SL_EAGAIN) ||
           (outcome->rpc == SL_RPC_ERROR && outcome->status == SL_ENOTFOUND);
}

bool
sl__rt_is_hopeful(const struct sl_runtime *self, const char *topology)
{
    return strcmp(self->launcher, "local") != 0 || sl__rt_find_presence(self, topology).is_led;
}

/* Who only looks tells that nobody leads. */
static uint64_t
patience_ms(const struct sl_runtime *self, const char *topology)
{
    bool is_in_session = strncmp(self->state_url, "zookeeper:", strlen("zookeeper:")) == 0 &&
                         !self->options.is_reader && self->options.timeout_ms >= SL_RUNTIME_STEP_MS;
    if (!sl__rt_is_hopeful(self, topology)) {
        return STEP_MS;
    }
    return self->leader_ms +
           (is_in_session ? (uint64_t)self->settings.zookeeper_session_timeout_ms : 0);
}

int
sl__rt_call(struct sl_runtime *self, const char *topology, uint32_t method,
            const struct sl_buf *body, uint64_t limit_ms)
{
    static const bool never = false;
    uint64_t until = sl_loop_now_ms(self->loop) + patience_ms(self, topology);
    for (;;) {
        uint64_t now = sl_loop_now_ms(self->loop);
        int rc = find_endpoint(self, topology, now < until ? until - now : 1);
        if (rc != 0) {
            return rc;
        }
        rc = call_once(self, topology, method, body, limit_ms);
        if (rc == 0 || !is_worth_another_try(&self->outcome) ||
            sl_loop_now_ms(self->loop) >= until) {
            return rc;
        }
        sl__rt_wait(self, &never, RETRY_MS);
    }
}

/* One piece after the other; the last one's answer is that of the request. */
static int
call_in_pieces(struct sl_runtime *self, uint32_t method, const struct sl_buf *bytes,
               uint64_t limit_ms, bool *is_last)
{
    struct sl_buf body = {0};
    struct sl_master_piece piece = {.id = sl_random_u64(sl_loop_random(self->loop)),
                                    .total = bytes->size};
    int rc = 0;
    *is_last = false;
    while (rc == 0 && !*is_last) {
        size_t left = bytes->size - piece.offset;
        piece.data = bytes->data + piece.offset;
        piece.size = left < SL_MASTER_PIECE_MAX ? left : SL_MASTER_PIECE_MAX;
        *is_last = piece.size == left;
        sl_buf_clear(&body);
        sl_master_piece_encode(&piece, &body);
        rc = call_once(self, "", method, &body, limit_ms);
        piece.offset += piece.size;
    }
    sl_buf_destroy(&body);
    return rc;
}

int
sl__rt_call_leading_master(struct sl_runtime *self, uint32_t method, const struct sl_buf *body,
                           bool is_long, uint64_t limit_ms, bool *is_uncertain)
{
    static const bool never = false;
    enum sl__rt_place place = self->place;
    uint64_t until = sl_loop_now_ms(self->loop) + self->options.timeout_ms;
    /* The next master leads when the session of a dead one is over. */
    if (self->options.timeout_ms >= SL_RUNTIME_STEP_MS) {
        until += (uint64_t)self->settings.zookeeper_session_timeout_ms;
    }
    int rc;
    self->place = SL__RT_MASTER;
    *is_uncertain = false;
    for (;;) {
        bool is_last = true;
        uint64_t now = sl_loop_now_ms(self->loop);
        rc = find_leader(self, "", now < until ? until - now : 1);
        if (rc != 0) {
            break;
        }
        rc = is_long ? call_in_pieces(self, method, body, limit_ms, &is_last)
                     : call_once(self, "", method, body, limit_ms);
        *is_uncertain =
            *is_uncertain || (is_last && rc != 0 && self->outcome.rpc == SL_RPC_UNREACHABLE);
        if (rc == 0 || !is_worth_another_try(&self->outcome) ||
            sl_loop_now_ms(self->loop) >= until) {
            break;
        }
        sl__rt_wait(self, &never, RETRY_MS);
    }
    self->place = place;
    return rc;
}

/* Reads the status that the last call gave. */
static int
take_status(struct sl_runtime *self)
{
    sl_arena_reset(&self->answer_arena);
    return sl_control_status_decode(self->outcome.value.data, self->outcome.value.size,
                                    &self->answer_arena, &self->status);
}

int
sl__rt_ask(struct sl_runtime *self, const char *topology, uint32_t method,
           const struct sl_control_request *request, uint64_t limit_ms)
{
    struct sl_buf body = {0};
    sl_control_request_encode(request, &body);
    int rc = sl__rt_call(self, topology, method, &body, limit_ms);
    sl_buf_destroy(&body);
    return rc != 0 ? rc : take_status(self);
}
