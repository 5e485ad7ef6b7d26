/*
 * Measures the control plane: calls over loopback beside raw libuv TCP of the same run, slot
 * requests through pool and slot manager, registrations, heartbeats.
 *
 * Usage: bench_control [--quick] [calls] [one_way] [round_trips] [slots] [registrations]; prints
 * lines `name value`, rates per second and times in seconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <uv.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "cluster/resource_manager.h"
#include "cluster/slot_pool.h"
#include "cluster/supervisor_slots.h"
#include "loop/sim.h"
#include "rpc/rpc.h"
#include "wire/frame.h"

/* Bytes of a message; calls under way; one-way messages of a batch, and batches under way. */
enum { MESSAGE = 64, WINDOW = 512, BATCH = 256, BATCHES = 8 };

static uint64_t bench_ns = 1000000000;

static uint64_t
now_ns(void)
{
    return sl_clock_mono_ns(sl_clock_system());
}

static double
cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6 +
           (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6;
}

static void
print_rate(const char *name, uint64_t count, uint64_t ns)
{
    printf("%s %.1f\n", name, (double)count * 1e9 / (double)ns);
    fflush(stdout);
}

/*
 * Raw libuv: an echo server on a thread of its own and a client that keeps `window` messages under
 * way. What is done for each message:
 *   RAW_EACH      counted, and written alone: one system call a message
 *   RAW_GATHERED  counted; what one read answers goes out in one write
 *   RAW_FRAMED    the work of a frame too: its header is written, read and checked, and its payload
 *                 copied; what one read answers goes out in one write. Of one-way messages the
 *                 server answers the last of every batch only
 */
enum raw_kind {
    RAW_EACH,
    RAW_GATHERED,
    RAW_FRAMED,
};

struct raw_side {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_tcp_t stream;
    uv_connect_t connect;
    uv_async_t stop;
    char read_buffer[65536];
    bool is_client;
    enum raw_kind kind;
    /* Messages of a batch of which the last one is answered; 1: every one. */
    int batch;
    int window;
    struct sl_frame_decoder decoder;
    struct sl_buf out;
    uint64_t done;
    uint64_t partial;
    uint64_t start_ns;
    uint64_t end_ns;
};

struct raw_write {
    uv_write_t request;
    char data[];
};

static void
raw_written(uv_write_t *request, int status)
{
    (void)status;
    free(request->data);
}

static void
raw_send(struct raw_side *side, const char *data, size_t size)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)data, (unsigned)size);
    int count = uv_try_write((uv_stream_t *)&side->stream, &buffer, 1);
    size_t sent = count > 0 ? (size_t)count : 0;
    if (sent < size) {
        struct raw_write *write = malloc(sizeof(*write) + size - sent);
        sl_assert(write != NULL);
        memcpy(write->data, data + sent, size - sent);
        write->request.data = write;
        buffer = uv_buf_init(write->data, (unsigned)(size - sent));
        uv_write(&write->request, (uv_stream_t *)&side->stream, &buffer, 1, raw_written);
    }
}

static void
raw_send_messages(struct raw_side *side, uint64_t count)
{
    static const char block[MESSAGE * 2048];
    while (count > 0) {
        uint64_t part = side->kind == RAW_GATHERED ? (count < 2048 ? count : 2048) : 1;
        raw_send(side, block, part * MESSAGE);
        count -= part;
    }
}

static void
raw_append_frame(struct raw_side *side, uint16_t type, const void *payload)
{
    size_t start = sl_frame_begin(&side->out);
    sl_buf_append(&side->out, payload, MESSAGE);
    sl_frame_end(&side->out, start, type, 1);
}

static void
raw_append_batch(struct raw_side *side)
{
    static const char payload[MESSAGE];
    for (int i = 1; i < side->batch; i++) {
        raw_append_frame(side, SL_FRAME_ONE_WAY, payload);
    }
    raw_append_frame(side, SL_FRAME_REQUEST, payload);
}

