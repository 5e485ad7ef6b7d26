#pragma once
/*
 * The rules of `balanced` written down as plainly as possible, without indexes: lists, scans and
 * filters. It is the oracle for the fast version; no user workers, no different nodes, no cpu.
 */

#include "scheduling/sched_fixture.h"

struct naive_worker {
    int sup;
    uint32_t port;
    uint32_t tasks[FX_TASKS];
    uint32_t count;
    bool is_open;
    /* Goes on from a previous worker. */
    bool is_resumed;
};

struct naive {
    const struct fx *f;
    int mode;
    /* Supervisors by id; free ports ascending. */
    uint32_t sup_count;
    const struct sl_sched_supervisor *sups[FX_SUPS];
    uint32_t free[FX_SUPS][64];
    uint32_t free_count[FX_SUPS];
    struct naive_worker workers[FX_OLDS];
    uint32_t count;
    /* Surviving workers by previous index. */
    bool is_kept[FX_OLDS];
    /* By task id. */
    int component[FX_TASKS];
    bool is_needed[FX_TASKS];
    int old_of[FX_TASKS];
    bool is_dead[FX_TASKS];
    uint32_t master;
    bool is_alone;
    uint32_t alloc;
    uint32_t avg;
    int left;
    int task_num;
    int worker_num;
};

static int
naive_by_id(const void *a, const void *b)
{
    return strcmp((*(const struct sl_sched_supervisor *const *)a)->id,
                  (*(const struct sl_sched_supervisor *const *)b)->id);
}

static int
naive_ascending(const void *a, const void *b)
{
    return -compare_desc(a, b);
}

static int
naive_sup(const struct naive *n, const char *id)
{
    for (uint32_t s = 0; s < n->sup_count; s++) {
        if (strcmp(n->sups[s]->id, id) == 0) {
            return (int)s;
        }
    }
    return -1;
}

static bool
naive_take(struct naive *n, int sup, uint32_t port)
{
    for (uint32_t i = 0; sup >= 0 && i < n->free_count[sup]; i++) {
        if (n->free[sup][i] == port) {
            memmove(&n->free[sup][i], &n->free[sup][i + 1],
                    (n->free_count[sup] - i - 1) * sizeof(uint32_t));
            n->free_count[sup]--;
            return true;
        }
    }
    return false;
}

static bool
naive_is_usable(const struct naive *n, uint32_t sup)
{
    bool is_usable = n->f->r.isolation_count == 0;
    for (uint32_t i = 0; i < n->f->r.isolation_count; i++) {
        is_usable |= strcmp(n->f->isolation[i], n->sups[sup]->host) == 0;
    }
    return is_usable;
}

static void
naive_cluster(struct naive *n)
{
    const struct fx *f = n->f;
    n->sup_count = f->r.supervisor_count;
    for (uint32_t s = 0; s < n->sup_count; s++) {
        n->sups[s] = &f->sups[s];
    }
    qsort(n->sups, n->sup_count, sizeof(n->sups[0]), naive_by_id);
    for (uint32_t s = 0; s < n->sup_count; s++) {
        size_t at = (size_t)(n->sups[s] - f->sups);
        memcpy(n->free[s], f->sup_ports[at], n->sups[s]->port_count * sizeof(uint32_t));
        n->free_count[s] = n->sups[s]->port_count;
        qsort(n->free[s], n->free_count[s], sizeof(uint32_t), naive_ascending);
        for (uint32_t u = 0; u < n->sups[s]->used_count; u++) {
            naive_take(n, (int)s, f->sup_used[at][u]);
        }
    }
}

