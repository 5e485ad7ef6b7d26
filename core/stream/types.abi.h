/*
 * Shapes of the hot path that the C engine and the Lua drivers share: values, records, outboxes,
 * tasks, turns.  Bare text: C includes it through stream/types.h, LuaJIT reads it as a cdef.
 */

/* One field of a record: 16 bytes. */
struct sl_slot {
    /*
     * enum sl_value_tag or sl_slot_tag; the bytes of strings and tables lie behind the slots of the
     * record.
     */
    int32_t tag;
    /* Bytes of a string, or of the encoding of a table; see sl_slot_tag; else undefined. */
    int32_t len;
    union {
        double number;
        int64_t i64;
        uint64_t u64;
        /* Of a string or table: bytes from the start of the record. */
        int64_t offset;
    };
};

enum sl_slot_tag {
    /*
     * A string that did not have to be copied, since it stays in one Lua state: `len` is its index
     * in the batch's list of texts, which the Lua half keeps. The record has room for its bytes all
     * the same, so that memory under way is bounded by the sizes of batches.
     */
    SL_SLOT_TEXT = 64,
    /*
     * A key that was sent to this receiver before: `len` is its number among the known keys of the
     * batch, and the record has no room for its bytes.
     */
    SL_SLOT_KEY = 65,
};

/* A root of the tuple tree and the edge by which a tuple hangs on it. */
struct sl_pair {
    uint64_t root;
    uint64_t edge;
};

/*
 * A flat tuple:  | len anchors | root edge | slot 0 .. slot n-1 | bytes, each 8-aligned | pairs |
 * The first pair is in the header, `anchors - 1` further ones are the last bytes of the record.
 */
struct sl_record {
    /* Bytes of the whole record, a multiple of 8. */
    int32_t len;
    /* How many roots it hangs on; 0 = untracked, then root and edge are undefined. */
    int32_t anchors;
    uint64_t root;
    uint64_t edge;
    struct sl_slot slots[];
};

/* Records of one stream from one task to another, handed over as a whole. */
struct sl_batch {
    /* First record not yet executed and the end of the last one. */
    uint8_t *head;
    uint8_t *tail;
    /* Records from head to tail. */
    int32_t count;
    /* Ids of the emitting and of the receiving task. */
    int32_t source;
    int32_t dest;
    /* Index of the stream in the worker. */
    int32_t stream;
};

/* Where one task writes the records of one stream for one other task. */
struct sl_outbox {
    /* The next record goes to pos; it must end at limit or before. NULL without a buffer. */
    uint8_t *pos;
    uint8_t *limit;
    /* Records in the buffer. */
    int32_t count;
    /* Id of the receiving task. */
    int32_t dest;
    /* Number of the buffer's list of texts and how many are in it; 0 = strings are copied. */
    int32_t texts;
    int32_t text_count;
    /* 1 = the receiver is on the same executor; in another process. */
    int32_t is_near;
    int32_t is_remote;
};

/*
 * The way of a string key is one number: the position of its receiver among the targets of the
 * route, and in the lowest SL_WAY_BITS the number by which the receiver knows the key (0 = its
 * bytes have to be sent).
 */
enum sl_way_limits {
    SL_WAY_BITS = 14,
    /* Most keys that a route numbers, and the most bytes of one. */
    SL_WAY_KEYS_MOST = 8192,
    SL_WAY_KEY_BYTES_MOST = 64,
};

/* The way from one task's stream to the tasks of one reader. */
struct sl_route {
    /* enum sl_grouping_kind. */
    int32_t grouping;
    /* Index of the reading component. */
    int32_t component;
    /* Outboxes in ascending order of task id. */
    int32_t target_count;
    /* Positions (from 0) of the key fields. */
    int32_t key_count;
    int32_t keys[64];
    struct sl_outbox **targets;
};

/* Everything one task needs to emit to one of its streams. */
struct sl_emitter {
    /* Index of the stream in the worker; number of its fields. */
    int32_t stream;
    int32_t field_count;
    int32_t is_direct;
    int32_t route_count;
    struct sl_route *routes;
    /* The outboxes chosen for the tuple being emitted (general path only). */
    int32_t target_count;
    struct sl_outbox **targets;
};

