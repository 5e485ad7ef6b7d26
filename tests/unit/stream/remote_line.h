#pragma once
/* A line of components over several sites, and what its tasks have seen: none lost, none early. */

#include "remote_rig.h"

enum {
    SPOUT = 1,
    SPOUT_2 = 2,
    BOLT = 3,
    BOLT_2 = 4,
    SINK = 5,
    TUPLES = 3000,
};

/* Of every receiving task: the last number from each sender, to see that none is lost or early. */
static int64_t last_seen[RIG_TASKS][RIG_TASKS];
static int64_t executed[RIG_TASKS];
static int64_t acked;
static int64_t failed;
static bool has_gap;

static inline void
start_over(void)
{
    memset(last_seen, 0, sizeof(last_seen));
    memset(executed, 0, sizeof(executed));
    acked = 0;
    failed = 0;
    has_gap = false;
}

/* A spout that has nothing to emit at its limit, but is not DONE. */
static int32_t waiting;

/* {number in the sequence of this spout, spout} */
static inline int
next_untracked(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return task->id == waiting ? SL_SPOUT_NOTHING : SL_SPOUT_DONE;
    }
    int64_t values[] = {++task->count, task->id};
    return rig_emit_root(task, values, RIG_NO_ID) == 0 ? SL_SPOUT_EMITTED : SL_SPOUT_NOTHING;
}

static inline int
next_tracked(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    if (task->io->is_full) {
        return SL_SPOUT_NOTHING;
    }
    int64_t values[] = {++task->count, task->id};
    return rig_emit_root(task, values, task->count) == 0 ? SL_SPOUT_EMITTED : SL_SPOUT_NOTHING;
}

static inline void
settled(struct rig_task *task, int64_t id, bool has_failed)
{
    (void)task;
    (void)id;
    acked += !has_failed;
    failed += has_failed;
}

static inline void
execute(struct rig_task *task, struct sl_record *record)
{
    /* Whatever value a damaged record has. */
    int64_t *last = &last_seen[task->id][(uint64_t)rig_value(record, 1) % RIG_TASKS];
    has_gap |= rig_value(record, 0) <= *last;
    *last = rig_value(record, 0);
    executed[task->id]++;
}

static inline void
forward(struct rig_task *task, struct sl_record *record)
{
    execute(task, record);
    int64_t values[] = {++task->count, task->id};
    assert_int_equal(rig_emit(task, values), 0);
}

/* spouts at 0 and 1, bolts at 1 and 2 that forward, a sink; grouping of the first edge. */
static int32_t sink_site;
static int32_t grouping = SL_GROUPING_SHUFFLE;
static bool is_tracked;
static int32_t acker_tasks;
static int64_t tuples = TUPLES;

static inline void
plan_line(struct sites *sites, int32_t site)
{
    struct rig *rig = sites->at[site].rig;
    int32_t last = sites->count - 1;
    struct rig_component spout = {.next = is_tracked ? next_tracked : next_untracked,
                                  .settled = is_tracked ? settled : NULL};
    rig_component(rig, SL_TASK_SPOUT, 0, -1, 2, spout);
    rig_component(rig, SL_TASK_BOLT, 1, -1, 2, (struct rig_component){.execute = forward});
    rig_component(rig, SL_TASK_BOLT, 2, -1, 2, (struct rig_component){.execute = execute});
    rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
    rig_read(rig, 0, 1, grouping);
    rig_read(rig, 1, 2, SL_GROUPING_GLOBAL);
    site_plan(sites, site, 0, SPOUT, 0);
    site_plan(sites, site, 0, SPOUT_2, 1);
    site_plan(sites, site, 1, BOLT, 1);
    site_plan(sites, site, 1, BOLT_2, last);
    site_plan(sites, site, 2, SINK, sink_site);
    for (int32_t i = 0; i < acker_tasks; i++) {
        site_plan(sites, site, 3, 10 + i, i % sites->count);
    }
    rig_groups(rig, 1, 16);
    rig->tasks[SPOUT].limit = tuples;
    rig->tasks[SPOUT_2].limit = tuples;
    site_attach(&sites->at[site]);
}

static inline struct sites *
line_new(int32_t count, uint64_t seed)
{
    start_over();
    return sites_new(count, seed, plan_line);
}

static inline void
reset_line(void)
{
    sink_site = 0;
    grouping = SL_GROUPING_SHUFFLE;
    is_tracked = false;
    waiting = 0;
    acker_tasks = 0;
    tuples = TUPLES;
}

static inline struct sl_remote_stats
stats_of(struct sites *sites, int32_t site)
{
    struct sl_remote_stats stats;
    sl_remote_stats(sites->at[site].remote, &stats);
    return stats;
}