static int
raw_on_frame(void *ctx, const struct sl_frame_header *header, const uint8_t *payload)
{
    struct raw_side *side = ctx;
    if (side->is_client) {
        side->done += (uint64_t)side->batch;
        raw_append_batch(side);
    } else if (header->type == SL_FRAME_REQUEST) {
        raw_append_frame(side, SL_FRAME_REPLY, payload);
    }
    return 0;
}

static void
raw_flush(struct raw_side *side)
{
    if (side->out.size > 0) {
        raw_send(side, (const char *)side->out.data, side->out.size);
        sl_buf_clear(&side->out);
    }
}

static void
raw_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct raw_side *side = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(side->read_buffer, sizeof(side->read_buffer));
}

static void
raw_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct raw_side *side = stream->data;
    if (size <= 0) {
        return;
    }
    uint64_t count = 0;
    if (side->kind == RAW_FRAMED) {
        int rc = sl_frame_decoder_feed(&side->decoder, (const uint8_t *)buffer->base, (size_t)size,
                                       raw_on_frame, side);
        sl_assert_eq(rc, 0);
    } else {
        side->partial += (uint64_t)size;
        count = side->partial / MESSAGE;
        side->partial %= MESSAGE;
        side->done += count;
    }
    if (side->is_client && now_ns() - side->start_ns > bench_ns) {
        side->end_ns = now_ns();
        uv_stop(&side->loop);
        return;
    }
    if (side->kind == RAW_FRAMED) {
        raw_flush(side);
    } else {
        raw_send_messages(side, count);
    }
}

static void
raw_accept(uv_stream_t *listener, int status)
{
    struct raw_side *side = listener->data;
    (void)status;
    uv_tcp_init(&side->loop, &side->stream);
    side->stream.data = side;
    uv_accept(listener, (uv_stream_t *)&side->stream);
    uv_tcp_nodelay(&side->stream, 1);
    uv_read_start((uv_stream_t *)&side->stream, raw_alloc, raw_read);
}

static void
raw_stop(uv_async_t *async)
{
    uv_stop(async->loop);
}