enum sl_task_kind {
    SL_TASK_SPOUT = 0,
    SL_TASK_BOLT = 1,
    SL_TASK_ACKER = 2,
};

/* The part of a task that its Lua driver reads and writes; C keeps more behind it. */
struct sl_task {
    /* The record being executed; between records one without anchors. */
    struct sl_record *record;
    /* XOR of the edges of tuples emitted so far with the record's only root as their anchor. */
    uint64_t pending;
    /* Set when the driver should return after the current tuple. */
    int32_t yield;
    /* Emit calls of the current turn; folded into `emitted` when it ends. */
    int32_t emits;
    /* Spouts: 1 = no root slot is free. */
    int32_t is_full;
    /* Spouts: 1 = completed roots are listed for ack and fail, 0 = they are only counted. */
    int32_t wants_acks;
    /* Spouts: completed roots not yet taken, each slot * 2 + (1 when failed). */
    int32_t done_count;
    int32_t *done;
    /* Spouts: failed roots that wait to be emitted again. */
    int32_t replaying;
    /* Bolts: 1 = tuples are acked by the user. */
    int32_t manual_ack;
    int32_t id;
    int32_t index;
    /* Index of the component in the worker. */
    int32_t component;
    /* enum sl_task_kind. */
    int32_t kind;
    /* Totals since the task was attached. */
    double emitted;
    double executed;
    double acked;
    double failed;
    double errors;
};

enum sl_turn_kind {
    /* Nothing to do now (only without blocking). */
    SL_TURN_NONE = 0,
    /* Run `count` records from `head` on through the bolt's driver. */
    SL_TURN_BATCH = 1,
    /* Call next_tuple up to `count` times. */
    SL_TURN_SPOUT = 2,
    /* Tell the spout of the completed roots. */
    SL_TURN_ACKS = 3,
    /* Call tick; `now_ms` is the nominal time. */
    SL_TURN_TICK = 4,
    /* All inputs have finished: call finish. */
    SL_TURN_FINISH = 5,
    /* A command of the worker's owner: `command`, `argument`. */
    SL_TURN_COMMAND = 6,
    /* The awaited outbox has room. */
    SL_TURN_READY = 7,
};

enum sl_command {
    /* Open every attached task that is not open and call activate on the spouts. */
    SL_COMMAND_ACTIVATE = 1,
    SL_COMMAND_DEACTIVATE = 2,
    /* Attach, open and route the task `argument`. */
    SL_COMMAND_ADD_TASK = 3,
    /*
     * Clean up the task `argument` and detach it. The executor is handed this command when the task
     * is drained, as late as that is.
     */
    SL_COMMAND_REMOVE_TASK = 4,
    /* Build the routes of all attached tasks anew. */
    SL_COMMAND_ROUTES = 5,
    /* Spouts emit no more and count as DONE. */
    SL_COMMAND_DRAIN = 6,
    /* Clean up all tasks and leave. */
    SL_COMMAND_STOP = 7,
    /* Do what the text of the command says; see streamlua.runtime.told. */
    SL_COMMAND_TELL = 8,
};

/* What an executor keeps back. */
enum sl_hold {
    SL_HOLD_NOTHING = 0,
    /* No task ticks. */
    SL_HOLD_TICKS = 1,
    /* Nor does one run while anything that it has emitted is under way, cycles apart. */
    SL_HOLD_TICKS_AND_WAY = 2,
};

/* What an executor should do next. */
struct sl_turn {
    /* enum sl_turn_kind. */
    int32_t kind;
    /* Id of the task it concerns. */
    int32_t task;
    int32_t count;
    /* enum sl_command and its argument. */
    int32_t command;
    int32_t argument;
    /* SL_TURN_BATCH: the first record, who emitted it, on which stream. */
    int32_t source;
    int32_t stream;
    uint8_t *head;
    struct sl_batch *batch;
    /* Number of the batch's list of texts; 0 = it has none. */
    int32_t texts;
    /* Number, in this worker, of the set of keys that the batch's records name; 0 = none. */
    int32_t known;
    double now_ms;
};

