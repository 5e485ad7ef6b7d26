/* labels: short */
/*
 * Masters that come and go, in virtual time, with real supervisors and topology masters: what they
 * write, and what they do not write when something fails; who leads; what the monitor moves.
 */
#include "standalone_fixture.h"

#include <dirent.h>

#include "cluster/master.h"
#include "cluster/master_messages.h"
#include "cluster/master_priv.h"
#include "cluster/package.h"
#include "cluster/supervisor_starts.h"
#include "state/tree.h"

enum { MASTERS_MAX = 3, FIRST_TASK = 1, MASTER_TASK = 50 };

struct masters {
    struct fixture *f;
    struct node nodes[MASTERS_MAX];
    struct sl_master *masters[MASTERS_MAX];
    char folder[64];
    struct sl_leader_retrieval *leader;
    char address[64];
    uint64_t token;
    /* What the next submission asks for. */
    uint32_t workers;
    uint64_t limit_ms;
    const char *name;
    /* Requests that are sent and not waited for. */
    struct sl_rpc_gateway *gateways[8];
    int sent;
};

static struct masters world;

static void
master_changed(void *ctx, const char *address, uint64_t token)
{
    (void)ctx;
    snprintf(world.address, sizeof(world.address), "%s", address != NULL ? address : "");
    world.token = token;
}

static void
master_fatal(void *ctx, const char *reason)
{
    (void)ctx;
    fail_msg("%s", reason);
}

static void
master_start(int i)
{
    struct fixture *f = world.f;
    char name[8];
    snprintf(name, sizeof(name), "m%d", i);
    node_open(f, &world.nodes[i]);
    struct sl_master_options options = {
        .rpc = world.nodes[i].rpc,
        .store = world.nodes[i].store,
        .name = name,
        .folder = world.folder,
        .heartbeat = sl_settings_heartbeat(&f->settings),
        .slots = sl_slot_manager_config_default(),
        .topology_timeout_ms = 300000,
        .start_up_ms = 2000,
        .monitor_interval_ms = 500,
        .supervisor_timeout_ms = 8000,
        .on_fatal = master_fatal,
    };
    assert_int_equal(sl_master_new(&options, &world.masters[i]), 0);
}

static void
master_kill(int i)
{
    if (world.masters[i] != NULL) {
        sl_sim_loop_crash(world.nodes[i].loop, false);
        sl_master_free(world.masters[i]);
        world.masters[i] = NULL;
        node_close(world.f, &world.nodes[i]);
    }
}

static int
leading(void)
{
    for (int i = 0; i < MASTERS_MAX; i++) {
        if (world.masters[i] != NULL && sl_master_is_leading(world.masters[i]) &&
            strcmp(sl_rpc_address(world.nodes[i].rpc), world.address) == 0) {
            return i;
        }
    }
    return -1;
}

static bool
is_ready(size_t supervisors)
{
    int i = leading();
    return i >= 0 && sl_master_supervisor_count(world.masters[i]) == supervisors;
}

static int
setup(void **state)
{
    struct fixture *f = sl_calloc(1, sizeof(*f));
    char path[SL_STATE_PATH_MAX + 1];
    current = f;
    memset(&world, 0, sizeof(world));
    world.f = f;
    world.workers = 2;
    world.name = "words";
    f->sim = sl_sim_new(&(struct sl_sim_options){.seed = 7});
    sl_sim_set_spawner(f->sim, &(struct sl_sim_spawner){spawn, signal_process, f});
    f->server_loop = sl_sim_loop_new(f->sim, "127.0.0.9");
    sl_state_loop_executor_create(&f->server_executor, f->server_loop);
    f->server = sl_memory_server_new(&f->server_executor.executor, 3);
    sl_memory_server_set_session_timeout(f->server, 4000);
    f->settings = sl_settings_default();
    f->settings.heartbeat_interval_ms = 1000;
    f->settings.heartbeat_timeout_ms = 5000;
    f->settings.registration_error_delay_ms = 200;
    f->settings.registration_refused_delay_ms = 200;
    unit_folder_new(f->folder, sizeof(f->folder));
    snprintf(world.folder, sizeof(world.folder), "%s/master", f->folder);
    sl_arena_create(&f->arena, 0, 0);
    node_open(f, &f->client);
    f->leader = sl_leader_retrieval_new(f->client.store, f->client.loop,
                                        sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, "words"),
                                        leader_changed, f);
    world.leader = sl_leader_retrieval_new(f->client.store, f->client.loop, SL_LAYOUT_MASTER_LEADER,
                                           master_changed, NULL);
    master_start(0);
    UNTIL(f, leading() == 0);
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        supervisor_start(f, i);
    }
    UNTIL(f, is_ready(SUPERVISORS_MAX));
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < world.sent; i++) {
        sl_rpc_gateway_free(world.gateways[i]);
    }
    sl_leader_retrieval_free(world.leader);
    for (int i = 0; i < MASTERS_MAX; i++) {
        master_kill(i);
    }
    return teardown_cluster(state) + (f == NULL);
}

