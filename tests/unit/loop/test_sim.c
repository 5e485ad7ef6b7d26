#include "loop/sim.h"

#include "base/buf.h"
#include "base/hash.h"
#include "loop/stream.h"
#include "unit.h"

enum { NODES = 30 };

/* Every node connects to its successor and passes a counter on, with a timer between. */
struct node {
    struct ring *ring;
    struct sl_loop *loop;
    struct sl_listener *listener;
    struct sl_stream *out;
    struct sl_stream *in;
    struct sl_timer timer;
    uint32_t passed;
    int in_closed;
    int out_closed;
    uint64_t last_ms;
};

struct ring {
    struct sl_sim *sim;
    struct node nodes[NODES];
    uint64_t hash;
};

static void
pass_on(void *ctx, uint64_t ticket)
{
    struct node *node = ctx;
    (void)ticket;
    sl_stream_write(node->out, "t", 1);
}

static void
on_token(void *ctx, const uint8_t *data, size_t len)
{
    struct node *node = ctx;
    (void)data;
    for (size_t i = 0; i < len; i++) {
        node->passed++;
        node->last_ms = sl_sim_now_ms(node->ring->sim);
        node->ring->hash =
            sl_mix64(node->ring->hash + node->last_ms + (uint64_t)(node - node->ring->nodes));
        sl_timer_start(node->loop, &node->timer, sl_random_below(sl_loop_random(node->loop), 20),
                       pass_on, node);
    }
}

static void
ignore_data(void *ctx, const uint8_t *data, size_t len)
{
    (void)ctx;
    (void)data;
    (void)len;
}

static void
in_closed(void *ctx, const struct sl_err *why)
{
    struct node *node = ctx;
    (void)why;
    node->in_closed++;
}

static void
out_closed(void *ctx, const struct sl_err *why)
{
    struct node *node = ctx;
    (void)why;
    node->out_closed++;
}

static const struct sl_stream_handler in_handler = {NULL, on_token, NULL, in_closed};
static const struct sl_stream_handler out_handler = {NULL, ignore_data, NULL, out_closed};

static void
on_accept(void *ctx, struct sl_stream *stream)
{
    struct node *node = ctx;
    node->in = stream;
    sl_stream_accept(stream, NULL, &in_handler, node);
}

static const struct sl_listener_handler listener_handler = {on_accept};

static void
open_ring(struct ring *ring, uint64_t seed)
{
    memset(ring, 0, sizeof(*ring));
    ring->sim = sl_sim_new(&(struct sl_sim_options){.seed = seed});
    for (int i = 0; i < NODES; i++) {
        struct node *node = &ring->nodes[i];
        char host[32];
        struct sl_address address = {.kind = SL_ADDRESS_TCP, .host = "0.0.0.0", .port = 100};
        snprintf(host, sizeof(host), "n%d", i);
        node->ring = ring;
        node->loop = sl_sim_loop_new(ring->sim, host);
        assert_int_equal(
            sl_listener_open(node->loop, &address, &listener_handler, node, &node->listener), 0);
    }
    for (int i = 0; i < NODES; i++) {
        struct node *node = &ring->nodes[i];
        struct sl_address address = {.kind = SL_ADDRESS_TCP, .port = 100};
        snprintf(address.host, sizeof(address.host), "n%d", (i + 1) % NODES);
        assert_int_equal(
            sl_stream_connect(node->loop, &address, NULL, &out_handler, node, &node->out), 0);
    }
}

static void
close_ring(struct ring *ring)
{
    for (int i = 0; i < NODES; i++) {
        sl_loop_free(ring->nodes[i].loop);
    }
    sl_sim_free(ring->sim);
}

static uint64_t
run_ring(uint64_t seed, uint64_t *order_hash)
{
    struct ring ring;
    open_ring(&ring, seed);
    for (int i = 0; i < NODES; i += 7) {
        sl_stream_write(ring.nodes[i].out, "t", 1);
    }
    sl_sim_run_for(ring.sim, 60000);
    assert_true(ring.nodes[3].passed > 100);
    assert_int_equal(sl_sim_now_ms(ring.sim), 60000);
    uint64_t hash = sl_sim_trace_hash(ring.sim);
    *order_hash = ring.hash;
    close_ring(&ring);
    return hash;
}

static void
test_a_seed_repeats_a_run_of_thirty_nodes(void **state)
{
    (void)state;
    uint64_t orders[3];
    uint64_t first = run_ring(1, &orders[0]);
    uint64_t again = run_ring(1, &orders[1]);
    uint64_t other = run_ring(2, &orders[2]);
    assert_true(first == again);
    assert_true(orders[0] == orders[1]);
    assert_true(first != other);
    assert_true(orders[0] != orders[2]);
}

