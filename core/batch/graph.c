#include "batch/graph.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "batch/grid.h"

enum {
    /* What must be checkpointed is so at least this often, if its slide allows. */
    DEFAULT_CHECKPOINT_MS = 10000,
};

void
sl_graph_create(struct sl_graph *self, int64_t batch_ms)
{
    *self = (struct sl_graph){.batch_ms = batch_ms, .zero_time = SL_STREAMING_UNKNOWN};
}

static void
node_free(struct sl_graph_node *node)
{
    for (size_t i = 0; i < node->saved.count; i++) {
        sl_free(node->saved.items[i].text);
    }
    sl_vec_destroy(&node->saved);
    sl_vec_destroy(&node->current);
    sl_vec_destroy(&node->references);
    sl_vec_destroy(&node->datasets);
    sl_vec_destroy(&node->parents);
    sl_free(node->name);
    sl_free(node->call_site);
    sl_free(node);
}

void
sl_graph_destroy(struct sl_graph *self)
{
    for (size_t i = 0; i < self->nodes.count; i++) {
        node_free(self->nodes.items[i]);
    }
    sl_vec_destroy(&self->nodes);
    sl_vec_destroy(&self->outputs);
}

struct sl_graph_node *
sl_graph_node(const struct sl_graph *self, int32_t node)
{
    if (node < 0 || (size_t)node >= self->nodes.count) {
        sl_err_set(SL_EINVAL, "there is no stream %d", node);
        return NULL;
    }
    return self->nodes.items[node];
}

int32_t
sl_graph_find_name(const struct sl_graph *self, const char *name)
{
    for (size_t i = 0; i < self->nodes.count; i++) {
        if (strcmp(self->nodes.items[i]->name, name) == 0) {
            return (int32_t)i;
        }
    }
    return SL_ENOTFOUND;
}

static int
check_name(const struct sl_graph *self, const char *name)
{
    if (name == NULL || name[0] == '\0') {
        return sl_err_set(SL_EINVAL, "a stream needs a name");
    }
    if (sl_graph_find_name(self, name) >= 0) {
        return sl_err_set(SL_EEXIST, "a stream is named %s already", name);
    }
    return 0;
}

/* The slide that a node's own must be a multiple of. */
static int
base_slide(const struct sl_graph *self, const struct sl_streaming_node *spec, int64_t *slide)
{
    *slide = self->batch_ms;
    for (int32_t i = 0; i < spec->parent_count; i++) {
        const struct sl_graph_node *parent = sl_graph_node(self, spec->parents[i]);
        if (parent == NULL) {
            return sl_err_wrap("parents of %s", spec->name);
        }
        if (i > 0 && parent->slide_ms != *slide) {
            return sl_err_set(SL_EINVAL,
                              "%s: its parents have different slides (%lld ms and %lld ms)",
                              spec->name, (long long)*slide, (long long)parent->slide_ms);
        }
        *slide = parent->slide_ms;
    }
    return 0;
}

static int
check_spec(const struct sl_graph *self, const struct sl_streaming_node *spec)
{
    int64_t base = 0;
    int rc = check_name(self, spec->name);
    if (rc != 0) {
        return rc;
    }
    bool is_input = (spec->flags & SL_STREAMING_INPUT) != 0;
    if (spec->parent_count < 0 || (spec->parent_count > 0 && spec->parents == NULL) ||
        is_input != (spec->parent_count == 0)) {
        return sl_err_set(SL_EINVAL, "%s: an input has no parents, any other stream has some",
                          spec->name);
    }
    rc = base_slide(self, spec, &base);
    if (rc != 0) {
        return rc;
    }
    if (spec->slide_ms <= 0 || !sl_grid_is_multiple(spec->slide_ms, base)) {
        return sl_err_set(SL_EINVAL, "%s: slide %lld ms is no multiple of the %s %lld ms",
                          spec->name, (long long)spec->slide_ms,
                          is_input ? "batch interval" : "parent's slide", (long long)base);
    }
    if (spec->window_ms < 0 || !sl_grid_is_multiple(spec->window_ms, base)) {
        return sl_err_set(SL_EINVAL,
                          "%s: window %lld ms is no multiple of the parent's slide "
                          "%lld ms",
                          spec->name, (long long)spec->window_ms, (long long)base);
    }
    if (spec->remember_ms < 0 || spec->checkpoint_ms < 0) {
        return sl_err_set(SL_EINVAL, "%s: a duration is below 0", spec->name);
    }
    return 0;
}

