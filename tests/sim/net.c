#include "rpc/rpc_priv.h"
#include "sim.h"

/*
 * Messages of the roles. Connections keep their order and lose nothing but by a break, as TCP does;
 * what a real network does to messages beyond that (copies of a retry, answers that never come,
 * messages that arrive in another order by another connection) is done here: a message is kept
 * back at its receiver, and a copy of it comes later by a connection of its own.
 */

const struct sl_registration_config registration_config = {100, 800, 300, 300};
const struct sl_heartbeat_config heartbeat_config = {HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS, 2};

/* A copy of a message on its way. */
struct ghost {
    struct world *world;
    struct sl_list_node node;
    struct sl_timer timer;
    struct sl_rpc_gateway *gateway;
    uint32_t method;
    struct sl_buf body;
    /* Whose answer this is: a request that is held, or 0. */
    uint64_t serial;
    uint64_t held;
    /* When the call must have ended; 0 before it starts. */
    uint64_t deadline_ms;
};

static void
ghost_free(struct ghost *ghost)
{
    sl_timer_stop(&ghost->timer);
    sl_list_remove(&ghost->node);
    sl_rpc_gateway_free(ghost->gateway);
    sl_buf_destroy(&ghost->body);
    sl_free(ghost);
}

static void
ghost_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct ghost *ghost = ctx;
    struct proc *proc = proc_by_serial(ghost->world, ghost->serial);
    struct sl_rpc_request *request =
        proc != NULL ? sl_map_u64_remove_ptr(&proc->held, ghost->held) : NULL;
    if (result->status == SL_RPC_STALE_TOKEN) {
        ghost->world->stats.stale++;
    }
    if (request != NULL && result->status == SL_RPC_SUCCESS) {
        sl_rpc_reply(request, result->body, result->size);
    } else if (request != NULL && result->status <= SL_RPC_ERROR) {
        sl_rpc_refuse(request, result->status, result->code, "%s", result->reason);
    } else if (request != NULL) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL, "lost");
    }
    ghost->world->is_changed = true;
    ghost_free(ghost);
}

static void
ghost_goes(void *ctx, uint64_t ticket)
{
    struct ghost *ghost = ctx;
    (void)ticket;
    ghost->deadline_ms = world_now(ghost->world) + CALL_MS;
    sl_rpc_call(ghost->gateway, ghost->method, ghost->body.data, ghost->body.size, CALL_MS,
                ghost_answered, ghost);
}

void
ghosts_create(struct world *world)
{
    world->ghost = sl_sim_loop_new(world->sim, "127.0.9.9");
    world->ghost_rpc = sl_rpc_new(
        world->ghost,
        &(struct sl_rpc_options){
            .role = "network", .name = "ghost", .cluster = "sim", .opening_timeout_ms = 1500});
    sl_list_create(&world->ghosts);
}

void
ghosts_destroy(struct world *world)
{
    sl_list_each(&world->ghosts, it)
    {
        ghost_free(sl_container_of(it, struct ghost, node));
    }
    sl_rpc_free(world->ghost_rpc);
    sl_loop_free(world->ghost);
}

/* Sends a copy later. */
static void
copy_later(struct proc *proc, const struct sl_rpc_request *request, uint64_t held)
{
    struct world *world = proc->world;
    struct ghost *ghost = sl_calloc(1, sizeof(*ghost));
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    ghost->world = world;
    ghost->method = sl_rpc_request_method(request);
    ghost->serial = proc->serial;
    ghost->held = held;
    sl_buf_append(&ghost->body, body, size);
    int rc = sl_rpc_connect(world->ghost_rpc, sl_rpc_address(proc->rpc),
                            proc->endpoint.endpoint->options.name, sl_rpc_request_token(request),
                            &ghost->gateway);
    sl_assert_eq(rc, 0);
    sl_list_push_back(&world->ghosts, &ghost->node);
    world->stats.copies++;
    sl_timer_start(world->ghost, &ghost->timer,
                   1 + sl_random_below(&world->random, world->faults.delay_max_ms), ghost_goes,
                   ghost);
}

/* The name of the asking process, "" for the network's copies. */
static void
request_peer(struct sl_rpc_request *request, char *name, size_t size)
{
    /* "'role' 'name' at address" */
    const char *peer = sl_rpc_request_peer(request);
    const char *from = strstr(peer, "' '");
    const char *to = from != NULL ? strchr(from + 3, '\'') : NULL;
    size_t len = to != NULL ? (size_t)(to - from - 3) : 0;
    snprintf(name, size, "%.*s", (int)len, len > 0 ? from + 3 : "");
    if (strcmp(name, "ghost") == 0) {
        name[0] = '\0';
    }
}

