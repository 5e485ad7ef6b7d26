/* labels: short */
/* From a snapshot of the cluster to a plan with slots, clause by clause. */
#include "base/err.h"
#include "cluster/master_assignment.h"
#include "cluster/stored_plan.h"
#include "unit.h"

enum { TASKS_MAX = 16, NODES_MAX = 4, MASTER_TASK = 100 };

/* A spout and a bolt, the tasks of which are counted from 1: spouts first. */
struct fixture {
    struct sl_arena arena;
    struct sl_schedule_template schedule;
    struct sl_sched_component components[3];
    uint32_t inputs[1];
    struct sl_plan_component names[2];
    struct sl_packing_container containers[TASKS_MAX];
    struct sl_packing_instance instances[TASKS_MAX];
    struct sl_plan_slot slots[TASKS_MAX];
    struct sl_stored_plan proposed;
    struct sl_master_node nodes[NODES_MAX];
    uint32_t ports[4];
    struct sl_master_wish wish;
    struct sl_stored_plan plan;
};

static void
set_tasks(struct fixture *f, int32_t spouts, int32_t bolts, int32_t container_count)
{
    int32_t count = spouts + bolts;
    for (int32_t i = 0; i < count; i++) {
        f->instances[i] = (struct sl_packing_instance){
            .component = i < spouts ? 0 : 1,
            .task = i + 1,
            .index = i < spouts ? i : i - spouts,
            .cpu = 1,
            .ram_bytes = 1000,
            .disk_bytes = 1,
        };
    }
    int32_t size = (count + container_count - 1) / container_count;
    int32_t at = 0;
    for (int32_t i = 0; i < container_count; i++) {
        int32_t here = count - at < size ? count - at : size;
        f->containers[i] = (struct sl_packing_container){i + 1, at, here, here, 1000 * here, here};
        f->slots[i] = (struct sl_plan_slot){"", "", 0};
        at += here;
    }
    f->proposed = (struct sl_stored_plan){
        .topology = "words",
        .version = 1,
        .packing = "balanced",
        .components = f->names,
        .component_count = 2,
        .plan = {.containers = f->containers,
                 .instances = f->instances,
                 .container_count = container_count,
                 .instance_count = count},
        .slots = f->slots,
        .master = {"", "", 0},
        .master_task = MASTER_TASK,
    };
}

static void
set_nodes(struct fixture *f, size_t count, size_t ports)
{
    static const char *const ids[] = {"s1", "s2", "s3", "s4"};
    static const char *const hosts[] = {"h1", "h2", "h3", "h4"};
    for (size_t i = 0; i < count; i++) {
        f->nodes[i] = (struct sl_master_node){
            .id = ids[i], .host = hosts[i], .ports = f->ports, .port_count = ports};
    }
    f->wish.nodes = f->nodes;
    f->wish.node_count = count;
}

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    sl_arena_create(&f->arena, 0, 0);
    f->names[0].name = "lines";
    f->names[1].name = "count";
    f->components[0] = (struct sl_sched_component){.name = "count", .input_count = 1};
    f->components[0].kind = SL_SCHED_BOLT;
    f->components[1] = (struct sl_sched_component){.name = "__topology_master"};
    f->components[1].kind = SL_SCHED_MASTER;
    f->components[2] = (struct sl_sched_component){.name = "lines", .kind = SL_SCHED_SPOUT};
    f->inputs[0] = 2;
    f->schedule = (struct sl_schedule_template){
        .scheduler = SL_SCHED_BALANCED,
        .request = {.master_alone = SL_SCHED_AUTO,
                    .workers = 2,
                    .worker_cpu = -1,
                    .worker_ram = -1,
                    .components = f->components,
                    .component_count = 3,
                    .inputs = f->inputs,
                    .input_count = 1},
    };
    for (uint32_t i = 0; i < array_size(f->ports); i++) {
        f->ports[i] = 6700 + i;
    }
    f->wish.schedule = &f->schedule;
    f->wish.mode = SL_SCHED_NEW;
    f->wish.proposed = &f->proposed;
    set_tasks(f, 1, 3, 1);
    set_nodes(f, 2, 2);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;
    sl_arena_destroy(&f->arena);
    free(f);
    return 0;
}