/* What clients ask. */

static void
encode_schedule(struct sl_buf *out)
{
    struct sl_sched_component components[] = {
        {.name = "__topology_master", .kind = SL_SCHED_MASTER},
        {.name = "lines", .kind = SL_SCHED_SPOUT},
    };
    struct sl_schedule_template schedule = {
        .scheduler = SL_SCHED_BALANCED,
        .request = {.workers = world.workers,
                    .master_alone = SL_SCHED_AUTO,
                    .worker_cpu = -1,
                    .worker_ram = -1,
                    .components = components,
                    .component_count = 2},
    };
    sl_schedule_template_encode(&schedule, out);
}

/* All tasks in one container, as clients send them. */
static void
encode_tasks(int32_t count, uint64_t version, struct sl_buf *out)
{
    static struct sl_plan_component components[] = {{"lines", NULL, 0}};
    struct sl_packing_container container = {1, 0, count, count, count, count};
    struct sl_packing_instance instances[8];
    struct sl_plan_slot slot = {"", "", 0};
    for (int32_t i = 0; i < count; i++) {
        instances[i] = (struct sl_packing_instance){0, FIRST_TASK + i, i, 1, 1, 1};
    }
    struct sl_stored_plan plan = {
        .topology = world.name,
        .version = version,
        .packing = "balanced",
        .components = components,
        .component_count = 1,
        .plan = {.containers = &container,
                 .instances = instances,
                 .container_count = 1,
                 .instance_count = count},
        .slots = &slot,
        .master = {"", "", 0},
        .master_task = MASTER_TASK,
    };
    assert_int_equal(sl_stored_plan_encode(&plan, out), 0);
}

static void
encode_submission(int32_t tasks, struct sl_buf *out)
{
    static const uint8_t code[] = "return 1";
    struct sl_package_file file = {"words.lua", code, sizeof(code) - 1};
    struct sl_package package = {.script = "words.lua", .files = &file, .file_count = 1};
    struct sl_buf parts[3] = {{0}};
    assert_int_equal(sl_package_encode(&package, &parts[0]), 0);
    encode_tasks(tasks, 1, &parts[1]);
    encode_schedule(&parts[2]);
    struct sl_master_submit message = {
        .topology = world.name,
        .definition = code,
        .definition_size = sizeof(code),
        .package = parts[0].data,
        .package_size = parts[0].size,
        .plan = parts[1].data,
        .plan_size = parts[1].size,
        .schedule = parts[2].data,
        .schedule_size = parts[2].size,
        .cwd = "/",
        .user = "me",
        .host = "here",
        .is_active = true,
        .time_limit_ms = world.limit_ms,
    };
    sl_master_submit_encode(&message, out);
    for (size_t i = 0; i < array_size(parts); i++) {
        sl_buf_destroy(&parts[i]);
    }
}

/* Wraps a request into one piece. */
static void
as_piece(const struct sl_buf *bytes, struct sl_buf *out)
{
    static uint64_t ids = 1;
    struct sl_master_piece piece = {ids++, bytes->size, 0, bytes->data, bytes->size};
    sl_master_piece_encode(&piece, out);
}

static int
ask_master(uint32_t method, const struct sl_buf *body)
{
    struct fixture *f = world.f;
    UNTIL(f, world.token != 0);
    call(f, world.address, SL_ENDPOINT_MASTER, world.token, method, body);
    return f->answer_status == SL_RPC_SUCCESS ? 0 : f->answer_code;
}

/* Sends and does not wait. */
static void
send_master(uint32_t method, const struct sl_buf *body)
{
    struct fixture *f = world.f;
    assert_true(world.sent < (int)array_size(world.gateways));
    struct sl_rpc_gateway **gateway = &world.gateways[world.sent++];
    assert_int_equal(
        sl_rpc_connect(f->client.rpc, world.address, SL_ENDPOINT_MASTER, world.token, gateway), 0);
    sl_rpc_call(*gateway, method, body->data, body->size, 600000, answered, f);
}

static int
submit_words(int32_t tasks)
{
    struct sl_buf bytes = {0};
    struct sl_buf body = {0};
    encode_submission(tasks, &bytes);
    as_piece(&bytes, &body);
    int rc = ask_master(SL_MASTER_SUBMIT, &body);
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&body);
    return rc;
}

