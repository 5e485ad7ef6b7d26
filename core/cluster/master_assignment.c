#include "cluster/master_assignment.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "cluster/stored_plan.h"

/* A wish on its way to a request: what is looked up often, and the lists that grow. */
struct making {
    const struct sl_master_wish *wish;
    struct sl_arena *arena;
    struct sl_sched_request request;
    /* Task -> position of its instance in the proposed plan. */
    struct sl_map_u64 instances;
    struct sl_sched_result result;
    /* Containers of the new plan, before they are put together. */
    int32_t container_count;
};

static void *
piece(struct making *m, size_t count, size_t size)
{
    return sl_arena_calloc(m->arena, count + 1, size);
}

static bool
holds(const int32_t *ids, size_t count, int32_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static bool
is_same_slot(const struct sl_plan_slot *a, const char *supervisor, uint32_t port)
{
    return a->port == port && strcmp(a->supervisor, supervisor) == 0;
}

/* The tasks of each component of the template, from the proposed plan. */
static int
add_components(struct making *m)
{
    const struct sl_stored_plan *plan = m->wish->proposed;
    const struct sl_sched_request *form = &m->wish->schedule->request;
    struct sl_sched_component *components = piece(m, form->component_count, sizeof(*components));
    size_t count = (size_t)plan->plan.instance_count;
    uint32_t *tasks = piece(m, count + 1, sizeof(*tasks));
    uint32_t at = 0;
    size_t taken = 0;
    for (uint32_t c = 0; c < form->component_count; c++) {
        components[c] = form->components[c];
        components[c].first_task = at;
        if (components[c].kind == SL_SCHED_MASTER) {
            if (plan->master_task < 1) {
                return sl_err_set(SL_EINVAL, "the plan has no task of the topology master");
            }
            tasks[at++] = (uint32_t)plan->master_task;
        } else {
            int32_t position = sl_stored_plan_component(plan, components[c].name);
            for (size_t i = 0; position >= 0 && i < count; i++) {
                if (plan->plan.instances[i].component == position) {
                    tasks[at++] = (uint32_t)plan->plan.instances[i].task;
                    taken++;
                }
            }
        }
        components[c].task_count = at - components[c].first_task;
        if (components[c].task_count == 0) {
            return sl_err_set(SL_EINVAL, "the plan has no tasks of %s", components[c].name);
        }
    }
    if (taken != count) {
        return sl_err_set(SL_EINVAL, "the plan has %zu tasks, the components have %zu", count,
                          taken);
    }
    m->request.components = components;
    m->request.tasks = tasks;
    m->request.task_count = at;
    return 0;
}

static void
add_nodes(struct making *m)
{
    const struct sl_master_wish *wish = m->wish;
    size_t ports = 0;
    size_t used = 0;
    for (size_t i = 0; i < wish->node_count; i++) {
        ports += wish->nodes[i].port_count;
        used += wish->nodes[i].used_count;
    }
    struct sl_sched_supervisor *items = piece(m, wish->node_count, sizeof(*items));
    uint32_t *port_list = piece(m, ports, sizeof(*port_list));
    uint32_t *used_list = piece(m, used, sizeof(*used_list));
    uint32_t port_at = 0;
    uint32_t used_at = 0;
    for (size_t i = 0; i < wish->node_count; i++) {
        const struct sl_master_node *node = &wish->nodes[i];
        items[i] = (struct sl_sched_supervisor){
            .id = node->id,
            .host = node->host,
            .first_port = port_at,
            .port_count = (uint32_t)node->port_count,
            .first_used = used_at,
            .used_count = (uint32_t)node->used_count,
            .cpu = node->cpu_cores > 0 ? node->cpu_cores : -1,
            .ram = node->ram_bytes > 0 ? node->ram_bytes : -1,
        };
        for (size_t k = 0; k < node->port_count; k++) {
            port_list[port_at++] = node->ports[k];
        }
        for (size_t k = 0; k < node->used_count; k++) {
            used_list[used_at++] = node->used[k];
        }
    }
    m->request.supervisors = items;
    m->request.supervisor_count = (uint32_t)wish->node_count;
    m->request.ports = port_list;
    m->request.port_count = port_at;
    m->request.used = used_list;
    m->request.used_count = used_at;
}

/* The workers of a plan: its containers, and the topology master in one of them or alone. */
static void
add_previous(struct making *m, const struct sl_stored_plan *plan)
{
    size_t count = (size_t)plan->plan.container_count;
    struct sl_sched_previous *items = piece(m, count + 1, sizeof(*items));
    uint32_t *tasks = piece(m, (size_t)plan->plan.instance_count + 1, sizeof(*tasks));
    uint32_t at = 0;
    uint32_t workers = 0;
    bool has_master = plan->master_task < 1 || plan->master.supervisor[0] == '\0';
    for (size_t i = 0; i < count; i++) {
        const struct sl_packing_container *container = &plan->plan.containers[i];
        const struct sl_plan_slot *slot = &plan->slots[i];
        if (slot->supervisor[0] == '\0') {
            continue;
        }
        struct sl_sched_previous *worker = &items[workers++];
        *worker = (struct sl_sched_previous){.supervisor = slot->supervisor,
                                             .host = slot->host,
                                             .port = slot->port,
                                             .first_task = at,
                                             .cpu = -1,
                                             .ram = -1};
        for (int32_t k = 0; k < container->count; k++) {
            tasks[at++] = (uint32_t)plan->plan.instances[container->first + k].task;
        }
        if (!has_master && is_same_slot(&plan->master, slot->supervisor, slot->port)) {
            tasks[at++] = (uint32_t)plan->master_task;
            has_master = true;
        }
        worker->task_count = at - worker->first_task;
    }
    if (!has_master) {
        items[workers++] = (struct sl_sched_previous){.supervisor = plan->master.supervisor,
                                                      .host = plan->master.host,
                                                      .port = plan->master.port,
                                                      .first_task = at,
                                                      .task_count = 1,
                                                      .cpu = -1,
                                                      .ram = -1};
        tasks[at++] = (uint32_t)plan->master_task;
    }
    m->request.previous = items;
    m->request.previous_count = workers;
    m->request.previous_tasks = tasks;
    m->request.previous_task_count = at;
}

/* Tasks of the containers that are named. */
static uint32_t *
tasks_of(struct making *m, const int32_t *ids, size_t id_count, uint32_t *count)
{
    const struct sl_stored_plan *plan = m->wish->current;
    uint32_t *tasks = piece(m, (size_t)plan->plan.instance_count + 1, sizeof(*tasks));
    *count = 0;
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        const struct sl_packing_container *container = &plan->plan.containers[i];
        for (int32_t k = 0; holds(ids, id_count, container->id) && k < container->count; k++) {
            tasks[(*count)++] = (uint32_t)plan->plan.instances[container->first + k].task;
        }
    }
    return tasks;
}

