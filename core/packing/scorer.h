#pragma once
/*
 * Scorers: numbers by which containers are put into an order. Scores are compared as whole
 * thousandths (int(1000 * score)); a tie is broken by the next scorer of the list, in the end by
 * the lower container id. The packers use the index of removal.h, which gives the same order as the
 * list that sl_packing_removal_scorers returns; the scorers are its definition and its oracle.
 */

#include <stdint.h>

#include "packing/builder.h"

enum sl_packing_scorer_kind {
    /* Instances of the component over all instances; descending. */
    SL_PACKING_SCORER_SHARE,
    /* 1 when the container holds only this component, else 0; descending. */
    SL_PACKING_SCORER_ONLY,
    /* Number of instances; ascending. */
    SL_PACKING_SCORER_INSTANCES,
    /* The id, those >= first_id in front of the others: id or id + max_id; ascending. */
    SL_PACKING_SCORER_ID,
    /* The id; descending. */
    SL_PACKING_SCORER_ID_DESCENDING,
};

struct sl_packing_scorer {
    enum sl_packing_scorer_kind kind;
    /* For the first two. */
    int32_t component;
    /* For SL_PACKING_SCORER_ID; 0 and 0 give the plain id. */
    int32_t first_id;
    int32_t max_id;
};

enum { SL_PACKING_REMOVAL_SCORERS = 4 };

/* The score of the container at this position. */
double sl_packing_score(const struct sl_packing_scorer *scorer,
                        const struct sl_packing_builder *builder, int32_t position);

/* Writes the ids of all containers in the order of the scorers; `ids` has room for all. */
void sl_packing_score_sort(const struct sl_packing_scorer *scorers, int32_t scorer_count,
                           const struct sl_packing_builder *builder, int32_t *ids);

/*
 * The order of removal: containers with only this component, fewest instances, highest share of
 * the component, highest id.
 */
void sl_packing_removal_scorers(int32_t component,
                                struct sl_packing_scorer scorers[SL_PACKING_REMOVAL_SCORERS]);

/* Adds to the first container in this order that passes the constraints, else SL_EUNSATISFIABLE. */
int sl_packing_builder_add_scored(struct sl_packing_builder *builder,
                                  const struct sl_packing_scorer *scorers, int32_t scorer_count,
                                  int32_t component);

/* Removes from the first container in this order that has the component, else SL_EUNSATISFIABLE. */
int sl_packing_builder_remove_scored(struct sl_packing_builder *builder,
                                     const struct sl_packing_scorer *scorers, int32_t scorer_count,
                                     int32_t component);
