/* Both kinds of plans, which share the encoding of their components. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/text.h"
#include "cluster/physical_plan.h"
#include "cluster/stored_plan.h"
#include "physical_plan.pb-c.h"
#include "plan.pb-c.h"
#include "topology/topology.h"
#include "wire/message.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__packing_plan__descriptor, 5, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__packing_plan__descriptor, 6, SL_PACKING_INSTANCES_MAX},
    {&streamlua__plan_component__descriptor, 2, SL_KEY_GROUPS_MAX},
    {&streamlua__plan_container__descriptor, 8, SL_PACKING_INSTANCES_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_STORED_PLAN_BYTES_MAX,
    .max_fields = 32 * 1024 * 1024,
    SL_PB_COUNTS(counts),
};

static Streamlua__PlanComponent **
components_to_messages(struct sl_arena *arena, const struct sl_plan_component *components,
                       int32_t count)
{
    size_t size = (size_t)count + 1;
    Streamlua__PlanComponent **pointers = sl_arena_calloc(arena, size, sizeof(*pointers));
    Streamlua__PlanComponent *messages = sl_arena_calloc(arena, size, sizeof(*messages));
    for (int32_t i = 0; i < count; i++) {
        streamlua__plan_component__init(&messages[i]);
        messages[i].name = SL_PB_MUTABLE(components[i].name);
        messages[i].n_key_groups = components[i].key_group_count;
        messages[i].key_groups = components[i].key_groups;
        pointers[i] = &messages[i];
    }
    return pointers;
}

static int
components_from_messages(struct sl_arena *arena, Streamlua__PlanComponent **messages, size_t count,
                         struct sl_plan_component **components)
{
    *components = sl_arena_calloc(arena, count + 1, sizeof(**components));
    if (*components == NULL) {
        return sl_err_set(SL_ELIMIT, "the components of a plan take too much memory");
    }
    for (size_t i = 0; i < count; i++) {
        struct sl_plan_component *to = &(*components)[i];
        to->name = messages[i]->name;
        to->key_groups = messages[i]->key_groups;
        to->key_group_count = (uint32_t)messages[i]->n_key_groups;
        if (sl_name_check_system("component name", to->name, strlen(to->name)) != 0) {
            return sl_err_set(SL_EPROTO, "a plan with a component whose name is no name");
        }
    }
    return 0;
}

/* Every key group of the component belongs to a task of it; the map gives each task's component. */
static int
check_owners(const struct sl_map_u64 *component_of_task, int32_t component,
             const struct sl_plan_component *from)
{
    for (uint32_t i = 0; i < from->key_group_count; i++) {
        uint64_t owner = 0;
        if (!sl_map_u64_get(component_of_task, (uint32_t)from->key_groups[i], &owner) ||
            owner != (uint32_t)component) {
            return sl_err_set(SL_EPROTO, "key group %u of %s belongs to %d, which is no task of it",
                              i, from->name, from->key_groups[i]);
        }
    }
    return 0;
}

static Streamlua__PlanInstance **
instances_to_messages(struct sl_arena *arena, const struct sl_packing_instance *instances,
                      int32_t count)
{
    size_t size = (size_t)count + 1;
    Streamlua__PlanInstance **pointers = sl_arena_calloc(arena, size, sizeof(*pointers));
    Streamlua__PlanInstance *messages = sl_arena_calloc(arena, size, sizeof(*messages));
    for (int32_t i = 0; i < count; i++) {
        streamlua__plan_instance__init(&messages[i]);
        messages[i].component = (uint32_t)instances[i].component;
        messages[i].task = instances[i].task;
        messages[i].index = instances[i].index;
        messages[i].cpu_cores = instances[i].cpu;
        messages[i].ram_bytes = instances[i].ram_bytes;
        messages[i].disk_bytes = instances[i].disk_bytes;
        pointers[i] = &messages[i];
    }
    return pointers;
}

