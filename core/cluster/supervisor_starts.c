#include "cluster/supervisor_starts.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "rpc/leader_retrieval.h"
#include "rpc/messages.h"
#include "state/layout.h"

struct start {
    struct sl_supervisor_starts *owner;
    struct sl_list_node node;
    char topology[SL_NAME_MAX + 1];
    struct sl_rpc_request *request;
    struct sl_leader_retrieval *leader;
    struct sl_timer timer;
    int ends;
};

void
sl_supervisor_starts_create(struct sl_supervisor_starts *self, struct sl_loop *loop,
                            struct sl_state_store *store,
                            void (*give_up)(void *ctx, const char *topology), void *ctx)
{
    *self =
        (struct sl_supervisor_starts){.loop = loop, .store = store, .give_up = give_up, .ctx = ctx};
    sl_list_create(&self->list);
}

static void
start_free(struct start *start)
{
    sl_leader_retrieval_free(start->leader);
    sl_timer_stop(&start->timer);
    sl_list_remove(&start->node);
    sl_free(start);
}

void
sl_supervisor_starts_destroy(struct sl_supervisor_starts *self)
{
    sl_list_each(&self->list, it)
    {
        struct start *start = sl_container_of(it, struct start, node);
        sl_rpc_refuse(start->request, SL_RPC_FAILURE, SL_EUNAVAIL, "the supervisor ends");
        start_free(start);
    }
}

static void
reply(struct start *start)
{
    sl_rpc_reply(start->request, NULL, 0);
    start_free(start);
}

static void
led(void *ctx, const char *address, uint64_t token)
{
    (void)token;
    if (address != NULL) {
        reply(ctx);
    }
}

static void
waited_long_enough(void *ctx, uint64_t ticket)
{
    (void)ticket;
    reply(ctx);
}

void
sl_supervisor_starts_add(struct sl_supervisor_starts *self, const char *topology,
                         struct sl_rpc_request *request)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct start *start = sl_calloc(1, sizeof(*start));
    start->owner = self;
    snprintf(start->topology, sizeof(start->topology), "%s", topology);
    start->request = request;
    start->leader = sl_leader_retrieval_new(
        self->store, self->loop, sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, topology), led,
        start);
    sl_list_push_back(&self->list, &start->node);
    sl_timer_start(self->loop, &start->timer, SL_SUPERVISOR_START_MS, waited_long_enough, start);
}

static void
fail(struct start *start, const char *text, bool is_for_good)
{
    struct sl_supervisor_starts *self = start->owner;
    char topology[SL_NAME_MAX + 1];
    snprintf(topology, sizeof(topology), "%s", start->topology);
    sl_rpc_refuse(start->request, SL_RPC_FAILURE, SL_EUSER, "it ends %s (%s)",
                  is_for_good ? "at once" : "again and again", text);
    start_free(start);
    if (!is_for_good) {
        self->give_up(self->ctx, topology);
    }
}

void
sl_supervisor_starts_ended(struct sl_supervisor_starts *self, const char *topology,
                           const char *text, bool is_for_good)
{
    sl_list_each(&self->list, it)
    {
        struct start *start = sl_container_of(it, struct start, node);
        if (strcmp(start->topology, topology) == 0 &&
            (is_for_good || ++start->ends >= SL_SUPERVISOR_STARTS_MAX)) {
            fail(start, text, is_for_good);
        }
    }
}
