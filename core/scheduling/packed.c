#include "scheduling/packed.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "scheduling/plan.h"
#include "scheduling/steps.h"

/* From that many containers on the topology master gets a slot of its own unless the user decides.
 */
enum { MASTER_ALONE_FROM = 10 };

struct packed {
    struct sl_sched_model model;
    struct sl_sched_plan plan;
    int mode;
    bool *need;
    /* Containers in order of ids. */
    const struct sl_sched_container **containers;
    uint32_t container_count;
    /* Container of each task, or NONE. */
    uint32_t *task_container;
    /* Tasks of each container, system ones that joined it included. */
    uint32_t *size;
    bool is_master_alone;
};

static int
compare_container(const void *a, const void *b)
{
    uint32_t left = (*(const struct sl_sched_container *const *)a)->id;
    uint32_t right = (*(const struct sl_sched_container *const *)b)->id;
    return (left > right) - (left < right);
}

/* Container of each task; the plan and the components must agree. */
static int
read_plan(struct packed *p)
{
    struct sl_sched_model *m = &p->model;
    const struct sl_sched_request *r = m->request;
    p->container_count = r->container_count;
    p->containers = sl_arena_calloc(&m->arena, p->container_count + 1, sizeof(*p->containers));
    p->task_container = sl_arena_calloc(&m->arena, m->task_count + 1, sizeof(uint32_t));
    p->size = sl_arena_calloc(&m->arena, p->container_count + 2, sizeof(uint32_t));
    memset(p->task_container, 0xff, m->task_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < p->container_count; i++) {
        p->containers[i] = &r->containers[i];
    }
    qsort(p->containers, p->container_count, sizeof(*p->containers), compare_container);
    for (uint32_t i = 0; i < p->container_count; i++) {
        const struct sl_sched_container *c = p->containers[i];
        if (i > 0 && c->id == p->containers[i - 1]->id) {
            return sl_err_set(SL_EINVAL, "plan: container %u is given twice", c->id);
        }
        for (uint32_t k = 0; k < c->task_count; k++) {
            uint32_t id = r->container_tasks[c->first_task + k];
            uint32_t t = sl_sched_model_task(m, id);
            if (t == SL_SCHED_NONE) {
                return sl_err_set(SL_EINVAL, "plan: container %u has task %u, no component has it",
                                  c->id, id);
            }
            if (p->task_container[t] != SL_SCHED_NONE) {
                return sl_err_set(SL_EINVAL, "plan: task %u is given twice", id);
            }
            p->task_container[t] = i;
            p->size[i]++;
        }
    }
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (p->task_container[t] == SL_SCHED_NONE &&
            !sl_sched_model_is_system(m, m->task_component[t])) {
            return sl_err_set(SL_EINVAL, "plan: no container has task %u of %s", m->task_ids[t],
                              sl_sched_model_name(m, m->task_component[t]));
        }
    }
    return p->container_count > 0 ? 0 : sl_err_set(SL_EINVAL, "plan: it has no containers");
}

/* Tasks of the engine that the plan does not know join the container with the fewest tasks. */
static void
join_system_tasks(struct packed *p)
{
    const struct sl_sched_model *m = &p->model;
    const struct sl_sched_request *r = m->request;
    p->is_master_alone = m->master != SL_SCHED_NONE &&
                         p->task_container[m->master] == SL_SCHED_NONE &&
                         (r->master_alone == SL_SCHED_AUTO ? p->container_count >= MASTER_ALONE_FROM
                                                           : r->master_alone == SL_SCHED_YES);
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (p->task_container[t] != SL_SCHED_NONE || (p->is_master_alone && t == m->master)) {
            continue;
        }
        uint32_t best = 0;
        for (uint32_t i = 1; i < p->container_count; i++) {
            if (p->size[i] < p->size[best]) {
                best = i;
            }
        }
        p->task_container[t] = best;
        p->size[best]++;
    }
}

