#pragma once
/*
 * Private layouts of room stream.  Who touches what:
 *
 *   executor, its tasks, emitters, outboxes, roots   only the executor's own thread
 *   batch                                            the thread that holds it; moves through a ring
 *   outbox.in_flight, pool free lists, bell          any thread, by atomics
 *   known keys                                       added by the sender, read with a batch
 *   worker plan (components, streams, readers)       changed and read under plan_lock
 */

#include <pthread.h>
#include <semaphore.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/histogram.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/vec.h"
#include "stream/ring.h"
#include "stream/types.h"

enum {
    /* Turns aim at this long, so that ticks, acks and siblings are served in between. */
    SL__TURN_NS = 1000000,
    /* A tuple waits at most this long in an outbox while its executor is busy. */
    SL__FLUSH_NS = 1000000,
    /* A wait spins this long before it parks; about what a wake-up costs. */
    SL__SPIN_NS = 20000,
    /* Backing off of spouts that emitted nothing: from 16 us, doubling, to 16 ms. */
    SL__BACKOFF_MIN_NS = 16000,
    SL__BACKOFF_MAX_NS = 16384000,
    /* Time-out rounds are a quarter of the time-out T; five of them end between T and 1.25 T. */
    SL__ROUNDS = 4,
    /* An edge inside a cycle may hold this many times its normal credit before it drops. */
    SL__CYCLE_OVERFLOW = 8,
    /* Acks that wait for room in a ring before the executor stops taking tuples. */
    SL__ACK_BACKLOG = 65536,
    /* Slots of a data ring and of all ack rings into one executor together. */
    SL__DATA_RING = 1024,
    SL__ACK_RING = 65536,
    /* Errors that wait for the owner, and the bytes of the text of one. */
    SL__EVENT_MAX = 4096,
    SL__ERROR_TEXT_MOST = 16384,
    /* So many buffers of an executor have a list of texts in its Lua state. */
    SL__TEXT_LISTS = 64,
    /* Blocks of a set of known keys. */
    SL__KNOWN_BLOCKS = 8,
};

struct sl_executor;
struct sl__task;

/* What travels between executors beside data. */
enum sl__ack_op {
    /* To the owner of the root, or to its acker: XOR into the root. */
    SL__ACK = 0,
    SL__FAIL = 1,
    SL__RESET = 2,
    /* To an acker: the root exists, with the XOR of its first edges. */
    SL__INIT = 3,
    /* From an acker to the spout's executor: the tree is complete or has failed. */
    SL__DONE = 4,
    SL__DONE_FAILED = 5,
};

struct sl__ack {
    uint64_t root;
    uint64_t value;
    /* The acker's index among the ackers; -1: to the spout's executor. */
    int32_t acker;
    /* enum sl__ack_op. */
    int32_t op;
};

/* Blocks of one size, owned by one executor and given back by any thread. */
struct sl__pool {
    size_t block_bytes;
    /* Blocks that exist, and how many may. */
    int32_t made;
    int32_t limit;
    /* Bytes of buffers for single large records; together no more than all blocks may have. */
    size_t large_bytes;
    /* The last attempt to make a buffer found no memory. */
    bool has_failed;
    struct sl__batch *local;
    /* Given back by other threads: a stack that the owner takes whole. */
    struct sl__batch *returned;
};

/* A string key that records name by its number. */
struct sl__known_key {
    char *text;
    size_t len;
};

/* Keys that one outbox has sent, see known.c. */
struct sl__known {
    /* The outbox, and batches. */
    int32_t holders;
    /* Of this set in the worker. */
    int32_t number;
    int32_t count;
    struct sl__known_key *blocks[SL__KNOWN_BLOCKS];
};

struct sl__batch {
    struct sl_batch io;
    uint8_t *limit;
    struct sl__outbox *outbox;
    /* That it came from; a buffer larger than its blocks is one of its own for one record. */
    struct sl__pool *pool;
    struct sl__batch *next;
    /* Number of its list of texts, from 1; 0 = none. Only the executor that owns the pool reads it.
     */
    int32_t texts;
    /* The keys that its records name by number; NULL = none. */
    struct sl__known *known;
    /* After these records the sending task has finished: 1; works again after all: -1. */
    int32_t mark;
    /* Received from another process: which, in which of its sessions, and the credit it holds. */
    int32_t peer;
    uint32_t session;
    uint32_t charge;
    _Alignas(16) uint8_t data[];
};