static void
add_current(struct making *m)
{
    const struct sl_master_wish *wish = m->wish;
    add_previous(m, wish->current);
    uint32_t count;
    uint32_t *dead = tasks_of(m, wish->dead, wish->dead_count, &count);
    if (wish->is_master_dead) {
        dead[count++] = (uint32_t)wish->current->master_task;
    }
    m->request.dead_tasks = dead;
    m->request.dead_task_count = count;
    m->request.unstopped_tasks =
        tasks_of(m, wish->unstopped, wish->unstopped_count, &m->request.unstopped_task_count);
}

static const struct sl_plan_slot *
slot_of_container(const struct sl_stored_plan *plan, int32_t id)
{
    for (int32_t i = 0; plan != NULL && i < plan->plan.container_count; i++) {
        if (plan->plan.containers[i].id == id) {
            return plan->slots[i].supervisor[0] != '\0' ? &plan->slots[i] : NULL;
        }
    }
    return NULL;
}

/* The containers of a packed plan, which stay in their slots where the mode lets them. */
static void
add_containers(struct making *m)
{
    const struct sl_packing_plan *plan = &m->wish->proposed->plan;
    bool is_free = m->wish->mode == SL_SCHED_NEW || m->wish->mode == SL_SCHED_REASSIGN;
    struct sl_sched_container *items = piece(m, (size_t)plan->container_count, sizeof(*items));
    uint32_t *tasks = piece(m, (size_t)plan->instance_count, sizeof(*tasks));
    uint32_t at = 0;
    for (int32_t i = 0; i < plan->container_count; i++) {
        const struct sl_packing_container *from = &plan->containers[i];
        const struct sl_plan_slot *slot =
            is_free ? NULL : slot_of_container(m->wish->current, from->id);
        items[i] = (struct sl_sched_container){
            .id = (uint32_t)from->id,
            .supervisor = slot != NULL ? slot->supervisor : NULL,
            .port = slot != NULL ? (int32_t)slot->port : -1,
            .first_task = at,
            .task_count = (uint32_t)from->count,
            .cpu = from->cpu > 0 ? from->cpu : -1,
            .ram = from->ram_bytes > 0 ? (double)from->ram_bytes : -1,
        };
        for (int32_t k = 0; k < from->count; k++) {
            tasks[at++] = (uint32_t)plan->instances[from->first + k].task;
        }
    }
    m->request.has_plan = 1;
    m->request.containers = items;
    m->request.container_count = (uint32_t)plan->container_count;
    m->request.container_tasks = tasks;
    m->request.container_task_count = at;
}