static void
assign(struct fixture *f)
{
    int rc = sl_master_assign(&f->wish, &f->arena, &f->plan);
    if (rc != 0) {
        fail_msg("%s", sl_err_last()->msg);
    }
    /* What comes out can be stored. */
    struct sl_buf out = {0};
    struct sl_stored_plan seen;
    assert_int_equal(sl_stored_plan_encode(&f->plan, &out), 0);
    assert_int_equal(sl_stored_plan_decode(out.data, out.size, &f->arena, &seen), 0);
    sl_buf_destroy(&out);
}

static void
refuse(struct fixture *f, int code, const char *word)
{
    assert_int_equal(sl_master_assign(&f->wish, &f->arena, &f->plan), code);
    if (strstr(sl_err_last()->msg, word) == NULL) {
        fail_msg("'%s' does not say '%s'", sl_err_last()->msg, word);
    }
}

/* What was made becomes what runs. */
static void
run_on(struct fixture *f, struct sl_stored_plan *current)
{
    *current = f->plan;
    f->wish.current = current;
}

static int32_t
container_of_task(const struct sl_stored_plan *plan, int32_t task)
{
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        const struct sl_packing_container *container = &plan->plan.containers[i];
        for (int32_t k = 0; k < container->count; k++) {
            if (plan->plan.instances[container->first + k].task == task) {
                return i;
            }
        }
    }
    return -1;
}

static const struct sl_plan_slot *
slot_of(const struct sl_stored_plan *plan, int32_t id)
{
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        if (plan->plan.containers[i].id == id) {
            return &plan->slots[i];
        }
    }
    return NULL;
}

static void
test_a_new_topology_gets_containers_with_slots(void **state)
{
    struct fixture *f = *state;
    assign(f);
    assert_int_equal(f->plan.version, 1);
    assert_int_equal(f->plan.plan.container_count, 2);
    assert_int_equal(f->plan.plan.instance_count, 4);
    assert_int_equal(f->plan.plan.containers[0].id, 1);
    assert_int_equal(f->plan.plan.containers[1].id, 2);
    assert_string_not_equal(f->plan.slots[0].supervisor, f->plan.slots[1].supervisor);
    /* The topology master is beside a worker, and in no container. */
    assert_int_equal(f->plan.master.port, 6700);
    assert_int_equal(container_of_task(&f->plan, MASTER_TASK), -1);
    for (int32_t task = 1; task <= 4; task++) {
        assert_true(container_of_task(&f->plan, task) >= 0);
    }
}

static void
test_a_lone_topology_master_has_a_slot_without_a_container(void **state)
{
    struct fixture *f = *state;
    f->schedule.request.master_alone = SL_SCHED_YES;
    assign(f);
    assert_int_equal(f->plan.plan.container_count, 2);
    for (int32_t i = 0; i < 2; i++) {
        assert_false(strcmp(f->plan.slots[i].supervisor, f->plan.master.supervisor) == 0 &&
                     f->plan.slots[i].port == f->plan.master.port);
    }
    assert_string_not_equal(f->plan.master.supervisor, "");
}

static void
test_ports_of_other_topologies_are_not_taken(void **state)
{
    struct fixture *f = *state;
    uint32_t used[] = {6700};
    f->nodes[0].used = f->nodes[1].used = used;
    f->nodes[0].used_count = f->nodes[1].used_count = 1;
    assign(f);
    assert_int_equal(f->plan.slots[0].port, 6701);
    assert_int_equal(f->plan.slots[1].port, 6701);
}

static void
test_without_supervisors_or_slots_it_says_so(void **state)
{
    struct fixture *f = *state;
    f->wish.node_count = 0;
    refuse(f, SL_EUNSATISFIABLE, "no supervisor is alive");
    set_nodes(f, 1, 1);
    refuse(f, SL_EUNSATISFIABLE, "need 2, free 1");
}

static void
test_a_plan_and_a_template_must_have_the_same_components(void **state)
{
    struct fixture *f = *state;
    f->names[1].name = "other";
    refuse(f, SL_EINVAL, "no tasks of count");
    f->names[1].name = "count";
    f->proposed.master_task = 0;
    refuse(f, SL_EINVAL, "topology master");
}

