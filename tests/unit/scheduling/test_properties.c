/* Invariants over random clusters and topologies, and equality with the naive version.
 * timeout: 300 */
#include "scheduling/naive.h"

enum { ROUNDS = UNIT_ROUNDS(10000) };

static const char *const NAMES[] = {"a", "b", "c", "d", "e", "f"};

/* What a random request is drawn from. */
struct draw {
    bool has_isolation;
    bool has_users;
    bool has_spread;
    bool has_resources;
};

static struct fx *
random_request(struct sl_random *random, const struct draw *draw)
{
    struct fx *f = fx_new();
    uint32_t sups = 1 + (uint32_t)sl_random_below(random, 6);
    for (uint32_t i = 1; i <= sups; i++) {
        char id[8];
        char host[8];
        snprintf(id, sizeof(id), "s%u", i);
        snprintf(host, sizeof(host), "h%u", 1 + (uint32_t)sl_random_below(random, sups));
        fx_sup(f, id, host, 1 + (uint32_t)sl_random_below(random, 6));
        for (uint32_t p = 0; p < f->sups[i - 1].port_count; p++) {
            if (sl_random_below(random, 6) == 0) {
                fx_use(f, i - 1, 6800 + p);
            }
        }
        if (draw->has_resources && sl_random_below(random, 2) == 0) {
            f->sups[i - 1].cpu = (double)sl_random_below(random, 8);
            f->sups[i - 1].ram = (double)sl_random_below(random, 16) * 512;
        }
    }
    if (draw->has_resources) {
        f->r.worker_cpu = (double)sl_random_below(random, 3);
        f->r.worker_ram = (double)sl_random_below(random, 3) * 512;
    }
    uint32_t bolts = 1 + (uint32_t)sl_random_below(random, 4);
    for (uint32_t i = 0; i < bolts; i++) {
        fx_component(f, NAMES[i], SL_SCHED_BOLT, 1 + (uint32_t)sl_random_below(random, 8));
    }
    fx_system(f, (uint32_t)sl_random_below(random, 4));
    uint32_t spouts = 1 + (uint32_t)sl_random_below(random, 2);
    for (uint32_t i = 0; i < spouts; i++) {
        fx_component(f, NAMES[bolts + i], SL_SCHED_SPOUT, 1 + (uint32_t)sl_random_below(random, 5));
    }
    for (uint32_t i = 0; i < bolts; i++) {
        uint32_t inputs = 1 + (uint32_t)sl_random_below(random, 3);
        for (uint32_t k = 0; k < inputs; k++) {
            fx_reads(f, NAMES[i], NAMES[sl_random_below(random, bolts + spouts)]);
        }
    }
    f->r.workers = (uint32_t)sl_random_below(random, 14);
    f->r.master_alone = (int32_t)sl_random_below(random, 3);
    f->r.reserve_workers = sl_random_below(random, 5) == 0;
    if (draw->has_isolation && sl_random_below(random, 3) == 0) {
        fx_isolate(f, f->names[sl_random_below(random, sups)][1]);
        fx_isolate(f, f->names[sl_random_below(random, sups)][1]);
    }
    if (draw->has_spread && sl_random_below(random, 2) == 0) {
        fx_spread(f, NAMES[sl_random_below(random, bolts)]);
    }
    for (uint32_t u = 0; draw->has_users && u < sl_random_below(random, 4); u++) {
        const char *host = f->names[sl_random_below(random, sups)][1];
        fx_user(f, sl_random_below(random, 4) == 0 ? NULL : host,
                sl_random_below(random, 3) == 0 ? 6800 + (int32_t)sl_random_below(random, 6) : -1);
        fx_share(f, NAMES[sl_random_below(random, bolts + spouts)],
                 1 + (uint32_t)sl_random_below(random, 4));
        if (draw->has_resources && sl_random_below(random, 3) == 0) {
            f->users[f->r.user_worker_count - 1].cpu = (double)sl_random_below(random, 4);
            f->users[f->r.user_worker_count - 1].ram = (double)sl_random_below(random, 4) * 512;
        }
    }
    return f;
}