static void
send_submission(int32_t tasks)
{
    struct sl_buf bytes = {0};
    struct sl_buf body = {0};
    encode_submission(tasks, &bytes);
    as_piece(&bytes, &body);
    send_master(SL_MASTER_SUBMIT, &body);
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&body);
}

static void
encode_kill(uint64_t wait_ms, bool is_purged, struct sl_buf *out)
{
    struct sl_master_kill message = {"words", wait_ms, is_purged};
    sl_master_kill_encode(&message, out);
}

static int
kill_words(uint64_t wait_ms, bool is_purged)
{
    struct sl_buf body = {0};
    encode_kill(wait_ms, is_purged, &body);
    int rc = ask_master(SL_MASTER_KILL, &body);
    sl_buf_destroy(&body);
    return rc;
}

/* The node as it is now. */
static const struct sl_tree_node *
node_at(enum sl_layout_part part)
{
    char path[SL_STATE_PATH_MAX + 1];
    return sl_tree_find(sl_memory_server_tree(world.f->server),
                        sl_layout_path(path, part, world.name));
}

static bool
is_anything_stored(void)
{
    static const enum sl_layout_part parts[] = {
        SL_LAYOUT_TOPOLOGY,        SL_LAYOUT_PLAN,    SL_LAYOUT_PHYSICAL_PLAN,
        SL_LAYOUT_EXECUTION_STATE, SL_LAYOUT_PACKAGE, SL_LAYOUT_SCHEDULING,
        SL_LAYOUT_TOPOLOGY_LEADER,
    };
    for (size_t i = 0; i < array_size(parts); i++) {
        if (node_at(parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Topologies that the masters took in, by their folders. */
static int
count_folders(void)
{
    int count = 0;
    DIR *folder = opendir(world.folder);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static void
get_plan(struct sl_stored_plan *plan)
{
    struct fixture *f = world.f;
    char path[SL_STATE_PATH_MAX + 1];
    int before = f->done;
    sl_state_get(f->client.store, sl_layout_path(path, SL_LAYOUT_PLAN, "words"), done, f);
    UNTIL(f, f->done > before);
    assert_int_equal(f->done_status, 0);
    assert_int_equal(sl_stored_plan_decode(f->value.data, f->value.size, &f->arena, plan), 0);
}

static void
encode_update(int32_t tasks, bool is_dry_run, struct sl_buf *out)
{
    struct fixture *f = world.f;
    struct sl_stored_plan plan;
    struct sl_buf proposed = {0};
    struct sl_buf bytes = {0};
    get_plan(&plan);
    encode_tasks(tasks, plan.version + 1, &proposed);
    struct sl_master_update message = {
        .topology = "words",
        .current = f->value.data,
        .current_size = f->value.size,
        .proposed = proposed.data,
        .proposed_size = proposed.size,
        .mode = SL_SCHED_KEEP,
        .lock_timeout_ms = 5000,
        .drain_timeout_ms = 20000,
        .is_dry_run = is_dry_run,
    };
    sl_master_update_encode(&message, &bytes);
    as_piece(&bytes, out);
    sl_buf_destroy(&proposed);
    sl_buf_destroy(&bytes);
}

static int
update_words(int32_t tasks, bool is_dry_run)
{
    struct sl_buf body = {0};
    encode_update(tasks, is_dry_run, &body);
    int rc = ask_master(SL_MASTER_UPDATE, &body);
    sl_buf_destroy(&body);
    return rc;
}

static int
supervisor_index(const struct process *process)
{
    return process->supervisor[1] - '0';
}

/* Submissions. */

static void
test_a_submission_is_stored_whole_and_runs(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan plan;
    assert_int_equal(submit_words(3), 0);
    assert_non_null(node_at(SL_LAYOUT_TOPOLOGY));
    assert_non_null(node_at(SL_LAYOUT_EXECUTION_STATE));
    assert_non_null(node_at(SL_LAYOUT_PACKAGE));
    assert_non_null(node_at(SL_LAYOUT_SCHEDULING));
    assert_int_equal(count_folders(), 1);
    assert_true(await_settled(f).is_settled);
    UNTIL(f, node_at(SL_LAYOUT_BACKUP) != NULL);
    get_plan(&plan);
    assert_int_equal(plan.version, 1);
    assert_int_equal(plan.plan.container_count, 2);
    for (int32_t i = 0; i < 2; i++) {
        const struct process *worker = process_of(f, plan.plan.containers[i].id);
        assert_string_equal(worker->supervisor, plan.slots[i].supervisor);
        assert_int_equal(worker->port, plan.slots[i].port);
    }
    assert_string_equal(process_of(f, 0)->supervisor, plan.master.supervisor);
    /* Nothing comes of it when nothing happens. */
    run_for(f, 120000);
    assert_int_equal(f->started, 3);
}

static void
test_what_can_not_be_placed_writes_nothing(void **state)
{
    struct fixture *f = *state;
    world.workers = 8;
    /* Eight tasks on eight workers are fine, on nine slots; a second topology has no room. */
    assert_int_equal(submit_words(8), 0);
    world.name = "other";
    assert_int_equal(submit_words(2), SL_EUNSATISFIABLE);
    assert_non_null(strstr(f->reason, "need 2, free 1"));
    assert_false(is_anything_stored());
    run_for(f, 100);
    assert_int_equal(count_folders(), 1);
}

static void
test_a_plan_that_is_none_writes_nothing(void **state)
{
    struct fixture *f = *state;
    world.workers = 1;
    struct sl_buf bytes = {0};
    struct sl_buf body = {0};
    struct sl_master_submit message = {.topology = "words", .time_limit_ms = 1000};
    sl_master_submit_encode(&message, &bytes);
    as_piece(&bytes, &body);
    assert_int_not_equal(ask_master(SL_MASTER_SUBMIT, &body), 0);
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&body);
    assert_false(is_anything_stored());
    run_for(f, 100);
    assert_int_equal(count_folders(), 0);
}

static void
test_a_state_manager_that_fails_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    send_submission(2);
    /* It is there again before the session ends. */
    sl_memory_server_set_serving(f->server, false);
    run_for(f, 2000);
    sl_memory_server_set_serving(f->server, true);
    UNTIL(f, f->answers == 1);
    if (f->answer_status != SL_RPC_SUCCESS) {
        run_for(f, 100);
        assert_false(is_anything_stored());
        assert_int_equal(count_folders(), 0);
    } else {
        assert_non_null(node_at(SL_LAYOUT_TOPOLOGY));
    }
}

static void
test_a_topology_master_that_can_not_be_started_takes_all_back(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        sl_sim_cut(f->sim, world.nodes[0].host, f->supervisors[i].node.host);
    }
    assert_int_not_equal(submit_words(2), 0);
    assert_non_null(strstr(f->reason, "topology master can not be started"));
    assert_false(is_anything_stored());
    assert_null(node_at(SL_LAYOUT_BACKUP));
    run_for(f, 100);
    assert_int_equal(count_folders(), 0);
    sl_sim_heal_all(f->sim);
    UNTIL(f, is_ready(SUPERVISORS_MAX));
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
}

static void
test_a_topology_master_that_ends_at_once_takes_all_back(void **state)
{
    struct fixture *f = *state;
    f->is_master_broken = true;
    assert_int_equal(submit_words(2), SL_EUSER);
    assert_non_null(strstr(f->reason, "it ends again and again (exit code 1)"));
    assert_false(is_anything_stored());
    assert_null(node_at(SL_LAYOUT_BACKUP));
    assert_int_equal(f->started, SL_SUPERVISOR_STARTS_MAX);
    run_for(f, 60000);
    assert_int_equal(f->started, SL_SUPERVISOR_STARTS_MAX);
    assert_int_equal(count_folders(), 0);
    f->is_master_broken = false;
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
}

static void
test_a_topology_master_that_is_slow_is_waited_for_within_limits(void **state)
{
    struct fixture *f = *state;
    f->is_master_idle = true;
    uint64_t before = sl_sim_now_ms(f->sim);
    assert_int_equal(submit_words(2), 0);
    uint64_t took = sl_sim_now_ms(f->sim) - before;
    assert_in_range(took, SL_SUPERVISOR_START_MS, SL_SUPERVISOR_START_MS + 1000);
}

static void
test_one_of_two_submissions_of_a_name_wins(void **state)
{
    struct fixture *f = *state;
    send_submission(2);
    send_submission(2);
    UNTIL(f, f->answers == 2);
    assert_int_equal(submit_words(2), SL_EEXIST);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(count_folders(), 1);
}

static void
test_a_submission_that_nobody_comes_to_ends_by_its_own_time(void **state)
{
    struct fixture *f = *state;
    master_kill(0);
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        supervisor_end(f, i, true);
    }
    master_start(1);
    UNTIL(f, leading() == 1);
    /* The supervisors may be about to come, for all that the new master knows. */
    world.limit_ms = 500;
    assert_int_equal(submit_words(2), SL_ETIMEOUT);
    assert_non_null(strstr(f->reason, "nothing was done"));
    world.limit_ms = 0;
    run_for(f, 10000);
    assert_int_equal(submit_words(2), SL_EUNSATISFIABLE);
    assert_non_null(strstr(f->reason, "no supervisor is alive"));
    assert_false(is_anything_stored());
    assert_int_equal(count_folders(), 0);
}

static void
test_two_topologies_never_share_a_slot(void **state)
{
    struct fixture *f = *state;
    struct sl_buf out = {0};
    struct sl_master_status status;
    world.workers = 4;
    assert_int_equal(submit_words(4), 0);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(ask_master(SL_MASTER_STATUS, &out), 0);
    assert_int_equal(sl_master_status_decode(f->answer.data, f->answer.size, &f->arena, &status),
                     0);
    size_t taken = 0;
    for (size_t i = 0; i < status.supervisor_count; i++) {
        for (size_t k = 0; k < status.supervisors[i].slot_count; k++) {
            taken += strcmp(status.supervisors[i].slots[k].topology, "words") == 0;
        }
    }
    assert_int_equal(taken, 4);
    assert_string_equal(status.topologies[0].status, "ACTIVE");
    world.name = "other";
    world.workers = 6;
    assert_int_equal(submit_words(6), SL_EUNSATISFIABLE);
    assert_non_null(strstr(f->reason, "need 6, free 5"));
}

/* Who leads. */

static void
test_another_master_takes_over_and_nothing_is_restarted(void **state)
{
    struct fixture *f = *state;
    master_start(1);
    master_start(2);
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    uint64_t term = world.token;
    uint64_t topology_term = f->leader_token;
    int started = f->started;
    for (int round = 0; round < 2; round++) {
        int old = leading();
        uint64_t from = sl_sim_now_ms(f->sim);
        master_kill(old);
        UNTIL(f, is_ready(SUPERVISORS_MAX) && leading() != old);
        /* The session's time-out, and a second. */
        assert_true(sl_sim_now_ms(f->sim) - from < 5000);
        assert_true(world.token > term);
        term = world.token;
        run_for(f, 60000);
        struct sl_stored_plan plan;
        get_plan(&plan);
        assert_int_equal(plan.version, 1);
        assert_int_equal(f->started, started);
        assert_int_equal(f->leader_token, topology_term);
    }
    assert_int_equal(update_words(5, false), 0);
    assert_int_equal(kill_words(0, false), 0);
    UNTIL(f, count_alive(f) == 0);
}

static void
test_a_master_of_an_old_term_writes_nothing(void **state)
{
    struct fixture *f = *state;
    master_start(1);
    run_for(f, 100);
    /* Its session ends with a submission in its queue. */
    send_submission(2);
    sl_memory_server_expire(f->server, sl_state_store_session(world.nodes[0].store));
    UNTIL(f, leading() == 1 && f->answers == 1);
    assert_int_not_equal(f->answer_status, SL_RPC_SUCCESS);
    run_for(f, 20000);
    assert_false(is_anything_stored());
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
}

/* Kills. */

static void
test_a_kill_leaves_nothing_but_the_backup(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(kill_words(0, false), SL_ENOTFOUND);
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    UNTIL(f, node_at(SL_LAYOUT_BACKUP) != NULL);
    assert_int_equal(kill_words(0, false), 0);
    assert_false(is_anything_stored());
    assert_non_null(node_at(SL_LAYOUT_BACKUP));
    UNTIL(f, count_alive(f) == 0);
    run_for(f, 100);
    assert_int_equal(count_folders(), 0);
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(kill_words(0, true), 0);
    assert_null(node_at(SL_LAYOUT_BACKUP));
}

static void
test_a_kill_that_waits_ends_when_it_was_asked_for_whoever_leads(void **state)
{
    struct fixture *f = *state;
    struct sl_buf body = {0};
    master_start(1);
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    /* Something stays in flight, and the topology master dies, too: only masters know of it. */
    f->is_worker_busy = true;
    uint64_t from = sl_sim_now_ms(f->sim);
    encode_kill(60000, false, &body);
    send_master(SL_MASTER_KILL, &body);
    run_for(f, 20000);
    master_kill(0);
    UNTIL(f, leading() == 1);
    UNTIL(f, node_at(SL_LAYOUT_SCHEDULING) == NULL);
    uint64_t took = sl_sim_now_ms(f->sim) - from;
    assert_true(took >= 59000 && took < 75000);
    assert_false(is_anything_stored());
    UNTIL(f, count_alive(f) == 0);
    sl_buf_destroy(&body);
}

static void
test_a_kill_without_a_topology_master_ends_the_workers_before_it_answers(void **state)
{
    struct fixture *f = *state;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    struct process *master = process_of(f, 0);
    int lost = supervisor_index(master);
    for (int32_t id = 1; id <= 3; id++) {
        if (supervisor_index(process_of(f, id)) == lost) {
            process_end(process_of(f, id), -1, SIGKILL);
        }
    }
    supervisor_end(f, lost, true);
    process_end(master, -1, SIGKILL);
    assert_int_equal(count_alive(f), 2);
    assert_int_equal(kill_words(0, false), 0);
    assert_int_equal(count_alive(f), 0);
    assert_false(is_anything_stored());
}

static void
test_a_second_kill_brings_the_end_forward_only(void **state)
{
    struct fixture *f = *state;
    struct sl_buf body = {0};
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    f->is_worker_busy = true;
    uint64_t from = sl_sim_now_ms(f->sim);
    encode_kill(20000, false, &body);
    send_master(SL_MASTER_KILL, &body);
    run_for(f, 1000);
    assert_int_equal(kill_words(600000, false), 0);
    assert_true(sl_sim_now_ms(f->sim) - from < 30000);
    assert_false(is_anything_stored());
    sl_buf_destroy(&body);
}

static void
test_a_topology_is_killed_while_it_changes(void **state)
{
    struct fixture *f = *state;
    struct sl_buf body = {0};
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    f->is_worker_busy = true;
    encode_update(4, false, &body);
    int before = f->answers;
    send_master(SL_MASTER_UPDATE, &body);
    run_for(f, 1000);
    assert_int_equal(f->answers, before);
    uint64_t from = sl_sim_now_ms(f->sim);
    assert_int_equal(update_words(5, false), SL_ECONFLICT);
    assert_non_null(strstr(f->reason, "asked by 'test'"));
    /* It waited as long as it may. */
    assert_true(sl_sim_now_ms(f->sim) - from >= 5000);
    sl_buf_clear(&body);
    encode_kill(0, false, &body);
    send_master(SL_MASTER_KILL, &body);
    /* The change is over, too. */
    UNTIL(f, f->answers == before + 3);
    assert_false(is_anything_stored());
    UNTIL(f, count_alive(f) == 0);
    sl_buf_destroy(&body);
}

/* Changes. */

static void
test_a_dry_run_tells_the_slots_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct sl_master_update_result result;
    struct sl_stored_plan planned;
    struct sl_stored_plan plan;
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(update_words(4, true), 0);
    assert_int_equal(
        sl_master_update_result_decode(f->answer.data, f->answer.size, &f->arena, &result), 0);
    struct sl_update_result told;
    assert_int_equal(sl_update_result_decode(result.result, result.result_size, &f->arena, &told),
                     0);
    assert_int_equal(
        sl_stored_plan_decode(result.proposed, result.proposed_size, &f->arena, &planned), 0);
    assert_int_equal(planned.version, 2);
    assert_int_equal(planned.plan.instance_count, 4);
    assert_string_not_equal(planned.slots[0].supervisor, "");
    get_plan(&plan);
    assert_int_equal(plan.version, 1);
    assert_int_equal(f->started, 3);
}

