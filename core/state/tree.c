#include "state/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "state/path.h"

/* What a node will be once the operations planned so far are applied. */
struct pending {
    bool exists;
    int32_t version;
    uint32_t creates;
    uint32_t child_count;
    uint64_t owner;
};

struct plan {
    const struct sl_tree *tree;
    /* Path -> struct pending, of the nodes that the transaction has looked at. */
    struct sl_map_bytes pending;
    uint64_t session;
};

static struct sl_tree_node *
node_new(const char *path, const void *data, size_t size)
{
    struct sl_tree_node *node = sl_calloc(1, sizeof(*node));
    node->path = sl_strdup(path);
    node->size = (uint32_t)size;
    if (size > 0) {
        node->data = sl_alloc(size);
        memcpy(node->data, data, size);
    }
    return node;
}

static void
node_free(struct sl_tree_node *node)
{
    sl_map_bytes_destroy(&node->children);
    sl_free(node->data);
    sl_free(node->path);
    sl_free(node);
}

void
sl_tree_create(struct sl_tree *self)
{
    memset(self, 0, sizeof(*self));
    sl_map_bytes_put_str(&self->nodes, "/", node_new("/", NULL, 0));
}

void
sl_tree_destroy(struct sl_tree *self)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        node_free(entry->value);
    }
    sl_map_bytes_destroy(&self->nodes);
}

struct sl_tree_node *
sl_tree_find(const struct sl_tree *self, const char *path)
{
    return sl_map_bytes_get_str(&self->nodes, path);
}

void
sl_tree_stat(const struct sl_tree_node *node, struct sl_state_stat *stat)
{
    uint32_t child_count = (uint32_t)node->children.count;
    *stat = (struct sl_state_stat){
        .created_zxid = node->created_zxid,
        .modified_zxid = node->modified_zxid,
        .children_zxid = node->children_zxid,
        .owner = node->owner,
        .version = node->version,
        /* Creations plus deletions, as ZooKeeper shows it. */
        .children_version = (int32_t)(2 * node->creates - child_count),
        .child_count = child_count,
        .stored_bytes = node->size,
    };
}

static struct pending *
plan_look(struct plan *plan, const char *path)
{
    struct pending *pending = sl_map_bytes_get_str(&plan->pending, path);
    if (pending != NULL) {
        return pending;
    }
    pending = sl_calloc(1, sizeof(*pending));
    const struct sl_tree_node *node = sl_tree_find(plan->tree, path);
    if (node != NULL) {
        pending->exists = true;
        pending->version = node->version;
        pending->creates = node->creates;
        pending->child_count = (uint32_t)node->children.count;
        pending->owner = node->owner;
    }
    sl_map_bytes_put_str(&plan->pending, path, pending);
    return pending;
}

static struct pending *
plan_look_parent(struct plan *plan, const char *path)
{
    char *parent_path = sl_state_path_parent_dup(path);
    struct pending *parent = parent_path != NULL ? plan_look(plan, parent_path) : NULL;
    sl_free(parent_path);
    return parent;
}

static int
plan_create(struct plan *plan, const struct sl_state_op *op, struct sl_tree_effect *effect)
{
    struct pending *parent = plan_look_parent(plan, op->path);
    if (parent == NULL) {
        return SL_EEXIST;
    }
    if (!parent->exists) {
        return SL_ENOTFOUND;
    }
    if ((op->flags & SL_STATE_SEQUENTIAL) != 0) {
        effect->owned_path = sl_asprintf("%s%010u", op->path, parent->creates);
        effect->path = effect->owned_path;
    }
    struct pending *node = plan_look(plan, effect->path);
    if (node->exists) {
        return SL_EEXIST;
    }
    if (parent->owner != 0) {
        return SL_EINVAL;
    }
    *node = (struct pending){.exists = true};
    if ((op->flags & SL_STATE_EPHEMERAL) != 0) {
        node->owner = plan->session;
        effect->owner = plan->session;
    }
    parent->creates++;
    parent->child_count++;
    return 0;
}

static int
plan_version(const struct pending *node, int32_t version)
{
    if (!node->exists) {
        return SL_ENOTFOUND;
    }
    return version != SL_STATE_ANY_VERSION && version != node->version ? SL_ECONFLICT : 0;
}

