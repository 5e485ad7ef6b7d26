#pragma once
/*
 * A ZooKeeper in memory, for simulations and tests: one server and any number of clients in one
 * thread, in the time of their executors. It has ZooKeeper's sessions (time-outs, expiry while a
 * client is cut off, survival of a server's restart), its order (a client's requests in order,
 * events before the answers of later reads) and its faults, drawn from a seed or ordered by name.
 */

#include <stdbool.h>

#include "state/backend.h"
#include "state/tree.h"

struct sl_memory_server;

/* Random trouble, in parts of a million for each request; zeroed: none. */
struct sl_memory_faults {
    /* The connection breaks before the request is carried out. */
    uint32_t lose_request_ppm;
    /* It breaks after that, before the answer. */
    uint32_t lose_reply_ppm;
    /* The session is ended by the server. */
    uint32_t expire_ppm;
    /* Each message takes this long, in milliseconds. */
    uint64_t delay_min_ms;
    uint64_t delay_max_ms;
};

/* The server's timers run on this executor. It must outlive its clients. */
struct sl_memory_server *sl_memory_server_new(const struct sl_state_executor *executor,
                                              uint64_t seed);
void sl_memory_server_free(struct sl_memory_server *self);

void sl_memory_server_set_faults(struct sl_memory_server *self,
                                 const struct sl_memory_faults *faults);

/* Time-out of sessions that begin from now on, in milliseconds; 10,000 at first. */
void sl_memory_server_set_session_timeout(struct sl_memory_server *self, uint64_t timeout_ms);

/* Ends a session as its time-out would. */
void sl_memory_server_expire(struct sl_memory_server *self, uint64_t session);

/* Stops serving: connections break. Sessions live on, and their clocks start anew with serving. */
void sl_memory_server_set_serving(struct sl_memory_server *self, bool is_serving);

/* The nodes, for a test's look. */
const struct sl_tree *sl_memory_server_tree(const struct sl_memory_server *self);

/* A client on its own executor (its node's clock), for sl_state_store_new. */
struct sl_state_backend *sl_memory_backend_new(struct sl_memory_server *server,
                                               const struct sl_state_executor *executor);

/* A backend with a server of its own that goes with it: the URL "memory:". */
struct sl_state_backend *sl_memory_backend_private_new(const struct sl_state_executor *executor,
                                                       uint64_t seed);

enum sl_memory_cut {
    SL_MEMORY_CUT_NONE = 0,
    SL_MEMORY_CUT_TO_SERVER = 1,
    SL_MEMORY_CUT_TO_CLIENT = 2,
    SL_MEMORY_CUT_BOTH = 3,
};

/* Messages of this direction do not arrive from now on, without anybody being told; those that the
 * connection survives arrive when the cut is healed. */
void sl_memory_backend_cut(struct sl_state_backend *backend, enum sl_memory_cut cut);

enum sl_memory_break {
    SL_MEMORY_BREAK_BEFORE,
    SL_MEMORY_BREAK_AFTER,
};

/* The connection breaks at the next write, before or after it is carried out. */
void sl_memory_backend_break_next(struct sl_state_backend *backend, enum sl_memory_break when);

/* The node of this client is gone without a farewell: its session lasts until its time-out, and
 * closing the store says nothing to the server. */
void sl_memory_backend_crash(struct sl_state_backend *backend);
