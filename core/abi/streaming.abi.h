/*
 * Micro-batches for Lua: the driver asks a context for its next work, does it and reports back.
 * Functions marked "any thread" may be called from any; all others from the driver's thread alone.
 * No function waits except sl_abi_streaming_wait. This is a bare header.
 *
 * Functions that return int32_t and do not say otherwise return 0 or a negative code with the
 * record of the error set: SL_EINVAL for arguments that make no sense (NULL, unknown node), and
 * what they name.
 */

/* Returns the greatest multiple of duration (> 0) counted from zero that is <= time; division
   truncates. */
double sl_abi_time_floor(int64_t time, int64_t duration, int64_t zero);

/* Returns 1 when time is a multiple of duration (> 0), else 0. */
int32_t sl_abi_time_is_multiple(int64_t time, int64_t duration);

/* Makes a manual clock that shows start_ms; to be freed with sl_abi_streaming_clock_free. */
struct sl_streaming_clock *sl_abi_streaming_clock_new(int64_t start_ms);

/* Frees a clock; contexts and timers that use it must be gone. NULL is fine. */
void sl_abi_streaming_clock_free(struct sl_streaming_clock *clock);

/* Returns the time of a manual clock, or of the system's when clock is NULL. Any thread. */
double sl_abi_streaming_clock_now(const struct sl_streaming_clock *clock);

/* Sets a manual clock, forward or backward. Any thread. */
void sl_abi_streaming_clock_set(struct sl_streaming_clock *clock, int64_t time);

/*
 * Makes a timer of this period (> 0) on a clock (NULL: the system's), to be freed with
 * sl_abi_recurring_timer_free. NULL with SL_EINVAL.
 */
struct sl_recurring_timer *sl_abi_recurring_timer_new(struct sl_streaming_clock *clock,
                                                      int64_t period_ms);

/* Frees a timer; NULL is fine. */
void sl_abi_recurring_timer_free(struct sl_recurring_timer *timer);

/* Returns the first multiple of the period after now. */
double sl_abi_recurring_timer_start_time(struct sl_recurring_timer *timer);

/* Returns the first time after now on the grid of the period through `original`. */
double sl_abi_recurring_timer_restart_time(struct sl_recurring_timer *timer, int64_t original);

/* Starts ticking at time `start`. SL_ECONFLICT when it was started before. */
int32_t sl_abi_recurring_timer_start(struct sl_recurring_timer *timer, int64_t start);

/* Returns the nominal time of a tick that is due and counts it as fired, or UNKNOWN. */
double sl_abi_recurring_timer_next(struct sl_recurring_timer *timer);

/* Returns the clock time of the next tick, or UNKNOWN when there will be none. */
double sl_abi_recurring_timer_due(struct sl_recurring_timer *timer);

/*
 * Stops. With interrupt != 0 at once: returns the last nominal time that fired (UNKNOWN if none).
 * Else the tick being waited for still fires and UNKNOWN is returned;
 * sl_abi_recurring_timer_stopped tells when it has.
 */
double sl_abi_recurring_timer_stop(struct sl_recurring_timer *timer, int32_t interrupt);

/* Returns the last nominal time that fired once the timer has stopped, UNKNOWN before. */
double sl_abi_recurring_timer_stopped(struct sl_recurring_timer *timer);

/*
 * Makes a rate estimator ("pid"). NULL with SL_EINVAL for batch_ms <= 0, a negative gain or
 * min_rate <= 0. To be freed with sl_abi_pid_free.
 */
struct sl_pid *sl_abi_pid_new(int64_t batch_ms, double proportional, double integral,
                              double derived, double min_rate);

/* Frees an estimator; NULL is fine. */
void sl_abi_pid_free(struct sl_pid *pid);

/*
 * Takes a completed batch (end of processing, records, two delays in ms). Returns the new rate in
 * records per second, or UNKNOWN for none.
 */
double sl_abi_pid_compute(struct sl_pid *pid, int64_t time, int64_t records, int64_t processing_ms,
                          int64_t scheduling_ms);

/* Fills in the defaults. */
void sl_abi_streaming_options_default(struct sl_streaming_options *options);

/*
 * Makes a context on a clock (NULL: the system's), to be freed with sl_abi_streaming_free. NULL
 * with SL_EINVAL naming the option, SL_ESYS when the checkpoint directory can not be made.
 */
struct sl_streaming *sl_abi_streaming_new(const struct sl_streaming_options *options,
                                          struct sl_streaming_clock *clock);