static int
plan_delete(struct plan *plan, const struct sl_state_op *op)
{
    struct pending *parent = plan_look_parent(plan, op->path);
    if (parent == NULL) {
        return SL_EINVAL;
    }
    struct pending *node = plan_look(plan, op->path);
    int rc = plan_version(node, op->version);
    if (rc != 0) {
        return rc;
    }
    if (node->child_count > 0) {
        return SL_EEXIST;
    }
    node->exists = false;
    parent->child_count--;
    return 0;
}

static int
plan_op(struct plan *plan, const struct sl_state_op *op, struct sl_tree_effect *effect)
{
    int rc;
    switch (op->kind) {
    case SL_STATE_CREATE:
        return plan_create(plan, op, effect);
    case SL_STATE_DELETE:
        return plan_delete(plan, op);
    case SL_STATE_SET:
        rc = plan_version(plan_look(plan, op->path), op->version);
        if (rc == 0) {
            plan_look(plan, op->path)->version++;
        }
        return rc;
    case SL_STATE_CHECK:
        return plan_version(plan_look(plan, op->path), op->version);
    default:
        return SL_EINVAL;
    }
}

int
sl_tree_plan(const struct sl_tree *self, const struct sl_state_op *ops, size_t count,
             uint64_t session, struct sl_tree_effects *effects, size_t *failed)
{
    struct plan plan = {.tree = self, .session = session};
    size_t first = effects->count;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct sl_state_op *op = &ops[i];
        struct sl_tree_effect effect = {
            .kind = op->kind, .path = op->path, .data = op->value, .size = op->size};
        rc = plan_op(&plan, op, &effect);
        if (rc == 0 && op->kind != SL_STATE_CHECK) {
            sl_vec_push(effects, effect);
        } else {
            sl_free(effect.owned_path);
        }
        *failed = i;
    }
    if (rc != 0) {
        while (effects->count > first) {
            sl_free(sl_vec_pop(effects).owned_path);
        }
    }
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&plan.pending, &at)) != NULL;) {
        sl_free(entry->value);
    }
    sl_map_bytes_destroy(&plan.pending);
    return rc;
}

void
sl_tree_plan_session_end(const struct sl_tree *self, uint64_t session,
                         struct sl_tree_effects *effects)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        const struct sl_tree_node *node = entry->value;
        if (session != 0 && node->owner == session) {
            struct sl_tree_effect effect = {.kind = SL_STATE_DELETE,
                                            .owned_path = sl_strdup(node->path)};
            effect.path = effect.owned_path;
            sl_vec_push(effects, effect);
        }
    }
}

static void
tell(struct sl_tree *self, const char *path, enum sl_tree_change change)
{
    if (self->on_change != NULL) {
        self->on_change(self->ctx, path, change);
    }
}

static struct sl_tree_node *
find_parent(const struct sl_tree *self, const char *path)
{
    char *parent_path = sl_state_path_parent_dup(path);
    struct sl_tree_node *parent = parent_path != NULL ? sl_tree_find(self, parent_path) : NULL;
    sl_free(parent_path);
    return parent;
}

static void
link_node(struct sl_tree *self, struct sl_tree_node *parent, struct sl_tree_node *node)
{
    sl_map_bytes_put_str(&self->nodes, node->path, node);
    sl_map_bytes_put_str(&parent->children, sl_state_path_name(node->path), node);
}

static int
apply_create(struct sl_tree *self, uint64_t zxid, const struct sl_tree_effect *effect)
{
    struct sl_tree_node *parent = find_parent(self, effect->path);
    if (parent == NULL || sl_tree_find(self, effect->path) != NULL) {
        return sl_err_set(SL_EPROTO, "create of %s does not fit the tree", effect->path);
    }
    struct sl_tree_node *node = node_new(effect->path, effect->data, effect->size);
    node->owner = effect->owner;
    node->created_zxid = zxid;
    node->modified_zxid = zxid;
    node->children_zxid = zxid;
    parent->creates++;
    parent->children_zxid = zxid;
    link_node(self, parent, node);
    tell(self, node->path, SL_TREE_CREATED);
    tell(self, parent->path, SL_TREE_CHILDREN);
    return 0;
}

