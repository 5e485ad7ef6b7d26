/* The supervisors of the cluster: who is there, by the state manager's word, and who is alive, by
 * the resource manager's. */
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/master_priv.h"

struct sl__master_node *
sl__master_node_find(const struct sl_master *self, const char *id)
{
    return sl_map_bytes_get_str(&self->nodes, id);
}

bool
sl__master_node_is_registered(const struct sl_master *self, const char *id)
{
    return sl_resource_manager_instance(self->resources, id) != 0;
}

static void
node_seen(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_node *node = ctx;
    node->is_present = status == 0;
    if (status != 0) {
        node->gone_ms = sl_loop_now_ms(node->master->loop);
        return;
    }
    sl_arena_reset(&node->arena);
    node->has_info =
        sl_supervisor_node_decode(result->value, result->size, &node->arena, &node->info) == 0;
    if (!node->has_info) {
        sl_log_warn("cluster", "supervisor %s: %s", node->id, sl_err_last()->msg);
    }
    sl__master_events_run(node->master);
}

static struct sl__master_node *
node_add(struct sl_master *self, const char *id)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl__master_node *node = sl_calloc(1, sizeof(*node));
    node->master = self;
    node->id = sl_strdup(id);
    node->seen_ms = sl_loop_now_ms(self->loop);
    sl_arena_create(&node->arena, 0, 1024 * 1024);
    sl_map_bytes_put_str(&self->nodes, id, node);
    node->watch =
        sl_state_watch_new(self->options.store, SL_STATE_GET,
                           sl_layout_path(path, SL_LAYOUT_SUPERVISOR, id), node_seen, node);
    return node;
}

static void
node_free(struct sl__master_node *node)
{
    sl_state_watch_free(node->watch);
    sl_arena_destroy(&node->arena);
    sl_free(node->id);
    sl_free(node);
}

static void
nodes_seen(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_master *self = ctx;
    if (status != 0 && status != SL_ENOTFOUND) {
        return;
    }
    self->has_nodes = true;
    for (size_t i = 0; status == 0 && i < result->child_count; i++) {
        if (sl__master_node_find(self, result->children[i]) == NULL) {
            node_add(self, result->children[i]);
        }
    }
    sl__master_events_run(self);
}

void
sl__master_nodes_start(struct sl_master *self)
{
    self->nodes_watch =
        sl_state_watch_new(self->options.store, SL_STATE_CHILDREN,
                           sl_layout_folder(SL_LAYOUT_SUPERVISOR), nodes_seen, self);
}

void
sl__master_nodes_stop(struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    if (self->nodes_watch != NULL) {
        sl_state_watch_free(self->nodes_watch);
        self->nodes_watch = NULL;
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        node_free(entry->value);
    }
    sl_map_bytes_clear(&self->nodes);
    self->has_nodes = false;
}

/* A slot of some plan is there. */
static bool
is_named(const struct sl_master *self, const char *id)
{
    struct sl_map_bytes_entry *entry;
    size_t size = strlen(id);
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->slots, &at)) != NULL;) {
        if (strncmp(entry->key, id, size) == 0 && entry->key[size] == ':' &&
            strchr(entry->key + size + 1, ':') == NULL) {
            return true;
        }
    }
    return false;
}

void
sl__master_nodes_look(struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        struct sl__master_node *node = entry->value;
        if (sl__master_node_is_registered(self, node->id)) {
            node->seen_ms = sl_loop_now_ms(self->loop);
        } else if (!node->is_present && sl__master_node_is_dead(self, node->id) &&
                   !is_named(self, node->id)) {
            sl_map_bytes_remove_str(&self->nodes, node->id);
            node_free(node);
        }
    }
}

bool
sl__master_node_is_dead(struct sl_master *self, const char *id)
{
    if (sl__master_node_is_registered(self, id) || !self->has_nodes) {
        return false;
    }
    struct sl__master_node *node = sl__master_node_find(self, id);
    uint64_t now = sl_loop_now_ms(self->loop);
    if (node == NULL) {
        /* A plan names it; a new master has never seen it. */
        return now - self->term_ms > SL__MASTER_GRACE_MS;
    }
    uint64_t since = node->seen_ms > self->term_ms ? node->seen_ms : self->term_ms;
    if (!node->is_present) {
        return now - self->term_ms > SL__MASTER_GRACE_MS;
    }
    return now - since > self->options.supervisor_timeout_ms;
}

bool
sl__master_nodes_are_ready(const struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    if (!self->has_nodes) {
        return false;
    }
    if (sl_loop_now_ms(self->loop) - self->term_ms > SL__MASTER_GRACE_MS) {
        return true;
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        const struct sl__master_node *node = entry->value;
        if (!sl__master_node_is_registered(self, node->id) || !node->has_info) {
            return false;
        }
    }
    return self->nodes.count > 0;
}

bool
sl__master_nodes_are_silent(const struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    uint64_t now = sl_loop_now_ms(self->loop);
    size_t known = 0;
    size_t silent = 0;
    size_t doubtful = 0;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        const struct sl__master_node *node = entry->value;
        bool is_silent = !sl__master_node_is_registered(self, node->id);
        known++;
        silent += is_silent;
        /* The state manager knows better who is dead, but its word needs time, too. */
        doubtful += is_silent &&
                    (node->is_present || now - node->gone_ms < self->options.supervisor_timeout_ms);
    }
    return silent > 1 && 2 * silent > known && doubtful > 0;
}
