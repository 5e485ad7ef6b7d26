#pragma once
/*
 * The role of a worker process: a thread with a loop that has the connections to the other workers
 * (data_link.h), the registration at the topology master, and its requests.  Whoever made the
 * engine (the owner: the main thread, in Lua) does what has to do with tasks; the role asks it by
 * events of the engine and is answered by sl_worker_role_answer.
 *
 *     topology master <--rpc--> role --SL_EVENT_ROLE--> owner --commands--> executors
 *     other workers   <--tcp--> role <--rings--> executors
 *
 * A plan is answered when its tasks run and all registered peers are connected, or have not been
 * for a while.  Draining, counters and heartbeats are the role's own.
 */

#include <stddef.h>
#include <stdint.h>

#include "cluster/control.h"
#include "cluster/worker_role.abi.h"
#include "stream/worker.h"

struct sl_settings;
struct sl_worker_piece;
struct sl_worker_role;

enum {
    SL_WORKER_NO_MASTER_MS = 60000,
};

/*
 * Starts the role of an engine with a lane, which it borrows.  Listens when it returns.  `settings`
 * of the control plane are copied.  SL_EINVAL, SL_EFENCED, SL_EEXIST, SL_EIO, SL_ESYS.
 */
int sl_worker_role_new(struct sl_worker *worker, const struct sl_worker_role_options *options,
                       const struct sl_settings *settings, struct sl_worker_role **role);
/* Ends it. The executors must have stopped. NULL is fine. */
void sl_worker_role_free(struct sl_worker_role *self);

/* From here on: the owner's thread. */

/* The port for data. */
uint16_t sl_worker_role_data_port(const struct sl_worker_role *self);
/* Answers a request: code 0, or an error with its text. A request that is gone is ignored. */
void sl_worker_role_answer(struct sl_worker_role *self, int32_t request, int code, const char *text,
                           size_t len);
/*
 * A piece of state that the next answer to an export gives; all is copied but its hash, which is
 * computed.  States have so many key groups.
 */
void sl_worker_role_piece(struct sl_worker_role *self, uint32_t key_groups,
                          const struct sl_worker_piece *piece);
/* The next state of a task that has come for the plan of a version; false: there is none. */
bool sl_worker_role_staged(struct sl_worker_role *self, uint64_t version, struct sl_staged *out);
/*
 * Without a topology master: which submission this is, and who a peer is, when the tasks here are
 * planned: what peers send is taken from then on.
 */
int sl_worker_role_topology(struct sl_worker_role *self, const char *topology_id);
int sl_worker_role_peer(struct sl_worker_role *self, int32_t container, const uint8_t *identity,
                        const char *host, uint16_t port);
/* Tells the topology master an error of user code; after a fatal one the process is about to end.
 */
void sl_worker_role_report(struct sl_worker_role *self, const char *component, int32_t task,
                           const char *text, size_t len, int is_fatal);
/* Counters of a component that the owner has, the whole of them; heartbeats take them along. */
void sl_worker_role_count(struct sl_worker_role *self, const struct sl_worker_counters *counters);
