/* Clients of clusters for Lua: what is checked, and what there is to be read of an empty cluster.
 * labels: short */
#include "unit.h"

#include "abi/abi.h"
#include "base/err.h"

struct fixture {
    char folder[64];
    char url[128];
    struct sl_cluster *cluster;
};

static int
setup(void **state)
{
    static struct fixture fixture;
    unit_folder_new(fixture.folder, sizeof(fixture.folder));
    snprintf(fixture.url, sizeof(fixture.url), "localfs:%s", fixture.folder);
    struct sl_cluster_options options = {.state_url = fixture.url,
                                         .program = "/bin/false",
                                         .logs = fixture.folder,
                                         .progress_fd = -1};
    fixture.cluster = sl_abi_cluster_open(&options);
    *state = &fixture;
    return fixture.cluster != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
    struct fixture *fixture = *state;
    char command[128];
    sl_abi_cluster_close(fixture->cluster);
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->folder);
    return system(command);
}

static void
test_open_needs_a_state_manager_a_program_and_logs(void **state)
{
    (void)state;
    static const struct sl_cluster_options rows[] = {
        {.program = "/bin/false", .logs = "/tmp"},
        {.state_url = "localfs:/tmp", .logs = "/tmp"},
        {.state_url = "localfs:/tmp", .program = "/bin/false"},
        {.state_url = "nowhere:/tmp", .program = "/bin/false", .logs = "/tmp"},
    };
    assert_null(sl_abi_cluster_open(NULL));
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_null(sl_abi_cluster_open(&rows[i]));
        assert_int_equal(sl_err_last()->code, SL_EINVAL);
    }
    sl_abi_cluster_close(NULL);
}

static void
test_an_empty_cluster_has_no_topology(void **state)
{
    struct fixture *fixture = *state;
    struct sl_cluster *cluster = fixture->cluster;
    const struct sl_topology_view *view;
    const struct sl_package *package;
    const struct sl_control_status *status;
    assert_int_equal(sl_abi_cluster_names(cluster), 0);
    assert_null(sl_abi_cluster_name(cluster, 0));
    assert_null(sl_abi_cluster_name(cluster, -1));
    assert_int_equal(sl_abi_cluster_load(cluster, "counts", &view), SL_ENOTFOUND);
    assert_int_equal(sl_abi_cluster_package(cluster, "counts", &package), SL_ENOTFOUND);
    assert_int_equal(sl_abi_cluster_status(cluster, "counts", &status), SL_ENOTFOUND);
    assert_int_equal(sl_abi_cluster_set_active(cluster, "counts", true, 1000), SL_ENOTFOUND);
    assert_int_equal(sl_abi_cluster_restart(cluster, "counts", 0, 1000), SL_ENOTFOUND);
    assert_int_equal(sl_abi_cluster_kill(cluster, "counts", 0, 1000, false), SL_ENOTFOUND);
}

