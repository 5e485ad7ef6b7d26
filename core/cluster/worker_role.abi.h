/*
 * The role of a worker process for Lua: see cluster/worker_role.h. Bare text: C includes it through
 * cluster/worker_role.h, LuaJIT reads it as a cdef.
 */

/* What the role asks of the worker's owner, or tells it, by SL_EVENT_ROLE. */
enum sl_worker_ask {
    /*
     * Run this plan, and answer when its tasks of this container run. Lines of words:
     *   plan VERSION 1|0 [held]   1 = spouts are called; held: as SL_ASK_SPOUTS says
     *   container ID IDENTITY     in hexadecimal; - while nobody is registered for it
     *   task ID COMPONENT INDEX CONTAINER
     *   coming ID COMPONENT INDEX CONTAINER   of the next plan: to be made ready, when it can be
     *   groups COMPONENT TASK...  the owner of each key group, from 0
     */
    SL_ASK_PLAN = 1,
    /*
     * Call spouts ("1") or not ("0", "0 held", "0 way"), and answer when that is so. While it is
     * held bolts do not tick, and tasks that are opened begin nothing; with "way" it is held, too,
     * and a bolt begins with a tuple only when nothing that it has emitted is under way.
     */
    SL_ASK_SPOUTS = 2,
    /* End the process, in order: the text is an exit code, a space, and the reason. No answer. */
    SL_ASK_END = 3,
    /* Other workers were connected or lost: "CONNECTED ALL". No answer. */
    SL_ASK_PEERS = 4,
    /*
     * Give state: "COMPONENT TASK CURSOR", a line end, the key groups with blanks between (TASK 0:
     * of their owners). The answer follows the pieces (sl_abi_worker_role_piece); its text is the
     * next cursor, "" for the end. CURSOR "size": no pieces, the text is the bytes of all of them.
     */
    SL_ASK_EXPORT = 5,
    /*
     * With drains_owner: answer when nothing is in flight that the owner knows of. "1", with or
     * without it: the topology is going to be killed, so what was received has to be processed
     * before, and what fails is emitted again.
     */
    SL_ASK_DRAIN = 7,
};

/* How a role is made. */
struct sl_worker_role_options {
    const char *topology;
    int32_t container;
    /* Where it listens, for data and control: a host name or address without a port. */
    const char *host;
    /* 0 = the system chooses. */
    int32_t data_port;
    /* The supervisor that started it, and the port of its slot; NULL and 0: none. */
    const char *supervisor;
    int32_t slot_port;
    /* Of the state manager; NULL = there is no topology master, its owner tells the role the peers.
     */
    const char *state_url;
    /* The cluster's secret, NULL and 0 without one. */
    const char *secret;
    size_t secret_len;
    /* Bytes that name this process, all 0 = to be drawn. */
    uint8_t identity[16];
    /* 1: what is in flight is known to the owner and not to the executors, which do not run. */
    int32_t drains_owner;
    /* The process ends when it has not had a topology master for so long. */
    double no_master_ms;
    /* Of a local topology: where its logs are, and the path of streamlua. The worker starts a
     * guardian when there is neither one nor a topology master. NULL: it does not. */
    const char *logs;
    const char *program;
};

/* A state of a task that has come for a plan; the texts are valid until the next one is asked for.
 */
struct sl_staged {
    const char *component;
    const char *state;
    int32_t task;
    /* The receiver's, to be ended by sl_keyed_free. */
    struct sl_keyed *entries;
};

/* The code of a topology, written to files. */
struct sl_unpacked {
    /* Path of the script. */
    const char *script;
    /* Canonical text of the config over the script's own and of the one below it. */
    const char *overrides;
    size_t overrides_size;
    const char *defaults;
    size_t defaults_size;
};