/* Adds a slot for each container that has tasks to place, and one for a lone master: slot order is
 * container order. `slot_of` is by container. */
static void
add_slots(struct packed *p, uint32_t *slot_of)
{
    struct sl_sched_model *m = &p->model;
    bool *has_need = sl_arena_calloc(&m->arena, p->container_count + 1, sizeof(bool));
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (p->need[t] && p->task_container[t] != SL_SCHED_NONE) {
            has_need[p->task_container[t]] = true;
        }
    }
    for (uint32_t i = 0; i < p->container_count; i++) {
        slot_of[i] = SL_SCHED_NONE;
        if (has_need[i]) {
            const struct sl_sched_container *c = p->containers[i];
            slot_of[i] = sl_sched_plan_add(&p->plan, c->cpu >= 0 ? c->cpu : m->request->worker_cpu,
                                           c->ram >= 0 ? c->ram : m->request->worker_ram);
        }
    }
    if (p->is_master_alone && p->need[m->master]) {
        uint32_t slot = sl_sched_plan_add(&p->plan, -1, -1);
        p->plan.slots[slot].is_lone = true;
        sl_sched_plan_give(&p->plan, slot, m->master);
    }
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (p->need[t] && p->plan.task_slot[t] == SL_SCHED_NONE) {
            sl_sched_plan_give(&p->plan, slot_of[p->task_container[t]], t);
        }
    }
}

/* Puts the slot where it was if that can be had. */
static bool
put_back(struct packed *p, uint32_t slot, uint32_t sup, uint32_t port)
{
    struct sl_sched_model *m = &p->model;
    const struct sl_sched_slot *s = &p->plan.slots[slot];
    if (sup == SL_SCHED_NONE || !m->sups[sup].is_usable ||
        !sl_sched_sup_is_free(&m->sups[sup], port) ||
        !sl_sched_sup_fits(&m->sups[sup], s->cpu, s->ram)) {
        return false;
    }
    sl_sched_plan_put(&p->plan, slot, sup, port);
    return true;
}

struct overlap {
    uint32_t slot;
    uint32_t old;
    uint32_t shared;
};

static int
compare_overlap(const void *a, const void *b)
{
    const struct overlap *left = a;
    const struct overlap *right = b;
    if (left->shared != right->shared) {
        return left->shared > right->shared ? -1 : 1;
    }
    if (left->slot != right->slot) {
        return left->slot > right->slot ? 1 : -1;
    }
    return (left->old > right->old) - (left->old < right->old);
}

/* Slots go back to the previous worker they share most tasks with, the largest overlaps first. */
static void
resume_slots(struct packed *p)
{
    struct sl_sched_model *m = &p->model;
    struct overlap *list = sl_arena_calloc(&m->arena, m->task_count + 1, sizeof(*list));
    uint32_t *at = sl_arena_calloc(&m->arena, p->plan.count + 1, sizeof(uint32_t));
    uint32_t *seen = sl_arena_calloc(&m->arena, p->plan.count + 1, sizeof(uint32_t));
    bool *is_taken = sl_arena_calloc(&m->arena, m->old_count + 1, sizeof(bool));
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->old_count; i++) {
        const struct sl_sched_old *old = &m->olds[i];
        for (uint32_t k = 0; !old->is_dead && k < old->task_count; k++) {
            uint32_t slot = p->plan.task_slot[m->old_tasks[old->first_task + k]];
            if (slot < p->plan.kept_count || slot == SL_SCHED_NONE) {
                continue;
            }
            if (seen[slot] != i + 1) {
                seen[slot] = i + 1;
                at[slot] = count;
                list[count++] = (struct overlap){.slot = slot, .old = i};
            }
            list[at[slot]].shared++;
        }
    }
    qsort(list, count, sizeof(*list), compare_overlap);
    for (uint32_t i = 0; i < count; i++) {
        const struct overlap *o = &list[i];
        if (p->plan.slots[o->slot].sup == SL_SCHED_NONE && !is_taken[o->old]) {
            is_taken[o->old] = put_back(p, o->slot, m->olds[o->old].sup, m->olds[o->old].port);
        }
    }
}

