#include "scheduling/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

int
sl_sched_place_check_free(const struct sl_sched_plan *plan, uint32_t alloc)
{
    const struct sl_sched_model *m = plan->model;
    uint64_t free = 0;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        free += m->sups[i].is_usable ? m->sups[i].free_count : 0;
    }
    uint64_t reserve = m->request->reserve_workers;
    if (free < (uint64_t)alloc + reserve) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "not enough slots: need %u, free %llu, reserved %llu%s", alloc,
                          (unsigned long long)free, (unsigned long long)reserve,
                          m->request->isolation_count > 0 ? " (on the hosts of isolation)" : "");
    }
    return 0;
}

/* ---- user-defined workers ---------------------------------------------------------------------
 */

/* How many tasks of a component a previous worker has. */
static uint32_t
count_in_old(const struct sl_sched_model *m, const struct sl_sched_old *old, uint32_t component)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < old->task_count; k++) {
        n += m->task_component[m->old_tasks[old->first_task + k]] == component;
    }
    return n;
}

/*
 * True when the previous worker is where the definition wants it and has what it asks for, as far
 * as definitions before it left any tasks (`claimed`, by component).
 */
static bool
old_covers(const struct sl_sched_model *m, const struct sl_sched_old *old,
           const struct sl_sched_user_worker *user, const uint32_t *claimed)
{
    const struct sl_sched_request *r = m->request;
    if (old->task_count == 0 || (user->host != NULL && strcmp(user->host, old->host) != 0) ||
        (user->port >= 0 && (uint32_t)user->port != old->port)) {
        return false;
    }
    for (uint32_t i = 0; i < user->share_count; i++) {
        const struct sl_sched_share *share = &r->shares[user->first_share + i];
        uint32_t total = m->comp_first[share->component + 1] - m->comp_first[share->component];
        uint32_t left = total - claimed[share->component];
        if (count_in_old(m, old, share->component) < (share->count < left ? share->count : left)) {
            return false;
        }
    }
    return true;
}

static void
claim(const struct sl_sched_model *m, const struct sl_sched_user_worker *user, uint32_t *claimed)
{
    for (uint32_t i = 0; i < user->share_count; i++) {
        const struct sl_sched_share *share = &m->request->shares[user->first_share + i];
        uint32_t total = m->comp_first[share->component + 1] - m->comp_first[share->component];
        uint32_t left = total - claimed[share->component];
        claimed[share->component] += share->count < left ? share->count : left;
    }
}

/* Gives one share to the slot: tasks of the old worker first, then the lowest free ones. */
static void
take_share(struct sl_sched_plan *plan, uint32_t slot, const struct sl_sched_share *share,
           const bool *need, uint32_t *cursor)
{
    const struct sl_sched_model *m = plan->model;
    uint32_t component = share->component;
    uint32_t wanted = share->count;
    if (plan->slots[slot].old != SL_SCHED_NONE) {
        const struct sl_sched_old *old = &m->olds[plan->slots[slot].old];
        for (uint32_t k = 0; wanted > 0 && k < old->task_count; k++) {
            uint32_t t = m->old_tasks[old->first_task + k];
            if (m->task_component[t] == component && need[t] &&
                plan->task_slot[t] == SL_SCHED_NONE) {
                sl_sched_plan_give(plan, slot, t);
                wanted--;
            }
        }
    }
    for (; wanted > 0 && cursor[component] < m->comp_first[component + 1]; cursor[component]++) {
        uint32_t t = m->comp_tasks[cursor[component]];
        if (need[t] && plan->task_slot[t] == SL_SCHED_NONE) {
            sl_sched_plan_give(plan, slot, t);
            wanted--;
        }
    }
}

/* The previous worker that definition `index` goes on from: [old] = definition or NONE. */
struct user_match {
    uint32_t *user_of_old;
    uint32_t *old_of_user;
    /* The definition runs already in a kept worker. */
    bool *is_done;
};

