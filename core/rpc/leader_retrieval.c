#include "rpc/leader_retrieval.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "state/leader.h"
#include "state/path.h"

struct sl_leader_retrieval {
    struct sl_state_store *store;
    struct sl_loop *loop;
    char *path;
    sl_leader_changed_fn fn;
    void *ctx;
    struct sl_state_leader_listener *listener;
    struct sl_timer relook;
    uint64_t relook_ms;
    /* Of the leader that was told last. */
    uint64_t token;
};

static void
on_leader(void *ctx, const struct sl_state_leader_info *info)
{
    struct sl_leader_retrieval *self = ctx;
    uint64_t token = info != NULL ? info->token : 0;
    if (token != self->token) {
        self->token = token;
        self->relook_ms = SL_LEADER_RELOOK_FIRST_MS;
    }
    if (info != NULL) {
        self->fn(self->ctx, info->address, info->token);
    } else {
        self->fn(self->ctx, NULL, 0);
    }
}

/* A new listener tells its first view whatever the old one told. */
static void
look(void *ctx, uint64_t ticket)
{
    struct sl_leader_retrieval *self = ctx;
    (void)ticket;
    sl_state_leader_listener_free(self->listener);
    self->listener = sl_state_leader_listener_new(self->store, self->path, on_leader, self);
}

struct sl_leader_retrieval *
sl_leader_retrieval_new(struct sl_state_store *store, struct sl_loop *loop, const char *path,
                        sl_leader_changed_fn fn, void *ctx)
{
    struct sl_leader_retrieval *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->loop = loop;
    self->path = sl_strdup(path);
    self->fn = fn;
    self->ctx = ctx;
    self->relook_ms = SL_LEADER_RELOOK_FIRST_MS;
    look(self, 0);
    return self;
}

void
sl_leader_retrieval_free(struct sl_leader_retrieval *self)
{
    if (self != NULL) {
        sl_timer_stop(&self->relook);
        sl_state_leader_listener_free(self->listener);
        sl_free(self->path);
        sl_free(self);
    }
}

void
sl_leader_retrieval_look_again(struct sl_leader_retrieval *self)
{
    sl_timer_start(self->loop, &self->relook, self->relook_ms, look, self);
    self->relook_ms =
        self->relook_ms * 2 < SL_LEADER_RELOOK_MS ? self->relook_ms * 2 : SL_LEADER_RELOOK_MS;
}

/* One topology that is watched. */
struct topology_leader {
    struct sl_topology_leaders *owner;
    char *topology;
    struct sl_leader_retrieval *retrieval;
};

static void
on_topology_leader(void *ctx, const char *address, uint64_t token)
{
    const struct topology_leader *self = ctx;
    self->owner->fn(self->owner->ctx, self->topology, address, token);
}

static void
topology_leader_free(struct topology_leader *self)
{
    sl_leader_retrieval_free(self->retrieval);
    sl_free(self->topology);
    sl_free(self);
}

void
sl_topology_leaders_create(struct sl_topology_leaders *self, struct sl_state_store *store,
                           struct sl_loop *loop, const char *folder, sl_topology_leader_fn fn,
                           void *ctx)
{
    *self = (struct sl_topology_leaders){
        .store = store, .loop = loop, .folder = folder, .fn = fn, .ctx = ctx};
}

void
sl_topology_leaders_destroy(struct sl_topology_leaders *self)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        topology_leader_free(entry->value);
    }
    sl_map_bytes_destroy(&self->topologies);
}

static int
watch_start(void *ctx, const char *topology)
{
    struct sl_topology_leaders *self = ctx;
    const char *failure = sl_state_store_failure(self->store);
    if (failure != NULL) {
        return sl_err_set(SL_EUNAVAIL, "the leader of %s can not be watched: %s", topology,
                          failure);
    }
    if (sl_map_bytes_get_str(&self->topologies, topology) != NULL) {
        return sl_err_set(SL_EEXIST, "the leader of %s is watched already", topology);
    }
    struct topology_leader *leader = sl_calloc(1, sizeof(*leader));
    char *path = sl_state_path_join_dup(self->folder, topology);
    leader->owner = self;
    leader->topology = sl_strdup(topology);
    sl_map_bytes_put_str(&self->topologies, topology, leader);
    leader->retrieval =
        sl_leader_retrieval_new(self->store, self->loop, path, on_topology_leader, leader);
    sl_free(path);
    return 0;
}

static void
watch_stop(void *ctx, const char *topology)
{
    struct sl_topology_leaders *self = ctx;
    struct topology_leader *leader = sl_map_bytes_get_str(&self->topologies, topology);
    if (leader != NULL) {
        sl_map_bytes_remove_str(&self->topologies, topology);
        topology_leader_free(leader);
    }
}

struct sl_leader_watch
sl_topology_leaders_watch(struct sl_topology_leaders *self)
{
    return (struct sl_leader_watch){watch_start, watch_stop, self};
}

void
sl_topology_leaders_look_again(struct sl_topology_leaders *self, const char *topology)
{
    const struct topology_leader *leader = sl_map_bytes_get_str(&self->topologies, topology);
    if (leader != NULL) {
        sl_leader_retrieval_look_again(leader->retrieval);
    }
}
