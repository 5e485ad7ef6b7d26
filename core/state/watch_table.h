#pragma once
/* One-shot watches by path, for backends that are made of a tree. */

#include "base/map.h"
#include "base/vec.h"
#include "state/tree.h"

struct sl_watch_entry {
    uint64_t id;
    /* Whoever armed it; means what the backend says. */
    void *client;
    bool is_children;
};

struct sl_watch_entries SL_VEC_BODY(struct sl_watch_entry);

/* Path -> struct sl_watch_entries. Zeroed memory is ready. */
struct sl_watch_table {
    struct sl_map_bytes paths;
};

void sl_watch_table_destroy(struct sl_watch_table *self);
void sl_watch_table_add(struct sl_watch_table *self, const char *path, bool is_children,
                        uint64_t id, void *client);

/*
 * Takes out the watches that a change fires and appends them to fired. A value's watch is fired by
 * creation, change and deletion; a list's by changes of the list, and by the node's own creation
 * and deletion.
 */
void sl_watch_table_fire(struct sl_watch_table *self, const char *path, enum sl_tree_change change,
                         struct sl_watch_entries *fired);

/* Takes out all watches of a client (NULL: of everybody) and appends them to fired unless that is
 * NULL. */
void sl_watch_table_take(struct sl_watch_table *self, const void *client,
                         struct sl_watch_entries *fired);
