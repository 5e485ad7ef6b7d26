#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/local_roles.h"
#include "cluster/worker_role_priv.h"
#include "state/layout.h"
#include "state/open.h"
#include "wire/frame.h"

enum {
    /* How long an end waits until the peers have what was written for them. */
    LAST_WORDS_MS = 1000,
    /* How long a local topology may be without a topology master before a guardian is looked for:
     * longer than one takes to start the next. */
    RESCUE_MS = 3000,
};

/* ---- the topology master -------------------------------------------------------------------- */

static void
master_gone(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl__wr_ask_end(ctx, 1, "no topology master");
}

/* All workers do so; one guardian stays. */
static void
rescue(void *ctx, uint64_t ticket)
{
    struct sl_worker_role *self = ctx;
    struct sl_role_options options = {.state_url = self->state_url,
                                      .topology = self->topology,
                                      .program = self->program,
                                      .logs = self->logs};
    (void)ticket;
    if (sl_guardian_rescue(self->loop, &options) != 0) {
        sl_log_warn("cluster.worker", "start a guardian: %s", sl_err_last()->msg);
    }
    sl_timer_start(self->loop, &self->rescue_timer, RESCUE_MS, rescue, self);
}

static void
master_missing(struct sl_worker_role *self)
{
    if (self->logs != NULL && !sl_timer_is_running(&self->rescue_timer)) {
        sl_timer_start(self->loop, &self->rescue_timer, RESCUE_MS, rescue, self);
    }
    if (!sl_timer_is_running(&self->master_timer)) {
        sl_timer_start(self->loop, &self->master_timer, (uint64_t)self->options.no_master_ms,
                       master_gone, self);
    }
}

static void
on_registered(void *ctx, uint64_t token)
{
    struct sl_worker_role *self = ctx;
    (void)token;
    sl_timer_stop(&self->master_timer);
    sl_timer_stop(&self->rescue_timer);
}

static void
on_lost(void *ctx, const char *cause)
{
    struct sl_worker_role *self = ctx;
    sl_log_info("cluster.worker", "the topology master is lost: %s", cause);
    master_missing(self);
}

/* It is another one by now, or has not begun yet. */
static void
on_stale_leader(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_leader_retrieval_look_again(self->leader);
}

static void
on_rejected(void *ctx, const char *reason)
{
    sl__wr_ask_end(ctx, 0, reason);
}

