#pragma once
/*
 * Client-side launchers: how the commands submit, update, kill and restart are carried out on what
 * the cluster runs on. `local` starts processes of this machine, `standalone` asks the leading
 * master. In library mode a command loads
 * the launcher of the setting `launcher`, initializes it once, calls one of its functions and
 * closes it, however that ended. In service mode only submit does so (scheduler_client.h).
 *
 * A launcher works with the command's runtime manager: its connection, its loop, its steps
 * (runtime_priv.h). Its functions block until they are done.
 */

#include "cluster/runtime_manager.h"

struct sl_client_launcher {
    /* Once, before anything else. */
    int (*initialize)(void *self, struct sl_runtime *runtime);
    /*
     * Stores the topology, has it started and waits until it is settled. What fails leaves nothing
     * behind; SL_ETIMEOUT: it goes on starting. SL_EEXIST, SL_EUSER.
     */
    int (*on_schedule)(void *self, const struct sl_runtime_submission *submission);
    /* *result is valid until the runtime manager's next call. An error: nothing was touched. */
    int (*on_update)(void *self, const struct sl_runtime_change *change,
                     const struct sl_update_result **result);
    /* Ends the topology and whatever is left of it. SL_ENOTFOUND when there is no trace. */
    int (*on_kill)(void *self, const struct sl_runtime_kill *kill);
    int (*on_restart)(void *self, const char *topology, int32_t container, uint64_t timeout_ms);
    /* Always, also when initialize failed. Frees the launcher. */
    void (*close)(void *self);
    /* Slots are chosen by on_update, of which a dry run tells them. */
    bool is_scheduling;
    void *self;
};

/* The launcher of a name ("local"), or of a Lua file. SL_EINVAL when there is none. */
int sl_client_launcher_open(const char *name, struct sl_client_launcher *launcher);

/* Those that are built in. */
void sl_client_launcher_local(struct sl_client_launcher *launcher);
void sl_client_launcher_standalone(struct sl_client_launcher *launcher);
