#pragma once
/*
 * What clients and topology masters say to the leading master, and what it keeps
 * (proto/master.proto), as plain structs.
 *
 *     method (rpc/messages.h)   body                      answer
 *     SL_MASTER_SUBMIT          sl_master_piece of an     empty: it is stored and its topology
 *                               sl_master_submit          master was started; of a dry run the
 *                                                         bytes of the plan
 *     SL_MASTER_UPDATE          sl_master_piece of an     sl_master_update_result
 *                               sl_master_update
 *     SL_MASTER_KILL            sl_master_kill            empty: nothing is left of it
 *     SL_MASTER_STATUS          none                      sl_master_status
 *     SL_MASTER_REASSIGN        sl_master_reassign        empty: the plan was changed
 *
 * A request that comes in pieces is answered with the last of them; the others with nothing. The
 * endpoint is SL_ENDPOINT_MASTER; its token is the master's term, which is also the resource
 * manager's.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/control.h"
#include "scheduling/scheduling.h"

enum {
    SL_MASTER_FORMAT = 1,
    /* Bytes of a request that comes in pieces, and of a piece. */
    SL_MASTER_REQUEST_MAX = 160 * 1024 * 1024,
    SL_MASTER_PIECE_MAX = 512 * 1024,
    SL_MASTER_NAMES_MAX = 65536,
};

struct sl_master_piece {
    uint64_t id;
    uint64_t total;
    uint64_t offset;
    const uint8_t *data;
    size_t size;
};

/* How a topology wants to be scheduled. The request has no tasks: all ranges of tasks are empty; no
 * supervisors, nothing previous, dead or unstopped, and no containers. */
struct sl_schedule_template {
    /* enum sl_sched_scheduler. */
    int32_t scheduler;
    struct sl_sched_request request;
};

struct sl_master_submit {
    const char *topology;
    const uint8_t *definition;
    size_t definition_size;
    /* Bytes of a code package, a stored plan and a template. */
    const uint8_t *package;
    size_t package_size;
    const uint8_t *plan;
    size_t plan_size;
    const uint8_t *schedule;
    size_t schedule_size;
    const char *cwd;
    const char *user;
    const char *host;
    bool is_active;
    uint64_t time_limit_ms;
    bool is_dry_run;
};

struct sl_master_update {
    const char *topology;
    const uint8_t *current;
    size_t current_size;
    const uint8_t *proposed;
    size_t proposed_size;
    const uint8_t *schedule;
    size_t schedule_size;
    /* enum sl_sched_mode: keep, reassign or minimal. */
    int32_t mode;
    uint64_t lock_timeout_ms;
    uint64_t drain_timeout_ms;
    bool is_dry_run;
};

struct sl_master_update_result {
    /* Bytes of an sl_update_result (none of a dry run) and of the plan. */
    const uint8_t *result;
    size_t result_size;
    const uint8_t *proposed;
    size_t proposed_size;
};

struct sl_master_kill {
    const char *topology;
    uint64_t wait_ms;
    bool is_purged;
};

struct sl_master_reassign {
    const char *topology;
    uint64_t plan_version;
    const int32_t *containers;
    size_t count;
    const char *cause;
};

struct sl_master_slot {
    uint32_t port;
    const char *topology;
};

struct sl_master_supervisor {
    const char *id;
    const char *host;
    const struct sl_master_slot *slots;
    size_t slot_count;
    bool is_registered;
};

struct sl_master_topology {
    const char *topology;
    const char *status;
    uint64_t plan_version;
    const char *supervisor;
    uint32_t port;
};

struct sl_master_status {
    const char *master;
    const struct sl_master_supervisor *supervisors;
    size_t supervisor_count;
    const struct sl_master_topology *topologies;
    size_t topology_count;
};

struct sl_master_start {
    int32_t task;
    int64_t started_ms;
};

/* Node /schedulings/NAME. */
struct sl_scheduling {
    const char *topology_id;
    const uint8_t *schedule;
    size_t schedule_size;
    /* 0: it is not being killed. */
    int64_t kill_due_ms;
    bool is_purged;
    /* When each task was assigned to its slot. */
    const struct sl_master_start *starts;
    size_t start_count;
    /* Silence after which what runs somewhere counts as gone. */
    uint64_t timeout_ms;
};

void sl_master_piece_encode(const struct sl_master_piece *message, struct sl_buf *out);
void sl_schedule_template_encode(const struct sl_schedule_template *message, struct sl_buf *out);
void sl_master_submit_encode(const struct sl_master_submit *message, struct sl_buf *out);
void sl_master_update_encode(const struct sl_master_update *message, struct sl_buf *out);
void sl_master_update_result_encode(const struct sl_master_update_result *message,
                                    struct sl_buf *out);
void sl_master_kill_encode(const struct sl_master_kill *message, struct sl_buf *out);
void sl_master_reassign_encode(const struct sl_master_reassign *message, struct sl_buf *out);
void sl_master_status_encode(const struct sl_master_status *message, struct sl_buf *out);
void sl_scheduling_encode(const struct sl_scheduling *message, struct sl_buf *out);
void sl_assignment_backup_encode(const uint8_t *plan, size_t size, struct sl_buf *out);

/* Decoders: 0, SL_EPROTO or SL_ELIMIT; everything lies in the arena. Names are checked as names. */
int sl_master_piece_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_master_piece *message);
int sl_schedule_template_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                                struct sl_schedule_template *message);
int sl_master_submit_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_master_submit *message);
int sl_master_update_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_master_update *message);
int sl_master_update_result_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                                   struct sl_master_update_result *message);
int sl_master_kill_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_master_kill *message);
int sl_master_reassign_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_master_reassign *message);
int sl_master_status_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_master_status *message);
int sl_scheduling_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_scheduling *message);
/* *plan: the bytes of a stored plan. */
int sl_assignment_backup_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                                const uint8_t **plan, size_t *plan_size);
