/* What a worker's role and its owner, the thread that runs the engine, say to each other. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "cluster/worker_role_priv.h"

void
sl__wr_ask(struct sl_worker_role *self, enum sl_worker_ask what, uint32_t number, const char *text,
           size_t len)
{
    sl_worker_post(self->worker, SL_EVENT_ROLE, (int32_t)what, (int32_t)number, text, len);
}

/* Has the owner end the process. */
void
sl__wr_ask_end(struct sl_worker_role *self, int code, const char *reason)
{
    char text[SL_REASON_SIZE + 16];
    if (self->is_ending) {
        return;
    }
    self->is_ending = true;
    int len = snprintf(text, sizeof(text), "%d %s", code, reason);
    len = len < (int)sizeof(text) ? len : (int)sizeof(text) - 1;
    sl__wr_ask(self, SL_ASK_END, 0, text, (size_t)len);
}

void
sl__wr_pieces_free(struct sl_worker_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sl_free((void *)(uintptr_t)pieces[i].state);
        sl_free((void *)(uintptr_t)pieces[i].entries);
    }
    sl_free(pieces);
}

void
sl__wr_word_free(struct sl__wr_word *word)
{
    sl__wr_pieces_free(word->pieces, word->piece_count);
    sl_free(word->component);
    sl_free(word->text);
    sl_free(word);
}

static struct sl__wr_word *
word_new(struct sl_worker_role *self, const char *text, size_t len)
{
    struct sl__wr_word *word = sl_calloc(1, sizeof(*word));
    word->role = self;
    word->text = sl_strndup(text, len);
    word->len = len;
    return word;
}

static void
count_add(struct sl_worker_counters *sum, const struct sl_task_stats *stats)
{
    sum->executed += (uint64_t)stats->executed;
    sum->emitted += (uint64_t)stats->emitted;
    sum->acked += (uint64_t)stats->acked;
    sum->failed += (uint64_t)stats->failed;
    sum->pending += (uint64_t)stats->pending;
    sum->errors += (uint64_t)stats->errors;
}

void
sl__wr_make_payload(void *ctx, struct sl_buf *out)
{
    struct sl_worker_role *self = ctx;
    int32_t count = sl_worker_component_count(self->worker);
    size_t all = (size_t)count + self->counted.count;
    struct sl_worker_counters *sums = sl_calloc(all + 1, sizeof(*sums));
    for (int32_t i = 0; i < count; i++) {
        struct sl_task_stats stats;
        sums[i].component = sl_worker_component_name(self->worker, i);
        if (sl_worker_gone_stats(self->worker, i, &stats) == 0) {
            count_add(&sums[i], &stats);
        }
    }
    for (int32_t i = 0; i < self->plan.task_count; i++) {
        struct sl_task_stats stats;
        if (self->plan.tasks[i].container == self->options.container &&
            sl_worker_stats(self->worker, self->plan.tasks[i].task, &stats) == 0) {
            count_add(&sums[stats.component], &stats);
        }
    }
    for (size_t i = 0; i < self->counted.count; i++) {
        sums[(size_t)count + i] = self->counted.items[i];
    }
    struct sl_worker_report report = {.plan_version =
                                          self->is_plan_run ? self->plan.plan_version : 0,
                                      .is_active = self->is_active,
                                      .components = sums,
                                      .count = all};
    sl_worker_report_encode(&report, out);
    sl_free(sums);
}

static void
counted(void *ctx)
{
    struct sl__wr_word *word = ctx;
    struct sl_worker_role *self = word->role;
    struct sl_worker_counters *found = NULL;
    for (size_t i = 0; i < self->counted.count && found == NULL; i++) {
        if (strcmp(self->counted.items[i].component, word->component) == 0) {
            found = &self->counted.items[i];
        }
    }
    if (found == NULL) {
        struct sl_worker_counters fresh = {.component = sl_strdup(word->component)};
        sl_vec_push(&self->counted, fresh);
        found = &self->counted.items[self->counted.count - 1];
    }
    const char *name = found->component;
    memcpy(found, word->text, sizeof(*found));
    found->component = name;
    sl__wr_word_free(word);
}

static void
reported(void *ctx, const struct sl_rpc_result *result)
{
    (void)ctx;
    (void)result;
}

