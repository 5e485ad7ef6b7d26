/*
 * Tuples between processes: delivered once and in order while sessions last, within their credit;
 * what breaks of connections and new identities do; acks across processes, malformed bytes.
 */

#include "remote_line.h"

static void
check_all_done(struct sites *sites, int64_t at_sink)
{
    assert_int_equal(sites->failure, 0);
    assert_false(has_gap);
    assert_int_equal(executed[SINK], at_sink);
    for (int32_t i = 0; i < sites->count; i++) {
        struct sl_remote_stats stats = stats_of(sites, i);
        assert_int_equal(stats.queued, 0);
        assert_int_equal(stats.unconfirmed, 0);
        assert_int_equal(stats.held, 0);
        assert_int_equal(stats.held_bytes, 0);
        assert_int_equal(stats.strays, 0);
    }
}

static void
test_every_grouping_reaches_its_tasks_once_and_in_order(void **state)
{
    (void)state;
    static const struct {
        int32_t grouping;
        int64_t copies;
    } rows[] = {{SL_GROUPING_SHUFFLE, 1}, {SL_GROUPING_FIELDS, 1},      {SL_GROUPING_ALL, 2},
                {SL_GROUPING_GLOBAL, 1},  {SL_GROUPING_PARTIAL_KEY, 1}, {SL_GROUPING_NONE, 1}};
    for (size_t i = 0; i < array_size(rows); i++) {
        reset_line();
        grouping = rows[i].grouping;
        struct sites *sites = line_new(3, 7 + i);
        sites_connect_all(sites);
        sites_run(sites);
        int64_t all = 2 * TUPLES * rows[i].copies;
        check_all_done(sites, all);
        assert_int_equal(executed[BOLT] + executed[BOLT_2], all);
        if (rows[i].grouping == SL_GROUPING_SHUFFLE || rows[i].copies == 2) {
            assert_int_equal(executed[BOLT], all / 2);
        }
        if (rows[i].grouping == SL_GROUPING_GLOBAL) {
            assert_int_equal(executed[BOLT], all);
        }
        sites_free(sites);
    }
    reset_line();
}

static void
test_local_or_shuffle_stays_in_the_process_when_it_can(void **state)
{
    (void)state;
    reset_line();
    grouping = SL_GROUPING_LOCAL_OR_SHUFFLE;
    struct sites *sites = line_new(3, 3);
    sites_connect_all(sites);
    sites_run(sites);
    check_all_done(sites, 2 * TUPLES);
    /* The spout at 1 has a bolt beside it, the one at 0 has none. */
    assert_int_equal(executed[BOLT_2], TUPLES / 2);
    assert_int_equal(executed[BOLT], TUPLES + TUPLES / 2);
    sites_free(sites);
    reset_line();
}

static void
test_roots_complete_across_processes(void **state)
{
    (void)state;
    for (int32_t ackers = 0; ackers <= 3; ackers += 3) {
        reset_line();
        is_tracked = true;
        acker_tasks = ackers;
        grouping = SL_GROUPING_ALL;
        struct sites *sites = line_new(3, 11 + (uint64_t)ackers);
        sites_connect_all(sites);
        sites_run(sites);
        check_all_done(sites, 4 * TUPLES);
        assert_int_equal(acked, 2 * TUPLES);
        assert_int_equal(failed, 0);
        assert_int_equal(rig_stats(sites->at[0].rig, SPOUT).pending, 0);
        sites_free(sites);
    }
    reset_line();
}