static void
leader_changed(void *ctx, const char *address, uint64_t token)
{
    struct sl_worker_role *self = ctx;
    if (address == NULL) {
        sl_worker_registration_leader(self->registration, NULL, 0);
        master_missing(self);
        return;
    }
    self->identity.plan_version = self->is_plan_run ? self->plan.plan_version : 0;
    sl_worker_registration_leader(self->registration, address, token);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void *
thread_main(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_log_set_thread("io");
    sl_loop_run(self->loop);
    return NULL;
}

static void
stopped(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_loop_stop(self->loop);
}

/* On the loop: lets everything go that hangs on it. */
static void
end(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_timer_stop(&self->master_timer);
    sl_timer_stop(&self->rescue_timer);
    sl__wr_requests_end(self);
    if (self->moves != NULL) {
        sl_remote_listen(sl_worker_remote(self->worker), NULL);
        sl_worker_moves_free(self->moves);
        self->moves = NULL;
    }
    if (self->leader != NULL) {
        sl_leader_retrieval_free(self->leader);
    }
    sl_worker_registration_free(self->registration);
    if (self->rpc != NULL) {
        sl_rpc_free(self->rpc);
    }
    sl_data_link_free(self->links);
    self->links = NULL;
    if (self->store != NULL) {
        sl_state_store_close(self->store, stopped, self);
    } else {
        stopped(self);
    }
}

/* What was written for peers that are there must reach them: nobody would send it again. */
static void
end_when_sent(void *ctx, uint64_t ticket)
{
    struct sl_worker_role *self = ctx;
    struct sl_remote_stats stats;
    int32_t connected;
    (void)ticket;
    sl_remote_stats(sl_worker_remote(self->worker), &stats);
    sl_data_link_peers(self->links, &connected);
    if (stats.unconfirmed > 0 && connected > 0 && sl_loop_now_ms(self->loop) < self->end_until_ms) {
        sl_timer_start(self->loop, &self->end_timer, SL__WR_LOOK_MS, end_when_sent, self);
        return;
    }
    end(self);
}

static void
begin_end(void *ctx)
{
    struct sl_worker_role *self = ctx;
    self->end_until_ms = sl_loop_now_ms(self->loop) + LAST_WORDS_MS;
    end_when_sent(self, 0);
}

void
sl_worker_role_free(struct sl_worker_role *self)
{
    if (self == NULL) {
        return;
    }
    sl_loop_post(self->loop, begin_end, self);
    if (self->has_thread) {
        pthread_join(self->thread, NULL);
    } else {
        sl_loop_run(self->loop);
    }
    sl_state_loop_executor_destroy(&self->executor);
    sl_loop_free(self->loop);
    sl_map_u64_destroy(&self->requests);
    sl_arena_destroy(&self->plan_arena);
    sl_arena_destroy(&self->arena);
    sl_buf_destroy(&self->scratch);
    sl__wr_pieces_free(self->pieces.items, self->pieces.count);
    sl_free(self->staged.component);
    sl_free(self->staged.state);
    for (size_t i = 0; i < self->counted.count; i++) {
        sl_free((char *)(uintptr_t)self->counted.items[i].component);
    }
    sl_vec_destroy(&self->counted);
    sl_free(self->secret);
    sl_free(self->state_url);
    sl_free(self->logs);
    sl_free(self->program);
    sl_free(self);
}

static int
send_letter(void *ctx, int32_t peer, const void *bytes, size_t size)
{
    struct sl_worker_role *self = ctx;
    return sl_remote_send(sl_worker_remote(self->worker), peer, bytes, size);
}

static void
hear_letter(void *ctx, int32_t peer, const uint8_t *bytes, size_t size)
{
    struct sl_worker_role *self = ctx;
    sl_worker_moves_heard(self->moves, peer, bytes, size);
}

static void
hear_change(void *ctx, int32_t peer, enum sl_remote_change change)
{
    struct sl_worker_role *self = ctx;
    sl_worker_moves_changed(self->moves, peer, change);
}

/* Letters between workers carry state that moves, where tasks have some. */
static void
start_moves(struct sl_worker_role *self)
{
    struct sl_worker_moves_options options = {.loop = self->loop,
                                              .container = self->options.container,
                                              .send = send_letter,
                                              .ask = sl__wr_ask_export,
                                              .ctx = self};
    struct sl_remote_listener listener = {
        .on_message = hear_letter, .on_change = hear_change, .ctx = self};
    self->moves = sl_worker_moves_new(&options);
    sl_remote_listen(sl_worker_remote(self->worker), &listener);
}

static int
start_links(struct sl_worker_role *self)
{
    struct sl_data_link_options options = {.remote = sl_worker_remote(self->worker),
                                           .bell = &self->bell,
                                           .container = self->options.container,
                                           .secret = self->secret,
                                           .secret_size = self->options.secret_len,
                                           .on_change = sl__wr_peers_changed,
                                           .ctx = self};
    memcpy(options.identity, self->identity.identity, sizeof(options.identity));
    self->links = sl_data_link_new(self->loop, &options);
    int rc = sl_data_link_listen(self->links, self->host, (uint16_t)self->options.data_port);
    if (rc == 0) {
        self->data_port = sl_data_link_port(self->links);
    }
    return rc;
}

/* Where the topology master is, and the endpoint on which it asks. */
static int
start_control(struct sl_worker_role *self)
{
    struct sl_address address = {.kind = SL_ADDRESS_TCP};
    char text[SL_ADDRESS_TEXT_SIZE];
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_rpc_options rpc = {.role = "worker",
                                 .name = self->resource,
                                 .secret = self->secret,
                                 .secret_size = self->options.secret_len};
    sl_settings_apply_rpc(&self->settings, &rpc);
    self->rpc = sl_rpc_new(self->loop, &rpc);
    snprintf(address.host, sizeof(address.host), "%s", self->host);
    int rc = sl_rpc_listen(self->rpc, sl_address_format(&address, text, sizeof(text)));
    if (rc != 0) {
        return rc;
    }
    address.port = self->data_port;
    sl_address_format(&address, self->data_address, sizeof(self->data_address));
    self->identity.topology = self->topology;
    self->identity.address = sl_rpc_address(self->rpc);
    self->identity.resource = self->resource;
    self->identity.process = sl_random_u64(sl_loop_random(self->loop));
    self->identity.supervisor = self->supervisor;
    self->identity.port = (uint32_t)self->options.slot_port;
    self->identity.data_address = self->data_address;
    self->identity.container = self->options.container;
    self->identity.pid = (uint64_t)getpid();
    struct sl_worker_registration_options registration = {
        .rpc = self->rpc,
        .identity = &self->identity,
        .registration = sl_settings_registration(&self->settings),
        .heartbeat = sl_settings_heartbeat(&self->settings),
        .on_registered = on_registered,
        .on_lost = on_lost,
        .on_stale_leader = on_stale_leader,
        .on_rejected = on_rejected,
        .make_payload = sl__wr_make_payload,
        .handle = sl__wr_handle,
        .ctx = self};
    rc = sl_worker_registration_new(&registration, &self->registration);
    if (rc != 0) {
        return rc;
    }
    struct sl_state_open_options state = {0};
    sl_settings_apply_state(&self->settings, &state);
    self->store = sl_state_open_new(self->options.state_url, &self->executor.executor, &state);
    if (self->store == NULL) {
        return sl_err_last()->code;
    }
    sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, self->topology);
    self->leader = sl_leader_retrieval_new(self->store, self->loop, path, leader_changed, self);
    master_missing(self);
    return 0;
}

