#pragma once
/*
 * A worker driven from C, as the Lua runtime drives it: components are structs of functions, tuples
 * are rows of int64 values.  `rig_run` makes turns of all executors in one thread until everything
 * is at rest, by a manual clock; `rig_start` gives each executor a thread.
 */

#include <pthread.h>

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/stream_priv.h"
#include "stream/value.h"
#include "stream/worker.h"
#include "topology/topology.h"
#include "unit.h"

enum {
    RIG_TASKS = 512,
    RIG_COMPONENTS = 128,
    RIG_NO_ID = -1,
};

struct rig;
struct rig_task;

/* User code; every function may be NULL. */
struct rig_component {
    /* Returns enum sl_spout_result. */
    int (*next)(struct rig_task *task);
    void (*execute)(struct rig_task *task, struct sl_record *record);
    void (*settled)(struct rig_task *task, int64_t id, bool has_failed);
    void (*tick)(struct rig_task *task, double now_ms);
    void (*finish)(struct rig_task *task);
    bool is_manual;
    double tick_ms;
    bool is_tick_aligned;
};

struct rig_task {
    struct rig *rig;
    const struct rig_component *component;
    struct sl_executor *executor;
    struct sl_task *io;
    int32_t id;
    /* Ids of roots by slot. */
    int64_t *ids;
    size_t id_count;
    /* Free for the test. */
    int64_t count;
    int64_t sum;
    int64_t finishes;
    int64_t limit;
    void *user;
};

struct rig_seen {
    int32_t kind;
    int32_t task;
    int32_t executor;
    char text[64];
};

struct rig {
    struct sl_worker *worker;
    struct rig_component components[RIG_COMPONENTS];
    struct rig_task tasks[RIG_TASKS];
    /* Executors whose turns are on the C stack (single-threaded only). */
    bool is_running[64];
    bool may_block;
    /* Turns made, to see whether anything moved. */
    uint64_t turns;
    SL_VEC(struct rig_seen) seen;
    /* Executors that have finished, as far as rig_wait has heard. */
    int finished;
    void *user;
};

static inline struct sl_worker_options
rig_options(void)
{
    return (struct sl_worker_options){
        .executors = 1,
        .is_acking = 1,
        .message_timeout_ms = 1000,
        .max_spout_pending = 1000,
        .task_capacity = RIG_TASKS,
        .spout_capacity = 64,
        .acker_capacity = 16,
        .batch_bytes = 1024,
        .credit = 4,
        .pool_bytes = 1024 * 1024,
        .is_manual_clock = 1,
        .manual_start_ms = 1000000,
        .seed = 42,
    };
}

static inline struct rig *
rig_new(const struct sl_worker_options *options)
{
    struct rig *rig = sl_calloc(1, sizeof(*rig));
    rig->worker = sl_worker_new(options);
    assert_non_null(rig->worker);
    return rig;
}

static inline void
rig_free(struct rig *rig)
{
    sl_worker_free(rig->worker);
    for (int32_t i = 0; i < RIG_TASKS; i++) {
        sl_free(rig->tasks[i].ids);
    }
    sl_vec_destroy(&rig->seen);
    sl_free(rig);
}

/* ---- plan ----------------------------------------------------------------------------------- */

/* A component with one default stream of `fields` fields; its index, which is its stream's too. */
static inline int32_t
rig_component(struct rig *rig, int32_t kind, int32_t rank, int32_t scc, int32_t fields,
              struct rig_component code)
{
    char name[16];
    snprintf(name, sizeof(name), "c%zu", rig->worker->components.count);
    int32_t component = sl_worker_component(rig->worker, name, kind, rank, scc);
    assert_in_range(component, 0, RIG_COMPONENTS - 1);
    assert_int_equal(sl_worker_stream(rig->worker, component, "default", fields, 0), component);
    rig->components[component] = code;
    return component;
}

static inline void
rig_read(struct rig *rig, int32_t source, int32_t reader, int32_t grouping)
{
    int32_t key = 0;
    bool is_keyed = grouping == SL_GROUPING_FIELDS || grouping == SL_GROUPING_PARTIAL_KEY;
    assert_true(sl_worker_reader(rig->worker, source, reader, grouping, &key, is_keyed) >= 0);
}

