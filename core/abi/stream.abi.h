/*
 * What the Lua runtime calls of the engine: workers, executors, tasks, emitters, acks. Structs are
 * in stream/types.abi.h. Functions that return int give 0 (or what is said) on success and a
 * negative SL_E code with the error record set on failure. This is a bare header: no preprocessor
 * lines, only what both gcc and LuaJIT's parser accept.
 */

struct sl_worker;
struct sl_executor;

/* ---- The worker --------------------------------------------------------------------------- */

/*
 * Makes a worker without tasks; NULL with the error set when an option is out of range. Free it
 * with sl_abi_worker_free.
 */
struct sl_worker *sl_abi_worker_new(const struct sl_worker_options *options);

/* Frees a worker whose executors have stopped. NULL is fine. */
void sl_abi_worker_free(struct sl_worker *worker);

/*
 * Adds a component (enum sl_task_kind; rank: position in topological order, members of a cycle
 * share rank and scc, scc -1 = in no cycle). Returns its index or an error.
 */
int sl_abi_worker_component(struct sl_worker *worker, const char *name, int32_t kind, int32_t rank,
                            int32_t scc);

/* Adds a stream of the component. Returns its index or an error. */
int sl_abi_worker_stream(struct sl_worker *worker, int32_t component, const char *name,
                         int32_t field_count, int32_t is_direct);

/*
 * Lets the component read the stream; keys are positions of fields (from 0) for keyed groupings.
 * Returns its index or an error.
 */
int sl_abi_worker_reader(struct sl_worker *worker, int32_t stream, int32_t component,
                         int32_t grouping, const int32_t *keys, int32_t key_count);

/* Sets the owner (task id) of each key group of a component. Returns 0 or an error. */
int sl_abi_worker_groups(struct sl_worker *worker, int32_t component, const int32_t *owners,
                         int32_t count);

/*
 * Plans a task: its id, its index in the component (from 0), its executor. Returns the id or an
 * error.
 */
int sl_abi_worker_task(struct sl_worker *worker, int32_t component, int32_t id, int32_t index,
                       int32_t executor);

/*
 * Says in which other process (number of its container) a task is that was planned for the executor
 * behind the last one; also when that process was replaced. Returns 0, SL_EINVAL, SL_ENOTFOUND.
 */
int sl_abi_worker_place(struct sl_worker *worker, int32_t id, int32_t container);

/*
 * Takes a task of this process out of it, while the plan goes on to name it in another one. Then as
 * sl_abi_worker_remove_task. Returns 0, SL_EINVAL, SL_ENOTFOUND.
 */
int sl_abi_worker_move_task(struct sl_worker *worker, int32_t id, int32_t container);

/* Returns how many key groups a component has, 0 when it is not keyed. Any thread. */
int32_t sl_abi_worker_group_count(struct sl_worker *worker, int32_t component);

/*
 * Takes a task out of the plan: once every executor has been sent SL_COMMAND_ROUTES it gets no more
 * tuples, and SL_COMMAND_REMOVE_TASK has its executor detach it when it is drained. An acker has to
 * be planned again. Returns 0, SL_ENOTFOUND, or SL_EINVAL for an acker that runs here.
 */
int sl_abi_worker_remove_task(struct sl_worker *worker, int32_t id);

/* Tells where a task of the plan belongs, from any thread. Returns 0 or SL_ENOTFOUND. */
int sl_abi_worker_planned(struct sl_worker *worker, int32_t task, struct sl_planned *planned);

/*
 * Stores at most `capacity` ids of a component's tasks, ascending, from any thread. Returns how
 * many there are, or SL_EINVAL.
 */
int sl_abi_worker_tasks(struct sl_worker *worker, int32_t component, int32_t *ids,
                        int32_t capacity);

/* Returns an executor, NULL when there is none of this index. */
struct sl_executor *sl_abi_worker_executor(struct sl_worker *worker, int32_t index);

/* Returns the number of executors. */
int32_t sl_abi_worker_executor_count(const struct sl_worker *worker);

