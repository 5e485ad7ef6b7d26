/* labels: short */
/* The launcher that another thread serves: this test is both threads, one after the other. */

#include <string.h>

#include "base/err.h"
#include "cluster/control_messages.h"
#include "cluster/launcher_asked.h"
#include "loop/loop.h"
#include "unit.h"

struct rig {
    struct sl_loop *loop;
    struct sl_launcher_asked *launcher;
    struct sl_launcher seam;
    int progress;
    int stopped;
    int ended;
    int stuck;
    int32_t last_ended;
    char text[256];
    struct sl_packing_container containers[8];
    struct sl_stored_plan plan;
};

static void
on_ended(void *ctx, int32_t container, const char *text)
{
    struct rig *rig = ctx;
    rig->ended++;
    rig->last_ended = container;
    snprintf(rig->text, sizeof(rig->text), "%s", text);
}

static void
on_stuck(void *ctx, int32_t container, const char *text)
{
    struct rig *rig = ctx;
    (void)container;
    rig->stuck++;
    snprintf(rig->text, sizeof(rig->text), "%s", text);
}

static void
on_all_stopped(void *ctx)
{
    ((struct rig *)ctx)->stopped++;
}

static void
on_progress(void *ctx)
{
    ((struct rig *)ctx)->progress++;
}

static void
rig_open(struct rig *rig, struct sl_launcher_abilities abilities)
{
    static const struct sl_execution_state execution = {
        .topology = "words", .cwd = "/", .user = "me"};
    struct sl_launcher_listener listener = {.on_ended = on_ended,
                                            .on_stuck = on_stuck,
                                            .on_all_stopped = on_all_stopped,
                                            .on_progress = on_progress,
                                            .ctx = rig};
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(sl_loop_new(&rig->loop), 0);
    rig->launcher = sl_launcher_asked_new(&abilities);
    rig->seam = sl_launcher_asked_seam(rig->launcher, rig->loop);
    for (int32_t i = 0; i < 8; i++) {
        rig->containers[i] = (struct sl_packing_container){.id = i + 1, .cpu = 1.5};
    }
    rig->plan.plan.containers = rig->containers;
    rig->plan.plan.container_count = 4;
    assert_int_equal(rig->seam.initialize(rig->seam.self, &execution, 7, &listener), 0);
}

static void
rig_close(struct rig *rig)
{
    const struct sl_launcher_command *command;
    sl_launcher_asked_close(rig->launcher);
    assert_int_equal(sl_launcher_asked_next(rig->launcher, -1, &command), SL_ECLOSED);
    sl_loop_free(rig->loop);
    sl_launcher_asked_free(rig->launcher);
}

/* Takes the next command, which must be one of this kind. */
static const struct sl_launcher_command *
take(struct rig *rig, enum sl_launcher_command_kind kind)
{
    const struct sl_launcher_command *command = NULL;
    assert_int_equal(sl_launcher_asked_next(rig->launcher, 5000, &command), 1);
    assert_int_equal(command->kind, kind);
    return command;
}

static void
answer(struct rig *rig, int code, const char *text, const int32_t *ids, size_t count)
{
    sl_launcher_asked_done(rig->launcher, code, text, ids, count);
    sl_loop_run_once(rig->loop, 1000);
}

static void
start(struct rig *rig)
{
    int32_t ids[] = {1, 2, 3, 4};
    assert_string_equal(take(rig, SL_LAUNCHER_INITIALIZE)->topology, "words");
    answer(rig, 0, NULL, NULL, 0);
    assert_int_equal(rig->seam.add_containers(rig->seam.self, &rig->plan, ids, 4), 0);
    const struct sl_launcher_command *command = take(rig, SL_LAUNCHER_SCHEDULE);
    assert_int_equal(command->container_count, 4);
    assert_int_equal(command->containers[3].id, 4);
    assert_true(command->containers[3].cpu == 1.5);
    answer(rig, 0, NULL, NULL, 0);
}