struct sl__outbox {
    struct sl_outbox io;
    struct sl__batch *batch;
    struct sl__task *source;
    struct sl_executor *executor;
    int32_t stream;
    /* Executor of the receiver; that of the I/O thread when it is in another process. */
    int32_t dest_executor;
    /* How often the receiver had been placed in another process when this was routed last. */
    uint32_t placed;
    /* Batches handed over and not yet executed. */
    int32_t in_flight;
    int32_t credit;
    /* The edge is part of a cycle of bolts; never changes, since receivers look at it. */
    bool is_cyclic;
    /* How many edges of the cycle are beyond their credit, this one among them; NULL = in none. */
    int32_t *cycle_full;
    /* The sender has finished; whether the receiver has been told so. */
    bool is_last;
    bool is_last_sent;
    /* Its receiver is no longer a target; freed when all it held has been executed. */
    bool is_retired;
    /* When the flusher first saw records here; 0 = none. */
    uint64_t since_ns;
    /* Keys that are sent by number; NULL = none yet. */
    struct sl__known *known;
    /* In the task's lists: see there. */
    struct sl__outbox *next_in_use;
    struct sl__outbox *next_full;
    bool is_in_use;
    bool is_full;
};

struct sl__route {
    struct sl_route io;
    /* Shuffle: a permutation of the targets, or of those in this process, and the place in it. */
    int32_t *order;
    int32_t order_count;
    int32_t next;
    /* Fields: target index of each key group. */
    int32_t *groups;
    int32_t group_count;
    /* Partial key: records sent to each target. */
    uint64_t *sent;
    /* Fields: keys that have a number. */
    int32_t key_count;
};

struct sl__emitter {
    struct sl_emitter io;
    int32_t target_capacity;
};

struct sl__emitter_list SL_VEC_BODY(struct sl__emitter *);

/* One tuple tree of a spout task, four to a cache line. */
struct sl__root {
    uint64_t value;
    /* When it began, in units of 1024 ns, modulo 2^32. */
    uint32_t start;
    /* generation (24 bits) | time-out round modulo 16 (4) | enum sl__root_flag (4). */
    uint32_t bits;
};

enum sl__root_flag {
    /* In use. */
    SL__ROOT_OPEN = 1,
    /* The emit has written all its copies. */
    SL__ROOT_COMPLETE = 2,
    SL__ROOT_FAILED = 4,
    /* Ended, and not yet told to the spout. */
    SL__ROOT_DONE = 8,
};

/* A tuple of a bolt with manual acks, from its execution to its ack. */
struct sl__held {
    /* First root, incoming edge XOR edges of what was anchored on it. */
    struct sl_pair pair;
    /* Further roots. */
    struct sl_pair *more;
    int32_t more_count;
    uint32_t generation;
    uint32_t round;
    uint8_t is_used;
};

/* Where an edge of the tuple being emitted is noted. */
struct sl__anchor {
    uint64_t root;
    uint64_t *value;
};

struct sl__queue {
    struct sl__batch *first;
    struct sl__batch *last;
};