static void *
raw_run(void *ctx)
{
    uv_run(&((struct raw_side *)ctx)->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void
raw_connected(uv_connect_t *connect, int status)
{
    struct raw_side *side = connect->data;
    sl_assert_eq(status, 0);
    uv_tcp_nodelay(&side->stream, 1);
    uv_read_start((uv_stream_t *)&side->stream, raw_alloc, raw_read);
    side->start_ns = now_ns();
    if (side->kind != RAW_FRAMED) {
        raw_send_messages(side, (uint64_t)side->window);
        return;
    }
    for (int i = 0; i < side->window; i += side->batch) {
        raw_append_batch(side);
    }
    raw_flush(side);
}

static void
close_all(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void
raw_close(struct raw_side *side)
{
    uv_walk(&side->loop, close_all, NULL);
    uv_run(&side->loop, UV_RUN_DEFAULT);
    uv_loop_close(&side->loop);
    sl_frame_decoder_destroy(&side->decoder);
    sl_buf_destroy(&side->out);
    free(side);
}

static void
bench_raw(const char *name, enum raw_kind kind, int window, int batch)
{
    struct raw_side *server = calloc(1, sizeof(*server));
    struct raw_side *client = calloc(1, sizeof(*client));
    struct sockaddr_in address;
    int size = sizeof(address);
    pthread_t thread;
    sl_assert(server != NULL && client != NULL);
    server->kind = kind;
    client->kind = kind;
    client->batch = batch;
    client->is_client = true;
    sl_frame_decoder_create(&server->decoder, SL_FRAME_CONTROL_MAX, 0);
    sl_frame_decoder_create(&client->decoder, SL_FRAME_CONTROL_MAX, 0);
    client->window = window;
    uv_loop_init(&server->loop);
    uv_loop_init(&client->loop);
    uv_async_init(&server->loop, &server->stop, raw_stop);
    uv_tcp_init(&server->loop, &server->listener);
    server->listener.data = server;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_bind(&server->listener, (const struct sockaddr *)&address, 0);
    uv_listen((uv_stream_t *)&server->listener, 8, raw_accept);
    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &size);
    pthread_create(&thread, NULL, raw_run, server);
    uv_tcp_init(&client->loop, &client->stream);
    client->stream.data = client;
    client->connect.data = client;
    uv_tcp_connect(&client->connect, &client->stream, (const struct sockaddr *)&address,
                   raw_connected);
    uv_run(&client->loop, UV_RUN_DEFAULT);
    print_rate(name, client->done, client->end_ns - client->start_ns);
    uv_async_send(&server->stop);
    pthread_join(thread, NULL);
    raw_close(client);
    raw_close(server);
}

/* The same through rpc. */
struct rpc_server {
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    struct sl_rpc_endpoint endpoint;
};

static void
handle_echo(void *ctx, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    (void)ctx;
    sl_rpc_reply(request, body, size);
}

static const struct sl_rpc_method echo_methods[] = {{1, handle_echo}};

static void *
rpc_run(void *ctx)
{
    sl_loop_run(((struct rpc_server *)ctx)->loop);
    return NULL;
}

struct rpc_client {
    struct sl_loop *loop;
    struct sl_rpc_gateway *gateway;
    /* As of struct raw_side. */
    int batch;
    uint64_t done;
    uint64_t start_ns;
    uint64_t end_ns;
};

static uint8_t body[MESSAGE];

static void rpc_answered(void *ctx, const struct sl_rpc_result *result);

static void
rpc_send_batch(struct rpc_client *client)
{
    for (int i = 1; i < client->batch; i++) {
        sl_rpc_send(client->gateway, 1, body, sizeof(body));
    }
    sl_rpc_call(client->gateway, 1, body, sizeof(body), 0, rpc_answered, client);
}

static void
rpc_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct rpc_client *client = ctx;
    sl_assert_eq(result->status, SL_RPC_SUCCESS);
    client->done += (uint64_t)client->batch;
    if ((client->done & 15) == 0 && now_ns() - client->start_ns > bench_ns) {
        client->end_ns = client->end_ns == 0 ? now_ns() : client->end_ns;
        sl_loop_stop(client->loop);
        return;
    }
    rpc_send_batch(client);
}

static void
rpc_opened(void *ctx, const struct sl_rpc_result *result)
{
    struct rpc_client *client = ctx;
    sl_assert_eq(result->status, SL_RPC_SUCCESS);
    sl_loop_stop(client->loop);
}

static void
bench_rpc(const char *name, int window, int batch)
{
    struct rpc_server server = {0};
    struct rpc_client client = {.batch = batch};
    struct sl_rpc_options options = {.name = "bench"};
    struct sl_rpc_endpoint_options endpoint = {
        .name = "bench", .methods = echo_methods, .method_count = 1};
    pthread_t thread;
    int rc = sl_loop_new(&server.loop);
    sl_assert_eq(rc, 0);
    server.rpc = sl_rpc_new(server.loop, &options);
    rc = sl_rpc_listen(server.rpc, "127.0.0.1:0");
    sl_assert_eq(rc, 0);
    rc = sl_rpc_endpoint_start(server.rpc, &server.endpoint, &endpoint);
    sl_assert_eq(rc, 0);
    char address[SL_ADDRESS_TEXT_SIZE];
    snprintf(address, sizeof(address), "%s", sl_rpc_address(server.rpc));
    pthread_create(&thread, NULL, rpc_run, &server);
    rc = sl_loop_new(&client.loop);
    sl_assert_eq(rc, 0);
    struct sl_rpc *rpc = sl_rpc_new(client.loop, &options);
    rc = sl_rpc_connect(rpc, address, "bench", 0, &client.gateway);
    sl_assert_eq(rc, 0);
    sl_rpc_open(client.gateway, 0, rpc_opened, &client);
    sl_loop_run(client.loop);
    client.start_ns = now_ns();
    for (int i = 0; i < window; i += batch) {
        rpc_send_batch(&client);
    }
    sl_loop_run(client.loop);
    print_rate(name, client.done, client.end_ns - client.start_ns);
    sl_rpc_gateway_free(client.gateway);
    sl_rpc_free(rpc);
    sl_loop_free(client.loop);
    sl_loop_stop(server.loop);
    pthread_join(thread, NULL);
    /* Its thread is gone: this one takes over to close it. */
    sl_rpc_endpoint_stop(&server.endpoint);
    sl_rpc_free(server.rpc);
    sl_loop_free(server.loop);
}

/* Slot requests through the pool of a topology master and the slot manager, in one process. */
struct slots_bench {
    struct sl_slot_pool pool;
    struct sl_slot_manager manager;
    uint64_t served;
};

static void
pool_request_slot(void *ctx, const struct sl_slot_request *request)
{
    struct slots_bench *bench = ctx;
    int rc = sl_slot_manager_request(&bench->manager, request);
    sl_assert_eq(rc, 1);
}

static void
pool_cancel_slot(void *ctx, uint64_t allocation)
{
    sl_slot_manager_cancel(&((struct slots_bench *)ctx)->manager, allocation);
}

static void
pool_free_slot(void *ctx, const char *supervisor, uint64_t allocation, const char *cause)
{
    (void)ctx;
    (void)supervisor;
    (void)allocation;
    (void)cause;
}

static void
pool_served(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor, uint32_t port)
{
    (void)request;
    (void)allocation;
    (void)supervisor;
    (void)port;
    ((struct slots_bench *)ctx)->served++;
}

static void
pool_failed(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason)
{
    (void)ctx;
    (void)request;
    (void)kind;
    fprintf(stderr, "slot request failed: %s\n", reason);
    abort();
}

static void
pool_lost(void *ctx, uint64_t request, uint64_t allocation, const char *cause)
{
    (void)ctx;
    (void)request;
    (void)allocation;
    (void)cause;
}

/* The supervisor reserves, acknowledges and offers. */
static void
manager_request_slot(void *ctx, uint64_t instance, const char *supervisor, uint32_t port,
                     uint64_t call, const struct sl_slot_request *request)
{
    struct slots_bench *bench = ctx;
    struct sl_profile any = sl_profile_any();
    uint64_t allocation = request->allocation;
    char name[32];
    (void)instance;
    snprintf(name, sizeof(name), "%s", supervisor);
    sl_slot_manager_answered(&bench->manager, call, SL_SLOT_ACK, 0, NULL);
    sl_slot_pool_offer(&bench->pool, name, port, allocation, &any);
}

static void
manager_failed(void *ctx, const char *topology, uint64_t allocation, bool is_unfulfillable,
               const char *cause)
{
    (void)ctx;
    (void)topology;
    (void)allocation;
    (void)is_unfulfillable;
    (void)cause;
}

static void
bench_slots(void)
{
    enum { SUPERVISORS = 1000, SLOTS = 50, REQUESTS = SUPERVISORS * SLOTS };
    struct slots_bench *bench = sl_calloc(1, sizeof(*bench));
    struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
    struct sl_loop *loop = sl_sim_loop_new(sim, "127.0.0.1");
    struct sl_slot_pool_config pool = {"words", "127.0.0.1:1", 1, 300000, 50000};
    struct sl_slot_pool_ops pool_ops = {
        pool_request_slot, pool_cancel_slot, pool_free_slot, pool_served,
        pool_failed,       pool_lost,        bench};
    struct sl_slot_manager_config config = sl_slot_manager_config_default();
    struct sl_slot_manager_ops ops = {
        .request_slot = manager_request_slot, .allocation_failed = manager_failed, .ctx = bench};
    struct sl_slot_status slots[SLOTS];
    sl_slot_pool_create(&bench->pool, loop, &pool, &pool_ops);
    sl_slot_manager_create(&bench->manager, loop, &config, &ops);
    sl_slot_pool_connect(&bench->pool);
    for (uint64_t i = 0; i < SUPERVISORS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "s%d", (int)i);
        for (uint32_t n = 0; n < SLOTS; n++) {
            slots[n] = (struct sl_slot_status){n, sl_profile_any(), "", 0};
        }
        sl_slot_pool_register_supervisor(&bench->pool, name);
        sl_slot_manager_register(
            &bench->manager, i + 1,
            &(struct sl_slot_list){.resource = name, .slots = slots, .count = SLOTS});
    }
    uint64_t start_ns = now_ns();
    for (uint64_t id = 1; id <= REQUESTS; id++) {
        struct sl_slot_wish wish = {.profile = sl_profile_unknown()};
        sl_slot_pool_request(&bench->pool, id, &wish);
    }
    uint64_t end_ns = now_ns();
    sl_assert_eq(bench->served, REQUESTS);
    print_rate("slot_requests", REQUESTS, end_ns - start_ns);
    sl_slot_pool_destroy(&bench->pool);
    sl_slot_manager_destroy(&bench->manager);
    sl_loop_free(loop);
    sl_sim_free(sim);
    sl_free(bench);
}