static void
test_breaks_of_connections_lose_and_double_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        reset_line();
        is_tracked = seed % 2 == 0;
        struct sites *sites = line_new(3, seed);
        sites_connect_all(sites);
        for (int i = 0; i < 40; i++) {
            for (int k = 0; k < 1 + (int)sl_random_below(&sites->random, 8); k++) {
                sites_step(sites);
            }
            int32_t one = (int32_t)sl_random_below(&sites->random, 3);
            int32_t other = (one + 1 + (int32_t)sl_random_below(&sites->random, 2)) % 3;
            /* Bytes that were written and not delivered are gone. */
            sites_cut(sites, one, other);
            for (int k = 0; k < (int)sl_random_below(&sites->random, 4); k++) {
                sites_step(sites);
            }
            sites_connect(sites, one, other);
        }
        sites_run(sites);
        check_all_done(sites, 2 * TUPLES);
        assert_int_equal(acked, is_tracked ? 2 * TUPLES : 0);
        assert_int_equal(failed, 0);
        sites_free(sites);
    }
    reset_line();
}

static void
test_a_receiver_that_rests_is_sent_no_more_than_its_window(void **state)
{
    (void)state;
    reset_line();
    tuples = 100000;
    struct sites *sites = line_new(2, 5);
    sites_connect_all(sites);
    /* Site 1 takes bytes in, but its executors do not run. */
    for (int i = 0; i < 2000; i++) {
        rig_round(sites->at[0].rig);
        sites_write(sites, 0);
        sites_write(sites, 1);
        sites_deliver(sites, 0, 1, SIZE_MAX);
        sites_deliver(sites, 1, 0, SIZE_MAX);
    }
    assert_int_equal(sites->failure, 0);
    struct sl_remote_stats stats = stats_of(sites, 1);
    /* Two tasks there. */
    assert_in_range(stats.held_bytes, 1, 2 * SITE_WINDOW);
    struct sl__pool *pool = &sl_worker_executor(sites->at[0].rig->worker, 0)->pool;
    assert_in_range(pool->made, 1, pool->limit + 8);
    assert_true(executed[BOLT] == 0);
    sites_run(sites);
    check_all_done(sites, 200000);
    sites_free(sites);
    reset_line();
}

static void
test_lost_grants_heal(void **state)
{
    (void)state;
    reset_line();
    struct sites *sites = line_new(2, 9);
    sites_connect_all(sites);
    for (int i = 0; i < 200; i++) {
        sites_step(sites);
        /* Whatever the receiver says of credit at this moment is thrown away. */
        sl_remote_pump(sites->at[1].remote);
        struct sl__peer *peer = sl__peer_find(sites->at[1].remote, 0);
        while (peer->dirty != NULL) {
            peer->dirty->is_dirty = false;
            peer->dirty = peer->dirty->next;
        }
    }
    sl_remote_refresh(sites->at[1].remote, 0);
    sl_remote_refresh(sites->at[0].remote, 1);
    sites_run(sites);
    check_all_done(sites, 2 * TUPLES);
    sites_free(sites);
    reset_line();
}

/*
 * The others come to the new process one after the other, and work meanwhile. With `is_missed` they
 * have a plan without it before.
 */
static void
replace_site(struct sites *sites, int32_t site, bool is_missed)
{
    for (int32_t k = 0; k < sites->count; k++) {
        if (k != site) {
            sites_cut(sites, site, k);
            if (is_missed) {
                sl_remote_forget(sites->at[k].remote, site);
            }
        }
    }
    rig_free(sites->at[site].rig);
    site_start(sites, site);
    for (int32_t k = 0; k < sites->count; k++) {
        if (k == site) {
            continue;
        }
        struct sl_worker *worker = sites->at[k].rig->worker;
        for (int32_t id = 0; id < RIG_TASKS; id++) {
            if (worker->task_executor[id] == worker->executor_count &&
                worker->task_peer[id] == site) {
                assert_int_equal(sl_worker_place(worker, id, site), 0);
            }
        }
        rig_command_all(sites->at[k].rig, SL_COMMAND_ROUTES);
        sites_connect(sites, site, k);
        for (int i = 0; i < 60; i++) {
            sites_step(sites);
        }
    }
}