static void
naive_tasks(struct naive *n)
{
    const struct fx *f = n->f;
    memset(n->component, 0xff, sizeof(n->component));
    memset(n->old_of, 0xff, sizeof(n->old_of));
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        for (uint32_t i = 0; i < f->components[c].task_count; i++) {
            n->component[f->comp_tasks[c][i]] = (int)c;
            if (f->components[c].kind == SL_SCHED_MASTER) {
                n->master = f->comp_tasks[c][i];
            }
        }
    }
    for (uint32_t i = 0; i < f->r.dead_task_count; i++) {
        n->is_dead[f->dead[i]] = true;
    }
    for (uint32_t o = 0; o < f->r.previous_count; o++) {
        bool is_dead = false;
        for (uint32_t k = 0; k < f->olds[o].task_count; k++) {
            uint32_t t = f->old_tasks[f->olds[o].first_task + k];
            n->old_of[t] = (int)o;
            is_dead |= n->is_dead[t] && n->component[t] >= 0;
        }
        for (uint32_t k = 0; is_dead && k < f->olds[o].task_count; k++) {
            n->is_dead[f->old_tasks[f->olds[o].first_task + k]] = true;
        }
    }
    for (uint32_t t = 1; t < FX_TASKS; t++) {
        n->is_needed[t] = n->component[t] >= 0 &&
                          (n->mode != SL_SCHED_MONITOR || n->is_dead[t] || n->old_of[t] < 0);
    }
}

/* Puts workers without a place; JStorm's two loops on plain lists. */
static void
naive_place(struct naive *n)
{
    int list[FX_SUPS];
    int over[FX_SUPS];
    uint32_t size = 0;
    uint32_t over_size = 0;
    for (uint32_t want = 64; want > 0; want--) {
        for (uint32_t s = 0; s < n->sup_count; s++) {
            if (n->free_count[s] == want && naive_is_usable(n, s)) {
                list[size++] = (int)s;
            }
        }
    }
    if (size == 0) {
        return;
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < size; i++) {
        used += n->sups[list[i]]->port_count - n->free_count[list[i]];
    }
    uint32_t theory = (used + n->count) / size + 1;
    uint32_t key = 0;
    uint32_t at = 0;
    while (at < n->count && size > 0) {
        key = key >= size ? 0 : key;
        int s = list[key];
        bool is_leaving = n->sups[s]->port_count - n->free_count[s] >= theory;
        if (is_leaving) {
            over[over_size++] = s;
        } else {
            struct naive_worker *w = &n->workers[at++];
            if (w->sup >= 0) {
                continue;
            }
            w->sup = s;
            w->port = n->free[s][0];
            naive_take(n, s, w->port);
            is_leaving = n->free_count[s] == 0;
            key += !is_leaving;
            if (is_leaving) {
                memmove(&list[key], &list[key + 1], (--size - key) * sizeof(int));
                key++;
            }
            continue;
        }
        memmove(&list[key], &list[key + 1], (--size - key) * sizeof(int));
    }
    int sorted[FX_SUPS];
    uint32_t sorted_size = 0;
    for (uint32_t want = 64; want > 0; want--) {
        for (uint32_t i = 0; i < over_size; i++) {
            if (n->free_count[over[i]] == want) {
                sorted[sorted_size++] = over[i];
            }
        }
    }
    for (key = 0; at < n->count && sorted_size > 0; at++) {
        struct naive_worker *w = &n->workers[at];
        if (w->sup >= 0) {
            continue;
        }
        key = key >= sorted_size ? 0 : key;
        int s = sorted[key];
        w->sup = s;
        w->port = n->free[s][0];
        naive_take(n, s, w->port);
        if (n->free_count[s] == 0) {
            memmove(&sorted[key], &sorted[key + 1], (--sorted_size - key) * sizeof(int));
        }
        key++;
    }
}

static int
naive_by_slot(const void *a, const void *b)
{
    const struct naive_worker *left = a;
    const struct naive_worker *right = b;
    return left->sup != right->sup ? left->sup - right->sup : (int)left->port - (int)right->port;
}

static void
naive_average(struct naive *n)
{
    if (n->worker_num > 0) {
        n->avg = (uint32_t)(n->task_num / n->worker_num);
        n->left = n->task_num % n->worker_num;
    }
}