/* Registrations and heartbeats of real supervisors, all in this process and over loopback. */
struct member {
    struct sl_rpc *rpc;
    struct sl_register_supervisor identity;
    struct sl_supervisor_slots *slots;
    char name[16];
    char address[SL_ADDRESS_TEXT_SIZE];
};

static int
watch_start(void *ctx, const char *topology)
{
    (void)ctx;
    (void)topology;
    return 0;
}

static void
watch_stop(void *ctx, const char *topology)
{
    (void)ctx;
    (void)topology;
}

static void
member_fatal(void *ctx, const char *reason)
{
    (void)ctx;
    fprintf(stderr, "fatal: %s\n", reason);
    abort();
}

static void
member_stop_tasks(void *ctx, uint64_t allocation, uint32_t port, const char *cause)
{
    (void)ctx;
    (void)allocation;
    (void)port;
    (void)cause;
}

static void
open_member(struct member *member, struct sl_loop *loop, int i,
            const struct sl_heartbeat_config *heartbeat)
{
    static const uint32_t ports[4] = {6700, 6701, 6702, 6703};
    struct sl_rpc_options rpc = {.role = "supervisor", .name = member->name};
    snprintf(member->name, sizeof(member->name), "s%d", i);
    member->rpc = sl_rpc_new(loop, &rpc);
    int rc = sl_rpc_listen(member->rpc, "127.0.0.1:0");
    sl_assert_eq(rc, 0);
    snprintf(member->address, sizeof(member->address), "%s", sl_rpc_address(member->rpc));
    member->identity = (struct sl_register_supervisor){
        .address = member->address,
        .resource = member->name,
        .process = (uint64_t)i + 1,
        .hardware = {8, 16e9, "Linux"},
        .default_profile = sl_profile_set(2, 4e9, 1e9),
        .total_profile = sl_profile_set(8, 16e9, 4e9),
    };
    struct sl_supervisor_slots_options options = {
        .rpc = member->rpc,
        .identity = &member->identity,
        .ports = ports,
        .port_count = 4,
        .registration = sl_registration_config_default(),
        .heartbeat = *heartbeat,
        .slot_timeout_ms = SL_SLOT_TABLE_TIMEOUT_MS,
        .registration_timeout_ms = SL_SUPERVISOR_REGISTRATION_MS,
        .watch = {watch_start, watch_stop, NULL},
        .stop_tasks = member_stop_tasks,
        .on_fatal = member_fatal,
        .ctx = member,
    };
    rc = sl_supervisor_slots_new(&options, &member->slots);
    sl_assert_eq(rc, 0);
}