static void
match_users(const struct sl_sched_plan *plan, bool is_sticky, struct user_match *match)
{
    struct sl_sched_model *m = plan->model;
    const struct sl_sched_request *r = m->request;
    match->user_of_old = sl_arena_calloc(&m->arena, m->old_count + 1, sizeof(uint32_t));
    match->old_of_user = sl_arena_calloc(&m->arena, r->user_worker_count + 1, sizeof(uint32_t));
    match->is_done = sl_arena_calloc(&m->arena, r->user_worker_count + 1, sizeof(bool));
    bool *is_kept = sl_arena_calloc(&m->arena, m->old_count + 1, sizeof(bool));
    for (uint32_t i = 0; i < plan->kept_count; i++) {
        is_kept[plan->slots[i].old] = true;
    }
    for (uint32_t i = 0; i < m->old_count; i++) {
        match->user_of_old[i] = SL_SCHED_NONE;
    }
    uint32_t *claimed = sl_arena_calloc(&m->arena, m->component_count + 1, sizeof(uint32_t));
    for (uint32_t u = 0; u < r->user_worker_count; u++) {
        match->old_of_user[u] = SL_SCHED_NONE;
        for (uint32_t i = 0; i < m->old_count; i++) {
            const struct sl_sched_old *old = &m->olds[i];
            bool is_open =
                is_kept[i] || (is_sticky && !old->is_dead && !old->is_unstopped &&
                               old->sup != SL_SCHED_NONE && m->sups[old->sup].is_usable &&
                               sl_sched_sup_is_free(&m->sups[old->sup], old->port));
            if (is_open && match->user_of_old[i] == SL_SCHED_NONE &&
                old_covers(m, old, &r->user_workers[u], claimed)) {
                match->user_of_old[i] = u;
                match->old_of_user[u] = i;
                match->is_done[u] = is_kept[i];
                break;
            }
        }
        claim(m, &r->user_workers[u], claimed);
    }
}

/* Text of a definition for messages: "user worker 2 (host h2, port 6800)". */
static const char *
user_text(const struct sl_sched_plan *plan, uint32_t user)
{
    const struct sl_sched_user_worker *u = &plan->model->request->user_workers[user];
    struct sl_arena *arena = &plan->model->arena;
    const char *host = u->host != NULL ? sl_arena_printf(arena, "host %s", u->host) : "any host";
    return u->port >= 0
               ? sl_arena_printf(arena, "user worker %u (%s, port %d)", user + 1, host, u->port)
               : sl_arena_printf(arena, "user worker %u (%s)", user + 1, host);
}

/* Why no supervisor takes the definition. */
static int
fail_pin(const struct sl_sched_plan *plan, uint32_t slot)
{
    const struct sl_sched_model *m = plan->model;
    uint32_t user = plan->slots[slot].user;
    const struct sl_sched_user_worker *u = &m->request->user_workers[user];
    uint32_t on_host = 0;
    uint32_t usable = 0;
    uint32_t with_port = 0;
    uint32_t with_free = 0;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        const struct sl_sched_sup *sup = &m->sups[i];
        if (u->host != NULL && strcmp(u->host, sup->host) != 0) {
            continue;
        }
        on_host++;
        usable += sup->is_usable;
        if (u->port >= 0) {
            with_port += sl_sched_sup_port(sup, (uint32_t)u->port) != SL_SCHED_NONE;
            with_free += sup->is_usable && sl_sched_sup_is_free(sup, (uint32_t)u->port);
        } else {
            with_port++;
            with_free += sup->is_usable && sup->free_count > 0;
        }
    }
    const char *why = on_host == 0     ? "no supervisor is on that host"
                      : usable == 0    ? "isolation leaves that host out"
                      : with_port == 0 ? "there is no such port"
                      : with_free == 0 ? (u->port >= 0 ? "the port is taken" : "no port is free")
                                       : "the cpu or ram left there is too little";
    return sl_err_set(SL_EUNSATISFIABLE, "%s: %s", user_text(plan, user), why);
}