static void
report(void *ctx)
{
    struct sl__wr_word *word = ctx;
    struct sl_worker_role *self = word->role;
    struct sl_rpc_gateway *gateway =
        self->registration != NULL ? sl_worker_registration_gateway(self->registration) : NULL;
    if (gateway != NULL) {
        struct sl_worker_event event = {.container = self->options.container,
                                        .component = word->component,
                                        .task = word->task,
                                        .text = word->text,
                                        .is_fatal = word->is_fatal};
        sl_buf_clear(&self->scratch);
        sl_worker_event_encode(&event, &self->scratch);
        sl_rpc_call(gateway, SL_TM_WORKER_EVENT, self->scratch.data, self->scratch.size, 0,
                    reported, self);
    }
    sl__wr_word_free(word);
}

void
sl_worker_role_answer(struct sl_worker_role *self, int32_t request, int code, const char *text,
                      size_t len)
{
    struct sl__wr_word *word = word_new(self, text, len);
    word->request = request;
    word->code = code;
    word->pieces = self->pieces.items;
    word->piece_count = self->pieces.count;
    word->key_groups = self->piece_key_groups;
    sl_vec_create(&self->pieces);
    sl_loop_post(self->loop, sl__wr_answered, word);
}

void
sl_worker_role_piece(struct sl_worker_role *self, uint32_t key_groups,
                     const struct sl_worker_piece *piece)
{
    struct sl_worker_piece copy = *piece;
    uint8_t *entries = sl_alloc(piece->size + 1);
    memcpy(entries, piece->entries, piece->size);
    copy.entries = entries;
    copy.state = sl_strdup(piece->state);
    copy.hash = sl_hash_bytes(entries, piece->size);
    self->piece_key_groups = key_groups;
    sl_vec_push(&self->pieces, copy);
}

bool
sl_worker_role_staged(struct sl_worker_role *self, uint64_t version, struct sl_staged *out)
{
    sl_free(self->staged.component);
    sl_free(self->staged.state);
    self->staged = (struct sl_worker_table){0};
    if (self->moves == NULL || !sl_worker_moves_take(self->moves, version, &self->staged)) {
        return false;
    }
    *out = (struct sl_staged){self->staged.component, self->staged.state, self->staged.task,
                              self->staged.entries};
    return true;
}

static void
topology_told(void *ctx)
{
    struct sl__wr_word *word = ctx;
    sl_data_link_set_topology(word->role->links, word->text);
    sl__wr_word_free(word);
}

int
sl_worker_role_topology(struct sl_worker_role *self, const char *topology_id)
{
    if (self->options.state_url != NULL) {
        return sl_err_set(SL_EINVAL, "the topology master says which submission it is");
    }
    sl_loop_post(self->loop, topology_told, word_new(self, topology_id, strlen(topology_id)));
    return 0;
}

static void
peer_told(void *ctx)
{
    struct sl__wr_word *word = ctx;
    struct sl_worker_role *self = word->role;
    if (sl_data_link_peer(self->links, word->container, word->identity, word->text, word->port) !=
        0) {
        sl_log_warn("cluster.worker", "container %d can not be reached: %s", word->container,
                    sl_err_last()->msg);
    }
    sl_data_link_admit(self->links);
    sl__wr_word_free(word);
}

int
sl_worker_role_peer(struct sl_worker_role *self, int32_t container, const uint8_t *identity,
                    const char *host, uint16_t port)
{
    if (self->options.state_url != NULL) {
        return sl_err_set(SL_EINVAL, "the topology master says who the peers are");
    }
    struct sl__wr_word *word = word_new(self, host, strlen(host));
    word->container = container;
    word->port = port;
    memcpy(word->identity, identity, sizeof(word->identity));
    sl_loop_post(self->loop, peer_told, word);
    return 0;
}

void
sl_worker_role_report(struct sl_worker_role *self, const char *component, int32_t task,
                      const char *text, size_t len, int is_fatal)
{
    struct sl__wr_word *word = word_new(self, text, len);
    word->component = sl_strdup(component);
    word->task = task;
    word->is_fatal = is_fatal != 0;
    sl_loop_post(self->loop, report, word);
}

void
sl_worker_role_count(struct sl_worker_role *self, const struct sl_worker_counters *counters)
{
    struct sl__wr_word *word = word_new(self, (const char *)counters, sizeof(*counters));
    word->component = sl_strdup(counters->component);
    sl_loop_post(self->loop, counted, word);
}
