/*
 * Clusters for Lua: what the commands of running topologies do, and the processes they start. A
 * client belongs to one state manager; its functions block for as long as they say, and none may be
 * called from two threads at once. Those that return int32_t return 0 or a negative SL_E code,
 * whose message sl_error_message() has. This is a bare header.
 */

/* A client of a cluster. */
struct sl_cluster;

/* What a client is given; texts are copied. */
struct sl_cluster_options {
    /* "localfs:DIR" and so on, as --state takes it. */
    const char *state_url;
    /* Path of the streamlua program, for the processes it starts. */
    const char *program;
    /* Folder for logs; that of a topology NAME is below it. */
    const char *logs;
    /* Limit of one step, in milliseconds; 0 is 10 s. */
    double timeout_ms;
    /* Where lines about what is going on are written, one each; -1: nowhere. */
    int32_t progress_fd;
    /* It only looks: what would write to the state manager fails with SL_EINVAL. */
    bool is_reader;
    /* Setting launcher; NULL is "local". */
    const char *launcher;
    /* Setting scheduler_service: schedulers are asked at their endpoints. */
    bool is_service;
    /* The cluster's secret, or NULL. */
    const char *secret;
    /* Copied; NULL for all defaults. */
    const struct sl_settings *settings;
};

/* What is submitted. Everything is borrowed for the call. */
struct sl_cluster_submission {
    const char *topology;
    const uint8_t *definition;
    size_t definition_size;
    const struct sl_stored_plan *plan;
    const struct sl_package *package;
    const char *cwd;
    const char *user;
    /* False: spouts are not called before it is activated. */
    bool is_active;
    /* How long to wait until all tasks run, in milliseconds. */
    double timeout_ms;
    /* Where masters schedule: how, without regard to its cluster and its tasks (the plan has them),
     * and the enum sl_sched_scheduler. NULL elsewhere. */
    const struct sl_sched_request *schedule;
    int32_t scheduler;
    /* Where masters schedule: only the plan is made. */
    bool is_dry_run;
};

/* A change of what runs. Everything is borrowed for the call. */
struct sl_cluster_change {
    /* What was planned from, and what is to be. */
    const struct sl_stored_plan *current;
    const struct sl_stored_plan *proposed;
    double lock_timeout_ms;
    double drain_timeout_ms;
    /* Where masters schedule: an enum sl_sched_mode (keep, reassign or minimal), how from now on
     * (NULL: as before), and whether only to plan. */
    int32_t mode;
    const struct sl_sched_request *schedule;
    int32_t scheduler;
    bool is_dry_run;
};

/* Returns a client, to be closed with sl_abi_cluster_close. NULL: SL_EINVAL for a bad address. */
struct sl_cluster *sl_abi_cluster_open(const struct sl_cluster_options *options);

/* Ends the client's session and frees it. NULL is allowed. */
void sl_abi_cluster_close(struct sl_cluster *cluster);

/*
 * Reads the names of all topologies, sorted. Returns how many there are, or an error: SL_EUNAVAIL
 * when the state manager can not be reached.
 */
int32_t sl_abi_cluster_names(struct sl_cluster *cluster);

/* Returns a name that sl_abi_cluster_names read, by its index from 0; NULL out of range. */
const char *sl_abi_cluster_name(const struct sl_cluster *cluster, int32_t index);

/*
 * Reads what is stored of a topology. *view is valid until the next load or the close. SL_ENOTFOUND
 * when there is no such topology.
 */
int32_t sl_abi_cluster_load(struct sl_cluster *cluster, const char *topology,
                            const struct sl_topology_view **view);

/*
 * Reads the code package of a topology. *package is valid until the next load or the close.
 * SL_ENOTFOUND.
 */
int32_t sl_abi_cluster_package(struct sl_cluster *cluster, const char *topology,
                               const struct sl_package **package);

/*
 * Stores a topology, starts its processes and waits until all its tasks run. SL_EEXIST: there is
 * one of that name. SL_EUSER: it can not start, and nothing of it is left. SL_ETIMEOUT: not all run
 * yet, the message names what is missing, and it goes on starting. Of a dry run *planned is the
 * plan that masters made, valid until the next call of this client; else NULL.
 */
