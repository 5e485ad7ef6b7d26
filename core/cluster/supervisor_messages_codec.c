#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cluster/slot_table.h"
#include "cluster/supervisor_messages.h"
#include "supervisor.pb-c.h"
#include "wire/frame.h"
#include "wire/message.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__supervisor_node__descriptor, 5, SL_SLOT_TABLE_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_FRAME_CONTROL_MAX,
    .max_fields = 4 * SL_SLOT_TABLE_MAX,
    SL_PB_COUNTS(counts),
};

static int
check_name(const char *what, const char *name)
{
    return sl_name_check(what, name, strlen(name)) == 0
               ? 0
               : sl_err_set(SL_EPROTO, "a message of a supervisor has a bad %s", what);
}

static bool
is_port(uint32_t port)
{
    return port >= 1 && port <= 65535;
}

void
sl_supervisor_node_encode(const struct sl_supervisor_node *message, struct sl_buf *out)
{
    Streamlua__SupervisorNode packed = STREAMLUA__SUPERVISOR_NODE__INIT;
    packed.format = SL_SUPERVISOR_NODE_FORMAT;
    packed.id = sl_pb_text(message->id);
    packed.host = sl_pb_text(message->host);
    packed.address = sl_pb_text(message->address);
    packed.ports = SL_PB_MUTABLE(message->ports);
    packed.n_ports = message->port_count;
    packed.cpu_cores = message->cpu_cores;
    packed.ram_bytes = message->ram_bytes;
    packed.pid = message->pid;
    packed.start_time = message->start_time;
    packed.is_drained = message->is_drained;
    packed.boot_id = sl_pb_text(message->boot_id);
    sl_message_pack(&packed.base, out);
}

int
sl_supervisor_node_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_supervisor_node *message)
{
    Streamlua__SupervisorNode *packed;
    int rc = sl_message_unpack(&streamlua__supervisor_node__descriptor, data, size, &limits, arena,
                               &packed);
    if (rc != 0) {
        return rc;
    }
    if (packed->format != SL_SUPERVISOR_NODE_FORMAT) {
        return sl_err_set(SL_EPROTO, "a supervisor is of format %u, this program knows %d",
                          packed->format, SL_SUPERVISOR_NODE_FORMAT);
    }
    rc = check_name("name", packed->id);
    for (size_t i = 0; rc == 0 && i < packed->n_ports; i++) {
        if (!is_port(packed->ports[i])) {
            rc = sl_err_set(SL_EPROTO, "supervisor %s has a slot %u", packed->id, packed->ports[i]);
        }
    }
    if (rc == 0 && !(packed->cpu_cores >= 0 && packed->ram_bytes >= 0)) {
        rc = sl_err_set(SL_EPROTO, "supervisor %s has less than nothing", packed->id);
    }
    *message = (struct sl_supervisor_node){.id = packed->id,
                                           .host = packed->host,
                                           .address = packed->address,
                                           .ports = packed->ports,
                                           .port_count = packed->n_ports,
                                           .cpu_cores = packed->cpu_cores,
                                           .ram_bytes = packed->ram_bytes,
                                           .pid = packed->pid,
                                           .start_time = packed->start_time,
                                           .boot_id = packed->boot_id,
                                           .is_drained = packed->is_drained};
    return rc;
}

void
sl_start_master_encode(const struct sl_start_master *message, struct sl_buf *out)
{
    Streamlua__StartMaster packed = STREAMLUA__START_MASTER__INIT;
    packed.topology = sl_pb_text(message->topology);
    packed.port = message->port;
    packed.is_new = message->is_new;
    sl_message_pack(&packed.base, out);
}

int
sl_start_master_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_start_master *message)
{
    Streamlua__StartMaster *packed;
    int rc = sl_message_unpack(&streamlua__start_master__descriptor, data, size, &limits, arena,
                               &packed);
    if (rc == 0) {
        rc = check_name("topology", packed->topology);
    }
    if (rc == 0 && !is_port(packed->port)) {
        rc = sl_err_set(SL_EPROTO, "%u is no port of a slot", packed->port);
    }
    if (rc == 0) {
        *message = (struct sl_start_master){packed->topology, packed->port, packed->is_new};
    }
    return rc;
}

