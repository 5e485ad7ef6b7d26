#pragma once
/* What the files of the master share. */

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "cluster/control_messages.h"
#include "cluster/master.h"
#include "cluster/master_assignment.h"
#include "cluster/master_transitions.h"
#include "cluster/stored_plan.h"
#include "cluster/supervisor_messages.h"
#include "rpc/leader_retrieval.h"
#include "state/election.h"
#include "state/layout.h"
#include "state/watch.h"

enum sl__master_phase {
    SL__MASTER_STANDING,
    SL__MASTER_LOADING,
    SL__MASTER_LEADING,
};

enum {
    /* How often a change looks whether the one before it is over. */
    SL__MASTER_TURN_MS = 50,
    /* How long a kill waits for slots whose topology master is gone, and how often it looks. */
    SL__MASTER_SLOTS_MS = 15000,
    SL__MASTER_SLOTS_LOOK_MS = 100,
    /* How long a container does not come back to a slot in which it could not run. */
    SL__MASTER_BAR_MS = 60000,
    /* A call of a supervisor or a topology master. */
    SL__MASTER_CALL_MS = 10000,
    /* Of a kill: how often a topology master that does not answer is asked again. */
    SL__MASTER_KILL_AGAIN_MS = 200,
    /* How long a kill waits for one that is not there. */
    SL__MASTER_KILL_ALONE_MS = 3000,
    /* What a new master gives supervisors whose session is over before they count as dead. */
    SL__MASTER_GRACE_MS = 3000,
};

/* A call of the store or of another process that is under way. It outlives what it was made for:
 * when the term ends it belongs to nobody and its answer is dropped. */
struct sl__master_call {
    struct sl_list_node node;
    /* NULL: nobody waits for it. */
    struct sl_master *master;
    struct sl_rpc_gateway *gateway;
    void (*stored)(void *ctx, int status, const struct sl_state_result *result);
    sl_rpc_done_fn answered;
    /* Frees the context when nobody waits any more; NULL where it has an owner. */
    void (*drop)(void *ctx);
    void *ctx;
};

/* A supervisor as its node tells of it; it stays known while plans name it or it is registered. */
struct sl__master_node {
    struct sl_master *master;
    char *id;
    struct sl_state_watch *watch;
    struct sl_arena arena;
    struct sl_supervisor_node info;
    /* The node is there, so its session lives. */
    bool is_present;
    bool has_info;
    /* When it was registered last, or seen first; and when its node went. */
    uint64_t seen_ms;
    uint64_t gone_ms;
};

struct sl__master_keys SL_VEC_BODY(char *);

/* A slot that a topology does not get for some time. */
struct sl__master_bar {
    char *key;
    uint64_t until_ms;
};

/* A topology that masters schedule. */
struct sl__master_topology {
    struct sl_master *master;
    char *name;
    char *topology_id;
    struct sl_buf plan_bytes;
    struct sl_arena plan_arena;
    struct sl_stored_plan plan;
    int32_t plan_node_version;
    bool has_plan;
    struct sl_state_watch *plan_watch;
    struct sl_buf schedule;
    SL_VEC(struct sl_master_start) starts;
    /* As the topology master keeps it. */
    struct sl_state_watch *execution_watch;
    struct sl_buf execution;
    struct sl_leader_retrieval *leader;
    char leader_address[SL_ADDRESS_TEXT_SIZE];
    uint64_t leader_token;
    /* Since when nobody leads it, or it was asked for one. */
    uint64_t alone_ms;
    /* How often it was since somebody led. */
    uint32_t asked;
    enum sl_master_topology_status status;
    enum sl_master_topology_status before;
    /* Who asked for the change that is under way. */
    char changer[SL_REASON_SIZE];
    /* Slots of the plan, and those that a change under way wants. */
    struct sl__master_keys slots;
    struct sl__master_keys reserved;
    /* Slots in which containers could not run, so that these do not go round in a circle. */
    SL_VEC(struct sl__master_bar) bars;
    /* A question of the monitor is under way. */
    bool is_checking;
    int64_t kill_due_ms;
    int64_t stored_due_ms;
    bool is_purged;
    /* Of a kill: it is being stored, and the topology master was asked. */
    bool is_storing_kill;
    bool is_asking_kill;
    bool is_removing;
    uint64_t kill_began_ms;
    struct sl_timer kill_timer;
    SL_VEC(struct sl_rpc_request *) kills;
};

enum sl__master_event_kind {
    SL__MASTER_NEW,
    SL__MASTER_CHANGE,
    SL__MASTER_MONITOR,
};

