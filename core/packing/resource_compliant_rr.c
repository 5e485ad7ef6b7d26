/*
 * Resource compliant round robin: instances go to the containers in turn, as far as they fit. A
 * first plan is strict: where the container whose turn it is has no room, everything starts again
 * with one more container. A repack is flexible: the next container with room takes the instance,
 * and only when none has room it starts again with one more.
 *
 * The naive rule costs one pass over all instances for each container count it tries. Here counts
 * that can not do are skipped by what the instances need in total, a strict attempt is judged from
 * the loads that its counts imply, and a flexible one asks an index.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "packing/packer.h"

static int64_t
divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t
greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many containers with this room the need fills at least; dimensions without room are left out.
 */
static int64_t
least_containers(struct sl_resource need, struct sl_resource room)
{
    int64_t least = 0;
    for (int dimension = SL_PACKING_CPU; dimension <= SL_PACKING_DISK; dimension++) {
        int64_t amount = sl_packing_amount(need, dimension);
        int64_t each = sl_packing_amount(room, dimension);
        if (amount > 0 && each > 0) {
            least = greater(least, divide_up(amount, each));
        }
    }
    return least;
}

static struct sl_resource
added_need(const struct sl_packing_job *job)
{
    struct sl_resource sum = {0, 0, 0};
    for (int32_t c = 0; c < job->request->component_count; c++) {
        struct sl_resource need = job->needs[c];
        sum = sl_resource_sum(sum, sl_resource_product(need, job->up[c]));
    }
    return sum;
}

/*
 * What container k of n holds when everything is dealt out in turn. Of p instances that begin at
 * container b each container gets p div n, and the p mod n containers from b on get one more.
 */
static struct sl_resource
strict_load(const struct sl_packing_job *job, int64_t n, int64_t k)
{
    struct sl_resource load = {0, 0, 0};
    int64_t begin = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        int64_t more = job->up[component];
        if (more >= n) {
            load = sl_resource_sum(load, sl_resource_product(job->needs[component], more / n));
            more %= n;
        }
        if ((k >= begin ? k - begin : k - begin + n) < more) {
            load = sl_resource_sum(load, job->needs[component]);
        }
        begin += more;
        begin -= begin >= n ? n : 0;
    }
    return load;
}

/*
 * A component starts (sign 1) or stops (sign -1) to add one more instance at this container.
 * Between two edges the load of the containers is the same.
 */
struct edge {
    int32_t position;
    int32_t component;
    int32_t sign;
};

/* Room for the search of a strict container count. */
struct strict_search {
    const struct sl_packing_job *job;
    struct sl_resource room;
    struct edge *edges;
    int32_t edge_count;
    /* Positions of the edges in order, where they are sorted by counting. */
    struct edge *sorted;
    /* The component of each instance in the order in which they are dealt out; NULL when the
     * components are so few that their counts tell the load of a container faster. */
    int32_t *dealt;
    /* The container that was too full the last time. */
    int64_t suspect;
};

/* Instances a component, at most, for which going through the instances is the faster way. */
enum { INSTANCES_WORTH_DEALING = 8 };

static int32_t *
dealt_new(const struct sl_packing_job *job)
{
    if (job->total / INSTANCES_WORTH_DEALING >= job->request->component_count) {
        return NULL;
    }
    int32_t *dealt = sl_alloc((size_t)job->total * sizeof(*dealt));
    int32_t at = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        for (int32_t j = 0; j < job->up[component]; j++) {
            dealt[at++] = component;
        }
    }
    return dealt;
}

/* What container k of n holds: it gets every nth instance. */
static struct sl_resource
dealt_load(const struct strict_search *self, int64_t n, int64_t k)
{
    struct sl_resource load = {0, 0, 0};
    for (int64_t at = k; at < self->job->total; at += n) {
        load = sl_resource_sum(load, self->job->needs[self->dealt[at]]);
    }
    return load;
}

/* True when container k of n is too full, which is kept in mind. */
static bool
is_too_full(struct strict_search *self, int64_t n, int64_t k)
{
    struct sl_resource load =
        self->dealt != NULL ? dealt_load(self, n, k) : strict_load(self->job, n, k);
    if (sl_resource_fits(load, self->room)) {
        return false;
    }
    self->suspect = k;
    return true;
}

