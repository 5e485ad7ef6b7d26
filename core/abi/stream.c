/* The engine for Lua: each function checks what a script could get wrong and calls room stream. */

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/abi.h"
#include "abi/engine.h"
#include "base/clock.h"
#include "base/hash.h"
#include "stream/executor.h"
#include "stream/worker.h"

/* What a script could get wrong with ffi alone; the room checks ids, numbers and states itself. */
static int
missing(void)
{
    return sl_err_set(SL_EINVAL, "a pointer is NULL");
}

struct sl_worker *
sl_abi_worker_new(const struct sl_worker_options *options)
{
    if (options == NULL) {
        missing();
        return NULL;
    }
    return sl_worker_new(options);
}

/* The worker whose owner hears of signals; a process has one at a time. */
static struct sl_worker *signal_worker;

void
sl_abi_worker_free(struct sl_worker *worker)
{
    struct sl_worker *expected = worker;
    if (worker != NULL) {
        __atomic_compare_exchange_n(&signal_worker, &expected, NULL, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
    }
    sl_worker_free(worker);
}

int
sl_abi_worker_component(struct sl_worker *worker, const char *name, int32_t kind, int32_t rank,
                        int32_t scc)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_component(worker, name, kind, rank, scc);
}

int
sl_abi_worker_stream(struct sl_worker *worker, int32_t component, const char *name,
                     int32_t field_count, int32_t is_direct)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_stream(worker, component, name, field_count, is_direct);
}

int
sl_abi_worker_reader(struct sl_worker *worker, int32_t stream, int32_t component, int32_t grouping,
                     const int32_t *keys, int32_t key_count)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_reader(worker, stream, component, grouping, keys, key_count);
}

int
sl_abi_worker_groups(struct sl_worker *worker, int32_t component, const int32_t *owners,
                     int32_t count)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_groups(worker, component, owners, count);
}

int
sl_abi_worker_task(struct sl_worker *worker, int32_t component, int32_t id, int32_t index,
                   int32_t executor)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_task(worker, component, id, index, executor);
}

int
sl_abi_worker_remove_task(struct sl_worker *worker, int32_t id)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_remove_task(worker, id);
}

int
sl_abi_worker_place(struct sl_worker *worker, int32_t id, int32_t container)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_place(worker, id, container);
}

int
sl_abi_worker_move_task(struct sl_worker *worker, int32_t id, int32_t container)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_move_task(worker, id, container);
}

int32_t
sl_abi_worker_group_count(struct sl_worker *worker, int32_t component)
{
    if (worker == NULL) {
        return 0;
    }
    return sl_worker_group_count(worker, component);
}

int
sl_abi_worker_tell(struct sl_worker *worker, int32_t executor, int32_t argument, const char *text,
                   size_t len)
{
    if (worker == NULL || (text == NULL && len > 0)) {
        return missing();
    }
    return sl_worker_tell(worker, executor, argument, text, len);
}

int
sl_abi_worker_planned(struct sl_worker *worker, int32_t task, struct sl_planned *planned)
{
    if (worker == NULL || planned == NULL) {
        return missing();
    }
    return sl_worker_planned(worker, task, planned);
}

int
sl_abi_worker_tasks(struct sl_worker *worker, int32_t component, int32_t *ids, int32_t capacity)
{
    if (worker == NULL || (ids == NULL && capacity > 0)) {
        return missing();
    }
    return sl_worker_tasks(worker, component, ids, capacity);
}

struct sl_executor *
sl_abi_worker_executor(struct sl_worker *worker, int32_t index)
{
    if (worker == NULL) {
        return NULL;
    }
    return sl_worker_executor(worker, index);
}

int32_t
sl_abi_worker_executor_count(const struct sl_worker *worker)
{
    if (worker == NULL) {
        return 0;
    }
    return sl_worker_executor_count(worker);
}

void
sl_abi_worker_set_boot(struct sl_worker *worker, const char *text, size_t len)
{
    if (worker == NULL || (text == NULL && len > 0)) {
        missing();
        return;
    }
    sl_worker_set_boot(worker, text, len);
}

const char *
sl_abi_worker_boot(const struct sl_worker *worker, size_t *len)
{
    if (worker == NULL || len == NULL) {
        missing();
        return NULL;
    }
    return sl_worker_boot(worker, len);
}

void
sl_abi_worker_join(struct sl_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    sl_worker_join(worker);
}

int
sl_abi_worker_command(struct sl_worker *worker, int32_t executor, int32_t command, int32_t argument)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_command(worker, executor, command, argument);
}

