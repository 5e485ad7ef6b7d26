#include "base/heap.h"
#include "base/random.h"
#include "unit.h"

/* The node that must come out next: smallest key, then earliest inserted. */
static int
model_first(const struct sl_heap_node *nodes, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        if (sl_heap_is_linked(&nodes[i]) &&
            (best < 0 || nodes[i].key < nodes[best].key ||
             (nodes[i].key == nodes[best].key && nodes[i].order < nodes[best].order))) {
            best = i;
        }
    }
    return best;
}

static void
test_against_a_naive_queue(void **state)
{
    (void)state;
    enum { NODES = 64 };
    struct sl_heap_node nodes[NODES] = {{0}};
    struct sl_heap heap = {0};
    struct sl_random random;
    sl_random_seed(&random, 21);
    for (int step = 0; step < 20000; step++) {
        int pick = (int)sl_random_below(&random, NODES);
        int64_t key = (int64_t)sl_random_below(&random, 10) - 5;
        int first = model_first(nodes, NODES);
        assert_ptr_equal(sl_heap_peek(&heap), first < 0 ? NULL : &nodes[first]);
        switch (sl_random_below(&random, 4)) {
        case 0:
            assert_ptr_equal(sl_heap_pop(&heap), first < 0 ? NULL : &nodes[first]);
            break;
        case 1:
            sl_heap_remove(&heap, &nodes[pick]);
            assert_false(sl_heap_is_linked(&nodes[pick]));
            break;
        case 2:
            sl_heap_update(&heap, &nodes[pick], key);
            break;
        default:
            if (!sl_heap_is_linked(&nodes[pick])) {
                sl_heap_insert(&heap, &nodes[pick], key);
            }
        }
    }
    sl_heap_destroy(&heap);
}

static void
test_equal_keys_come_out_in_order_of_insertion(void **state)
{
    (void)state;
    struct sl_heap heap;
    struct sl_heap_node nodes[100] = {{0}};
    sl_heap_create(&heap);
    for (int i = 0; i < 100; i++) {
        sl_heap_insert(&heap, &nodes[i], 7);
    }
    sl_heap_update(&heap, &nodes[0], 7);
    for (int i = 1; i < 100; i++) {
        assert_ptr_equal(sl_heap_pop(&heap), &nodes[i]);
    }
    assert_ptr_equal(sl_heap_pop(&heap), &nodes[0]);
    assert_null(sl_heap_pop(&heap));
    sl_heap_destroy(&heap);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_against_a_naive_queue),
    cmocka_unit_test(test_equal_keys_come_out_in_order_of_insertion),
};

UNIT_MAIN(tests)
