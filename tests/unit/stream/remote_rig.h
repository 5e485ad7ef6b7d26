#pragma once
/*
 * Several workers in one thread, each a process of its own, joined by wires that carry what their
 * lanes write.  Every worker has the same plan; a task is local in one and remote in all others.
 */

#include "base/random.h"
#include "rig.h"
#include "stream/remote_priv.h"

enum {
    SITES = 3,
    SITE_WINDOW = 8192,
};

struct wire {
    struct sl_buf bytes;
    bool is_open;
};

struct site {
    struct rig *rig;
    struct sl_remote *remote;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
};

struct sites {
    int32_t count;
    struct site at[SITES];
    /* wires[i][j]: what i has written for j. */
    struct wire wires[SITES][SITES];
    struct sl_random random;
    /* What every site is given. */
    struct sl_worker_options options;
    void (*plan)(struct sites *sites, int32_t site);
    uint64_t written;
    /* Error of a feed, 0 while there is none. */
    int failure;
};

static inline int32_t
site_executor(const struct sites *sites, int32_t site, int32_t home)
{
    return site == home ? 0 : sites->options.executors;
}

/* Plans a task that lives at `home` in the worker of `site`. */
static inline void
site_plan(struct sites *sites, int32_t site, int32_t component, int32_t id, int32_t home)
{
    rig_plan(sites->at[site].rig, component, id, site_executor(sites, site, home));
    if (site != home) {
        assert_int_equal(sl_worker_place(sites->at[site].rig->worker, id, home), 0);
    }
}

static inline void
site_attach(struct site *site)
{
    struct rig *rig = site->rig;
    for (int32_t id = 0; id < RIG_TASKS; id++) {
        struct sl_planned planned;
        if (sl_worker_planned(rig->worker, id, &planned) == 0 &&
            planned.executor < rig->worker->executor_count) {
            struct sl_executor *executor = sl_worker_executor(rig->worker, planned.executor);
            assert_int_equal(rig_attach(rig, executor, id, true), 0);
        }
    }
    rig_command_all(rig, SL_COMMAND_ACTIVATE);
}

static inline void
site_start(struct sites *sites, int32_t site)
{
    struct sl_worker_options options = sites->options;
    options.seed = sl_random_u64(&sites->random) | 1;
    struct site *at = &sites->at[site];
    at->rig = rig_new(&options);
    at->remote = sl_worker_remote(at->rig->worker);
    for (size_t i = 0; i < sizeof(at->identity); i++) {
        at->identity[i] = (uint8_t)sl_random_u64(&sites->random);
    }
    sites->plan(sites, site);
}

static inline struct sites *
sites_new(int32_t count, uint64_t seed, void (*plan)(struct sites *sites, int32_t site))
{
    struct sites *sites = sl_calloc(1, sizeof(*sites));
    sites->count = count;
    sites->options = rig_options();
    sites->options.remote_window = SITE_WINDOW;
    sites->options.message_timeout_ms = 1000;
    sites->plan = plan;
    sl_random_seed(&sites->random, seed);
    for (int32_t i = 0; i < count; i++) {
        site_start(sites, i);
    }
    return sites;
}

static inline void
sites_free(struct sites *sites)
{
    for (int32_t i = 0; i < sites->count; i++) {
        rig_free(sites->at[i].rig);
        for (int32_t k = 0; k < sites->count; k++) {
            sl_buf_destroy(&sites->wires[i][k].bytes);
        }
    }
    sl_free(sites);
}

/* The opening of a connection, as core/cluster/data_link.c does it. */
static inline void
sites_connect(struct sites *sites, int32_t i, int32_t k)
{
    struct site *one = &sites->at[i];
    struct site *other = &sites->at[k];
    const uint8_t *known = sl_remote_identity(one->remote, k);
    const uint8_t *known_other = sl_remote_identity(other->remote, i);
    bool resumes = known != NULL && known_other != NULL &&
                   memcmp(known, other->identity, sizeof(other->identity)) == 0 &&
                   memcmp(known_other, one->identity, sizeof(one->identity)) == 0;
    uint64_t received = sl_remote_received(one->remote, k);
    uint64_t received_other = sl_remote_received(other->remote, i);
    resumes = resumes && sl_remote_can_resume(one->remote, k, received_other) &&
              sl_remote_can_resume(other->remote, i, received);
    sl_remote_open(one->remote, k, other->identity, sl_remote_window(other->remote), resumes,
                   received_other);
    sl_remote_open(other->remote, i, one->identity, sl_remote_window(one->remote), resumes,
                   received);
    sites->wires[i][k].is_open = true;
    sites->wires[k][i].is_open = true;
}

static inline void
sites_cut(struct sites *sites, int32_t i, int32_t k)
{
    for (int way = 0; way < 2; way++) {
        struct wire *wire = way == 0 ? &sites->wires[i][k] : &sites->wires[k][i];
        wire->is_open = false;
        sl_buf_clear(&wire->bytes);
    }
    sl_remote_close(sites->at[i].remote, k);
    sl_remote_close(sites->at[k].remote, i);
}

static inline void
sites_connect_all(struct sites *sites)
{
    for (int32_t i = 0; i < sites->count; i++) {
        for (int32_t k = 0; k < i; k++) {
            sites_connect(sites, i, k);
        }
    }
}

/* Has a site write what it may; true when that was anything. */
static inline bool
sites_write(struct sites *sites, int32_t i)
{
    bool has_any = false;
    sl_remote_pump(sites->at[i].remote);
    for (int32_t k = 0; k < sites->count; k++) {
        struct sl_remote_frame frame;
        struct wire *wire = &sites->wires[i][k];
        while (k != i && wire->is_open && sl_remote_next(sites->at[i].remote, k, &frame)) {
            sl_buf_append(&wire->bytes, frame.head, frame.head_size);
            sl_buf_append(&wire->bytes, frame.body, frame.body_size);
            sites->written += frame.head_size + frame.body_size;
            has_any = true;
        }
    }
    return has_any;
}

/* Delivers up to `most` bytes of one wire; true when there were any. */
static inline bool
sites_deliver(struct sites *sites, int32_t i, int32_t k, size_t most)
{
    struct wire *wire = &sites->wires[i][k];
    size_t size = wire->bytes.size < most ? wire->bytes.size : most;
    if (!wire->is_open || size == 0) {
        return false;
    }
    int rc = sl_remote_feed(sites->at[k].remote, i, wire->bytes.data, size);
    sites->failure = rc != 0 ? rc : sites->failure;
    sl_buf_consume(&wire->bytes, size);
    return true;
}

static inline bool
sites_step(struct sites *sites)
{
    bool has_any = false;
    for (int32_t i = 0; i < sites->count; i++) {
        has_any |= rig_round(sites->at[i].rig);
        has_any |= sites_write(sites, i);
        for (int32_t k = 0; k < sites->count; k++) {
            size_t most = 1 + (size_t)sl_random_below(&sites->random, 3000);
            has_any |= k != i && sites_deliver(sites, k, i, most);
        }
    }
    return has_any;
}

/* Until nothing moves any more at the present time. */
static inline void
sites_run(struct sites *sites)
{
    for (int idle = 0; idle < 6; idle++) {
        while (sites_step(sites)) {
            idle = 0;
        }
    }
}

static inline void
sites_advance(struct sites *sites, double ms)
{
    for (; ms > 0; ms -= 5) {
        for (int32_t i = 0; i < sites->count; i++) {
            assert_int_equal(sl_worker_advance(sites->at[i].rig->worker, ms < 5 ? ms : 5), 0);
        }
        sites_run(sites);
    }
}
