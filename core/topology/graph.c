/*
 * Strongly connected components by Tarjan (Depth-first search and linear graph algorithms, 1972),
 * with an explicit stack instead of recursion, so that a chain of any length fits. His numbering
 * counts from the sinks; ours is turned round to count from the sources.
 */
#include "topology/graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "topology/name_index.h"

enum {
    /* A vertex the search has not come to. */
    UNSEEN = UINT32_MAX,
};

struct sl_topology_graph {
    const struct sl_topology *topology;
    uint32_t count;
    /* Readers of vertex v: readers[first[v]] .. readers[first[v + 1] - 1]. */
    uint32_t *first;
    uint32_t *readers;
    struct sl_topology_place *places;
    /* Scratch of the breadth-first searches: how a vertex was reached, and the queue. */
    uint32_t *parent;
    uint32_t *queue;
};

/* State of Tarjan's search. */
struct search {
    const struct sl_topology_graph *graph;
    uint32_t *order;
    uint32_t *low;
    bool *is_open;
    /* Vertices whose component is not complete yet. */
    uint32_t *open;
    uint32_t open_count;
    /* The path from the root of the search, and the next edge to follow of each vertex on it. */
    uint32_t *path;
    uint32_t path_count;
    uint32_t *next_edge;
    uint32_t seen_count;
    uint32_t scc_count;
};

static void
graph_link(struct sl_topology_graph *graph)
{
    const struct sl_topology *topology = graph->topology;
    struct sl__name_index index;
    sl__name_index_create(&index, topology);
    uint32_t input_count = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        input_count += topology->components[i].input_count;
    }
    int64_t *sources = sl_calloc((size_t)input_count + 1, sizeof(*sources));
    uint32_t at = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        for (uint32_t j = 0; j < topology->components[i].input_count; j++, at++) {
            sources[at] = sl__name_index_find(&index, topology->components[i].inputs[j].source);
            if (sources[at] >= 0) {
                graph->first[sources[at] + 1]++;
            }
        }
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->first[i + 1] += graph->first[i];
    }
    graph->readers = sl_calloc((size_t)input_count + 1, sizeof(*graph->readers));
    uint32_t *fill = sl_calloc((size_t)graph->count + 1, sizeof(*fill));
    memcpy(fill, graph->first, graph->count * sizeof(*fill));
    at = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        for (uint32_t j = 0; j < topology->components[i].input_count; j++, at++) {
            if (sources[at] >= 0) {
                graph->readers[fill[sources[at]]++] = i;
            }
        }
    }
    sl_free(fill);
    sl_free(sources);
    sl__name_index_destroy(&index);
}

static void
search_enter(struct search *s, uint32_t vertex)
{
    s->order[vertex] = s->low[vertex] = s->seen_count++;
    s->next_edge[vertex] = s->graph->first[vertex];
    s->is_open[vertex] = true;
    s->open[s->open_count++] = vertex;
    s->path[s->path_count++] = vertex;
}

/* Leaves the vertex at the end of the path; when it is a root, its component is complete. */
static void
search_leave(struct search *s)
{
    uint32_t vertex = s->path[--s->path_count];
    if (s->low[vertex] == s->order[vertex]) {
        uint32_t member;
        uint32_t size = 0;
        do {
            member = s->open[--s->open_count];
            s->is_open[member] = false;
            s->graph->places[member].scc = (int32_t)s->scc_count;
            size++;
        } while (member != vertex);
        if (size > 1) {
            for (uint32_t i = 0; i < size; i++) {
                s->graph->places[s->open[s->open_count + i]].is_cyclic = true;
            }
        }
        s->scc_count++;
    }
    if (s->path_count > 0) {
        uint32_t above = s->path[s->path_count - 1];
        if (s->low[vertex] < s->low[above]) {
            s->low[above] = s->low[vertex];
        }
    }
}

static void
search_from(struct search *s, uint32_t root)
{
    search_enter(s, root);
    while (s->path_count > 0) {
        uint32_t vertex = s->path[s->path_count - 1];
        if (s->next_edge[vertex] == s->graph->first[vertex + 1]) {
            search_leave(s);
            continue;
        }
        uint32_t reader = s->graph->readers[s->next_edge[vertex]++];
        if (reader == vertex) {
            s->graph->places[vertex].is_cyclic = true;
        }
        if (s->order[reader] == UNSEEN) {
            search_enter(s, reader);
        } else if (s->is_open[reader] && s->order[reader] < s->low[vertex]) {
            s->low[vertex] = s->order[reader];
        }
    }
}

/* Numbers the strongly connected components; returns how many there are. */
static uint32_t
graph_search(struct sl_topology_graph *graph)
{
    size_t count = (size_t)graph->count + 1;
    struct search s = {
        .graph = graph,
        .order = sl_calloc(count, sizeof(uint32_t)),
        .low = sl_calloc(count, sizeof(uint32_t)),
        .is_open = sl_calloc(count, sizeof(bool)),
        .open = sl_calloc(count, sizeof(uint32_t)),
        .path = sl_calloc(count, sizeof(uint32_t)),
        .next_edge = sl_calloc(count, sizeof(uint32_t)),
    };
    for (uint32_t i = 0; i < graph->count; i++) {
        s.order[i] = UNSEEN;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        if (s.order[i] == UNSEEN) {
            search_from(&s, i);
        }
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->places[i].scc = (int32_t)s.scc_count - 1 - graph->places[i].scc;
    }
    sl_free(s.order);
    sl_free(s.low);
    sl_free(s.is_open);
    sl_free(s.open);
    sl_free(s.path);
    sl_free(s.next_edge);
    return s.scc_count;
}