int32_t
sl_graph_add(struct sl_graph *self, const struct sl_streaming_node *spec)
{
    int rc = check_spec(self, spec);
    if (rc != 0) {
        return rc;
    }
    struct sl_graph_node *node = sl_calloc(1, sizeof(*node));
    node->name = sl_strdup(spec->name);
    node->call_site = sl_strdup(spec->call_site != NULL ? spec->call_site : "");
    node->slide_ms = spec->slide_ms;
    node->window_ms = spec->window_ms;
    node->remember_ms = spec->remember_ms;
    node->checkpoint_ms = spec->checkpoint_ms;
    node->flags = spec->flags;
    node->input_id = SL_STREAMING_UNKNOWN;
    node->last_valid = SL_STREAMING_UNKNOWN;
    for (int32_t i = 0; i < spec->parent_count; i++) {
        sl_vec_push(&node->parents, spec->parents[i]);
    }
    if ((spec->flags & SL_STREAMING_INPUT) != 0) {
        node->input_id = self->input_count++;
    }
    int32_t number = (int32_t)self->nodes.count;
    sl_vec_push(&self->nodes, node);
    if ((spec->flags & SL_STREAMING_OUTPUT) != 0) {
        sl_vec_push(&self->outputs, number);
    }
    return number;
}

int
sl_graph_rename(struct sl_graph *self, int32_t number, const char *name)
{
    struct sl_graph_node *node = sl_graph_node(self, number);
    if (node == NULL) {
        return SL_EINVAL;
    }
    if (name != NULL && strcmp(node->name, name) == 0) {
        return 0;
    }
    int rc = check_name(self, name);
    if (rc == 0) {
        sl_free(node->name);
        node->name = sl_strdup(name);
    }
    return rc;
}

/* Marks what outputs are made from; nothing else is initialised. */
static void
mark_needed(struct sl_graph *self)
{
    for (size_t i = 0; i < self->outputs.count; i++) {
        self->nodes.items[self->outputs.items[i]]->is_initialized = true;
    }
    for (size_t i = self->nodes.count; i-- > 0;) {
        struct sl_graph_node *node = self->nodes.items[i];
        for (size_t j = 0; node->is_initialized && j < node->parents.count; j++) {
            self->nodes.items[node->parents.items[j]]->is_initialized = true;
        }
    }
}

static void
initialize(struct sl_graph_node *node)
{
    if ((node->flags & SL_STREAMING_MUST_CHECKPOINT) != 0 && node->checkpoint_ms == 0) {
        int64_t slides = (DEFAULT_CHECKPOINT_MS + node->slide_ms - 1) / node->slide_ms;
        node->checkpoint_ms = slides * node->slide_ms;
    }
    int64_t least = node->slide_ms;
    if (node->checkpoint_ms >= least) {
        least = 2 * node->checkpoint_ms;
    }
    if (node->remember_ms < least) {
        node->remember_ms = least;
    }
}

static void
raise_remember(struct sl_graph_node *node, int64_t remember_ms)
{
    if (remember_ms > node->remember_ms) {
        node->remember_ms = remember_ms;
    }
}

static int
validate(const struct sl_graph_node *node, bool has_checkpoint_dir)
{
    const char *at = node->call_site[0] != '\0' ? node->call_site : "the script";
    if (node->checkpoint_ms == 0) {
        return 0;
    }
    if (!has_checkpoint_dir) {
        return sl_err_set(SL_EINVAL,
                          "%s (%s) needs a checkpoint directory: its datasets are saved every "
                          "%lld ms",
                          node->name, at, (long long)node->checkpoint_ms);
    }
    if (node->checkpoint_ms < node->slide_ms ||
        !sl_grid_is_multiple(node->checkpoint_ms, node->slide_ms)) {
        return sl_err_set(SL_EINVAL,
                          "%s (%s): checkpoint interval %lld ms is no multiple of its slide "
                          "%lld ms",
                          node->name, at, (long long)node->checkpoint_ms,
                          (long long)node->slide_ms);
    }
    if ((node->flags & SL_STREAMING_PERSIST) == 0) {
        return sl_err_set(SL_EINVAL, "%s (%s): a stream that is checkpointed must be persisted",
                          node->name, at);
    }
    if (node->remember_ms <= node->checkpoint_ms) {
        return sl_err_set(SL_EINVAL,
                          "%s (%s): remember duration %lld ms is not above its checkpoint "
                          "interval %lld ms",
                          node->name, at, (long long)node->remember_ms,
                          (long long)node->checkpoint_ms);
    }
    return 0;
}

