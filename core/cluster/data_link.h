#pragma once
/*
 * The connections between the workers of a topology: one for each pair, made by the container with
 * the higher number, made anew when it breaks, and used both ways by the lane of the worker
 * (stream/remote.h), which makes frames of tuples and acks.
 *
 *     accepting side                     connecting side
 *     CHALLENGE {nonce a}          -->
 *                                  <--   HELLO: HMAC(a, hello) | hello {nonce b, who, session}
 *     WELCOME: HMAC(b, a, welcome) | welcome {who, session}  -->   frames both ways
 *
 * Only the process that the plan names for a container is spoken to: sl_data_link_peer says which.
 * Everything belongs to the thread of the loop, which becomes that of the lane.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"
#include "stream/remote.h"

struct sl_data_link;

/*
 * What wake-ups by other threads lead to.  Zeroed memory that outlives the loop: one may still be
 * under way when the links are gone.
 */
struct sl_data_bell {
    struct sl_loop *loop;
    struct sl_data_link *links;
};

struct sl_data_link_options {
    struct sl_remote *remote;
    struct sl_data_bell *bell;
    /* This worker, and its process. */
    int32_t container;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    /* The secret of the cluster, copied; empty for none. */
    const void *secret;
    size_t secret_size;
    /* Times; 0 picks the default. How often grants are told anew, after how long without a word a
     * connection is given up, and how long an opening may take. */
    uint64_t refresh_ms;
    uint64_t silence_ms;
    uint64_t opening_ms;
    /* A peer was connected or lost; may be NULL. */
    void (*on_change)(void *ctx);
    void *ctx;
};

enum {
    SL_DATA_REFRESH_MS = 1000,
    SL_DATA_SILENCE_MS = 10000,
    SL_DATA_OPENING_MS = 5000,
    /* Pause before a broken connection is made again: the first and the longest. */
    SL_DATA_RETRY_MS = 20,
    SL_DATA_RETRY_MAX_MS = 1000,
};

/* Makes the links of a worker; options but for the secret are copied or borrowed for its life. */
struct sl_data_link *sl_data_link_new(struct sl_loop *loop,
                                      const struct sl_data_link_options *options);
/* Closes everything. The executors must have stopped. NULL is fine. */
void sl_data_link_free(struct sl_data_link *self);

/*
 * Listens at the address of a host; port 0 has the system choose one.  SL_EFENCED when other
 * machines can reach it and there is no secret, else as sl_listener_open.
 */
int sl_data_link_listen(struct sl_data_link *self, const char *host, uint16_t port);
/* The port, 0 before. */
uint16_t sl_data_link_port(const struct sl_data_link *self);

/* The id of the submission, "" before: workers of another one are refused. */
void sl_data_link_set_topology(struct sl_data_link *self, const char *topology_id);
/*
 * Says which process a container is and where it listens.  A process that it was before is spoken
 * to no more, and one that is not connected is tried at once.  Its own container is ignored.
 * SL_EINVAL for a number or host that can not be.
 */
int sl_data_link_peer(struct sl_data_link *self, int32_t container, const uint8_t *identity,
                      const char *host, uint16_t port);
/*
 * There are tasks for what peers send.  Before, connections are opened and written to, but frames
 * are not read: they would find nobody, and not even the spouts that are to hear of it.
 */
void sl_data_link_admit(struct sl_data_link *self);
/* The container is no longer in the plan: what waits for it fails. */
void sl_data_link_remove(struct sl_data_link *self, int32_t container);
/* Removes all peers that `is_wanted` does not want. */
void sl_data_link_keep(struct sl_data_link *self, bool (*is_wanted)(void *ctx, int32_t container),
                       void *ctx);
/* How many peers there are, and how many of them are connected. */
int32_t sl_data_link_peers(const struct sl_data_link *self, int32_t *connected);
