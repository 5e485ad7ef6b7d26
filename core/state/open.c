#include "state/open.h"

#include "base/random.h"
#include "state/localfs.h"
#include "state/memory.h"
#include "state/url.h"
#include "state/zookeeper.h"

struct sl_state_store *
sl_state_open_new(const char *url, const struct sl_state_executor *executor,
                  const struct sl_state_open_options *options)
{
    struct sl_state_url parsed;
    struct sl_state_options store_options = {0};
    struct sl_zookeeper_options zookeeper_options = {0};
    struct sl_state_backend *backend = NULL;
    if (sl_state_url_parse(url, &parsed) != 0) {
        return NULL;
    }
    if (options != NULL) {
        store_options.timeout_ms = options->timeout_ms;
        zookeeper_options.session_timeout_ms = options->session_timeout_ms;
        zookeeper_options.digest = options->digest;
    }
    switch (parsed.scheme) {
    case SL_STATE_MEMORY:
        backend = sl_memory_backend_private_new(executor, sl_random_entropy());
        break;
    case SL_STATE_LOCALFS:
        backend = options != NULL && options->is_reader
                      ? sl_localfs_reader_new(parsed.path, executor)
                      : sl_localfs_backend_new(parsed.path, executor);
        break;
    case SL_STATE_ZOOKEEPER:
        backend = sl_zookeeper_backend_new(&parsed, executor, &zookeeper_options);
        break;
    }
    return sl_state_store_new(backend, executor, &store_options);
}
