#include "rpc/rpc.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "rpc/rpc_priv.h"

const char *
sl_rpc_status_name(enum sl_rpc_status status)
{
    switch (status) {
    case SL_RPC_SUCCESS:
        return "SUCCESS";
    case SL_RPC_FAILURE:
        return "FAILURE";
    case SL_RPC_REJECTION:
        return "REJECTION";
    case SL_RPC_STALE_TOKEN:
        return "STALE_TOKEN";
    case SL_RPC_ERROR:
        return "ERROR";
    case SL_RPC_TIMEOUT:
        return "TIMEOUT";
    case SL_RPC_UNREACHABLE:
        return "UNREACHABLE";
    }
    return "UNKNOWN";
}

static char *
copy_name(const char *text)
{
    return text == NULL ? sl_strdup("") : sl_strndup(text, strnlen(text, SL_RPC_NAME_MAX));
}

struct sl_rpc *
sl_rpc_new(struct sl_loop *loop, const struct sl_rpc_options *options)
{
    struct sl_rpc *rpc = sl_calloc(1, sizeof(*rpc));
    struct sl_rpc_options *own = &rpc->options;
    rpc->loop = loop;
    *own = *options;
    rpc->role = copy_name(options->role);
    rpc->name = copy_name(options->name);
    rpc->cluster = copy_name(options->cluster);
    if (options->secret_size > 0) {
        rpc->secret = sl_alloc(options->secret_size);
        memcpy(rpc->secret, options->secret, options->secret_size);
    }
    own->role = rpc->role;
    own->name = rpc->name;
    own->cluster = rpc->cluster;
    own->secret = rpc->secret;
    own->call_timeout_ms = own->call_timeout_ms != 0 ? own->call_timeout_ms : SL_RPC_CALL_MS;
    own->frame_timeout_ms = own->frame_timeout_ms != 0 ? own->frame_timeout_ms : SL_RPC_FRAME_MS;
    own->opening_timeout_ms =
        own->opening_timeout_ms != 0 ? own->opening_timeout_ms : SL_RPC_OPENING_MS;
    own->retry_gate_ms = own->retry_gate_ms != 0 ? own->retry_gate_ms : SL_RPC_RETRY_GATE_MS;
    own->connections_max =
        own->connections_max != 0 ? own->connections_max : SL_RPC_CONNECTIONS_MAX;
    own->version = own->version != 0 ? own->version : SL_RPC_VERSION;
    own->min_version = own->min_version != 0 ? own->min_version : SL_RPC_MIN_VERSION;
    sl_list_create(&rpc->listeners);
    sl_list_create(&rpc->conns);
    sl_list_create(&rpc->gateways);
    /* What one message can make us allocate: a few times its largest size. */
    sl_arena_create(&rpc->arena, 16 * 1024, 4 * SL_FRAME_CONTROL_MAX);
    rpc->next_call = 1;
    return rpc;
}

void
sl_rpc_free(struct sl_rpc *rpc)
{
    if (rpc == NULL) {
        return;
    }
    sl_assert(sl_list_is_empty(&rpc->gateways));
    sl_assert_eq(rpc->endpoints.count, 0);
    sl_list_each(&rpc->listeners, it)
    {
        struct sl__rpc_listener *listener = sl_container_of(it, struct sl__rpc_listener, node);
        sl_listener_close(listener->listener);
        sl_free(listener);
    }
    sl_list_each(&rpc->conns, it)
    {
        struct sl__rpc_conn *conn = sl_container_of(it, struct sl__rpc_conn, node);
        sl__rpc_conn_drop(conn);
        conn->rpc = NULL;
        sl_list_remove(&conn->node);
    }
    sl_map_bytes_destroy(&rpc->endpoints);
    sl_arena_destroy(&rpc->arena);
    sl_buf_destroy(&rpc->scratch);
    sl_free(rpc->role);
    sl_free(rpc->name);
    sl_free(rpc->cluster);
    sl_free(rpc->secret);
    sl_free(rpc);
}

struct sl_loop *
sl_rpc_loop(const struct sl_rpc *rpc)
{
    return rpc->loop;
}

const char *
sl_rpc_address(const struct sl_rpc *rpc)
{
    return rpc->address;
}

const struct sl_rpc_stats *
sl_rpc_stats(const struct sl_rpc *rpc)
{
    return &rpc->stats;
}

static void
on_accept(void *ctx, struct sl_stream *stream)
{
    struct sl__rpc_listener *listener = ctx;
    sl__rpc_conn_accept(listener->rpc, stream);
}

static const struct sl_listener_handler listener_handler = {on_accept};

int
sl_rpc_listen(struct sl_rpc *rpc, const char *text)
{
    struct sl_address address;
    int rc = sl_address_parse(text, &address);
    if (rc != 0) {
        return rc;
    }
    if (rpc->options.secret_size == 0 && !sl_address_is_loopback(&address)) {
        return sl_err_set(SL_EFENCED,
                          "listen on %s: other machines can reach it and the setting `secret` is "
                          "missing",
                          text);
    }
    struct sl__rpc_listener *listener = sl_calloc(1, sizeof(*listener));
    listener->rpc = rpc;
    rc = sl_listener_open(rpc->loop, &address, &listener_handler, listener, &listener->listener);
    if (rc != 0) {
        sl_free(listener);
        return rc;
    }
    if (sl_list_is_empty(&rpc->listeners)) {
        sl_address_format(sl_listener_address(listener->listener), rpc->address,
                          sizeof(rpc->address));
    }
    sl_list_push_back(&rpc->listeners, &listener->node);
    return 0;
}
