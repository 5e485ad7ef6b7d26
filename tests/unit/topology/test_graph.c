#include <stdio.h>

#include "topology/graph.h"
#include "topology/topology_fixture.h"

static void
test_ranks_are_longest_paths(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    /* s -> a -> b -> c, s -> c, and d alone behind b; declared out of order. */
    uint32_t c = fixture_bolt(t, "c");
    fixture_shuffle(t, c, "s");
    fixture_reads(t, c, "b", "default", SL_GROUPING_ALL, "");
    uint32_t s = fixture_spout(t, "s");
    uint32_t b = fixture_bolt(t, "b");
    fixture_shuffle(t, b, "a");
    uint32_t a = fixture_bolt(t, "a");
    fixture_shuffle(t, a, "s");
    struct sl_topology_graph *graph = sl_topology_graph_new(t);
    const struct sl_topology_place *places = sl_topology_graph_places(graph);
    assert_int_equal(places[s].rank, 0);
    assert_int_equal(places[a].rank, 1);
    assert_int_equal(places[b].rank, 2);
    assert_int_equal(places[c].rank, 3);
    for (uint32_t i = 0; i < 4; i++) {
        assert_false(places[i].is_cyclic);
        assert_true(places[i].is_reachable);
    }
    sl_topology_graph_free(graph);
    sl_topology_free(t);
}

static void
test_cycle_members_share_rank_and_component(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    fixture_spout(t, "s");
    uint32_t a = fixture_bolt(t, "a");
    uint32_t b = fixture_bolt(t, "b");
    uint32_t c = fixture_bolt(t, "c");
    uint32_t self = fixture_bolt(t, "self");
    fixture_shuffle(t, a, "s");
    fixture_shuffle(t, a, "b");
    fixture_shuffle(t, b, "a");
    fixture_shuffle(t, c, "b");
    fixture_shuffle(t, self, "c");
    fixture_shuffle(t, self, "self");
    struct sl_topology_graph *graph = sl_topology_graph_new(t);
    const struct sl_topology_place *places = sl_topology_graph_places(graph);
    assert_true(places[a].is_cyclic && places[b].is_cyclic && places[self].is_cyclic);
    assert_false(places[c].is_cyclic || places[0].is_cyclic);
    assert_int_equal(places[a].scc, places[b].scc);
    assert_int_equal(places[a].rank, 1);
    assert_int_equal(places[b].rank, 1);
    assert_int_equal(places[c].rank, 2);
    assert_int_equal(places[self].rank, 3);
    uint32_t members[4];
    assert_int_equal(sl_topology_graph_cycle(graph, b, members, 4), 2);
    assert_int_equal(members[0], b);
    assert_int_equal(members[1], a);
    assert_int_equal(sl_topology_graph_cycle(graph, self, members, 4), 1);
    assert_int_equal(members[0], self);
    /* A second search finds the same: the first left no marks. */
    assert_int_equal(sl_topology_graph_cycle(graph, b, members, 1), 2);
    sl_topology_graph_free(graph);
    sl_topology_free(t);
}

static void
test_unreachable_is_what_no_spout_leads_to(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    fixture_spout(t, "s");
    uint32_t a = fixture_bolt(t, "a");
    uint32_t b = fixture_bolt(t, "b");
    uint32_t c = fixture_bolt(t, "c");
    fixture_shuffle(t, a, "s");
    fixture_shuffle(t, b, "c");
    fixture_shuffle(t, c, "b");
    struct sl_topology_graph *graph = sl_topology_graph_new(t);
    const struct sl_topology_place *places = sl_topology_graph_places(graph);
    assert_true(places[0].is_reachable && places[a].is_reachable);
    assert_false(places[b].is_reachable || places[c].is_reachable);
    sl_topology_graph_free(graph);
    sl_topology_free(t);
}