static int
make_request(struct making *m)
{
    const struct sl_master_wish *wish = m->wish;
    m->request = wish->schedule->request;
    m->request.mode = wish->mode;
    int rc = add_components(m);
    if (rc != 0) {
        return rc;
    }
    if (wish->node_count == 0) {
        return sl_err_set(SL_EUNSATISFIABLE, "no supervisor is alive");
    }
    add_nodes(m);
    if (wish->mode == SL_SCHED_NEW) {
        if (wish->backup != NULL && m->request.use_old_assignment != 0) {
            add_previous(m, wish->backup);
        }
    } else {
        add_current(m);
    }
    if (wish->schedule->scheduler == SL_SCHED_PACKED) {
        add_containers(m);
    }
    return 0;
}

/* From workers to containers. */

static const char *
own_text(struct making *m, const char *text)
{
    return sl_arena_strdup(m->arena, text);
}

static void
add_container(struct making *m, const struct sl_sched_worker *worker, struct sl_stored_plan *plan)
{
    const struct sl_packing_plan *from = &m->wish->proposed->plan;
    struct sl_packing_plan *to = &plan->plan;
    struct sl_packing_container *container = &to->containers[to->container_count];
    *container = (struct sl_packing_container){.first = to->instance_count};
    for (uint32_t i = 0; i < worker->task_count; i++) {
        uint64_t at = 0;
        uint32_t task = m->result.tasks[worker->first_task + i];
        if (task == (uint32_t)m->wish->proposed->master_task) {
            plan->master = (struct sl_plan_slot){own_text(m, worker->supervisor),
                                                 own_text(m, worker->host), worker->port};
        } else if (sl_map_u64_get(&m->instances, task, &at)) {
            const struct sl_packing_instance *instance = &from->instances[at];
            to->instances[to->instance_count++] = *instance;
            container->cpu += instance->cpu;
            container->ram_bytes += instance->ram_bytes;
            container->disk_bytes += instance->disk_bytes;
            container->count++;
        }
    }
    if (container->count == 0) {
        return;
    }
    if (worker->cpu > container->cpu) {
        container->cpu = worker->cpu;
    }
    if (worker->ram > (double)container->ram_bytes) {
        container->ram_bytes = (int64_t)worker->ram;
    }
    plan->slots[to->container_count++] = (struct sl_plan_slot){
        own_text(m, worker->supervisor), own_text(m, worker->host), worker->port};
}

