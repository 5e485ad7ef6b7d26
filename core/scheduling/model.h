#pragma once
/*
 * A request made ready for the schedulers: everything sorted and indexed, so that no answer depends
 * on the order of the request's lists.
 *
 *   task   dense index 0.. in order of task ids
 *   sup    rank of a supervisor in order of ids; its ports ascend
 *   old    rank of a previous worker in order of (supervisor id, port)
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "scheduling/scheduling.h"

enum { SL_SCHED_NONE = 0xffffffffu };

/* A node and what is still free on it. */
struct sl_sched_sup {
    const char *id;
    const char *host;
    /* Ascending, no doubles. */
    uint32_t *ports;
    /* One flag a port: taken by somebody. */
    bool *taken;
    uint32_t port_count;
    uint32_t free_count;
    /* No port before this one is free. */
    uint32_t cursor;
    /* What is left; negative = not stated. */
    double cpu;
    double ram;
    /* False when isolation leaves it out. */
    bool is_usable;
};

struct sl_sched_old {
    const char *supervisor;
    const char *host;
    uint32_t port;
    /* Rank of the supervisor, or SL_SCHED_NONE when it is gone. */
    uint32_t sup;
    /* Its tasks that still exist, ascending: a range in model.old_tasks. */
    uint32_t first_task;
    uint32_t task_count;
    double cpu;
    double ram;
    /* Holds a dead task: the whole worker is dead. */
    bool is_dead;
    /* Holds a task that runs on although its supervisor is gone. */
    bool is_unstopped;
};

struct sl_sched_model {
    const struct sl_sched_request *request;
    struct sl_arena arena;

    uint32_t task_count;
    uint32_t *task_ids;
    uint32_t *task_component;
    /* Rank of the previous worker of a task, or SL_SCHED_NONE. */
    uint32_t *task_old;
    /* Dead after refining; a dead task is never unstopped. */
    bool *is_dead;
    bool *is_unstopped;

    /* Component -> its tasks, ascending: comp_tasks[comp_first[c] .. comp_first[c + 1]). */
    uint32_t component_count;
    uint32_t *comp_first;
    uint32_t *comp_tasks;
    /* Component -> related ones (a bolt's inputs, a spout's readers): rel[rel_first[c] ..). */
    uint32_t *rel_first;
    uint32_t *rel;
    /* Components on different nodes. */
    bool *is_spread;
    bool has_spread;
    /* The topology master's task and component, or SL_SCHED_NONE. */
    uint32_t master;

    struct sl_sched_sup *sups;
    uint32_t sup_count;

    struct sl_sched_old *olds;
    uint32_t *old_tasks;
    uint32_t old_count;
};

/*
 * Builds the model of a request, which must outlive it. Returns 0, SL_EINVAL (the request is not
 * consistent) or SL_EUNSATISFIABLE (isolation matches no host). Destroy it in any case.
 */
int sl_sched_model_create(struct sl_sched_model *model, const struct sl_sched_request *request);
void sl_sched_model_destroy(struct sl_sched_model *model);

/* The dense index of a task id, or SL_SCHED_NONE. */
uint32_t sl_sched_model_task(const struct sl_sched_model *model, uint32_t id);

/* The rank of a supervisor id, or SL_SCHED_NONE. */
uint32_t sl_sched_model_sup(const struct sl_sched_model *model, const char *id);

/* True for __acker and the topology master: assigned last, no regard to relations. */
bool sl_sched_model_is_system(const struct sl_sched_model *model, uint32_t component);

/* The name of a component. */
const char *sl_sched_model_name(const struct sl_sched_model *model, uint32_t component);

/* The position of a port in the supervisor's list, or SL_SCHED_NONE. */
uint32_t sl_sched_sup_port(const struct sl_sched_sup *sup, uint32_t port);

/* True when the port exists and is free. */
bool sl_sched_sup_is_free(const struct sl_sched_sup *sup, uint32_t port);

/* True when cpu and ram still fit; negative needs are unknown and take nothing. */
bool sl_sched_sup_fits(const struct sl_sched_sup *sup, double cpu, double ram);

/* How many more workers of that size the supervisor takes: free ports, less when cpu or ram end. */
uint32_t sl_sched_sup_room(const struct sl_sched_sup *sup, double cpu, double ram);

/* Takes a free port: 0; SL_ENOTFOUND: no such port; SL_EEXIST: taken. */
int sl_sched_sup_take(struct sl_sched_sup *sup, uint32_t port, double cpu, double ram);

/* Takes the first free port and returns it; there must be one. */
uint32_t sl_sched_sup_take_first(struct sl_sched_sup *sup, double cpu, double ram);

/* Marks a port as taken if it exists; resources stay. */
void sl_sched_sup_mark(struct sl_sched_sup *sup, uint32_t port);

/* Takes cpu and ram away without a port. */
void sl_sched_sup_charge(struct sl_sched_sup *sup, double cpu, double ram);