static void
test_a_client_needs_its_arguments(void **state)
{
    struct fixture *fixture = *state;
    struct sl_cluster *cluster = fixture->cluster;
    const struct sl_topology_view *view;
    const struct sl_update_result *result;
    const struct sl_stored_plan *planned;
    struct sl_cluster_change change = {0};
    assert_int_equal(sl_abi_cluster_names(NULL), SL_EINVAL);
    assert_null(sl_abi_cluster_name(NULL, 0));
    assert_int_equal(sl_abi_cluster_load(NULL, "counts", &view), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_load(cluster, NULL, &view), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_load(cluster, "counts", NULL), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_package(cluster, "counts", NULL), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_status(cluster, NULL, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_set_active(cluster, NULL, true, 0), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_restart(cluster, NULL, 0, 0), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_kill(cluster, NULL, 0, 0, false), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_update(cluster, NULL, &result, &planned), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_update(cluster, &change, &result, &planned), SL_EINVAL);
}

/* A plan of one container with one instance of one component, and what submits it. */
struct submission {
    struct sl_plan_component component;
    struct sl_plan_slot slot;
    struct sl_packing_container container;
    struct sl_packing_instance instance;
    struct sl_stored_plan plan;
    struct sl_package_file file;
    struct sl_package package;
    struct sl_cluster_submission asked;
};

static void
submission_create(struct submission *self)
{
    memset(self, 0, sizeof(*self));
    self->file = (struct sl_package_file){"counts.lua", (const uint8_t *)"return 1\n", 9};
    self->package =
        (struct sl_package){.script = "counts.lua", .files = &self->file, .file_count = 1};
    self->plan = (struct sl_stored_plan){.topology = "counts",
                                         .packing = "round_robin",
                                         .components = &self->component,
                                         .component_count = 1,
                                         .slots = &self->slot};
    self->plan.plan.containers = &self->container;
    self->plan.plan.instances = &self->instance;
    self->asked = (struct sl_cluster_submission){.topology = "counts",
                                                 .definition = (const uint8_t *)"",
                                                 .plan = &self->plan,
                                                 .package = &self->package,
                                                 .cwd = "/",
                                                 .user = "root",
                                                 .timeout_ms = 1000};
}

static void
test_submit_needs_a_whole_plan_and_a_package(void **state)
{
    struct fixture *fixture = *state;
    const struct sl_stored_plan *planned;
    struct submission s;
    submission_create(&s);
    assert_int_equal(sl_abi_cluster_submit(NULL, &s.asked, &planned), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_submit(fixture->cluster, NULL, &planned), SL_EINVAL);
    assert_int_equal(sl_abi_cluster_submit(fixture->cluster, &s.asked, NULL), SL_EINVAL);
    /* An instance of a component that the plan does not have. */
    s.plan.plan.container_count = s.plan.plan.instance_count = 1;
    s.container.id = 1;
    s.instance.component = 1;
    assert_int_equal(sl_abi_cluster_submit(fixture->cluster, &s.asked, &planned), SL_EINVAL);
    s.plan.slots = NULL;
    assert_int_equal(sl_abi_cluster_submit(fixture->cluster, &s.asked, &planned), SL_EINVAL);
    submission_create(&s);
    s.package.file_count = 0;
    assert_int_equal(sl_abi_cluster_submit(fixture->cluster, &s.asked, &planned), SL_EINVAL);
    submission_create(&s);
    s.asked.user = NULL;
    assert_int_equal(sl_abi_cluster_submit(fixture->cluster, &s.asked, &planned), SL_EINVAL);
    /* Nothing was written. */
    assert_int_equal(sl_abi_cluster_names(fixture->cluster), 0);
}

static void
test_package_hash_is_of_the_files_alone(void **state)
{
    (void)state;
    struct submission s;
    char hash[65];
    submission_create(&s);
    snprintf(hash, sizeof(hash), "%s", sl_abi_package_hash(&s.package));
    assert_int_equal(strspn(hash, "0123456789abcdef"), 64);
    s.package.overrides = "{}";
    s.package.overrides_size = 2;
    assert_string_equal(sl_abi_package_hash(&s.package), hash);
    s.file.content = (const uint8_t *)"return 2\n";
    assert_string_not_equal(sl_abi_package_hash(&s.package), hash);
    s.package.file_count = 0;
    assert_null(sl_abi_package_hash(&s.package));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    assert_null(sl_abi_package_hash(NULL));
}

static void
test_roles_need_their_options(void **state)
{
    (void)state;
    /* A supervisor started it, but where it listens is not said. */
    struct sl_role_options role = {.state_url = "localfs:/nowhere",
                                   .topology = "counts",
                                   .program = "/bin/false",
                                   .logs = "/tmp",
                                   .supervisor = "s1"};
    struct sl_supervisor_role_options supervisor = {.state_url = "localfs:/nowhere"};
    assert_int_equal(sl_abi_role_guardian(NULL, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_role_topology_master(NULL, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_role_topology_master(&role, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_role_supervisor(NULL, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_role_supervisor(&supervisor, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_role_master("localfs:/nowhere", NULL, "/tmp", NULL, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_role_master(NULL, "127.0.0.1:0", "/tmp", NULL, NULL), SL_EINVAL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_open_needs_a_state_manager_a_program_and_logs),
    cmocka_unit_test_setup_teardown(test_an_empty_cluster_has_no_topology, setup, teardown),
    cmocka_unit_test_setup_teardown(test_a_client_needs_its_arguments, setup, teardown),
    cmocka_unit_test_setup_teardown(test_submit_needs_a_whole_plan_and_a_package, setup, teardown),
    cmocka_unit_test(test_package_hash_is_of_the_files_alone),
    cmocka_unit_test(test_roles_need_their_options),
};

UNIT_MAIN(tests)