static inline void
rig_plan(struct rig *rig, int32_t component, int32_t id, int32_t executor)
{
    int32_t index = (int32_t)rig->worker->components.items[component].tasks.count;
    assert_int_equal(sl_worker_task(rig->worker, component, id, index, executor), id);
}

/* Key groups dealt to the component's tasks in turn. */
static inline void
rig_groups(struct rig *rig, int32_t component, int32_t count)
{
    int32_t ids[RIG_TASKS];
    int32_t owners[1024];
    int tasks = sl_worker_tasks(rig->worker, component, ids, RIG_TASKS);
    assert_in_range(count, 1, 1024);
    for (int32_t i = 0; i < count; i++) {
        owners[i] = ids[i % tasks];
    }
    assert_int_equal(sl_worker_groups(rig->worker, component, owners, count), 0);
}

/* ---- emitting ------------------------------------------------------------------------------- */

static inline int64_t
rig_value(const struct sl_record *record, int32_t field)
{
    return record->slots[field].i64;
}

static inline void rig_batch(struct rig *rig, struct sl_executor *executor, struct sl_turn *turn);
static inline bool rig_round(struct rig *rig);

/* What Executor:flush of the Lua runtime does; 0 or an error. */
static inline int
rig_flush(struct rig_task *task, struct sl_outbox *outbox, int32_t need)
{
    struct rig *rig = task->rig;
    struct sl_turn turn;
    for (;;) {
        int result = sl_outbox_flush(outbox, need);
        if (result == SL_FLUSH_OK || result < 0) {
            return result;
        }
        if (result == SL_FLUSH_RUN) {
            if (sl_executor_nested(task->executor, &turn, outbox->dest) == SL_TURN_BATCH) {
                rig_batch(rig, task->executor, &turn);
            }
            return 0;
        }
        int kind;
        do {
            kind = sl_executor_await(task->executor, &turn, outbox, need, rig->may_block);
            if (kind == SL_TURN_BATCH) {
                rig_batch(rig, task->executor, &turn);
            } else if (kind == SL_TURN_NONE && !rig_round(rig)) {
                return SL_EAGAIN;
            }
        } while (kind != SL_TURN_READY);
    }
}

static inline void
rig_remember(struct rig_task *task, int32_t slot, int64_t id)
{
    if ((size_t)slot >= task->id_count) {
        task->id_count = (size_t)slot * 2 + 16;
        task->ids = sl_realloc(task->ids, task->id_count * sizeof(*task->ids));
    }
    task->ids[slot] = id;
}

/* Chooses the targets of all routes of the emitter by the first value. */
static inline void
rig_choose(struct sl_emitter *emitter, int64_t key)
{
    sl_emitter_clear(emitter);
    for (int32_t i = 0; i < emitter->route_count; i++) {
        int32_t grouping = sl_emitter_route(emitter, i)->grouping;
        if (grouping == SL_GROUPING_FIELDS || grouping == SL_GROUPING_PARTIAL_KEY) {
            sl_emitter_add_key(emitter, i, sl_key_hash_number((double)key));
        } else {
            sl_emitter_add(emitter, i);
        }
    }
}

/* Emits with the anchors that the task has collected; 0 or an error. */
static inline int
rig_emit_collected(struct rig_task *task, const int64_t *values)
{
    struct sl_emitter *emitter = sl_task_emitter(task->io, 0);
    int32_t bytes =
        (int32_t)(sizeof(struct sl_record) + (size_t)emitter->field_count * sizeof(struct sl_slot));
    struct sl_record *record = sl_task_scratch(task->io, bytes);
    for (int32_t i = 0; i < emitter->field_count; i++) {
        record->slots[i] = (struct sl_slot){.tag = SL_VALUE_INT64, .i64 = values[i]};
    }
    record->len = bytes;
    rig_choose(emitter, values[0]);
    for (int32_t i = 0; i < emitter->target_count; i++) {
        int lack = sl_emitter_copy(task->io, emitter, i, bytes);
        while (lack > 0) {
            int rc = rig_flush(task, emitter->targets[i], lack);
            if (rc != 0) {
                return rc;
            }
            lack = sl_emitter_copy(task->io, emitter, i, bytes);
        }
        assert_int_equal(lack, 0);
    }
    task->io->emits++;
    return 0;
}