static void
container_to_message(struct sl_arena *arena, const struct sl_stored_plan *plan, int32_t at,
                     Streamlua__PlanContainer *message)
{
    const struct sl_packing_container *container = &plan->plan.containers[at];
    const struct sl_plan_slot *slot = &plan->slots[at];
    streamlua__plan_container__init(message);
    message->id = container->id;
    message->cpu_cores = container->cpu;
    message->ram_bytes = container->ram_bytes;
    message->disk_bytes = container->disk_bytes;
    message->supervisor = SL_PB_MUTABLE(slot->supervisor);
    message->host = SL_PB_MUTABLE(slot->host);
    message->port = slot->port;
    message->n_instances = (size_t)container->count;
    message->instances =
        instances_to_messages(arena, &plan->plan.instances[container->first], container->count);
}

int
sl_stored_plan_encode(const struct sl_stored_plan *plan, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__PackingPlan message = STREAMLUA__PACKING_PLAN__INIT;
    size_t count = (size_t)plan->plan.container_count;
    message.format = SL_STORED_PLAN_FORMAT;
    message.topology = SL_PB_MUTABLE(plan->topology);
    message.version = plan->version;
    message.packing = SL_PB_MUTABLE(plan->packing);
    message.n_components = (size_t)plan->component_count;
    message.components = components_to_messages(&arena, plan->components, plan->component_count);
    message.n_containers = count;
    message.containers = sl_arena_calloc(&arena, count + 1, sizeof(void *));
    Streamlua__PlanContainer *containers = sl_arena_calloc(&arena, count + 1, sizeof(*containers));
    for (size_t i = 0; i < count; i++) {
        container_to_message(&arena, plan, (int32_t)i, &containers[i]);
        message.containers[i] = &containers[i];
    }
    Streamlua__PlanMaster master = STREAMLUA__PLAN_MASTER__INIT;
    if (plan->master_task > 0) {
        master.supervisor = sl_pb_text(plan->master.supervisor);
        master.host = sl_pb_text(plan->master.host);
        master.port = plan->master.port;
        master.task = plan->master_task;
        message.master = &master;
    }
    int rc = 0;
    size_t size = streamlua__packing_plan__get_packed_size(&message);
    if (size > SL_STORED_PLAN_BYTES_MAX) {
        rc = sl_err_set(SL_ELIMIT, "the plan of %s takes %zu bytes; the limit is %d",
                        plan->topology, size, SL_STORED_PLAN_BYTES_MAX);
    } else {
        sl_message_pack(&message.base, out);
    }
    sl_arena_destroy(&arena);
    return rc;
}

static void
instance_from_message(const Streamlua__PlanInstance *message, struct sl_packing_instance *instance)
{
    /* Above INT32_MAX is no component either way; the plan's check tells. */
    instance->component = message->component > INT32_MAX ? -1 : (int32_t)message->component;
    instance->task = message->task;
    instance->index = message->index;
    instance->cpu = message->cpu_cores;
    instance->ram_bytes = message->ram_bytes;
    instance->disk_bytes = message->disk_bytes;
}

