#include "state/watch_table.h"

#include "base/alloc.h"

void
sl_watch_table_destroy(struct sl_watch_table *self)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->paths, &at)) != NULL;) {
        struct sl_watch_entries *entries = entry->value;
        sl_vec_destroy(entries);
        sl_free(entries);
    }
    sl_map_bytes_destroy(&self->paths);
}

void
sl_watch_table_add(struct sl_watch_table *self, const char *path, bool is_children, uint64_t id,
                   void *client)
{
    struct sl_watch_entries *entries = sl_map_bytes_get_str(&self->paths, path);
    if (entries == NULL) {
        entries = sl_calloc(1, sizeof(*entries));
        sl_map_bytes_put_str(&self->paths, path, entries);
    }
    struct sl_watch_entry entry = {id, client, is_children};
    sl_vec_push(entries, entry);
}

static bool
is_fired(const struct sl_watch_entry *entry, enum sl_tree_change change)
{
    switch (change) {
    case SL_TREE_CHANGED:
        return !entry->is_children;
    case SL_TREE_CHILDREN:
        return entry->is_children;
    default:
        return true;
    }
}

/* Forgets a path without watches. */
static void
drop_if_empty(struct sl_watch_table *self, const char *path, struct sl_watch_entries *entries)
{
    if (entries->count == 0) {
        sl_map_bytes_remove_str(&self->paths, path);
        sl_vec_destroy(entries);
        sl_free(entries);
    }
}

void
sl_watch_table_fire(struct sl_watch_table *self, const char *path, enum sl_tree_change change,
                    struct sl_watch_entries *fired)
{
    struct sl_watch_entries *entries = sl_map_bytes_get_str(&self->paths, path);
    for (size_t i = 0; entries != NULL && i < entries->count;) {
        if (is_fired(&entries->items[i], change)) {
            sl_vec_push(fired, entries->items[i]);
            sl_vec_remove(entries, i);
        } else {
            i++;
        }
    }
    if (entries != NULL) {
        drop_if_empty(self, path, entries);
    }
}

void
sl_watch_table_take(struct sl_watch_table *self, const void *client, struct sl_watch_entries *fired)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->paths, &at)) != NULL;) {
        struct sl_watch_entries *entries = entry->value;
        for (size_t i = 0; i < entries->count;) {
            if (client != NULL && entries->items[i].client != client) {
                i++;
                continue;
            }
            if (fired != NULL) {
                sl_vec_push(fired, entries->items[i]);
            }
            sl_vec_remove(entries, i);
        }
        drop_if_empty(self, entry->key, entries);
    }
}