static int
apply_delete(struct sl_tree *self, uint64_t zxid, const struct sl_tree_effect *effect)
{
    struct sl_tree_node *parent = find_parent(self, effect->path);
    struct sl_tree_node *node = sl_tree_find(self, effect->path);
    if (parent == NULL || node == NULL || node->children.count > 0) {
        return sl_err_set(SL_EPROTO, "delete of %s does not fit the tree", effect->path);
    }
    sl_map_bytes_remove_str(&self->nodes, node->path);
    sl_map_bytes_remove_str(&parent->children, sl_state_path_name(node->path));
    parent->children_zxid = zxid;
    tell(self, node->path, SL_TREE_DELETED);
    tell(self, parent->path, SL_TREE_CHILDREN);
    node_free(node);
    return 0;
}

static int
apply_set(struct sl_tree *self, uint64_t zxid, const struct sl_tree_effect *effect)
{
    struct sl_tree_node *node = sl_tree_find(self, effect->path);
    if (node == NULL) {
        return sl_err_set(SL_EPROTO, "set of %s does not fit the tree", effect->path);
    }
    sl_free(node->data);
    node->data = NULL;
    node->size = (uint32_t)effect->size;
    if (effect->size > 0) {
        node->data = sl_alloc(effect->size);
        memcpy(node->data, effect->data, effect->size);
    }
    node->version++;
    node->modified_zxid = zxid;
    tell(self, node->path, SL_TREE_CHANGED);
    return 0;
}

int
sl_tree_apply(struct sl_tree *self, uint64_t zxid, const struct sl_tree_effect *effects,
              size_t count)
{
    if (zxid <= self->zxid) {
        return sl_err_set(SL_EPROTO, "transaction %llu follows %llu", (unsigned long long)zxid,
                          (unsigned long long)self->zxid);
    }
    self->zxid = zxid;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        switch (effects[i].kind) {
        case SL_STATE_CREATE:
            rc = apply_create(self, zxid, &effects[i]);
            break;
        case SL_STATE_DELETE:
            rc = apply_delete(self, zxid, &effects[i]);
            break;
        case SL_STATE_SET:
            rc = apply_set(self, zxid, &effects[i]);
            break;
        default:
            rc = sl_err_set(SL_EPROTO, "unknown effect %d", (int)effects[i].kind);
            break;
        }
    }
    return rc;
}

void
sl_tree_effects_clear(struct sl_tree_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        sl_free(effects->items[i].owned_path);
    }
    sl_vec_clear(effects);
}

void
sl_tree_effects_destroy(struct sl_tree_effects *effects)
{
    sl_tree_effects_clear(effects);
    sl_vec_destroy(effects);
}

int
sl_tree_restore(struct sl_tree *self, const struct sl_tree_node *figures)
{
    struct sl_tree_node *node = sl_tree_find(self, figures->path);
    bool is_root = figures->path[1] == '\0';
    struct sl_tree_node *parent = find_parent(self, figures->path);
    if (is_root ? node->children.count > 0 : parent == NULL || node != NULL) {
        return sl_err_set(SL_EPROTO, "node %s does not fit the snapshot", figures->path);
    }
    if (is_root) {
        sl_map_bytes_remove_str(&self->nodes, "/");
        node_free(node);
    }
    node = node_new(figures->path, figures->data, figures->size);
    node->version = figures->version;
    node->creates = figures->creates;
    node->owner = figures->owner;
    node->created_zxid = figures->created_zxid;
    node->modified_zxid = figures->modified_zxid;
    node->children_zxid = figures->children_zxid;
    if (is_root) {
        sl_map_bytes_put_str(&self->nodes, "/", node);
    } else {
        link_node(self, parent, node);
    }
    return 0;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **
sl_tree_children_new(const struct sl_tree_node *node)
{
    const char **names = sl_calloc(node->children.count + 1, sizeof(*names));
    size_t count = 0;
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&node->children, &at)) != NULL;) {
        names[count++] = entry->key;
    }
    qsort(names, count, sizeof(*names), compare_names);
    return names;
}