/* Sets the text that every executor reads when it starts. */
void sl_abi_worker_set_boot(struct sl_worker *worker, const char *text, size_t len);

/* Returns that text (borrowed) and its length. */
const char *sl_abi_worker_boot(const struct sl_worker *worker, size_t *len);

/* Starts a thread with a Lua state of its own for each executor. Returns 0 or an error. */
int sl_abi_worker_start(struct sl_worker *worker);

/* Waits for the threads; they must have been told to stop. */
void sl_abi_worker_join(struct sl_worker *worker);

/* Sends a command (enum sl_command). Returns 0 or SL_EINVAL. */
int sl_abi_worker_command(struct sl_worker *worker, int32_t executor, int32_t command,
                          int32_t argument);

/* Sends SL_COMMAND_TELL with a text; SL_EVENT_TOLD follows. Returns 0 or SL_EINVAL. */
int sl_abi_worker_tell(struct sl_worker *worker, int32_t executor, int32_t argument,
                       const char *text, size_t len);

/* Waits for an event, at most timeout_ms (negative = for ever). Returns 1 with *event, or 0. */
int sl_abi_worker_wait(struct sl_worker *worker, double timeout_ms, struct sl_event *event);

/* Posts an event (enum sl_event_kind) to the owner, from any thread. */
void sl_abi_worker_post(struct sl_worker *worker, int32_t kind, int32_t task, int32_t executor,
                        const char *text, size_t len);

/* Reads the counters of a task; they may be a turn old. Returns 0 or SL_ENOTFOUND. */
int sl_abi_worker_stats(struct sl_worker *worker, int32_t task, struct sl_task_stats *stats);

/* Reads the sums of the counters of a component's tasks that were removed. Returns 0 or an error.
 */
int sl_abi_worker_gone_stats(struct sl_worker *worker, int32_t component,
                             struct sl_task_stats *stats);

/* Tells which user code an executor is in and for how long. */
void sl_abi_worker_busy(struct sl_worker *worker, int32_t executor, struct sl_busy *busy);

/*
 * Returns a quantile (0..1) of the complete latency in milliseconds, -1 without any. The
 * executors must have stopped.
 */
double sl_abi_worker_latency_ms(struct sl_worker *worker, double quantile);

/* Returns how many tuples were dropped because a cycle of bolts overflowed. */
int32_t sl_abi_worker_dropped_in_cycles(const struct sl_worker *worker);

/* Moves a manual clock on. Returns 0 or SL_EINVAL. */
int sl_abi_worker_advance(struct sl_worker *worker, double ms);

/* Returns the time of the worker's clock in milliseconds since the epoch. */
double sl_abi_worker_now_ms(const struct sl_worker *worker);

/*
 * From now on SIGINT and SIGTERM reach the worker's owner as SL_EVENT_SIGNAL. NULL gives them
 * back their default. Returns 0 or an error.
 */
int sl_abi_worker_catch_signals(struct sl_worker *worker);

/* Returns how many cores this process may use. */
int32_t sl_abi_core_count(void);

/* Returns milliseconds that never go back, with fractions. */
double sl_abi_monotonic_ms(void);

/*
 * Writes out what stdio holds, as far as that needs no waiting, and ends the process at once,
 * whatever its threads are doing.
 */
void sl_abi_process_exit(int32_t code);

/* ---- An executor; only its own thread calls these ----------------------------------------- */

/* Takes a planned task in and builds its emitters. Returns 0 or an error. */
int sl_abi_executor_attach(struct sl_executor *executor, int32_t task, struct sl_task **out);

/*
 * Lets a task go that has been taken out of the plan; its pointer and those of its emitters are
 * dead then. Returns 0, SL_EAGAIN while it has input or output under way, SL_EINVAL while it is
 * planned, SL_ENOTFOUND.
 */
int sl_abi_executor_detach(struct sl_executor *executor, int32_t task);

/*
 * Builds the emitters of all attached tasks anew: all pointers to emitters, routes and outboxes got
 * before are dead. Returns 0 or an error.
 */
int sl_abi_executor_route(struct sl_executor *executor);

/* Returns the index in the worker. */
int32_t sl_abi_executor_index(const struct sl_executor *executor);

