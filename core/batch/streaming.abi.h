/*
 * What C and Lua share of micro-batches: the context that decides what happens when, the work it
 * hands to its driver, and the reports of batches. This is a bare header.
 *
 * All times are milliseconds since the epoch, all durations milliseconds. Texts are
 * NUL-terminated; those of a struct that C fills are borrowed until the next call on that object.
 */

/* A streaming context: graph, job generator, job scheduler, receivers, blocks, checkpoints. */
struct sl_streaming;

/* A clock that moves only when told. */
struct sl_streaming_clock;

enum {
    /* A time that is not known (yet), or a duration that is not set. */
    SL_STREAMING_UNKNOWN = -1,
};

/* The state of a context. */
enum sl_streaming_state {
    SL_STREAMING_INITIALIZED,
    SL_STREAMING_ACTIVE,
    SL_STREAMING_STOPPED,
};

/* Settings of a context; sl_abi_streaming_options_default fills in the defaults. Texts are copied.
 */
struct sl_streaming_options {
    /* Name of the program. */
    const char *name;
    /* Batch interval, > 0. */
    int64_t batch_ms;
    /* Shift of the time grid against the epoch, 0 <= phase < batch. */
    int64_t phase_ms;
    /* Checkpoint directory, made at once; NULL = no checkpoints. */
    const char *checkpoint_dir;
    /* Path of the script and a text that identifies its content; both may be NULL. */
    const char *script;
    const char *script_hash;
    /* How long a graceful stop may take in each of its phases; UNKNOWN = 10 batches. */
    int64_t graceful_timeout_ms;
    /* How long a graceful stop waits for jobs that still run at the end; 1 h. */
    int64_t final_timeout_ms;
    /* Cut of received blocks, > 0. */
    int64_t block_interval_ms;
    /* Pause before a receiver that failed is started again. */
    int64_t receiver_restart_ms;
    /* How far a WAL file reaches before the next one starts. */
    int64_t wal_rolling_ms;
    /* Output operations of one batch that may run at once, >= 1. */
    int32_t concurrent_jobs;
    /* Batches that are made up at once when the wall clock jumps forward; the others are skipped.
     */
    int32_t catch_up_max;
    /* Completed batches kept for progress. */
    int32_t retained_batches;
    /* Checkpoint files kept, backups counted. */
    int32_t checkpoint_keep;
    /* At a restart run pending batches only, not those of the down-time. */
    int32_t skip_down_time;
    /* Publish rates to receivers. */
    int32_t back_pressure;
    /* Records per second and receiver; <= 0 = unlimited. */
    double max_rate;
    double initial_rate;
    /* Gains of the rate estimator, >= 0, and its least rate, > 0. */
    double proportional;
    double integral;
    double derived;
    double min_rate;
};

/* What a node of the graph is; flags of struct sl_streaming_node. */
enum sl_streaming_node_flag {
    /* A source: it gets the next input id. */
    SL_STREAMING_INPUT = 1,
    /* With SL_STREAMING_INPUT: records come from a receiver. */
    SL_STREAMING_RECEIVER = 2,
    /* An output operation: jobs are made for it, in order of declaration. */
    SL_STREAMING_OUTPUT = 4,
    /* Its datasets are kept (a storage level is set). */
    SL_STREAMING_PERSIST = 8,
    /* Its datasets must be checkpointed (state, incremental windows). */
    SL_STREAMING_MUST_CHECKPOINT = 16,
    /* A state that must be found again at a restart. */
    SL_STREAMING_STATEFUL = 32,
    /* The texts of its saved datasets are names of files to be deleted when they are old. */
    SL_STREAMING_OWNS_FILES = 64,
};

/* A stream of the graph, as it is declared and as it is now. */
struct sl_streaming_node {
    /* Unique within the graph; state is found again by it. */
    const char *name;
    /* Where it was defined, "file:line"; may be NULL. */
    const char *call_site;
    /* Interval at which it produces; a multiple of the batch interval for inputs. */
    int64_t slide_ms;
    /* What its parents must remember beyond its own remember duration (a window's length), or 0. */
    int64_t window_ms;
    /* Remember duration; 0 = not set. */
    int64_t remember_ms;
    /* Checkpoint interval; 0 = not set. */
    int64_t checkpoint_ms;
    /* Nodes it is made from. */
    const int32_t *parents;
    int32_t parent_count;
    /* enum sl_streaming_node_flag. */
    uint32_t flags;
    /* Number among the inputs, from 0; UNKNOWN for others. Filled in by C. */
    int32_t input_id;
    /* 1 when an output needs it and the context has started. Filled in by C. */
    int32_t is_initialized;
};