/* What the assignment thread does: one after the other. */
struct sl__master_event {
    struct sl_list_node node;
    struct sl_master *master;
    enum sl__master_event_kind kind;
    char *topology;
    /* Answered with this event's own error; NULL for none. */
    struct sl_rpc_request *request;
    struct sl_timer timer;
    /* Its time is over, or the term is: nothing is written for it. */
    bool is_dropped;
    /* It waits in the queue; a thread works on it. */
    bool is_queued;
    bool is_working;
    /* What an earlier topology of that name left was removed. */
    bool is_swept;
    /* A change that waits for another one: until when. */
    uint64_t wait_until_ms;
    /* Of a request, and what is decoded of it. */
    struct sl_buf bytes;
    struct sl_arena arena;
    struct sl_master_submit submit;
    struct sl_master_update update;
    char *topology_id;
    SL_VEC(int32_t) dead;
    SL_VEC(int32_t) unstopped;
    bool is_master_dead;
    /* The plan that the dead ones belong to; 0: the present one. */
    uint64_t plan_version;
    struct sl_plan_slot old_master;
    struct sl_schedule_template schedule;
    struct sl_stored_plan proposed;
    struct sl_stored_plan current;
    struct sl_stored_plan backup;
    struct sl_master_wish wish;
    struct sl_stored_plan plan;
    struct sl_buf plan_bytes;
    /* What the topology master answered to a change. */
    struct sl_buf result;
    int code;
    char reason[SL_REASON_SIZE];
};

/* A request that comes in pieces. */
struct sl__master_upload {
    struct sl_list_node node;
    struct sl_master *master;
    uint64_t id;
    uint64_t total;
    struct sl_buf bytes;
    struct sl_timer timer;
};

struct sl_master {
    struct sl_master_options options;
    char *name;
    char *folder;
    struct sl_loop *loop;
    enum sl__master_phase phase;
    bool is_suspended;
    struct sl_state_election *election;
    struct sl_rpc_endpoint endpoint;
    struct sl_resource_manager *resources;
    struct sl_topology_leaders leaders;
    uint64_t token;
    uint64_t term_ms;
    struct sl_list calls;
    /* id -> struct sl__master_node. */
    struct sl_map_bytes nodes;
    struct sl_state_watch *nodes_watch;
    bool has_nodes;
    /* name -> struct sl__master_topology. */
    struct sl_map_bytes topologies;
    /* "supervisor:port" -> the topology whose slot it is. */
    struct sl_map_bytes slots;
    size_t loading;
    /* Events that wait; the one under way is not among them. */
    struct sl_list events;
    /* Submissions whose folder is being written. */
    struct sl_list storing;
    /* Changes that topology masters carry out, and submissions whose topology masters begin. */
    struct sl_list changing;
    struct sl__master_event *running;
    struct sl_timer wait_timer;
    struct sl_list uploads;
    uint64_t upload_bytes;
    struct sl_timer monitor_timer;
    bool is_frozen;
    struct sl_timer load_timer;
};

/* master.c */
/* The context for a call of the store: its answer goes to `stored`, unless the term ends. */
struct sl__master_call *sl__master_call_new(struct sl_master *self,
                                            void (*stored)(void *ctx, int status,
                                                           const struct sl_state_result *result),
                                            void (*drop)(void *ctx), void *ctx);
/* The callback that goes with it. */
void sl__master_stored(void *call, int status, const struct sl_state_result *result);
/* Calls an endpoint once. Not 0: a bad address, and nothing follows. */
int sl__master_ask(struct sl_master *self, const char *address, const char *endpoint,
                   uint64_t token, uint32_t method, const struct sl_buf *body, uint64_t limit_ms,
                   sl_rpc_done_fn answered, void (*drop)(void *ctx), void *ctx);
/* Nobody waits for the calls with this context any more. */
void sl__master_forget(struct sl_master *self, const void *ctx);
/* The same for the topology master that leads; SL_EUNAVAIL when none does. */
int sl__master_ask_topology(struct sl__master_topology *topology, uint32_t method,
                            const struct sl_buf *body, uint64_t limit_ms, sl_rpc_done_fn answered,
                            void (*drop)(void *ctx), void *ctx);

/* master_nodes.c */
void sl__master_nodes_start(struct sl_master *self);
void sl__master_nodes_stop(struct sl_master *self);
struct sl__master_node *sl__master_node_find(const struct sl_master *self, const char *id);
bool sl__master_node_is_registered(const struct sl_master *self, const char *id);
/* Did it go for good? Not while it is registered, or may be coming back. */
bool sl__master_node_is_dead(struct sl_master *self, const char *id);
/* Every supervisor that is present is registered, or had the time to. */
bool sl__master_nodes_are_ready(const struct sl_master *self);
/* Looks who is registered now. */
void sl__master_nodes_look(struct sl_master *self);
/* Too many are silent at once: what connects them is broken rather than they. */
bool sl__master_nodes_are_silent(const struct sl_master *self);