static void
test_long_chain_and_long_cycle_need_no_recursion(void **state)
{
    (void)state;
    enum { LENGTH = 20000 };
    struct sl_topology *t = fixture_new();
    char name[16];
    char before[16];
    fixture_spout(t, "b0");
    for (uint32_t i = 1; i <= LENGTH; i++) {
        snprintf(name, sizeof(name), "b%u", i);
        snprintf(before, sizeof(before), "b%u", i - 1);
        fixture_shuffle(t, fixture_bolt(t, name), before);
    }
    struct sl_topology_graph *graph = sl_topology_graph_new(t);
    assert_int_equal(sl_topology_graph_places(graph)[LENGTH].rank, LENGTH);
    sl_topology_graph_free(graph);
    fixture_shuffle(t, 1, name);
    graph = sl_topology_graph_new(t);
    assert_int_equal(sl_topology_graph_places(graph)[LENGTH].rank, 1);
    uint32_t members[2];
    assert_int_equal(sl_topology_graph_cycle(graph, 5, members, 2), LENGTH);
    assert_int_equal(members[1], 6);
    sl_topology_graph_free(graph);
    sl_topology_free(t);
}

/* can[i][j]: some path leads from i to j. */
static void
close_paths(bool can[8][8], uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t j = 0; j < count; j++) {
                can[i][j] = can[i][j] || (can[i][k] && can[k][j]);
            }
        }
    }
}

static void
test_random_graphs_agree_with_all_paths(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 3);
    for (int round = 0; round < 300; round++) {
        struct sl_topology *t = fixture_new();
        uint32_t count = 1 + (uint32_t)sl_random_below(&random, 8);
        bool edge[8][8] = {{false}};
        bool can[8][8] = {{false}};
        for (uint32_t i = 0; i < count; i++) {
            char name[2] = {(char)('a' + i), 0};
            sl_random_below(&random, 3) == 0 ? fixture_spout(t, name) : fixture_bolt(t, name);
        }
        for (uint64_t n = sl_random_below(&random, 2 * count); n > 0; n--) {
            uint32_t from = (uint32_t)sl_random_below(&random, count);
            uint32_t to = (uint32_t)sl_random_below(&random, count);
            fixture_shuffle(t, to, t->components[from].name);
            edge[from][to] = can[from][to] = true;
        }
        close_paths(can, count);
        struct sl_topology_graph *graph = sl_topology_graph_new(t);
        const struct sl_topology_place *places = sl_topology_graph_places(graph);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(places[i].is_cyclic, can[i][i]);
            bool reachable = t->components[i].kind == SL_COMPONENT_SPOUT;
            int32_t rank = 0;
            for (uint32_t j = 0; j < count; j++) {
                bool is_same = i == j || (can[i][j] && can[j][i]);
                assert_int_equal(places[i].scc == places[j].scc, is_same);
                reachable |= can[j][i] && t->components[j].kind == SL_COMPONENT_SPOUT;
                if (edge[j][i]) {
                    assert_true(places[j].scc <= places[i].scc);
                    assert_true(places[j].rank <= places[i].rank);
                }
                /* The rank comes from an edge into some member of the same component. */
                for (uint32_t k = 0; k < count; k++) {
                    bool is_member = k == i || (can[i][k] && can[k][i]);
                    if (is_member && edge[j][k] && !is_same && places[j].rank >= rank) {
                        rank = places[j].rank + 1;
                    }
                }
            }
            assert_int_equal(places[i].rank, rank);
            assert_int_equal(places[i].is_reachable, reachable);
            if (places[i].is_cyclic) {
                uint32_t members[8];
                uint32_t length = sl_topology_graph_cycle(graph, i, members, 8);
                for (uint32_t m = 0; m < length; m++) {
                    assert_true(edge[members[m]][members[(m + 1) % length]]);
                }
            }
        }
        sl_topology_graph_free(graph);
        sl_topology_free(t);
    }
}

static void
test_empty_topology_has_no_places(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    struct sl_topology_graph *graph = sl_topology_graph_new(t);
    assert_non_null(graph);
    sl_topology_graph_free(graph);
    sl_topology_graph_free(NULL);
    sl_topology_free(t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_longest_paths),
        cmocka_unit_test(test_cycle_members_share_rank_and_component),
        cmocka_unit_test(test_unreachable_is_what_no_spout_leads_to),
        cmocka_unit_test(test_long_chain_and_long_cycle_need_no_recursion),
        cmocka_unit_test(test_random_graphs_agree_with_all_paths),
        cmocka_unit_test(test_empty_topology_has_no_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
