#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cluster/master_messages.h"
#include "master.pb-c.h"
#include "topology/topology.h"
#include "wire/frame.h"
#include "wire/message.h"

enum {
    /* A message that lies in one frame, or in one node. */
    SMALL_BYTES = 1024 * 1024,
    PORTS_MAX = 65536,
};

static const struct sl_pb_limit counts[] = {
    {&streamlua__schedule_template__descriptor, 9, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__schedule_template__descriptor, 10, SL_MASTER_NAMES_MAX},
    {&streamlua__schedule_template__descriptor, 11, SL_MASTER_NAMES_MAX},
    {&streamlua__schedule_template__descriptor, 12, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__schedule_component__descriptor, 3, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__schedule_user_worker__descriptor, 3, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__master_supervisor__descriptor, 3, PORTS_MAX},
    {&streamlua__scheduling__descriptor, 6, SL_PACKING_INSTANCES_MAX},
    {&streamlua__scheduling__descriptor, 7, SL_PACKING_INSTANCES_MAX},
    {&streamlua__master_status__descriptor, 2, SL_MASTER_NAMES_MAX},
    {&streamlua__master_status__descriptor, 3, SL_MASTER_NAMES_MAX},
};

static const struct sl_pb_limits small_limits = {
    .max_size = SMALL_BYTES,
    .max_fields = 4 * 1024 * 1024,
    SL_PB_COUNTS(counts),
};

static const struct sl_pb_limits large_limits = {
    .max_size = SL_MASTER_REQUEST_MAX,
    .max_fields = 4 * 1024 * 1024,
    SL_PB_COUNTS(counts),
};

static ProtobufCBinaryData
bytes_of(const uint8_t *data, size_t size)
{
    return (ProtobufCBinaryData){size, SL_PB_MUTABLE(data)};
}

static int
check_name(const char *what, const char *name)
{
    return sl_name_check(what, name, strlen(name)) == 0
               ? 0
               : sl_err_set(SL_EPROTO, "%s: '%.64s' is no name", what, name);
}

static int
too_large(const char *what)
{
    return sl_err_set(SL_ELIMIT, "%s takes too much memory", what);
}

/* Pieces. */

void
sl_master_piece_encode(const struct sl_master_piece *from, struct sl_buf *out)
{
    Streamlua__MasterPiece message = STREAMLUA__MASTER_PIECE__INIT;
    message.id = from->id;
    message.total = from->total;
    message.offset = from->offset;
    message.data = bytes_of(from->data, from->size);
    sl_message_pack(&message.base, out);
}

int
sl_master_piece_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_master_piece *to)
{
    Streamlua__MasterPiece *message;
    int rc = sl_message_unpack(&streamlua__master_piece__descriptor, data, size, &small_limits,
                               arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_master_piece){message->id, message->total, message->offset, message->data.data,
                                   message->data.len};
    if (to->total == 0 || to->total > SL_MASTER_REQUEST_MAX) {
        return sl_err_set(SL_ELIMIT, "a request of %llu bytes; the limit is %d",
                          (unsigned long long)to->total, SL_MASTER_REQUEST_MAX);
    }
    if (to->size == 0 || to->offset > to->total || to->size > to->total - to->offset) {
        return sl_err_set(SL_EPROTO, "a piece of a request that is not within it");
    }
    return 0;
}

/* Templates of schedules. */

static void
components_to_message(const struct sl_sched_request *from, struct sl_arena *arena,
                      Streamlua__ScheduleTemplate *message)
{
    Streamlua__ScheduleComponent *items =
        sl_arena_calloc(arena, (size_t)from->component_count + 1, sizeof(*items));
    message->n_components = from->component_count;
    message->components = sl_arena_calloc(arena, (size_t)from->component_count + 1, sizeof(void *));
    for (uint32_t i = 0; i < from->component_count; i++) {
        const struct sl_sched_component *component = &from->components[i];
        streamlua__schedule_component__init(&items[i]);
        items[i].name = sl_pb_text(component->name);
        items[i].kind = (uint32_t)component->kind;
        items[i].n_inputs = component->input_count;
        items[i].inputs = SL_PB_MUTABLE(from->inputs + component->first_input);
        message->components[i] = &items[i];
    }
}