int32_t sl_abi_cluster_submit(struct sl_cluster *cluster,
                              const struct sl_cluster_submission *submission,
                              const struct sl_stored_plan **planned);

/*
 * Asks the topology master how the topology is. *status is valid until the next call of this
 * client. SL_ENOTFOUND, SL_EUNAVAIL when nobody leads it.
 */
int32_t sl_abi_cluster_status(struct sl_cluster *cluster, const char *topology,
                              const struct sl_control_status **status);

/*
 * Asks supervisors for the logs of containers, all at once, and fills in the answers, which are
 * valid until the next call of this client; each has its own error. With wait_ms it waits so long
 * for something new in one of them.
 */
int32_t sl_abi_cluster_logs(struct sl_cluster *cluster, const char *topology,
                            struct sl_log_question *questions, size_t count, double wait_ms);

/* Has the spouts called, or not any more, and waits until it is so. Returns 1 when it was so
 * before, 0 when it was changed, or an error as sl_abi_cluster_status, SL_ETIMEOUT, SL_ECONFLICT.
 */
int32_t sl_abi_cluster_set_active(struct sl_cluster *cluster, const char *topology, bool is_active,
                                  double timeout_ms);

/* Restarts a container, or all of them (0), and waits until they run. SL_ENOTFOUND, SL_ETIMEOUT. */
int32_t sl_abi_cluster_restart(struct sl_cluster *cluster, const char *topology, int32_t container,
                               double timeout_ms);

/*
 * Changes a topology from one plan to the next. *result is NULL for a dry run, *planned is the plan
 * with the slots that masters chose, or NULL; both are valid until the next call of this client.
 * *result also tells of a change that failed and was, or was not, rolled back. An error: nothing
 * was touched. SL_ECONFLICT: the plan changed, somebody else is changing it, or nothing would
 * change.
 */
int32_t sl_abi_cluster_update(struct sl_cluster *cluster, const struct sl_cluster_change *change,
                              const struct sl_update_result **result,
                              const struct sl_stored_plan **planned);

/*
 * Ends a topology: its spouts are paused and what is in flight may take wait_ms; then its processes
 * end and what is stored of it is deleted; is_purged: also what masters keep for its return.
 * Finishes what an interrupted kill left. SL_ENOTFOUND when there is no trace of it.
 */
int32_t sl_abi_cluster_kill(struct sl_cluster *cluster, const char *topology, double wait_ms,
                            double timeout_ms, bool is_purged);

/* Returns the SHA-256 of a package's files, without its config, as 64 hexadecimal digits, valid
 * until the next call in this thread; NULL with SL_EINVAL or SL_ELIMIT. */
const char *sl_abi_package_hash(const struct sl_package *package);

/*
 * The bodies of processes: they run until they are told to end, and return the exit code, or an
 * error when they can not begin. settings NULL means all defaults.
 */

/* The guardian of a local topology, which starts its topology master anew whenever it dies. */
int32_t sl_abi_role_guardian(const struct sl_role_options *options,
                             const struct sl_settings *settings);

/* The topology master, which has the workers started, and watches them. */
int32_t sl_abi_role_topology_master(const struct sl_role_options *options,
                                    const struct sl_settings *settings);

/* A supervisor. SL_EINVAL: no slots; SL_EEXIST: there is one of that name; SL_EFENCED: it would
 * listen where other machines reach it, without a secret; SL_EUNAVAIL: no master for too long. */
int32_t sl_abi_role_supervisor(const struct sl_supervisor_role_options *options,
                               const struct sl_settings *settings);

/*
 * The process of a master: listen is "HOST:PORT" (port 0: any), folder is for what it takes in,
 * secret is the cluster's or NULL. Returns the exit code, or an error when it could not begin:
 * SL_EFENCED for an address that other machines can reach when there is no secret, SL_EIO, SL_ESYS.
 */
int32_t sl_abi_role_master(const char *state_url, const char *listen, const char *folder,
                           const char *secret, const struct sl_settings *settings);