static void
test_a_change_that_changes_nothing_is_refused(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan plan;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(update_words(3, false), SL_ECONFLICT);
    assert_non_null(strstr(f->reason, "nothing to do"));
    assert_int_equal(update_words(3, true), SL_ECONFLICT);
    get_plan(&plan);
    assert_int_equal(plan.version, 1);
}

static void
test_a_change_keeps_the_workers_and_the_next_one_starts_from_it(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan plan;
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    struct process *workers[] = {process_of(f, 1), process_of(f, 2)};
    assert_int_equal(update_words(4, false), 0);
    get_plan(&plan);
    assert_int_equal(plan.version, 2);
    assert_int_equal(plan.plan.instance_count, 4);
    assert_int_equal(update_words(3, false), 0);
    get_plan(&plan);
    assert_int_equal(plan.version, 3);
    assert_int_equal(plan.plan.instance_count, 3);
    assert_ptr_equal(process_of(f, 1), workers[0]);
    assert_ptr_equal(process_of(f, 2), workers[1]);
}

/* The monitor. */

static void
test_what_died_with_its_supervisor_runs_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan plan;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    /* A worker whose supervisor is not the topology master's. */
    int32_t victim = 0;
    for (int32_t id = 1; id <= 3; id++) {
        if (strcmp(process_of(f, id)->supervisor, process_of(f, 0)->supervisor) != 0) {
            victim = id;
        }
    }
    struct process *worker = process_of(f, victim);
    int lost = supervisor_index(worker);
    struct process *kept[4] = {0};
    for (int32_t id = 0; id <= 3; id++) {
        kept[id] = process_of(f, id);
    }
    supervisor_end(f, lost, true);
    process_end(worker, -1, SIGKILL);
    UNTIL(f, process_of(f, victim) != NULL);
    assert_true(await_settled(f).is_settled);
    assert_int_not_equal(supervisor_index(process_of(f, victim)), lost);
    for (int32_t id = 0; id <= 3; id++) {
        if (id != victim) {
            assert_ptr_equal(process_of(f, id), kept[id]);
        }
    }
    get_plan(&plan);
    assert_int_equal(plan.version, 2);
}

