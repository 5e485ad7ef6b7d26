#pragma once
/*
 * Requests for tests, written in a few words: "4,4,4" is a cluster of three supervisors s1.. on
 * hosts h1.. with ports from 6800, and an answer reads "s1:6800 1,4,8,9; s2:6800 2,5,10".
 */

#include "unit.h"

#include "base/err.h"
#include "base/random.h"
#include "scheduling/scheduling.h"

enum { FX_COMPONENTS = 16, FX_TASKS = 512, FX_SUPS = 64, FX_PORTS = 1024, FX_OLDS = 256 };

struct fx {
    struct sl_sched_request r;
    struct sl_sched_component components[FX_COMPONENTS];
    uint32_t comp_tasks[FX_COMPONENTS][FX_TASKS];
    uint32_t comp_inputs[FX_COMPONENTS][FX_COMPONENTS];
    struct sl_sched_supervisor sups[FX_SUPS];
    char names[FX_SUPS][2][8];
    uint32_t sup_ports[FX_SUPS][64];
    uint32_t sup_used[FX_SUPS][64];
    const char *isolation[FX_SUPS];
    struct sl_sched_user_worker users[FX_SUPS];
    struct sl_sched_share user_shares[FX_SUPS][FX_COMPONENTS];
    uint32_t spread[FX_COMPONENTS];
    struct sl_sched_previous olds[FX_OLDS];
    char old_names[FX_OLDS][2][8];
    uint32_t old_tasks[FX_TASKS];
    uint32_t dead[FX_TASKS];
    uint32_t unstopped[FX_TASKS];
    struct sl_sched_container containers[FX_OLDS];
    uint32_t container_tasks[FX_TASKS];
    uint32_t next_task;
    /* The flat arrays that the request points to. */
    uint32_t inputs[FX_COMPONENTS * FX_COMPONENTS];
    uint32_t tasks[FX_TASKS];
    uint32_t ports[FX_PORTS];
    uint32_t used[FX_PORTS];
    struct sl_sched_share shares[FX_SUPS * FX_COMPONENTS];
};

static inline struct fx *
fx_new(void)
{
    struct fx *f = calloc(1, sizeof(*f));
    f->r.master_alone = SL_SCHED_AUTO;
    f->r.worker_cpu = -1;
    f->r.worker_ram = -1;
    f->next_task = 1;
    return f;
}

static inline void
fx_sup(struct fx *f, const char *id, const char *host, uint32_t ports)
{
    uint32_t i = f->r.supervisor_count++;
    snprintf(f->names[i][0], sizeof(f->names[i][0]), "%s", id);
    snprintf(f->names[i][1], sizeof(f->names[i][1]), "%s", host);
    f->sups[i] = (struct sl_sched_supervisor){
        .id = f->names[i][0], .host = f->names[i][1], .port_count = ports, .cpu = -1, .ram = -1};
    for (uint32_t p = 0; p < ports; p++) {
        f->sup_ports[i][p] = 6800 + p;
    }
}

/* "4,4,4": one supervisor a number. */
static inline void
fx_cluster(struct fx *f, const char *ports)
{
    f->r.supervisor_count = 0;
    for (uint32_t i = 1; *ports != '\0'; i++) {
        char id[8];
        char host[8];
        char *end;
        uint32_t n = (uint32_t)strtoul(ports, &end, 10);
        ports = *end == ',' ? end + 1 : end;
        snprintf(id, sizeof(id), "s%u", i);
        snprintf(host, sizeof(host), "h%u", i);
        fx_sup(f, id, host, n);
    }
}

static inline void
fx_use(struct fx *f, uint32_t sup, uint32_t port)
{
    f->sup_used[sup][f->sups[sup].used_count++] = port;
}

/* Takes a supervisor out of the cluster. */
static inline void
fx_drop_sup(struct fx *f, const char *id)
{
    for (uint32_t i = 0; i < f->r.supervisor_count; i++) {
        if (strcmp(f->sups[i].id, id) == 0) {
            uint32_t last = --f->r.supervisor_count;
            f->sups[i] = f->sups[last];
            memcpy(f->sup_ports[i], f->sup_ports[last], sizeof(f->sup_ports[i]));
            memcpy(f->sup_used[i], f->sup_used[last], sizeof(f->sup_used[i]));
            return;
        }
    }
    fail_msg("no supervisor %s", id);
}

/* Adds a component whose tasks get the next ids; returns its index. */
static inline uint32_t
fx_component(struct fx *f, const char *name, int kind, uint32_t tasks)
{
    uint32_t c = f->r.component_count++;
    f->components[c] = (struct sl_sched_component){.name = name, .kind = kind, .task_count = tasks};
    for (uint32_t i = 0; i < tasks; i++) {
        f->comp_tasks[c][i] = f->next_task++;
    }
    return c;
}

static inline uint32_t
fx_find(const struct fx *f, const char *name)
{
    for (uint32_t c = 0; c < f->r.component_count; c++) {
        if (strcmp(f->components[c].name, name) == 0) {
            return c;
        }
    }
    fail_msg("no component %s", name);
    return 0;
}

