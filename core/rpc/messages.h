#pragma once
/*
 * What the roles say to each other, as plain structs: the methods of every endpoint and their
 * bodies, with encoders and decoders. Texts of a decoded message lie in the arena.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "rpc/profile.h"

enum {
    /* Slots and allocations of one message. */
    SL_SLOTS_MAX = 4096,
    SL_REASON_SIZE = 256,
    SL_WORKER_IDENTITY_SIZE = 16,
};

/* Names of the endpoints. A topology master has two, each followed by its topology: one for workers
 * and clients, and one for those who deal in slots: supervisors and the resource manager. */
#define SL_ENDPOINT_RESOURCE_MANAGER "resource_manager"
#define SL_ENDPOINT_MASTER "master"
#define SL_ENDPOINT_SUPERVISOR "supervisor"
#define SL_ENDPOINT_WORKER "worker"
#define SL_ENDPOINT_TOPOLOGY_MASTER "topology_master/"
#define SL_ENDPOINT_TOPOLOGY_SLOTS "topology_slots/"

/* The numbers are part of the protocol: they are never reused. */
enum sl_method {
    /* Endpoint of the resource manager. */
    SL_RM_REGISTER_SUPERVISOR = 1,
    SL_RM_REGISTER_TOPOLOGY_MASTER = 2,
    SL_RM_SLOT_REPORT = 3,
    SL_RM_SLOT_AVAILABLE = 4,
    SL_RM_REQUEST_SLOT = 5,
    SL_RM_CANCEL_SLOT = 6,
    SL_RM_DISCONNECT_SUPERVISOR = 7,
    SL_RM_DISCONNECT_TOPOLOGY_MASTER = 8,
    /* Endpoints of a topology master. */
    SL_TM_REGISTER_SUPERVISOR = 20,
    SL_TM_REGISTER_WORKER = 21,
    SL_TM_OFFER_SLOTS = 22,
    SL_TM_FAIL_SLOT = 23,
    SL_TM_ALLOCATION_FAILED = 24,
    SL_TM_DISCONNECT_SUPERVISOR = 25,
    SL_TM_DISCONNECT_RESOURCE_MANAGER = 26,
    SL_TM_HEARTBEAT = 27,
    SL_TM_IDENTIFY = 28,
    SL_TM_WORKER_EVENT = 29,
    /* Of clients (core/cluster/control_messages.h). */
    SL_TM_STATUS = 30,
    SL_TM_AWAIT = 31,
    SL_TM_SET_STATE = 32,
    SL_TM_UPDATE = 33,
    SL_TM_RESTART = 34,
    SL_TM_KILL = 35,
    /* A master has written another plan: it is to be read again. The body is empty. */
    SL_TM_PLAN_CHANGED = 36,
    /* Bodies of this and of the last five of a supervisor: core/cluster/supervisor_messages.h. */
    SL_TM_WORKER_STATE = 37,
    /* Endpoint of a supervisor. */
    SL_SV_REQUEST_SLOT = 40,
    SL_SV_FREE_SLOT = 41,
    SL_SV_FREE_INACTIVE_SLOTS = 42,
    SL_SV_CAN_BE_RELEASED = 43,
    SL_SV_DISCONNECT_TOPOLOGY_MASTER = 44,
    SL_SV_DISCONNECT_RESOURCE_MANAGER = 45,
    SL_SV_HEARTBEAT_OF_TOPOLOGY_MASTER = 46,
    SL_SV_HEARTBEAT_OF_RESOURCE_MANAGER = 47,
    SL_SV_IDENTIFY = 48,
    SL_SV_START_MASTER = 49,
    SL_SV_STOP_MASTER = 50,
    SL_SV_START_WORKER = 51,
    SL_SV_RESTART_WORKER = 52,
    SL_SV_STOP_WORKER = 53,
    SL_SV_RESTART_MASTER = 54,
    SL_SV_READ_LOG = 55,
    /* Endpoint of a worker. */
    SL_WORKER_HEARTBEAT = 60,
    SL_WORKER_DISCONNECT = 61,
    /* Bodies in core/cluster/worker_messages.h; the plan is a PhysicalPlan. */
    SL_WORKER_PLAN = 62,
    SL_WORKER_SPOUTS = 63,
    SL_WORKER_DRAIN = 64,
    /* One-way: end the process; the body is a SL_WORKER_DISCONNECT's. */
    SL_WORKER_SHUTDOWN = 67,
    SL_WORKER_MEASURE = 68,
    SL_WORKER_MOVE = 69,
    SL_WORKER_MOVED = 70,
    /* Endpoint of the leading master (core/cluster/master_messages.h). */
    SL_MASTER_SUBMIT = 80,
    SL_MASTER_UPDATE = 81,
    SL_MASTER_KILL = 82,
    SL_MASTER_STATUS = 83,
    SL_MASTER_REASSIGN = 84,
};

