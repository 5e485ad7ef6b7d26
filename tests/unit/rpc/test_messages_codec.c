/* labels: short */
#include "rpc/messages.h"

#include "rpc_fixture.h"

static const struct sl_slot_status slots[] = {
    {6700, {SL_PROFILE_SET, 1.5, 2e9, 3e9, 1, {{"gpu", 2}}}, "words", 11},
    {6701, {.kind = SL_PROFILE_ANY}, "", 0},
    {6702, {.kind = SL_PROFILE_UNKNOWN}, NULL, 0},
};

static const struct sl_slot_list list = {.resource = "s1",
                                         .instance = UINT64_C(0x8000000000000001),
                                         .topology = "words",
                                         .slots = slots,
                                         .count = array_size(slots),
                                         .offer = 5};

static void
assert_slots(const struct sl_slot_list *seen)
{
    assert_int_equal(seen->count, list.count);
    for (size_t i = 0; i < seen->count; i++) {
        assert_int_equal(seen->slots[i].port, slots[i].port);
        assert_true(sl_profile_equals(&seen->slots[i].profile, &slots[i].profile));
        assert_string_equal(seen->slots[i].topology,
                            slots[i].topology != NULL ? slots[i].topology : "");
        assert_int_equal(seen->slots[i].allocation, slots[i].allocation);
    }
}