static int
compare_edges(const void *left, const void *right)
{
    const struct edge *a = left;
    const struct edge *b = right;
    return (a->position > b->position) - (a->position < b->position);
}

/* Adds the edges of one more load at [from, from + length) of the cycle of n containers. */
static void
push_range(struct strict_search *self, int32_t component, int64_t from, int64_t length, int64_t n)
{
    if (length == 0) {
        return;
    }
    int64_t stop = from + length;
    self->edges[self->edge_count++] = (struct edge){(int32_t)from, component, 1};
    if (stop > n) {
        self->edges[self->edge_count++] = (struct edge){0, component, 1};
        stop -= n;
    }
    if (stop < n) {
        self->edges[self->edge_count++] = (struct edge){(int32_t)stop, component, -1};
    }
}

/* Puts the edges into order: by counting where there are many for n containers, else by sorting. */
static const struct edge *
sort_edges(struct strict_search *self, int64_t n)
{
    enum { EDGES_WORTH_COUNTING = 8 };
    if ((int64_t)self->edge_count * EDGES_WORTH_COUNTING < n) {
        qsort(self->edges, (size_t)self->edge_count, sizeof(*self->edges), compare_edges);
        return self->edges;
    }
    int32_t *next = sl_calloc((size_t)n + 1, sizeof(*next));
    for (int32_t e = 0; e < self->edge_count; e++) {
        next[self->edges[e].position + 1]++;
    }
    for (int64_t k = 0; k < n; k++) {
        next[k + 1] += next[k];
    }
    for (int32_t e = 0; e < self->edge_count; e++) {
        self->sorted[next[self->edges[e].position]++] = self->edges[e];
    }
    sl_free(next);
    return self->sorted;
}

/* Containers that are looked at before the loads of all of them are. */
enum { PROBES = 6 };

/* Looks for a container that is too full, first at the one that was so the last time. */
static bool
probe_finds_excess(struct strict_search *self, int64_t n)
{
    for (int64_t probe = 0; probe < PROBES; probe++) {
        int64_t k = probe == 0 ? self->suspect % n : n * probe / PROBES;
        if (is_too_full(self, n, k)) {
            return true;
        }
    }
    return false;
}

/*
 * True when n containers filled in turn hold everything. Most counts that can not do are found out
 * by a few containers; where those are not too full, the load is followed from edge to edge.
 */
static bool
strict_is_feasible(struct strict_search *self, int64_t n)
{
    const struct sl_packing_job *job = self->job;
    if (probe_finds_excess(self, n)) {
        return false;
    }
    if (self->dealt != NULL) {
        int64_t k = 0;
        while (k < n && !is_too_full(self, n, k)) {
            k++;
        }
        return k == n;
    }
    struct sl_resource load = {0, 0, 0};
    int64_t begin = 0;
    self->edge_count = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        int64_t more = job->up[component] % n;
        load = sl_resource_sum(load,
                               sl_resource_product(job->needs[component], job->up[component] / n));
        push_range(self, component, begin, more, n);
        begin = (begin + more) % n;
    }
    if (!sl_resource_fits(load, self->room)) {
        return false;
    }
    const struct edge *edges = sort_edges(self, n);
    for (int32_t e = 0; e < self->edge_count; e++) {
        struct sl_resource need = job->needs[edges[e].component];
        load = edges[e].sign > 0 ? sl_resource_sum(load, need) : sl_resource_difference(load, need);
        bool is_last_here = e + 1 == self->edge_count || edges[e + 1].position > edges[e].position;
        if (is_last_here && !sl_resource_fits(load, self->room)) {
            self->suspect = edges[e].position;
            return false;
        }
    }
    return true;
}

