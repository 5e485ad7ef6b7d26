#pragma once
/*
 * An executor: one thread's share of a worker.  Its Lua driver asks for the next turn, runs it,
 * says that it ended, and asks again; C never calls Lua.  All functions belong to the executor's
 * thread unless said otherwise.  Every error is a negative SL_E code with sl_err_last.
 */

#include "base/err.h"
#include "stream/types.h"

struct sl_executor;
struct sl_worker;

/* Takes the task into this executor and builds its emitters; it runs when it is opened. */
int sl_executor_attach(struct sl_executor *executor, int32_t task, struct sl_task **out);
int sl_executor_detach(struct sl_executor *executor, int32_t task);
/* Builds the emitters of all attached tasks anew. */
int sl_executor_route(struct sl_executor *executor);
int32_t sl_executor_index(const struct sl_executor *executor);
int sl_executor_next(struct sl_executor *executor, struct sl_turn *turn, int32_t may_block);
int sl_executor_nested(struct sl_executor *executor, struct sl_turn *turn, int32_t task);
int sl_executor_await(struct sl_executor *executor, struct sl_turn *turn, struct sl_outbox *outbox,
                      int32_t need, int32_t may_block);
int sl_executor_await_root(struct sl_executor *executor, struct sl_turn *turn, struct sl_task *task,
                           int32_t may_block);
/* User code of a task is called outside of a turn; -1: it has returned. */
void sl_executor_calls(struct sl_executor *executor, int32_t task);
/* The text of the command of this turn, NULL when it has none. */
const char *sl_executor_told(const struct sl_executor *executor, size_t *len);
double sl_executor_now_ms(struct sl_executor *executor);
double sl_executor_due_ms(struct sl_executor *executor);

void sl_batch_end(struct sl_executor *executor, struct sl_turn *turn, int32_t count, uint8_t *head);
int32_t sl_batch_position(struct sl_executor *executor, struct sl_turn *turn);
const char *sl_turn_key(const struct sl_turn *turn, int32_t number, size_t *len);
void sl_spout_end(struct sl_executor *executor, struct sl_turn *turn, int32_t calls, int32_t result,
                  double again_ms);
void sl_turn_end(struct sl_executor *executor, struct sl_turn *turn);

void sl_task_opened(struct sl_task *task);
void sl_task_tick(struct sl_task *task, double period_ms, int32_t is_aligned);
/* Holds (enum sl_hold), or no longer: then tasks whose time came meanwhile tick once. */
void sl_executor_hold(struct sl_executor *self, int32_t hold);
void sl_spout_reopen(struct sl_task *task);
int32_t sl_task_emitter_count(struct sl_task *task);
struct sl_emitter *sl_task_emitter(struct sl_task *task, int32_t at);

int sl_outbox_flush(struct sl_outbox *outbox, int32_t need);
struct sl_outbox *sl_route_next(struct sl_route *route);
struct sl_outbox *sl_route_key(struct sl_route *route, uint64_t hash);
int32_t sl_route_way(struct sl_route *route, const char *key, size_t len, bool is_kept);
void sl_route_forget(struct sl_route *route);
void sl_emitter_clear(struct sl_emitter *emitter);
void sl_emitter_add(struct sl_emitter *emitter, int32_t route);
void sl_emitter_add_key(struct sl_emitter *emitter, int32_t route, uint64_t hash);
int sl_emitter_add_task(struct sl_emitter *emitter, int32_t route, int32_t task);
struct sl_route *sl_emitter_route(struct sl_emitter *emitter, int32_t route);
int sl_emitter_copy(struct sl_task *task, struct sl_emitter *emitter, int32_t at, int32_t bytes);
struct sl_record *sl_task_scratch(struct sl_task *task, int32_t bytes);

int32_t sl_root_open(struct sl_task *task, struct sl_record *record);
int32_t sl_root_begin(struct sl_task *task);
void sl_root_end(struct sl_task *task, int32_t slot);
void sl_roots_release(struct sl_task *task, int32_t count);

void sl_task_anchor(struct sl_task *task, struct sl_record *record);
void sl_task_ack(struct sl_task *task);
void sl_task_fail(struct sl_task *task);
void sl_task_reset(struct sl_task *task);
void sl_task_count_error(struct sl_task *task);
double sl_task_hold(struct sl_task *task);
int sl_held_settle(struct sl_task *task, double handle, int32_t has_failed);
int sl_held_reset(struct sl_task *task, double handle);
void sl_anchors_clear(struct sl_task *task);
void sl_anchors_add_current(struct sl_task *task);
void sl_anchors_add_held(struct sl_task *task, double handle);