/* ---- even placement ---------------------------------------------------------------------------
 */

/* Supervisors in a heap by (workers of this topology, free ports descending, rank). */
struct even_heap {
    const struct sl_sched_model *model;
    uint32_t *items;
    uint32_t count;
    uint32_t *mine;
};

static bool
heap_before(const struct even_heap *h, uint32_t a, uint32_t b)
{
    uint32_t free_a = h->model->sups[a].free_count;
    uint32_t free_b = h->model->sups[b].free_count;
    if (h->mine[a] != h->mine[b]) {
        return h->mine[a] < h->mine[b];
    }
    return free_a != free_b ? free_a > free_b : a < b;
}

static void
heap_push(struct even_heap *h, uint32_t sup)
{
    uint32_t at = h->count++;
    while (at > 0 && heap_before(h, sup, h->items[(at - 1) / 2])) {
        h->items[at] = h->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->items[at] = sup;
}

static uint32_t
heap_pop(struct even_heap *h)
{
    uint32_t top = h->items[0];
    uint32_t last = h->items[--h->count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < h->count; child = 2 * at + 1) {
        if (child + 1 < h->count && heap_before(h, h->items[child + 1], h->items[child])) {
            child++;
        }
        if (!heap_before(h, h->items[child], last)) {
            break;
        }
        h->items[at] = h->items[child];
        at = child;
    }
    if (h->count > 0) {
        h->items[at] = last;
    }
    return top;
}

/* Puts one slot on the best supervisor that takes it; those passed over go back. */
static int
put_even(struct packed *p, struct even_heap *h, uint32_t slot, uint32_t *passed)
{
    struct sl_sched_model *m = &p->model;
    const struct sl_sched_slot *s = &p->plan.slots[slot];
    uint32_t passed_count = 0;
    uint32_t found = SL_SCHED_NONE;
    while (found == SL_SCHED_NONE && h->count > 0) {
        uint32_t sup = heap_pop(h);
        if (sl_sched_sup_fits(&m->sups[sup], s->cpu, s->ram)) {
            found = sup;
        } else {
            passed[passed_count++] = sup;
        }
    }
    if (found != SL_SCHED_NONE) {
        sl_sched_plan_put_first(&p->plan, slot, found);
        h->mine[found]++;
        if (m->sups[found].free_count > 0) {
            heap_push(h, found);
        }
    }
    for (uint32_t i = 0; i < passed_count; i++) {
        heap_push(h, passed[i]);
    }
    return found != SL_SCHED_NONE
               ? 0
               : sl_err_set(SL_EUNSATISFIABLE,
                            "a container of %g cpu and %.0f bytes of ram fits no free slot",
                            s->cpu > 0 ? s->cpu : 0, s->ram > 0 ? s->ram : 0);
}

/* The slots without a place, in slot order or the largest first. */
struct to_place {
    double cpu;
    double ram;
    uint32_t slot;
};

static int
compare_to_place(const void *a, const void *b)
{
    const struct to_place *left = a;
    const struct to_place *right = b;
    if (left->ram != right->ram) {
        return left->ram > right->ram ? -1 : 1;
    }
    if (left->cpu != right->cpu) {
        return left->cpu > right->cpu ? -1 : 1;
    }
    return (left->slot > right->slot) - (left->slot < right->slot);
}

static int
place_even(struct packed *p, bool is_largest_first)
{
    struct sl_sched_model *m = &p->model;
    struct to_place *list = sl_arena_calloc(&m->arena, p->plan.count + 1, sizeof(*list));
    uint32_t *passed = sl_arena_calloc(&m->arena, m->sup_count + 1, sizeof(uint32_t));
    struct even_heap heap = {
        .model = m,
        .items = sl_arena_calloc(&m->arena, m->sup_count + 1, sizeof(uint32_t)),
        .mine = sl_arena_calloc(&m->arena, m->sup_count + 1, sizeof(uint32_t)),
    };
    uint32_t count = 0;
    uint64_t free = 0;
    for (uint32_t i = 0; i < p->plan.count; i++) {
        const struct sl_sched_slot *s = &p->plan.slots[i];
        if (s->sup != SL_SCHED_NONE) {
            heap.mine[s->sup]++;
        } else if (i >= p->plan.kept_count) {
            list[count++] = (struct to_place){.cpu = s->cpu, .ram = s->ram, .slot = i};
        }
    }
    for (uint32_t i = 0; i < m->sup_count; i++) {
        if (m->sups[i].is_usable && m->sups[i].free_count > 0) {
            free += m->sups[i].free_count;
            heap_push(&heap, i);
        }
    }
    if (free < (uint64_t)count + m->request->reserve_workers) {
        return sl_err_set(SL_EUNSATISFIABLE, "not enough slots: need %u, free %llu, reserved %u",
                          count, (unsigned long long)free, m->request->reserve_workers);
    }
    if (is_largest_first) {
        qsort(list, count, sizeof(*list), compare_to_place);
    }
    for (uint32_t i = 0; i < count; i++) {
        int rc = put_even(p, &heap, list[i].slot, passed);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int
packed_run(struct packed *p, const struct sl_sched_request *request, bool is_largest_first,
           struct sl_sched_result *result)
{
    struct sl_sched_model *m = &p->model;
    p->mode = request->mode;
    int rc = sl_sched_model_create(m, request);
    if (rc == 0) {
        rc = read_plan(p);
    }
    if (rc != 0) {
        return rc;
    }
    join_system_tasks(p);
    sl_sched_refine_dead(m);
    p->need = sl_arena_calloc(&m->arena, m->task_count + 1, sizeof(bool));
    uint32_t need_count = sl_sched_need(m, p->mode, p->need);
    sl_sched_mark_ports(m, p->mode);
    sl_sched_plan_create(&p->plan, m, m->old_count + p->container_count + 2);
    sl_sched_keep(&p->plan, p->mode, p->need);
    if (need_count == 0) {
        return sl_err_set(SL_ECONFLICT, "nothing needs assigning: %u workers run all %u tasks",
                          p->plan.kept_count, m->task_count);
    }
    uint32_t *slot_of = sl_arena_calloc(&m->arena, p->container_count + 1, sizeof(uint32_t));
    add_slots(p, slot_of);
    if (p->mode != SL_SCHED_NEW && p->mode != SL_SCHED_REASSIGN) {
        for (uint32_t i = 0; i < p->container_count; i++) {
            const struct sl_sched_container *c = p->containers[i];
            if (slot_of[i] != SL_SCHED_NONE && c->supervisor != NULL && c->port >= 0) {
                put_back(p, slot_of[i], sl_sched_model_sup(m, c->supervisor), (uint32_t)c->port);
            }
        }
        resume_slots(p);
    }
    rc = place_even(p, is_largest_first);
    return rc != 0 ? rc : sl_sched_plan_finish(&p->plan, result);
}

int
sl_sched_packed(const struct sl_sched_request *request, struct sl_sched_result *result)
{
    if (request->user_worker_count > 0) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "the scheduler packed knows no user workers, %u are asked for; balanced "
                          "and round_robin do",
                          request->user_worker_count);
    }
    if (!request->has_plan) {
        return sl_err_set(SL_EINVAL, "the scheduler packed needs a packing plan");
    }
    int rc = 0;
    for (int pass = 0; pass < 2; pass++) {
        struct packed packed = {0};
        rc = packed_run(&packed, request, pass == 1, result);
        sl_sched_model_destroy(&packed.model);
        if (rc != SL_EUNSATISFIABLE) {
            break;
        }
    }
    return rc;
}
