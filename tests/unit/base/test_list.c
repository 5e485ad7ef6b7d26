#include "base/list.h"
#include "unit.h"

struct item {
    int id;
    struct sl_list_node node;
};

static void
check_ids(const struct sl_list *list, const char *expected)
{
    char seen[32] = "";
    sl_list_each(list, it)
    {
        size_t used = strlen(seen);
        seen[used] = (char)('0' + sl_container_of(it, struct item, node)->id);
        seen[used + 1] = '\0';
    }
    assert_string_equal(seen, expected);
}

static void
test_order_and_removal(void **state)
{
    (void)state;
    struct sl_list list;
    struct item items[5] = {{0}};
    sl_list_create(&list);
    assert_true(sl_list_is_empty(&list));
    assert_null(sl_list_first(&list));
    assert_null(sl_list_last(&list));
    assert_null(sl_list_pop_front(&list));
    for (int i = 0; i < 5; i++) {
        items[i].id = i;
        assert_false(sl_list_is_linked(&items[i].node));
    }
    sl_list_push_back(&list, &items[1].node);
    sl_list_push_back(&list, &items[2].node);
    sl_list_push_front(&list, &items[0].node);
    sl_list_insert_before(&items[2].node, &items[4].node);
    check_ids(&list, "0142");
    assert_true(sl_list_is_linked(&items[4].node));
    sl_list_remove(&items[4].node);
    sl_list_remove(&items[4].node);
    sl_list_remove(&items[3].node);
    assert_false(sl_list_is_linked(&items[4].node));
    check_ids(&list, "012");
    assert_ptr_equal(sl_list_pop_front(&list), &items[0].node);
    assert_ptr_equal(sl_list_first(&list), &items[1].node);
    assert_ptr_equal(sl_list_last(&list), &items[2].node);
    check_ids(&list, "12");
}

static void
test_removing_the_visited_item(void **state)
{
    (void)state;
    struct sl_list list;
    struct item items[6] = {{0}};
    sl_list_create(&list);
    for (int i = 0; i < 6; i++) {
        items[i].id = i;
        sl_list_push_back(&list, &items[i].node);
    }
    sl_list_each(&list, it)
    {
        if (sl_container_of(it, struct item, node)->id % 2 == 0) {
            sl_list_remove(it);
        }
    }
    check_ids(&list, "135");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_order_and_removal),
    cmocka_unit_test(test_removing_the_visited_item),
};

UNIT_MAIN(tests)