/* master_topologies.c */
struct sl__master_topology *sl__master_topology_find(const struct sl_master *self,
                                                     const char *name);
struct sl__master_topology *sl__master_topology_add(struct sl_master *self, const char *name,
                                                    const char *topology_id);
void sl__master_topology_remove(struct sl_master *self, struct sl__master_topology *topology);
void sl__master_topology_watch(struct sl__master_topology *topology);
/* The plan that is stored now; false when the bytes are none. */
bool sl__master_topology_set_plan(struct sl__master_topology *topology, const uint8_t *data,
                                  size_t size, int32_t node_version);
/* When its tasks were assigned: before is the plan from before, or NULL. */
void sl__master_topology_set_starts(struct sl__master_topology *topology,
                                    const struct sl_stored_plan *plan,
                                    const struct sl_stored_plan *before);
/* Slots that a change wants beside those of the plan; NULL for none. */
void sl__master_topology_reserve(struct sl__master_topology *topology,
                                 const struct sl_stored_plan *plan);
/* Its containers do not come to the slot of one of them, which could not run there, for a while. */
void sl__master_topology_bar(struct sl__master_topology *topology, int32_t container);
bool sl__master_topology_is_barred(const struct sl__master_topology *topology,
                                   const char *supervisor, uint32_t port);
/* The topology that has the slot, or NULL. */
struct sl__master_topology *sl__master_slot_owner(const struct sl_master *self,
                                                  const char *supervisor, uint32_t port);
/* How it is kept; the arena is the caller's. */
void sl__master_topology_encode(const struct sl__master_topology *topology, struct sl_buf *out);
void sl__master_topology_act(struct sl__master_topology *topology, enum sl_master_action action,
                             enum sl_master_effect *effect);

/* master_events.c */
struct sl__master_event *sl__master_event_new(struct sl_master *self,
                                              enum sl__master_event_kind kind, const char *topology,
                                              struct sl_rpc_request *request, uint64_t limit_ms);
void sl__master_event_free(struct sl__master_event *event);
/* From now on. */
void sl__master_event_limit(struct sl__master_event *event, uint64_t limit_ms);
void sl__master_event_push(struct sl__master_event *event);
/* Does what is next. */
void sl__master_events_run(struct sl_master *self);
void sl__master_events_clear(struct sl_master *self);
/* An event of the topology waits or is under way. */
bool sl__master_events_has(const struct sl_master *self, const char *topology);
/* The event is over: its request gets the error of this thread, or the answer. */
void sl__master_event_fail(struct sl__master_event *event, int code, const char *reason);
void sl__master_event_done(struct sl__master_event *event, const struct sl_buf *answer);
/* Takes the event off the assignment thread, which goes on with the next one. */
void sl__master_event_release(struct sl__master_event *event);
/* Keeps the plan under the topology's name, for its return. */
void sl__master_backup(struct sl_master *self, const char *topology, const struct sl_buf *plan);

/* master_submission.c */
void sl__master_handle_pieces(void *ctx, struct sl_rpc_request *request);
void sl__master_uploads_clear(struct sl_master *self);
/* What follows when the assignment of a new topology is made, and when it failed. */
void sl__master_new_assigned(struct sl__master_event *event);
void sl__master_new_failed(struct sl__master_event *event);
void sl__master_folder_remove(struct sl_master *self, const char *topology_id);

/* master_change.c */
void sl__master_change_start(struct sl_master *self, struct sl_rpc_request *request,
                             struct sl_buf *bytes);
void sl__master_change_assigned(struct sl__master_event *event);
void sl__master_handle_reassign(void *ctx, struct sl_rpc_request *request);
void sl__master_monitor_assigned(struct sl__master_event *event);
/* Has the topology master of the plan started; one that was asked for several times and still does
 * not lead is started anew. */
void sl__master_start_topology(struct sl__master_topology *topology);

/* master_kill.c */
void sl__master_handle_kill(void *ctx, struct sl_rpc_request *request);
/* Goes on with a kill that was asked for. */
void sl__master_kill_run(struct sl__master_topology *topology);
/* Deletes every node of a topology; done(ctx, status, is_found). */
void sl__master_remove_nodes(struct sl_master *self, const char *topology, bool is_purged,
                             void (*done)(void *ctx, int status, bool is_found),
                             void (*drop)(void *ctx), void *ctx);
void sl__master_kills_fail(struct sl__master_topology *topology, int code, const char *reason);

/* master_monitor.c */
void sl__master_monitor_start(struct sl_master *self);