static void
test_a_worker_that_outlives_its_supervisor_stays(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan plan;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    int lost = (supervisor_index(process_of(f, 0)) + 1) % SUPERVISORS_MAX;
    int started = f->started;
    supervisor_end(f, lost, true);
    run_for(f, 60000);
    assert_int_equal(f->started, started);
    get_plan(&plan);
    assert_int_equal(plan.version, 1);
    supervisor_start(f, lost);
    run_for(f, 60000);
    assert_int_equal(f->started, started);
}

static void
test_a_topology_master_that_died_with_its_supervisor_leads_elsewhere(void **state)
{
    struct fixture *f = *state;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    struct process *old = process_of(f, 0);
    int lost = supervisor_index(old);
    int32_t neighbour = 0;
    struct process *kept[4] = {0};
    for (int32_t id = 1; id <= 3; id++) {
        kept[id] = process_of(f, id);
        neighbour = supervisor_index(kept[id]) == lost ? id : neighbour;
    }
    supervisor_end(f, lost, true);
    process_end(old, -1, SIGKILL);
    process_end(kept[neighbour], -1, SIGKILL);
    UNTIL(f, process_of(f, 0) != NULL && process_of(f, neighbour) != NULL);
    UNTIL(f, f->leader_token != 0);
    assert_true(await_settled(f).is_settled);
    assert_int_not_equal(supervisor_index(process_of(f, 0)), lost);
    for (int32_t id = 1; id <= 3; id++) {
        assert_true(id == neighbour || process_of(f, id) == kept[id]);
    }
}