static inline void
fx_reads(struct fx *f, const char *reader, const char *source)
{
    uint32_t c = fx_find(f, reader);
    f->comp_inputs[c][f->components[c].input_count++] = fx_find(f, source);
}

/* New tasks get ids after the largest; shrinking drops the highest. */
static inline void
fx_scale(struct fx *f, const char *name, uint32_t tasks)
{
    uint32_t c = fx_find(f, name);
    while (f->components[c].task_count < tasks) {
        f->comp_tasks[c][f->components[c].task_count++] = f->next_task++;
    }
    f->components[c].task_count = tasks;
}

static inline void
fx_system(struct fx *f, uint32_t ackers)
{
    if (ackers > 0) {
        fx_component(f, "__acker", SL_SCHED_SYSTEM, ackers);
    }
    fx_component(f, "__topology_master", SL_SCHED_MASTER, 1);
}

/* spout x2 -> split x3 -> count x3; split 1-3, count 4-6, acker 7, master 8, spout 9-10. */
static inline struct fx *
fx_word_count(const char *cluster, uint32_t workers)
{
    struct fx *f = fx_new();
    fx_cluster(f, cluster);
    f->r.workers = workers;
    fx_component(f, "split", SL_SCHED_BOLT, 3);
    fx_component(f, "count", SL_SCHED_BOLT, 3);
    fx_system(f, 1);
    fx_component(f, "spout", SL_SCHED_SPOUT, 2);
    fx_reads(f, "split", "spout");
    fx_reads(f, "count", "split");
    return f;
}

/* s x spouts -> b x bolts. */
static inline struct fx *
fx_pair(const char *cluster, uint32_t spouts, uint32_t bolts, uint32_t ackers, uint32_t workers)
{
    struct fx *f = fx_new();
    fx_cluster(f, cluster);
    f->r.workers = workers;
    fx_component(f, "b", SL_SCHED_BOLT, bolts);
    fx_system(f, ackers);
    fx_component(f, "s", SL_SCHED_SPOUT, spouts);
    fx_reads(f, "b", "s");
    return f;
}

static inline void
fx_isolate(struct fx *f, const char *host)
{
    f->isolation[f->r.isolation_count++] = host;
}

static inline void
fx_spread(struct fx *f, const char *component)
{
    f->spread[f->r.on_different_nodes_count++] = fx_find(f, component);
}

/* A user worker; host NULL and port -1 = anywhere. Shares follow with fx_share. */
static inline void
fx_user(struct fx *f, const char *host, int32_t port)
{
    f->users[f->r.user_worker_count++] =
        (struct sl_sched_user_worker){.host = host, .port = port, .cpu = -1, .ram = -1};
}

static inline void
fx_share(struct fx *f, const char *component, uint32_t count)
{
    uint32_t u = f->r.user_worker_count - 1;
    f->user_shares[u][f->users[u].share_count++] =
        (struct sl_sched_share){.component = fx_find(f, component), .count = count};
}

/* Takes an answer as the previous assignment. */
static inline void
fx_previous(struct fx *f, const struct sl_sched_result *result)
{
    f->r.previous_count = result->worker_count;
    f->r.previous_task_count = result->task_count;
    memcpy(f->old_tasks, result->tasks, result->task_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < result->worker_count; i++) {
        const struct sl_sched_worker *w = &result->workers[i];
        snprintf(f->old_names[i][0], sizeof(f->old_names[i][0]), "%s", w->supervisor);
        snprintf(f->old_names[i][1], sizeof(f->old_names[i][1]), "%s", w->host);
        f->olds[i] = (struct sl_sched_previous){
            .supervisor = f->old_names[i][0],
            .host = f->old_names[i][1],
            .port = w->port,
            .first_task = w->first_task,
            .task_count = w->task_count,
            .cpu = w->cpu,
            .ram = w->ram,
        };
    }
}

/* All tasks of a previous worker die. */
static inline void
fx_kill(struct fx *f, const char *supervisor, uint32_t port)
{
    for (uint32_t i = 0; i < f->r.previous_count; i++) {
        if (strcmp(f->olds[i].supervisor, supervisor) == 0 && f->olds[i].port == port) {
            for (uint32_t k = 0; k < f->olds[i].task_count; k++) {
                f->dead[f->r.dead_task_count++] = f->old_tasks[f->olds[i].first_task + k];
            }
            return;
        }
    }
    fail_msg("no previous worker %s:%u", supervisor, port);
}