/* Frees a context, stopped or not; files that are being written are finished. NULL is fine. */
void sl_abi_streaming_free(struct sl_streaming *context);

/* Returns enum sl_streaming_state. */
int32_t sl_abi_streaming_state(struct sl_streaming *context);

/* Sets the checkpoint directory (made at once), or NULL for none. SL_ECONFLICT after start. */
int32_t sl_abi_streaming_checkpoint_dir(struct sl_streaming *context, const char *dir);

/* Sets the remember duration of all outputs. SL_ECONFLICT when called twice or after start. */
int32_t sl_abi_streaming_remember(struct sl_streaming *context, int64_t remember_ms);

/*
 * Adds a stream to the graph (its fields up to flags; parents must exist). Returns its number,
 * from 0. SL_ECONFLICT after start or stop (the text says which) and for a restored context,
 * SL_EEXIST for a name that is taken, SL_EINVAL for a slide or window that is no multiple of its
 * parents' slide, or parents of different slides.
 */
int32_t sl_abi_streaming_node_add(struct sl_streaming *context,
                                  const struct sl_streaming_node *node);

/* Gives a node another name before start. SL_EEXIST when it is taken. */
int32_t sl_abi_streaming_node_name(struct sl_streaming *context, int32_t node, const char *name);

/* Raises the remember duration of a node (never lowers it) before start. */
int32_t sl_abi_streaming_node_remember(struct sl_streaming *context, int32_t node, int64_t ms);

/* Sets the checkpoint interval of a node and that it persists. SL_ECONFLICT after start. */
int32_t sl_abi_streaming_node_checkpoint(struct sl_streaming *context, int32_t node, int64_t ms);

/* Sets or clears that a node persists. SL_ECONFLICT after start. */
int32_t sl_abi_streaming_node_persist(struct sl_streaming *context, int32_t node, int32_t is_on);

/* Fills in a node as it is now. */
int32_t sl_abi_streaming_node_get(struct sl_streaming *context, int32_t node,
                                  struct sl_streaming_node *out);

/* Returns the number of nodes. */
int32_t sl_abi_streaming_node_count(struct sl_streaming *context);

/*
 * Adds a worker that can run receivers, with its number of slots; the first one has id 0. Workers
 * that can run nothing more are taken out with sl_abi_streaming_worker_remove.
 */
int32_t sl_abi_streaming_worker_add(struct sl_streaming *context, const char *name,
                                    const char *host, int32_t slots);

/* Takes a worker out: its receivers are placed elsewhere. */
int32_t sl_abi_streaming_worker_remove(struct sl_streaming *context, int32_t worker);

/* Sets the host on which the receiver of an input wants to run. */
int32_t sl_abi_streaming_preferred_host(struct sl_streaming *context, int32_t node,
                                        const char *host);

/*
 * Takes over a checkpoint: zero time, batch interval, pending batches, and the saved datasets of
 * nodes with the same names. All nodes must have been added. SL_ECONFLICT names a stateful node of
 * the checkpoint that is missing (allowed with drop_missing != 0), or a batch interval that
 * differs.
 */
int32_t sl_abi_streaming_restore(struct sl_streaming *context,
                                 const struct sl_checkpoint *checkpoint, int32_t drop_missing);

/*
 * Validates and starts. SL_EINVAL with the first rule that is broken (no output operation, a
 * checkpoint interval without a directory, ...), SL_EUNSATISFIABLE when there are not more slots
 * than receivers, SL_ECONFLICT when it was stopped; 1 when it is active already.
 */
int32_t sl_abi_streaming_start(struct sl_streaming *context);

/* Begins a stop, graceful or not; the driver goes on until SL_STREAMING_WORK_STOPPED. A graceful
   stop can be turned into an immediate one. Returns 1 when it was stopped already. Any thread. */
int32_t sl_abi_streaming_stop(struct sl_streaming *context, int32_t graceful);

/* Stores the next work in *work and returns its kind. */
int32_t sl_abi_streaming_next(struct sl_streaming *context, struct sl_streaming_work *work);

/*
 * Waits until there may be work, sl_abi_streaming_wake is called, or max_ms passed. With a manual
 * clock due times do not end the wait. Returns at once when there is work.
 */
void sl_abi_streaming_wait(struct sl_streaming *context, int64_t max_ms);