/* The first port of the supervisor that is free and that no previous worker would resume. */
static uint32_t
unwanted_port(const struct sl_sched_plan *plan, uint32_t sup)
{
    const struct sl_sched_model *m = plan->model;
    const struct sl_sched_sup *s = &m->sups[sup];
    for (uint32_t i = 0; i < s->port_count; i++) {
        if (s->taken[i]) {
            continue;
        }
        bool is_wanted = false;
        for (uint32_t k = 0; !is_wanted && k < m->old_count; k++) {
            is_wanted = m->olds[k].sup == sup && m->olds[k].port == s->ports[i];
        }
        if (!is_wanted) {
            return s->ports[i];
        }
    }
    return SL_SCHED_NONE;
}

enum pin_pass {
    /* Definitions that name a port, and those that go on from a previous worker. */
    PIN_PORT,
    /* Definitions that name only a host. */
    PIN_HOST,
    /* Definitions that may go anywhere but take cpu or ram of their own. */
    PIN_SIZE,
};

static int
put_pin(struct sl_sched_plan *plan, uint32_t slot, bool is_sticky)
{
    struct sl_sched_model *m = plan->model;
    const struct sl_sched_slot *s = &plan->slots[slot];
    const struct sl_sched_user_worker *u = &m->request->user_workers[s->user];
    for (uint32_t i = 0; i < m->sup_count; i++) {
        const struct sl_sched_sup *sup = &m->sups[i];
        if (!sup->is_usable || (u->host != NULL && strcmp(u->host, sup->host) != 0) ||
            sup->free_count == 0 || !sl_sched_sup_fits(sup, s->cpu, s->ram)) {
            continue;
        }
        if (u->port >= 0) {
            if (!sl_sched_sup_is_free(sup, (uint32_t)u->port)) {
                continue;
            }
            sl_sched_plan_put(plan, slot, i, (uint32_t)u->port);
            return 0;
        }
        uint32_t port = is_sticky ? unwanted_port(plan, i) : SL_SCHED_NONE;
        if (port != SL_SCHED_NONE) {
            sl_sched_plan_put(plan, slot, i, port);
        } else {
            sl_sched_plan_put_first(plan, slot, i);
        }
        return 0;
    }
    return fail_pin(plan, slot);
}

/* On the supervisor with the most free ports that has the cpu and ram. */
static int
put_sized(struct sl_sched_plan *plan, uint32_t slot)
{
    const struct sl_sched_model *m = plan->model;
    const struct sl_sched_slot *s = &plan->slots[slot];
    uint32_t best = SL_SCHED_NONE;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        const struct sl_sched_sup *sup = &m->sups[i];
        if (sup->is_usable && sup->free_count > 0 && sl_sched_sup_fits(sup, s->cpu, s->ram) &&
            (best == SL_SCHED_NONE || sup->free_count > m->sups[best].free_count)) {
            best = i;
        }
    }
    if (best == SL_SCHED_NONE) {
        return fail_pin(plan, slot);
    }
    sl_sched_plan_put_first(plan, slot, best);
    return 0;
}