static void
test_isolation_and_user_workers_hold(void **state)
{
    struct fixture *f = *state;
    const char *hosts[] = {"h2"};
    f->schedule.request.isolation = hosts;
    f->schedule.request.isolation_count = 1;
    assign(f);
    for (int32_t i = 0; i < 2; i++) {
        assert_string_equal(f->plan.slots[i].host, "h2");
    }
    struct sl_sched_share share = {0, 2};
    struct sl_sched_user_worker user = {"h1", 6701, 0, 1, -1, -1};
    f->schedule.request.isolation_count = 0;
    f->schedule.request.user_workers = &user;
    f->schedule.request.user_worker_count = 1;
    f->schedule.request.shares = &share;
    f->schedule.request.share_count = 1;
    assign(f);
    int32_t pinned = -1;
    for (int32_t i = 0; i < f->plan.plan.container_count; i++) {
        pinned =
            strcmp(f->plan.slots[i].host, "h1") == 0 && f->plan.slots[i].port == 6701 ? i : pinned;
    }
    assert_true(pinned >= 0);
    assert_int_equal(f->plan.plan.containers[pinned].count, 2);
}

static void
test_what_ran_before_is_taken_over_when_asked(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan backup;
    set_nodes(f, 2, 4);
    assign(f);
    backup = f->plan;
    struct sl_plan_slot slots[] = {{"s1", "h1", 6703}, {"s2", "h2", 6702}};
    backup.slots = slots;
    backup.master = slots[0];
    f->wish.backup = &backup;
    assign(f);
    assert_int_equal(f->plan.slots[0].port, 6700);
    f->schedule.request.use_old_assignment = 1;
    assign(f);
    for (int32_t i = 0; i < 2; i++) {
        assert_true(f->plan.slots[i].port >= 6702);
    }
}

static void
test_growth_keeps_slots_and_ids(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    assign(f);
    run_on(f, &current);
    int32_t place = current.plan.containers[container_of_task(&current, 2)].id;
    set_tasks(f, 1, 5, 1);
    f->wish.mode = SL_SCHED_KEEP;
    assign(f);
    assert_int_equal(f->plan.version, 2);
    assert_int_equal(f->plan.plan.container_count, 2);
    assert_int_equal(f->plan.plan.containers[container_of_task(&f->plan, 2)].id, place);
    for (int32_t id = 1; id <= 2; id++) {
        assert_string_equal(slot_of(&f->plan, id)->supervisor, slot_of(&current, id)->supervisor);
        assert_int_equal(slot_of(&f->plan, id)->port, slot_of(&current, id)->port);
    }
    assert_string_equal(f->plan.master.supervisor, current.master.supervisor);
}

static void
test_new_containers_get_ids_that_were_never_in_use(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    assign(f);
    f->plan.plan.containers[1].id = 7;
    run_on(f, &current);
    set_tasks(f, 2, 6, 1);
    f->schedule.request.workers = 3;
    f->wish.mode = SL_SCHED_KEEP;
    assign(f);
    assert_int_equal(f->plan.plan.container_count, 3);
    assert_int_equal(f->plan.plan.containers[0].id, 1);
    assert_int_equal(f->plan.plan.containers[1].id, 7);
    assert_int_equal(f->plan.plan.containers[2].id, 8);
}

static void
test_a_dead_container_goes_on_under_its_id_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    set_nodes(f, 3, 2);
    assign(f);
    run_on(f, &current);
    /* The one without the topology master dies with its supervisor. */
    int32_t at = strcmp(current.slots[0].supervisor, current.master.supervisor) == 0 ? 1 : 0;
    int32_t dead[] = {current.plan.containers[at].id};
    const char *gone = current.slots[at].supervisor;
    struct sl_master_node nodes[2];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(f->nodes[i].id, gone) != 0) {
            nodes[count++] = f->nodes[i];
        }
    }
    f->wish.nodes = nodes;
    f->wish.node_count = count;
    f->wish.mode = SL_SCHED_MONITOR;
    f->wish.proposed = &current;
    f->wish.dead = dead;
    f->wish.dead_count = 1;
    assign(f);
    assert_int_equal(f->plan.version, 2);
    assert_int_equal(f->plan.plan.container_count, 2);
    assert_string_not_equal(slot_of(&f->plan, dead[0])->supervisor, gone);
    int32_t other = current.plan.containers[1 - at].id;
    assert_string_equal(slot_of(&f->plan, other)->supervisor, slot_of(&current, other)->supervisor);
    assert_string_equal(f->plan.master.supervisor, current.master.supervisor);
    assert_int_equal(f->plan.master.port, current.master.port);
}