/* The container of each task: task -> position. */
static struct sl_map_u64
containers_of_tasks(const struct sl_packing_plan *plan)
{
    struct sl_map_u64 map = {0};
    for (int32_t i = 0; i < plan->container_count; i++) {
        for (int32_t k = 0; k < plan->containers[i].count; k++) {
            int32_t task = plan->instances[plan->containers[i].first + k].task;
            sl_map_u64_put(&map, (uint32_t)task, (uint64_t)i);
        }
    }
    return map;
}

static bool
is_taken(const struct sl_packing_plan *plan, int32_t id)
{
    for (int32_t i = 0; i < plan->container_count; i++) {
        if (plan->containers[i].id == id) {
            return true;
        }
    }
    return false;
}

/* Who keeps its slot keeps its id. */
static void
keep_ids(const struct sl_stored_plan *current, struct sl_stored_plan *plan)
{
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        for (int32_t k = 0; k < current->plan.container_count; k++) {
            if (current->slots[k].supervisor[0] != '\0' &&
                is_same_slot(&plan->slots[i], current->slots[k].supervisor,
                             current->slots[k].port)) {
                plan->plan.containers[i].id = current->plan.containers[k].id;
            }
        }
    }
}

/* Those without an id get that of the container in `from` whose first task they have, if it is free
 * and may be had. */
static void
inherit_ids(const struct sl_stored_plan *from, const struct sl_stored_plan *barred,
            struct sl_packing_plan *plan)
{
    struct sl_map_u64 map = containers_of_tasks(&from->plan);
    for (int32_t i = 0; i < plan->container_count; i++) {
        struct sl_packing_container *container = &plan->containers[i];
        int32_t tried = 0;
        for (int32_t k = 0; container->id == 0 && k < container->count; k++) {
            uint64_t at = 0;
            int32_t task = plan->instances[container->first + k].task;
            int32_t id =
                sl_map_u64_get(&map, (uint32_t)task, &at) ? from->plan.containers[at].id : 0;
            if (id > 0 && id != tried && !is_taken(plan, id) &&
                (barred == NULL || !is_taken(&barred->plan, id))) {
                container->id = id;
            }
            tried = id;
        }
    }
    sl_map_u64_destroy(&map);
}

static int32_t
highest_id(const struct sl_packing_plan *plan)
{
    int32_t highest = 0;
    for (int32_t i = 0; i < plan->container_count; i++) {
        highest = plan->containers[i].id > highest ? plan->containers[i].id : highest;
    }
    return highest;
}

static int
compare_containers(const void *a, const void *b)
{
    const struct sl_packing_container *left = a;
    const struct sl_packing_container *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

/* Containers by id, each with its slot, as stored plans have them. */
static void
sort_containers(struct making *m, struct sl_stored_plan *plan)
{
    size_t count = (size_t)plan->plan.container_count;
    struct sl_plan_slot *slots = piece(m, count, sizeof(*slots));
    struct sl_packing_container *before = piece(m, count, sizeof(*before));
    memcpy(before, plan->plan.containers, count * sizeof(*before));
    qsort(plan->plan.containers, count, sizeof(*before), compare_containers);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            if (before[k].id == plan->plan.containers[i].id) {
                slots[i] = plan->slots[k];
            }
        }
    }
    plan->slots = slots;
}

static void
give_ids(struct making *m, struct sl_stored_plan *plan)
{
    const struct sl_master_wish *wish = m->wish;
    const struct sl_stored_plan *current = wish->current;
    bool is_packed = wish->schedule->scheduler == SL_SCHED_PACKED;
    if (current != NULL) {
        keep_ids(current, plan);
    }
    if (wish->mode == SL_SCHED_MONITOR) {
        inherit_ids(current, NULL, &plan->plan);
    } else if (is_packed) {
        inherit_ids(wish->proposed, current, &plan->plan);
    }
    int32_t next = highest_id(&plan->plan);
    if (current != NULL && highest_id(&current->plan) > next) {
        next = highest_id(&current->plan);
    }
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        if (plan->plan.containers[i].id == 0) {
            plan->plan.containers[i].id = ++next;
        }
    }
    sort_containers(m, plan);
}

