/* labels: short */
/* The runner of commands and the factories behind it, against a state manager in memory. */

#include <string.h>

#include "base/err.h"
#include "cluster/client_launcher.h"
#include "cluster/runtime_priv.h"
#include "unit.h"

static struct sl_runtime *
runtime_new(const char *launcher, bool is_service)
{
    struct sl_runtime *runtime = NULL;
    struct sl_runtime_options options = {
        .state_url = "memory:",
        .program = "streamlua",
        .logs = "logs",
        .launcher = launcher,
        .is_service = is_service,
    };
    assert_int_equal(sl_runtime_open(&options, &runtime), 0);
    return runtime;
}

/* A topology of which there is nothing but the node that says that it runs. */
static void
store_topology(struct sl_runtime *runtime, const char *name)
{
    char path[SL_STATE_PATH_MAX + 1];
    sl__rt_begin(runtime);
    sl_state_create(runtime->store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY, name), "x", 1,
                    SL_STATE_PARENTS, sl__rt_store_done, runtime);
    assert_int_equal(sl__rt_end_store_call(runtime), 0);
}

static struct sl_runtime_request
request_of(enum sl_runtime_command command, const char *topology)
{
    static struct sl_stored_plan plan;
    struct sl_runtime_request request = {
        .command = command, .topology = topology, .timeout_ms = 100};
    static struct sl_plan_component component = {.name = "spout"};
    static struct sl_packing_container container = {.id = 1, .count = 1};
    static struct sl_packing_instance instance = {.task = 1};
    static struct sl_plan_slot slot = {"", "", 0};
    plan = (struct sl_stored_plan){
        .topology = topology,
        .version = 1,
        .packing = "round_robin",
        .components = &component,
        .component_count = 1,
        .plan = {.containers = &container,
                 .container_count = 1,
                 .instances = &instance,
                 .instance_count = 1},
        .slots = &slot,
    };
    request.kill = (struct sl_runtime_kill){.topology = topology, .timeout_ms = 100};
    request.change = (struct sl_runtime_change){.current = &plan, .proposed = &plan};
    request.submission = (struct sl_runtime_submission){.topology = topology};
    return request;
}

static int
run(struct sl_runtime *runtime, enum sl_runtime_command command, const char *topology)
{
    struct sl_runtime_answer answer;
    struct sl_runtime_request request = request_of(command, topology);
    sl_err_clear();
    return sl_runtime_run(runtime, &request, &answer);
}

static void
test_an_unknown_command_is_refused(void **state)
{
    struct sl_runtime *runtime = runtime_new("local", true);
    (void)state;
    assert_int_equal(run(runtime, 0, "words"), SL_EINVAL);
    assert_int_equal(run(runtime, SL_RUNTIME_RESTART + 1, "words"), SL_EINVAL);
    assert_string_equal(sl_err_last()->msg, "there is no command 7");
    sl_runtime_close(runtime);
}

/* Every command but submit, in both modes, of a name that nobody knows and of no name. */
static void
test_commands_of_unknown_topologies_fail(void **state)
{
    static const enum sl_runtime_command commands[] = {
        SL_RUNTIME_KILL,   SL_RUNTIME_ACTIVATE, SL_RUNTIME_DEACTIVATE,
        SL_RUNTIME_UPDATE, SL_RUNTIME_RESTART,
    };
    (void)state;
    for (int is_service = 0; is_service < 2; is_service++) {
        struct sl_runtime *runtime = runtime_new("local", is_service);
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
            assert_int_equal(run(runtime, commands[i], "nobody"), SL_ENOTFOUND);
            assert_string_equal(sl_err_last()->msg, "no topology of that name is running");
            assert_int_equal(run(runtime, commands[i], "no/body"), SL_EINVAL);
        }
        sl_runtime_close(runtime);
    }
}