static void
test_a_topology_master_that_lives_stays_though_its_neighbour_died(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    assign(f);
    run_on(f, &current);
    int32_t at = strcmp(current.slots[0].supervisor, current.master.supervisor) == 0 ? 0 : 1;
    int32_t dead[] = {current.plan.containers[at].id};
    f->wish.mode = SL_SCHED_MONITOR;
    f->wish.proposed = &current;
    f->wish.dead = dead;
    f->wish.dead_count = 1;
    assign(f);
    assert_string_equal(f->plan.master.supervisor, current.master.supervisor);
    assert_int_equal(f->plan.master.port, current.master.port);
    /* Its old slot is never given to it again in this mode. */
    const struct sl_plan_slot *slot = slot_of(&f->plan, dead[0]);
    assert_false(slot->port == current.slots[at].port &&
                 strcmp(slot->supervisor, current.slots[at].supervisor) == 0);
}

static void
test_a_dead_topology_master_takes_its_neighbour_along(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    set_nodes(f, 3, 2);
    assign(f);
    run_on(f, &current);
    f->wish.mode = SL_SCHED_MONITOR;
    f->wish.proposed = &current;
    f->wish.is_master_dead = true;
    struct sl_master_node nodes[2];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(f->nodes[i].id, current.master.supervisor) != 0) {
            nodes[count++] = f->nodes[i];
        }
    }
    f->wish.nodes = nodes;
    f->wish.node_count = count;
    assign(f);
    assert_string_not_equal(f->plan.master.supervisor, current.master.supervisor);
    for (int32_t i = 0; i < 2; i++) {
        assert_string_not_equal(f->plan.slots[i].supervisor, current.master.supervisor);
    }
}

static void
test_nothing_dead_is_nothing_to_do(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    assign(f);
    run_on(f, &current);
    f->wish.mode = SL_SCHED_MONITOR;
    f->wish.proposed = &current;
    refuse(f, SL_ECONFLICT, "nothing needs assigning");
}

static void
test_dead_wins_over_unstopped(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    assign(f);
    run_on(f, &current);
    int32_t both[] = {current.plan.containers[0].id};
    f->wish.mode = SL_SCHED_MONITOR;
    f->wish.proposed = &current;
    f->wish.dead = f->wish.unstopped = both;
    f->wish.dead_count = f->wish.unstopped_count = 1;
    assign(f);
    assert_false(slot_of(&f->plan, both[0])->port == current.slots[0].port &&
                 strcmp(slot_of(&f->plan, both[0])->supervisor, current.slots[0].supervisor) == 0);
}

static void
test_unstopped_containers_stay_though_their_supervisor_is_gone(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    set_nodes(f, 3, 2);
    assign(f);
    run_on(f, &current);
    int32_t at = strcmp(current.slots[0].supervisor, current.master.supervisor) == 0 ? 1 : 0;
    int32_t unstopped[] = {current.plan.containers[at].id};
    struct sl_master_node nodes[2];
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(f->nodes[i].id, current.slots[at].supervisor) != 0) {
            nodes[count++] = f->nodes[i];
        }
    }
    f->wish.nodes = nodes;
    f->wish.node_count = count;
    f->wish.unstopped = unstopped;
    f->wish.unstopped_count = 1;
    f->wish.mode = SL_SCHED_KEEP;
    set_tasks(f, 1, 5, 1);
    assign(f);
    assert_string_equal(slot_of(&f->plan, unstopped[0])->supervisor, current.slots[at].supervisor);
}

