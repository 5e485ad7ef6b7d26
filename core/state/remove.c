#include "state/remove.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"

enum {
    /* Times that nodes may turn out to have children: more is a fight with whoever makes them. */
    ROUNDS_MAX = 10000,
};

void
sl_state_pieces_prefix(const char *path, char *dst)
{
    snprintf(dst, SL_STATE_PIECES_PREFIX + 1, "%016llx",
             (unsigned long long)sl_hash_bytes(path, strlen(path)));
}

/*
 * Removal: a stack of paths. The top one is deleted; when it has children they go on top of it.
 */
struct removal {
    struct sl_state_store *store;
    struct sl_state_names stack;
    bool sweeps;
    int rounds;
    /* Of the node itself. */
    int first_status;
    sl_state_done_fn done;
    void *ctx;
};

static void remove_step(struct removal *self);

static void
remove_finish(struct removal *self, int status)
{
    static const struct sl_state_result empty;
    sl_state_done_fn done = self->done;
    void *ctx = self->ctx;
    for (size_t i = 0; i < self->stack.count; i++) {
        sl_free(self->stack.items[i]);
    }
    sl_vec_destroy(&self->stack);
    sl_free(self);
    if (done != NULL) {
        done(ctx, status, &empty);
    }
}

static void
on_swept(void *ctx, int status, const struct sl_state_result *result)
{
    struct removal *self = ctx;
    (void)result;
    if (status != 0 && status != SL_ENOTFOUND) {
        remove_finish(self, status);
        return;
    }
    remove_step(self);
}

static void
on_removed_children(void *ctx, int status, const struct sl_state_result *result)
{
    struct removal *self = ctx;
    if (status != 0 && status != SL_ENOTFOUND) {
        remove_finish(self, status);
        return;
    }
    /* The texts stay where they are when the stack grows. */
    const char *parent = sl_vec_last(&self->stack);
    for (size_t i = 0; i < result->child_count; i++) {
        sl_vec_push(&self->stack, sl_state_path_join_dup(parent, result->children[i]));
    }
    remove_step(self);
}

static void
on_removed(void *ctx, int status, const struct sl_state_result *result)
{
    struct removal *self = ctx;
    (void)result;
    if (status == SL_EEXIST && ++self->rounds < ROUNDS_MAX) {
        sl_state_children(self->store, sl_vec_last(&self->stack), on_removed_children, self);
        return;
    }
    if (status != 0 && status != SL_ENOTFOUND) {
        remove_finish(self, status);
        return;
    }
    char *path = sl_vec_pop(&self->stack);
    if (self->stack.count == 0) {
        self->first_status = status;
    }
    if (self->sweeps) {
        sl_state_sweep(self->store, path, on_swept, self);
    } else {
        remove_step(self);
    }
    sl_free(path);
}

static void
remove_step(struct removal *self)
{
    if (self->stack.count == 0) {
        int status = self->first_status;
        if (status != 0) {
            sl_err_set(status, "no such node");
        }
        remove_finish(self, status);
        return;
    }
    sl_state_delete(self->store, sl_vec_last(&self->stack), SL_STATE_ANY_VERSION, on_removed, self);
}

static void
remove_start(struct sl_state_store *store, const char *path, bool sweeps, sl_state_done_fn done,
             void *ctx)
{
    struct removal *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->sweeps = sweeps;
    self->done = done;
    self->ctx = ctx;
    sl_vec_push(&self->stack, sl_strdup(path));
    remove_step(self);
}

void
sl_state_remove(struct sl_state_store *store, const char *path, sl_state_done_fn done, void *ctx)
{
    remove_start(store, path, true, done, ctx);
}

/*
 * Sweeping: list the folders, read which one the node needs, delete the others. In this order, a
 * folder that is in the list and not needed is an old one or one whose writer checks that it is
 * still there.
 */
struct sweep {
    struct sl_state_store *store;
    char *path;
    /* Folders of this node. */
    struct sl_state_names folders;
    sl_state_done_fn done;
    void *ctx;
};

static void
sweep_finish(struct sweep *self, int status)
{
    static const struct sl_state_result empty;
    sl_state_done_fn done = self->done;
    void *ctx = self->ctx;
    for (size_t i = 0; i < self->folders.count; i++) {
        sl_free(self->folders.items[i]);
    }
    sl_vec_destroy(&self->folders);
    sl_free(self->path);
    sl_free(self);
    if (done != NULL) {
        done(ctx, status, &empty);
    }
}

static void
on_folder_removed(void *ctx, int status, const struct sl_state_result *result)
{
    struct sweep *self = ctx;
    (void)result;
    if (status != 0 && status != SL_ENOTFOUND) {
        sweep_finish(self, status);
        return;
    }
    if (self->folders.count == 0) {
        sweep_finish(self, 0);
        return;
    }
    char *name = sl_vec_pop(&self->folders);
    char *path = sl_state_path_join_dup(SL_STATE_PIECES_PATH, name);
    remove_start(self->store, path, false, on_folder_removed, self);
    sl_free(path);
    sl_free(name);
}

static void
on_sweep_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sweep *self = ctx;
    if (status != 0 && status != SL_ENOTFOUND) {
        sweep_finish(self, status);
        return;
    }
    for (size_t i = 0; i < self->folders.count; i++) {
        if (status == 0 && result->pieces != NULL &&
            strcmp(result->pieces, self->folders.items[i]) == 0) {
            sl_free(self->folders.items[i]);
            sl_vec_remove(&self->folders, i);
            break;
        }
    }
    on_folder_removed(self, 0, NULL);
}

static void
on_sweep_listed(void *ctx, int status, const struct sl_state_result *result)
{
    struct sweep *self = ctx;
    char prefix[SL_STATE_PIECES_PREFIX + 1];
    sl_state_pieces_prefix(self->path, prefix);
    for (size_t i = 0; status == 0 && i < result->child_count; i++) {
        if (strncmp(result->children[i], prefix, SL_STATE_PIECES_PREFIX) == 0) {
            sl_vec_push(&self->folders, sl_strdup(result->children[i]));
        }
    }
    if (status != 0 || self->folders.count == 0) {
        sweep_finish(self, status != 0 ? status : SL_ENOTFOUND);
        return;
    }
    sl_state_get(self->store, self->path, on_sweep_read, self);
}

void
sl_state_sweep(struct sl_state_store *store, const char *path, sl_state_done_fn done, void *ctx)
{
    struct sweep *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->path = sl_strdup(path);
    self->done = done;
    self->ctx = ctx;
    sl_state_children(store, SL_STATE_PIECES_PATH, on_sweep_listed, self);
}