static void
user_workers_to_message(const struct sl_sched_request *from, struct sl_arena *arena,
                        Streamlua__ScheduleTemplate *message)
{
    Streamlua__ScheduleUserWorker *items =
        sl_arena_calloc(arena, (size_t)from->user_worker_count + 1, sizeof(*items));
    Streamlua__ScheduleShare *shares =
        sl_arena_calloc(arena, (size_t)from->share_count + 1, sizeof(*shares));
    Streamlua__ScheduleShare **pointers =
        sl_arena_calloc(arena, (size_t)from->share_count + 1, sizeof(*pointers));
    for (uint32_t i = 0; i < from->share_count; i++) {
        streamlua__schedule_share__init(&shares[i]);
        shares[i].component = from->shares[i].component;
        shares[i].count = from->shares[i].count;
        pointers[i] = &shares[i];
    }
    message->n_user_workers = from->user_worker_count;
    message->user_workers =
        sl_arena_calloc(arena, (size_t)from->user_worker_count + 1, sizeof(void *));
    for (uint32_t i = 0; i < from->user_worker_count; i++) {
        const struct sl_sched_user_worker *worker = &from->user_workers[i];
        streamlua__schedule_user_worker__init(&items[i]);
        items[i].host = sl_pb_text(worker->host);
        items[i].port = worker->port > 0 ? (uint32_t)worker->port : 0;
        items[i].n_shares = worker->share_count;
        items[i].shares = pointers + worker->first_share;
        items[i].cpu_cores = worker->cpu;
        items[i].ram_bytes = worker->ram;
        message->user_workers[i] = &items[i];
    }
}

void
sl_schedule_template_encode(const struct sl_schedule_template *from, struct sl_buf *out)
{
    const struct sl_sched_request *request = &from->request;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__ScheduleTemplate message = STREAMLUA__SCHEDULE_TEMPLATE__INIT;
    message.format = SL_MASTER_FORMAT;
    message.scheduler = (uint32_t)from->scheduler;
    message.workers = request->workers;
    message.master_alone = (uint32_t)request->master_alone;
    message.reserve_workers = request->reserve_workers;
    message.use_old_assignment = request->use_old_assignment != 0;
    message.worker_cpu_cores = request->worker_cpu;
    message.worker_ram_bytes = request->worker_ram;
    components_to_message(request, &arena, &message);
    user_workers_to_message(request, &arena, &message);
    message.n_isolation = request->isolation_count;
    message.isolation = SL_PB_MUTABLE(request->isolation);
    message.n_on_different_nodes = request->on_different_nodes_count;
    message.on_different_nodes = SL_PB_MUTABLE(request->on_different_nodes);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

static int
components_from_message(const Streamlua__ScheduleTemplate *message, struct sl_arena *arena,
                        struct sl_sched_request *to)
{
    size_t count = message->n_components;
    size_t inputs = 0;
    for (size_t i = 0; i < count; i++) {
        inputs += message->components[i]->n_inputs;
    }
    struct sl_sched_component *items = sl_arena_calloc(arena, count + 1, sizeof(*items));
    uint32_t *input = sl_arena_calloc(arena, inputs + 1, sizeof(*input));
    if (items == NULL || input == NULL || inputs > UINT32_MAX) {
        return too_large("a template of a schedule");
    }
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const Streamlua__ScheduleComponent *from = message->components[i];
        if (sl_name_check_system("component name", from->name, strlen(from->name)) != 0 ||
            from->kind > SL_SCHED_MASTER) {
            return sl_err_set(SL_EPROTO, "a template of a schedule with a bad component");
        }
        items[i] = (struct sl_sched_component){.name = from->name,
                                               .kind = (int32_t)from->kind,
                                               .first_input = at,
                                               .input_count = (uint32_t)from->n_inputs};
        for (size_t k = 0; k < from->n_inputs; k++) {
            if (from->inputs[k] >= count) {
                return sl_err_set(SL_EPROTO, "a component that reads one which is not there");
            }
            input[at++] = from->inputs[k];
        }
    }
    to->components = items;
    to->component_count = (uint32_t)count;
    to->inputs = input;
    to->input_count = at;
    return 0;
}

