#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cluster/control_messages.h"
#include "control.pb-c.h"
#include "topology/topology.h"
#include "wire/frame.h"
#include "wire/message.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__control_status__descriptor, 7, SL_CONTROL_EVENTS_MAX},
    {&streamlua__control_status__descriptor, 9, SL_TOPOLOGY_COMPONENTS_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_FRAME_CONTROL_MAX,
    .max_fields = 16 * SL_TOPOLOGY_COMPONENTS_MAX,
    SL_PB_COUNTS(counts),
};

static int
check_topology(const char *name, int state)
{
    if (sl_name_check("topology name", name, strlen(name)) != 0 ||
        sl_topology_state_name(state) == NULL) {
        return sl_err_set(SL_EPROTO, "a message about a topology without a name or a state");
    }
    return 0;
}

void
sl_execution_state_encode(const struct sl_execution_state *from, struct sl_buf *out)
{
    Streamlua__ExecutionState message = STREAMLUA__EXECUTION_STATE__INIT;
    message.format = SL_EXECUTION_STATE_FORMAT;
    message.topology = sl_pb_text(from->topology);
    message.topology_id = sl_pb_text(from->topology_id);
    message.submitted_ms = from->submitted_ms;
    message.user = sl_pb_text(from->user);
    message.host = sl_pb_text(from->host);
    message.cwd = sl_pb_text(from->cwd);
    message.package_hash = sl_pb_text(from->package_hash);
    message.scheduler = sl_pb_text(from->scheduler);
    message.state = (Streamlua__TopologyState)from->state;
    message.is_active = from->is_active;
    sl_message_pack(&message.base, out);
}

int
sl_execution_state_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_execution_state *to)
{
    Streamlua__ExecutionState *message;
    int rc = sl_message_unpack(&streamlua__execution_state__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return sl_err_wrap("decode an execution state");
    }
    if (message->format != SL_EXECUTION_STATE_FORMAT) {
        return sl_err_set(SL_EPROTO, "execution state of format %u; this release reads format %d",
                          message->format, SL_EXECUTION_STATE_FORMAT);
    }
    *to = (struct sl_execution_state){
        .topology = message->topology,
        .topology_id = message->topology_id,
        .submitted_ms = message->submitted_ms,
        .user = message->user,
        .host = message->host,
        .cwd = message->cwd,
        .package_hash = message->package_hash,
        .scheduler = message->scheduler,
        .state = (enum sl_topology_state)message->state,
        .is_active = message->is_active,
    };
    return check_topology(to->topology, (int)message->state);
}

void
sl_control_request_encode(const struct sl_control_request *from, struct sl_buf *out)
{
    Streamlua__ControlRequest message = STREAMLUA__CONTROL_REQUEST__INIT;
    message.time_limit_ms = from->time_limit_ms;
    message.is_active = from->is_active;
    message.container = from->container;
    message.seen_events = from->seen_events;
    message.wants_event = from->wants_event;
    sl_message_pack(&message.base, out);
}