static void
test_a_topology_master_that_hangs_is_replaced_in_its_place(void **state)
{
    struct fixture *f = *state;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    struct process *old = process_of(f, 0);
    struct process *workers[] = {process_of(f, 1), process_of(f, 2), process_of(f, 3)};
    uint64_t token = f->leader_token;
    sl_sim_loop_pause(old->node.loop);
    sl_memory_backend_cut(old->node.backend, SL_MEMORY_CUT_BOTH);
    UNTIL(f, !old->is_alive);
    UNTIL(f, f->leader_token != 0 && f->leader_token != token);
    assert_true(await_settled(f).is_settled);
    assert_string_equal(process_of(f, 0)->supervisor, old->supervisor);
    for (int32_t id = 1; id <= 3; id++) {
        assert_ptr_equal(process_of(f, id), workers[id - 1]);
    }
    /* Four of the submission, and the one that followed. */
    run_for(f, 60000);
    assert_int_equal(f->started, 5);
}

static void
test_a_topology_master_that_is_cut_off_with_its_supervisor_is_left_alone(void **state)
{
    struct fixture *f = *state;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    struct process *old = process_of(f, 0);
    struct sl_state_backend *backends[] = {old->node.backend,
                                           f->supervisors[supervisor_index(old)].node.backend};
    for (size_t i = 0; i < array_size(backends); i++) {
        sl_memory_backend_cut(backends[i], SL_MEMORY_CUT_BOTH);
    }
    UNTIL(f, f->leader_token == 0);
    run_for(f, 40000);
    assert_true(old->is_alive);
    assert_true(old->is_alive);
    assert_int_equal(f->started, 4);
    for (size_t i = 0; i < array_size(backends); i++) {
        sl_memory_backend_cut(backends[i], SL_MEMORY_CUT_NONE);
    }
    /* Told that its term is over, it starts anew; nobody else does. */
    UNTIL(f, !old->is_alive);
    run_for(f, 10000);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(f->started, 5);
}