/* Flattens everything; the request is valid until the next change. */
static inline const struct sl_sched_request *
fx_request(struct fx *f)
{
    struct sl_sched_request *r = &f->r;
    r->input_count = r->task_count = r->port_count = r->used_count = r->share_count = 0;
    for (uint32_t c = 0; c < r->component_count; c++) {
        struct sl_sched_component *comp = &f->components[c];
        comp->first_input = r->input_count;
        comp->first_task = r->task_count;
        for (uint32_t i = 0; i < comp->input_count; i++) {
            f->inputs[r->input_count++] = f->comp_inputs[c][i];
        }
        for (uint32_t i = 0; i < comp->task_count; i++) {
            f->tasks[r->task_count++] = f->comp_tasks[c][i];
        }
    }
    for (uint32_t s = 0; s < r->supervisor_count; s++) {
        struct sl_sched_supervisor *sup = &f->sups[s];
        sup->first_port = r->port_count;
        sup->first_used = r->used_count;
        for (uint32_t i = 0; i < sup->port_count; i++) {
            f->ports[r->port_count++] = f->sup_ports[s][i];
        }
        for (uint32_t i = 0; i < sup->used_count; i++) {
            f->used[r->used_count++] = f->sup_used[s][i];
        }
    }
    for (uint32_t u = 0; u < r->user_worker_count; u++) {
        f->users[u].first_share = r->share_count;
        for (uint32_t i = 0; i < f->users[u].share_count; i++) {
            f->shares[r->share_count++] = f->user_shares[u][i];
        }
    }
    r->components = f->components;
    r->inputs = f->inputs;
    r->tasks = f->tasks;
    r->supervisors = f->sups;
    r->ports = f->ports;
    r->used = f->used;
    r->isolation = f->isolation;
    r->user_workers = f->users;
    r->shares = f->shares;
    r->on_different_nodes = f->spread;
    r->previous = f->olds;
    r->previous_tasks = f->old_tasks;
    r->dead_tasks = f->dead;
    r->unstopped_tasks = f->unstopped;
    r->containers = f->containers;
    r->container_tasks = f->container_tasks;
    return r;
}

/* "s1:6800 1,4,8,9; s2:6800 2,5,10" in a buffer that the next call reuses. */
static inline const char *
fx_text(const struct sl_sched_result *result)
{
    static char text[16384];
    int at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < result->worker_count; i++) {
        const struct sl_sched_worker *w = &result->workers[i];
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s:%u", i > 0 ? "; " : "",
                       w->supervisor, w->port);
        for (uint32_t k = 0; k < w->task_count; k++) {
            at += snprintf(text + at, sizeof(text) - (size_t)at, "%c%u", k > 0 ? ',' : ' ',
                           result->tasks[w->first_task + k]);
        }
    }
    return text;
}

static inline int
compare_desc(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left < right) - (left > right);
}

/* "4,3,3": tasks a worker, descending. */
static inline const char *
fx_sizes(const struct sl_sched_result *result)
{
    static char text[1024];
    uint32_t sizes[FX_OLDS];
    int at = 0;
    for (uint32_t i = 0; i < result->worker_count; i++) {
        sizes[i] = result->workers[i].task_count;
    }
    qsort(sizes, result->worker_count, sizeof(uint32_t), compare_desc);
    text[0] = '\0';
    for (uint32_t i = 0; i < result->worker_count; i++) {
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%u", i > 0 ? "," : "", sizes[i]);
    }
    return text;
}

/* "1,1,1": workers on each supervisor of the cluster in the order given. */
static inline const char *
fx_spans(const struct fx *f, const struct sl_sched_result *result)
{
    static char text[1024];
    int at = 0;
    text[0] = '\0';
    for (uint32_t s = 0; s < f->r.supervisor_count; s++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < result->worker_count; i++) {
            n += strcmp(result->workers[i].supervisor, f->sups[s].id) == 0;
        }
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%u", s > 0 ? "," : "", n);
    }
    return text;
}

/* The worker that has a task. */
static inline const struct sl_sched_worker *
fx_worker_of(const struct sl_sched_result *result, uint32_t task)
{
    for (uint32_t i = 0; i < result->worker_count; i++) {
        for (uint32_t k = 0; k < result->workers[i].task_count; k++) {
            if (result->tasks[result->workers[i].first_task + k] == task) {
                return &result->workers[i];
            }
        }
    }
    fail_msg("no worker has task %u", task);
    return NULL;
}

/* Assigns, or fails the test with the error. */
static inline struct sl_sched_result
fx_assign(struct fx *f, int scheduler, int mode)
{
    struct sl_sched_result result;
    f->r.mode = mode;
    int rc = sl_sched_assign(fx_request(f), scheduler, &result);
    if (rc != 0) {
        fail_msg("%s: %s", sl_err_name(rc), sl_err_last()->msg);
    }
    return result;
}

/* Assigns and expects a refusal whose message has the words. */
static inline void
fx_refused(struct fx *f, int scheduler, int mode, int code, const char *words)
{
    struct sl_sched_result result;
    f->r.mode = mode;
    int rc = sl_sched_assign(fx_request(f), scheduler, &result);
    if (rc != code || strstr(sl_err_last()->msg, words) == NULL) {
        fail_msg("expected %s with '%s', got %s: %s (%s)", sl_err_name(code), words,
                 sl_err_name(rc), rc != 0 ? sl_err_last()->msg : "", fx_text(&result));
    }
    assert_null(result.workers);
}

/* Assigns with `balanced`, checks the text, and frees both. */
static inline void
fx_expect(struct fx *f, int scheduler, int mode, const char *text)
{
    struct sl_sched_result result = fx_assign(f, scheduler, mode);
    assert_string_equal(fx_text(&result), text);
    sl_sched_result_destroy(&result);
}