/* Grows or shrinks components, changes the number of workers, takes nodes away, kills workers. */
static void
disturb(struct fx *f, struct sl_random *random)
{
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        if (f->components[c].kind != SL_SCHED_MASTER && sl_random_below(random, 2) == 0) {
            fx_scale(f, f->components[c].name, 1 + (uint32_t)sl_random_below(random, 9));
        }
    }
    if (sl_random_below(random, 2) == 0) {
        f->r.workers = (uint32_t)sl_random_below(random, 14);
    }
    if (f->r.supervisor_count > 1 && sl_random_below(random, 5) == 0) {
        char id[8];
        snprintf(id, sizeof(id), "%s", f->sups[sl_random_below(random, f->r.supervisor_count)].id);
        fx_drop_sup(f, id);
        f->r.isolation_count = 0;
        f->r.user_worker_count = 0;
    }
    for (uint32_t i = 0; i < f->r.previous_count; i++) {
        if (sl_random_below(random, 8) == 0) {
            fx_kill(f, f->olds[i].supervisor, f->olds[i].port);
        }
    }
}

static bool
is_alone(const struct fx *f)
{
    uint32_t tasks = 0;
    bool has_master = false;
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        has_master |= f->components[c].kind == SL_SCHED_MASTER;
        tasks += f->components[c].kind != SL_SCHED_MASTER ? f->components[c].task_count : 0;
    }
    uint32_t n = f->r.workers != 0 && f->r.workers < tasks ? f->r.workers : tasks;
    return has_master &&
           (f->r.master_alone == SL_SCHED_AUTO ? n >= 10 : f->r.master_alone == SL_SCHED_YES);
}

static uint32_t
workers_wanted(const struct fx *f)
{
    uint32_t tasks = 0;
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        tasks += f->components[c].kind != SL_SCHED_MASTER ? f->components[c].task_count : 0;
    }
    return (f->r.workers != 0 && f->r.workers < tasks ? f->r.workers : tasks) + is_alone(f);
}

static const struct sl_sched_supervisor *
find_sup(const struct fx *f, const char *id)
{
    for (uint32_t s = 0; s < f->r.supervisor_count; s++) {
        if (strcmp(f->sups[s].id, id) == 0) {
            return &f->sups[s];
        }
    }
    return NULL;
}

static bool
was_previous(const struct fx *f, const struct sl_sched_worker *w)
{
    for (uint32_t i = 0; i < f->r.previous_count; i++) {
        if (strcmp(f->olds[i].supervisor, w->supervisor) == 0 && f->olds[i].port == w->port) {
            return true;
        }
    }
    return false;
}

/* Each task once, slots exist, are free and are used once, isolation, different nodes. */
static void
check_common(struct fx *f, const struct sl_sched_result *result, int mode)
{
    uint8_t seen[FX_TASKS] = {0};
    for (uint32_t i = 0; i < result->worker_count; i++) {
        const struct sl_sched_worker *w = &result->workers[i];
        const struct sl_sched_supervisor *sup = find_sup(f, w->supervisor);
        bool is_survivor = mode == SL_SCHED_MONITOR && was_previous(f, w);
        assert_true(w->task_count > 0);
        assert_true(sup != NULL || is_survivor);
        if (i > 0) {
            int order = strcmp(result->workers[i - 1].supervisor, w->supervisor);
            assert_true(order < 0 || (order == 0 && result->workers[i - 1].port < w->port));
        }
        for (uint32_t k = 0; k < w->task_count; k++) {
            uint32_t t = result->tasks[w->first_task + k];
            assert_true(k == 0 || result->tasks[w->first_task + k - 1] < t);
            seen[t]++;
        }
        if (is_survivor) {
            continue;
        }
        size_t at = (size_t)(sup - f->sups);
        bool has_port = false;
        for (uint32_t p = 0; p < sup->port_count; p++) {
            has_port |= f->sup_ports[at][p] == w->port;
        }
        assert_true(has_port);
        for (uint32_t p = 0; p < sup->used_count; p++) {
            assert_int_not_equal(f->sup_used[at][p], w->port);
        }
        bool is_usable = f->r.isolation_count == 0;
        for (uint32_t h = 0; h < f->r.isolation_count; h++) {
            is_usable |= strcmp(f->isolation[h], sup->host) == 0;
        }
        assert_true(is_usable);
    }
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        for (uint32_t i = 0; i < f->components[c].task_count; i++) {
            assert_int_equal(seen[f->comp_tasks[c][i]], 1);
            seen[f->comp_tasks[c][i]] = 0;
        }
    }
    for (uint32_t t = 0; t < FX_TASKS; t++) {
        assert_int_equal(seen[t], 0);
    }
    for (uint32_t i = 0; i < f->r.on_different_nodes_count; i++) {
        uint32_t c = f->spread[i];
        for (uint32_t a = 0; a < f->components[c].task_count; a++) {
            for (uint32_t b = 0; b < a; b++) {
                assert_string_not_equal(fx_worker_of(result, f->comp_tasks[c][a])->supervisor,
                                        fx_worker_of(result, f->comp_tasks[c][b])->supervisor);
            }
        }
    }
}