void
sl_worker_command_encode(const struct sl_worker_command *message, struct sl_buf *out)
{
    Streamlua__WorkerCommand packed = STREAMLUA__WORKER_COMMAND__INIT;
    packed.topology = sl_pb_text(message->topology);
    packed.allocation = message->allocation;
    packed.token = message->token;
    packed.container = message->container;
    packed.cwd = sl_pb_text(message->cwd);
    sl_message_pack(&packed.base, out);
}

int
sl_worker_command_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_worker_command *message)
{
    Streamlua__WorkerCommand *packed;
    int rc = sl_message_unpack(&streamlua__worker_command__descriptor, data, size, &limits, arena,
                               &packed);
    if (rc == 0) {
        rc = check_name("topology", packed->topology);
    }
    if (rc == 0 && (packed->allocation == 0 || packed->container < 1)) {
        rc = sl_err_set(SL_EPROTO, "a command to a worker names no slot or container");
    }
    if (rc == 0) {
        *message = (struct sl_worker_command){.topology = packed->topology,
                                              .allocation = packed->allocation,
                                              .token = packed->token,
                                              .container = packed->container,
                                              .cwd = packed->cwd};
    }
    return rc;
}

void
sl_slot_worker_encode(const struct sl_slot_worker *message, struct sl_buf *out)
{
    Streamlua__WorkerState packed = STREAMLUA__WORKER_STATE__INIT;
    packed.resource = sl_pb_text(message->resource);
    packed.topology = sl_pb_text(message->topology);
    packed.allocation = message->allocation;
    packed.container = message->container;
    packed.pid = message->pid;
    packed.restarts = message->restarts;
    packed.text = sl_pb_text(message->text);
    sl_message_pack(&packed.base, out);
}

int
sl_slot_worker_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_slot_worker *message)
{
    Streamlua__WorkerState *packed;
    int rc = sl_message_unpack(&streamlua__worker_state__descriptor, data, size, &limits, arena,
                               &packed);
    if (rc == 0) {
        rc = check_name("topology", packed->topology);
    }
    if (rc == 0) {
        rc = check_name("name", packed->resource);
    }
    if (rc == 0 && packed->container < 1) {
        rc = sl_err_set(SL_EPROTO, "the state of a worker names no container");
    }
    if (rc == 0) {
        *message = (struct sl_slot_worker){.resource = packed->resource,
                                           .topology = packed->topology,
                                           .allocation = packed->allocation,
                                           .container = packed->container,
                                           .pid = packed->pid,
                                           .restarts = packed->restarts,
                                           .text = packed->text};
    }
    return rc;
}

void
sl_read_log_encode(const struct sl_read_log *message, struct sl_buf *out)
{
    Streamlua__ReadLog packed = STREAMLUA__READ_LOG__INIT;
    packed.topology = sl_pb_text(message->topology);
    packed.container = message->container;
    packed.position = message->position;
    packed.is_end = message->is_end;
    packed.wait_ms = message->wait_ms;
    sl_message_pack(&packed.base, out);
}

int
sl_read_log_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                   struct sl_read_log *message)
{
    Streamlua__ReadLog *packed;
    int rc =
        sl_message_unpack(&streamlua__read_log__descriptor, data, size, &limits, arena, &packed);
    if (rc == 0) {
        rc = check_name("topology", packed->topology);
    }
    if (rc == 0 && (packed->container < 1 || packed->position > INT64_MAX ||
                    packed->wait_ms > SL_LOG_WAIT_MAX_MS)) {
        rc = sl_err_set(SL_EPROTO, "a question for a log is out of range");
    }
    if (rc == 0) {
        *message = (struct sl_read_log){packed->topology, packed->container, packed->position,
                                        packed->is_end, packed->wait_ms};
    }
    return rc;
}

void
sl_log_piece_encode(const struct sl_log_piece *message, struct sl_buf *out)
{
    Streamlua__LogPiece packed = STREAMLUA__LOG_PIECE__INIT;
    packed.position = message->position;
    /* protobuf-c does not write to what it packs. */
    packed.data = (ProtobufCBinaryData){message->size, (uint8_t *)message->data};
    sl_message_pack(&packed.base, out);
}

int
sl_log_piece_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                    struct sl_log_piece *message)
{
    Streamlua__LogPiece *packed;
    int rc =
        sl_message_unpack(&streamlua__log_piece__descriptor, data, size, &limits, arena, &packed);
    if (rc == 0) {
        *message = (struct sl_log_piece){packed->position, packed->data.data, packed->data.len};
    }
    return rc;
}
