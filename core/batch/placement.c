#include "batch/placement.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The least loaded living worker (on a host, unless it is NULL), or -1. */
static int32_t
least_loaded(const int32_t *load, const struct sl_placement_worker *workers, int32_t count,
             const char *host)
{
    int32_t best = -1;
    for (int32_t i = 0; i < count; i++) {
        bool fits = workers[i].is_alive && (host == NULL || strcmp(workers[i].host, host) == 0);
        if (fits && (best < 0 || load[i] < load[best])) {
            best = i;
        }
    }
    return best;
}

static void
add_worker(struct sl_placement_receiver *receiver, const struct sl_placement_worker *workers,
           int32_t worker)
{
    struct sl_receiver_place place = {worker, workers[worker].host};
    sl_vec_push(&receiver->places, place);
}

static struct sl_placement_receiver *
fewest_places(struct sl_placement_receiver *receivers, int32_t count)
{
    struct sl_placement_receiver *best = &receivers[0];
    for (int32_t i = 1; i < count; i++) {
        if (receivers[i].places.count < best->places.count) {
            best = &receivers[i];
        }
    }
    return best;
}

void
sl_placement_all(struct sl_placement_receiver *receivers, int32_t receiver_count,
                 const struct sl_placement_worker *workers, int32_t worker_count)
{
    int32_t *load = sl_calloc((size_t)worker_count, sizeof(*load));
    for (int32_t i = 0; i < receiver_count; i++) {
        sl_vec_clear(&receivers[i].places);
    }
    if (receiver_count == 0 || least_loaded(load, workers, worker_count, NULL) < 0) {
        goto out;
    }
    for (int32_t i = 0; i < receiver_count; i++) {
        const char *host = receivers[i].preferred_host;
        if (host == NULL) {
            continue;
        }
        int32_t worker = least_loaded(load, workers, worker_count, host);
        if (worker >= 0) {
            add_worker(&receivers[i], workers, worker);
            load[worker]++;
        } else {
            struct sl_receiver_place place = {-1, host};
            sl_vec_push(&receivers[i].places, place);
        }
    }
    for (int32_t i = 0; i < receiver_count; i++) {
        if (receivers[i].places.count == 0) {
            int32_t worker = least_loaded(load, workers, worker_count, NULL);
            add_worker(&receivers[i], workers, worker);
            load[worker]++;
        }
    }
    for (int32_t i = 0; i < worker_count; i++) {
        if (workers[i].is_alive && load[i] == 0) {
            add_worker(fewest_places(receivers, receiver_count), workers, i);
        }
    }
out:
    sl_free(load);
}

/* What each worker carries. */
static void
weigh(const struct sl_placement_receiver *receivers, int32_t count, double *weights,
      int32_t worker_count)
{
    for (int32_t i = 0; i < count; i++) {
        const struct sl_placement_receiver *receiver = &receivers[i];
        if (receiver->state == SL_RECEIVER_ACTIVE && receiver->worker < worker_count) {
            weights[receiver->worker] += 1;
        }
        for (size_t j = 0; receiver->state == SL_RECEIVER_SCHEDULED && j < receiver->places.count;
             j++) {
            if (receiver->places.items[j].worker >= 0) {
                weights[receiver->places.items[j].worker] += 1 / (double)receiver->places.count;
            }
        }
    }
}

void
sl_placement_one(struct sl_placement_receiver *receivers, int32_t receiver_count, int32_t receiver,
                 const struct sl_placement_worker *workers, int32_t worker_count)
{
    struct sl_placement_receiver *placed = &receivers[receiver];
    double *weights = sl_calloc((size_t)worker_count, sizeof(*weights));
    weigh(receivers, receiver_count, weights, worker_count);
    sl_vec_clear(&placed->places);
    double least = INFINITY;
    for (int32_t i = 0; i < worker_count; i++) {
        least = workers[i].is_alive ? fmin(least, weights[i]) : least;
    }
    if (placed->preferred_host != NULL && least < INFINITY) {
        struct sl_receiver_place place = {-1, placed->preferred_host};
        sl_vec_push(&placed->places, place);
    }
    for (int32_t i = 0; i < worker_count; i++) {
        if (workers[i].is_alive && weights[i] <= least) {
            add_worker(placed, workers, i);
        }
    }
    sl_free(weights);
}