static void
check_capacity(const struct fx *f, const struct sl_sched_result *result)
{
    for (uint32_t s = 0; s < f->r.supervisor_count; s++) {
        double cpu = 0;
        double ram = 0;
        for (uint32_t i = 0; i < result->worker_count; i++) {
            if (strcmp(result->workers[i].supervisor, f->sups[s].id) == 0) {
                cpu += result->workers[i].cpu > 0 ? result->workers[i].cpu : 0;
                ram += result->workers[i].ram > 0 ? result->workers[i].ram : 0;
            }
        }
        assert_true(f->sups[s].cpu < 0 || cpu <= f->sups[s].cpu);
        assert_true(f->sups[s].ram < 0 || ram <= f->sups[s].ram);
    }
}

/* True when definitions u.. can each get a worker of its own that is where it wants it and has
 * what it wants. */
static bool
match_pins(const struct fx *f, const struct sl_sched_result *result, const uint32_t *wanted,
           uint32_t u, bool *is_matched)
{
    if (u == f->r.user_worker_count) {
        return true;
    }
    if (wanted[u] == 0) {
        return match_pins(f, result, wanted, u + 1, is_matched);
    }
    const struct sl_sched_share *share = &f->user_shares[u][0];
    for (uint32_t i = 0; i < result->worker_count; i++) {
        const struct sl_sched_worker *w = &result->workers[i];
        uint32_t has = 0;
        for (uint32_t k = 0; k < f->components[share->component].task_count; k++) {
            has += fx_worker_of(result, f->comp_tasks[share->component][k]) == w;
        }
        if (!is_matched[i] && has >= wanted[u] &&
            (f->users[u].host == NULL || strcmp(f->users[u].host, w->host) == 0) &&
            (f->users[u].port < 0 || (uint32_t)f->users[u].port == w->port)) {
            is_matched[i] = true;
            if (match_pins(f, result, wanted, u + 1, is_matched)) {
                return true;
            }
            is_matched[i] = false;
        }
    }
    return false;
}

/* Each definition has a worker of its own with its share, as far as tasks were left. */
static void
check_pins(const struct fx *f, const struct sl_sched_result *result)
{
    uint32_t claimed[FX_COMPONENTS] = {0};
    uint32_t wanted[FX_SUPS];
    bool is_matched[FX_OLDS] = {false};
    for (uint32_t u = 0; u < f->r.user_worker_count; u++) {
        const struct sl_sched_share *share = &f->user_shares[u][0];
        uint32_t left = f->components[share->component].task_count - claimed[share->component];
        wanted[u] = share->count < left ? share->count : left;
        claimed[share->component] += wanted[u];
    }
    assert_true(match_pins(f, result, wanted, 0, is_matched));
}

