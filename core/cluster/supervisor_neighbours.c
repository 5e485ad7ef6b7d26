#include "cluster/supervisor_neighbours.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "state/layout.h"

/* A port that both have, or 0. */
static uint32_t
shared_port(const struct sl_supervisor_node *a, const struct sl_supervisor_node *b)
{
    for (size_t i = 0; i < a->port_count; i++) {
        for (size_t k = 0; k < b->port_count; k++) {
            if (a->ports[i] == b->ports[k]) {
                return a->ports[i];
            }
        }
    }
    return 0;
}

static void
check(struct sl_supervisor_neighbours *self, const struct sl_supervisor_node *other)
{
    const struct sl_supervisor_node *own = &self->own;
    bool is_alive = strcmp(other->boot_id, own->boot_id) == 0 &&
                    self->process_start((int64_t)other->pid) == other->start_time;
    uint32_t port = strcmp(other->host, own->host) == 0 ? shared_port(own, other) : 0;
    if (port != 0 && is_alive) {
        snprintf(self->conflict, sizeof(self->conflict),
                 "port %u of host %.64s is a slot of supervisor %s already (process %llu)", port,
                 own->host, other->id, (unsigned long long)other->pid);
    }
}

static void
end(struct sl_supervisor_neighbours *self)
{
    for (size_t i = 0; i < self->count; i++) {
        sl_free(self->names[i]);
    }
    sl_free(self->names);
    self->names = NULL;
    self->count = 0;
    self->at = 0;
}

static void look_at_next(struct sl_supervisor_neighbours *self);

static void
node_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_supervisor_neighbours *self = ctx;
    struct sl_arena arena;
    struct sl_supervisor_node node;
    sl_arena_create(&arena, 0, 256 * 1024);
    if (status == 0 && result->stat.created_zxid < self->created_zxid &&
        sl_supervisor_node_decode(result->value, result->size, &arena, &node) == 0) {
        check(self, &node);
    }
    sl_arena_destroy(&arena);
    look_at_next(self);
}

static void
look_at_next(struct sl_supervisor_neighbours *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    self->ticket = 0;
    while (self->at < self->count && strcmp(self->names[self->at], self->own.id) == 0) {
        self->at++;
    }
    if (self->at == self->count || self->conflict[0] != '\0') {
        end(self);
        self->done(self->ctx, self->conflict);
        return;
    }
    sl_layout_path(path, SL_LAYOUT_SUPERVISOR, self->names[self->at++]);
    self->ticket = sl_state_get(self->store, path, node_read, self);
}

static void
own_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_supervisor_neighbours *self = ctx;
    self->created_zxid = status == 0 ? result->stat.created_zxid : 0;
    look_at_next(self);
}

static void
names_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_supervisor_neighbours *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    self->count = status == 0 ? result->child_count : 0;
    self->names = sl_calloc(self->count + 1, sizeof(*self->names));
    for (size_t i = 0; i < self->count; i++) {
        self->names[i] = sl_strdup(result->children[i]);
    }
    self->ticket = sl_state_get(
        self->store, sl_layout_path(path, SL_LAYOUT_SUPERVISOR, self->own.id), own_read, self);
}

void
sl_supervisor_neighbours_look(struct sl_supervisor_neighbours *self)
{
    self->conflict[0] = '\0';
    self->ticket =
        sl_state_children(self->store, sl_layout_folder(SL_LAYOUT_SUPERVISOR), names_read, self);
}

void
sl_supervisor_neighbours_stop(struct sl_supervisor_neighbours *self)
{
    sl_state_cancel(self->store, self->ticket);
    end(self);
}