static void
check_replaced(bool is_missed, int32_t ackers)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        reset_line();
        is_tracked = true;
        acker_tasks = ackers;
        struct sites *sites = line_new(3, 100 + seed);
        sites_connect_all(sites);
        for (int i = 0; i < 3 + (int)seed; i++) {
            sites_step(sites);
        }
        /* Bolts only: the spouts keep their roots. */
        replace_site(sites, 2, is_missed);
        /* What the old one had and did not ack fails at once, not after the time-out. */
        sites_run(sites);
        assert_int_equal(sites->failure, 0);
        assert_int_equal(acked + failed, 2 * TUPLES);
        assert_true(failed < 2 * TUPLES);
        assert_int_equal(rig_stats(sites->at[0].rig, SPOUT).pending, 0);
        assert_int_equal(stats_of(sites, 0).unconfirmed, 0);
        assert_int_equal(stats_of(sites, 1).queued, 0);
        sites_free(sites);
    }
    reset_line();
}

static void
test_a_peer_with_a_new_identity_fails_what_was_under_way_to_the_old_one(void **state)
{
    (void)state;
    check_replaced(false, 0);
}

static void
test_a_peer_that_was_forgotten_meanwhile_fails_it_too(void **state)
{
    (void)state;
    check_replaced(true, 0);
}

static void
test_acks_reach_the_ackers_of_a_new_process(void **state)
{
    (void)state;
    check_replaced(false, 3);
    check_replaced(true, 3);
}

static void
check_pending(struct sites *sites)
{
    for (int32_t i = 0; i < 2; i++) {
        struct rig *rig = sites->at[i].rig;
        assert_int_equal(rig_stats(rig, i == 0 ? SPOUT : SPOUT_2).pending, 0);
    }
}

static void
test_acks_reach_the_spouts_of_a_new_process(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        reset_line();
        is_tracked = true;
        sink_site = 2;
        struct sites *sites = line_new(3, 300 + seed);
        sites_connect_all(sites);
        for (int i = 0; i < 3 + (int)seed; i++) {
            sites_step(sites);
        }
        /* The sink has tuples of the new spout before it has a connection with it. */
        replace_site(sites, 0, seed % 2 == 0);
        sites_run(sites);
        assert_int_equal(sites->failure, 0);
        check_pending(sites);
        sites_free(sites);
    }
    reset_line();
}

static void
test_ends_of_input_cross_processes_and_are_told_to_a_new_peer(void **state)
{
    (void)state;
    reset_line();
    tuples = 10;
    struct sites *sites = line_new(3, 21);
    sites_connect_all(sites);
    sites_run(sites);
    assert_int_equal(sites->at[0].rig->tasks[SINK].finishes, 1);
    assert_int_equal(sites->at[1].rig->tasks[BOLT].finishes, 1);
    assert_int_equal(sites->at[2].rig->tasks[BOLT_2].finishes, 1);
    replace_site(sites, 2, false);
    sites_run(sites);
    /* The new bolt hears again that its spouts have ended. */
    assert_int_equal(sites->at[2].rig->tasks[BOLT_2].finishes, 1);
    assert_int_equal(sites->at[0].rig->tasks[SINK].finishes, 1);
    sites_free(sites);
    reset_line();
}

/* The second spout is DONE, the first one waits; then the second one goes, or to another process.
 */
static struct sites *
change_done_spout(bool is_removed)
{
    reset_line();
    tuples = 10;
    waiting = SPOUT;
    struct sites *sites = line_new(3, 22);
    sites_connect_all(sites);
    sites_run(sites);
    assert_int_equal(sites->at[1].rig->tasks[BOLT].finishes, 0);
    for (int32_t i = 0; i < sites->count; i++) {
        struct sl_worker *worker = sites->at[i].rig->worker;
        if (is_removed) {
            assert_int_equal(sl_worker_remove_task(worker, SPOUT_2), 0);
        } else if (i == 1) {
            assert_int_equal(sl_worker_move_task(worker, SPOUT_2, 2), 0);
        } else if (i == 2) {
            assert_int_equal(sl_worker_remove_task(worker, SPOUT_2), 0);
            assert_int_equal(sl_worker_task(worker, 0, SPOUT_2, 1, 0), SPOUT_2);
            sites->at[2].rig->tasks[SPOUT_2].limit = 0;
            waiting = SPOUT_2;
            assert_int_equal(
                rig_attach(sites->at[2].rig, sl_worker_executor(worker, 0), SPOUT_2, true), 0);
        } else {
            assert_int_equal(sl_worker_place(worker, SPOUT_2, 2), 0);
        }
        rig_command_all(sites->at[i].rig, SL_COMMAND_ROUTES);
    }
    sites_run(sites);
    assert_int_equal(
        sl_worker_command(sites->at[1].rig->worker, 0, SL_COMMAND_REMOVE_TASK, SPOUT_2), 0);
    for (int32_t i = 0; i < sites->count; i++) {
        sites_run(sites);
        rig_command_all(sites->at[i].rig, SL_COMMAND_ROUTES);
    }
    sites_run(sites);
    return sites;
}