static void
test_containers_get_the_numbers_that_it_gives(void **state)
{
    static const int32_t real[] = {7, 9};
    struct rig rig;
    int32_t ids[] = {5, 6};
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){.can_scale = true});
    assert_false(rig.seam.can_not_scale);
    start(&rig);
    assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 2), SL_EAGAIN);
    assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 2), SL_EAGAIN);
    assert_int_equal(take(&rig, SL_LAUNCHER_ADD)->containers[1].id, 6);
    assert_int_equal(rig.progress, 0);
    answer(&rig, 0, NULL, real, 2);
    assert_int_equal(rig.progress, 1);
    assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 2), 0);
    assert_int_equal(ids[0], 7);
    assert_int_equal(ids[1], 9);
    /* As asked. */
    ids[0] = 8;
    assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 1), SL_EAGAIN);
    take(&rig, SL_LAUNCHER_ADD);
    answer(&rig, 0, NULL, NULL, 0);
    assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 1), 0);
    assert_int_equal(ids[0], 8);
    rig_close(&rig);
}

static void
test_numbers_that_can_not_be_fail_the_command(void **state)
{
    static const struct {
        int32_t ids[3];
        size_t count;
        const char *text;
    } rows[] = {
        {{7}, 1, "the launcher gave 1 numbers for 2 containers"},
        {{7, 8, 9}, 3, "the launcher gave 3 numbers for 2 containers"},
        {{7, 7}, 2, "the launcher gave the number 7 twice"},
        {{7, 0}, 2, "the launcher gave the number 0"},
    };
    struct rig rig;
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){.can_scale = true});
    start(&rig);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int32_t ids[] = {5, 6};
        assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 2), SL_EAGAIN);
        take(&rig, SL_LAUNCHER_ADD);
        answer(&rig, 0, NULL, rows[i].ids, rows[i].count);
        assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 2), SL_EINVAL);
        assert_string_equal(sl_err_last()->msg, rows[i].text);
    }
    rig_close(&rig);
}

/* The update was given up while they were being started: they end as soon as they are there. */
static void
test_what_an_abandoned_update_started_is_removed(void **state)
{
    static const int32_t real[] = {7, 9};
    struct rig rig;
    int32_t ids[] = {5, 6};
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){.can_scale = true});
    start(&rig);
    rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 2);
    rig.seam.remove_containers(rig.seam.self, ids, 2);
    take(&rig, SL_LAUNCHER_ADD);
    answer(&rig, 0, NULL, real, 2);
    assert_int_equal(rig.progress, 0);
    const struct sl_launcher_command *command = take(&rig, SL_LAUNCHER_REMOVE);
    assert_int_equal(command->containers[0].id, 7);
    assert_int_equal(command->containers[1].id, 9);
    answer(&rig, 0, NULL, NULL, 0);
    /* Others are removed as they are. */
    rig.seam.remove_containers(rig.seam.self, ids, 1);
    assert_int_equal(take(&rig, SL_LAUNCHER_REMOVE)->containers[0].id, 5);
    rig_close(&rig);
}

static void
test_a_failed_start_is_told_and_tried_again(void **state)
{
    struct rig rig;
    int32_t ids[] = {1, 2, 3, 4};
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){0});
    assert_true(rig.seam.can_not_scale);
    take(&rig, SL_LAUNCHER_INITIALIZE);
    answer(&rig, 0, NULL, NULL, 0);
    rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 4);
    take(&rig, SL_LAUNCHER_SCHEDULE);
    answer(&rig, SL_EUSER, "no partition", NULL, 0);
    assert_int_equal(rig.ended, 4);
    assert_string_equal(rig.text, "no partition");
    sl_loop_run_once(rig.loop, 5000);
    assert_int_equal(take(&rig, SL_LAUNCHER_SCHEDULE)->container_count, 4);
    rig_close(&rig);
}

