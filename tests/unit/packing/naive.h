#pragma once
/*
 * The rules of the reference written down as plainly as possible: scans over all containers, an
 * attempt a container count, scorers that sort everything for each removal. The packers must give
 * the same plans.
 */
#include "packing/fixture.h"

#include "packing/builder.h"
#include "packing/packer.h"
#include "packing/scorer.h"

struct naive {
    const struct fixture *fixture;
    int packer;
    struct sl_packing_builder builder;
    int32_t order[FIXTURE_COMPONENTS_MAX];
    int32_t up[FIXTURE_COMPONENTS_MAX];
    int32_t down[FIXTURE_COMPONENTS_MAX];
    int32_t turn;
};

static inline bool
naive_before(const struct naive *self, int32_t a, int32_t b)
{
    const struct sl_packing_component *left = &self->fixture->components[a];
    const struct sl_packing_component *right = &self->fixture->components[b];
    if (self->packer == SL_PACKING_FIRST_FIT_DECREASING) {
        struct sl_resource x = sl_packing_need(left);
        struct sl_resource y = sl_packing_need(right);
        if (x.ram_bytes != y.ram_bytes) {
            return x.ram_bytes > y.ram_bytes;
        }
        if (x.cpu_nano != y.cpu_nano) {
            return x.cpu_nano > y.cpu_nano;
        }
    }
    if ((left->kind == SL_PACKING_SPOUT) != (right->kind == SL_PACKING_SPOUT)) {
        return left->kind == SL_PACKING_SPOUT;
    }
    return a < b;
}

static inline void
naive_create(struct naive *self, const struct fixture *fixture, int packer)
{
    int32_t components = fixture->request.component_count;
    self->fixture = fixture;
    self->packer = packer;
    self->turn = 0;
    for (int32_t c = 0; c < components; c++) {
        int32_t at = c;
        for (; at > 0 && naive_before(self, c, self->order[at - 1]); at--) {
            self->order[at] = self->order[at - 1];
        }
        self->order[at] = c;
        int32_t change = fixture->request.current == NULL   ? fixture->components[c].parallelism
                         : fixture->request.changes == NULL ? 0
                                                            : fixture->request.changes[c];
        self->up[c] = change > 0 ? change : 0;
        self->down[c] = change < 0 ? -change : 0;
    }
    struct sl_packing_limits limits = sl_packing_limits_of(&fixture->request.config, packer);
    sl_packing_builder_create(&self->builder, fixture->components, components, &limits);
    if (fixture->request.current != NULL) {
        sl_packing_builder_load(&self->builder, fixture->request.current);
    }
}

static inline bool
naive_fits(const struct naive *self, int32_t position, struct sl_resource need)
{
    const struct sl_packing_slot *slot = &self->builder.slots.items[position];
    const struct sl_packing_limits *limits = &self->builder.limits;
    struct sl_resource filled = sl_resource_sum(sl_resource_sum(slot->used, need), limits->padding);
    return sl_resource_fits(filled, limits->capacity) && slot->count < limits->max_instances;
}