int
sl_abi_worker_wait(struct sl_worker *worker, double timeout_ms, struct sl_event *event)
{
    if (worker == NULL || event == NULL) {
        missing();
        return 0;
    }
    return sl_worker_wait(worker, timeout_ms, event);
}

void
sl_abi_worker_post(struct sl_worker *worker, int32_t kind, int32_t task, int32_t executor,
                   const char *text, size_t len)
{
    if (worker == NULL || (text == NULL && len > 0)) {
        missing();
        return;
    }
    sl_worker_post(worker, kind, task, executor, text, len);
}

int
sl_abi_worker_stats(struct sl_worker *worker, int32_t task, struct sl_task_stats *stats)
{
    if (worker == NULL || stats == NULL) {
        return missing();
    }
    return sl_worker_stats(worker, task, stats);
}

int
sl_abi_worker_gone_stats(struct sl_worker *worker, int32_t component, struct sl_task_stats *stats)
{
    if (worker == NULL || stats == NULL) {
        return missing();
    }
    return sl_worker_gone_stats(worker, component, stats);
}

void
sl_abi_worker_busy(struct sl_worker *worker, int32_t executor, struct sl_busy *busy)
{
    if (worker == NULL || busy == NULL) {
        missing();
        return;
    }
    sl_worker_busy(worker, executor, busy);
}

double
sl_abi_worker_latency_ms(struct sl_worker *worker, double quantile)
{
    if (worker == NULL) {
        return -1;
    }
    return sl_worker_latency_ms(worker, quantile);
}

int32_t
sl_abi_worker_dropped_in_cycles(const struct sl_worker *worker)
{
    if (worker == NULL) {
        return 0;
    }
    return sl_worker_dropped_in_cycles(worker);
}

int
sl_abi_worker_advance(struct sl_worker *worker, double ms)
{
    if (worker == NULL) {
        return missing();
    }
    return sl_worker_advance(worker, ms);
}

double
sl_abi_worker_now_ms(const struct sl_worker *worker)
{
    if (worker == NULL) {
        return 0;
    }
    return sl_worker_now_ms(worker);
}

int
sl_abi_executor_attach(struct sl_executor *executor, int32_t task, struct sl_task **out)
{
    if (executor == NULL || out == NULL) {
        return missing();
    }
    return sl_executor_attach(executor, task, out);
}

int
sl_abi_executor_detach(struct sl_executor *executor, int32_t task)
{
    if (executor == NULL) {
        return missing();
    }
    return sl_executor_detach(executor, task);
}

int
sl_abi_executor_route(struct sl_executor *executor)
{
    if (executor == NULL) {
        return missing();
    }
    return sl_executor_route(executor);
}

int32_t
sl_abi_executor_index(const struct sl_executor *executor)
{
    if (executor == NULL) {
        return -1;
    }
    return sl_executor_index(executor);
}

int
sl_abi_executor_next(struct sl_executor *executor, struct sl_turn *turn, int32_t may_block)
{
    if (executor == NULL || turn == NULL) {
        return missing();
    }
    return sl_executor_next(executor, turn, may_block);
}

int
sl_abi_executor_nested(struct sl_executor *executor, struct sl_turn *turn, int32_t task)
{
    if (executor == NULL || turn == NULL) {
        return missing();
    }
    return sl_executor_nested(executor, turn, task);
}

int
sl_abi_executor_await(struct sl_executor *executor, struct sl_turn *turn, struct sl_outbox *outbox,
                      int32_t need, int32_t may_block)
{
    if (executor == NULL || turn == NULL || outbox == NULL) {
        return missing();
    }
    return sl_executor_await(executor, turn, outbox, need, may_block);
}

int
sl_abi_executor_await_root(struct sl_executor *executor, struct sl_turn *turn, struct sl_task *task,
                           int32_t may_block)
{
    if (executor == NULL || turn == NULL || task == NULL) {
        return missing();
    }
    return sl_executor_await_root(executor, turn, task, may_block);
}

void
sl_abi_executor_calls(struct sl_executor *executor, int32_t task)
{
    if (executor == NULL) {
        missing();
        return;
    }
    sl_executor_calls(executor, task);
}

const char *
sl_abi_executor_told(const struct sl_executor *executor, size_t *len)
{
    if (executor == NULL || len == NULL) {
        missing();
        return NULL;
    }
    return sl_executor_told(executor, len);
}

double
sl_abi_executor_now_ms(struct sl_executor *executor)
{
    if (executor == NULL) {
        missing();
        return -1;
    }
    return sl_executor_now_ms(executor);
}