static int
containers_from_message(struct sl_arena *arena, const Streamlua__PackingPlan *message,
                        struct sl_stored_plan *plan)
{
    size_t count = message->n_containers;
    size_t instances = 0;
    for (size_t i = 0; i < count; i++) {
        instances += message->containers[i]->n_instances;
    }
    struct sl_packing_plan *to = &plan->plan;
    to->container_count = (int32_t)count;
    to->instance_count = (int32_t)instances;
    to->containers = sl_arena_calloc(arena, count + 1, sizeof(*to->containers));
    to->instances = sl_arena_calloc(arena, instances + 1, sizeof(*to->instances));
    plan->slots = sl_arena_calloc(arena, count + 1, sizeof(*plan->slots));
    if (instances > SL_PACKING_INSTANCES_MAX || to->containers == NULL || to->instances == NULL ||
        plan->slots == NULL) {
        return sl_err_set(SL_ELIMIT, "a plan with %zu instances is too large", instances);
    }
    int32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const Streamlua__PlanContainer *from = message->containers[i];
        to->containers[i] = (struct sl_packing_container){
            .id = from->id,
            .first = at,
            .count = (int32_t)from->n_instances,
            .cpu = from->cpu_cores,
            .ram_bytes = from->ram_bytes,
            .disk_bytes = from->disk_bytes,
        };
        plan->slots[i] = (struct sl_plan_slot){from->supervisor, from->host, from->port};
        if (from->port > UINT16_MAX) {
            return sl_err_set(SL_EPROTO, "container %d with port %u", from->id, from->port);
        }
        for (size_t k = 0; k < from->n_instances; k++) {
            instance_from_message(from->instances[k], &to->instances[at++]);
        }
    }
    return 0;
}

static int
master_from_message(const Streamlua__PlanMaster *from, struct sl_stored_plan *plan)
{
    plan->master = (struct sl_plan_slot){"", "", 0};
    if (from == NULL) {
        return 0;
    }
    if (from->port > UINT16_MAX || from->task < 1 || from->task > SL_PACKING_ID_MAX) {
        return sl_err_set(SL_EPROTO, "a topology master with port %u and task %d", from->port,
                          from->task);
    }
    plan->master = (struct sl_plan_slot){from->supervisor, from->host, from->port};
    plan->master_task = from->task;
    return 0;
}

static int
check_key_groups(const struct sl_stored_plan *plan)
{
    struct sl_map_u64 tasks = {0};
    for (int32_t i = 0; i < plan->plan.instance_count; i++) {
        const struct sl_packing_instance *instance = &plan->plan.instances[i];
        sl_map_u64_put(&tasks, (uint32_t)instance->task, (uint32_t)instance->component);
    }
    int rc = 0;
    for (int32_t i = 0; rc == 0 && i < plan->component_count; i++) {
        rc = check_owners(&tasks, i, &plan->components[i]);
    }
    sl_map_u64_destroy(&tasks);
    return rc;
}

int
sl_stored_plan_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_stored_plan *plan)
{
    ProtobufCMessage *unpacked;
    int rc = sl_message_unpack(&streamlua__packing_plan__descriptor, data, size, &limits, arena,
                               &unpacked);
    if (rc != 0) {
        return sl_err_wrap("decode a packing plan");
    }
    const Streamlua__PackingPlan *message = (const Streamlua__PackingPlan *)unpacked;
    *plan = (struct sl_stored_plan){.topology = message->topology,
                                    .version = message->version,
                                    .packing = message->packing,
                                    .component_count = (int32_t)message->n_components};
    if (message->format != SL_STORED_PLAN_FORMAT) {
        return sl_err_set(SL_EPROTO, "packing plan of format %u; this release reads format %d",
                          message->format, SL_STORED_PLAN_FORMAT);
    }
    rc = sl_name_check("topology name", plan->topology, strlen(plan->topology));
    if (rc == 0) {
        rc = components_from_messages(arena, message->components, message->n_components,
                                      &plan->components);
    }
    if (rc == 0) {
        rc = containers_from_message(arena, message, plan);
    }
    if (rc == 0) {
        rc = master_from_message(message->master, plan);
    }
    if (rc == 0) {
        rc = sl_packing_plan_check(&plan->plan, plan->component_count);
    }
    return rc != 0 ? rc : check_key_groups(plan);
}