int
sl_packing_compliant_pack(const struct sl_packing_job *job, struct sl_packing_builder *builder)
{
    int32_t asked = job->request->config.containers;
    int64_t n = asked == SL_PACKING_UNSET ? SL_PACKING_DEFAULT_CONTAINERS : asked;
    if (n < 1) {
        return sl_packing_container_count_refuse(job, n);
    }
    n = n > job->total ? job->total : n;
    size_t edges = 3 * (size_t)job->request->component_count;
    struct strict_search search = {
        .job = job,
        .room = sl_packing_room(&job->limits, (struct sl_resource){0, 0, 0}),
        .edges = sl_alloc(edges * sizeof(struct edge)),
        .sorted = sl_alloc(edges * sizeof(struct edge)),
        .dealt = dealt_new(job),
    };
    n = greater(n, least_containers(added_need(job), search.room));
    /* One instance fits into an empty container, so one container for each ends the search. */
    while (n < job->total && !strict_is_feasible(&search, n)) {
        n++;
    }
    sl_free(search.edges);
    sl_free(search.sorted);
    sl_free(search.dealt);
    n = n > job->total ? job->total : n;

    for (int32_t k = 1; k <= (int32_t)n; k++) {
        sl_packing_builder_open(builder, k);
    }
    int32_t position = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        for (int32_t j = 0; j < job->up[component]; j++) {
            sl_packing_builder_put(builder, position, component);
            position = position + 1 == n ? 0 : position + 1;
        }
    }
    return 0;
}

/* Containers that the growth is worth, measured by the largest one of the current plan. */
static int64_t
estimate(const struct sl_packing_job *job)
{
    struct sl_resource down = {0, 0, 0};
    for (int32_t c = 0; c < job->request->component_count; c++) {
        struct sl_resource need = job->needs[c];
        down = sl_resource_sum(down, sl_resource_product(need, job->down[c]));
    }
    struct sl_resource largest = {0, 0, 0};
    const struct sl_packing_plan *current = job->request->current;
    for (int32_t k = 0; k < current->container_count; k++) {
        const struct sl_packing_container *container = &current->containers[k];
        largest.cpu_nano = greater(largest.cpu_nano, sl_cpu_nano(container->cpu));
        largest.ram_bytes = greater(largest.ram_bytes, container->ram_bytes);
        largest.disk_bytes = greater(largest.disk_bytes, container->disk_bytes);
    }
    return least_containers(sl_resource_difference(added_need(job), down), largest);
}

/* Instances with this need that the room holds, at most `most`. */
static int64_t
held(struct sl_resource need, struct sl_resource room, int64_t most)
{
    for (int dimension = SL_PACKING_CPU; dimension <= SL_PACKING_DISK; dimension++) {
        int64_t each = sl_packing_amount(need, dimension);
        int64_t there = sl_packing_amount(room, dimension);
        if (there < each) {
            return 0;
        }
        if (each > 0 && there / each < most) {
            most = there / each;
        }
    }
    return most;
}

/* New containers that the total of the needs asks for when every other one is filled to the brim.
 */
static int64_t
least_by_volume(const struct sl_packing_job *job, const struct sl_packing_builder *builder)
{
    struct sl_resource there = {0, 0, 0};
    for (size_t p = 0; p < builder->slots.count; p++) {
        struct sl_resource room = sl_packing_room(&builder->limits, builder->slots.items[p].used);
        there.cpu_nano = sl_sum(there.cpu_nano, greater(room.cpu_nano, 0));
        there.ram_bytes = sl_sum(there.ram_bytes, greater(room.ram_bytes, 0));
        there.disk_bytes = sl_sum(there.disk_bytes, greater(room.disk_bytes, 0));
    }
    struct sl_resource empty = sl_packing_room(&builder->limits, (struct sl_resource){0, 0, 0});
    return least_containers(sl_resource_difference(added_need(job), there), empty);
}

static bool
needs_are_equal(struct sl_resource a, struct sl_resource b)
{
    return a.cpu_nano == b.cpu_nano && a.ram_bytes == b.ram_bytes && a.disk_bytes == b.disk_bytes;
}