static int
user_workers_from_message(const Streamlua__ScheduleTemplate *message, struct sl_arena *arena,
                          struct sl_sched_request *to)
{
    size_t count = message->n_user_workers;
    size_t shares = 0;
    for (size_t i = 0; i < count; i++) {
        shares += message->user_workers[i]->n_shares;
    }
    struct sl_sched_user_worker *items = sl_arena_calloc(arena, count + 1, sizeof(*items));
    struct sl_sched_share *share = sl_arena_calloc(arena, shares + 1, sizeof(*share));
    if (items == NULL || share == NULL || shares > UINT32_MAX) {
        return too_large("a template of a schedule");
    }
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const Streamlua__ScheduleUserWorker *from = message->user_workers[i];
        if (from->port > UINT16_MAX) {
            return sl_err_set(SL_EPROTO, "a user worker with port %u", from->port);
        }
        items[i] = (struct sl_sched_user_worker){
            .host = from->host[0] != '\0' ? from->host : NULL,
            .port = from->port > 0 ? (int32_t)from->port : -1,
            .first_share = at,
            .share_count = (uint32_t)from->n_shares,
            .cpu = from->cpu_cores > 0 ? from->cpu_cores : -1,
            .ram = from->ram_bytes > 0 ? from->ram_bytes : -1,
        };
        for (size_t k = 0; k < from->n_shares; k++) {
            if (from->shares[k]->component >= message->n_components) {
                return sl_err_set(SL_EPROTO, "a user worker with a component that is not there");
            }
            share[at++] =
                (struct sl_sched_share){from->shares[k]->component, from->shares[k]->count};
        }
    }
    to->user_workers = items;
    to->user_worker_count = (uint32_t)count;
    to->shares = share;
    to->share_count = at;
    return 0;
}

int
sl_schedule_template_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_schedule_template *to)
{
    Streamlua__ScheduleTemplate *message;
    int rc = sl_message_unpack(&streamlua__schedule_template__descriptor, data, size, &large_limits,
                               arena, &message);
    if (rc != 0) {
        return sl_err_wrap("decode a template of a schedule");
    }
    if (message->format != SL_MASTER_FORMAT) {
        return sl_err_set(SL_EPROTO,
                          "template of a schedule of format %u; this release reads "
                          "format %d",
                          message->format, SL_MASTER_FORMAT);
    }
    if (message->scheduler >= SL_SCHED_SCHEDULER_COUNT || message->master_alone > SL_SCHED_AUTO) {
        return sl_err_set(SL_EPROTO, "a template of a schedule without a known scheduler");
    }
    *to = (struct sl_schedule_template){.scheduler = (int32_t)message->scheduler};
    struct sl_sched_request *request = &to->request;
    request->workers = message->workers;
    request->master_alone = (int32_t)message->master_alone;
    request->reserve_workers = message->reserve_workers;
    request->use_old_assignment = message->use_old_assignment;
    request->worker_cpu = message->worker_cpu_cores;
    request->worker_ram = message->worker_ram_bytes;
    request->isolation = (const char *const *)message->isolation;
    request->isolation_count = (uint32_t)message->n_isolation;
    request->on_different_nodes = message->on_different_nodes;
    request->on_different_nodes_count = (uint32_t)message->n_on_different_nodes;
    for (size_t i = 0; i < message->n_on_different_nodes; i++) {
        if (message->on_different_nodes[i] >= message->n_components) {
            return sl_err_set(SL_EPROTO, "a component on different nodes that is not there");
        }
    }
    rc = components_from_message(message, arena, request);
    return rc != 0 ? rc : user_workers_from_message(message, arena, request);
}

/* Requests of clients. */

void
sl_master_submit_encode(const struct sl_master_submit *from, struct sl_buf *out)
{
    Streamlua__MasterSubmit message = STREAMLUA__MASTER_SUBMIT__INIT;
    message.topology = sl_pb_text(from->topology);
    message.definition = bytes_of(from->definition, from->definition_size);
    message.package = bytes_of(from->package, from->package_size);
    message.plan = bytes_of(from->plan, from->plan_size);
    message.schedule = bytes_of(from->schedule, from->schedule_size);
    message.cwd = sl_pb_text(from->cwd);
    message.user = sl_pb_text(from->user);
    message.host = sl_pb_text(from->host);
    message.is_active = from->is_active;
    message.time_limit_ms = from->time_limit_ms;
    message.is_dry_run = from->is_dry_run;
    sl_message_pack(&message.base, out);
}