static void
test_a_launcher_that_can_not_begin_is_told_at_once(void **state)
{
    int32_t ids[] = {1, 2, 3, 4};
    struct rig rig;
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){0});
    assert_int_equal(rig.seam.add_containers(rig.seam.self, &rig.plan, ids, 4), 0);
    take(&rig, SL_LAUNCHER_INITIALIZE);
    answer(&rig, SL_EUSER, "slurm.lua:3: no account", NULL, 0);
    assert_int_equal(rig.stuck, 4);
    assert_int_equal(rig.ended, 0);
    assert_string_equal(rig.text, "slurm.lua:3: no account");
    /* The schedule is on its way, and tried again like any other. */
    take(&rig, SL_LAUNCHER_SCHEDULE);
    answer(&rig, SL_EUSER, "slurm.lua:3: no account", NULL, 0);
    assert_int_equal(rig.ended, 4);
    sl_loop_run_once(rig.loop, 2 * SL_LAUNCHER_ASKED_RETRY_MS);
    take(&rig, SL_LAUNCHER_SCHEDULE);
    answer(&rig, 0, NULL, NULL, 0);
    assert_int_equal(rig.stuck, 4);
    rig_close(&rig);
}

static void
test_updates_are_told_to_who_wants_to_hear(void **state)
{
    struct rig rig;
    struct sl_stored_plan next;
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){0});
    next = rig.plan;
    assert_int_equal(rig.seam.prepare_update(rig.seam.self, &rig.plan, &next), 0);
    rig_close(&rig);
    rig_open(&rig, (struct sl_launcher_abilities){.wants_updates = true});
    start(&rig);
    next = rig.plan;
    next.plan.container_count = 6;
    assert_int_equal(rig.seam.prepare_update(rig.seam.self, &rig.plan, &next), SL_EAGAIN);
    const struct sl_launcher_command *command = take(&rig, SL_LAUNCHER_UPDATE);
    assert_int_equal(command->container_count, 6);
    assert_int_equal(command->old_container_count, 4);
    /* Given up, and another one is asked for: the answer to the first means nothing. */
    next.plan.container_count = 7;
    assert_int_equal(rig.seam.prepare_update(rig.seam.self, &rig.plan, &next), SL_EAGAIN);
    answer(&rig, SL_EUSER, "no", NULL, 0);
    assert_int_equal(rig.progress, 0);
    take(&rig, SL_LAUNCHER_UPDATE);
    answer(&rig, SL_EUSER, "seven is too many", NULL, 0);
    assert_int_equal(rig.progress, 1);
    assert_int_equal(rig.seam.prepare_update(rig.seam.self, &rig.plan, &next), SL_EUSER);
    assert_string_equal(sl_err_last()->msg, "seven is too many");
    rig_close(&rig);
}

static void
test_restarts_ends_and_the_kill(void **state)
{
    struct rig rig;
    (void)state;
    rig_open(&rig, (struct sl_launcher_abilities){0});
    assert_int_equal(rig.seam.restart_container(rig.seam.self, 2), SL_EINVAL);
    rig_close(&rig);
    rig_open(&rig, (struct sl_launcher_abilities){.can_restart = true});
    start(&rig);
    assert_int_equal(rig.seam.restart_container(rig.seam.self, 2), 0);
    assert_int_equal(take(&rig, SL_LAUNCHER_RESTART)->containers[0].id, 2);
    answer(&rig, 0, NULL, NULL, 0);
    sl_launcher_asked_ended(rig.launcher, 3, "job ended");
    sl_loop_run_once(rig.loop, 1000);
    assert_int_equal(rig.last_ended, 3);
    rig.seam.stop_all(rig.seam.self);
    take(&rig, SL_LAUNCHER_KILL);
    assert_int_equal(rig.stopped, 0);
    answer(&rig, 0, NULL, NULL, 0);
    assert_int_equal(rig.stopped, 1);
    const struct sl_launcher_command *command;
    assert_int_equal(sl_launcher_asked_next(rig.launcher, 1, &command), 0);
    assert_int_equal(sl_launcher_asked_done(rig.launcher, 0, NULL, NULL, 0), SL_EINVAL);
    rig_close(&rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_containers_get_the_numbers_that_it_gives),
        cmocka_unit_test(test_numbers_that_can_not_be_fail_the_command),
        cmocka_unit_test(test_what_an_abandoned_update_started_is_removed),
        cmocka_unit_test(test_a_failed_start_is_told_and_tried_again),
        cmocka_unit_test(test_a_launcher_that_can_not_begin_is_told_at_once),
        cmocka_unit_test(test_updates_are_told_to_who_wants_to_hear),
        cmocka_unit_test(test_restarts_ends_and_the_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