static void
naive_retire(struct naive *n, struct naive_worker *w)
{
    if (n->left <= 0) {
        w->is_open = w->is_open && w->count < n->avg;
    } else if (w->count > n->avg) {
        w->is_open = false;
        n->left -= (int)(w->count - n->avg);
        for (uint32_t i = 0; n->left <= 0 && n->avg != 0 && i < n->count; i++) {
            n->workers[i].is_open &= n->workers[i].count != n->avg;
        }
    }
}

/* Is component c one of those that `of` counts for a task of component `mine`? 0 same, 1 all,
 * 2 related. */
static bool
naive_counts(const struct naive *n, int measure, int mine, int c)
{
    if (measure != 2) {
        return measure == 1 || mine == c;
    }
    const struct sl_sched_component *a = &n->f->components[mine];
    const struct sl_sched_component *b = &n->f->components[c];
    bool is_related = false;
    for (uint32_t i = 0; i < a->input_count; i++) {
        is_related |= n->f->comp_inputs[mine][i] == (uint32_t)c;
    }
    for (uint32_t i = 0; a->kind == SL_SCHED_SPOUT && i < b->input_count; i++) {
        is_related |= n->f->comp_inputs[c][i] == (uint32_t)mine;
    }
    return is_related;
}

static int
naive_measure(const struct naive *n, const struct naive_worker *w, int measure, int mine,
              bool is_sup)
{
    int sum = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        const struct naive_worker *x = &n->workers[i];
        for (uint32_t k = 0; (is_sup ? x->sup == w->sup : x == w) && k < x->count; k++) {
            sum += naive_counts(n, measure, mine, n->component[x->tasks[k]]);
        }
    }
    return measure == 2 ? -sum : sum;
}

static struct naive_worker *
naive_choose(struct naive *n, uint32_t task)
{
    struct naive_worker *list[FX_OLDS];
    uint32_t size = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->workers[i].is_open) {
            list[size++] = &n->workers[i];
        }
    }
    int mine = n->component[task];
    int kind = n->f->components[mine].kind;
    bool is_system = kind == SL_SCHED_SYSTEM || kind == SL_SCHED_MASTER;
    for (int measure = 0; measure < (is_system ? 2 : 3); measure++) {
        for (int is_sup = 0; is_sup < 2 && size > 1; is_sup++) {
            int values[FX_OLDS];
            int best = INT32_MAX;
            for (uint32_t i = 0; i < size; i++) {
                values[i] = naive_measure(n, list[i], measure, mine, is_sup != 0);
                best = values[i] < best ? values[i] : best;
            }
            uint32_t kept = 0;
            for (uint32_t i = 0; i < size; i++) {
                if (values[i] == best) {
                    list[kept++] = list[i];
                }
            }
            size = kept;
        }
    }
    assert_true(size > 0);
    return list[0];
}

static void
naive_lone_master(struct naive *n)
{
    struct naive_worker *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t there = 0;
        for (uint32_t k = 0; k < n->count; k++) {
            there += n->workers[k].sup == n->workers[i].sup;
        }
        if (n->workers[i].is_open && n->workers[i].count == 0 && there > most) {
            best = &n->workers[i];
            most = there;
        }
    }
    assert_non_null(best);
    best->tasks[best->count++] = n->master;
    best->is_open = false;
    n->is_needed[n->master] = false;
    n->task_num--;
    n->worker_num--;
}