/* Ranks: longest path over the strongly connected components, which are numbered from the sources.
 */
static void
graph_rank(struct sl_topology_graph *graph, uint32_t scc_count)
{
    int32_t *rank = sl_calloc((size_t)scc_count + 1, sizeof(*rank));
    uint32_t *by_scc = sl_calloc((size_t)graph->count + 1, sizeof(*by_scc));
    uint32_t *start = sl_calloc((size_t)scc_count + 1, sizeof(*start));
    for (uint32_t i = 0; i < graph->count; i++) {
        start[graph->places[i].scc + 1]++;
    }
    for (uint32_t i = 0; i < scc_count; i++) {
        start[i + 1] += start[i];
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        by_scc[start[graph->places[i].scc]++] = i;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        uint32_t vertex = by_scc[i];
        int32_t scc = graph->places[vertex].scc;
        for (uint32_t e = graph->first[vertex]; e < graph->first[vertex + 1]; e++) {
            int32_t target = graph->places[graph->readers[e]].scc;
            sl_assert_le(scc, target);
            if (target != scc && rank[target] < rank[scc] + 1) {
                rank[target] = rank[scc] + 1;
            }
        }
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->places[i].rank = rank[graph->places[i].scc];
    }
    sl_free(rank);
    sl_free(by_scc);
    sl_free(start);
}

static void
graph_reach(struct sl_topology_graph *graph)
{
    uint32_t tail = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        if (graph->topology->components[i].kind == SL_COMPONENT_SPOUT) {
            graph->places[i].is_reachable = true;
            graph->queue[tail++] = i;
        }
    }
    for (uint32_t head = 0; head < tail; head++) {
        uint32_t vertex = graph->queue[head];
        for (uint32_t e = graph->first[vertex]; e < graph->first[vertex + 1]; e++) {
            uint32_t reader = graph->readers[e];
            if (!graph->places[reader].is_reachable) {
                graph->places[reader].is_reachable = true;
                graph->queue[tail++] = reader;
            }
        }
    }
}

struct sl_topology_graph *
sl_topology_graph_new(const struct sl_topology *topology)
{
    struct sl_topology_graph *graph = sl_calloc(1, sizeof(*graph));
    size_t count = (size_t)topology->component_count + 1;
    graph->topology = topology;
    graph->count = topology->component_count;
    graph->first = sl_calloc(count, sizeof(*graph->first));
    graph->places = sl_calloc(count, sizeof(*graph->places));
    graph->parent = sl_calloc(count, sizeof(*graph->parent));
    graph->queue = sl_calloc(count, sizeof(*graph->queue));
    for (uint32_t i = 0; i < graph->count; i++) {
        graph->parent[i] = UNSEEN;
    }
    graph_link(graph);
    graph_rank(graph, graph_search(graph));
    graph_reach(graph);
    return graph;
}

void
sl_topology_graph_free(struct sl_topology_graph *graph)
{
    if (graph == NULL) {
        return;
    }
    sl_free(graph->first);
    sl_free(graph->readers);
    sl_free(graph->places);
    sl_free(graph->parent);
    sl_free(graph->queue);
    sl_free(graph);
}

const struct sl_topology_place *
sl_topology_graph_places(const struct sl_topology_graph *graph)
{
    return graph->places;
}

/*
 * Breadth-first search from `start` inside its strongly connected component. Returns the vertex
 * that closes a shortest cycle; the parent links lead from it back to `start`.
 */
static uint32_t
cycle_search(struct sl_topology_graph *graph, uint32_t start, uint32_t *visited_count)
{
    uint32_t tail = 0;
    graph->queue[tail++] = start;
    for (uint32_t head = 0; head < tail; head++) {
        uint32_t vertex = graph->queue[head];
        for (uint32_t e = graph->first[vertex]; e < graph->first[vertex + 1]; e++) {
            uint32_t reader = graph->readers[e];
            if (reader == start) {
                *visited_count = tail;
                return vertex;
            }
            if (graph->parent[reader] == UNSEEN &&
                graph->places[reader].scc == graph->places[start].scc) {
                graph->parent[reader] = vertex;
                graph->queue[tail++] = reader;
            }
        }
    }
    sl_unreachable();
}

uint32_t
sl_topology_graph_cycle(struct sl_topology_graph *graph, uint32_t component, uint32_t *members,
                        uint32_t limit)
{
    sl_assert_lt(component, graph->count);
    sl_assert(graph->places[component].is_cyclic);
    uint32_t visited_count = 0;
    uint32_t last = cycle_search(graph, component, &visited_count);
    uint32_t length = 1;
    for (uint32_t v = last; v != component; v = graph->parent[v]) {
        length++;
    }
    uint32_t at = length - 1;
    for (uint32_t v = last; v != component; v = graph->parent[v], at--) {
        if (at < limit) {
            members[at] = v;
        }
    }
    if (limit > 0) {
        members[0] = component;
    }
    /* The links are as new for the next search; only those of this one were touched. */
    for (uint32_t i = 0; i < visited_count; i++) {
        graph->parent[graph->queue[i]] = UNSEEN;
    }
    return length;
}