int
sl_master_submit_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_master_submit *to)
{
    Streamlua__MasterSubmit *message;
    int rc = sl_message_unpack(&streamlua__master_submit__descriptor, data, size, &large_limits,
                               arena, &message);
    if (rc != 0) {
        return sl_err_wrap("decode a submission");
    }
    *to = (struct sl_master_submit){
        .topology = message->topology,
        .definition = message->definition.data,
        .definition_size = message->definition.len,
        .package = message->package.data,
        .package_size = message->package.len,
        .plan = message->plan.data,
        .plan_size = message->plan.len,
        .schedule = message->schedule.data,
        .schedule_size = message->schedule.len,
        .cwd = message->cwd,
        .user = message->user,
        .host = message->host,
        .is_active = message->is_active,
        .time_limit_ms = message->time_limit_ms,
        .is_dry_run = message->is_dry_run,
    };
    return check_name("topology name", to->topology);
}

void
sl_master_update_encode(const struct sl_master_update *from, struct sl_buf *out)
{
    Streamlua__MasterUpdate message = STREAMLUA__MASTER_UPDATE__INIT;
    message.topology = sl_pb_text(from->topology);
    message.current = bytes_of(from->current, from->current_size);
    message.proposed = bytes_of(from->proposed, from->proposed_size);
    message.schedule = bytes_of(from->schedule, from->schedule_size);
    message.mode = (uint32_t)from->mode;
    message.lock_timeout_ms = from->lock_timeout_ms;
    message.drain_timeout_ms = from->drain_timeout_ms;
    message.is_dry_run = from->is_dry_run;
    sl_message_pack(&message.base, out);
}

int
sl_master_update_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_master_update *to)
{
    Streamlua__MasterUpdate *message;
    int rc = sl_message_unpack(&streamlua__master_update__descriptor, data, size, &large_limits,
                               arena, &message);
    if (rc != 0) {
        return sl_err_wrap("decode an update");
    }
    *to = (struct sl_master_update){
        .topology = message->topology,
        .current = message->current.data,
        .current_size = message->current.len,
        .proposed = message->proposed.data,
        .proposed_size = message->proposed.len,
        .schedule = message->schedule.data,
        .schedule_size = message->schedule.len,
        .mode = (int32_t)message->mode,
        .lock_timeout_ms = message->lock_timeout_ms,
        .drain_timeout_ms = message->drain_timeout_ms,
        .is_dry_run = message->is_dry_run,
    };
    if (message->mode != SL_SCHED_KEEP && message->mode != SL_SCHED_REASSIGN &&
        message->mode != SL_SCHED_MINIMAL) {
        return sl_err_set(SL_EPROTO, "an update in mode %u", message->mode);
    }
    return check_name("topology name", to->topology);
}

void
sl_master_update_result_encode(const struct sl_master_update_result *from, struct sl_buf *out)
{
    Streamlua__MasterUpdateResult message = STREAMLUA__MASTER_UPDATE_RESULT__INIT;
    message.result = bytes_of(from->result, from->result_size);
    message.proposed = bytes_of(from->proposed, from->proposed_size);
    sl_message_pack(&message.base, out);
}

int
sl_master_update_result_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                               struct sl_master_update_result *to)
{
    Streamlua__MasterUpdateResult *message;
    int rc = sl_message_unpack(&streamlua__master_update_result__descriptor, data, size,
                               &small_limits, arena, &message);
    if (rc == 0) {
        *to = (struct sl_master_update_result){message->result.data, message->result.len,
                                               message->proposed.data, message->proposed.len};
    }
    return rc;
}

void
sl_master_kill_encode(const struct sl_master_kill *from, struct sl_buf *out)
{
    Streamlua__MasterKill message = STREAMLUA__MASTER_KILL__INIT;
    message.topology = sl_pb_text(from->topology);
    message.wait_ms = from->wait_ms;
    message.is_purged = from->is_purged;
    sl_message_pack(&message.base, out);
}

int
sl_master_kill_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_master_kill *to)
{
    Streamlua__MasterKill *message;
    int rc = sl_message_unpack(&streamlua__master_kill__descriptor, data, size, &small_limits,
                               arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_master_kill){message->topology, message->wait_ms, message->is_purged};
    return check_name("topology name", to->topology);
}