static void
test_a_new_supervisor_is_used_when_all_is_placed_anew(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    f->schedule.request.workers = 3;
    set_tasks(f, 1, 5, 1);
    assign(f);
    run_on(f, &current);
    set_nodes(f, 3, 2);
    f->wish.mode = SL_SCHED_KEEP;
    assign(f);
    for (int32_t i = 0; i < 3; i++) {
        assert_string_not_equal(f->plan.slots[i].supervisor, "s3");
    }
    f->wish.mode = SL_SCHED_REASSIGN;
    assign(f);
    int on_new = 0;
    for (int32_t i = 0; i < 3; i++) {
        on_new += strcmp(f->plan.slots[i].supervisor, "s3") == 0;
        /* A container that gets another slot is another container. */
        bool is_kept = f->plan.plan.containers[i].id <= 3;
        const struct sl_plan_slot *old = slot_of(&current, f->plan.plan.containers[i].id);
        assert_true(is_kept == (old != NULL));
        assert_true(old == NULL || (old->port == f->plan.slots[i].port &&
                                    strcmp(old->supervisor, f->plan.slots[i].supervisor) == 0));
    }
    assert_int_equal(on_new, 1);
}

static void
test_packed_containers_are_placed_as_they_are(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan current;
    f->schedule.scheduler = SL_SCHED_PACKED;
    set_tasks(f, 1, 3, 2);
    assign(f);
    assert_int_equal(f->plan.plan.container_count, 2);
    assert_int_equal(container_of_task(&f->plan, 1), container_of_task(&f->plan, 2));
    assert_int_equal(f->plan.plan.containers[0].ram_bytes, 2000);
    run_on(f, &current);
    /* A third one comes; the others keep their slots, also when the plan says nothing of slots. */
    set_tasks(f, 1, 5, 3);
    f->wish.mode = SL_SCHED_KEEP;
    assign(f);
    assert_int_equal(f->plan.plan.container_count, 3);
    for (int32_t id = 1; id <= 2; id++) {
        assert_string_equal(slot_of(&f->plan, id)->supervisor, slot_of(&current, id)->supervisor);
    }
    assert_non_null(slot_of(&f->plan, 3));
}

static void
test_start_times_are_new_for_new_and_moved_tasks_only(void **state)
{
    struct fixture *f = *state;
    struct sl_stored_plan before;
    assign(f);
    before = f->plan;
    struct sl_master_start *first = sl_master_start_times(&before, NULL, NULL, 0, 1000, &f->arena);
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(first[i].started_ms, 1000);
    }
    struct sl_plan_slot slots[] = {before.slots[0], {"s2", "h2", 6703}};
    f->plan.slots = slots;
    struct sl_master_start *second =
        sl_master_start_times(&f->plan, &before, first, 4, 2000, &f->arena);
    for (int32_t i = 0; i < 4; i++) {
        int32_t container = container_of_task(&f->plan, second[i].task);
        assert_int_equal(second[i].started_ms, container == 0 ? 1000 : 2000);
    }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(test_a_new_topology_gets_containers_with_slots),
    CASE(test_a_lone_topology_master_has_a_slot_without_a_container),
    CASE(test_ports_of_other_topologies_are_not_taken),
    CASE(test_without_supervisors_or_slots_it_says_so),
    CASE(test_a_plan_and_a_template_must_have_the_same_components),
    CASE(test_isolation_and_user_workers_hold),
    CASE(test_what_ran_before_is_taken_over_when_asked),
    CASE(test_growth_keeps_slots_and_ids),
    CASE(test_new_containers_get_ids_that_were_never_in_use),
    CASE(test_a_dead_container_goes_on_under_its_id_elsewhere),
    CASE(test_a_topology_master_that_lives_stays_though_its_neighbour_died),
    CASE(test_a_dead_topology_master_takes_its_neighbour_along),
    CASE(test_nothing_dead_is_nothing_to_do),
    CASE(test_dead_wins_over_unstopped),
    CASE(test_unstopped_containers_stay_though_their_supervisor_is_gone),
    CASE(test_a_new_supervisor_is_used_when_all_is_placed_anew),
    CASE(test_packed_containers_are_placed_as_they_are),
    CASE(test_start_times_are_new_for_new_and_moved_tasks_only),
};

UNIT_MAIN(tests)