/* Ends a sl_abi_streaming_wait, also one that begins later. Any thread. */
void sl_abi_streaming_wake(struct sl_streaming *context);

/* Returns what the event of the last work is about; valid until the next sl_abi_streaming_next. */
const struct sl_streaming_report *sl_abi_streaming_report(struct sl_streaming *context);

/* Returns the zero time, UNKNOWN before start. */
double sl_abi_streaming_zero_time(struct sl_streaming *context);

/* Returns 1 when no batch is being generated, waits or runs, else 0. */
int32_t sl_abi_streaming_is_idle(struct sl_streaming *context);

/*
 * Looks up the dataset of a node at a time. Returns enum sl_streaming_found with *out filled in
 * as far as it applies. SL_ECONFLICT when the stream was never initialised.
 */
int32_t sl_abi_streaming_find(struct sl_streaming *context, int32_t node, int64_t time,
                              struct sl_streaming_dataset *out);

/* Remembers the dataset (handle > 0) that was computed for a node at a time. SL_EEXIST when there
   is one. */
int32_t sl_abi_streaming_put(struct sl_streaming *context, int32_t node, int64_t time,
                             uint64_t handle);

/* Returns how many datasets a node holds, and stores up to max of them, in order of time. */
int32_t sl_abi_streaming_datasets(struct sl_streaming *context, int32_t node,
                                  struct sl_streaming_dataset *out, int32_t max);

/* Reports the records of an input in a batch. SL_EEXIST for a second report. metadata may be NULL.
 */
int32_t sl_abi_streaming_input_report(struct sl_streaming *context, int32_t node, int64_t time,
                                      int64_t records, const char *metadata);

/* Within a generation: output `node` has a job. Returns its number in the set. */
int32_t sl_abi_streaming_job_add(struct sl_streaming *context, int64_t time, int32_t node);

/* Ends the generation of a batch; error NULL when it went well, else the batch is lost. */
int32_t sl_abi_streaming_generated(struct sl_streaming *context, int64_t time, const char *error);

/* Ends a job; error NULL when it went well. SL_ENOTFOUND for an unknown job. Any thread. */
int32_t sl_abi_streaming_job_end(struct sl_streaming *context, uint64_t job, const char *error);

/* Reports that the dataset of a node at a time was saved as `text`; it is part of the checkpoints
   from now on. */
int32_t sl_abi_streaming_saved(struct sl_streaming *context, int32_t node, int64_t time,
                               const char *text);

/* Stores saved dataset `index` of a node in *out; SL_ENOTFOUND past the end. */
int32_t sl_abi_streaming_saved_get(struct sl_streaming *context, int32_t node, int32_t index,
                                   struct sl_streaming_saved *out);

/* Ends SL_STREAMING_WORK_SAVE_STATE. */
int32_t sl_abi_streaming_state_saved(struct sl_streaming *context);

/* Writes the checkpoint that SL_STREAMING_WORK_CHECKPOINT asked for, with the driver's own section;
   it goes to the disk in another thread. */
int32_t sl_abi_streaming_checkpoint_write(struct sl_streaming *context, const uint8_t *extra,
                                          size_t len);

/* Fills in the counters. */
void sl_abi_streaming_progress(struct sl_streaming *context, struct sl_streaming_progress *out);

/* Returns the report of a retained batch, 0 = the newest one that completed; NULL past the end. */
const struct sl_streaming_report *sl_abi_streaming_completed(struct sl_streaming *context,
                                                             int32_t index);

/*
 * A receiver has started on a worker. SL_EINVAL for a node without receiver, SL_ECLOSED when the
 * context stops, SL_EFENCED when it was scheduled to another worker: the receiver must end then.
 */
int32_t sl_abi_streaming_receiver_started(struct sl_streaming *context, int32_t node,
                                          int32_t worker);

/* A receiver reports an error and goes on. */
int32_t sl_abi_streaming_receiver_error(struct sl_streaming *context, int32_t node,
                                        const char *message);

/*
 * A receiver has ended, for whatever reason (message may be NULL); unless the context stops it is
 * started again after delay_ms (UNKNOWN: the setting).
 */
int32_t sl_abi_streaming_receiver_ended(struct sl_streaming *context, int32_t node,
                                        const char *message, int64_t delay_ms);

/*
 * Adds a received block: the log first, then memory. Returns 1 when this block was added before.
 * SL_ECLOSED when the context stops, SL_EIO or SL_ESYS when the log can not be written: the block
 * is not taken then. Any thread.
 */