static void
bench_registrations(bool is_quick)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    /* A listener and up to four ends of connections each. */
    int count = files.rlim_cur < 7000 ? (int)(files.rlim_cur / 7) : 1000;
    /* One round of heartbeats in a second instead of ten: the cost of a round is what is measured.
     */
    struct sl_heartbeat_config heartbeat = {1000, 50000, 2};
    struct sl_loop *loop;
    struct sl_resource_manager *manager;
    struct sl_rpc_options rpc_options = {.role = "master", .name = "m1"};
    struct member *members = sl_calloc((size_t)count, sizeof(*members));
    int rc = sl_loop_new(&loop);
    sl_assert_eq(rc, 0);
    struct sl_rpc *rpc = sl_rpc_new(loop, &rpc_options);
    rc = sl_rpc_listen(rpc, "127.0.0.1:0");
    sl_assert_eq(rc, 0);
    struct sl_resource_manager_options options = {
        .rpc = rpc,
        .resource = "m1",
        .heartbeat = heartbeat,
        .slots = sl_slot_manager_config_default(),
        .topology_timeout_ms = SL_TOPOLOGY_TIMEOUT_MS,
        .watch = {watch_start, watch_stop, NULL},
        .on_fatal = member_fatal,
    };
    rc = sl_resource_manager_new(&options, &manager);
    sl_assert_eq(rc, 0);
    for (int i = 0; i < count; i++) {
        open_member(&members[i], loop, i, &heartbeat);
    }
    sl_loop_run_once(loop, 0);
    uint64_t start_ns = now_ns();
    sl_resource_manager_grant(manager, 1);
    for (int i = 0; i < count; i++) {
        sl_supervisor_slots_rm_leader(members[i].slots, sl_rpc_address(rpc), 1);
    }
    const struct sl_slot_manager *slots = sl_resource_manager_slots(manager);
    while (slots->slot_count < (size_t)count * 4) {
        sl_loop_run_once(loop, 100);
    }
    printf("registrations %d\n", count);
    printf("registration_seconds %.4f\n", (double)(now_ns() - start_ns) * 1e-9);
    /* The gateways of heartbeats are connected in the first round. */
    int rounds = is_quick ? 3 : 6;
    uint64_t from_ns = now_ns();
    double from_cpu = 0;
    for (int round = 0; round <= rounds; round++) {
        while (now_ns() - from_ns < (uint64_t)(round + 1) * 1000000000) {
            sl_loop_run_once(loop, 20);
        }
        if (round == 0) {
            from_cpu = cpu_seconds();
        }
    }
    sl_assert_eq(sl_resource_manager_supervisor_count(manager), (size_t)count);
    printf("heartbeat_cpu_seconds %.9f\n",
           (cpu_seconds() - from_cpu) / (double)rounds / (double)count);
    for (int i = 0; i < count; i++) {
        sl_supervisor_slots_free(members[i].slots);
        sl_rpc_free(members[i].rpc);
    }
    sl_resource_manager_free(manager);
    sl_rpc_free(rpc);
    sl_loop_free(loop);
    sl_free(members);
}