double
sl_abi_executor_due_ms(struct sl_executor *executor)
{
    if (executor == NULL) {
        missing();
        return -1;
    }
    return sl_executor_due_ms(executor);
}

void
sl_abi_batch_end(struct sl_executor *executor, struct sl_turn *turn, int32_t count, uint8_t *head)
{
    if (executor == NULL || turn == NULL || head == NULL) {
        missing();
        return;
    }
    sl_batch_end(executor, turn, count, head);
}

int32_t
sl_abi_batch_position(struct sl_executor *executor, struct sl_turn *turn)
{
    if (executor == NULL || turn == NULL) {
        return missing();
    }
    return sl_batch_position(executor, turn);
}

const char *
sl_abi_turn_key(const struct sl_turn *turn, int32_t number, size_t *len)
{
    if (turn == NULL || turn->batch == NULL || len == NULL) {
        missing();
        return NULL;
    }
    return sl_turn_key(turn, number, len);
}

void
sl_abi_spout_end(struct sl_executor *executor, struct sl_turn *turn, int32_t calls, int32_t result,
                 double again_ms)
{
    if (executor == NULL || turn == NULL) {
        missing();
        return;
    }
    sl_spout_end(executor, turn, calls, result, again_ms);
}

void
sl_abi_turn_end(struct sl_executor *executor, struct sl_turn *turn)
{
    if (executor == NULL || turn == NULL) {
        missing();
        return;
    }
    sl_turn_end(executor, turn);
}

void
sl_abi_task_opened(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_task_opened(task);
}

void
sl_abi_task_tick(struct sl_task *task, double period_ms, int32_t is_aligned)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_task_tick(task, period_ms, is_aligned);
}

void
sl_abi_executor_hold(struct sl_executor *executor, int32_t hold)
{
    if (executor == NULL) {
        missing();
        return;
    }
    sl_executor_hold(executor, hold);
}

void
sl_abi_spout_reopen(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_spout_reopen(task);
}

int32_t
sl_abi_task_emitter_count(struct sl_task *task)
{
    if (task == NULL) {
        return missing();
    }
    return sl_task_emitter_count(task);
}

struct sl_emitter *
sl_abi_task_emitter(struct sl_task *task, int32_t index)
{
    if (task == NULL) {
        missing();
        return NULL;
    }
    return sl_task_emitter(task, index);
}

struct sl_route *
sl_abi_emitter_route(struct sl_emitter *emitter, int32_t route)
{
    if (emitter == NULL) {
        missing();
        return NULL;
    }
    return sl_emitter_route(emitter, route);
}

int
sl_abi_outbox_flush(struct sl_outbox *outbox, int32_t need)
{
    if (outbox == NULL) {
        return missing();
    }
    return sl_outbox_flush(outbox, need);
}

struct sl_outbox *
sl_abi_route_next(struct sl_route *route)
{
    if (route == NULL) {
        missing();
        return NULL;
    }
    return sl_route_next(route);
}

struct sl_outbox *
sl_abi_route_key(struct sl_route *route, uint64_t hash)
{
    if (route == NULL) {
        missing();
        return NULL;
    }
    return sl_route_key(route, hash);
}

struct sl_outbox *
sl_abi_route_number(struct sl_route *route, double key)
{
    if (route == NULL) {
        missing();
        return NULL;
    }
    return sl_route_key(route, sl_key_hash_number(key));
}

struct sl_outbox *
sl_abi_route_string(struct sl_route *route, const char *key, size_t len)
{
    if (route == NULL || key == NULL) {
        missing();
        return NULL;
    }
    return sl_route_key(route, sl_key_hash_bytes(key, len));
}

int32_t
sl_abi_route_way(struct sl_route *route, const char *key, size_t len, int32_t is_kept)
{
    if (route == NULL || key == NULL) {
        return missing();
    }
    return sl_route_way(route, key, len, is_kept != 0);
}

void
sl_abi_route_forget(struct sl_route *route)
{
    if (route == NULL) {
        missing();
        return;
    }
    sl_route_forget(route);
}

void
sl_abi_emitter_clear(struct sl_emitter *emitter)
{
    if (emitter == NULL) {
        missing();
        return;
    }
    sl_emitter_clear(emitter);
}

void
sl_abi_emitter_add(struct sl_emitter *emitter, int32_t route)
{
    if (emitter == NULL) {
        missing();
        return;
    }
    sl_emitter_add(emitter, route);
}

void
sl_abi_emitter_add_key(struct sl_emitter *emitter, int32_t route, uint64_t hash)
{
    if (emitter == NULL) {
        missing();
        return;
    }
    sl_emitter_add_key(emitter, route, hash);
}