struct sl_hardware {
    double cpu_cores;
    double ram_bytes;
    const char *os;
};

struct sl_register_supervisor {
    const char *address;
    const char *resource;
    uint64_t process;
    uint64_t attempt;
    uint32_t data_port;
    struct sl_hardware hardware;
    struct sl_profile default_profile;
    struct sl_profile total_profile;
};

struct sl_register_topology_master {
    const char *topology;
    const char *address;
    const char *resource;
    uint64_t process;
    uint64_t attempt;
    uint64_t token;
};

/* A supervisor or a worker at a topology master. */
struct sl_register_peer {
    const char *topology;
    const char *address;
    const char *resource;
    uint64_t process;
    uint64_t attempt;
    const char *supervisor;
    uint32_t port;
    const char *data_address;
    /* Of a worker: its container (0: none), random bytes that name its process (all 0: none), its
     * process id, and the version of the plan that its tasks run. */
    int32_t container;
    uint8_t identity[SL_WORKER_IDENTITY_SIZE];
    uint64_t pid;
    uint64_t plan_version;
};

struct sl_registered {
    const char *resource;
    uint64_t instance;
    uint64_t token;
};

struct sl_disconnect {
    const char *resource;
    const char *topology;
    uint64_t token;
    const char *cause;
};

struct sl_heartbeat {
    const char *resource;
    const uint8_t *payload;
    size_t size;
};

/* NULL texts are written as "", and "" is what a decoder gives for a text that is not there. */
void sl_register_supervisor_encode(const struct sl_register_supervisor *message,
                                   struct sl_buf *out);
void sl_register_topology_master_encode(const struct sl_register_topology_master *message,
                                        struct sl_buf *out);
void sl_register_peer_encode(const struct sl_register_peer *message, struct sl_buf *out);
void sl_registered_encode(const struct sl_registered *message, struct sl_buf *out);
void sl_disconnect_encode(const struct sl_disconnect *message, struct sl_buf *out);
void sl_heartbeat_encode(const struct sl_heartbeat *message, struct sl_buf *out);

/*
 * Decoders: 0, SL_EPROTO or SL_ELIMIT. Names are checked as names (sl_name_check), so that nothing
 * behind them has to.
 */
int sl_register_supervisor_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                                  struct sl_register_supervisor *message);
int sl_register_topology_master_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                                       struct sl_register_topology_master *message);
int sl_register_peer_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_register_peer *message);
int sl_registered_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_registered *message);
int sl_disconnect_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_disconnect *message);
int sl_heartbeat_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_heartbeat *message);

struct sl_slot_request {
    const char *topology;
    uint64_t allocation;
    struct sl_profile profile;
    const char *master_address;
    /* The slot that the plan names; "" for any. */
    const char *supervisor;
    uint32_t port;
    uint64_t timeout_ms;
    uint64_t token;
};

struct sl_slot_status {
    uint32_t port;
    struct sl_profile profile;
    /* "" and 0 when the slot is free. */
    const char *topology;
    uint64_t allocation;
};

/* A slot report, offers, or the slots that a topology master holds at a supervisor. */
struct sl_slot_list {
    const char *resource;
    uint64_t instance;
    const char *topology;
    const struct sl_slot_status *slots;
    size_t count;
    /* Of offers: their number; of what is held: the newest offer that was answered by then. */
    uint64_t offer;
};

struct sl_slot_notice {
    const char *resource;
    uint64_t instance;
    const char *topology;
    uint32_t port;
    uint64_t allocation;
    const char *cause;
    uint64_t token;
    bool is_unfulfillable;
};

struct sl_slots_accepted {
    const uint64_t *allocations;
    size_t count;
};

void sl_slot_request_encode(const struct sl_slot_request *message, struct sl_buf *out);
void sl_slot_report_encode(const struct sl_slot_list *message, struct sl_buf *out);
void sl_slot_offers_encode(const struct sl_slot_list *message, struct sl_buf *out);
void sl_allocated_slots_encode(const struct sl_slot_list *message, struct sl_buf *out);
void sl_slot_notice_encode(const struct sl_slot_notice *message, struct sl_buf *out);
void sl_slots_accepted_encode(const struct sl_slots_accepted *message, struct sl_buf *out);

int sl_slot_request_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_slot_request *message);
int sl_slot_report_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_slot_list *message);
int sl_slot_offers_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_slot_list *message);
int sl_allocated_slots_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_slot_list *message);
int sl_slot_notice_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_slot_notice *message);
int sl_slots_accepted_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_slots_accepted *message);
