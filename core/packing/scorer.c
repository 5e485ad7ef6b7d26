#include "packing/scorer.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

enum { THOUSANDTHS = 1000 };

static int32_t
component_count(const struct sl_packing_builder *builder, int32_t position, int32_t component)
{
    int32_t count = 0;
    int32_t item = builder->slots.items[position].head;
    for (; item >= 0; item = builder->items.items[item].next) {
        count += builder->items.items[item].instance.component == component;
    }
    return count;
}

/* The score in whole thousandths. Integers throughout: 57 of 1000 is 57, not 56.999. */
static int64_t
score_thousandths(const struct sl_packing_scorer *scorer, const struct sl_packing_builder *builder,
                  int32_t position)
{
    const struct sl_packing_slot *slot = &builder->slots.items[position];
    int64_t own;
    switch (scorer->kind) {
    case SL_PACKING_SCORER_SHARE:
        own = component_count(builder, position, scorer->component);
        return slot->count == 0 ? 0 : THOUSANDTHS * own / slot->count;
    case SL_PACKING_SCORER_ONLY:
        own = component_count(builder, position, scorer->component);
        return own > 0 && own == slot->count ? THOUSANDTHS : 0;
    case SL_PACKING_SCORER_INSTANCES:
        return (int64_t)THOUSANDTHS * slot->count;
    case SL_PACKING_SCORER_ID:
        return (int64_t)THOUSANDTHS *
               (slot->id >= scorer->first_id ? slot->id : (int64_t)slot->id + scorer->max_id);
    default:
        return (int64_t)THOUSANDTHS * slot->id;
    }
}

double
sl_packing_score(const struct sl_packing_scorer *scorer, const struct sl_packing_builder *builder,
                 int32_t position)
{
    const struct sl_packing_slot *slot = &builder->slots.items[position];
    if (scorer->kind == SL_PACKING_SCORER_SHARE && slot->count > 0) {
        return (double)component_count(builder, position, scorer->component) / slot->count;
    }
    return (double)score_thousandths(scorer, builder, position) / THOUSANDTHS;
}

/* What the comparison of two containers needs; the scores of one container lie side by side. */
struct ranked {
    const int64_t *scores;
    int32_t count;
    int32_t id;
};

static int
compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    for (int32_t i = 0; i < a->count; i++) {
        if (a->scores[i] != b->scores[i]) {
            return a->scores[i] < b->scores[i] ? -1 : 1;
        }
    }
    return (a->id > b->id) - (a->id < b->id);
}

static bool
is_descending(enum sl_packing_scorer_kind kind)
{
    return kind == SL_PACKING_SCORER_SHARE || kind == SL_PACKING_SCORER_ONLY ||
           kind == SL_PACKING_SCORER_ID_DESCENDING;
}

void
sl_packing_score_sort(const struct sl_packing_scorer *scorers, int32_t scorer_count,
                      const struct sl_packing_builder *builder, int32_t *ids)
{
    int32_t containers = (int32_t)builder->slots.count;
    struct ranked *ranked = sl_calloc((size_t)containers, sizeof(*ranked));
    int64_t *scores = sl_calloc((size_t)containers * (size_t)scorer_count, sizeof(*scores));
    for (int32_t p = 0; p < containers; p++) {
        int64_t *own = &scores[(size_t)p * (size_t)scorer_count];
        for (int32_t s = 0; s < scorer_count; s++) {
            int64_t score = score_thousandths(&scorers[s], builder, p);
            own[s] = is_descending(scorers[s].kind) ? -score : score;
        }
        ranked[p] = (struct ranked){own, scorer_count, builder->slots.items[p].id};
    }
    qsort(ranked, (size_t)containers, sizeof(*ranked), compare_ranked);
    for (int32_t p = 0; p < containers; p++) {
        ids[p] = ranked[p].id;
    }
    sl_free(ranked);
    sl_free(scores);
}

void
sl_packing_removal_scorers(int32_t component,
                           struct sl_packing_scorer scorers[SL_PACKING_REMOVAL_SCORERS])
{
    scorers[0] = (struct sl_packing_scorer){SL_PACKING_SCORER_ONLY, component, 0, 0};
    scorers[1] = (struct sl_packing_scorer){SL_PACKING_SCORER_INSTANCES, component, 0, 0};
    scorers[2] = (struct sl_packing_scorer){SL_PACKING_SCORER_SHARE, component, 0, 0};
    scorers[3] = (struct sl_packing_scorer){SL_PACKING_SCORER_ID_DESCENDING, component, 0, 0};
}

/* Calls the function for the containers in order until one returns 0 or an error of another kind.
 */
static int
try_in_order(struct sl_packing_builder *builder, const struct sl_packing_scorer *scorers,
             int32_t scorer_count, int32_t component,
             int (*try_one)(struct sl_packing_builder *, int32_t, int32_t))
{
    size_t containers = builder->slots.count;
    int32_t *ids = sl_calloc(containers, sizeof(*ids));
    sl_packing_score_sort(scorers, scorer_count, builder, ids);
    int rc = sl_err_set(SL_EUNSATISFIABLE, "there is no container");
    for (size_t i = 0; i < containers; i++) {
        rc = try_one(builder, ids[i], component);
        if (rc != SL_EUNSATISFIABLE) {
            break;
        }
    }
    sl_free(ids);
    return rc;
}

int
sl_packing_builder_add_scored(struct sl_packing_builder *builder,
                              const struct sl_packing_scorer *scorers, int32_t scorer_count,
                              int32_t component)
{
    return try_in_order(builder, scorers, scorer_count, component, sl_packing_builder_add);
}

int
sl_packing_builder_remove_scored(struct sl_packing_builder *builder,
                                 const struct sl_packing_scorer *scorers, int32_t scorer_count,
                                 int32_t component)
{
    return try_in_order(builder, scorers, scorer_count, component, sl_packing_builder_remove);
}