/*
 * Finds what to do next (enum sl_turn_kind) and stores it in *turn; without may_block
 * SL_TURN_NONE when there is nothing. Every turn is ended by sl_abi_batch_end, sl_abi_spout_end
 * or sl_abi_turn_end.
 */
int sl_abi_executor_next(struct sl_executor *executor, struct sl_turn *turn, int32_t may_block);

/* As next, but only input of this task, inside another one's turn. */
int sl_abi_executor_nested(struct sl_executor *executor, struct sl_turn *turn, int32_t task);

/*
 * One step of waiting for room in an outbox: SL_TURN_READY = there may be room, SL_TURN_BATCH or
 * SL_TURN_TICK = run this nested, SL_TURN_NONE = nothing moves (only without may_block),
 * SL_ECANCELED = the executor has been told to stop.
 */
int sl_abi_executor_await(struct sl_executor *executor, struct sl_turn *turn,
                          struct sl_outbox *outbox, int32_t need, int32_t may_block);

/* The same for a free root of a spout task or completed roots to take. */
int sl_abi_executor_await_root(struct sl_executor *executor, struct sl_turn *turn,
                               struct sl_task *task, int32_t may_block);

/*
 * Says that user code of a task is called outside of a turn (open, close and their kind), so that
 * sl_abi_worker_busy names it; task -1: the call has returned.
 */
void sl_abi_executor_calls(struct sl_executor *executor, int32_t task);

/* Returns the text of this turn's command (borrowed until the next turn), NULL when it has none. */
const char *sl_abi_executor_told(const struct sl_executor *executor, size_t *len);

/* Returns the time in milliseconds since the epoch. */
double sl_abi_executor_now_ms(struct sl_executor *executor);

/* Returns the milliseconds until a timer or a spout's back-off is due; 0 = one is. */
double sl_abi_executor_due_ms(struct sl_executor *executor);

/* Ends a batch turn after `count` records; head is the first one not executed. */
void sl_abi_batch_end(struct sl_executor *executor, struct sl_turn *turn, int32_t count,
                      uint8_t *head);

/* Returns how many records of the turn come before the task's current record. */
int32_t sl_abi_batch_position(struct sl_executor *executor, struct sl_turn *turn);

/* Returns a key that the turn's records name by its number (borrowed), NULL when there is none. */
const char *sl_abi_turn_key(const struct sl_turn *turn, int32_t number, size_t *len);

/*
 * Ends a spout turn: calls made, how the last one ended (enum sl_spout_result), when to call
 * again at the latest (-1: as the back-off says).
 */
void sl_abi_spout_end(struct sl_executor *executor, struct sl_turn *turn, int32_t calls,
                      int32_t result, double again_ms);

/* Ends any other turn. */
void sl_abi_turn_end(struct sl_executor *executor, struct sl_turn *turn);

/* ---- A task; only its executor's thread calls these --------------------------------------- */

/* The task is open and may run. */
void sl_abi_task_opened(struct sl_task *task);

/* Asks for ticks, aligned to multiples of the period or from now on. */
void sl_abi_task_tick(struct sl_task *task, double period_ms, int32_t is_aligned);

/* Holds an executor (enum sl_hold), or no longer: then tasks whose time came meanwhile tick once.
 */
void sl_abi_executor_hold(struct sl_executor *executor, int32_t hold);

/* A spout that was DONE is to be called again. */
void sl_abi_spout_reopen(struct sl_task *task);

/* Returns the number of streams the task emits. */
int32_t sl_abi_task_emitter_count(struct sl_task *task);

/* Returns an emitter; they come in the order of the component's streams. */
struct sl_emitter *sl_abi_task_emitter(struct sl_task *task, int32_t index);

/* Returns a route of the emitter, NULL when there is none of this index. */
struct sl_route *sl_abi_emitter_route(struct sl_emitter *emitter, int32_t route);

/* ---- Emitting ----------------------------------------------------------------------------- */

/*
 * Hands the records over and finds a buffer with room for `need` bytes: enum sl_flush_result, or
 * SL_ENOMEM.
 */