/* How a call of next_tuple ended. */
enum sl_spout_result {
    SL_SPOUT_EMITTED = 0,
    SL_SPOUT_NOTHING = 1,
    SL_SPOUT_DONE = 2,
};

/* What sl_outbox_flush did. */
enum sl_flush_result {
    /* There is room now. */
    SL_FLUSH_OK = 0,
    /* There is room now, and the receiver is on this executor: run it nested. */
    SL_FLUSH_RUN = 1,
    /* The receiver has too much queued: wait for it. */
    SL_FLUSH_WAIT = 2,
};

/* What an executor tells the owner of its worker. */
enum sl_event_kind {
    /* All tasks of the executor have finished. */
    SL_EVENT_FINISHED = 1,
    /* The executor's Lua is loaded and takes commands. */
    SL_EVENT_READY = 2,
    /* The executor could not start or a task could not open; `text` says why. */
    SL_EVENT_BROKEN = 3,
    /* User code raised, or reported an error; `text` is the message. */
    SL_EVENT_ERROR = 4,
    /* A command has been carried out; `task` is its argument, `text` is empty or says why not. */
    SL_EVENT_DONE = 5,
    /* A document about the executor, made for the summary. */
    SL_EVENT_REPORT = 6,
    /* The executor's thread has ended. */
    SL_EVENT_STOPPED = 7,
    /* A signal has arrived; `task` is its number. */
    SL_EVENT_SIGNAL = 8,
    /* An executor that had reported FINISHED has work again: tasks were added before its own. */
    SL_EVENT_RESUMED = 9,
    /* What SL_COMMAND_TELL gave; `task` is its argument. */
    SL_EVENT_TOLD = 10,
    /* The role of a worker process asks or says something: `task` is an enum sl_worker_ask,
     * `executor` the number of the request. */
    SL_EVENT_ROLE = 11,
};

/* An event; `text` belongs to the worker until the next event is taken. */
struct sl_event {
    /* enum sl_event_kind; 0 = none. */
    int32_t kind;
    /* Task or executor it concerns; -1 = none. */
    int32_t task;
    int32_t executor;
    int32_t text_len;
    const char *text;
};

/* How a worker is made. */
struct sl_worker_options {
    int32_t executors;
    /* 1 = track roots. */
    int32_t is_acking;
    double message_timeout_ms;
    int32_t max_spout_pending;
    /* Highest task id plus 1 that will ever exist. */
    int32_t task_capacity;
    /* Most spout tasks and acker tasks that will ever exist. */
    int32_t spout_capacity;
    int32_t acker_capacity;
    /* Bytes of a batch, batches under way per outbox, bytes of all batches of an executor. */
    int32_t batch_bytes;
    int32_t credit;
    double pool_bytes;
    /* 1 = time moves only by sl_worker_advance. */
    int32_t is_manual_clock;
    double manual_start_ms;
    /* 0 = from the operating system. */
    uint64_t seed;
    /* Bytes that each other process may have under way to one task here, at least 4096; 0 = all
     * tasks are in this one. See stream/remote.h. Roots name their spout by its task id then, which
     * has to be below 65536. */
    int32_t remote_window;
};

/* What is known of a task from outside; counters may lag behind by a turn. */
struct sl_task_stats {
    int32_t task;
    int32_t component;
    int32_t index;
    int32_t executor;
    double emitted;
    double executed;
    double acked;
    double failed;
    double errors;
    /* Records in its input, without what is on its way there. */
    double queued;
    double pending;
    /* Of spouts from the emit of the last completed root to its end, of bolts of one execute; 0 =
     * not known. */
    double latency_ns;
};

/* Where a task of the plan belongs. */
struct sl_planned {
    int32_t task;
    int32_t component;
    int32_t index;
    int32_t executor;
};

/* The user code that an executor is in: task -1 = none. */
struct sl_busy {
    int32_t task;
    int32_t executor;
    double for_ms;
};
