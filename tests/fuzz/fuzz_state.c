/* What the state manager reads: values, lock owners, leaders, localfs' log (which is applied to a
 * tree), and addresses. The first byte says as what the rest is read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "state/log_codec.h"
#include "state/url.h"
#include "state/value_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
on_record(void *ctx, const struct sl_log_record *record)
{
    struct sl_tree *tree = ctx;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < record->node_count; i++) {
        rc = sl_tree_restore(tree, record->nodes[i]);
    }
    if (rc == 0 && record->zxid != 0) {
        rc = sl_tree_apply(tree, record->zxid, record->effects, record->effect_count);
    }
    return rc;
}

static int
read_log(const uint8_t *data, size_t size)
{
    struct sl_tree tree;
    sl_tree_create(&tree);
    int rc = sl_log_decode(data, size, on_record, &tree);
    sl_tree_destroy(&tree);
    return rc;
}

static int
read_envelope(const uint8_t *data, size_t size)
{
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    sl_arena_create(&arena, 0, 0);
    int rc = sl_state_envelope_decode(data, size, &arena, &envelope);
    if (rc == 0 && envelope.size > size) {
        abort();
    }
    sl_arena_destroy(&arena);
    return rc;
}

static int
read_url(const uint8_t *data, size_t size)
{
    struct sl_state_url url;
    char *text = sl_strndup((const char *)data, size);
    int rc = sl_state_url_parse(text, &url);
    sl_free(text);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_state_owner owner;
    struct sl_state_leader_info leader;
    int rc = 0;
    if (size == 0) {
        return 0;
    }
    switch (data[0] % 5) {
    case 0:
        rc = read_envelope(data + 1, size - 1);
        break;
    case 1:
        rc = sl_state_owner_decode(data + 1, size - 1, &owner);
        break;
    case 2:
        rc = sl_state_leader_info_decode(data + 1, size - 1, &leader);
        break;
    case 3:
        rc = read_log(data + 1, size - 1);
        break;
    default:
        rc = read_url(data + 1, size - 1);
        break;
    }
    if (rc != 0 && rc != SL_EPROTO && rc != SL_ELIMIT && rc != SL_EINVAL) {
        abort();
    }
    return 0;
}