/* heron 1.7: a scheduler without a location in the state manager is an error, not a crash. */
static void
test_a_scheduler_without_a_location_can_not_be_asked(void **state)
{
    struct sl_runtime *runtime = runtime_new("local", true);
    (void)state;
    store_topology(runtime, "words");
    assert_int_equal(run(runtime, SL_RUNTIME_RESTART, "words"), SL_EUNAVAIL);
    assert_string_equal(sl_err_last()->msg,
                        "its scheduler can not be asked: there is no location of it in the state "
                        "manager (/schedulers/words)");
    assert_int_equal(run(runtime, SL_RUNTIME_UPDATE, "words"), SL_EUNAVAIL);
    /* Kill has to clean up all the same. */
    assert_int_equal(run(runtime, SL_RUNTIME_KILL, "words"), 0);
    assert_int_equal(run(runtime, SL_RUNTIME_KILL, "words"), SL_ENOTFOUND);
    sl_runtime_close(runtime);
}

/* Not one that nobody starts, and not one that somebody has killed meanwhile. */
static void
test_await_settled_waits_for_the_first_topology_master(void **state)
{
    struct sl_runtime *runtime = runtime_new("standalone", false);
    (void)state;
    runtime->leader_ms = 1;
    store_topology(runtime, "words");
    assert_int_equal(sl__rt_await_settled(runtime, "words", 50), SL_ETIMEOUT);
    assert_string_equal(sl_err_last()->msg, "no process leads words yet; it goes on starting");
    assert_int_equal(sl__rt_await_settled(runtime, "gone", 60000), SL_ENOTFOUND);
    sl_runtime_close(runtime);
    runtime = runtime_new("local", false);
    store_topology(runtime, "words");
    assert_int_equal(sl__rt_await_settled(runtime, "words", 60000), SL_EUNAVAIL);
    sl_runtime_close(runtime);
}

static void
test_a_plan_without_containers_is_refused(void **state)
{
    struct sl_runtime *runtime = runtime_new("local", true);
    struct sl_runtime_answer answer;
    struct sl_stored_plan empty = {.topology = "words", .packing = "round_robin"};
    struct sl_runtime_request request = request_of(SL_RUNTIME_UPDATE, "words");
    (void)state;
    store_topology(runtime, "words");
    request.change.proposed = &empty;
    assert_int_equal(sl_runtime_run(runtime, &request, &answer), SL_EINVAL);
    assert_string_equal(sl_err_last()->msg, "the proposed plan has no container");
    sl_runtime_close(runtime);
}

/* Only what needs the launcher loads it. */
static void
test_an_unknown_launcher_is_refused(void **state)
{
    struct sl_runtime *runtime = runtime_new("elsewhere", false);
    (void)state;
    store_topology(runtime, "words");
    assert_int_equal(run(runtime, SL_RUNTIME_SUBMIT, "other"), SL_EINVAL);
    assert_string_equal(sl_err_last()->msg, "there is no launcher 'elsewhere'");
    assert_int_equal(run(runtime, SL_RUNTIME_RESTART, "words"), SL_EINVAL);
    assert_int_equal(run(runtime, SL_RUNTIME_KILL, "words"), SL_EINVAL);
    assert_int_equal(sl__rt_check_running(runtime, "words"), 0);
    sl_runtime_close(runtime);
}

static void
test_a_bad_address_is_refused(void **state)
{
    struct sl_runtime *runtime = NULL;
    struct sl_runtime_options options = {
        .state_url = "nowhere", .program = "streamlua", .logs = "logs"};
    (void)state;
    assert_int_equal(sl_runtime_open(&options, &runtime), SL_EINVAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unknown_command_is_refused),
        cmocka_unit_test(test_commands_of_unknown_topologies_fail),
        cmocka_unit_test(test_a_scheduler_without_a_location_can_not_be_asked),
        cmocka_unit_test(test_await_settled_waits_for_the_first_topology_master),
        cmocka_unit_test(test_a_plan_without_containers_is_refused),
        cmocka_unit_test(test_an_unknown_launcher_is_refused),
        cmocka_unit_test(test_a_bad_address_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