int32_t sl_abi_streaming_block_add(struct sl_streaming *context, int32_t node,
                                   const struct sl_streaming_block *block);

/* Returns the number of blocks of an input in a batch. */
int32_t sl_abi_streaming_block_count(struct sl_streaming *context, int32_t node, int64_t time);

/* Stores block `index` of an input in a batch in *out; SL_ENOTFOUND past the end. */
int32_t sl_abi_streaming_block_get(struct sl_streaming *context, int32_t node, int64_t time,
                                   int32_t index, struct sl_streaming_block *out);

/*
 * Makes a block generator for a receiver: rates as in the options; ids of blocks never repeat.
 * queue_max blocks wait at most. To be freed with sl_abi_block_generator_free.
 */
struct sl_block_generator *sl_abi_block_generator_new(struct sl_streaming_clock *clock,
                                                      int64_t interval_ms, int32_t queue_max,
                                                      double max_rate, double initial_rate);

/* Frees a generator with what it holds; NULL is fine. */
void sl_abi_block_generator_free(struct sl_block_generator *generator);

/* Starts. SL_ECONFLICT when it was started before. */
int32_t sl_abi_block_generator_start(struct sl_block_generator *generator);

/*
 * Adds records, encoded one after the other; they land in one block together. SL_EAGAIN when the
 * rate does not allow them now (sl_abi_block_generator_retry tells when), SL_ECLOSED when not
 * active. Any thread.
 */
int32_t sl_abi_block_generator_add(struct sl_block_generator *generator, const uint8_t *bytes,
                                   size_t len, int64_t records);

/* Returns in how many ms the next record may be added, 0 = now. Any thread. */
double sl_abi_block_generator_retry(struct sl_block_generator *generator);

/* Takes the next block that is cut and stores it in *out. Returns 1, or 0 when there is none. */
int32_t sl_abi_block_generator_pull(struct sl_block_generator *generator,
                                    struct sl_block_data *out);

/* Returns the clock time of the next cut, UNKNOWN when there will be none. */
double sl_abi_block_generator_due(struct sl_block_generator *generator);

/* Makes a block of what has been added, without waiting for the next cut:
   sl_abi_block_generator_pull gives it. Any thread. */
void sl_abi_block_generator_cut(struct sl_block_generator *generator);

/* Stops taking records; what was added before comes out with sl_abi_block_generator_pull. Stopping
   twice is fine. Any thread. */
void sl_abi_block_generator_stop(struct sl_block_generator *generator);

/* Sets the rate (records per second); rate <= 0 is ignored. Any thread. */
void sl_abi_block_generator_rate(struct sl_block_generator *generator, double rate);

/*
 * Opens the log in a directory; nothing is made on disk before the first write. rolling_ms > 0. To
 * be closed with sl_abi_wal_free.
 */
struct sl_wal *sl_abi_wal_new(const char *dir, int64_t rolling_ms);

/* Closes a log; NULL is fine. */
void sl_abi_wal_free(struct sl_wal *wal);

/* Appends a record at a time; its place in *out. SL_ESYS when it could not be written. */
int32_t sl_abi_wal_write(struct sl_wal *wal, const uint8_t *bytes, size_t len, int64_t time,
                         struct sl_wal_segment *out);

/* Reads one record. Its bytes are valid until the next read of this log; NULL with an error. */
const uint8_t *sl_abi_wal_read(struct sl_wal *wal, const struct sl_wal_segment *segment,
                               size_t *len);

/* Deletes the files that end before a time. */
int32_t sl_abi_wal_clean(struct sl_wal *wal, int64_t threshold);

/*
 * Reads the newest usable checkpoint of a directory, to be freed with sl_abi_checkpoint_free. NULL
 * with SL_ENOTFOUND (no directory or no checkpoint file) or SL_EPROTO (none is readable).
 */
struct sl_checkpoint *sl_abi_checkpoint_read(const char *dir);

/* Frees a checkpoint; NULL is fine. */
void sl_abi_checkpoint_free(struct sl_checkpoint *checkpoint);

/* Fills in what a checkpoint says; the texts live as long as it. */
void sl_abi_checkpoint_get(const struct sl_checkpoint *checkpoint, struct sl_checkpoint_info *out);

/* Stores pending batch `index`, in order of time, in *time. */
int32_t sl_abi_checkpoint_pending(const struct sl_checkpoint *checkpoint, int32_t index,
                                  int64_t *time);
