/* Mode minimal against brute force on small cases: no assignment within one moves fewer tasks. */
#include "scheduling/sched_fixture.h"

/* A small case for the search: slots are indexes, tasks are indexes. */
struct search {
    uint32_t slot_count;
    uint32_t task_count;
    /* Previous slot of a task, or -1. */
    int old[16];
    uint32_t workers;
    /* Index of the lone master's task, or -1. */
    int lone;
    uint32_t sizes[16];
    int lone_slot;
    uint32_t best;
};

static bool
is_within_one(const struct search *s)
{
    uint32_t used = 0;
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        if (s->sizes[i] == 0) {
            continue;
        }
        used++;
        if ((int)i == s->lone_slot) {
            if (s->sizes[i] != 1) {
                return false;
            }
            continue;
        }
        least = s->sizes[i] < least ? s->sizes[i] : least;
        most = s->sizes[i] > most ? s->sizes[i] : most;
    }
    return used == s->workers && (most == 0 || most - least <= 1);
}

static void
search_from(struct search *s, uint32_t task, uint32_t moved)
{
    if (moved >= s->best) {
        return;
    }
    if (task == s->task_count) {
        if (is_within_one(s)) {
            s->best = moved;
        }
        return;
    }
    for (uint32_t slot = 0; slot < s->slot_count; slot++) {
        bool is_lone = (int)task == s->lone;
        if (is_lone) {
            s->lone_slot = (int)slot;
        }
        s->sizes[slot]++;
        search_from(s, task + 1, moved + (s->old[task] >= 0 && s->old[task] != (int)slot));
        s->sizes[slot]--;
        if (is_lone) {
            s->lone_slot = -1;
        }
    }
}

/* A random start: tasks over random slots, unbalanced, some tasks new, some slots gone. */
static struct fx *
random_case(struct sl_random *random)
{
    struct fx *f = fx_new();
    uint32_t sups = 1 + (uint32_t)sl_random_below(random, 3);
    for (uint32_t i = 1; i <= sups; i++) {
        char id[8];
        snprintf(id, sizeof(id), "s%u", i);
        fx_sup(f, id, id, 1 + (uint32_t)sl_random_below(random, 2));
    }
    fx_component(f, "b", SL_SCHED_BOLT, 1 + (uint32_t)sl_random_below(random, 4));
    fx_system(f, (uint32_t)sl_random_below(random, 2));
    fx_component(f, "s", SL_SCHED_SPOUT, 1 + (uint32_t)sl_random_below(random, 3));
    fx_reads(f, "b", "s");
    f->r.workers = 1 + (uint32_t)sl_random_below(random, 4);
    f->r.master_alone = (int32_t)sl_random_below(random, 2);
    uint32_t slots = 2 + (uint32_t)sl_random_below(random, 3);
    uint32_t at = 0;
    for (uint32_t o = 0; o < slots; o++) {
        struct sl_sched_previous *old = &f->olds[o];
        snprintf(f->old_names[o][0], sizeof(f->old_names[o][0]), "s%u", 1 + o / 2);
        *old = (struct sl_sched_previous){.supervisor = f->old_names[o][0],
                                          .host = f->old_names[o][0],
                                          .port = 6800 + o % 2,
                                          .first_task = at,
                                          .cpu = -1,
                                          .ram = -1};
        for (uint32_t t = 1; t < f->next_task; t++) {
            uint64_t hash = (t * 2654435761u + f->r.workers) % (slots + 1);
            if (hash == o) {
                f->old_tasks[at++] = t;
                old->task_count++;
            }
        }
    }
    f->r.previous_count = slots;
    f->r.previous_task_count = at;
    return f;
}

static void
test_minimal_is_optimal_on_small_cases(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 11);
    uint32_t compared = 0;
    for (uint32_t round = 0; round < 1500; round++) {
        struct fx *f = random_case(&random);
        struct sl_sched_result result;
        f->r.mode = SL_SCHED_MINIMAL;
        int rc = sl_sched_assign(fx_request(f), SL_SCHED_BALANCED, &result);
        struct search s = {.task_count = f->r.task_count, .lone = -1, .lone_slot = -1};
        int slot_of[FX_OLDS];
        for (uint32_t o = 0; o < f->r.previous_count; o++) {
            slot_of[o] = 1000;
        }
        for (uint32_t i = 0; i < f->r.supervisor_count; i++) {
            for (uint32_t p = 0; p < f->sups[i].port_count; p++) {
                for (uint32_t o = 0; o < f->r.previous_count; o++) {
                    if (strcmp(f->olds[o].supervisor, f->sups[i].id) == 0 &&
                        f->olds[o].port == 6800 + p) {
                        slot_of[o] = (int)s.slot_count;
                    }
                }
                s.slot_count++;
            }
        }
        for (uint32_t t = 1; t < f->next_task; t++) {
            s.old[t - 1] = -1;
            for (uint32_t o = 0; o < f->r.previous_count; o++) {
                for (uint32_t k = 0; k < f->olds[o].task_count; k++) {
                    if (f->old_tasks[f->olds[o].first_task + k] == t) {
                        s.old[t - 1] = slot_of[o];
                    }
                }
            }
        }
        uint32_t others = f->r.task_count - 1;
        s.workers = f->r.workers < others ? f->r.workers : others;
        if (f->r.master_alone == SL_SCHED_YES) {
            s.workers++;
            s.lone = (int)f->comp_tasks[fx_find(f, "__topology_master")][0] - 1;
        }
        s.best = UINT32_MAX;
        search_from(&s, 0, 0);
        assert_int_equal(rc == 0, s.best != UINT32_MAX);
        if (rc == 0) {
            compared++;
            assert_int_equal(result.moved, s.best);
            assert_int_equal(result.worker_count, s.workers);
        }
        sl_sched_result_destroy(&result);
        free(f);
    }
    assert_true(compared > 500);
}

static void
test_minimal_repeats_an_even_assignment(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    struct sl_sched_result c1 = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    fx_previous(f, &c1);
    struct sl_sched_result again = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MINIMAL);
    assert_int_equal(again.moved, 0);
    char *before = strdup(fx_text(&c1));
    assert_string_equal(fx_text(&again), before);
    free(before);
    sl_sched_result_destroy(&c1);
    sl_sched_result_destroy(&again);
    free(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimal_is_optimal_on_small_cases),
        cmocka_unit_test(test_minimal_repeats_an_even_assignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