void
sl_master_reassign_encode(const struct sl_master_reassign *from, struct sl_buf *out)
{
    Streamlua__MasterReassign message = STREAMLUA__MASTER_REASSIGN__INIT;
    message.topology = sl_pb_text(from->topology);
    message.plan_version = from->plan_version;
    message.n_containers = from->count;
    message.containers = SL_PB_MUTABLE(from->containers);
    message.cause = sl_pb_text(from->cause);
    sl_message_pack(&message.base, out);
}

int
sl_master_reassign_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_master_reassign *to)
{
    Streamlua__MasterReassign *message;
    int rc = sl_message_unpack(&streamlua__master_reassign__descriptor, data, size, &small_limits,
                               arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_master_reassign){message->topology, message->plan_version, message->containers,
                                      message->n_containers, message->cause};
    return check_name("topology name", to->topology);
}

/* The state of the cluster. */

static void
supervisors_to_message(const struct sl_master_status *from, struct sl_arena *arena,
                       Streamlua__MasterStatus *message)
{
    Streamlua__MasterSupervisor *items =
        sl_arena_calloc(arena, from->supervisor_count + 1, sizeof(*items));
    message->n_supervisors = from->supervisor_count;
    message->supervisors = sl_arena_calloc(arena, from->supervisor_count + 1, sizeof(void *));
    for (size_t i = 0; i < from->supervisor_count; i++) {
        const struct sl_master_supervisor *supervisor = &from->supervisors[i];
        Streamlua__MasterSlot *slots =
            sl_arena_calloc(arena, supervisor->slot_count + 1, sizeof(*slots));
        streamlua__master_supervisor__init(&items[i]);
        items[i].id = sl_pb_text(supervisor->id);
        items[i].host = sl_pb_text(supervisor->host);
        items[i].is_registered = supervisor->is_registered;
        items[i].n_slots = supervisor->slot_count;
        items[i].slots = sl_arena_calloc(arena, supervisor->slot_count + 1, sizeof(void *));
        for (size_t k = 0; k < supervisor->slot_count; k++) {
            streamlua__master_slot__init(&slots[k]);
            slots[k].port = supervisor->slots[k].port;
            slots[k].topology = sl_pb_text(supervisor->slots[k].topology);
            items[i].slots[k] = &slots[k];
        }
        message->supervisors[i] = &items[i];
    }
}

void
sl_master_status_encode(const struct sl_master_status *from, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__MasterStatus message = STREAMLUA__MASTER_STATUS__INIT;
    Streamlua__MasterTopology *items =
        sl_arena_calloc(&arena, from->topology_count + 1, sizeof(*items));
    message.master = sl_pb_text(from->master);
    supervisors_to_message(from, &arena, &message);
    message.n_topologies = from->topology_count;
    message.topologies = sl_arena_calloc(&arena, from->topology_count + 1, sizeof(void *));
    for (size_t i = 0; i < from->topology_count; i++) {
        streamlua__master_topology__init(&items[i]);
        items[i].topology = sl_pb_text(from->topologies[i].topology);
        items[i].status = sl_pb_text(from->topologies[i].status);
        items[i].plan_version = from->topologies[i].plan_version;
        items[i].supervisor = sl_pb_text(from->topologies[i].supervisor);
        items[i].port = from->topologies[i].port;
        message.topologies[i] = &items[i];
    }
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

static int
supervisors_from_message(const Streamlua__MasterStatus *message, struct sl_arena *arena,
                         struct sl_master_status *to)
{
    struct sl_master_supervisor *items =
        sl_arena_calloc(arena, message->n_supervisors + 1, sizeof(*items));
    if (items == NULL) {
        return too_large("a status");
    }
    for (size_t i = 0; i < message->n_supervisors; i++) {
        const Streamlua__MasterSupervisor *from = message->supervisors[i];
        struct sl_master_slot *slots = sl_arena_calloc(arena, from->n_slots + 1, sizeof(*slots));
        if (slots == NULL) {
            return too_large("a status");
        }
        for (size_t k = 0; k < from->n_slots; k++) {
            slots[k] = (struct sl_master_slot){from->slots[k]->port, from->slots[k]->topology};
        }
        items[i] = (struct sl_master_supervisor){from->id, from->host, slots, from->n_slots,
                                                 from->is_registered};
    }
    to->supervisors = items;
    to->supervisor_count = message->n_supervisors;
    return 0;
}

int
sl_master_status_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_master_status *to)
{
    Streamlua__MasterStatus *message;
    int rc = sl_message_unpack(&streamlua__master_status__descriptor, data, size, &small_limits,
                               arena, &message);
    if (rc != 0) {
        return rc;
    }
    struct sl_master_topology *items =
        sl_arena_calloc(arena, message->n_topologies + 1, sizeof(*items));
    if (items == NULL) {
        return too_large("a status");
    }
    for (size_t i = 0; i < message->n_topologies; i++) {
        const Streamlua__MasterTopology *from = message->topologies[i];
        items[i] = (struct sl_master_topology){from->topology, from->status, from->plan_version,
                                               from->supervisor, from->port};
    }
    *to = (struct sl_master_status){
        .master = message->master, .topologies = items, .topology_count = message->n_topologies};
    return supervisors_from_message(message, arena, to);
}