static void
assert_finishes(const struct sites *sites, int count)
{
    assert_int_equal(sites->at[1].rig->tasks[BOLT].finishes, count);
    assert_int_equal(sites->at[2].rig->tasks[BOLT_2].finishes, count);
    assert_int_equal(sites->at[0].rig->tasks[SINK].finishes, count);
}

static void
test_a_spout_that_was_done_and_is_removed_ends_no_input(void **state)
{
    (void)state;
    struct sites *sites = change_done_spout(true);
    assert_finishes(sites, 0);
    waiting = 0;
    sites_advance(sites, 50);
    assert_finishes(sites, 1);
    sites_free(sites);
    reset_line();
}

static void
test_a_spout_that_was_done_and_moves_ends_no_input(void **state)
{
    (void)state;
    struct sites *sites = change_done_spout(false);
    sites_advance(sites, 50);
    assert_finishes(sites, 0);
    waiting = 0;
    sites_advance(sites, 50);
    assert_finishes(sites, 1);
    sites_free(sites);
    reset_line();
}

static void
test_a_forgotten_peer_fails_what_waits_for_it(void **state)
{
    (void)state;
    reset_line();
    is_tracked = true;
    tuples = 50;
    struct sites *sites = line_new(2, 31);
    /* Never connected: everything to site 1 waits in queues. */
    for (int i = 0; i < 50; i++) {
        rig_round(sites->at[0].rig);
        sl_remote_pump(sites->at[0].remote);
    }
    assert_true(stats_of(sites, 0).queued > 0);
    sl_remote_forget(sites->at[0].remote, 1);
    assert_int_equal(stats_of(sites, 0).queued, 0);
    rig_run(sites->at[0].rig);
    assert_true(failed > 0);
    assert_int_equal(acked, 0);
    sites_free(sites);
    reset_line();
}

/* ---- moved tasks ---------------------------------------------------------------------------- */

static void
test_a_task_that_moves_here_is_reached_without_the_wire(void **state)
{
    (void)state;
    reset_line();
    tuples = 100;
    struct sites *sites = line_new(2, 41);
    sites_connect_all(sites);
    sites_run(sites);
    assert_int_equal(executed[BOLT], 100);
    struct rig *rig = sites->at[0].rig;
    uint64_t written = stats_of(sites, 0).sent;
    for (int32_t id = BOLT; id <= BOLT_2; id++) {
        assert_int_equal(sl_worker_remove_task(rig->worker, id), 0);
        assert_int_equal(sl_worker_task(rig->worker, 1, id, id - BOLT, 0), id);
        assert_int_equal(rig_attach(rig, sl_worker_executor(rig->worker, 0), id, true), 0);
    }
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    rig->tasks[SPOUT].limit = 200;
    sl_spout_reopen(rig->tasks[SPOUT].io);
    memset(last_seen[SINK], 0, sizeof(last_seen[SINK]));
    rig_run(rig);
    assert_int_equal(rig->tasks[SPOUT].count, 200);
    assert_int_equal(executed[BOLT] + executed[BOLT_2], 300);
    sl_remote_pump(sites->at[0].remote);
    assert_int_equal(stats_of(sites, 0).queued, 0);
    assert_in_range(stats_of(sites, 0).sent, written, written + 4);
    sites_free(sites);
    reset_line();
}