/* Emits from a spout, with an id or without. */
static inline int
rig_emit_root(struct rig_task *task, const int64_t *values, int64_t id)
{
    if (id == RIG_NO_ID) {
        sl_anchors_clear(task->io);
        return rig_emit_collected(task, values);
    }
    assert_int_equal(task->io->is_full, 0);
    int32_t slot = sl_root_begin(task->io);
    rig_remember(task, slot, id);
    int rc = rig_emit_collected(task, values);
    if (rc == 0) {
        sl_root_end(task->io, slot);
    }
    return rc;
}

/* Emits from a bolt, anchored on the tuple that it executes. */
static inline int
rig_emit(struct rig_task *task, const int64_t *values)
{
    sl_anchors_clear(task->io);
    sl_anchors_add_current(task->io);
    return rig_emit_collected(task, values);
}

/* The short way of generated drivers: one reader that takes each tuple once, at most one root. */
static inline int
rig_emit_direct(struct rig_task *task, int64_t value, int64_t id)
{
    struct sl_route *route = sl_emitter_route(sl_task_emitter(task->io, 0), 0);
    struct sl_outbox *outbox =
        route->grouping == SL_GROUPING_FIELDS || route->grouping == SL_GROUPING_PARTIAL_KEY
            ? sl_route_key(route, sl_key_hash_number((double)value))
            : sl_route_next(route);
    int32_t bytes = (int32_t)(sizeof(struct sl_record) + sizeof(struct sl_slot));
    if (outbox->pos == NULL || outbox->limit - outbox->pos < bytes) {
        int rc = rig_flush(task, outbox, bytes);
        if (rc != 0) {
            return rc;
        }
    }
    struct sl_record *record = (struct sl_record *)outbox->pos;
    record->len = bytes;
    record->slots[0] = (struct sl_slot){.tag = SL_VALUE_INT64, .i64 = value};
    if (task->io->kind == SL_TASK_SPOUT && id != RIG_NO_ID) {
        rig_remember(task, sl_root_open(task->io, record), id);
    } else if (task->io->kind == SL_TASK_BOLT && task->io->record->anchors != 0) {
        sl_task_anchor(task->io, record);
    } else {
        record->anchors = 0;
    }
    outbox->pos += bytes;
    outbox->count++;
    task->io->emits++;
    return 0;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static inline void
rig_batch(struct rig *rig, struct sl_executor *executor, struct sl_turn *turn)
{
    struct rig_task *task = &rig->tasks[turn->task];
    uint8_t *at = turn->head;
    int32_t done = 0;
    __atomic_add_fetch(&rig->turns, 1, __ATOMIC_RELAXED);
    while (done < turn->count) {
        struct sl_record *record = (struct sl_record *)at;
        task->io->record = record;
        if (task->component->execute != NULL) {
            task->component->execute(task, record);
        }
        if (!task->component->is_manual && record->anchors != 0) {
            sl_task_ack(task->io);
        }
        at += record->len;
        done++;
        if (task->io->yield != 0) {
            break;
        }
    }
    sl_batch_end(executor, turn, done, at);
}

static inline void
rig_spout(struct rig_task *task, struct sl_turn *turn)
{
    int result = SL_SPOUT_EMITTED;
    int32_t calls = 0;
    if (turn->argument != 0 || task->component->next == NULL) {
        sl_spout_end(task->executor, turn, 0, SL_SPOUT_DONE, -1);
        return;
    }
    while (calls < turn->count && result == SL_SPOUT_EMITTED && task->io->yield == 0) {
        result = task->component->next(task);
        calls++;
    }
    sl_spout_end(task->executor, turn, calls, result, -1);
}

static inline void
rig_acks(struct rig_task *task, struct sl_turn *turn)
{
    for (int32_t i = 0; i < turn->count; i++) {
        int32_t entry = task->io->done[i];
        task->component->settled(task, task->ids[entry / 2], entry % 2 != 0);
    }
    sl_roots_release(task->io, turn->count);
    sl_turn_end(task->executor, turn);
}

/* Attaches a task of the plan and opens it; 0 or an error. */
static inline int
rig_attach(struct rig *rig, struct sl_executor *executor, int32_t id, bool is_opened)
{
    struct sl_task *io = NULL;
    int rc = sl_executor_attach(executor, id, &io);
    if (rc != 0) {
        return rc;
    }
    struct rig_task *task = &rig->tasks[id];
    int64_t limit = task->limit;
    void *user = task->user;
    sl_free(task->ids);
    *task = (struct rig_task){.rig = rig,
                              .component = &rig->components[io->component],
                              .executor = executor,
                              .io = io,
                              .id = id,
                              .limit = limit,
                              .user = user};
    io->wants_acks = task->component->settled != NULL;
    io->manual_ack = task->component->is_manual;
    if (io->kind == SL_TASK_ACKER) {
        return 0;
    }
    if (task->component->tick_ms > 0) {
        sl_task_tick(io, task->component->tick_ms, task->component->is_tick_aligned);
    }
    if (is_opened) {
        sl_task_opened(io);
    }
    return 0;
}

/* Returns true when the executor should end. */
static inline bool
rig_command(struct rig *rig, struct sl_executor *executor, struct sl_turn *turn)
{
    int rc = 0;
    switch (turn->command) {
    case SL_COMMAND_STOP:
        return true;
    case SL_COMMAND_ADD_TASK:
        rc = rig_attach(rig, executor, turn->argument, true);
        break;
    case SL_COMMAND_REMOVE_TASK:
        rc = sl_executor_detach(executor, turn->argument);
        break;
    case SL_COMMAND_ROUTES:
        rc = sl_executor_route(executor);
        break;
    default:
        break;
    }
    const char *text = rc == 0 ? "" : sl_err_name(rc);
    sl_worker_post(rig->worker, SL_EVENT_DONE, turn->argument, sl_executor_index(executor), text,
                   strlen(text));
    return false;
}

/* Makes turns of one executor until it has nothing to do; whether it should end. */
static inline bool
rig_turns(struct rig *rig, struct sl_executor *executor)
{
    struct sl_turn turn;
    for (;;) {
        int kind = sl_executor_next(executor, &turn, rig->may_block);
        if (kind == SL_TURN_NONE) {
            return false;
        }
        if (kind == SL_TURN_BATCH) {
            rig_batch(rig, executor, &turn);
            continue;
        }
        __atomic_add_fetch(&rig->turns, 1, __ATOMIC_RELAXED);
        if (kind == SL_TURN_COMMAND) {
            if (rig_command(rig, executor, &turn)) {
                return true;
            }
            sl_turn_end(executor, &turn);
            continue;
        }
        struct rig_task *task = &rig->tasks[turn.task];
        if (kind == SL_TURN_SPOUT) {
            rig_spout(task, &turn);
        } else if (kind == SL_TURN_ACKS) {
            rig_acks(task, &turn);
        } else if (kind == SL_TURN_TICK) {
            if (task->component->tick != NULL) {
                task->component->tick(task, turn.now_ms);
            }
            sl_turn_end(executor, &turn);
        } else {
            assert_int_equal(kind, SL_TURN_FINISH);
            task->finishes++;
            if (task->component->finish != NULL) {
                task->component->finish(task);
            }
            sl_turn_end(executor, &turn);
        }
    }
}

/* One round of all executors that are not in a turn; whether anything moved. */
static inline bool
rig_round(struct rig *rig)
{
    uint64_t before = rig->turns;
    for (int32_t i = 0; i < rig->worker->executor_count; i++) {
        if (!rig->is_running[i]) {
            rig->is_running[i] = true;
            rig_turns(rig, sl_worker_executor(rig->worker, i));
            rig->is_running[i] = false;
        }
    }
    return rig->turns != before;
}

/* Until everything is at rest: marks and acks may move for some rounds without a turn. */
static inline void
rig_run(struct rig *rig)
{
    for (int idle = 0; idle < 4; idle++) {
        while (rig_round(rig)) {
        }
    }
}

/* Moves the clock in steps to where something is due, and runs. */
static inline void
rig_advance(struct rig *rig, double ms)
{
    while (ms > 0) {
        double step = ms;
        for (int32_t i = 0; i < rig->worker->executor_count; i++) {
            double due = sl_executor_due_ms(sl_worker_executor(rig->worker, i));
            due = due < 0.001 ? 0.001 : due;
            step = due < step ? due : step;
        }
        assert_int_equal(sl_worker_advance(rig->worker, step), 0);
        ms -= step;
        rig_run(rig);
    }
}

/* ---- all together --------------------------------------------------------------------------- */

/* Attaches every planned task to its executor, opened. */
static inline void
rig_attach_all(struct rig *rig)
{
    for (int32_t id = 0; id < RIG_TASKS; id++) {
        struct sl_planned planned;
        if (sl_worker_planned(rig->worker, id, &planned) == 0) {
            struct sl_executor *executor = sl_worker_executor(rig->worker, planned.executor);
            assert_int_equal(rig_attach(rig, executor, id, true), 0);
        }
    }
}

static inline void
rig_command_all(struct rig *rig, int32_t command)
{
    for (int32_t i = 0; i < rig->worker->executor_count; i++) {
        assert_int_equal(sl_worker_command(rig->worker, i, command, -1), 0);
    }
}

/* Attaches and activates everything, single-threaded. */
static inline void
rig_open(struct rig *rig)
{
    rig_attach_all(rig);
    rig_command_all(rig, SL_COMMAND_ACTIVATE);
}

/* Takes all events there are and remembers them. */
static inline void
rig_hear(struct rig *rig)
{
    struct sl_event event;
    while (sl_worker_wait(rig->worker, 0, &event) == 1) {
        struct rig_seen seen = {.kind = event.kind, .task = event.task, .executor = event.executor};
        snprintf(seen.text, sizeof(seen.text), "%.*s", event.text_len, event.text);
        sl_vec_push(&rig->seen, seen);
    }
}

/* How many events of a kind were heard so far. */
static inline int
rig_heard(struct rig *rig, int32_t kind)
{
    int count = 0;
    rig_hear(rig);
    for (size_t i = 0; i < rig->seen.count; i++) {
        count += rig->seen.items[i].kind == kind;
    }
    return count;
}

static inline void
rig_forget(struct rig *rig)
{
    rig_hear(rig);
    sl_vec_clear(&rig->seen);
}

static inline struct sl_task_stats
rig_stats(struct rig *rig, int32_t id)
{
    struct sl_task_stats stats;
    assert_int_equal(sl_worker_stats(rig->worker, id, &stats), 0);
    return stats;
}

static inline struct sl__task *
rig_inner(struct rig *rig, int32_t id)
{
    return sl__task_of(rig->tasks[id].io);
}

/* ---- threads -------------------------------------------------------------------------------- */

static struct rig *rig_threaded;

static inline void
rig_thread(struct sl_worker *worker, struct sl_executor *executor)
{
    (void)worker;
    while (!rig_turns(rig_threaded, executor)) {
    }
}

/* Attaches everything here, then lets each executor run in a thread of its own. */
static inline void
rig_start(struct rig *rig)
{
    rig_threaded = rig;
    rig->may_block = true;
    rig_attach_all(rig);
    assert_int_equal(sl_worker_start(rig->worker, rig_thread), 0);
    rig_command_all(rig, SL_COMMAND_ACTIVATE);
}

/* Waits for an event; fails after 20 s. */
static inline int32_t
rig_wait_any(struct rig *rig)
{
    struct sl_event event;
    if (sl_worker_wait(rig->worker, 20000, &event) != 1) {
        fail_msg("no event within 20 s");
    }
    assert_int_equal(event.text_len, 0);
    rig->finished += event.kind == SL_EVENT_FINISHED;
    rig->finished -= event.kind == SL_EVENT_RESUMED;
    return event.kind;
}

/* Waits for `count` more events of the kind; their texts must be empty. */
static inline void
rig_wait(struct rig *rig, int32_t kind, int count)
{
    while (count > 0) {
        count -= rig_wait_any(rig) == kind;
    }
}

/* Waits until all executors have finished. */
static inline void
rig_wait_finished(struct rig *rig)
{
    while (rig->finished < rig->worker->executor_count) {
        rig_wait_any(rig);
    }
}

static inline void
rig_stop(struct rig *rig)
{
    rig_command_all(rig, SL_COMMAND_STOP);
    sl_worker_join(rig->worker);
}