static void
test_a_cut_link_holds_bytes_until_it_heals(void **state)
{
    (void)state;
    struct ring ring;
    open_ring(&ring, 3);
    sl_sim_run_for(ring.sim, 10);
    sl_sim_cut(ring.sim, "n0", "n1");
    sl_stream_write(ring.nodes[0].out, "t", 1);
    /* The other direction still works. */
    sl_stream_write(ring.nodes[1].in, "x", 1);
    sl_sim_run_for(ring.sim, 5000);
    assert_int_equal(ring.nodes[1].passed, 0);
    assert_int_equal(sl_stream_queued_bytes(ring.nodes[0].out), 1);
    assert_int_equal(sl_stream_queued_bytes(ring.nodes[1].in), 0);
    sl_sim_heal(ring.sim, "n0", "n1");
    sl_sim_run_for(ring.sim, 5);
    assert_int_equal(ring.nodes[1].passed, 1);
    close_ring(&ring);
}

static void
test_a_paused_node_catches_up(void **state)
{
    (void)state;
    struct ring ring;
    open_ring(&ring, 4);
    sl_sim_run_for(ring.sim, 10);
    sl_sim_loop_pause(ring.nodes[1].loop);
    sl_stream_write(ring.nodes[0].out, "t", 1);
    sl_sim_run_for(ring.sim, 1000);
    assert_int_equal(ring.nodes[1].passed, 0);
    sl_sim_loop_resume(ring.nodes[1].loop);
    sl_sim_run_for(ring.sim, 100);
    assert_int_equal(ring.nodes[1].passed, 1);
    assert_true(ring.nodes[1].last_ms >= 1010);
    assert_true(ring.nodes[2].passed >= 1);
    close_ring(&ring);
}

static void
test_a_crash_is_seen_by_the_peers_unless_silent(void **state)
{
    (void)state;
    struct ring ring;
    open_ring(&ring, 5);
    sl_sim_run_for(ring.sim, 10);
    sl_sim_loop_crash(ring.nodes[5].loop, false);
    sl_sim_loop_crash(ring.nodes[15].loop, true);
    sl_sim_run_for(ring.sim, 100);
    assert_int_equal(ring.nodes[4].out_closed, 1);
    assert_int_equal(ring.nodes[6].in_closed, 1);
    assert_int_equal(ring.nodes[14].out_closed, 0);
    assert_int_equal(ring.nodes[16].in_closed, 0);
    /* Its own callbacks wait for the freeing of the loop. */
    assert_int_equal(ring.nodes[5].out_closed, 0);
    sl_loop_free(ring.nodes[5].loop);
    assert_int_equal(ring.nodes[5].out_closed, 1);
    assert_int_equal(ring.nodes[5].in_closed, 1);
    ring.nodes[5].loop = sl_sim_loop_new(ring.sim, "n5");
    close_ring(&ring);
}

static void
test_a_reset_loses_what_is_under_way(void **state)
{
    (void)state;
    struct ring ring;
    open_ring(&ring, 6);
    sl_sim_run_for(ring.sim, 10);
    sl_stream_write(ring.nodes[0].out, "t", 1);
    sl_sim_reset(ring.sim, "n0", "n1");
    sl_sim_run_for(ring.sim, 10);
    assert_int_equal(ring.nodes[1].passed, 0);
    assert_int_equal(ring.nodes[1].in_closed, 1);
    assert_int_equal(ring.nodes[0].out_closed, 1);
    assert_int_equal(ring.nodes[2].in_closed, 0);
    close_ring(&ring);
}

static void
test_the_wall_clock_of_a_node_jumps_alone(void **state)
{
    (void)state;
    struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
    struct sl_loop *one = sl_sim_loop_new(sim, "a");
    struct sl_loop *two = sl_sim_loop_new(sim, "b");
    int64_t before = sl_clock_wall_ms(sl_loop_clock(one));
    sl_sim_loop_jump_wall(one, -3600000);
    assert_int_equal(sl_clock_wall_ms(sl_loop_clock(one)), before - 3600000);
    assert_int_equal(sl_clock_wall_ms(sl_loop_clock(two)), before);
    assert_int_equal(sl_loop_now_ms(one), 0);
    assert_false(sl_sim_step(sim));
    sl_loop_free(one);
    sl_loop_free(two);
    sl_sim_free(sim);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_seed_repeats_a_run_of_thirty_nodes),
    cmocka_unit_test(test_a_cut_link_holds_bytes_until_it_heals),
    cmocka_unit_test(test_a_paused_node_catches_up),
    cmocka_unit_test(test_a_crash_is_seen_by_the_peers_unless_silent),
    cmocka_unit_test(test_a_reset_loses_what_is_under_way),
    cmocka_unit_test(test_the_wall_clock_of_a_node_jumps_alone),
};

UNIT_MAIN(tests)