/* New containers that the growing components with exactly this need ask for on their own. */
static int64_t
least_by_pieces(const struct sl_packing_job *job, const struct sl_packing_builder *builder,
                struct sl_resource need)
{
    int64_t pieces = 0;
    for (int32_t c = 0; c < job->request->component_count; c++) {
        struct sl_resource other = job->needs[c];
        pieces += needs_are_equal(need, other) ? job->up[c] : 0;
    }
    struct sl_resource empty = sl_packing_room(&builder->limits, (struct sl_resource){0, 0, 0});
    int64_t each = held(need, empty, pieces);
    for (size_t p = 0; p < builder->slots.count && pieces > 0; p++) {
        struct sl_resource room = sl_packing_room(&builder->limits, builder->slots.items[p].used);
        pieces -= held(need, room, pieces);
    }
    return pieces > 0 && each > 0 ? divide_up(pieces, each) : 0;
}

/* Growing components whose needs are looked at one by one; more would cost more than they skip. */
enum { PIECES_MAX = 16 };

/* A number of new containers below which no attempt can succeed. */
static int64_t
least_new(const struct sl_packing_job *job, const struct sl_packing_builder *builder)
{
    int64_t least = least_by_volume(job, builder);
    int32_t looked_at = 0;
    for (int32_t c = 0; c < job->request->component_count && looked_at < PIECES_MAX; c++) {
        if (job->up[c] > 0) {
            struct sl_resource need = job->needs[c];
            least = greater(least, least_by_pieces(job, builder, need));
            looked_at++;
        }
    }
    return least;
}

/*
 * Places what comes into the containers of the index, in turn from the first, until something fits
 * nowhere. `places` gets the positions. Returns how many instances have one.
 */
static int64_t
attempt(const struct sl_packing_job *job, struct sl_fit_index *index, int32_t *places)
{
    int32_t turn = 0;
    int64_t at = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        struct sl_resource need = job->needs[component];
        for (int32_t j = 0; j < job->up[component]; j++) {
            int32_t position = sl_fit_index_find_cyclic(index, turn, need);
            if (position < 0) {
                return at;
            }
            places[at++] = position;
            struct sl_fit_node leaf = index->leaves[position];
            sl_fit_index_set(index, position, sl_fit_node_less(leaf, need));
            turn = position + 1 == index->count ? 0 : position + 1;
        }
    }
    return at;
}

/* Gives the containers the room back that an attempt took. */
static void
undo(const struct sl_packing_builder *builder, struct sl_fit_index *index, const int32_t *places,
     int64_t count)
{
    struct sl_resource none = {0, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        int32_t position = places[i];
        bool is_there = position < (int32_t)builder->slots.count;
        const struct sl_packing_slot *slot = is_there ? &builder->slots.items[position] : NULL;
        sl_fit_index_set(index, position,
                         sl_fit_node_of(&builder->limits, is_there ? slot->used : none,
                                        is_there ? slot->count : 0));
    }
}

int
sl_packing_compliant_repack(const struct sl_packing_job *job, struct sl_packing_builder *builder)
{
    int64_t coming = 0;
    for (int32_t c = 0; c < job->request->component_count; c++) {
        coming += job->up[c];
    }
    if (coming == 0) {
        return 0;
    }
    int32_t *places = sl_alloc((size_t)coming * sizeof(*places));
    int64_t added = greater(estimate(job), least_new(job, builder));
    /* More empty containers than instances that come change nothing: the turn never gets there. */
    added = added > coming ? coming : added;
    struct sl_fit_node empty = sl_fit_node_of(&builder->limits, (struct sl_resource){0, 0, 0}, 0);
    struct sl_fit_index index;
    sl_packing_index_builder(builder, &index);
    for (int64_t i = 0; i < added; i++) {
        sl_fit_index_append(&index, empty);
    }
    int64_t placed = attempt(job, &index, places);
    while (placed < coming) {
        /* With an empty container for each instance that comes, none is left over. */
        sl_assert(added < coming);
        undo(builder, &index, places, placed);
        sl_fit_index_append(&index, empty);
        added++;
        placed = attempt(job, &index, places);
    }
    sl_fit_index_destroy(&index);

    for (int64_t i = 0; i < added; i++) {
        sl_packing_builder_open(builder, sl_packing_builder_next_id(builder));
    }
    int32_t at = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        for (int32_t j = 0; j < job->up[component]; j++) {
            sl_packing_builder_put(builder, places[at++], component);
        }
    }
    sl_free(places);
    return 0;
}