static void
test_nothing_moves_when_too_many_are_silent_at_once(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan plan;
    world.workers = 3;
    assert_int_equal(submit_words(3), 0);
    assert_true(await_settled(f).is_settled);
    int started = f->started;
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        sl_sim_cut(f->sim, world.nodes[0].host, f->supervisors[i].node.host);
        sl_sim_cut(f->sim, f->supervisors[i].node.host, world.nodes[0].host);
    }
    /* Longer than every time-out, and a worker dies meanwhile, whose supervisor restarts it. */
    run_for(f, 60000);
    get_plan(&plan);
    assert_int_equal(plan.version, 1);
    assert_int_equal(f->started, started);
    sl_sim_heal_all(f->sim);
    UNTIL(f, is_ready(SUPERVISORS_MAX));
    run_for(f, 60000);
    get_plan(&plan);
    assert_int_equal(plan.version, 1);
    assert_int_equal(f->started, started);
}

static void
test_a_reassignment_of_an_old_plan_is_refused(void **state)
{
    struct fixture *f = *state;
    int32_t containers[] = {1};
    struct sl_buf body = {0};
    assert_int_equal(submit_words(2), 0);
    assert_true(await_settled(f).is_settled);
    struct sl_master_reassign message = {"words", 7, containers, 1, "for a test"};
    sl_master_reassign_encode(&message, &body);
    assert_int_equal(ask_master(SL_MASTER_REASSIGN, &body), SL_ECONFLICT);
    message.plan_version = 1;
    sl_buf_clear(&body);
    sl_master_reassign_encode(&message, &body);
    struct process *worker = process_of(f, 1);
    uint32_t port = worker->port;
    int before = supervisor_index(worker);
    assert_int_equal(ask_master(SL_MASTER_REASSIGN, &body), 0);
    UNTIL(f, process_of(f, 1) != NULL && process_of(f, 1) != worker);
    assert_true(supervisor_index(process_of(f, 1)) != before || process_of(f, 1)->port != port);
    assert_true(await_settled(f).is_settled);
    sl_buf_destroy(&body);
}