/* What sl_abi_streaming_find found. */
enum sl_streaming_found {
    /* The stream has no dataset at this time. */
    SL_STREAMING_NOTHING,
    /* Made before: the handle is there. */
    SL_STREAMING_FOUND,
    /* To be computed now and reported with sl_abi_streaming_put. */
    SL_STREAMING_COMPUTE,
};

/* What is to become of a dataset; flags of struct sl_streaming_dataset. */
enum sl_streaming_mark {
    SL_STREAMING_MARK_PERSIST = 1,
    SL_STREAMING_MARK_CHECKPOINT = 2,
};

/* A dataset of one node at one time. */
struct sl_streaming_dataset {
    int64_t time;
    /* The driver's number for it, > 0. */
    uint64_t handle;
    /* enum sl_streaming_mark. */
    uint32_t marks;
};

/* A saved dataset of a node: what a restart needs to have it again. */
struct sl_streaming_saved {
    int64_t time;
    /* A file name, or any text of the driver's. */
    const char *text;
};

/* Work for the driver. */
enum sl_streaming_work_kind {
    /* Nothing to do before clock time `time` (UNKNOWN: before something is reported). */
    SL_STREAMING_WORK_NONE,
    /* Start the receiver of input `node` on worker `id`; report sl_abi_streaming_receiver_*. */
    SL_STREAMING_WORK_START_RECEIVER,
    /* Ask the receiver of input `node`, if it runs, to end; report sl_abi_streaming_receiver_ended.
     */
    SL_STREAMING_WORK_STOP_RECEIVER,
    /* Start the inputs that have no receiver; `time` is the zero time. */
    SL_STREAMING_WORK_START_INPUTS,
    /* Stop the inputs that have no receiver. */
    SL_STREAMING_WORK_STOP_INPUTS,
    /*
     * Generate the jobs of batch `time`: for each output in order compute its dataset, report what
     * has one with sl_abi_streaming_job_add, then call sl_abi_streaming_generated.
     */
    SL_STREAMING_WORK_GENERATE,
    /* Run job `id`: output operation `node`, `output` in its set, batch `time`; then call
       sl_abi_streaming_job_end. */
    SL_STREAMING_WORK_RUN_JOB,
    /* Dataset `id` of `node` at `time` is not needed any more. */
    SL_STREAMING_WORK_DROP,
    /* The data of block `id` of input `node` is not needed any more. */
    SL_STREAMING_WORK_DROP_BLOCK,
    /* Logs of received data of input `node` that end before `time` are not needed any more. */
    SL_STREAMING_WORK_CLEAN_LOG,
    /*
     * Save the datasets of all stateful nodes at `time` (a graceful stop), whatever their interval:
     * report each with sl_abi_streaming_saved, then call sl_abi_streaming_state_saved.
     */
    SL_STREAMING_WORK_SAVE_STATE,
    /* Write checkpoint `time`: call sl_abi_streaming_checkpoint_write. */
    SL_STREAMING_WORK_CHECKPOINT,
    /* The receiver of input `node` may take `rate` records per second from now on. */
    SL_STREAMING_WORK_RATE,
    /* Tell the listeners of the event `event`; what it is about: sl_abi_streaming_report. */
    SL_STREAMING_WORK_EVENT,
    /* All is stopped; comes again and again. */
    SL_STREAMING_WORK_STOPPED,
};

/* Events for listeners. */
enum sl_streaming_event {
    /* `time` of the report is when it started. */
    SL_STREAMING_EVENT_STARTED,
    /* About a batch: the report's own fields, inputs and operations. */
    SL_STREAMING_EVENT_BATCH_SUBMITTED,
    SL_STREAMING_EVENT_BATCH_STARTED,
    SL_STREAMING_EVENT_BATCH_COMPLETED,
    /* About one output operation: `time` and operations[0]. */
    SL_STREAMING_EVENT_OPERATION_STARTED,
    SL_STREAMING_EVENT_OPERATION_COMPLETED,
    /* About a receiver: the report's receiver. */
    SL_STREAMING_EVENT_RECEIVER_STARTED,
    SL_STREAMING_EVENT_RECEIVER_ERROR,
    SL_STREAMING_EVENT_RECEIVER_STOPPED,
};