/* Lets the network have the message, which then is nobody's until its copy comes. */
static uint64_t
hold(struct proc *proc, struct sl_rpc_request *request)
{
    uint64_t id = proc->next_held++;
    sl_map_u64_put_ptr(&proc->held, id, request);
    return id;
}

/* True when the message went to the network instead. */
static bool
meddle(struct proc *proc, struct sl_rpc_request *request)
{
    struct world *world = proc->world;
    const struct fault_plan *faults = &world->faults;
    uint64_t draw;
    char peer[32];
    if (world->is_healing || faults->drop_ppm + faults->duplicate_ppm + faults->delay_ppm == 0) {
        return false;
    }
    draw = sl_random_below(&world->random, 1000000);
    if (draw >= faults->drop_ppm + faults->duplicate_ppm + faults->delay_ppm) {
        return false;
    }
    request_peer(request, peer, sizeof(peer));
    if (peer[0] == '\0') {
        return false;
    }
    if (draw < faults->drop_ppm) {
        hold(proc, request);
        return true;
    }
    if (draw < faults->drop_ppm + faults->duplicate_ppm) {
        copy_later(proc, request, 0);
        return false;
    }
    copy_later(proc, request, hold(proc, request));
    return true;
}

void
held_drop(struct proc *proc)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&proc->held, &at)) != NULL;) {
        sl_rpc_refuse((struct sl_rpc_request *)(uintptr_t)entry->value, SL_RPC_FAILURE, SL_EUNAVAIL,
                      "lost");
    }
    sl_map_u64_clear(&proc->held);
}

/* Two processes that ask for slots under one token would both believe that they lead. */
static void
note_act(struct proc *proc, struct sl_rpc_request *request)
{
    struct world *world = proc->world;
    struct sl_slot_request message;
    struct sl_arena arena;
    char peer[32];
    uint64_t who = 0;
    uint64_t known;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    request_peer(request, peer, sizeof(peer));
    sl_arena_create(&arena, 0, 0);
    if (peer[0] != '\0' && sl_slot_request_decode(body, size, &arena, &message) == 0) {
        memcpy(&who, peer, strnlen(peer, sizeof(who)));
        if (!sl_map_u64_get(&world->acts, message.token, &known)) {
            sl_map_u64_put(&world->acts, message.token, who);
        } else if (known != who) {
            world_fail(world, "two masters, one of them %s, act under token %llu", peer,
                       (unsigned long long)message.token);
        }
    }
    sl_arena_destroy(&arena);
}

static void
on_request(void *ctx, struct sl_rpc_request *request)
{
    struct port *port = ctx;
    struct proc *proc = port->proc;
    uint32_t id = sl_rpc_request_method(request);
    proc->world->is_changed = true;
    if (port->endpoint->options.is_fenced &&
        (port->endpoint->token == 0 || sl_rpc_request_token(request) != port->endpoint->token)) {
        world_fail(proc->world, "%s handles a message of term %llu in term %llu", proc->name,
                   (unsigned long long)sl_rpc_request_token(request),
                   (unsigned long long)port->endpoint->token);
    }
    if (id == SL_SV_REQUEST_SLOT) {
        note_act(proc, request);
    }
    if (meddle(proc, request)) {
        return;
    }
    for (size_t i = 0; i < port->endpoint->options.method_count; i++) {
        if (port->methods[i].id == id) {
            port->methods[i].handle(port->ctx, request);
            return;
        }
    }
    sl_unreachable();
}

void
net_meddle(struct proc *proc, const char *name)
{
    struct port *port = &proc->endpoint;
    struct sl_rpc_endpoint *endpoint = sl_map_bytes_get_str(&proc->rpc->endpoints, name);
    sl_assert(endpoint != NULL);
    sl_assert_le(endpoint->options.method_count, METHODS_MAX);
    sl_assert(endpoint->options.on_start == NULL && endpoint->options.on_stop == NULL);
    port->proc = proc;
    port->endpoint = endpoint;
    port->methods = endpoint->options.methods;
    port->ctx = endpoint->options.ctx;
    for (size_t i = 0; i < endpoint->options.method_count; i++) {
        port->meddled[i] = (struct sl_rpc_method){port->methods[i].id, on_request};
    }
    endpoint->options.methods = port->meddled;
    endpoint->options.ctx = port;
}

void
ghosts_check(struct world *world)
{
    sl_list_each(&world->ghosts, it)
    {
        const struct ghost *ghost = sl_container_of(it, struct ghost, node);
        if (ghost->deadline_ms != 0 && ghost->deadline_ms < world_now(world)) {
            world_fail(world, "a call of method %u did not end in its time", ghost->method);
        }
    }
}