int
sl_graph_start(struct sl_graph *self, int64_t zero_time, bool has_checkpoint_dir)
{
    if (self->outputs.count == 0) {
        return sl_err_set(SL_EINVAL,
                          "no output operation is registered, so there is nothing to execute");
    }
    mark_needed(self);
    for (size_t i = 0; i < self->nodes.count; i++) {
        if (self->nodes.items[i]->is_initialized) {
            initialize(self->nodes.items[i]);
        }
    }
    for (size_t i = 0; i < self->outputs.count; i++) {
        raise_remember(self->nodes.items[self->outputs.items[i]], self->remember_ms);
    }
    for (size_t i = self->nodes.count; i-- > 0;) {
        struct sl_graph_node *node = self->nodes.items[i];
        for (size_t j = 0; node->is_initialized && j < node->parents.count; j++) {
            raise_remember(self->nodes.items[node->parents.items[j]],
                           node->remember_ms + node->window_ms);
        }
    }
    for (size_t i = 0; i < self->nodes.count; i++) {
        const struct sl_graph_node *node = self->nodes.items[i];
        int rc = node->is_initialized ? validate(node, has_checkpoint_dir) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    self->zero_time = zero_time;
    return 0;
}

/* Where a dataset of this time is or would be. */
static size_t
dataset_place(const struct sl_graph_node *node, int64_t time)
{
    size_t at = node->datasets.count;
    while (at > 0 && node->datasets.items[at - 1].time >= time) {
        at--;
    }
    return at;
}

/* Times go backward when a window or a state catches up; anything else deserves a look. */
static void
note_time(struct sl_graph_node *node, int64_t time)
{
    if ((node->flags & SL_STREAMING_INPUT) == 0) {
        return;
    }
    if (time < node->last_valid) {
        sl_log_verbose("batch.graph", "input %s is asked for an earlier time=%lld last=%lld",
                       node->name, (long long)time, (long long)node->last_valid);
    } else {
        node->last_valid = time;
    }
}

static uint32_t
marks_of(const struct sl_graph *self, const struct sl_graph_node *node, int64_t time)
{
    uint32_t marks = (node->flags & SL_STREAMING_PERSIST) != 0 ? SL_STREAMING_MARK_PERSIST : 0;
    if (node->checkpoint_ms > 0 &&
        sl_grid_is_multiple(time - self->zero_time, node->checkpoint_ms)) {
        marks |= SL_STREAMING_MARK_CHECKPOINT;
    }
    return marks;
}

int
sl_graph_find(struct sl_graph *self, int32_t number, int64_t time, struct sl_streaming_dataset *out)
{
    struct sl_graph_node *node = sl_graph_node(self, number);
    if (node == NULL) {
        return SL_EINVAL;
    }
    size_t at = dataset_place(node, time);
    if (at < node->datasets.count && node->datasets.items[at].time == time) {
        *out = node->datasets.items[at];
        return SL_STREAMING_FOUND;
    }
    if (!node->is_initialized) {
        return sl_err_set(SL_ECONFLICT, "stream %s was never initialised: %s", node->name,
                          self->zero_time == SL_STREAMING_UNKNOWN ? "the context has not started"
                                                                  : "no output operation uses it");
    }
    if (time <= self->zero_time || !sl_grid_is_multiple(time - self->zero_time, node->slide_ms)) {
        return SL_STREAMING_NOTHING;
    }
    note_time(node, time);
    *out = (struct sl_streaming_dataset){.time = time, .marks = marks_of(self, node, time)};
    return SL_STREAMING_COMPUTE;
}

int
sl_graph_put(struct sl_graph *self, int32_t number, int64_t time, uint64_t handle)
{
    struct sl_graph_node *node = sl_graph_node(self, number);
    if (node == NULL) {
        return SL_EINVAL;
    }
    size_t at = dataset_place(node, time);
    if (at < node->datasets.count && node->datasets.items[at].time == time) {
        return sl_err_set(SL_EEXIST, "stream %s has a dataset at %lld ms already", node->name,
                          (long long)time);
    }
    struct sl_streaming_dataset dataset = {time, handle, 0};
    if (self->zero_time != SL_STREAMING_UNKNOWN) {
        dataset.marks = marks_of(self, node, time);
    }
    sl_vec_insert(&node->datasets, at, dataset);
    return 0;
}

void
sl_graph_clear_metadata(struct sl_graph *self, int64_t time, sl_graph_drop_fn drop, void *ctx)
{
    for (size_t i = self->nodes.count; i-- > 0;) {
        struct sl_graph_node *node = self->nodes.items[i];
        size_t old = 0;
        while (old < node->datasets.count &&
               node->datasets.items[old].time <= time - node->remember_ms) {
            drop(ctx, (int32_t)i, &node->datasets.items[old]);
            old++;
        }
        if (old > 0) {
            node->datasets.count -= old;
            memmove(node->datasets.items, node->datasets.items + old,
                    node->datasets.count * sizeof(node->datasets.items[0]));
        }
    }
}

int64_t
sl_graph_max_input_remember(const struct sl_graph *self)
{
    int64_t longest = 0;
    for (size_t i = 0; i < self->nodes.count; i++) {
        const struct sl_graph_node *node = self->nodes.items[i];
        if (node->input_id >= 0 && node->is_initialized && node->remember_ms > longest) {
            longest = node->remember_ms;
        }
    }
    return longest;
}

void
sl_graph_saved_add(struct sl_graph_node *node, int64_t time, const char *text)
{
    size_t at = node->saved.count;
    while (at > 0 && node->saved.items[at - 1].time >= time) {
        at--;
    }
    if (at < node->saved.count && node->saved.items[at].time == time) {
        sl_free(node->saved.items[at].text);
        node->saved.items[at].text = sl_strdup(text);
        return;
    }
    struct sl_graph_saved saved = {time, sl_strdup(text)};
    sl_vec_insert(&node->saved, at, saved);
}

const struct sl_graph_saved *
sl_graph_saved_at(const struct sl_graph_node *node, int64_t time)
{
    for (size_t i = 0; i < node->saved.count; i++) {
        if (node->saved.items[i].time == time) {
            return &node->saved.items[i];
        }
    }
    return NULL;
}

static bool
has_dataset(const struct sl_graph_node *node, int64_t time)
{
    size_t at = dataset_place(node, time);
    return at < node->datasets.count && node->datasets.items[at].time == time;
}

/* Without a remembered saved dataset the former ones stay what a checkpoint names. */
static void
node_update_checkpoint(struct sl_graph_node *node, int64_t time)
{
    size_t found = 0;
    for (size_t i = 0; i < node->saved.count; i++) {
        if (!has_dataset(node, node->saved.items[i].time)) {
            continue;
        }
        if (found++ == 0) {
            sl_vec_clear(&node->current);
        }
        sl_vec_push(&node->current, node->saved.items[i].time);
    }
    if (node->current.count > 0) {
        struct sl_graph_reference reference = {time, node->current.items[0]};
        sl_vec_push(&node->references, reference);
    }
}

void
sl_graph_update_checkpoint(struct sl_graph *self, int64_t time)
{
    for (size_t i = 0; i < self->nodes.count; i++) {
        node_update_checkpoint(self->nodes.items[i], time);
    }
}

static void
node_clear_checkpoint(struct sl_graph_node *node, int64_t time, sl_graph_file_fn remove, void *ctx)
{
    int64_t oldest = INT64_MIN;
    size_t kept = 0;
    for (size_t i = 0; i < node->references.count; i++) {
        /* Checkpoints of earlier batches are older files now: what they name may go too. */
        if (node->references.items[i].batch > time) {
            node->references.items[kept++] = node->references.items[i];
        } else if (node->references.items[i].oldest > oldest) {
            oldest = node->references.items[i].oldest;
        }
    }
    node->references.count = kept;
    while (node->saved.count > 0 && node->saved.items[0].time < oldest) {
        if ((node->flags & SL_STREAMING_OWNS_FILES) != 0) {
            remove(ctx, node->saved.items[0].text);
        }
        sl_free(node->saved.items[0].text);
        sl_vec_remove(&node->saved, 0);
    }
}

void
sl_graph_clear_checkpoint(struct sl_graph *self, int64_t time, sl_graph_file_fn remove, void *ctx)
{
    for (size_t i = 0; i < self->nodes.count; i++) {
        node_clear_checkpoint(self->nodes.items[i], time, remove, ctx);
    }
}