struct sl__task {
    struct sl_task io;
    struct sl_executor *executor;
    /* Record without anchors that io.record points to outside of executions. */
    struct sl_record *idle_record;
    int32_t rank;
    int32_t scc;
    bool is_busy;
    bool is_open;
    bool is_ready_queued;
    bool is_done;
    bool is_finished;
    /* Bolts: `finish` was called, which happens once even if there is input again later. */
    bool has_been_told;
    bool is_draining;
    /* To be detached as soon as nothing of it is under way. */
    bool is_leaving;
    bool is_touched;
    struct sl__task *ready_next;
    /* Input: batches from inside a cycle go first. */
    struct sl__queue inner;
    struct sl__queue input;
    /* Records in both queues. */
    int64_t queued;
    /* Senders that have finished, of how many: see route.c. */
    int32_t last_seen;
    int32_t last_expected;
    int32_t last_base;
    bool has_readings;
    /* Of the plan that the emitters were built from. */
    uint32_t plan_version;
    /* Nanoseconds a tuple or a call takes, smoothed; 0 = not known. */
    double cost_ns;
    /* Spouts: when to poll again, and the pause before that. */
    uint64_t poll_at_ns;
    uint64_t backoff_ns;
    /* Ticks: nominal time of the next one; 0 = none. */
    uint64_t tick_ns;
    uint64_t tick_next_ns;
    /* Emitters by the streams of the component. */
    struct sl__emitter_list emitters;
    /* Sorted by stream and receiver. */
    SL_VEC(struct sl__outbox *) outboxes;
    /* Those that may have something to hand over, to tell or to wait for, so that turns look at no
     * others; and those outside of cycles that had all their credit under way when they were looked
     * at last. */
    struct sl__outbox *in_use;
    struct sl__outbox *full;
    /* Spouts: roots. */
    int32_t spout_index;
    /* Of slots that are used for the first time: acks of another life of this task are late. */
    uint32_t first_generation;
    struct sl__root *roots;
    /* Slots below root_count that are free again. */
    int32_t *free_slots;
    int32_t free_slot_count;
    int32_t root_count;
    /* From root_most on the spout is not called; one call may take up to root_capacity. */
    int32_t root_most;
    int32_t root_capacity;
    /* Bolts with manual acks. */
    SL_VEC(struct sl__held) held;
    SL_VEC(int32_t) held_free;
    int32_t held_in_use;
    /* Anchors of the tuple being emitted (general path) and further accumulators of the record. */
    SL_VEC(struct sl__anchor) anchors;
    SL_VEC(uint64_t) more_pending;
    /* The record built by the general path. */
    uint8_t *scratch;
    size_t scratch_bytes;
    /* Quiescence of cycles: nothing queued, buffered or under way; changes of that. */
    int32_t is_quiet;
    uint32_t activity;
    /* Spouts: nanoseconds from emit to complete. Equal ones that follow each other are counted
     * together, and only then added to io.acked. */
    struct sl_histogram *latency;
    uint32_t latency_value;
    uint64_t latency_count;
};

/* Entry of an acker task. */
struct sl__acker_entry {
    uint64_t root;
    uint64_t value;
    uint32_t round;
    uint8_t is_init;
    uint8_t has_failed;
};

struct sl__acker {
    struct sl__task *task;
    struct sl__acker_entry *entries;
    uint32_t mask;
    uint32_t count;
};

struct sl__command {
    int32_t command;
    int32_t argument;
    /* Of SL_COMMAND_TELL. */
    char *text;
    size_t len;
    struct sl__command *next;
};

/* Acks on their way to another executor. */
struct sl__ack_box {
    struct sl_ring *ring;
    SL_VEC(struct sl__ack) items;
};

/* A driver that is running. */
struct sl__frame {
    struct sl__task *task;
    uint64_t start_ns;
    int32_t kind;
    /* While it waits inside an emit, ticks of later tasks take turns with their batches. */
    bool is_tick_next;
};