static void
test_lists_of_slots_come_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_slot_list seen;
    sl_arena_create(&arena, 0, 0);
    sl_slot_report_encode(&list, &bytes);
    assert_int_equal(sl_slot_report_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.resource, "s1");
    assert_true(seen.instance == list.instance);
    assert_slots(&seen);
    sl_buf_clear(&bytes);
    sl_slot_offers_encode(&list, &bytes);
    assert_int_equal(sl_slot_offers_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.topology, "words");
    assert_int_equal(seen.offer, list.offer);
    assert_slots(&seen);
    sl_buf_clear(&bytes);
    sl_allocated_slots_encode(&list, &bytes);
    assert_int_equal(sl_allocated_slots_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_int_equal(seen.offer, list.offer);
    assert_slots(&seen);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_requests_notices_and_accepted_come_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    sl_arena_create(&arena, 0, 0);
    struct sl_slot_request request = {.topology = "words",
                                      .allocation = UINT64_MAX,
                                      .profile = slots[0].profile,
                                      .master_address = "127.0.0.1:5",
                                      .supervisor = "s1",
                                      .port = 6700,
                                      .timeout_ms = 300000,
                                      .token = 9};
    struct sl_slot_request seen;
    sl_slot_request_encode(&request, &bytes);
    assert_int_equal(sl_slot_request_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.topology, "words");
    assert_true(seen.allocation == UINT64_MAX);
    assert_true(sl_profile_equals(&seen.profile, &request.profile));
    assert_string_equal(seen.master_address, "127.0.0.1:5");
    assert_string_equal(seen.supervisor, "s1");
    assert_int_equal(seen.port, 6700);
    assert_int_equal(seen.timeout_ms, 300000);
    assert_int_equal(seen.token, 9);
    sl_buf_clear(&bytes);
    struct sl_slot_notice notice = {.resource = "s1",
                                    .instance = 3,
                                    .topology = "words",
                                    .port = 6701,
                                    .allocation = 4,
                                    .cause = "any text \"at all\"",
                                    .token = 5};
    struct sl_slot_notice seen_notice;
    sl_slot_notice_encode(&notice, &bytes);
    assert_int_equal(sl_slot_notice_decode(bytes.data, bytes.size, &arena, &seen_notice), 0);
    assert_string_equal(seen_notice.resource, "s1");
    assert_int_equal(seen_notice.instance, 3);
    assert_int_equal(seen_notice.port, 6701);
    assert_int_equal(seen_notice.allocation, 4);
    assert_string_equal(seen_notice.cause, notice.cause);
    assert_int_equal(seen_notice.token, 5);
    sl_buf_clear(&bytes);
    uint64_t allocations[] = {1, UINT64_MAX, 3};
    struct sl_slots_accepted accepted = {allocations, 3};
    struct sl_slots_accepted seen_accepted;
    sl_slots_accepted_encode(&accepted, &bytes);
    assert_int_equal(sl_slots_accepted_decode(bytes.data, bytes.size, &arena, &seen_accepted), 0);
    assert_int_equal(seen_accepted.count, 3);
    assert_memory_equal(seen_accepted.allocations, allocations, sizeof(allocations));
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_truncation_at_each_byte_never_crashes(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    int refused = 0;
    sl_slot_report_encode(&list, &bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        struct sl_arena arena;
        struct sl_slot_list seen;
        sl_arena_create(&arena, 0, 0);
        uint8_t *exact = malloc(size + 1);
        memcpy(exact, bytes.data, size);
        int rc = sl_slot_report_decode(exact, size, &arena, &seen);
        assert_true(rc == 0 || rc == SL_EPROTO);
        refused += rc != 0;
        free(exact);
        sl_arena_destroy(&arena);
    }
    assert_true(refused > (int)bytes.size / 2);
    sl_buf_destroy(&bytes);
}

static void
test_bad_values_are_refused(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_slot_list seen;
    struct sl_slot_request seen_request;
    sl_arena_create(&arena, 0, 0);
    /* An amount that is none. */
    double amounts[] = {-1, 0.0 / 0.0, 1.0 / 0.0};
    for (size_t i = 0; i < array_size(amounts); i++) {
        struct sl_slot_status slot = {.port = 1, .profile = sl_profile_set(amounts[i], 0, 0)};
        struct sl_slot_list one = {.resource = "s1", .slots = &slot, .count = 1};
        sl_buf_clear(&bytes);
        sl_slot_report_encode(&one, &bytes);
        assert_int_equal(sl_slot_report_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
    }
    /* Names that are none. */
    const char *names[] = {"../x", "a b", "a\nb", ".."};
    for (size_t i = 0; i < array_size(names); i++) {
        struct sl_slot_request request = {.topology = names[i], .allocation = 1};
        sl_buf_clear(&bytes);
        sl_slot_request_encode(&request, &bytes);
        assert_true(sl_slot_request_decode(bytes.data, bytes.size, &arena, &seen_request) != 0);
    }
    /* Without an allocation. */
    struct sl_slot_request request = {.topology = "words"};
    sl_buf_clear(&bytes);
    sl_slot_request_encode(&request, &bytes);
    assert_int_equal(sl_slot_request_decode(bytes.data, bytes.size, &arena, &seen_request),
                     SL_EPROTO);
    /* A kind that does not exist: field 1 of the profile in field 3 of the request. */
    static const uint8_t unknown_kind[] = {0x0a, 1, 'w', 0x11, 1,    0, 0,    0,
                                           0,    0, 0,   0,    0x1a, 2, 0x08, 9};
    assert_int_equal(
        sl_slot_request_decode(unknown_kind, sizeof(unknown_kind), &arena, &seen_request),
        SL_EPROTO);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_S6_message_bombs_are_refused_without_much_memory(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_slot_list seen;
    struct sl_slots_accepted accepted;
    sl_arena_create(&arena, 0, 4 * 1024 * 1024);
    /* 500,000 empty sub-messages in 1 MB, and as many packed numbers as fit. */
    size_t size = 1000000;
    uint8_t *bomb = malloc(size);
    for (size_t i = 0; i < size; i += 2) {
        bomb[i] = 0x1a;
        bomb[i + 1] = 0;
    }
    assert_int_equal(sl_slot_report_decode(bomb, size, &arena, &seen), SL_ELIMIT);
    assert_int_equal(arena.used_bytes, 0);
    memset(bomb, 0, size);
    bomb[0] = 0x0a;
    bomb[1] = 0xb8;
    bomb[2] = 0x84;
    bomb[3] = 0x3d;
    assert_true(sl_slots_accepted_decode(bomb, size, &arena, &accepted) != 0);
    assert_int_equal(arena.used_bytes, 0);
    free(bomb);
    sl_arena_destroy(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lists_of_slots_come_back),
    cmocka_unit_test(test_requests_notices_and_accepted_come_back),
    cmocka_unit_test(test_truncation_at_each_byte_never_crashes),
    cmocka_unit_test(test_bad_values_are_refused),
    cmocka_unit_test(test_S6_message_bombs_are_refused_without_much_memory),
};

UNIT_MAIN(tests)
