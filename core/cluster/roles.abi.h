/*
 * What the processes of a cluster are started with, as their commands in Lua know it. Texts are
 * borrowed for the call; NULL where they may be missing. This is a bare header.
 */

/* A topology master, or a guardian. */
struct sl_role_options {
    const char *state_url;
    const char *topology;
    /* Path of the streamlua program. */
    const char *program;
    /* Folder of the topology's logs. */
    const char *logs;
    /* Of a local topology: the process that watches this one, or a guardian is to watch; 0: none.
     */
    int64_t partner_pid;
    /* Of a topology master that a supervisor started: the supervisor, the port of its slot, and
     * where it listens. NULL and 0: a local one. */
    const char *supervisor;
    const char *host;
    uint32_t port;
    /* The cluster's secret, NULL and 0 without one. */
    const char *secret;
    size_t secret_len;
};

/* A supervisor. */
struct sl_supervisor_role_options {
    const char *state_url;
    const char *program;
    /* Words that are added to the command lines of its processes ("--cluster", "standalone"); NULL
     * ends them. */
    const char *const *arguments;
    /* Name of the supervisor; NULL: HOST-PORT of its first slot. */
    const char *id;
    /* Where its processes listen and are reached. */
    const char *host;
    /* Folder below which supervisors keep a file each, and folder of all logs. */
    const char *folder;
    const char *logs;
    /* Ports from the first to the last are slots. */
    uint32_t first_port;
    uint32_t last_port;
    /* What all slots together have. */
    double cpu_cores;
    double ram_bytes;
    /* It keeps what it runs and takes nothing new. */
    bool is_drained;
    const char *secret;
    size_t secret_len;
};