static inline int
naive_remove(struct naive *self)
{
    for (int32_t i = 0; i < self->fixture->request.component_count; i++) {
        int32_t c = self->order[i];
        struct sl_packing_scorer scorers[SL_PACKING_REMOVAL_SCORERS];
        sl_packing_removal_scorers(c, scorers);
        for (int32_t j = 0; j < self->down[c]; j++) {
            int rc = sl_packing_builder_remove_scored(&self->builder, scorers,
                                                      SL_PACKING_REMOVAL_SCORERS, c);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

static inline int
naive_first_fit(struct naive *self)
{
    for (int32_t i = 0; i < self->fixture->request.component_count; i++) {
        int32_t c = self->order[i];
        struct sl_resource need = sl_packing_need(&self->fixture->components[c]);
        for (int32_t j = 0; j < self->up[c]; j++) {
            int32_t p = 0;
            while (p < (int32_t)self->builder.slots.count && !naive_fits(self, p, need)) {
                p++;
            }
            if (p == (int32_t)self->builder.slots.count) {
                sl_packing_builder_open(&self->builder, sl_packing_builder_next_id(&self->builder));
                if (!naive_fits(self, p, need)) {
                    return SL_EUNSATISFIABLE;
                }
            }
            sl_packing_builder_put(&self->builder, p, c);
        }
    }
    return 0;
}

/* One attempt with the containers that are there; false leaves a half-filled builder. */
static inline bool
naive_deal(struct naive *self, bool is_strict)
{
    int32_t turn = 0;
    int32_t n = (int32_t)self->builder.slots.count;
    for (int32_t i = 0; i < self->fixture->request.component_count; i++) {
        int32_t c = self->order[i];
        struct sl_resource need = sl_packing_need(&self->fixture->components[c]);
        for (int32_t j = 0; j < self->up[c]; j++) {
            int32_t tried = 0;
            while (tried < (is_strict ? 1 : n) && !naive_fits(self, (turn + tried) % n, need)) {
                tried++;
            }
            if (tried == (is_strict ? 1 : n)) {
                return false;
            }
            sl_packing_builder_put(&self->builder, (turn + tried) % n, c);
            turn = (turn + tried + 1) % n;
        }
    }
    return true;
}

/* Attempts with one more container each, from `first` new ones to `last`. */
static inline int
naive_attempts(struct naive *self, int64_t first, int64_t last)
{
    const struct fixture *fixture = self->fixture;
    for (int64_t added = first; added <= last; added++) {
        sl_packing_builder_destroy(&self->builder);
        naive_create(self, fixture, self->packer);
        if (naive_remove(self) != 0) {
            return SL_EUNSATISFIABLE;
        }
        for (int64_t i = 0; i < added; i++) {
            sl_packing_builder_open(&self->builder, sl_packing_builder_next_id(&self->builder));
        }
        if (self->builder.slots.count > 0 && naive_deal(self, fixture->request.current == NULL)) {
            return 0;
        }
    }
    return SL_EUNSATISFIABLE;
}

static inline double
naive_ratio(double amount, double each)
{
    return amount > 0 && each > 0 ? amount / each : 0;
}

static inline int
naive_compliant(struct naive *self)
{
    const struct sl_packing_request *request = &self->fixture->request;
    int64_t coming = 0;
    struct sl_resource change = {0, 0, 0};
    for (int32_t c = 0; c < request->component_count; c++) {
        struct sl_resource need = sl_packing_need(&self->fixture->components[c]);
        coming += self->up[c];
        change = sl_resource_sum(change, sl_resource_product(need, self->up[c]));
        change = sl_resource_difference(change, sl_resource_product(need, self->down[c]));
    }
    if (request->current == NULL) {
        int64_t asked = request->config.containers < 0 ? 1 : request->config.containers;
        return naive_attempts(self, asked < coming ? asked : coming, coming);
    }
    double ratio = 0;
    for (int dimension = SL_PACKING_CPU; dimension <= SL_PACKING_DISK; dimension++) {
        double largest = 0;
        for (int32_t k = 0; k < request->current->container_count; k++) {
            const struct sl_packing_container *container = &request->current->containers[k];
            struct sl_resource size = {sl_cpu_nano(container->cpu), container->ram_bytes,
                                       container->disk_bytes};
            double amount = (double)sl_packing_amount(size, dimension);
            largest = amount > largest ? amount : largest;
        }
        double own = naive_ratio((double)sl_packing_amount(change, dimension), largest);
        ratio = own > ratio ? own : ratio;
    }
    int64_t first = (int64_t)ratio + (ratio > (double)(int64_t)ratio);
    return coming == 0 ? naive_remove(self) : naive_attempts(self, first, first + coming);
}

/* The container that comes first by (count, id), most first or fewest first; -1: none. */
static inline int32_t
naive_extreme(const struct naive *self, bool is_most)
{
    int32_t best = -1;
    for (int32_t p = 0; p < (int32_t)self->builder.slots.count; p++) {
        int32_t count = self->builder.slots.items[p].count;
        int32_t best_count = best < 0 ? 0 : self->builder.slots.items[best].count;
        bool is_better = is_most ? count > best_count : count <= best_count;
        if (count > 0 && (best < 0 || is_better)) {
            best = p;
        }
    }
    return best;
}

static inline int
naive_grow_count(struct naive *self, int32_t containers)
{
    int32_t old = (int32_t)self->builder.slots.count;
    bool is_full[1024] = {false};
    while ((int32_t)self->builder.slots.count < containers) {
        sl_packing_builder_open(&self->builder, sl_packing_builder_next_id(&self->builder));
    }
    for (;;) {
        int32_t taker = -1;
        for (int32_t p = old; p < containers; p++) {
            if (!is_full[p] && (taker < 0 || self->builder.slots.items[p].count <
                                                 self->builder.slots.items[taker].count)) {
                taker = p;
            }
        }
        if (taker < 0) {
            return 0;
        }
        int32_t count = self->builder.slots.items[taker].count;
        if (count >= 1 && (int64_t)containers * (count + 1) >= self->builder.live) {
            is_full[taker] = true;
            continue;
        }
        int32_t donor = naive_extreme(self, true);
        int32_t item = -1;
        for (int32_t i = 0; i < (int32_t)self->builder.items.count; i++) {
            const struct sl_packing_item *candidate = &self->builder.items.items[i];
            if (candidate->slot == donor &&
                (item < 0 ||
                 candidate->instance.task > self->builder.items.items[item].instance.task)) {
                item = i;
            }
        }
        if (donor == taker || !naive_fits(self, taker, self->builder.items.items[item].need)) {
            if (count == 0) {
                return SL_EUNSATISFIABLE;
            }
            is_full[taker] = true;
            continue;
        }
        sl_packing_builder_move(&self->builder, item, taker);
    }
}

/* The victim's item that the packer treats first, or -1. */
static inline int32_t
naive_next_item(const struct naive *self, int32_t victim)
{
    for (int32_t i = 0; i < self->fixture->request.component_count; i++) {
        int32_t best = -1;
        for (int32_t k = 0; k < (int32_t)self->builder.items.count; k++) {
            const struct sl_packing_item *item = &self->builder.items.items[k];
            if (item->slot == victim && item->instance.component == self->order[i] &&
                (best < 0 || item->instance.task < self->builder.items.items[best].instance.task)) {
                best = k;
            }
        }
        if (best >= 0) {
            return best;
        }
    }
    return -1;
}

static inline int
naive_shrink_count(struct naive *self, int32_t containers)
{
    int32_t n = (int32_t)self->builder.slots.count;
    bool is_closed[1024] = {false};
    for (int32_t left = n; left > containers; left--) {
        int32_t victim = naive_extreme(self, false);
        is_closed[victim] = true;
        int32_t item;
        while ((item = naive_next_item(self, victim)) >= 0) {
            int32_t from = self->packer == SL_PACKING_RESOURCE_COMPLIANT_RR ? self->turn : 0;
            int32_t tried = 0;
            while (tried < n &&
                   (is_closed[(from + tried) % n] ||
                    !naive_fits(self, (from + tried) % n, self->builder.items.items[item].need))) {
                tried++;
            }
            if (tried == n) {
                return SL_EUNSATISFIABLE;
            }
            sl_packing_builder_move(&self->builder, item, (from + tried) % n);
            self->turn = (from + tried + 1) % n;
        }
    }
    return 0;
}

static inline int
naive_hold_count(struct naive *self, int32_t containers)
{
    if (containers < 1 || containers > self->builder.live) {
        return SL_EUNSATISFIABLE;
    }
    sl_packing_builder_prune(&self->builder);
    int32_t there = (int32_t)self->builder.slots.count;
    return there < containers ? naive_grow_count(self, containers)
                              : naive_shrink_count(self, containers);
}

/* The plan of the naive rule, or NULL. */
static inline struct sl_packing_plan *
naive_pack(const struct fixture *fixture, int packer)
{
    struct naive self;
    struct sl_packing_plan *plan = NULL;
    naive_create(&self, fixture, packer);
    int rc = 0;
    for (int32_t c = 0; c < fixture->request.component_count && rc == 0; c++) {
        if (self.up[c] > 0) {
            rc = sl_packing_limits_check_least(&self.builder.limits, "x",
                                               sl_packing_need(&fixture->components[c]));
        }
    }
    if (rc == 0 && packer == SL_PACKING_FIRST_FIT_DECREASING) {
        rc = naive_remove(&self);
        rc = rc == 0 ? naive_first_fit(&self) : rc;
    } else if (rc == 0) {
        rc = naive_compliant(&self);
    }
    if (rc == 0 && fixture->request.containers >= 0) {
        rc = naive_hold_count(&self, fixture->request.containers);
    }
    if (rc == 0) {
        rc = sl_packing_builder_build(&self.builder, &plan);
    }
    sl_packing_builder_destroy(&self.builder);
    return plan;
}