static int
put_pins(struct sl_sched_plan *plan, int pass, bool is_sticky)
{
    struct sl_sched_model *m = plan->model;
    for (uint32_t i = plan->kept_count; i < plan->count; i++) {
        const struct sl_sched_slot *s = &plan->slots[i];
        const struct sl_sched_user_worker *u = &m->request->user_workers[s->user];
        if (s->sup != SL_SCHED_NONE) {
            continue;
        }
        if (pass == PIN_PORT && s->old != SL_SCHED_NONE) {
            const struct sl_sched_old *old = &m->olds[s->old];
            if (sl_sched_sup_is_free(&m->sups[old->sup], old->port) &&
                sl_sched_sup_fits(&m->sups[old->sup], s->cpu, s->ram)) {
                sl_sched_plan_put(plan, i, old->sup, old->port);
                continue;
            }
        }
        int rc = 0;
        if ((pass == PIN_PORT && u->port >= 0) ||
            (pass == PIN_HOST && u->port < 0 && u->host != NULL)) {
            rc = put_pin(plan, i, is_sticky);
        } else if (pass == PIN_SIZE && u->port < 0 && u->host == NULL &&
                   (u->cpu >= 0 || u->ram >= 0)) {
            rc = put_sized(plan, i);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int
sl_sched_place_users(struct sl_sched_plan *plan, uint32_t alloc,
                     const struct sl_sched_place_users *how)
{
    struct sl_sched_model *m = plan->model;
    const struct sl_sched_request *r = m->request;
    if (r->user_worker_count == 0) {
        return 0;
    }
    struct user_match match;
    match_users(plan, how->is_sticky, &match);
    uint32_t *cursor = sl_arena_calloc(&m->arena, m->component_count + 1, sizeof(uint32_t));
    memcpy(cursor, m->comp_first, m->component_count * sizeof(uint32_t));
    uint32_t wanted = 0;
    for (uint32_t u = 0; u < r->user_worker_count; u++) {
        const struct sl_sched_user_worker *user = &r->user_workers[u];
        if (match.is_done[u]) {
            continue;
        }
        uint32_t slot = sl_sched_plan_add(plan, user->cpu >= 0 ? user->cpu : r->worker_cpu,
                                          user->ram >= 0 ? user->ram : r->worker_ram);
        plan->slots[slot].user = u;
        plan->slots[slot].old = match.old_of_user[u];
        for (uint32_t i = 0; i < user->share_count; i++) {
            take_share(plan, slot, &r->shares[user->first_share + i], how->need, cursor);
        }
        if (plan->slots[slot].task_count == 0) {
            plan->count--;
        } else {
            wanted++;
        }
    }
    if (wanted > alloc) {
        return sl_err_set(SL_EUNSATISFIABLE, "%u user workers, but only %u workers to place",
                          wanted, alloc);
    }
    int rc = 0;
    for (int pass = PIN_PORT; rc == 0 && pass <= PIN_SIZE; pass++) {
        rc = put_pins(plan, pass, how->is_sticky);
    }
    return rc;
}

/* ---- old workers ------------------------------------------------------------------------------
 */

bool
sl_sched_place_can_resume(const struct sl_sched_plan *plan, uint32_t old)
{
    const struct sl_sched_model *m = plan->model;
    const struct sl_sched_old *o = &m->olds[old];
    if (o->sup == SL_SCHED_NONE || o->is_dead || o->is_unstopped || o->task_count == 0) {
        return false;
    }
    const struct sl_sched_sup *sup = &m->sups[o->sup];
    return sup->is_usable && sl_sched_sup_is_free(sup, o->port) &&
           sl_sched_sup_fits(sup, m->request->worker_cpu, m->request->worker_ram);
}

uint32_t
sl_sched_place_resume(struct sl_sched_plan *plan, uint32_t old)
{
    const struct sl_sched_request *r = plan->model->request;
    uint32_t slot = sl_sched_plan_add(plan, r->worker_cpu, r->worker_ram);
    plan->slots[slot].old = old;
    sl_sched_plan_put(plan, slot, plan->model->olds[old].sup, plan->model->olds[old].port);
    return slot;
}

/* ---- blank workers ----------------------------------------------------------------------------
 */

void
sl_sched_place_pad(struct sl_sched_plan *plan, uint32_t alloc)
{
    const struct sl_sched_request *r = plan->model->request;
    while (plan->count - plan->kept_count < alloc) {
        sl_sched_plan_add(plan, r->worker_cpu, r->worker_ram);
    }
}

struct target {
    uint32_t room;
    uint32_t sup;
};

/* Room descending, then rank: what a stable sort of supervisors in id order gives. */
static int
compare_target(const void *a, const void *b)
{
    const struct target *left = a;
    const struct target *right = b;
    if (left->room != right->room) {
        return left->room > right->room ? -1 : 1;
    }
    return (left->sup > right->sup) - (left->sup < right->sup);
}

/* Supervisors as a ring that one walks and takes members out of in O(1). */
struct ring {
    uint32_t *next;
    uint32_t *prev;
    uint32_t head;
    uint32_t count;
};

static void
ring_create(struct ring *ring, struct sl_arena *arena, uint32_t count)
{
    ring->next = sl_arena_calloc(arena, count + 1, sizeof(uint32_t));
    ring->prev = sl_arena_calloc(arena, count + 1, sizeof(uint32_t));
    ring->head = count > 0 ? 0 : SL_SCHED_NONE;
    ring->count = count;
    for (uint32_t i = 0; i < count; i++) {
        ring->next[i] = i + 1 < count ? i + 1 : SL_SCHED_NONE;
        ring->prev[i] = i > 0 ? i - 1 : SL_SCHED_NONE;
    }
}

/* The member after `at`, from the end to the head. */
static uint32_t
ring_after(const struct ring *ring, uint32_t at)
{
    return ring->next[at] != SL_SCHED_NONE ? ring->next[at] : ring->head;
}

static void
ring_remove(struct ring *ring, uint32_t at)
{
    if (ring->prev[at] != SL_SCHED_NONE) {
        ring->next[ring->prev[at]] = ring->next[at];
    } else {
        ring->head = ring->next[at];
    }
    if (ring->next[at] != SL_SCHED_NONE) {
        ring->prev[ring->next[at]] = ring->prev[at];
    }
    ring->count--;
}

/*
 * JStorm's list index moves on after a worker was put; when the supervisor left the list too, the
 * list has closed up, so the one behind it is passed over once.
 */
static uint32_t
ring_step(struct ring *ring, uint32_t at, bool is_exhausted)
{
    if (!is_exhausted) {
        return ring_after(ring, at);
    }
    uint32_t skipped = ring->next[at];
    ring_remove(ring, at);
    if (ring->count == 0) {
        return SL_SCHED_NONE;
    }
    return skipped == SL_SCHED_NONE ? ring->head : ring_after(ring, skipped);
}

/* The next slot from *at on that has no place, or NONE. */
static uint32_t
next_blank(const struct sl_sched_plan *plan, uint32_t *at)
{
    while (*at < plan->count && plan->slots[*at].sup != SL_SCHED_NONE) {
        (*at)++;
    }
    return *at < plan->count ? *at : SL_SCHED_NONE;
}

static uint32_t
target_room(const struct sl_sched_plan *plan, uint32_t sup)
{
    const struct sl_sched_model *m = plan->model;
    return sl_sched_sup_room(&m->sups[sup], m->request->worker_cpu, m->request->worker_ram);
}

static uint32_t
used_ports(const struct sl_sched_plan *plan, uint32_t sup)
{
    return plan->model->sups[sup].port_count - plan->model->sups[sup].free_count;
}

/* Puts blanks over the ring until no member or no blank is left. */
static void
deal_ring(struct sl_sched_plan *plan, struct ring *ring, const struct target *targets, uint32_t *at)
{
    uint32_t key = ring->head;
    while (ring->count > 0 && next_blank(plan, at) != SL_SCHED_NONE) {
        uint32_t sup = targets[key].sup;
        sl_sched_plan_put_first(plan, *at, sup);
        key = ring_step(ring, key, target_room(plan, sup) == 0);
    }
}

static void
place_theory(struct sl_sched_plan *plan, struct target *targets, uint32_t count)
{
    struct sl_arena *arena = &plan->model->arena;
    uint64_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        used += used_ports(plan, targets[i].sup);
    }
    uint64_t theory = (used + (plan->count - plan->kept_count)) / count + 1;
    struct target *over = sl_arena_calloc(arena, count, sizeof(*over));
    uint32_t over_count = 0;
    struct ring ring;
    ring_create(&ring, arena, count);
    uint32_t at = plan->kept_count;
    uint32_t key = ring.head;
    while (ring.count > 0 && next_blank(plan, &at) != SL_SCHED_NONE) {
        uint32_t sup = targets[key].sup;
        if (used_ports(plan, sup) < theory) {
            sl_sched_plan_put_first(plan, at, sup);
            key = ring_step(&ring, key, target_room(plan, sup) == 0);
        } else {
            uint32_t next = ring.next[key];
            over[over_count].sup = sup;
            over[over_count++].room = target_room(plan, sup);
            ring_remove(&ring, key);
            key = next != SL_SCHED_NONE ? next : ring.head;
        }
    }
    /* Ties stay in the order in which they came to the list, as with upstream's stable sort. */
    struct target *sorted = sl_arena_calloc(arena, over_count + 1, sizeof(*sorted));
    uint32_t *order = sl_arena_calloc(arena, over_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < over_count; i++) {
        order[i] = over[i].sup;
        sorted[i].room = over[i].room;
        sorted[i].sup = i;
    }
    qsort(sorted, over_count, sizeof(*sorted), compare_target);
    for (uint32_t i = 0; i < over_count; i++) {
        sorted[i].sup = order[sorted[i].sup];
    }
    ring_create(&ring, arena, over_count);
    deal_ring(plan, &ring, sorted, &at);
}

/* One each in turn; an exhausted supervisor drops out and nobody is passed over. */
static void
place_turns(struct sl_sched_plan *plan, const struct target *targets, uint32_t count)
{
    struct ring ring;
    ring_create(&ring, &plan->model->arena, count);
    uint32_t at = plan->kept_count;
    uint32_t key = ring.head;
    while (ring.count > 0 && next_blank(plan, &at) != SL_SCHED_NONE) {
        uint32_t sup = targets[key].sup;
        sl_sched_plan_put_first(plan, at, sup);
        uint32_t next = ring.next[key];
        if (target_room(plan, sup) == 0) {
            ring_remove(&ring, key);
        }
        key = next != SL_SCHED_NONE ? next : ring.head;
    }
}

/* Level by level: supervisors that have n workers of this topology get their next one before any
 * that has more. */
static void
place_wide(struct sl_sched_plan *plan, const struct target *targets, uint32_t count)
{
    uint32_t *mine =
        sl_arena_calloc(&plan->model->arena, plan->model->sup_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->slots[i].sup != SL_SCHED_NONE) {
            mine[plan->slots[i].sup]++;
        }
    }
    uint32_t at = plan->kept_count;
    bool is_room_left = true;
    for (uint32_t level = 0; is_room_left; level++) {
        is_room_left = false;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t sup = targets[i].sup;
            if (next_blank(plan, &at) == SL_SCHED_NONE) {
                return;
            }
            if (mine[sup] <= level && target_room(plan, sup) > 0) {
                sl_sched_plan_put_first(plan, at, sup);
                mine[sup]++;
            }
            is_room_left |= target_room(plan, sup) > 0;
        }
    }
}