/* Largest less smallest worker, a lone master left out. */
static uint32_t
spread_of(const struct fx *f, const struct sl_sched_result *result)
{
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    const struct sl_sched_worker *lone = NULL;
    if (is_alone(f)) {
        lone = fx_worker_of(result, f->comp_tasks[fx_find(f, "__topology_master")][0]);
        assert_int_equal(lone->task_count, 1);
    }
    for (uint32_t i = 0; i < result->worker_count; i++) {
        if (&result->workers[i] != lone) {
            uint32_t n = result->workers[i].task_count;
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
    }
    return most > least ? most - least : 0;
}

/* A shuffled copy of the request: supervisors, ports, components, tasks, old workers. */
static struct fx *
shuffled(const struct fx *f, struct sl_random *random)
{
    struct fx *g = malloc(sizeof(*g));
    memcpy(g, f, sizeof(*g));
    uint32_t order[FX_SUPS];
    for (uint32_t i = 0; i < f->r.supervisor_count; i++) {
        order[i] = i;
    }
    sl_random_shuffle(random, order, f->r.supervisor_count, sizeof(order[0]));
    for (uint32_t i = 0; i < f->r.supervisor_count; i++) {
        g->sups[i] = f->sups[order[i]];
        memcpy(g->sup_ports[i], f->sup_ports[order[i]], sizeof(g->sup_ports[i]));
        memcpy(g->sup_used[i], f->sup_used[order[i]], sizeof(g->sup_used[i]));
        sl_random_shuffle(random, g->sup_ports[i], g->sups[i].port_count, sizeof(uint32_t));
    }
    uint32_t moved_to[FX_COMPONENTS];
    uint32_t comps[FX_COMPONENTS];
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        comps[c] = c;
    }
    sl_random_shuffle(random, comps, f->r.component_count, sizeof(comps[0]));
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        moved_to[comps[c]] = c;
    }
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        g->components[c] = f->components[comps[c]];
        memcpy(g->comp_tasks[c], f->comp_tasks[comps[c]], sizeof(g->comp_tasks[c]));
        sl_random_shuffle(random, g->comp_tasks[c], g->components[c].task_count, sizeof(uint32_t));
        for (uint32_t i = 0; i < g->components[c].input_count; i++) {
            g->comp_inputs[c][i] = moved_to[f->comp_inputs[comps[c]][i]];
        }
    }
    for (uint32_t i = 0; i < g->r.on_different_nodes_count; i++) {
        g->spread[i] = moved_to[f->spread[i]];
    }
    for (uint32_t u = 0; u < g->r.user_worker_count; u++) {
        for (uint32_t i = 0; i < g->users[u].share_count; i++) {
            g->user_shares[u][i].component = moved_to[f->user_shares[u][i].component];
        }
    }
    sl_random_shuffle(random, g->olds, g->r.previous_count, sizeof(g->olds[0]));
    sl_random_shuffle(random, g->dead, g->r.dead_task_count, sizeof(uint32_t));
    return g;
}

static void
check_any_order(const struct fx *f, struct sl_random *random, int scheduler, int mode, int rc,
                const struct sl_sched_result *result)
{
    struct fx *g = shuffled(f, random);
    struct sl_sched_result other;
    g->r.mode = mode;
    assert_int_equal(sl_sched_assign(fx_request(g), scheduler, &other), rc);
    if (rc == 0) {
        char *text = strdup(fx_text(result));
        assert_string_equal(fx_text(&other), text);
        free(text);
    }
    sl_sched_result_destroy(&other);
    free(g);
}

/* Makes the previous assignment of f from a first one; false when there is none. */
static bool
start(struct fx *f)
{
    struct sl_sched_result first;
    f->r.mode = SL_SCHED_NEW;
    if (sl_sched_assign(fx_request(f), SL_SCHED_BALANCED, &first) != 0) {
        return false;
    }
    fx_previous(f, &first);
    sl_sched_result_destroy(&first);
    return true;
}

static void
test_new_assignments_keep_every_invariant(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 1);
    const struct draw draw = {.has_isolation = true};
    uint32_t feasible = 0;
    struct naive *naive = malloc(sizeof(*naive));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct fx *f = random_request(&random, &draw);
        struct sl_sched_result result;
        f->r.mode = SL_SCHED_NEW;
        int rc = sl_sched_assign(fx_request(f), SL_SCHED_BALANCED, &result);
        const char *oracle = naive_balanced(naive, f, SL_SCHED_NEW);
        assert_int_equal(rc != 0, oracle == NULL);
        if (rc == 0) {
            feasible++;
            char *text = strdup(oracle);
            assert_string_equal(fx_text(&result), text);
            free(text);
            check_common(f, &result, SL_SCHED_NEW);
            assert_true(spread_of(f, &result) <= 1);
            assert_int_equal(result.worker_count, workers_wanted(f));
        } else {
            assert_int_equal(rc, SL_EUNSATISFIABLE);
        }
        check_any_order(f, &random, SL_SCHED_BALANCED, SL_SCHED_NEW, rc, &result);
        sl_sched_result_destroy(&result);
        free(f);
    }
    free(naive);
    assert_true(feasible > ROUNDS / 4);
}