struct sl_streaming_work {
    /* Batch or clock time. */
    int64_t time;
    /* A job, a dataset handle, a block or a worker. */
    uint64_t id;
    double rate;
    /* enum sl_streaming_work_kind. */
    uint32_t kind;
    int32_t node;
    int32_t output;
    /* enum sl_streaming_event. */
    uint32_t event;
};

/* Records of one input in a batch. */
struct sl_streaming_input {
    int64_t records;
    /* What the input said about them (file names), "" if nothing. */
    const char *metadata;
    int32_t input_id;
    int32_t node;
};

/* An output operation of a batch. */
struct sl_streaming_operation {
    const char *name;
    /* "file:line" of the output operation, "" when not known. */
    const char *call_site;
    /* Error text, NULL while or when it did not fail. */
    const char *failure_reason;
    /* UNKNOWN as long as it has not started or ended. */
    int64_t start;
    int64_t end;
    /* Number in the job set, from 0. */
    int32_t id;
    int32_t node;
};

/* A receiver as of an event. */
struct sl_streaming_receiver {
    const char *name;
    const char *worker;
    const char *last_error;
    int64_t last_error_time;
    int32_t input_id;
    int32_t node;
    int32_t is_active;
};

/* A batch as it was at one moment, or another event. Times are UNKNOWN as long as they are not
   known. */
struct sl_streaming_report {
    int64_t time;
    int64_t records;
    int64_t submission_time;
    int64_t processing_start;
    int64_t processing_end;
    int64_t scheduling_delay_ms;
    int64_t processing_delay_ms;
    int64_t total_delay_ms;
    const struct sl_streaming_input *inputs;
    const struct sl_streaming_operation *operations;
    struct sl_streaming_receiver receiver;
    int32_t input_count;
    int32_t operation_count;
};

/* Counters of a context. */
struct sl_streaming_progress {
    int64_t started_at;
    int64_t received_records;
    int64_t processed_records;
    int64_t completed_batches;
    int64_t failed_batches;
    /* Submitted and not started; started and not completed. */
    int64_t waiting_batches;
    int64_t running_batches;
    int64_t retained_batches;
    /* Ticks that a jump of the wall clock left out. */
    int64_t skipped_batches;
    /* The batch that completed last, and whether processing has stayed above the interval. */
    int64_t last_completed;
    int64_t last_processing_delay_ms;
    int64_t last_total_delay_ms;
    int32_t receivers;
    int32_t active_receivers;
    /* Batches in a row whose processing took longer than the interval. */
    int32_t slow_batches;
};

/* A received block as the tracker knows it: where its records are, not the records. */
struct sl_streaming_block {
    /* The receiver's number for it, unique within its input; adding it twice counts once. */
    uint64_t id;
    int64_t records;
    /* Where the data is: the worker that holds it, "" if unknown. */
    const char *worker;
    /* Its record in the data WAL; path "" when there is none. */
    const char *wal_path;
    int64_t wal_offset;
    int64_t wal_length;
    /* 0 after a restart: the memory that held it is gone, only the WAL has it. */
    int32_t is_valid;
};

/* What a checkpoint file says. */
struct sl_checkpoint_info {
    int64_t time;
    int64_t zero_time;
    int64_t batch_ms;
    const char *path;
    const char *name;
    const char *script;
    const char *script_hash;
    /* The driver's own section. */
    const uint8_t *extra;
    int64_t extra_len;
    int32_t pending_count;
};

/* A recurring timer, a read checkpoint, a block generator, a rate estimator, a write-ahead log. */
struct sl_recurring_timer;
struct sl_checkpoint;
struct sl_block_generator;
struct sl_pid;
struct sl_wal;

/* A record of a write-ahead log. */
struct sl_wal_segment {
    int64_t offset;
    int64_t length;
    /* Valid until the next write. */
    const char *path;
};

/* A block that a generator has cut. */
struct sl_block_data {
    uint64_t id;
    int64_t records;
    /* Encoded values one after the other; valid until the next sl_block_generator_pull. */
    const uint8_t *bytes;
    int64_t len;
};
