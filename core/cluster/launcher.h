#pragma once
/*
 * How containers become processes: the seam between a topology master and what it runs on. The
 * local launcher (launcher_local.h) starts child processes; others may hand containers to a batch
 * system, where ids are remapped and starting is slow. "Running" always means that the worker has
 * registered; the launcher only tells what ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_execution_state;
struct sl_plan_slot;
struct sl_register_peer;
struct sl_stored_plan;

/* Told on the loop, never inside a call of the launcher's. */
struct sl_launcher_listener {
    /* The process of a container ended without being asked to. It is started again by the launcher;
     * text says how it ended. */
    void (*on_ended)(void *ctx, int32_t container, const char *text);
    /* A container can not run at present, and nothing else is left to try; the launcher goes on
     * trying. */
    void (*on_stuck)(void *ctx, int32_t container, const char *text);
    /* Every container that was to end has ended, after stop_all. */
    void (*on_all_stopped)(void *ctx);
    /* What said SL_EAGAIN is to be asked for once more. */
    void (*on_progress)(void *ctx);
    void *ctx;
};

struct sl_launcher {
    /* Once, before anything else, with the term of the topology master. What runs already is taken
     * over. */
    int (*initialize)(void *self, const struct sl_execution_state *execution, uint64_t token,
                      const struct sl_launcher_listener *listener);
    /*
     * Starts containers of a plan, which names their slots, those that run already excepted. The
     * real ids are written over the asked ones. The first call, with all containers of the plan,
     * keeps their ids. Later ones may take their time: SL_EAGAIN, then on_progress, and then the
     * same call gives what it came to.
     */
    int (*add_containers)(void *self, const struct sl_stored_plan *plan, int32_t *ids,
                          size_t count);
    /* Ends containers; unknown ones are ignored. */
    void (*remove_containers)(void *self, const int32_t *ids, size_t count);
    /* Ends the process of a container and starts it anew at once. SL_ENOTFOUND. */
    int (*restart_container)(void *self, int32_t id);
    /* Ends everything; on_all_stopped follows. */
    void (*stop_all)(void *self);
    /* May the process that registers be the worker of its container, which the plan puts there? */
    bool (*is_worker)(void *self, const struct sl_plan_slot *slot,
                      const struct sl_register_peer *worker);
    /* An update is to begin; an error refuses it, SL_EAGAIN is as above. NULL: any may. */
    int (*prepare_update)(void *self, const struct sl_stored_plan *current,
                          const struct sl_stored_plan *proposed);
    /* The process id of a container, 0 when it is not known; and how often it was restarted. */
    uint64_t (*pid)(void *self, int32_t id);
    uint32_t (*restarts)(void *self, int32_t id);
    /* Updates that need other containers are refused before anything is touched. */
    bool can_not_scale;
    void *self;
};
