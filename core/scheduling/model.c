#include "scheduling/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

static int
compare_u32(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static int
compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct id_ref {
    uint32_t id;
    uint32_t component;
};

static int
compare_id_ref(const void *a, const void *b)
{
    return compare_u32(&((const struct id_ref *)a)->id, &((const struct id_ref *)b)->id);
}

static int
compare_sup(const void *a, const void *b)
{
    return strcmp(((const struct sl_sched_sup *)a)->id, ((const struct sl_sched_sup *)b)->id);
}

static int
compare_old(const void *a, const void *b)
{
    const struct sl_sched_old *left = a;
    const struct sl_sched_old *right = b;
    int order = strcmp(left->supervisor, right->supervisor);
    return order != 0 ? order : compare_u32(&left->port, &right->port);
}

static int
check_range(const char *what, uint32_t first, uint32_t count, uint32_t total)
{
    if (first > total || count > total - first) {
        return sl_err_set(SL_EINVAL, "%s: range %u+%u is outside of %u", what, first, count, total);
    }
    return 0;
}

/* Everything that is indexed below is checked here once. */
static int
check_shape(const struct sl_sched_request *r)
{
    if (r->mode < 0 || r->mode >= SL_SCHED_MODE_COUNT) {
        return sl_err_set(SL_EINVAL, "mode %d does not exist", r->mode);
    }
    if (r->supervisor_count >= SL_SCHED_NONE || r->task_count >= SL_SCHED_NONE) {
        return sl_err_set(SL_ELIMIT, "the request is too large");
    }
    int rc = 0;
    /* Wide enough for components that share their tasks, which shows below. */
    uint64_t tasks = 0;
    for (uint32_t i = 0; rc == 0 && i < r->component_count; i++) {
        const struct sl_sched_component *c = &r->components[i];
        if (c->name == NULL || c->kind < SL_SCHED_SPOUT || c->kind > SL_SCHED_MASTER) {
            return sl_err_set(SL_EINVAL, "component %u has no name or no kind", i);
        }
        rc = check_range(c->name, c->first_input, c->input_count, r->input_count);
        if (rc == 0) {
            rc = check_range(c->name, c->first_task, c->task_count, r->task_count);
        }
        if (rc == 0 && c->kind == SL_SCHED_MASTER && c->task_count != 1) {
            rc = sl_err_set(SL_EINVAL, "%s must have one task, it has %u", c->name, c->task_count);
        }
        if (rc == 0) {
            tasks += c->task_count;
        }
    }
    if (rc == 0 && tasks != r->task_count) {
        return sl_err_set(SL_EINVAL, "the components share their tasks");
    }
    for (uint32_t i = 0; rc == 0 && i < r->input_count; i++) {
        if (r->inputs[i] >= r->component_count) {
            return sl_err_set(SL_EINVAL, "input %u names no component", i);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < r->supervisor_count; i++) {
        const struct sl_sched_supervisor *s = &r->supervisors[i];
        if (s->id == NULL || s->host == NULL || isnan(s->cpu) || isnan(s->ram)) {
            return sl_err_set(SL_EINVAL, "supervisor %u has no id, no host or no number", i);
        }
        rc = check_range(s->id, s->first_port, s->port_count, r->port_count);
        if (rc == 0) {
            rc = check_range(s->id, s->first_used, s->used_count, r->used_count);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < r->user_worker_count; i++) {
        const struct sl_sched_user_worker *u = &r->user_workers[i];
        rc = check_range("user worker", u->first_share, u->share_count, r->share_count);
    }
    for (uint32_t i = 0; rc == 0 && i < r->share_count; i++) {
        if (r->shares[i].component >= r->component_count) {
            return sl_err_set(SL_EINVAL, "share %u names no component", i);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < r->on_different_nodes_count; i++) {
        if (r->on_different_nodes[i] >= r->component_count) {
            return sl_err_set(SL_EINVAL, "on_different_nodes %u names no component", i);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < r->previous_count; i++) {
        const struct sl_sched_previous *p = &r->previous[i];
        if (p->supervisor == NULL || p->host == NULL) {
            return sl_err_set(SL_EINVAL, "previous worker %u has no supervisor or host", i);
        }
        rc = check_range(p->supervisor, p->first_task, p->task_count, r->previous_task_count);
    }
    for (uint32_t i = 0; rc == 0 && i < r->container_count; i++) {
        const struct sl_sched_container *c = &r->containers[i];
        rc = check_range("container", c->first_task, c->task_count, r->container_task_count);
    }
    return rc;
}

/* Task ids in order, and which component each belongs to. */
static int
create_tasks(struct sl_sched_model *m)
{
    const struct sl_sched_request *r = m->request;
    uint32_t n = r->task_count;
    struct id_ref *refs = sl_arena_calloc(&m->arena, n + 1, sizeof(*refs));
    uint32_t at = 0;
    m->master = SL_SCHED_NONE;
    for (uint32_t c = 0; c < r->component_count; c++) {
        const struct sl_sched_component *comp = &r->components[c];
        for (uint32_t i = 0; i < comp->task_count; i++) {
            refs[at].id = r->tasks[comp->first_task + i];
            refs[at++].component = c;
        }
    }
    qsort(refs, n, sizeof(*refs), compare_id_ref);
    m->task_count = n;
    m->task_ids = sl_arena_calloc(&m->arena, n + 1, sizeof(uint32_t));
    m->task_component = sl_arena_calloc(&m->arena, n + 1, sizeof(uint32_t));
    m->task_old = sl_arena_calloc(&m->arena, n + 1, sizeof(uint32_t));
    m->is_dead = sl_arena_calloc(&m->arena, n + 1, sizeof(bool));
    m->is_unstopped = sl_arena_calloc(&m->arena, n + 1, sizeof(bool));
    for (uint32_t t = 0; t < n; t++) {
        if (refs[t].id == 0 || (t > 0 && refs[t].id == refs[t - 1].id)) {
            return sl_err_set(SL_EINVAL, "task %u of %s: the id is 0 or given twice", refs[t].id,
                              r->components[refs[t].component].name);
        }
        m->task_ids[t] = refs[t].id;
        m->task_component[t] = refs[t].component;
        m->task_old[t] = SL_SCHED_NONE;
        if (r->components[refs[t].component].kind == SL_SCHED_MASTER) {
            if (m->master != SL_SCHED_NONE) {
                return sl_err_set(SL_EINVAL, "there are two topology masters");
            }
            m->master = t;
        }
    }
    return 0;
}

/* Component -> sorted tasks, by counting. */
static void
create_component_tasks(struct sl_sched_model *m)
{
    uint32_t n = m->request->component_count;
    m->component_count = n;
    m->comp_first = sl_arena_calloc(&m->arena, n + 2, sizeof(uint32_t));
    m->comp_tasks = sl_arena_calloc(&m->arena, m->task_count + 1, sizeof(uint32_t));
    uint32_t *at = sl_arena_calloc(&m->arena, n + 1, sizeof(uint32_t));
    for (uint32_t t = 0; t < m->task_count; t++) {
        m->comp_first[m->task_component[t] + 1]++;
    }
    for (uint32_t c = 0; c < n; c++) {
        m->comp_first[c + 1] += m->comp_first[c];
        at[c] = m->comp_first[c];
    }
    for (uint32_t t = 0; t < m->task_count; t++) {
        m->comp_tasks[at[m->task_component[t]]++] = t;
    }
}

/*
 * Who a component likes to be near: a bolt its inputs, a spout the bolts that read it. Doubles are
 * dropped.
 */
static void
create_relations(struct sl_sched_model *m)
{
    const struct sl_sched_request *r = m->request;
    uint32_t n = r->component_count;
    uint32_t *count = sl_arena_calloc(&m->arena, n + 1, sizeof(uint32_t));
    for (uint32_t c = 0; c < n; c++) {
        const struct sl_sched_component *comp = &r->components[c];
        for (uint32_t i = 0; i < comp->input_count; i++) {
            uint32_t input = r->inputs[comp->first_input + i];
            count[c]++;
            if (r->components[input].kind == SL_SCHED_SPOUT) {
                count[input]++;
            }
        }
    }
    m->rel_first = sl_arena_calloc(&m->arena, n + 1, sizeof(uint32_t));
    for (uint32_t c = 0; c < n; c++) {
        m->rel_first[c + 1] = m->rel_first[c] + count[c];
        count[c] = m->rel_first[c];
    }
    m->rel = sl_arena_calloc(&m->arena, m->rel_first[n] + 1, sizeof(uint32_t));
    for (uint32_t c = 0; c < n; c++) {
        const struct sl_sched_component *comp = &r->components[c];
        for (uint32_t i = 0; i < comp->input_count; i++) {
            uint32_t input = r->inputs[comp->first_input + i];
            m->rel[count[c]++] = input;
            if (r->components[input].kind == SL_SCHED_SPOUT) {
                m->rel[count[input]++] = c;
            }
        }
    }
    /* Sort and pack each list; rel_first moves along with the packed array. */
    uint32_t packed = 0;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t first = m->rel_first[c];
        uint32_t end = count[c];
        qsort(&m->rel[first], end - first, sizeof(uint32_t), compare_u32);
        m->rel_first[c] = packed;
        for (uint32_t i = first; i < end; i++) {
            if (i == first || m->rel[i] != m->rel[i - 1]) {
                m->rel[packed++] = m->rel[i];
            }
        }
    }
    m->rel_first[n] = packed;
}

static int
create_sup(struct sl_sched_model *m, struct sl_sched_sup *sup, const struct sl_sched_supervisor *s)
{
    const struct sl_sched_request *r = m->request;
    sup->id = s->id;
    sup->host = s->host;
    sup->cpu = s->cpu;
    sup->ram = s->ram;
    sup->is_usable = true;
    sup->port_count = s->port_count;
    sup->free_count = s->port_count;
    sup->ports = sl_arena_calloc(&m->arena, s->port_count + 1, sizeof(uint32_t));
    sup->taken = sl_arena_calloc(&m->arena, s->port_count + 1, sizeof(bool));
    for (uint32_t i = 0; i < s->port_count; i++) {
        sup->ports[i] = r->ports[s->first_port + i];
    }
    qsort(sup->ports, s->port_count, sizeof(uint32_t), compare_u32);
    for (uint32_t i = 1; i < s->port_count; i++) {
        if (sup->ports[i] == sup->ports[i - 1]) {
            return sl_err_set(SL_EINVAL, "supervisor %s: port %u is given twice", s->id,
                              sup->ports[i]);
        }
    }
    for (uint32_t i = 0; i < s->used_count; i++) {
        sl_sched_sup_mark(sup, r->used[s->first_used + i]);
    }
    return 0;
}

static int
create_sups(struct sl_sched_model *m)
{
    const struct sl_sched_request *r = m->request;
    m->sup_count = r->supervisor_count;
    m->sups = sl_arena_calloc(&m->arena, m->sup_count + 1, sizeof(*m->sups));
    for (uint32_t i = 0; i < m->sup_count; i++) {
        int rc = create_sup(m, &m->sups[i], &r->supervisors[i]);
        if (rc != 0) {
            return rc;
        }
    }
    qsort(m->sups, m->sup_count, sizeof(*m->sups), compare_sup);
    for (uint32_t i = 1; i < m->sup_count; i++) {
        if (strcmp(m->sups[i].id, m->sups[i - 1].id) == 0) {
            return sl_err_set(SL_EINVAL, "supervisor %s is given twice", m->sups[i].id);
        }
    }
    return 0;
}

/* Isolation: only the named hosts; a list that matches nothing is refused. */
static int
create_isolation(struct sl_sched_model *m)
{
    const struct sl_sched_request *r = m->request;
    if (r->isolation_count == 0) {
        return 0;
    }
    const char **hosts = sl_arena_calloc(&m->arena, r->isolation_count, sizeof(*hosts));
    memcpy(hosts, r->isolation, r->isolation_count * sizeof(*hosts));
    qsort(hosts, r->isolation_count, sizeof(*hosts), compare_text);
    uint32_t usable = 0;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        struct sl_sched_sup *sup = &m->sups[i];
        sup->is_usable =
            bsearch(&sup->host, hosts, r->isolation_count, sizeof(*hosts), compare_text) != NULL;
        usable += sup->is_usable;
    }
    if (usable == 0) {
        return sl_err_set(SL_EUNSATISFIABLE, "isolation: no supervisor is on %s%s", hosts[0],
                          r->isolation_count > 1 ? " or the other hosts named" : "");
    }
    return 0;
}

/* The previous workers in order, each with its tasks that still exist. */
static int
create_olds(struct sl_sched_model *m)
{
    const struct sl_sched_request *r = m->request;
    m->old_count = r->previous_count;
    m->olds = sl_arena_calloc(&m->arena, m->old_count + 1, sizeof(*m->olds));
    m->old_tasks = sl_arena_calloc(&m->arena, r->previous_task_count + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < m->old_count; i++) {
        const struct sl_sched_previous *p = &r->previous[i];
        m->olds[i] = (struct sl_sched_old){
            .supervisor = p->supervisor,
            .host = p->host,
            .port = p->port,
            .sup = sl_sched_model_sup(m, p->supervisor),
            .first_task = p->first_task,
            .task_count = p->task_count,
            .cpu = p->cpu,
            .ram = p->ram,
        };
    }
    qsort(m->olds, m->old_count, sizeof(*m->olds), compare_old);
    uint32_t at = 0;
    for (uint32_t i = 0; i < m->old_count; i++) {
        struct sl_sched_old *old = &m->olds[i];
        if (i > 0 && compare_old(old, &m->olds[i - 1]) == 0) {
            return sl_err_set(SL_EINVAL, "previous: slot %s:%u is given twice", old->supervisor,
                              old->port);
        }
        uint32_t first = at;
        for (uint32_t k = 0; k < old->task_count; k++) {
            uint32_t id = r->previous_tasks[old->first_task + k];
            uint32_t t = sl_sched_model_task(m, id);
            if (t == SL_SCHED_NONE) {
                continue;
            }
            if (m->task_old[t] != SL_SCHED_NONE) {
                return sl_err_set(SL_EINVAL, "previous: task %u is given twice", id);
            }
            if (at >= r->previous_task_count) {
                return sl_err_set(SL_EINVAL, "previous: workers share their tasks");
            }
            m->task_old[t] = i;
            m->old_tasks[at++] = t;
        }
        old->first_task = first;
        old->task_count = at - first;
        qsort(&m->old_tasks[first], at - first, sizeof(uint32_t), compare_u32);
    }
    return 0;
}

int
sl_sched_model_create(struct sl_sched_model *m, const struct sl_sched_request *request)
{
    memset(m, 0, sizeof(*m));
    m->request = request;
    sl_arena_create(&m->arena, 64 * 1024, 0);
    int rc = check_shape(request);
    if (rc == 0) {
        rc = create_tasks(m);
    }
    if (rc == 0) {
        create_component_tasks(m);
        create_relations(m);
        m->is_spread = sl_arena_calloc(&m->arena, m->component_count + 1, sizeof(bool));
        for (uint32_t i = 0; i < request->on_different_nodes_count; i++) {
            m->is_spread[request->on_different_nodes[i]] = true;
            m->has_spread = true;
        }
        rc = create_sups(m);
    }
    if (rc == 0) {
        rc = create_isolation(m);
    }
    if (rc == 0) {
        rc = create_olds(m);
    }
    return rc;
}

void
sl_sched_model_destroy(struct sl_sched_model *m)
{
    sl_arena_destroy(&m->arena);
}

uint32_t
sl_sched_model_task(const struct sl_sched_model *m, uint32_t id)
{
    uint32_t low = 0;
    uint32_t high = m->task_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (m->task_ids[mid] < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < m->task_count && m->task_ids[low] == id ? low : SL_SCHED_NONE;
}

uint32_t
sl_sched_model_sup(const struct sl_sched_model *m, const char *id)
{
    uint32_t low = 0;
    uint32_t high = m->sup_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (strcmp(m->sups[mid].id, id) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < m->sup_count && strcmp(m->sups[low].id, id) == 0 ? low : SL_SCHED_NONE;
}

bool
sl_sched_model_is_system(const struct sl_sched_model *m, uint32_t component)
{
    int32_t kind = m->request->components[component].kind;
    return kind == SL_SCHED_SYSTEM || kind == SL_SCHED_MASTER;
}

const char *
sl_sched_model_name(const struct sl_sched_model *m, uint32_t component)
{
    return m->request->components[component].name;
}

uint32_t
sl_sched_sup_port(const struct sl_sched_sup *sup, uint32_t port)
{
    const uint32_t *found =
        bsearch(&port, sup->ports, sup->port_count, sizeof(uint32_t), compare_u32);
    return found != NULL ? (uint32_t)(found - sup->ports) : SL_SCHED_NONE;
}

bool
sl_sched_sup_is_free(const struct sl_sched_sup *sup, uint32_t port)
{
    uint32_t at = sl_sched_sup_port(sup, port);
    return at != SL_SCHED_NONE && !sup->taken[at];
}

/* Sums of many doubles may miss by a rounding; a part in 10^9 is no overcommitment. */
static bool
fits(double have, double need)
{
    return have < 0 || need <= 0 || need <= have * (1 + 1e-9) + 1e-9;
}

bool
sl_sched_sup_fits(const struct sl_sched_sup *sup, double cpu, double ram)
{
    return fits(sup->cpu, cpu) && fits(sup->ram, ram);
}

static uint32_t
room(uint32_t ports, double have, double need)
{
    if (have < 0 || need <= 0) {
        return ports;
    }
    double n = floor((have * (1 + 1e-9) + 1e-9) / need);
    return n < (double)ports ? (uint32_t)n : ports;
}

uint32_t
sl_sched_sup_room(const struct sl_sched_sup *sup, double cpu, double ram)
{
    return room(room(sup->free_count, sup->cpu, cpu), sup->ram, ram);
}

static double
minus(double have, double need)
{
    if (have < 0 || need <= 0) {
        return have;
    }
    return need < have ? have - need : 0;
}

static void
take_at(struct sl_sched_sup *sup, uint32_t at, double cpu, double ram)
{
    sl_assert(!sup->taken[at]);
    sup->taken[at] = true;
    sup->free_count--;
    sup->cpu = minus(sup->cpu, cpu);
    sup->ram = minus(sup->ram, ram);
}

int
sl_sched_sup_take(struct sl_sched_sup *sup, uint32_t port, double cpu, double ram)
{
    uint32_t at = sl_sched_sup_port(sup, port);
    if (at == SL_SCHED_NONE) {
        return sl_err_set(SL_ENOTFOUND, "supervisor %s has no port %u", sup->id, port);
    }
    if (sup->taken[at]) {
        return sl_err_set(SL_EEXIST, "port %u of supervisor %s is taken", port, sup->id);
    }
    take_at(sup, at, cpu, ram);
    return 0;
}

uint32_t
sl_sched_sup_take_first(struct sl_sched_sup *sup, double cpu, double ram)
{
    while (sup->taken[sup->cursor]) {
        sup->cursor++;
        sl_assert_lt(sup->cursor, sup->port_count);
    }
    uint32_t at = sup->cursor;
    take_at(sup, at, cpu, ram);
    return sup->ports[at];
}

void
sl_sched_sup_mark(struct sl_sched_sup *sup, uint32_t port)
{
    uint32_t at = sl_sched_sup_port(sup, port);
    if (at != SL_SCHED_NONE && !sup->taken[at]) {
        take_at(sup, at, 0, 0);
    }
}

void
sl_sched_sup_charge(struct sl_sched_sup *sup, double cpu, double ram)
{
    sup->cpu = minus(sup->cpu, cpu);
    sup->ram = minus(sup->ram, ram);
}