/* More tuples of the spouts at 0 and 1, which were done. */
static void
emit_more(struct sites *sites, int64_t limit)
{
    for (int32_t i = 0; i < 2; i++) {
        struct rig_task *spout = &sites->at[i].rig->tasks[i == 0 ? SPOUT : SPOUT_2];
        spout->limit = limit;
        sl_spout_reopen(spout->io);
    }
    sites_run(sites);
    assert_int_equal(acked, 2 * limit);
    check_pending(sites);
}

static void
test_an_acker_moves_to_another_process_and_back(void **state)
{
    (void)state;
    reset_line();
    is_tracked = true;
    acker_tasks = 2;
    tuples = 100;
    struct sites *sites = line_new(2, 43);
    sites_connect_all(sites);
    sites_run(sites);
    assert_int_equal(acked, 200);
    for (int32_t from = 0; from < 2; from++) {
        struct rig *rig = sites->at[from].rig;
        struct rig *next = sites->at[1 - from].rig;
        assert_int_equal(sl_worker_remove_task(next->worker, 10), 0);
        assert_int_equal(sl_worker_task(next->worker, 3, 10, 0, 0), 10);
        assert_int_equal(rig_attach(next, sl_worker_executor(next->worker, 0), 10, true), 0);
        assert_int_equal(sl_worker_move_task(rig->worker, 10, 1 - from), 0);
        rig_command_all(rig, SL_COMMAND_ROUTES);
        rig_command_all(next, SL_COMMAND_ROUTES);
        assert_int_equal(sl_worker_command(rig->worker, 0, SL_COMMAND_REMOVE_TASK, 10), 0);
        sites_run(sites);
        assert_null(rig->worker->tasks[10]);
        emit_more(sites, 200 + 100 * from);
        /* Both have had some of the roots. */
        assert_true(rig_stats(next, 10).executed > 0);
    }
    sites_free(sites);
    reset_line();
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* A pair whose wire holds the first frames of site 0. */
static struct sites *
pair_with_bytes(uint64_t seed)
{
    reset_line();
    tuples = 20;
    struct sites *sites = line_new(2, seed);
    sites_connect_all(sites);
    rig_round(sites->at[0].rig);
    sites_write(sites, 0);
    assert_true(sites->wires[0][1].bytes.size > 200);
    return sites;
}

static void
test_malformed_bytes_are_refused_and_touch_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct sites *sites = pair_with_bytes(seed);
        struct sl_buf *bytes = &sites->wires[0][1].bytes;
        for (int i = 0; i < 1 + (int)(seed % 3); i++) {
            size_t at = (size_t)sl_random_below(&sites->random, bytes->size);
            bytes->data[at] ^= (uint8_t)(1u << sl_random_below(&sites->random, 8));
        }
        while (sites->failure == 0 && sites_deliver(sites, 0, 1, 1 + seed % 70)) {
        }
        assert_true(sites->failure == 0 || sites->failure == SL_EPROTO ||
                    sites->failure == SL_ENOMEM);
        sl_remote_close(sites->at[1].remote, 0);
        rig_run(sites->at[1].rig);
        sites_free(sites);
    }
    reset_line();
}

static void
refuses(const void *bytes, size_t size)
{
    struct sites *sites = pair_with_bytes(1);
    int rc = sl_remote_feed(sites->at[1].remote, 0, bytes, size);
    assert_int_equal(rc, SL_EPROTO);
    sites_free(sites);
}