static void
test_rescaling_equals_the_naive_version_and_minimal_beats_reassign(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 2);
    const struct draw draw = {.has_isolation = true};
    uint32_t feasible = 0;
    struct naive *naive = malloc(sizeof(*naive));
    static const int modes[] = {SL_SCHED_KEEP, SL_SCHED_REASSIGN, SL_SCHED_MONITOR,
                                SL_SCHED_MINIMAL};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct fx *f = random_request(&random, &draw);
        if (!start(f)) {
            free(f);
            continue;
        }
        disturb(f, &random);
        uint32_t moved[SL_SCHED_MODE_COUNT] = {0};
        for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
            int mode = modes[k];
            struct sl_sched_result result;
            f->r.mode = mode;
            int rc = sl_sched_assign(fx_request(f), SL_SCHED_BALANCED, &result);
            if (mode != SL_SCHED_MINIMAL) {
                const char *oracle = naive_balanced(naive, f, mode);
                assert_int_equal(rc != 0, oracle == NULL);
                if (rc == 0) {
                    char *text = strdup(oracle);
                    assert_string_equal(fx_text(&result), text);
                    free(text);
                }
            }
            if (rc == 0) {
                feasible++;
                moved[mode] = result.moved + 1;
                check_common(f, &result, mode);
                if (mode == SL_SCHED_REASSIGN || mode == SL_SCHED_MINIMAL) {
                    assert_true(spread_of(f, &result) <= 1);
                    assert_int_equal(result.worker_count, workers_wanted(f));
                }
            }
            check_any_order(f, &random, SL_SCHED_BALANCED, mode, rc, &result);
            sl_sched_result_destroy(&result);
        }
        assert_int_equal(moved[SL_SCHED_MINIMAL] != 0, moved[SL_SCHED_REASSIGN] != 0);
        assert_true(moved[SL_SCHED_MINIMAL] <= moved[SL_SCHED_REASSIGN]);
        free(f);
    }
    free(naive);
    assert_true(feasible > ROUNDS / 2);
}

static void
test_pins_different_nodes_and_resources_hold_or_are_refused(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 3);
    const struct draw draw = {
        .has_isolation = true, .has_users = true, .has_spread = true, .has_resources = true};
    uint32_t feasible = 0;
    uint32_t pinned = 0;
    static const int modes[] = {SL_SCHED_NEW, SL_SCHED_KEEP, SL_SCHED_REASSIGN, SL_SCHED_MINIMAL};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct fx *f = random_request(&random, &draw);
        if (start(f)) {
            disturb(f, &random);
        }
        f->r.dead_task_count = 0;
        uint32_t moved[SL_SCHED_MODE_COUNT] = {0};
        for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
            struct sl_sched_result result;
            f->r.mode = modes[k];
            int rc = sl_sched_assign(fx_request(f), SL_SCHED_BALANCED, &result);
            if (rc == 0) {
                feasible++;
                pinned += f->r.user_worker_count > 0;
                moved[modes[k]] = result.moved + 1;
                check_common(f, &result, modes[k]);
                check_pins(f, &result);
                check_capacity(f, &result);
            } else {
                assert_int_equal(rc, SL_EUNSATISFIABLE);
            }
            check_any_order(f, &random, SL_SCHED_BALANCED, modes[k], rc, &result);
            sl_sched_result_destroy(&result);
        }
        if (moved[SL_SCHED_REASSIGN] != 0) {
            assert_true(moved[SL_SCHED_MINIMAL] != 0);
            assert_true(moved[SL_SCHED_MINIMAL] <= moved[SL_SCHED_REASSIGN]);
        }
        free(f);
    }
    assert_true(feasible > ROUNDS / 4);
    assert_true(pinned > ROUNDS / 10);
}

static void
test_even_and_round_robin_keep_the_common_invariants(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 4);
    const struct draw draw = {.has_isolation = true, .has_resources = true};
    static const int schedulers[] = {SL_SCHED_EVEN, SL_SCHED_ROUND_ROBIN};
    uint32_t feasible = 0;
    for (uint32_t i = 0; i < ROUNDS / 2; i++) {
        struct fx *f = random_request(&random, &draw);
        if (start(f)) {
            disturb(f, &random);
        }
        for (int s = 0; s < 2; s++) {
            for (int mode = 0; mode < SL_SCHED_MODE_COUNT; mode++) {
                struct sl_sched_result result;
                f->r.mode = mode;
                int rc = sl_sched_assign(fx_request(f), schedulers[s], &result);
                if (rc == 0) {
                    feasible++;
                    check_common(f, &result, mode);
                    if (mode != SL_SCHED_MONITOR) {
                        check_capacity(f, &result);
                    }
                }
                check_any_order(f, &random, schedulers[s], mode, rc, &result);
                sl_sched_result_destroy(&result);
            }
        }
        free(f);
    }
    assert_true(feasible > ROUNDS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_assignments_keep_every_invariant),
        cmocka_unit_test(test_rescaling_equals_the_naive_version_and_minimal_beats_reassign),
        cmocka_unit_test(test_pins_different_nodes_and_resources_hold_or_are_refused),
        cmocka_unit_test(test_even_and_round_robin_keep_the_common_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
