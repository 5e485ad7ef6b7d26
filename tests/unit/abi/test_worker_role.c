/* The role of a worker for Lua: what a script could get wrong, on a role without a topology master.
 * labels: short */
#include "unit.h"

#include "abi/abi.h"
#include "base/err.h"
#include "cluster/settings.h"

static struct sl_settings settings;

static struct sl_worker *
worker_new(int32_t remote_window)
{
    struct sl_worker_options options = {.executors = 1,
                                        .is_acking = 1,
                                        .message_timeout_ms = 30000,
                                        .max_spout_pending = 16,
                                        .task_capacity = 4,
                                        .spout_capacity = 1,
                                        .batch_bytes = 4096,
                                        .credit = 4,
                                        .pool_bytes = 1 << 20,
                                        .seed = 1,
                                        .remote_window = remote_window};
    struct sl_worker *worker = sl_abi_worker_new(&options);
    assert_non_null(worker);
    return worker;
}

static struct sl_worker_role_options
role_options(void)
{
    return (struct sl_worker_role_options){
        .topology = "counts", .container = 1, .host = "127.0.0.1", .identity = {1, 2, 3}};
}

static void
expect_refused(struct sl_worker *worker, const struct sl_worker_role_options *options, int code)
{
    assert_null(sl_abi_worker_role_new(worker, options, &settings));
    assert_int_equal(sl_err_last()->code, code);
}

static void
test_new_checks_worker_and_options(void **state)
{
    (void)state;
    struct sl_worker *worker = worker_new(65536);
    struct sl_worker *alone = worker_new(0);
    struct sl_worker_role_options options = role_options();
    expect_refused(NULL, &options, SL_EINVAL);
    expect_refused(worker, NULL, SL_EINVAL);
    assert_null(sl_abi_worker_role_new(worker, &options, NULL));
    /* It was made for one process. */
    expect_refused(alone, &options, SL_EINVAL);
    /* Neither who it is, nor anybody who could ask. */
    memset(options.identity, 0, sizeof(options.identity));
    expect_refused(worker, &options, SL_EINVAL);
    options = role_options();
    options.host = "0.0.0.0";
    expect_refused(worker, &options, SL_EFENCED);
    sl_abi_worker_free(worker);
    sl_abi_worker_free(alone);
}

static void
test_a_role_has_a_port_of_its_own_and_checks_its_peers(void **state)
{
    (void)state;
    static const char identity[16] = "somebody else";
    struct sl_worker *worker = worker_new(65536);
    struct sl_worker_role_options options = role_options();
    struct sl_worker_role *role = sl_abi_worker_role_new(worker, &options, &settings);
    assert_non_null(role);
    int32_t port = sl_abi_worker_role_port(role);
    assert_true(port > 0 && port <= 65535);
    /* Somebody has the port now. */
    struct sl_worker *other = worker_new(65536);
    options.data_port = port;
    expect_refused(other, &options, SL_EEXIST);
    sl_abi_worker_free(other);

    assert_int_equal(sl_abi_worker_role_peer(role, 2, NULL, "127.0.0.1", 1), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_peer(role, 2, identity, NULL, 1), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_peer(role, 2, identity, "127.0.0.1", 0), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_peer(role, 2, identity, "127.0.0.1", 65536), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_topology(role, NULL), SL_EINVAL);
    struct sl_worker_counters counters = {0};
    assert_int_equal(sl_abi_worker_role_count(role, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_count(role, &counters), SL_EINVAL);
    sl_abi_worker_role_free(role);
    sl_abi_worker_free(worker);
}

static void
test_no_role_is_an_error_and_no_crash(void **state)
{
    (void)state;
    static const char identity[16] = "somebody";
    struct sl_worker_counters counters = {.component = "a"};
    assert_int_equal(sl_abi_worker_role_port(NULL), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_topology(NULL, "id"), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_peer(NULL, 1, identity, "localhost", 1), SL_EINVAL);
    assert_int_equal(sl_abi_worker_role_count(NULL, &counters), SL_EINVAL);
    sl_abi_worker_role_answer(NULL, 1, 0, "", 0);
    sl_abi_worker_role_report(NULL, "a", 1, "", 0, 0);
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    sl_abi_worker_role_free(NULL);
}

static void
test_package_unpack_needs_a_topology_that_is_there(void **state)
{
    (void)state;
    char folder[64];
    char url[128];
    char command[128];
    unit_folder_new(folder, sizeof(folder));
    snprintf(url, sizeof(url), "localfs:%s", folder);
    assert_null(sl_abi_package_unpack(NULL, "counts", &settings));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    assert_null(sl_abi_package_unpack(url, NULL, &settings));
    assert_null(sl_abi_package_unpack(url, "counts", NULL));
    assert_null(sl_abi_package_unpack("nowhere:", "counts", &settings));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    assert_null(sl_abi_package_unpack(url, "counts", &settings));
    assert_int_equal(sl_err_last()->code, SL_ENOTFOUND);
    sl_abi_package_unpack_free(NULL);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_new_checks_worker_and_options),
    cmocka_unit_test(test_a_role_has_a_port_of_its_own_and_checks_its_peers),
    cmocka_unit_test(test_no_role_is_an_error_and_no_crash),
    cmocka_unit_test(test_package_unpack_needs_a_topology_that_is_there),
};

int
main(void)
{
    settings = sl_settings_default();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
