#include "packing/fit_cloud.h"

#include "base/alloc.h"

/* Containers that a box has when it is not cut any more. */
enum { BUCKET = 8 };

enum { DIMENSIONS = 3 };

static int64_t
amount(struct sl_resource room, int dimension)
{
    return dimension == 0 ? room.cpu_nano : dimension == 1 ? room.ram_bytes : room.disk_bytes;
}

static int64_t
greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct sl_resource
most_of(struct sl_resource a, struct sl_resource b)
{
    return (struct sl_resource){greater(a.cpu_nano, b.cpu_nano), greater(a.ram_bytes, b.ram_bytes),
                                greater(a.disk_bytes, b.disk_bytes)};
}

static const struct sl_resource NONE = {INT64_MIN, INT64_MIN, INT64_MIN};

/* What building and searching pass down. */
struct walk {
    struct sl_fit_cloud *cloud;
    const struct sl_fit_node *leaves;
    /* How far the rooms of all containers are apart, per dimension. */
    double spread[DIMENSIONS];
    struct sl_resource need;
    int32_t from;
    int32_t best;
};

static double
spread_of(const struct walk *walk, int32_t low, int32_t high, int dimension)
{
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;
    for (int32_t i = low; i < high; i++) {
        int64_t value = amount(walk->leaves[walk->cloud->points[i]].room, dimension);
        least = value < least ? value : least;
        most = greater(most, value);
    }
    return (double)most - (double)least;
}

static int
dimension_to_cut(const struct walk *walk, int32_t low, int32_t high)
{
    int widest = 0;
    double width = -1;
    for (int dimension = 0; dimension < DIMENSIONS; dimension++) {
        double whole = walk->spread[dimension];
        double own = whole > 0 ? spread_of(walk, low, high, dimension) / whole : 0;
        if (own > width) {
            widest = dimension;
            width = own;
        }
    }
    return widest;
}

/* Puts the points in such an order that those before the middle have no more of the dimension. */
static void
cut(const struct walk *walk, int32_t low, int32_t high, int32_t middle, int dimension)
{
    int32_t *points = walk->cloud->points;
    int32_t last = high - 1;
    while (low < last) {
        int64_t pivot = amount(walk->leaves[points[low + (last - low) / 2]].room, dimension);
        int32_t i = low;
        int32_t j = last;
        while (i <= j) {
            while (amount(walk->leaves[points[i]].room, dimension) < pivot) {
                i++;
            }
            while (amount(walk->leaves[points[j]].room, dimension) > pivot) {
                j--;
            }
            if (i <= j) {
                int32_t swapped = points[i];
                points[i++] = points[j];
                points[j--] = swapped;
            }
        }
        if (middle <= j) {
            last = j;
        } else if (middle >= i) {
            low = i;
        } else {
            return;
        }
    }
}

static struct sl_resource
bucket_most(const struct walk *walk, int32_t low, int32_t high)
{
    struct sl_resource most = NONE;
    for (int32_t i = low; i < high; i++) {
        const struct sl_fit_node *leaf = &walk->leaves[walk->cloud->points[i]];
        most = leaf->instances >= 1 ? most_of(most, leaf->room) : most;
    }
    return most;
}

static void
build(struct walk *walk, int32_t number, int32_t low, int32_t high)
{
    struct sl_fit_box *box = &walk->cloud->boxes[number];
    if (high - low <= BUCKET) {
        *box = (struct sl_fit_box){bucket_most(walk, low, high), INT32_MAX, -1};
        for (int32_t i = low; i < high; i++) {
            int32_t position = walk->cloud->points[i];
            box->lowest = position < box->lowest ? position : box->lowest;
            box->highest = position > box->highest ? position : box->highest;
            walk->cloud->bucket_of[position] = number;
        }
        return;
    }
    int32_t middle = low + (high - low) / 2;
    cut(walk, low, high, middle, dimension_to_cut(walk, low, high));
    build(walk, 2 * number, low, middle);
    build(walk, 2 * number + 1, middle, high);
    const struct sl_fit_box *left = &walk->cloud->boxes[2 * number];
    const struct sl_fit_box *right = &walk->cloud->boxes[2 * number + 1];
    box->most = most_of(left->most, right->most);
    box->lowest = left->lowest < right->lowest ? left->lowest : right->lowest;
    box->highest = left->highest > right->highest ? left->highest : right->highest;
}

void
sl_fit_cloud_create(struct sl_fit_cloud *self, const struct sl_fit_node *leaves, int32_t count)
{
    /* Halves round up: a box that is cut holds more than BUCKET, its halves at least half that. */
    size_t boxes = 2;
    for (int32_t size = count; size > BUCKET; size -= size / 2) {
        boxes *= 2;
    }
    *self = (struct sl_fit_cloud){
        .points = sl_alloc((size_t)count * sizeof(int32_t)),
        .boxes = sl_alloc(boxes * sizeof(struct sl_fit_box)),
        .bucket_of = sl_alloc((size_t)count * sizeof(int32_t)),
        .count = count,
    };
    for (int32_t i = 0; i < count; i++) {
        self->points[i] = i;
    }
    struct walk walk = {.cloud = self, .leaves = leaves};
    for (int dimension = 0; dimension < DIMENSIONS; dimension++) {
        walk.spread[dimension] = spread_of(&walk, 0, count, dimension);
    }
    build(&walk, 1, 0, count);
}

void
sl_fit_cloud_destroy(struct sl_fit_cloud *self)
{
    sl_free(self->points);
    sl_free(self->boxes);
    sl_free(self->bucket_of);
    *self = (struct sl_fit_cloud){0};
}

void
sl_fit_cloud_raise(struct sl_fit_cloud *self, int32_t position, struct sl_resource room)
{
    for (int32_t number = self->bucket_of[position]; number >= 1; number /= 2) {
        struct sl_fit_box *box = &self->boxes[number];
        box->most = most_of(box->most, room);
    }
}

static void
search_bucket(struct walk *walk, int32_t low, int32_t high)
{
    for (int32_t i = low; i < high; i++) {
        int32_t position = walk->cloud->points[i];
        if (position >= walk->from && position < walk->best &&
            sl_fit_node_holds(&walk->leaves[position], walk->need)) {
            walk->best = position;
        }
    }
}

static void
search(struct walk *walk, int32_t number, int32_t low, int32_t high)
{
    struct sl_fit_box *box = &walk->cloud->boxes[number];
    if (box->lowest >= walk->best || box->highest < walk->from ||
        !sl_resource_fits(walk->need, box->most)) {
        return;
    }
    if (high - low <= BUCKET) {
        search_bucket(walk, low, high);
        box->most = bucket_most(walk, low, high);
        return;
    }
    const struct sl_fit_box *left = &walk->cloud->boxes[2 * number];
    const struct sl_fit_box *right = &walk->cloud->boxes[2 * number + 1];
    int32_t middle = low + (high - low) / 2;
    if (left->lowest <= right->lowest) {
        search(walk, 2 * number, low, middle);
        search(walk, 2 * number + 1, middle, high);
    } else {
        search(walk, 2 * number + 1, middle, high);
        search(walk, 2 * number, low, middle);
    }
    box->most = most_of(left->most, right->most);
}

int32_t
sl_fit_cloud_find(struct sl_fit_cloud *self, const struct sl_fit_node *leaves, int32_t from,
                  struct sl_resource need)
{
    struct walk walk = {
        .cloud = self, .leaves = leaves, .need = need, .from = from, .best = INT32_MAX};
    search(&walk, 1, 0, self->count);
    return walk.best == INT32_MAX ? -1 : walk.best;
}