static int
check(struct sl_worker *worker, const struct sl_worker_role_options *options)
{
    static const uint8_t none[SL_REMOTE_IDENTITY_SIZE];
    if (sl_worker_remote(worker) == NULL) {
        return sl_err_set(SL_EINVAL, "the worker has no lane to other processes");
    }
    if (options->topology == NULL || strlen(options->topology) > SL_NAME_MAX ||
        options->host == NULL || options->host[0] == '\0' ||
        strlen(options->host) >= SL_ADDRESS_HOST_SIZE || options->container < 0 ||
        options->container > SL_REMOTE_PEER_MAX || options->data_port < 0 ||
        options->data_port > 65535 || options->slot_port < 0 || options->slot_port > 65535 ||
        (options->supervisor != NULL && strlen(options->supervisor) > SL_NAME_MAX) ||
        !(options->no_master_ms >= 0 && options->no_master_ms < 1e12)) {
        return sl_err_set(SL_EINVAL, "options of the worker's role are out of range");
    }
    if (options->state_url == NULL &&
        memcmp(options->identity, none, sizeof(options->identity)) == 0) {
        return sl_err_set(SL_EINVAL, "a worker without a topology master needs an identity");
    }
    return 0;
}

int
sl_worker_role_new(struct sl_worker *worker, const struct sl_worker_role_options *options,
                   const struct sl_settings *settings, struct sl_worker_role **role)
{
    static const uint8_t none[SL_REMOTE_IDENTITY_SIZE];
    int rc = check(worker, options);
    if (rc != 0) {
        return rc;
    }
    struct sl_worker_role *self = sl_calloc(1, sizeof(*self));
    rc = sl_loop_new(&self->loop);
    if (rc != 0) {
        sl_free(self);
        return rc;
    }
    self->worker = worker;
    self->options = *options;
    self->settings = *settings;
    snprintf(self->topology, sizeof(self->topology), "%s", options->topology);
    snprintf(self->host, sizeof(self->host), "%s", options->host);
    if (options->supervisor != NULL) {
        snprintf(self->supervisor, sizeof(self->supervisor), "%s", options->supervisor);
    }
    snprintf(self->resource, sizeof(self->resource), "container-%d", options->container);
    if (options->secret_len > 0) {
        self->secret = sl_alloc(options->secret_len);
        memcpy(self->secret, options->secret, options->secret_len);
    }
    if (options->logs != NULL && options->program != NULL && options->state_url != NULL) {
        self->state_url = sl_strdup(options->state_url);
        self->logs = sl_strdup(options->logs);
        self->program = sl_strdup(options->program);
    }
    if (options->no_master_ms == 0) {
        self->options.no_master_ms = SL_WORKER_NO_MASTER_MS;
    }
    memcpy(self->identity.identity, options->identity, sizeof(self->identity.identity));
    if (memcmp(options->identity, none, sizeof(none)) == 0) {
        sl_loop_entropy(self->loop, self->identity.identity, sizeof(self->identity.identity));
    }
    sl_state_loop_executor_create(&self->executor, self->loop);
    sl_map_u64_create(&self->requests);
    sl_arena_create(&self->plan_arena, 0, 4 * (size_t)SL_PHYSICAL_PLAN_BYTES_MAX);
    sl_arena_create(&self->arena, 0, 4 * (size_t)SL_FRAME_CONTROL_MAX);
    if (options->drains_owner == 0) {
        start_moves(self);
    }
    rc = start_links(self);
    if (rc == 0 && options->state_url != NULL) {
        rc = start_control(self);
    }
    if (rc == 0 && pthread_create(&self->thread, NULL, thread_main, self) != 0) {
        rc = sl_err_set(SL_ESYS, "start the thread of the worker's connections");
    }
    if (rc != 0) {
        struct sl_err why = *sl_err_last();
        sl_worker_role_free(self);
        return sl_err_restore(&why);
    }
    self->has_thread = true;
    *role = self;
    return 0;
}

uint16_t
sl_worker_role_data_port(const struct sl_worker_role *self)
{
    return self->data_port;
}