int
sl_abi_emitter_add_task(struct sl_emitter *emitter, int32_t route, int32_t task)
{
    if (emitter == NULL) {
        return missing();
    }
    return sl_emitter_add_task(emitter, route, task);
}

int
sl_abi_emitter_copy(struct sl_task *task, struct sl_emitter *emitter, int32_t target, int32_t bytes)
{
    if (task == NULL || emitter == NULL) {
        return missing();
    }
    return sl_emitter_copy(task, emitter, target, bytes);
}

struct sl_record *
sl_abi_task_scratch(struct sl_task *task, int32_t bytes)
{
    if (task == NULL) {
        missing();
        return NULL;
    }
    return sl_task_scratch(task, bytes);
}

int32_t
sl_abi_root_open(struct sl_task *task, struct sl_record *record)
{
    if (task == NULL || record == NULL) {
        return missing();
    }
    return sl_root_open(task, record);
}

int32_t
sl_abi_root_begin(struct sl_task *task)
{
    if (task == NULL) {
        return missing();
    }
    return sl_root_begin(task);
}

void
sl_abi_root_end(struct sl_task *task, int32_t slot)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_root_end(task, slot);
}

void
sl_abi_roots_release(struct sl_task *task, int32_t count)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_roots_release(task, count);
}

void
sl_abi_task_anchor(struct sl_task *task, struct sl_record *record)
{
    if (task == NULL || record == NULL) {
        missing();
        return;
    }
    sl_task_anchor(task, record);
}

void
sl_abi_task_ack(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    if (task->record->anchors > 0) {
        sl_task_ack(task);
    }
}

void
sl_abi_task_fail(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_task_fail(task);
}

void
sl_abi_task_reset(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_task_reset(task);
}

void
sl_abi_task_count_error(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_task_count_error(task);
}

double
sl_abi_task_hold(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return -1;
    }
    return sl_task_hold(task);
}

int
sl_abi_held_settle(struct sl_task *task, double handle, int32_t has_failed)
{
    if (task == NULL) {
        return missing();
    }
    return sl_held_settle(task, handle, has_failed);
}

int
sl_abi_held_reset(struct sl_task *task, double handle)
{
    if (task == NULL) {
        return missing();
    }
    return sl_held_reset(task, handle);
}

void
sl_abi_anchors_clear(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_anchors_clear(task);
}

void
sl_abi_anchors_add_current(struct sl_task *task)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_anchors_add_current(task);
}

void
sl_abi_anchors_add_held(struct sl_task *task, double handle)
{
    if (task == NULL) {
        missing();
        return;
    }
    sl_anchors_add_held(task, handle);
}

/* ---- what is not a plain call ---------------------------------------------------------------- */

static sl_executor_main_fn executor_main;

void
sl_engine_set_executor_main(sl_executor_main_fn main)
{
    executor_main = main;
}

int
sl_abi_worker_start(struct sl_worker *worker)
{
    if (worker == NULL || executor_main == NULL) {
        return sl_err_set(SL_EINVAL, "threads of executors need the streamlua executable");
    }
    return sl_worker_start(worker, executor_main);
}

static void
on_signal(int number)
{
    struct sl_worker *worker = __atomic_load_n(&signal_worker, __ATOMIC_SEQ_CST);
    if (worker != NULL) {
        sl_worker_signal(worker, number);
    }
}

int
sl_abi_worker_catch_signals(struct sl_worker *worker)
{
    __atomic_store_n(&signal_worker, worker, __ATOMIC_SEQ_CST);
    struct sigaction action = {.sa_handler = worker != NULL ? on_signal : SIG_DFL,
                               .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0) {
        return sl_err_set(SL_ESYS, "catch signals");
    }
    return 0;
}

int32_t
sl_abi_core_count(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 1;
    }
    return (int32_t)CPU_COUNT(&set);
}

double
sl_abi_monotonic_ms(void)
{
    return (double)sl_clock_mono_ns(sl_clock_system()) / 1e6;
}

/* Flushes unless a thread that does not come back holds the file, or its reader takes nothing. */
static void
flush_if_possible(FILE *file)
{
    struct pollfd writable = {.fd = fileno(file), .events = POLLOUT};
    if (ftrylockfile(file) != 0) {
        return;
    }
    if (poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) != 0) {
        fflush(file);
    }
    funlockfile(file);
}

void
sl_abi_process_exit(int32_t code)
{
    flush_if_possible(stdout);
    flush_if_possible(stderr);
    /* Not _exit: a sanitizer's would count the threads that are left as leaked. */
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}
