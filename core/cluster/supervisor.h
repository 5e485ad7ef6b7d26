#pragma once
/*
 * A supervisor: it makes itself known in the state manager (node /supervisors/ID, two of one id are
 * refused), registers its slots at the leading master, offers them to topology masters, and runs
 * what they and the master ask for.
 *
 *     CLAIMING --the node is ours--> RUNNING --told to end, or it can not go on--> over
 *
 * Its processes outlive it: see supervisor_processes.h.
 */

#include "cluster/supervisor_processes.h"
#include "rpc/rpc.h"
#include "state/state.h"

struct sl_settings;
struct sl_supervisor;

enum {
    /* The first slot without --ports, and how many there are. */
    SL_SUPERVISOR_FIRST_PORT = 6800,
    SL_SUPERVISOR_SLOTS = 4,
    /* How long the node of an earlier process may stay when that process can not be looked at. */
    SL_SUPERVISOR_CLAIM_MS = 30000,
};

struct sl_supervisor_options {
    /* Listening; its first address is published. */
    struct sl_rpc *rpc;
    struct sl_state_store *store;
    struct sl_supervisor_program program;
    const uint32_t *ports;
    size_t port_count;
    double cpu_cores;
    int64_t ram_bytes;
    bool is_drained;
    /* Borrowed. */
    const struct sl_settings *settings;
    uint64_t pid;
    /* Of processes, as in supervisor_processes.h. */
    const struct sl_adopter *adopter;
    uint64_t (*process_start)(int64_t pid);
    const char *boot_id;
    /* It can not go on: code is an SL_E code. Free it then. */
    void (*on_end)(void *ctx, int code, const char *reason);
    void *ctx;
};

/* Starts to claim its id. SL_EINVAL: no slots, or one twice. */
int sl_supervisor_new(const struct sl_supervisor_options *options,
                      struct sl_supervisor **supervisor);

/* Says goodbye; processes run on. NULL is fine. */
void sl_supervisor_free(struct sl_supervisor *supervisor);

/* Ends all processes; done(arg) is called, never inside, when nothing runs. */
void sl_supervisor_stop_processes(struct sl_supervisor *supervisor, sl_loop_fn done, void *arg);

/* Registered at a resource manager? For tests. */
bool sl_supervisor_is_registered(const struct sl_supervisor *supervisor);