static void
test_frames_that_no_peer_sends_are_refused(void **state)
{
    (void)state;
    struct sl__frame_head head = {
        .size = 8, .type = SL_REMOTE_CREDIT, .count = 1, .check = SL_FRAME_MAGIC};
    struct {
        struct sl__frame_head head;
        uint64_t rest[3];
    } frame = {.head = head};
#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        frame.head = head;                                                                         \
        frame.head.field = (value);                                                                \
        refuses(&frame, sizeof(frame));                                                            \
    } while (0)
    REFUSED(size, 0);
    REFUSED(size, 9);
    REFUSED(count, 0);
    REFUSED(count, 2);
    REFUSED(type, 31);
    REFUSED(type, 35);
    REFUSED(flags, 1);
    REFUSED(check, 7);
    /* Frames that we have not sent. */
    frame.head = head;
    frame.rest[0] = 1000;
    refuses(&frame, sizeof(frame.head) + 8);
    /* A grant for a task that can not be, and one beyond the window. */
    frame.head = (struct sl__frame_head){
        .size = 24, .type = SL_REMOTE_CREDIT, .count = 2, .check = SL_FRAME_MAGIC};
    frame.rest[0] = 0;
    frame.rest[1] = 1 << 25;
    frame.rest[2] = 1;
    refuses(&frame, sizeof(frame));
    frame.rest[1] = BOLT;
    frame.rest[2] = UINT64_C(1) << 40;
    refuses(&frame, sizeof(frame));
#undef REFUSED
}

static void
test_more_than_the_window_is_refused(void **state)
{
    (void)state;
    struct sites *sites = pair_with_bytes(2);
    struct sl_buf *bytes = &sites->wires[0][1].bytes;
    int rc = 0;
    /* The same frames over and over: a peer that does not keep to its credit. */
    for (int i = 0; i < 1000 && rc == 0; i++) {
        rc = sl_remote_feed(sites->at[1].remote, 0, bytes->data, bytes->size);
    }
    assert_int_equal(rc, SL_EPROTO);
    assert_in_range(stats_of(sites, 1).held_bytes, 1, 2 * SITE_WINDOW + 1024);
    sites_free(sites);
    reset_line();
}

/* ---- large records -------------------------------------------------------------------------- */

static char large_text[4 * SITE_WINDOW];

static int
next_large(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    task->count++;
    struct sl_emitter *emitter = sl_task_emitter(task->io, 0);
    int32_t head = (int32_t)(sizeof(struct sl_record) + 2 * sizeof(struct sl_slot));
    int32_t bytes = head + (int32_t)sizeof(large_text);
    struct sl_record *record = sl_task_scratch(task->io, bytes);
    record->len = bytes;
    record->slots[0] = (struct sl_slot){.tag = SL_VALUE_INT64, .i64 = task->count};
    record->slots[1] = (struct sl_slot){
        .tag = SL_VALUE_STRING, .len = (int32_t)sizeof(large_text), .offset = head};
    memcpy((uint8_t *)record + head, large_text, sizeof(large_text));
    sl_anchors_clear(task->io);
    sl_emitter_clear(emitter);
    sl_emitter_add(emitter, 0);
    int lack = sl_emitter_copy(task->io, emitter, 0, bytes);
    while (lack > 0) {
        assert_int_equal(rig_flush(task, emitter->targets[0], lack), 0);
        lack = sl_emitter_copy(task->io, emitter, 0, bytes);
    }
    task->io->emits++;
    return SL_SPOUT_EMITTED;
}

static void
execute_large(struct rig_task *task, struct sl_record *record)
{
    executed[task->id]++;
    has_gap |= rig_value(record, 0) != ++last_seen[task->id][0];
    has_gap |= record->slots[1].len != (int32_t)sizeof(large_text);
    has_gap |=
        memcmp((uint8_t *)record + record->slots[1].offset, large_text, sizeof(large_text)) != 0;
}

static void
plan_large(struct sites *sites, int32_t site)
{
    struct rig *rig = sites->at[site].rig;
    rig_component(rig, SL_TASK_SPOUT, 0, -1, 2, (struct rig_component){.next = next_large});
    rig_component(rig, SL_TASK_BOLT, 1, -1, 2, (struct rig_component){.execute = execute_large});
    rig_read(rig, 0, 1, SL_GROUPING_GLOBAL);
    site_plan(sites, site, 0, SPOUT, 0);
    site_plan(sites, site, 1, BOLT, 1);
    rig->tasks[SPOUT].limit = 20;
    site_attach(&sites->at[site]);
}