static int
make_plan(struct making *m, struct sl_stored_plan *plan)
{
    const struct sl_master_wish *wish = m->wish;
    const struct sl_stored_plan *proposed = wish->proposed;
    size_t workers = m->result.worker_count;
    *plan = *proposed;
    plan->version = wish->current != NULL ? wish->current->version + 1 : proposed->version;
    plan->master = (struct sl_plan_slot){"", "", 0};
    plan->plan = (struct sl_packing_plan){
        .containers = piece(m, workers, sizeof(struct sl_packing_container)),
        .instances =
            piece(m, (size_t)proposed->plan.instance_count, sizeof(struct sl_packing_instance)),
    };
    plan->slots = piece(m, workers, sizeof(*plan->slots));
    for (size_t i = 0; i < workers; i++) {
        add_container(m, &m->result.workers[i], plan);
    }
    if (plan->plan.instance_count != proposed->plan.instance_count) {
        return sl_err_set(SL_EINTERNAL, "the assignment of %s leaves tasks out",
                          proposed->topology);
    }
    /* A topology master that lives stays, whatever happened to a worker beside it. */
    if (wish->mode == SL_SCHED_MONITOR && !wish->is_master_dead) {
        plan->master = wish->current->master;
    }
    give_ids(m, plan);
    return sl_packing_plan_check(&plan->plan, plan->component_count);
}

int
sl_master_assign(const struct sl_master_wish *wish, struct sl_arena *arena,
                 struct sl_stored_plan *plan)
{
    struct making m = {.wish = wish, .arena = arena};
    const struct sl_packing_plan *from = &wish->proposed->plan;
    for (int32_t i = 0; i < from->instance_count; i++) {
        sl_map_u64_put(&m.instances, (uint32_t)from->instances[i].task, (uint64_t)i);
    }
    int rc = make_request(&m);
    if (rc == 0) {
        rc = sl_sched_assign(&m.request, wish->schedule->scheduler, &m.result);
    }
    if (rc == 0) {
        rc = make_plan(&m, plan);
        sl_sched_result_destroy(&m.result);
    }
    sl_map_u64_destroy(&m.instances);
    return rc;
}

/* Start times. */

struct sl_master_start *
sl_master_start_times(const struct sl_stored_plan *plan, const struct sl_stored_plan *before,
                      const struct sl_master_start *starts, size_t start_count, int64_t now_ms,
                      struct sl_arena *arena)
{
    struct sl_map_u64 places = {0};
    struct sl_map_u64 times = {0};
    size_t count = (size_t)plan->plan.instance_count;
    struct sl_master_start *result = sl_arena_calloc(arena, count + 1, sizeof(*result));
    size_t at = 0;
    if (before != NULL) {
        places = containers_of_tasks(&before->plan);
    }
    for (size_t i = 0; i < start_count; i++) {
        sl_map_u64_put(&times, (uint32_t)starts[i].task, (uint64_t)starts[i].started_ms);
    }
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        const struct sl_packing_container *container = &plan->plan.containers[i];
        for (int32_t k = 0; k < container->count; k++) {
            int32_t task = plan->plan.instances[container->first + k].task;
            uint64_t place = 0;
            uint64_t time = 0;
            bool is_kept =
                sl_map_u64_get(&places, (uint32_t)task, &place) &&
                sl_map_u64_get(&times, (uint32_t)task, &time) &&
                is_same_slot(&before->slots[place], plan->slots[i].supervisor, plan->slots[i].port);
            result[at++] = (struct sl_master_start){task, is_kept ? (int64_t)time : now_ms};
        }
    }
    sl_map_u64_destroy(&places);
    sl_map_u64_destroy(&times);
    return result;
}