int
sl_sched_place_blanks(struct sl_sched_plan *plan, int spread)
{
    struct sl_sched_model *m = plan->model;
    struct target *targets = sl_arena_calloc(&m->arena, m->sup_count + 1, sizeof(*targets));
    uint32_t count = 0;
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        uint32_t room = m->sups[i].is_usable ? target_room(plan, i) : 0;
        if (room > 0) {
            targets[count++] = (struct target){.room = room, .sup = i};
            total += room;
        }
    }
    uint32_t blanks = 0;
    for (uint32_t i = plan->kept_count; i < plan->count; i++) {
        blanks += plan->slots[i].sup == SL_SCHED_NONE;
    }
    if (blanks == 0) {
        return 0;
    }
    if (total < blanks) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "not enough slots: %u more workers need a place, but ports, cpu and ram "
                          "are left for %llu",
                          blanks, (unsigned long long)total);
    }
    qsort(targets, count, sizeof(*targets), compare_target);
    if (spread == SL_SCHED_SPREAD_THEORY) {
        place_theory(plan, targets, count);
    } else if (spread == SL_SCHED_SPREAD_TURNS) {
        place_turns(plan, targets, count);
    } else {
        place_wide(plan, targets, count);
    }
    uint32_t at = plan->kept_count;
    sl_assert_eq(next_blank(plan, &at), SL_SCHED_NONE);
    return 0;
}