/* What is stored. */

void
sl_scheduling_encode(const struct sl_scheduling *from, struct sl_buf *out)
{
    Streamlua__Scheduling message = STREAMLUA__SCHEDULING__INIT;
    message.format = SL_MASTER_FORMAT;
    message.topology_id = sl_pb_text(from->topology_id);
    message.schedule = bytes_of(from->schedule, from->schedule_size);
    message.kill_due_ms = from->kill_due_ms;
    message.is_purged = from->is_purged;
    message.timeout_ms = from->timeout_ms;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    message.n_tasks = message.n_started_ms = from->start_count;
    message.tasks = sl_arena_calloc(&arena, from->start_count + 1, sizeof(*message.tasks));
    message.started_ms =
        sl_arena_calloc(&arena, from->start_count + 1, sizeof(*message.started_ms));
    for (size_t i = 0; i < from->start_count; i++) {
        message.tasks[i] = from->starts[i].task;
        message.started_ms[i] = from->starts[i].started_ms;
    }
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_scheduling_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                     struct sl_scheduling *to)
{
    Streamlua__Scheduling *message;
    int rc = sl_message_unpack(&streamlua__scheduling__descriptor, data, size, &large_limits, arena,
                               &message);
    if (rc != 0) {
        return sl_err_wrap("decode how a topology is scheduled");
    }
    if (message->format != SL_MASTER_FORMAT) {
        return sl_err_set(SL_EPROTO, "a scheduling of format %u; this release reads format %d",
                          message->format, SL_MASTER_FORMAT);
    }
    struct sl_master_start *starts = sl_arena_calloc(arena, message->n_tasks + 1, sizeof(*starts));
    if (starts == NULL || message->n_started_ms != message->n_tasks) {
        return sl_err_set(SL_EPROTO, "a scheduling whose tasks and times do not fit");
    }
    for (size_t i = 0; i < message->n_tasks; i++) {
        starts[i] = (struct sl_master_start){message->tasks[i], message->started_ms[i]};
    }
    *to = (struct sl_scheduling){
        .topology_id = message->topology_id,
        .schedule = message->schedule.data,
        .schedule_size = message->schedule.len,
        .kill_due_ms = message->kill_due_ms,
        .is_purged = message->is_purged,
        .starts = starts,
        .start_count = message->n_tasks,
        .timeout_ms = message->timeout_ms,
    };
    return 0;
}

void
sl_assignment_backup_encode(const uint8_t *plan, size_t size, struct sl_buf *out)
{
    Streamlua__AssignmentBackup message = STREAMLUA__ASSIGNMENT_BACKUP__INIT;
    message.format = SL_MASTER_FORMAT;
    message.plan = bytes_of(plan, size);
    sl_message_pack(&message.base, out);
}

int
sl_assignment_backup_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            const uint8_t **plan, size_t *plan_size)
{
    Streamlua__AssignmentBackup *message;
    int rc = sl_message_unpack(&streamlua__assignment_backup__descriptor, data, size, &large_limits,
                               arena, &message);
    if (rc != 0) {
        return sl_err_wrap("decode a backup");
    }
    if (message->format != SL_MASTER_FORMAT) {
        return sl_err_set(SL_EPROTO, "a backup of format %u; this release reads format %d",
                          message->format, SL_MASTER_FORMAT);
    }
    *plan = message->plan.data;
    *plan_size = message->plan.len;
    return 0;
}