int
sl_control_request_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_control_request *to)
{
    Streamlua__ControlRequest *message;
    int rc = sl_message_unpack(&streamlua__control_request__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *to =
        (struct sl_control_request){message->time_limit_ms, message->is_active, message->container,
                                    message->seen_events, message->wants_event};
    return to->container >= 0 ? 0 : sl_err_set(SL_EPROTO, "container %d", to->container);
}

static void
status_lists_to_message(const struct sl_control_status *from, struct sl_arena *arena,
                        Streamlua__ControlStatus *message)
{
    size_t count = from->container_count;
    Streamlua__ControlContainer *containers =
        sl_arena_calloc(arena, count + 1, sizeof(*containers));
    message->n_containers = count;
    message->containers = sl_arena_calloc(arena, count + 1, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        streamlua__control_container__init(&containers[i]);
        containers[i].id = from->containers[i].id;
        containers[i].pid = from->containers[i].pid;
        containers[i].host = sl_pb_text(from->containers[i].host);
        containers[i].port = from->containers[i].port;
        containers[i].state = sl_pb_text(from->containers[i].state);
        containers[i].restarts = from->containers[i].restarts;
        message->containers[i] = &containers[i];
    }
    Streamlua__ControlEvent *events =
        sl_arena_calloc(arena, from->shown_events + 1, sizeof(*events));
    message->n_events = from->shown_events;
    message->events = sl_arena_calloc(arena, from->shown_events + 1, sizeof(void *));
    for (size_t i = 0; i < from->shown_events; i++) {
        streamlua__control_event__init(&events[i]);
        events[i].time_ms = from->events[i].time_ms;
        events[i].text = sl_pb_text(from->events[i].text);
        message->events[i] = &events[i];
    }
    Streamlua__ControlCounters *counters =
        sl_arena_calloc(arena, from->counter_count + 1, sizeof(*counters));
    message->n_counters = from->counter_count;
    message->counters = sl_arena_calloc(arena, from->counter_count + 1, sizeof(void *));
    for (size_t i = 0; i < from->counter_count; i++) {
        const struct sl_worker_counters *entry = &from->counters[i];
        streamlua__control_counters__init(&counters[i]);
        counters[i].component = sl_pb_text(entry->component);
        counters[i].executed = entry->executed;
        counters[i].emitted = entry->emitted;
        counters[i].acked = entry->acked;
        counters[i].failed = entry->failed;
        counters[i].pending = entry->pending;
        counters[i].errors = entry->errors;
        message->counters[i] = &counters[i];
    }
}

void
sl_control_status_encode(const struct sl_control_status *from, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__ControlStatus message = STREAMLUA__CONTROL_STATUS__INIT;
    message.topology = sl_pb_text(from->topology);
    message.state = (Streamlua__TopologyState)from->state;
    message.plan_version = from->plan_version;
    message.is_settled = from->is_settled;
    message.failure = sl_pb_text(from->failure);
    message.event_count = from->event_count;
    message.pid = from->pid;
    message.guardian_pid = from->guardian_pid;
    status_lists_to_message(from, &arena, &message);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

static int
status_lists_from_message(const Streamlua__ControlStatus *message, struct sl_arena *arena,
                          struct sl_control_status *to)
{
    struct sl_control_container *containers =
        sl_arena_calloc(arena, message->n_containers + 1, sizeof(*containers));
    struct sl_control_event *events =
        sl_arena_calloc(arena, message->n_events + 1, sizeof(*events));
    struct sl_worker_counters *counters =
        sl_arena_calloc(arena, message->n_counters + 1, sizeof(*counters));
    if (containers == NULL || events == NULL || counters == NULL) {
        return sl_err_set(SL_ELIMIT, "a status takes too much memory");
    }
    for (size_t i = 0; i < message->n_containers; i++) {
        const Streamlua__ControlContainer *from = message->containers[i];
        containers[i] = (struct sl_control_container){from->id,   from->pid,   from->host,
                                                      from->port, from->state, from->restarts};
    }
    for (size_t i = 0; i < message->n_events; i++) {
        events[i] =
            (struct sl_control_event){message->events[i]->time_ms, message->events[i]->text};
    }
    for (size_t i = 0; i < message->n_counters; i++) {
        const Streamlua__ControlCounters *from = message->counters[i];
        counters[i] =
            (struct sl_worker_counters){from->component, from->executed, from->emitted, from->acked,
                                        from->failed,    from->pending,  from->errors};
    }
    to->containers = containers;
    to->container_count = message->n_containers;
    to->events = events;
    to->shown_events = message->n_events;
    to->counters = counters;
    to->counter_count = message->n_counters;
    return 0;
}

int
sl_control_status_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_control_status *to)
{
    Streamlua__ControlStatus *message;
    int rc = sl_message_unpack(&streamlua__control_status__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return sl_err_wrap("decode a status");
    }
    *to = (struct sl_control_status){
        .topology = message->topology,
        .state = (enum sl_topology_state)message->state,
        .plan_version = message->plan_version,
        .is_settled = message->is_settled,
        .failure = message->failure,
        .event_count = message->event_count,
        .pid = message->pid,
        .guardian_pid = message->guardian_pid,
    };
    rc = check_topology(to->topology, (int)message->state);
    return rc != 0 ? rc : status_lists_from_message(message, arena, to);
}

void
sl_update_request_encode(const struct sl_update_request *from, struct sl_buf *out)
{
    Streamlua__UpdateTopologyRequest message = STREAMLUA__UPDATE_TOPOLOGY_REQUEST__INIT;
    message.current = (ProtobufCBinaryData){from->current_size, SL_PB_MUTABLE(from->current)};
    message.proposed = (ProtobufCBinaryData){from->proposed_size, SL_PB_MUTABLE(from->proposed)};
    message.lock_timeout_ms = from->lock_timeout_ms;
    message.drain_timeout_ms = from->drain_timeout_ms;
    message.start_timeout_ms = from->start_timeout_ms;
    message.is_dry_run = from->is_dry_run;
    sl_message_pack(&message.base, out);
}

int
sl_update_request_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_update_request *to)
{
    Streamlua__UpdateTopologyRequest *message;
    int rc = sl_message_unpack(&streamlua__update_topology_request__descriptor, data, size, &limits,
                               arena, &message);
    if (rc == 0) {
        *to = (struct sl_update_request){
            .current = message->current.data,
            .current_size = message->current.len,
            .proposed = message->proposed.data,
            .proposed_size = message->proposed.len,
            .lock_timeout_ms = message->lock_timeout_ms,
            .drain_timeout_ms = message->drain_timeout_ms,
            .start_timeout_ms = message->start_timeout_ms,
            .is_dry_run = message->is_dry_run,
        };
    }
    return rc;
}

void
sl_update_result_encode(const struct sl_update_result *from, struct sl_buf *out)
{
    Streamlua__UpdateTopologyResult message = STREAMLUA__UPDATE_TOPOLOGY_RESULT__INIT;
    message.outcome = (Streamlua__UpdateOutcome)from->outcome;
    message.code = from->code;
    message.reason = sl_pb_text(from->reason);
    message.from_version = from->from_version;
    message.to_version = from->to_version;
    message.paused_ms = from->paused_ms;
    message.total_ms = from->total_ms;
    message.groups_moved = from->groups_moved;
    message.bytes_moved = from->bytes_moved;
    sl_message_pack(&message.base, out);
}

int
sl_update_result_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_update_result *to)
{
    Streamlua__UpdateTopologyResult *message;
    int rc = sl_message_unpack(&streamlua__update_topology_result__descriptor, data, size, &limits,
                               arena, &message);
    if (rc == 0) {
        *to = (struct sl_update_result){
            .outcome = (enum sl_update_outcome)message->outcome,
            .code = message->code,
            .reason = message->reason,
            .from_version = message->from_version,
            .to_version = message->to_version,
            .paused_ms = message->paused_ms,
            .total_ms = message->total_ms,
            .groups_moved = message->groups_moved,
            .bytes_moved = message->bytes_moved,
        };
    }
    return rc;
}