static bool is_quick;

static void
bench_calls(void)
{
    bench_raw("raw_each_messages", RAW_EACH, WINDOW, 1);
    bench_raw("raw_gathered_messages", RAW_GATHERED, WINDOW, 1);
    bench_raw("raw_framed_messages", RAW_FRAMED, WINDOW, 1);
    bench_rpc("rpc_messages", WINDOW, 1);
}

static void
bench_one_way(void)
{
    bench_raw("raw_framed_one_way", RAW_FRAMED, BATCHES * BATCH, BATCH);
    bench_rpc("rpc_one_way", BATCHES * BATCH, BATCH);
}

static void
bench_round_trips(void)
{
    bench_raw("raw_round_trips", RAW_FRAMED, 1, 1);
    bench_rpc("rpc_round_trips", 1, 1);
}

static void
bench_registrations_of_all(void)
{
    bench_registrations(is_quick);
}

static const struct {
    const char *name;
    void (*run)(void);
} benches[] = {
    {"calls", bench_calls},
    {"one_way", bench_one_way},
    {"round_trips", bench_round_trips},
    {"slots", bench_slots},
    {"registrations", bench_registrations_of_all},
};

int
main(int argc, char **argv)
{
    int at = 1;
    is_quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    at += is_quick;
    bench_ns = is_quick ? 300000000 : 1500000000;
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
        bool is_wanted = at == argc;
        for (int arg = at; arg < argc; arg++) {
            is_wanted |= strcmp(argv[arg], benches[i].name) == 0;
        }
        if (is_wanted) {
            benches[i].run();
        }
    }
    return 0;
}
