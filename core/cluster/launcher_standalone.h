#pragma once
/*
 * The standalone launcher: containers run in the slots that the plan names. It asks the resource
 * manager for each of them; when the supervisor offers the slot, the supervisor is told to start
 * the worker.
 *
 *     WAITING --slot--> STARTING --the supervisor answers--> RUNNING
 *        ^--a while later--- FAILED <--the slot is refused, lost, or can not run the worker
 *
 * Supervisors keep the processes running by themselves. A slot that is lost says nothing about its
 * process, which may run on while its supervisor is away. A container that can not run where it is
 * is reported to the leading master, which may put it elsewhere, and tried again meanwhile.
 */

#include "cluster/launcher.h"
#include "rpc/rpc.h"
#include "state/state.h"

struct sl_launcher_standalone;
struct sl_settings;

enum {
    /* Before a slot is asked for again, the first time and at most. */
    SL_STANDALONE_RETRY_MS = 200,
    SL_STANDALONE_RETRY_MAX_MS = 5000,
    /* How long a supervisor may take to end a worker. */
    SL_STANDALONE_STOP_MS = 10000,
};

struct sl_launcher_standalone_options {
    /* Listening. */
    struct sl_rpc *rpc;
    struct sl_state_store *store;
    /* Copied. */
    const char *topology;
    /* Borrowed. */
    const struct sl_settings *settings;
    /* The topology master can not go on, since the resource manager refuses it. */
    void (*on_fatal)(void *ctx, const char *reason);
    void *ctx;
};

struct sl_launcher_standalone *
sl_launcher_standalone_new(const struct sl_launcher_standalone_options *options);

/* Workers run on; supervisors offer their slots to the next term. NULL is fine. */
void sl_launcher_standalone_free(struct sl_launcher_standalone *launcher);

/* The seam for the topology master. */
struct sl_launcher sl_launcher_standalone_seam(struct sl_launcher_standalone *launcher);