int sl_abi_outbox_flush(struct sl_outbox *outbox, int32_t need);

/* Returns the next target of a shuffle. */
struct sl_outbox *sl_abi_route_next(struct sl_route *route);

/* Returns the target of a key by its hash (fields, partial key). */
struct sl_outbox *sl_abi_route_key(struct sl_route *route, uint64_t hash);

/* The same for a key that is one number. */
struct sl_outbox *sl_abi_route_number(struct sl_route *route, double key);

/* The same for a key that is one string. */
struct sl_outbox *sl_abi_route_string(struct sl_route *route, const char *key, size_t len);

/*
 * Returns the way (see enum sl_way_limits) of a key that is one string, of a route by fields. When
 * it is kept, the key gets a number, unless it is too long, one too many, or its receiver is in
 * another process. The caller keeps it until sl_abi_route_forget and asks for each key once.
 */
int32_t sl_abi_route_way(struct sl_route *route, const char *key, size_t len, int32_t is_kept);

/* Forgets the numbers of all keys. */
void sl_abi_route_forget(struct sl_route *route);

/* Forgets the chosen targets. */
void sl_abi_emitter_clear(struct sl_emitter *emitter);

/* Chooses the targets of a route without a key. */
void sl_abi_emitter_add(struct sl_emitter *emitter, int32_t route);

/* Chooses the target of a route by key. */
void sl_abi_emitter_add_key(struct sl_emitter *emitter, int32_t route, uint64_t hash);

/* Chooses a task; SL_ENOTFOUND when the route does not lead there. */
int sl_abi_emitter_add_task(struct sl_emitter *emitter, int32_t route, int32_t task);

/*
 * Copies the scratch record to a chosen target with an edge for every anchor. Returns 0, or the
 * bytes that the outbox lacks room for.
 */
int sl_abi_emitter_copy(struct sl_task *task, struct sl_emitter *emitter, int32_t target,
                        int32_t bytes);

/* Returns the task's record for building a tuple of up to `bytes` bytes. */
struct sl_record *sl_abi_task_scratch(struct sl_task *task, int32_t bytes);

/* ---- Roots and acks ----------------------------------------------------------------------- */

/*
 * Begins a tree with this record as its only first edge; the task must have a free root. Returns
 * the slot.
 */
int32_t sl_abi_root_open(struct sl_task *task, struct sl_record *record);

/*
 * Begins a tree whose edges follow, and makes it the anchor of the next copies. Returns the slot.
 */
int32_t sl_abi_root_begin(struct sl_task *task);

/* All first edges of the tree have been written. */
void sl_abi_root_end(struct sl_task *task, int32_t slot);

/* Frees the first `count` completed roots. */
void sl_abi_roots_release(struct sl_task *task, int32_t count);

/* Anchors a record on the current one, which has one root. */
void sl_abi_task_anchor(struct sl_task *task, struct sl_record *record);

/* Acks the current record. */
void sl_abi_task_ack(struct sl_task *task);

/* Fails the current record. */
void sl_abi_task_fail(struct sl_task *task);

/* Starts the time-out of the current record's roots again. */
void sl_abi_task_reset(struct sl_task *task);

/* Counts an error of the task's user code. Other threads read the counter. */
void sl_abi_task_count_error(struct sl_task *task);

/* Keeps the current record for a later ack. Returns its handle, -1 when it is untracked. */
double sl_abi_task_hold(struct sl_task *task);

/* Acks or fails a kept record. SL_ENOTFOUND when it was settled before or is too old. */
int sl_abi_held_settle(struct sl_task *task, double handle, int32_t has_failed);

/* Starts the time-out of a kept record's roots again. */
int sl_abi_held_reset(struct sl_task *task, double handle);

/* Begins an empty list of anchors. */
void sl_abi_anchors_clear(struct sl_task *task);

/* Adds the current record to the anchors. */
void sl_abi_anchors_add_current(struct sl_task *task);

/* Adds a kept record to the anchors; nothing when it is too old. */
void sl_abi_anchors_add_held(struct sl_task *task, double handle);