struct sl_executor {
    struct sl_worker *worker;
    int32_t index;
    struct sl_random random;
    uint64_t now_ns;
    uint32_t round;
    uint64_t round_at_ns;
    bool is_expiry_due;
    /* The losses of the worker for which the pending roots here were failed already. */
    uint32_t losses_seen;
    uint64_t timer_at_ns;
    /* Ticks take turns with other work. */
    bool is_tick_next;
    /* No task ticks. */
    bool is_held;
    /* Tasks run only when nothing that they have emitted is under way. */
    bool keeps_way;
    uint64_t flushed_at_ns;
    SL_VEC(struct sl__task *) tasks;
    SL_VEC(struct sl__task *) spouts;
    /* The tasks of this executor by spout index, NULL for those of others. */
    struct sl__task **spout_of;
    SL_VEC(struct sl__acker *) ackers;
    /* Tasks that are to be detached. */
    SL_VEC(struct sl__task *) leaving;
    int32_t next_spout;
    bool is_spout_next;
    /* Bolts with input, in order of arrival. */
    struct sl__task *ready_first;
    struct sl__task *ready_last;
    /* Batches for tasks that are not attached yet. */
    struct sl__queue early;
    /* Acks for acker tasks that are not attached yet. */
    SL_VEC(struct sl__ack) early_acks;
    /* Tasks that may have records in an outbox. */
    SL_VEC(struct sl__task *) touched;
    struct sl__pool pool;
    struct sl__ack_box *ack_out;
    /* Tasks whose drivers are running, outermost first. */
    SL_VEC(struct sl__frame) stack;
    bool is_active;
    bool is_draining;
    bool is_finished_reported;
    /* Something could not be handed over because a ring was full: nobody rings when it is not. */
    bool is_ring_full;
    struct sl_thread thread;
    bool has_thread;
    uint64_t idle_since_ns;
    /* Park: 1 while asleep; the futex word. */
    _Alignas(64) uint32_t bell;
    uint32_t is_asleep;
    uint32_t bell_seen;
    /* A task takes nothing from outside until its cycle has room; taken back by who makes it. */
    uint32_t waits_for_cycle;
    pthread_mutex_t command_lock;
    struct sl__command *commands;
    uint32_t has_commands;
    /* The text of the command that was taken last. */
    char *told;
    size_t told_len;
    /* SL_COMMAND_STOP was sent: emits that wait give up. */
    uint32_t is_stopping;
    /* For the watchdog: id of the task in user code (-1 = none) and since when. */
    int32_t current_task;
    uint64_t current_since_ns;
    /* The I/O thread is woken by this instead of the futex. */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

struct sl__ids SL_VEC_BODY(int32_t);

struct sl__component {
    char *name;
    int32_t rank;
    int32_t scc;
    int32_t kind;
    /* Key group -> task id; NULL when it is not keyed. */
    int32_t *groups;
    int32_t group_count;
    /* Ids in ascending order: tasks that get tuples, and those that only finish what they have. */
    struct sl__ids tasks;
    struct sl__ids leaving;
    /* Of its tasks that are gone: how many had finished, and the sum of their counters. */
    int32_t gone_finished;
    struct sl_task_stats gone;
};

struct sl__stream {
    int32_t component;
    char *name;
    int32_t field_count;
    bool is_direct;
};

struct sl__reader {
    int32_t stream;
    int32_t component;
    int32_t grouping;
    int32_t key_count;
    int32_t keys[sizeof(((struct sl_route *)0)->keys) / sizeof(int32_t)];
};

struct sl__event {
    int32_t kind;
    int32_t task;
    int32_t executor;
    char *text;
    size_t len;
    struct sl__event *next;
};

/* Read and written as a whole, by atomics. */
struct sl__spout_home {
    _Alignas(8) int32_t task;
    int32_t executor;
};

struct sl_worker {
    const struct sl_clock *clock;
    struct sl_manual_clock *manual;
    uint64_t seed;
    int32_t executor_count;
    /* One more than executor_count when tasks may be in other processes: what is for them goes to
     * the last one, which is no thread of this room but the lane to the I/O thread (remote.c). */
    int32_t lane_count;
    struct sl_executor **executors;
    struct sl_remote *remote;
    /* data[i * lane_count + j]: from i to j; likewise acks. */
    struct sl_ring **data;
    struct sl_ring **acks;
    size_t batch_bytes;
    int32_t credit;
    bool is_acking;
    uint64_t timeout_ns;
    int32_t max_pending;
    pthread_mutex_t plan_lock;
    /* Grows with every change of the plan. */
    uint32_t plan_version;
    /* Processes of peers that have ended with what they were given; written by the I/O thread. */
    uint32_t losses;
    /* A task was attached: roots may be under way. */
    bool is_live;
    SL_VEC(struct sl__component) components;
    SL_VEC(struct sl__stream) streams;
    SL_VEC(struct sl__reader) readers;
    /* By task id. */
    int32_t task_capacity;
    struct sl__task **tasks;
    int32_t *task_executor;
    int32_t *task_component;
    int32_t *task_index;
    /* Of tasks in other processes: which one, and how often that was said. By atomics. */
    int32_t *task_peer;
    uint32_t *task_placed;
    /* Of tasks in other processes, written by the lane: its end of input was told to tasks here. */
    uint8_t *task_has_ended;
    /* Outboxes towards a task, of all executors. */
    int32_t *inbound;
    /* Spout tasks and acker tasks in order of their creation. */
    int32_t spout_count;
    int32_t spout_capacity;
    struct sl__spout_home *spouts;
    /* Latencies of spout tasks that are gone. */
    struct sl_histogram *gone_latency;
    int32_t acker_count;
    int32_t acker_capacity;
    struct sl__acker **ackers;
    int32_t *acker_task;
    int32_t *acker_executor;
    /* Events for the owner. */
    pthread_mutex_t event_lock;
    struct sl__event *events;
    struct sl__event *events_last;
    int32_t event_count;
    uint64_t events_dropped;
    /* The text of the event that the owner took last. */
    char *taken_text;
    int signal_number;
    uint32_t signal_count;
    uint32_t signals_taken;
    sem_t wake;
    /* Under event_lock. */
    void (*on_event)(void *ctx);
    void *on_event_ctx;
    /* What each executor's Lua state is told at its start. */
    char *boot;
    size_t boot_bytes;
    int32_t dropped_in_cycles;
    /* By cycle: how many outboxes inside it are beyond their credit. */
    int32_t *cycles_full;
    /* Sets of known keys that were ever made. */
    int32_t known_sets;
};

/* pool.c */
/* True when a buffer for a record of `need` bytes can be had without exceeding the limit. */
bool sl__pool_has_room(const struct sl__pool *pool, int32_t need);
/*
 * A buffer for a record of `need` bytes.  NULL when the pool is used up, which `may_exceed`
 * overrides, or (pool.has_failed) when the memory is.
 */
struct sl__batch *sl__batch_take(struct sl_executor *executor, int32_t need, bool may_exceed);
void sl__batch_give(struct sl_executor *executor, struct sl__batch *batch);
void sl__pool_destroy(struct sl__pool *pool);

/* outbox.c */
bool sl__outbox_can_hand_over(const struct sl__outbox *outbox);
/* The same, and there is room in the ring to the receiver's executor. */
bool sl__outbox_has_way(const struct sl__outbox *outbox);
/* True when an outbox of a cycle is beyond its credit: it sends full batches only, as few as it
 * can. */
bool sl__outbox_is_used_up(const struct sl__outbox *outbox);
/* True when the outbox may have a buffer although the pool is used up. */
bool sl__outbox_is_entitled(const struct sl__outbox *outbox);
/* True when it holds neither records nor a mark. */
bool sl__outbox_is_idle(const struct sl__outbox *outbox);
/* Has it looked at when outboxes are flushed, until it is idle. */
void sl__outbox_use(struct sl__outbox *outbox);
/* Hands the records (or only the mark that the sender finished) over; false when it can not now. */
bool sl__outbox_hand_over(struct sl__outbox *outbox);
void sl__outbox_released(struct sl_executor *executor, struct sl__outbox *outbox);
/* NULL when there is no memory for a ring to the receiver's executor. */
struct sl__outbox *sl__outbox_new(struct sl__task *source, int32_t stream, int32_t dest,
                                  bool is_cyclic);
void sl__outbox_free(struct sl__outbox *outbox);
/* The number of a key from now on. The key has none yet. */
int32_t sl__outbox_know(struct sl__outbox *outbox, const char *key, size_t len);
/* Numbers that are given from now on are those of a new set. */
void sl__outbox_forget_keys(struct sl__outbox *outbox);

/* known.c */
/* An empty set, held once. */
struct sl__known *sl__known_new(struct sl_worker *worker);
/* Holds it once more; NULL is fine, here and below. */
struct sl__known *sl__known_hold(struct sl__known *known);
void sl__known_drop(struct sl__known *known);
/* Adds a key; its number, from 1. */
int32_t sl__known_add(struct sl__known *known, const char *text, size_t len);
/* The bytes of a key, NULL when it is not in the set. */
const char *sl__known_key(const struct sl__known *known, int32_t number, size_t *len);

/* route.c */
int sl__task_route(struct sl__task *task);
void sl__emitter_free(struct sl__emitter *emitter);

/* root.c */
/* 0, or SL_ENOMEM with the task as it was. */
int sl__roots_create(struct sl__task *task);
void sl__roots_destroy(struct sl__task *task);
void sl__root_apply(struct sl__task *task, const struct sl__ack *ack);
void sl__roots_expire(struct sl__task *task);
/* Fails all roots that are under way. */
void sl__roots_lose(struct sl__task *task);
/* Counts the time-out of roots that began at `since_ns` or later from the current round. */
void sl__roots_restart(struct sl__task *task, uint64_t since_ns);
/* Counts what latency_value and latency_count hold. */
void sl__latency_settle(struct sl__task *task);

/* acker.c */
struct sl__acker *sl__acker_new(struct sl__task *task);
void sl__acker_free(struct sl__acker *acker);
void sl__acker_apply(struct sl__acker *acker, const struct sl__ack *ack);
void sl__acker_expire(struct sl__acker *acker);

/* anchor.c */
void sl__held_destroy(struct sl__task *task);
void sl__held_expire(struct sl__task *task);

/* ack.c */
/* Sends an ack to the acker or owner of its root, at once when that is on this executor. */
void sl__ack_send(struct sl_executor *executor, uint64_t root, enum sl__ack_op op, uint64_t value);
/* Tells the executor of the root's spout what its acker found. */
void sl__ack_tell_spout(struct sl_executor *executor, uint64_t root, enum sl__ack_op op);
/* Pushes what waits; true when nothing is left. */
bool sl__acks_flush(struct sl_executor *executor);
size_t sl__acks_waiting(const struct sl_executor *executor);
bool sl__acks_intake(struct sl_executor *executor);
/* Gives acks that came before their acker task to those that are attached now. */
void sl__acks_adopt(struct sl_executor *executor);
void sl__batch_fail_roots(struct sl_executor *executor, struct sl__batch *batch);
/* The executor that an ack is for and its task there, the acker or the spout; -1 = it is gone. */
int32_t sl__ack_home(const struct sl_worker *worker, const struct sl__ack *ack, int32_t *task);
/* Hands an ack from another process to an executor of this one. */
void sl__ack_hand_in(struct sl_executor *lane, int32_t dest, const struct sl__ack *ack);

/* remote.c */
struct sl_remote *sl__remote_new(struct sl_worker *worker, const struct sl_worker_options *options);
/* NULL is fine. */
void sl__remote_free(struct sl_remote *remote);

/* task.c */
struct sl__task *sl__task_new(struct sl_executor *executor, int32_t id, int32_t component,
                              int32_t index, int32_t kind);
void sl__task_free(struct sl__task *task);
void sl__task_enqueue(struct sl__task *task, struct sl__batch *batch);
/* Gives a batch to its task, or keeps it until that is attached. */
void sl__executor_deliver(struct sl_executor *executor, struct sl__batch *batch);
/* Has its outboxes looked at until they are empty. */
void sl__task_touch(struct sl__task *task);
/* The task has done all it will do; its receivers are told. */
void sl__task_finished(struct sl__task *task);
/* A finished task works again; its receivers are told. */
void sl__task_resume(struct sl__task *task);
/* The mark of a sender was reached in the input. */
void sl__task_marked(struct sl__task *task, const struct sl__outbox *outbox, int32_t mark);
/* True when nothing it received or sent is under way, so that it can be detached. */
bool sl__task_is_drained(const struct sl__task *task);
/* True when sl_worker_remove_task was called for it. */
bool sl__task_is_planned_to_leave(const struct sl__task *task);
/* True when a receiver has so much queued that the task should not run. */
bool sl__task_is_gated(struct sl__task *task);
/* Frees an outbox that has been taken out of in_use. */
void sl__task_drop_outbox(struct sl__task *task, struct sl__outbox *outbox);

/* executor.c */
/* Reads the clock into now_ns, and returns it. */
uint64_t sl__executor_refresh(struct sl_executor *executor);

/* turn.c */
/* Begins the time-out rounds that are due. */
void sl__round_advance(struct sl_executor *executor);
/* A driver of the task begins to run (enum sl_turn_kind). */
void sl__frame_push(struct sl_executor *executor, struct sl__task *task, int32_t kind);
/* How many tuples or calls the next turn may take, at most `most`. */
int32_t sl__turn_size(const struct sl__task *task, int32_t most);
/* Whether there is input to execute; drops what only carries the mark of an end. */
bool sl__task_has_records(struct sl_executor *executor, struct sl__task *task);
bool sl__bolt_can_run(struct sl_executor *executor, struct sl__task *task, int32_t above_rank);
int sl__batch_turn(struct sl_executor *executor, struct sl__task *task, struct sl_turn *turn);
/* The first bolt that can run and has a rank above the given one, taken from the ready list. */
struct sl__task *sl__ready_pick(struct sl_executor *executor, int32_t above_rank);

/* finish.c */
/* Makes a turn of a bolt whose input has ended, or reports that all tasks have finished. */
bool sl__finish_turn(struct sl_executor *executor, struct sl_turn *turn);

/* Queues of batches. A pop is of a queue that is not empty. */
static inline void
sl__queue_push(struct sl__queue *queue, struct sl__batch *batch)
{
    batch->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = batch;
    } else {
        queue->first = batch;
    }
    queue->last = batch;
}