int32_t
sl_stored_plan_component(const struct sl_stored_plan *plan, const char *name)
{
    for (int32_t i = 0; i < plan->component_count; i++) {
        if (strcmp(plan->components[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static const struct sl_pb_limit physical_counts[] = {
    {&streamlua__physical_plan__descriptor, 8, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__physical_plan__descriptor, 9, SL_PACKING_INSTANCES_MAX},
    {&streamlua__physical_plan__descriptor, 10, SL_PACKING_INSTANCES_MAX},
    {&streamlua__plan_component__descriptor, 2, SL_KEY_GROUPS_MAX},
};

static const struct sl_pb_limits physical_limits = {
    .max_size = SL_PHYSICAL_PLAN_BYTES_MAX,
    .max_fields = 32 * 1024 * 1024,
    SL_PB_COUNTS(physical_counts),
};

const char *
sl_topology_state_name(int state)
{
    static const char *const names[] = {NULL, "STARTING", "RUNNING", "PAUSED", "KILLED"};
    return state >= SL_TOPOLOGY_STARTING && state <= SL_TOPOLOGY_KILLED ? names[state] : NULL;
}

static Streamlua__PhysicalContainer **
containers_to_messages(struct sl_arena *arena, const struct sl_physical_plan *plan)
{
    size_t size = (size_t)plan->container_count + 1;
    Streamlua__PhysicalContainer **pointers = sl_arena_calloc(arena, size, sizeof(*pointers));
    Streamlua__PhysicalContainer *messages = sl_arena_calloc(arena, size, sizeof(*messages));
    for (int32_t i = 0; i < plan->container_count; i++) {
        const struct sl_physical_container *from = &plan->containers[i];
        streamlua__physical_container__init(&messages[i]);
        messages[i].id = from->id;
        if (from->is_registered) {
            messages[i].identity =
                (ProtobufCBinaryData){SL_IDENTITY_SIZE, SL_PB_MUTABLE(from->identity)};
            messages[i].host = SL_PB_MUTABLE(from->host);
            messages[i].data_port = from->data_port;
            messages[i].address = SL_PB_MUTABLE(from->address);
            messages[i].pid = from->pid;
        }
        pointers[i] = &messages[i];
    }
    return pointers;
}

static Streamlua__PhysicalTask **
tasks_to_messages(struct sl_arena *arena, const struct sl_physical_plan *plan)
{
    size_t size = (size_t)plan->task_count + 1;
    Streamlua__PhysicalTask **pointers = sl_arena_calloc(arena, size, sizeof(*pointers));
    Streamlua__PhysicalTask *messages = sl_arena_calloc(arena, size, sizeof(*messages));
    for (int32_t i = 0; i < plan->task_count; i++) {
        streamlua__physical_task__init(&messages[i]);
        messages[i].task = plan->tasks[i].task;
        messages[i].component = (uint32_t)plan->tasks[i].component;
        messages[i].index = plan->tasks[i].index;
        messages[i].container = plan->tasks[i].container;
        messages[i].is_coming = plan->tasks[i].is_coming;
        pointers[i] = &messages[i];
    }
    return pointers;
}

int
sl_physical_plan_encode(const struct sl_physical_plan *plan, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__PhysicalPlan message = STREAMLUA__PHYSICAL_PLAN__INIT;
    message.format = SL_PHYSICAL_PLAN_FORMAT;
    message.topology = SL_PB_MUTABLE(plan->topology);
    message.topology_id = SL_PB_MUTABLE(plan->topology_id);
    message.plan_version = plan->plan_version;
    message.token = plan->token;
    message.is_held = plan->is_held;
    message.epoch = plan->epoch;
    message.state = (Streamlua__TopologyState)plan->state;
    message.n_components = (size_t)plan->component_count;
    message.components = components_to_messages(&arena, plan->components, plan->component_count);
    message.n_containers = (size_t)plan->container_count;
    message.containers = containers_to_messages(&arena, plan);
    message.n_tasks = (size_t)plan->task_count;
    message.tasks = tasks_to_messages(&arena, plan);
    int rc = 0;
    size_t size = streamlua__physical_plan__get_packed_size(&message);
    if (size > SL_PHYSICAL_PLAN_BYTES_MAX) {
        rc = sl_err_set(SL_ELIMIT, "the physical plan of %s takes %zu bytes; the limit is %d",
                        plan->topology, size, SL_PHYSICAL_PLAN_BYTES_MAX);
    } else {
        sl_message_pack(&message.base, out);
    }
    sl_arena_destroy(&arena);
    return rc;
}

static int
container_from_message(const Streamlua__PhysicalContainer *from, struct sl_physical_container *to)
{
    *to = (struct sl_physical_container){.id = from->id,
                                         .host = from->host,
                                         .data_port = from->data_port,
                                         .address = from->address,
                                         .pid = from->pid,
                                         .is_registered = from->identity.len != 0};
    if (from->id < 1 || from->data_port > UINT16_MAX ||
        (from->identity.len != 0 && from->identity.len != SL_IDENTITY_SIZE)) {
        return sl_err_set(SL_EPROTO, "container %d with data port %u and an identity of %zu bytes",
                          from->id, from->data_port, from->identity.len);
    }
    if (to->is_registered) {
        memcpy(to->identity, from->identity.data, SL_IDENTITY_SIZE);
    }
    return 0;
}

static int
physical_containers_from_message(struct sl_arena *arena, const Streamlua__PhysicalPlan *message,
                                 struct sl_physical_plan *plan)
{
    plan->containers = sl_arena_calloc(arena, message->n_containers + 1, sizeof(*plan->containers));
    if (plan->containers == NULL) {
        return sl_err_set(SL_ELIMIT, "a physical plan takes too much memory");
    }
    plan->container_count = (int32_t)message->n_containers;
    for (int32_t i = 0; i < plan->container_count; i++) {
        int rc = container_from_message(message->containers[i], &plan->containers[i]);
        if (rc != 0) {
            return rc;
        }
        if (i > 0 && plan->containers[i].id <= plan->containers[i - 1].id) {
            return sl_err_set(SL_EPROTO, "containers of a physical plan out of order");
        }
    }
    return 0;
}

static int
tasks_from_message(struct sl_arena *arena, const Streamlua__PhysicalPlan *message,
                   struct sl_physical_plan *plan)
{
    plan->tasks = sl_arena_calloc(arena, message->n_tasks + 1, sizeof(*plan->tasks));
    if (plan->tasks == NULL) {
        return sl_err_set(SL_ELIMIT, "a physical plan takes too much memory");
    }
    plan->task_count = (int32_t)message->n_tasks;
    for (int32_t i = 0; i < plan->task_count; i++) {
        const Streamlua__PhysicalTask *from = message->tasks[i];
        if (from->component >= (uint32_t)plan->component_count || from->index < 0 ||
            from->task < 1 || (i > 0 && from->task <= plan->tasks[i - 1].task) ||
            sl_physical_plan_container(plan, from->container) == NULL) {
            return sl_err_set(SL_EPROTO, "task %d of a physical plan does not belong there",
                              from->task);
        }
        plan->tasks[i] = (struct sl_physical_task){from->task, (int32_t)from->component,
                                                   from->index, from->container, from->is_coming};
    }
    return 0;
}

static int
check_physical_key_groups(const struct sl_physical_plan *plan)
{
    struct sl_map_u64 tasks = {0};
    for (int32_t i = 0; i < plan->task_count; i++) {
        sl_map_u64_put(&tasks, (uint32_t)plan->tasks[i].task, (uint32_t)plan->tasks[i].component);
    }
    int rc = 0;
    for (int32_t i = 0; rc == 0 && i < plan->component_count; i++) {
        rc = check_owners(&tasks, i, &plan->components[i]);
    }
    sl_map_u64_destroy(&tasks);
    return rc;
}

int
sl_physical_plan_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_physical_plan *plan)
{
    ProtobufCMessage *unpacked;
    int rc = sl_message_unpack(&streamlua__physical_plan__descriptor, data, size, &physical_limits,
                               arena, &unpacked);
    if (rc != 0) {
        return sl_err_wrap("decode a physical plan");
    }
    const Streamlua__PhysicalPlan *message = (const Streamlua__PhysicalPlan *)unpacked;
    *plan = (struct sl_physical_plan){.topology = message->topology,
                                      .topology_id = message->topology_id,
                                      .plan_version = message->plan_version,
                                      .token = message->token,
                                      .is_held = message->is_held,
                                      .epoch = message->epoch,
                                      .state = (enum sl_topology_state)message->state,
                                      .component_count = (int32_t)message->n_components};
    if (message->format != SL_PHYSICAL_PLAN_FORMAT) {
        return sl_err_set(SL_EPROTO, "physical plan of format %u; this release reads format %d",
                          message->format, SL_PHYSICAL_PLAN_FORMAT);
    }
    if (sl_topology_state_name((int)message->state) == NULL ||
        sl_name_check("topology name", plan->topology, strlen(plan->topology)) != 0) {
        return sl_err_set(SL_EPROTO, "physical plan without a state or a name");
    }
    rc = components_from_messages(arena, message->components, message->n_components,
                                  &plan->components);
    if (rc == 0) {
        rc = physical_containers_from_message(arena, message, plan);
    }
    if (rc == 0) {
        rc = tasks_from_message(arena, message, plan);
    }
    return rc != 0 ? rc : check_physical_key_groups(plan);
}

static int
compare_tasks(const void *left, const void *right)
{
    const struct sl_physical_task *a = left;
    const struct sl_physical_task *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

static int
compare_containers(const void *left, const void *right)
{
    const struct sl_physical_container *a = left;
    const struct sl_physical_container *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

void
sl_physical_plan_from_stored(const struct sl_stored_plan *stored, const char *topology_id,
                             struct sl_arena *arena, struct sl_physical_plan *plan)
{
    const struct sl_packing_plan *from = &stored->plan;
    *plan = (struct sl_physical_plan){
        .topology = stored->topology,
        .topology_id = topology_id,
        .plan_version = stored->version,
        .state = SL_TOPOLOGY_STARTING,
        .components = stored->components,
        .component_count = stored->component_count,
        .container_count = from->container_count,
        .task_count = from->instance_count,
    };
    plan->containers =
        sl_arena_calloc(arena, (size_t)from->container_count + 1, sizeof(*plan->containers));
    plan->tasks = sl_arena_calloc(arena, (size_t)from->instance_count + 1, sizeof(*plan->tasks));
    int32_t at = 0;
    for (int32_t i = 0; i < from->container_count; i++) {
        const struct sl_packing_container *container = &from->containers[i];
        plan->containers[i] =
            (struct sl_physical_container){.id = container->id, .host = "", .address = ""};
        for (int32_t k = 0; k < container->count; k++) {
            const struct sl_packing_instance *instance = &from->instances[container->first + k];
            plan->tasks[at++] = (struct sl_physical_task){instance->task, instance->component,
                                                          instance->index, container->id, false};
        }
    }
    qsort(plan->containers, (size_t)plan->container_count, sizeof(*plan->containers),
          compare_containers);
    qsort(plan->tasks, (size_t)plan->task_count, sizeof(*plan->tasks), compare_tasks);
}

struct sl_physical_container *
sl_physical_plan_container(const struct sl_physical_plan *plan, int32_t id)
{
    struct sl_physical_container key = {.id = id};
    return bsearch(&key, plan->containers, (size_t)plan->container_count, sizeof(key),
                   compare_containers);
}

bool
sl_physical_plan_is_complete(const struct sl_physical_plan *plan)
{
    for (int32_t i = 0; i < plan->container_count; i++) {
        if (!plan->containers[i].is_registered) {
            return false;
        }
    }
    return true;
}