/* Mode keep: what can stay stays; then full workers leave round by round. */
static void
naive_keep(struct naive *n)
{
    const struct fx *f = n->f;
    struct naive_worker *master_worker = NULL;
    for (uint32_t i = 0; i < n->count; i++) {
        struct naive_worker *w = &n->workers[i];
        for (uint32_t t = 1; w->is_resumed && t < FX_TASKS; t++) {
            int o = n->old_of[t];
            if (!n->is_needed[t] || o < 0 || naive_sup(n, f->olds[o].supervisor) != w->sup ||
                f->olds[o].port != w->port || n->is_dead[t]) {
                continue;
            }
            bool is_with_master = n->master != 0 && n->old_of[n->master] == o;
            if (is_with_master) {
                master_worker = w;
            }
            if (!is_with_master || !n->is_alone || t == n->master) {
                w->tasks[w->count++] = t;
            }
        }
        for (uint32_t k = 0; k < w->count; k++) {
            n->is_needed[w->tasks[k]] = false;
        }
    }
    if (n->is_alone && master_worker != NULL) {
        master_worker->is_open = false;
        n->task_num--;
        n->worker_num--;
    }
    naive_average(n);
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        uint32_t full = n->left > 0 ? n->avg + 1 : n->avg;
        for (uint32_t i = 0; i < n->count; i++) {
            struct naive_worker *w = &n->workers[i];
            if (w->is_open && w != master_worker && w->count > 0 && w->count >= full) {
                w->is_open = false;
                n->task_num -= (int)w->count;
                n->worker_num--;
                is_changed = true;
            }
        }
        if (is_changed) {
            naive_average(n);
        }
    }
}

