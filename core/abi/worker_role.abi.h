/*
 * The role of a worker process for Lua: connections to other workers and to the topology master on
 * a thread of their own (cluster/worker_role.h). The thread that made the worker calls these. This
 * is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */

struct sl_worker_role;

/*
 * Reads the code of a topology from the state manager and writes it to files in a folder of their
 * own; blocks for up to 30 s. NULL with the error set: SL_ENOTFOUND, SL_EUNAVAIL, SL_ETIMEOUT,
 * SL_EPROTO, SL_EINVAL, SL_ESYS.
 */
struct sl_unpacked *sl_abi_package_unpack(const char *state_url, const char *topology,
                                          const struct sl_settings *settings);

/* Removes the files and frees it. NULL is fine. */
void sl_abi_package_unpack_free(struct sl_unpacked *unpacked);

/*
 * Starts the role of a worker that was made with a remote_window; it listens when this returns.
 * `settings` are those of the control plane. NULL with the error set: SL_EINVAL, SL_EFENCED (other
 * machines could reach it and there is no secret), SL_EEXIST, SL_EIO, SL_ESYS.
 */
struct sl_worker_role *sl_abi_worker_role_new(struct sl_worker *worker,
                                              const struct sl_worker_role_options *options,
                                              const struct sl_settings *settings);

/* Ends the role; the executors must have stopped. NULL is fine. */
void sl_abi_worker_role_free(struct sl_worker_role *role);

/* Returns the port for data. */
int32_t sl_abi_worker_role_port(const struct sl_worker_role *role);

/* Answers a request (SL_EVENT_ROLE): code 0, or an SL_E code with the text. */
void sl_abi_worker_role_answer(struct sl_worker_role *role, int32_t request, int32_t code,
                               const char *text, size_t len);

/*
 * Adds a piece of a state with so many key groups to the next answer to an export; everything is
 * copied. A count of 0: a part of an entry that is not its last one. `whole`, with the first piece
 * of a state and group: what all of them have; else NULL.
 */
void sl_abi_worker_role_piece(struct sl_worker_role *role, const char *state, uint32_t key_groups,
                              uint32_t group, const char *entries, size_t size, double count,
                              const struct sl_keyed_summary *whole);

/*
 * Gives the next state of a task that has come for the plan of a version. Returns 1, or 0 when
 * there is none any more; SL_EINVAL.
 */
int32_t sl_abi_worker_role_staged(struct sl_worker_role *role, double version,
                                  struct sl_staged *staged);

/* Says which submission this is, where there is no topology master. Returns 0 or SL_EINVAL. */
int32_t sl_abi_worker_role_topology(struct sl_worker_role *role, const char *topology_id);

/*
 * Says which process (16 bytes) a container is and where it listens, where there is no topology
 * master, when the tasks here are planned: what peers send is taken from then on. Returns 0 or
 * SL_EINVAL.
 */
int32_t sl_abi_worker_role_peer(struct sl_worker_role *role, int32_t container,
                                const char *identity, const char *host, int32_t port);

/* Tells the topology master an error of user code, of a task or ("" and 0) of none. */
void sl_abi_worker_role_report(struct sl_worker_role *role, const char *component, int32_t task,
                               const char *text, size_t len, int32_t is_fatal);

/*
 * Sets the counters of a component that the owner counts itself, for `describe`; from 0 on, all of
 * them. SL_EINVAL for a NULL pointer.
 */
int32_t sl_abi_worker_role_count(struct sl_worker_role *role,
                                 const struct sl_worker_counters *counters);
