#pragma once
/*
 * A worker: the executors of one process, the plan of their tasks and streams, and the events they
 * post.  The plan is made before the executors start; while they run, tasks may be added and
 * removed (then every executor is sent SL_COMMAND_ROUTES).  Its owner is one thread, that which
 * made it.
 */

#include "base/err.h"
#include "stream/types.h"

struct sl_executor;
struct sl_worker;

/* The function that a started executor's thread runs; it makes turns until SL_COMMAND_STOP. */
typedef void (*sl_executor_main_fn)(struct sl_worker *worker, struct sl_executor *executor);

/* Makes a worker without tasks; NULL with SL_EINVAL. */
struct sl_worker *sl_worker_new(const struct sl_worker_options *options);
/* Ends it; its executors must have stopped. NULL is fine. */
void sl_worker_free(struct sl_worker *self);

/* The plan. Each returns the new index (>= 0) or an error. */
int sl_worker_component(struct sl_worker *self, const char *name, int32_t kind, int32_t rank,
                        int32_t scc);
int sl_worker_stream(struct sl_worker *self, int32_t component, const char *name,
                     int32_t field_count, int32_t is_direct);
int sl_worker_reader(struct sl_worker *self, int32_t stream, int32_t component, int32_t grouping,
                     const int32_t *keys, int32_t key_count);
/* owners[group] = id of a task of the component. */
int sl_worker_groups(struct sl_worker *self, int32_t component, const int32_t *owners,
                     int32_t count);
/* Any thread: how many key groups a component has, 0 = it is not keyed. */
int32_t sl_worker_group_count(struct sl_worker *self, int32_t component);
int sl_worker_task(struct sl_worker *self, int32_t component, int32_t id, int32_t index,
                   int32_t executor);
/*
 * Says in which other process a task is that was planned for executor `executor_count`: the number
 * of a peer of stream/remote.h.  Said again, also of the same one, when that process was replaced:
 * with the next SL_COMMAND_ROUTES ends of input are told to it anew.
 */
int sl_worker_place(struct sl_worker *self, int32_t id, int32_t peer);
/*
 * Moves a task of this process to another one: as sl_worker_remove_task of the one here, while the
 * plan goes on to name it, there.  SL_ENOTFOUND.
 */
int sl_worker_move_task(struct sl_worker *self, int32_t id, int32_t peer);
/*
 * Takes a task out of the plan: it gets no more tuples as soon as the others have new routes, and
 * may then be detached, which SL_COMMAND_REMOVE_TASK has its executor do when it is drained. Until
 * that has happened its id is taken.  An acker goes on counting as one: it has to be planned again,
 * and one that runs here can only be moved (SL_EINVAL).
 */
int sl_worker_remove_task(struct sl_worker *self, int32_t id);
/* Any thread: where a task of the plan belongs, or SL_ENOTFOUND. */
int sl_worker_planned(struct sl_worker *self, int32_t id, struct sl_planned *out);
/*
 * Any thread: the ids of a component's tasks in ascending order, at most `capacity` of them.
 * Returns how many there are.
 */
int sl_worker_tasks(struct sl_worker *self, int32_t component, int32_t *ids, int32_t capacity);

struct sl_executor *sl_worker_executor(struct sl_worker *self, int32_t index);
int32_t sl_worker_executor_count(const struct sl_worker *self);
void sl_worker_set_boot(struct sl_worker *self, const char *text, size_t len);
const char *sl_worker_boot(const struct sl_worker *self, size_t *len);

/* Starts one thread an executor, each running `main`. */
int sl_worker_start(struct sl_worker *self, sl_executor_main_fn main);
/* Joins the threads; they must have been told to stop. */
void sl_worker_join(struct sl_worker *self);
int sl_worker_command(struct sl_worker *self, int32_t executor, int32_t command, int32_t argument);

/* As sl_worker_command, with a text for SL_COMMAND_TELL. */
int sl_worker_tell(struct sl_worker *self, int32_t executor, int32_t argument, const char *text,
                   size_t len);

/* Waits up to timeout_ms for an event; 1 and *out, or 0. Negative timeouts wait for ever. */
int sl_worker_wait(struct sl_worker *self, double timeout_ms, struct sl_event *out);
/* Any thread. */
void sl_worker_post(struct sl_worker *self, int32_t kind, int32_t task, int32_t executor,
                    const char *text, size_t len);
/* Has every event call wake(ctx) too, on the thread that posts it; NULL: none. An owner that waits
 * for something else as well is woken by it. */
void sl_worker_set_wake(struct sl_worker *self, void (*wake)(void *ctx), void *ctx);
/* Async-signal-safe: wakes a waiting owner, which then sees an SL_EVENT_SIGNAL. */
void sl_worker_signal(struct sl_worker *self, int signal_number);

int sl_worker_stats(struct sl_worker *self, int32_t task, struct sl_task_stats *out);
/* What is under way in this process: roots of its spouts that have not ended, and tuples that wait
 * for its tasks, with one for every executor that is not at rest. Other processes are not seen. */
struct sl_worker_load {
    uint64_t roots;
    uint64_t waiting;
};
void sl_worker_load(struct sl_worker *self, struct sl_worker_load *out);
int32_t sl_worker_component_count(struct sl_worker *self);
/* The name of a component, which lives as long as the worker; NULL = there is none. */
const char *sl_worker_component_name(struct sl_worker *self, int32_t component);
/* The sums of the counters of those tasks of a component that were removed. */
int sl_worker_gone_stats(struct sl_worker *self, int32_t component, struct sl_task_stats *out);
/* The user code an executor is in now. */
void sl_worker_busy(struct sl_worker *self, int32_t executor, struct sl_busy *out);
/* Quantile (0..1) in milliseconds of the complete latency of all spouts; -1 = none recorded. The
 * executors must have stopped. */
double sl_worker_latency_ms(struct sl_worker *self, double quantile);
int32_t sl_worker_dropped_in_cycles(const struct sl_worker *self);
/* Manual clock only. */
int sl_worker_advance(struct sl_worker *self, double ms);
double sl_worker_now_ms(const struct sl_worker *self);