/* The text of fx_text, or NULL when there are not enough slots or nothing to do. */
static const char *
naive_balanced(struct naive *n, const struct fx *f, int mode)
{
    memset(n, 0, sizeof(*n));
    n->f = f;
    n->mode = mode;
    naive_cluster(n);
    naive_tasks(n);
    uint32_t tasks = 0;
    uint32_t needed = 0;
    for (uint32_t t = 1; t < FX_TASKS; t++) {
        tasks += n->component[t] >= 0 && t != n->master;
        needed += n->is_needed[t];
    }
    uint32_t total = f->r.workers != 0 && f->r.workers < tasks ? f->r.workers : tasks;
    if (n->master != 0) {
        n->is_alone =
            f->r.master_alone == SL_SCHED_AUTO ? total >= 10 : f->r.master_alone == SL_SCHED_YES;
        total += n->is_alone;
    }
    uint32_t kept = 0;
    for (uint32_t o = 0; mode == SL_SCHED_MONITOR && o < f->r.previous_count; o++) {
        bool is_staying = false;
        for (uint32_t k = 0; k < f->olds[o].task_count; k++) {
            uint32_t t = f->old_tasks[f->olds[o].first_task + k];
            is_staying |= n->component[t] >= 0 && !n->is_needed[t];
        }
        n->is_kept[o] = is_staying;
        kept += is_staying;
        naive_take(n, naive_sup(n, f->olds[o].supervisor), f->olds[o].port);
    }
    uint32_t free = 0;
    for (uint32_t o = 0; mode != SL_SCHED_NEW && o < f->r.previous_count; o++) {
        bool is_dead = false;
        for (uint32_t k = 0; k < f->olds[o].task_count; k++) {
            uint32_t t = f->old_tasks[f->olds[o].first_task + k];
            is_dead |= n->is_dead[t] && n->component[t] >= 0;
        }
        if (is_dead) {
            naive_take(n, naive_sup(n, f->olds[o].supervisor), f->olds[o].port);
        }
    }
    for (uint32_t s = 0; s < n->sup_count; s++) {
        free += naive_is_usable(n, s) ? n->free_count[s] : 0;
    }
    uint32_t least = n->is_alone && n->is_needed[n->master] && needed > 1 ? 2 : 1;
    n->alloc = total > kept + least ? total - kept : least;
    if (needed == 0 || free < n->alloc + f->r.reserve_workers) {
        return NULL;
    }
    n->count = n->alloc;
    for (uint32_t i = 0; i < n->count; i++) {
        n->workers[i].sup = -1;
        n->workers[i].is_open = true;
    }
    bool is_master_there = false;
    if (mode == SL_SCHED_KEEP) {
        /* A lone master's worker first, else one slot stays for it; then by (supervisor, port). */
        int master_old = n->is_alone ? n->old_of[n->master] : -1;
        uint32_t at = 0;
        for (int pass = 0; pass < 2; pass++) {
            uint32_t limit = n->is_alone && !is_master_there && pass == 1 ? n->count - 1 : n->count;
            for (uint32_t o = 0; o < f->r.previous_count; o++) {
                int sup = naive_sup(n, f->olds[o].supervisor);
                bool is_alive = false;
                for (uint32_t k = 0; k < f->olds[o].task_count; k++) {
                    uint32_t t = f->old_tasks[f->olds[o].first_task + k];
                    is_alive |= n->component[t] >= 0 && !n->is_dead[t];
                }
                if (pass == 0 ? (int)o != master_old : (int)o == master_old && is_master_there) {
                    continue;
                }
                if (at < limit && sup >= 0 && is_alive && naive_is_usable(n, (uint32_t)sup) &&
                    naive_take(n, sup, f->olds[o].port)) {
                    n->workers[at].sup = sup;
                    n->workers[at].is_resumed = true;
                    n->workers[at++].port = f->olds[o].port;
                    is_master_there |= pass == 0;
                }
            }
        }
    }
    naive_place(n);
    qsort(n->workers, n->count, sizeof(n->workers[0]), naive_by_slot);
    n->task_num = (int)needed;
    n->worker_num = (int)n->count;
    if (n->is_alone && n->is_needed[n->master] && !is_master_there) {
        if (mode == SL_SCHED_KEEP) {
            /* Only blank workers: those of old ones look full for the moment. */
            for (uint32_t i = 0; i < n->count; i++) {
                n->workers[i].count = n->workers[i].is_resumed ? 1000 : 0;
            }
        }
        naive_lone_master(n);
        for (uint32_t i = 0; i < n->count; i++) {
            n->workers[i].count = n->workers[i].count == 1000 ? 0 : n->workers[i].count;
        }
    }
    naive_average(n);
    if (mode == SL_SCHED_KEEP) {
        naive_keep(n);
    }
    for (int is_system = 0; is_system < 2; is_system++) {
        for (uint32_t t = 1; t < FX_TASKS; t++) {
            int kind = n->component[t] >= 0 ? f->components[n->component[t]].kind : -1;
            if (n->is_needed[t] &&
                (kind == SL_SCHED_SYSTEM || kind == SL_SCHED_MASTER) == is_system) {
                struct naive_worker *w = naive_choose(n, t);
                w->tasks[w->count++] = t;
                naive_retire(n, w);
            }
        }
    }
    /* Print through the real printer: one result with everything in it. */
    static struct sl_sched_worker rows[FX_OLDS];
    static uint32_t ids[FX_TASKS];
    struct sl_sched_result result = {.workers = rows, .tasks = ids};
    for (uint32_t i = 0; i < n->count + f->r.previous_count; i++) {
        bool is_old = i >= n->count;
        uint32_t o = i - n->count;
        struct sl_sched_worker w = {.first_task = result.task_count};
        if (is_old ? !n->is_kept[o] : n->workers[i].count == 0) {
            continue;
        }
        w.supervisor = is_old ? f->olds[o].supervisor : n->sups[n->workers[i].sup]->id;
        w.port = is_old ? f->olds[o].port : n->workers[i].port;
        uint32_t size = is_old ? f->olds[o].task_count : n->workers[i].count;
        for (uint32_t k = 0; k < size; k++) {
            uint32_t t = is_old ? f->old_tasks[f->olds[o].first_task + k] : n->workers[i].tasks[k];
            if (n->component[t] >= 0) {
                ids[result.task_count++] = t;
            }
        }
        w.task_count = result.task_count - w.first_task;
        qsort(&ids[w.first_task], w.task_count, sizeof(uint32_t), naive_ascending);
        uint32_t at = result.worker_count++;
        for (; at > 0 &&
               (strcmp(rows[at - 1].supervisor, w.supervisor) > 0 ||
                (strcmp(rows[at - 1].supervisor, w.supervisor) == 0 && rows[at - 1].port > w.port));
             at--) {
            rows[at] = rows[at - 1];
        }
        rows[at] = w;
    }
    return fx_text(&result);
}
