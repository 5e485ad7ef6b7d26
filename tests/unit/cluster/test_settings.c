/* labels: short */
#include "unit.h"

#include "base/err.h"
#include "cluster/settings.h"

static void
test_defaults_are_those_of_the_parts(void **state)
{
    (void)state;
    struct sl_settings settings = sl_settings_default();
    struct sl_registration_config registration = sl_settings_registration(&settings);
    struct sl_registration_config registration_default = sl_registration_config_default();
    struct sl_heartbeat_config heartbeat = sl_settings_heartbeat(&settings);
    struct sl_slot_manager_config slots = sl_slot_manager_config_default();
    struct sl_slot_manager_config slots_default = slots;
    assert_int_equal(sl_settings_check(&settings), 0);
    assert_memory_equal(&registration, &registration_default, sizeof(registration));
    assert_int_equal(heartbeat.interval_ms, 10000);
    assert_int_equal(heartbeat.timeout_ms, 50000);
    assert_int_equal(heartbeat.threshold, 2);
    sl_settings_apply_slots(&settings, &slots);
    assert_int_equal(slots.request_timeout_ms, slots_default.request_timeout_ms);
    assert_int_equal(slots.idle_timeout_ms, slots_default.idle_timeout_ms);
    assert_int_equal(slots.start_timeout_ms, slots_default.start_timeout_ms);
    assert_int_equal(slots.max_slots, slots_default.max_slots);
    assert_int_equal(slots.is_spreading, slots_default.is_spreading);
}

/* As the environment of a process that is started says it. */
static void
test_values_as_variables(void **state)
{
    struct sl_settings settings = sl_settings_default();
    char text[128];
    bool has_interval = false;
    bool has_flag = false;
    size_t count = 0;
    (void)state;
    settings.heartbeat_interval_ms = 250;
    settings.spread_slots = 1;
    while (sl_settings_variable(&settings, count, text, sizeof(text))) {
        has_interval = has_interval || strcmp(text, "STREAMLUA_HEARTBEAT_INTERVAL=250ms") == 0;
        has_flag = has_flag || strcmp(text, "STREAMLUA_SPREAD_SLOTS=true") == 0;
        count++;
    }
    assert_null(sl_settings_row(count));
    assert_true(has_interval && has_flag);
}

static void
test_set_reaches_every_row(void **state)
{
    (void)state;
    struct sl_settings settings = sl_settings_default();
    const struct sl_setting *row;
    size_t count = 0;
    for (; (row = sl_settings_row(count)) != NULL; count++) {
        int64_t value = row->kind == SL_SETTING_FLAG ? 1 : row->least + 7;
        assert_int_equal(sl_settings_set(&settings, row->name, value), 0);
        assert_int_equal(((const int64_t *)&settings)[count], value);
        assert_true(row->value >= row->least);
        assert_true(row->text[0] >= 'A' && row->text[strlen(row->text) - 1] == '.');
        assert_int_equal(sl_settings_set(&settings, row->name, row->least - 1), SL_ERANGE);
        assert_non_null(strstr(sl_err_last()->msg, row->name));
        assert_int_equal(((const int64_t *)&settings)[count], value);
    }
    assert_int_equal(count * sizeof(int64_t), sizeof(settings));
    assert_int_equal(sl_settings_set(&settings, "heartbeat", 1), SL_ENOTFOUND);
}

static void
test_parts_get_what_was_set(void **state)
{
    (void)state;
    struct sl_settings settings = sl_settings_default();
    struct sl_rpc_options rpc = {.name = "kept"};
    struct sl_state_open_options open = {.digest = "kept"};
    struct sl_slot_manager_config slots = sl_slot_manager_config_default();
    assert_int_equal(sl_settings_set(&settings, "rpc_timeout", 1), 0);
    assert_int_equal(sl_settings_set(&settings, "rpc_frame_timeout", 2), 0);
    assert_int_equal(sl_settings_set(&settings, "rpc_retry_delay", 3), 0);
    assert_int_equal(sl_settings_set(&settings, "state_timeout", 4), 0);
    assert_int_equal(sl_settings_set(&settings, "zookeeper_session_timeout", 5), 0);
    assert_int_equal(sl_settings_set(&settings, "slots_max", 6), 0);
    assert_int_equal(sl_settings_set(&settings, "redundant_supervisors", 7), 0);
    assert_int_equal(sl_settings_set(&settings, "spread_slots", 1), 0);
    sl_settings_apply_rpc(&settings, &rpc);
    sl_settings_apply_state(&settings, &open);
    sl_settings_apply_slots(&settings, &slots);
    assert_int_equal(rpc.call_timeout_ms, 1);
    assert_int_equal(rpc.frame_timeout_ms, 2);
    assert_int_equal(rpc.opening_timeout_ms, 2);
    assert_int_equal(rpc.retry_gate_ms, 3);
    assert_string_equal(rpc.name, "kept");
    assert_int_equal(open.timeout_ms, 4);
    assert_int_equal(open.session_timeout_ms, 5);
    assert_string_equal(open.digest, "kept");
    assert_int_equal(slots.max_slots, 6);
    assert_int_equal(slots.redundant_supervisors, 7);
    assert_true(slots.is_spreading);
}

static void
test_check_names_both_settings(void **state)
{
    (void)state;
    struct sl_settings settings = sl_settings_default();
    settings.heartbeat_interval_ms = settings.heartbeat_timeout_ms;
    assert_int_equal(sl_settings_check(&settings), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "heartbeat_interval"));
    assert_non_null(strstr(sl_err_last()->msg, "heartbeat_timeout"));
    settings = sl_settings_default();
    settings.registration_initial_timeout_ms = settings.registration_max_timeout_ms + 1;
    assert_int_equal(sl_settings_check(&settings), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "registration_initial_timeout"));
    settings = sl_settings_default();
    settings.heartbeat_threshold = 0;
    assert_int_equal(sl_settings_check(&settings), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "heartbeat_threshold"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults_are_those_of_the_parts),
    cmocka_unit_test(test_values_as_variables),
    cmocka_unit_test(test_set_reaches_every_row),
    cmocka_unit_test(test_parts_get_what_was_set),
    cmocka_unit_test(test_check_names_both_settings),
};

UNIT_MAIN(tests)