static inline struct sl__batch *
sl__queue_pop(struct sl__queue *queue)
{
    struct sl__batch *batch = queue->first;
    queue->first = batch->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    batch->next = NULL;
    return batch;
}

/* park.c */
/* One step of a short spin. */
static inline void
sl__pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void sl__executor_ring_bell(struct sl_executor *executor);
void sl__park(struct sl_executor *executor, uint64_t deadline_ns);

/* Adds to a counter that other threads read: they see an old value or the new one, nothing torn. */
static inline void
sl__count(double *counter, double add)
{
    double sum = *counter + add;
    __atomic_store(counter, &sum, __ATOMIC_RELAXED);
}

/* Sets a number that other threads may read at any time. */
#define sl__publish(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)

static inline uint64_t
sl__edge_new(struct sl_executor *executor)
{
    uint64_t edge;
    do {
        edge = sl_mix64(executor->random.state += UINT64_C(0x9e3779b97f4a7c15));
    } while (edge == 0);
    return edge;
}

static inline int32_t
sl__roots_in_use(const struct sl__task *task)
{
    return task->root_count - task->free_slot_count;
}

static inline bool
sl__roots_are_full(const struct sl__task *task)
{
    return task->free_slot_count == 0 && task->root_count == task->root_capacity;
}

static inline bool
sl__has_component(const struct sl_worker *worker, int32_t component)
{
    return component >= 0 && (size_t)component < worker->components.count;
}

static inline struct sl__spout_home
sl__spout_home(const struct sl_worker *worker, uint32_t spout)
{
    struct sl__spout_home home;
    __atomic_load(&worker->spouts[spout], &home, __ATOMIC_RELAXED);
    return home;
}

/* Under plan_lock. */
static inline void
sl__spout_set_home(struct sl_worker *worker, int32_t spout, int32_t task, int32_t executor)
{
    struct sl__spout_home home = {task, executor};
    __atomic_store(&worker->spouts[spout], &home, __ATOMIC_RELAXED);
}

/* True when the task is in another process. */
static inline bool
sl__is_remote(const struct sl_worker *worker, int32_t executor)
{
    return executor == worker->executor_count;
}

static inline struct sl__task *
sl__task_of(struct sl_task *io)
{
    return (struct sl__task *)io;
}

static inline struct sl__outbox *
sl__outbox_of(struct sl_outbox *io)
{
    return (struct sl__outbox *)io;
}