static void
test_a_container_that_runs_nowhere_does_not_go_round_in_a_circle(void **state)
{
    enum { SLOTS = SUPERVISORS_MAX * PORTS };
    struct fixture *f = *state;
    bool is_seen[SUPERVISORS_MAX][PORTS] = {{false}};
    int32_t containers[] = {1};
    struct sl_stored_plan plan;
    int code = 0;
    assert_int_equal(submit_words(2), 0);
    for (int moves = 0; code == 0; moves++) {
        assert_true(await_settled(f).is_settled);
        assert_in_range(moves, 0, SLOTS);
        const struct process *worker = process_of(f, 1);
        bool *seen = &is_seen[supervisor_index(worker)][worker->port - FIRST_PORT];
        assert_false(*seen);
        *seen = true;
        get_plan(&plan);
        struct sl_buf body = {0};
        struct sl_master_reassign message = {"words", plan.version, containers, 1, "for a test"};
        sl_master_reassign_encode(&message, &body);
        code = ask_master(SL_MASTER_REASSIGN, &body);
        sl_buf_destroy(&body);
        if (code == 0) {
            UNTIL(f, process_of(f, 1) != NULL && process_of(f, 1) != worker);
        } else {
            assert_int_equal(code, SL_EUNSATISFIABLE);
            /* All but that of the other container. */
            assert_int_equal(moves, SLOTS - 2);
        }
    }
    /* Others may have made room meanwhile. */
    run_for(f, SL__MASTER_BAR_MS);
    struct sl_buf body = {0};
    struct sl_master_reassign message = {"words", plan.version, containers, 1, "for a test"};
    sl_master_reassign_encode(&message, &body);
    assert_int_equal(ask_master(SL_MASTER_REASSIGN, &body), 0);
    sl_buf_destroy(&body);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_submission_is_stored_whole_and_runs),
        TEST(test_what_can_not_be_placed_writes_nothing),
        TEST(test_a_plan_that_is_none_writes_nothing),
        TEST(test_a_state_manager_that_fails_leaves_nothing),
        TEST(test_a_topology_master_that_can_not_be_started_takes_all_back),
        TEST(test_a_topology_master_that_ends_at_once_takes_all_back),
        TEST(test_a_topology_master_that_is_slow_is_waited_for_within_limits),
        TEST(test_one_of_two_submissions_of_a_name_wins),
        TEST(test_a_submission_that_nobody_comes_to_ends_by_its_own_time),
        TEST(test_two_topologies_never_share_a_slot),
        TEST(test_another_master_takes_over_and_nothing_is_restarted),
        TEST(test_a_master_of_an_old_term_writes_nothing),
        TEST(test_a_kill_leaves_nothing_but_the_backup),
        TEST(test_a_kill_that_waits_ends_when_it_was_asked_for_whoever_leads),
        TEST(test_a_kill_without_a_topology_master_ends_the_workers_before_it_answers),
        TEST(test_a_second_kill_brings_the_end_forward_only),
        TEST(test_a_topology_is_killed_while_it_changes),
        TEST(test_a_dry_run_tells_the_slots_and_changes_nothing),
        TEST(test_a_change_that_changes_nothing_is_refused),
        TEST(test_a_change_keeps_the_workers_and_the_next_one_starts_from_it),
        TEST(test_what_died_with_its_supervisor_runs_elsewhere),
        TEST(test_a_worker_that_outlives_its_supervisor_stays),
        TEST(test_a_topology_master_that_died_with_its_supervisor_leads_elsewhere),
        TEST(test_a_topology_master_that_hangs_is_replaced_in_its_place),
        TEST(test_a_topology_master_that_is_cut_off_with_its_supervisor_is_left_alone),
        TEST(test_nothing_moves_when_too_many_are_silent_at_once),
        TEST(test_a_reassignment_of_an_old_plan_is_refused),
        TEST(test_a_container_that_runs_nowhere_does_not_go_round_in_a_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