static void
test_records_larger_than_the_window_pass_one_by_one(void **state)
{
    (void)state;
    start_over();
    memset(large_text, 'x', sizeof(large_text));
    large_text[sizeof(large_text) - 1] = 'y';
    struct sites *sites = sites_new(2, 51, plan_large);
    sites_connect_all(sites);
    sites_run(sites);
    assert_int_equal(executed[BOLT], 20);
    assert_false(has_gap);
    assert_int_equal(stats_of(sites, 1).held, 0);
    sites_free(sites);
}

/* ---- the plan ------------------------------------------------------------------------------- */

static void
test_the_plan_refuses_places_that_can_not_be(void **state)
{
    (void)state;
    reset_line();
    struct sites *sites = line_new(2, 61);
    struct sl_worker *worker = sites->at[0].rig->worker;
    assert_int_equal(sl_worker_place(worker, BOLT, -1), SL_EINVAL);
    assert_int_equal(sl_worker_place(worker, BOLT, SL_REMOTE_PEER_MAX + 1), SL_EINVAL);
    assert_int_equal(sl_worker_place(worker, RIG_TASKS, 1), SL_EINVAL);
    assert_int_equal(sl_worker_place(worker, SPOUT, 1), SL_ENOTFOUND);
    assert_int_equal(sl_worker_place(worker, 77, 1), SL_ENOTFOUND);
    sites_free(sites);
    struct sl_worker_options options = rig_options();
    options.remote_window = 4095;
    assert_null(sl_worker_new(&options));
    struct rig *rig = rig_new(&(struct sl_worker_options){.executors = 1,
                                                          .message_timeout_ms = 1,
                                                          .max_spout_pending = 1,
                                                          .task_capacity = 70000,
                                                          .batch_bytes = 1024,
                                                          .credit = 1,
                                                          .remote_window = 4096});
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    assert_int_equal(sl_worker_task(rig->worker, spout, 65535, 0, 0), 65535);
    assert_int_equal(sl_worker_task(rig->worker, spout, 65536, 1, 0), SL_ELIMIT);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_grouping_reaches_its_tasks_once_and_in_order),
    cmocka_unit_test(test_local_or_shuffle_stays_in_the_process_when_it_can),
    cmocka_unit_test(test_roots_complete_across_processes),
    cmocka_unit_test(test_breaks_of_connections_lose_and_double_nothing),
    cmocka_unit_test(test_a_receiver_that_rests_is_sent_no_more_than_its_window),
    cmocka_unit_test(test_lost_grants_heal),
    cmocka_unit_test(test_a_peer_with_a_new_identity_fails_what_was_under_way_to_the_old_one),
    cmocka_unit_test(test_a_peer_that_was_forgotten_meanwhile_fails_it_too),
    cmocka_unit_test(test_acks_reach_the_ackers_of_a_new_process),
    cmocka_unit_test(test_acks_reach_the_spouts_of_a_new_process),
    cmocka_unit_test(test_ends_of_input_cross_processes_and_are_told_to_a_new_peer),
    cmocka_unit_test(test_a_spout_that_was_done_and_is_removed_ends_no_input),
    cmocka_unit_test(test_a_spout_that_was_done_and_moves_ends_no_input),
    cmocka_unit_test(test_a_forgotten_peer_fails_what_waits_for_it),
    cmocka_unit_test(test_a_task_that_moves_here_is_reached_without_the_wire),
    cmocka_unit_test(test_an_acker_moves_to_another_process_and_back),
    cmocka_unit_test(test_malformed_bytes_are_refused_and_touch_nothing_else),
    cmocka_unit_test(test_frames_that_no_peer_sends_are_refused),
    cmocka_unit_test(test_more_than_the_window_is_refused),
    cmocka_unit_test(test_records_larger_than_the_window_pass_one_by_one),
    cmocka_unit_test(test_the_plan_refuses_places_that_can_not_be),
};

UNIT_MAIN(tests)
